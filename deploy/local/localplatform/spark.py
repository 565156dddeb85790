"""A fleet planned on the platform: deploy/spark's Job, whose executors are pods, over a folder of this machine."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localplatform import node
from localplatform.console import PlatformError, say
from localplatform.controlplane import ApiServer
from localplatform.image import Image, fleet_image
from localplatform.machine import CHECKOUT
from localplatform.processes import wait_until

JOB = CHECKOUT / "deploy" / "spark" / "job.yaml"
NAMESPACE = NAME = "fleet"
EXECUTOR = {"spark-role": "executor"}


@dataclass(frozen=True)
class Ran:
    """A run that has ended."""

    code: int
    """What the driver exited with."""
    log: str
    """What the driver said."""
    pods: str
    """What `kubectl get pods` said when all executors ran at once; nothing when they never did."""
    seconds: float
    """From the Job's creation to its end."""
    created: float
    """When the Job was created, in seconds since the epoch."""


def run_fleet(server: ApiServer, folder: Path, *, executors: int = 2, policy: str | None = None) -> Ran:
    """Run `fleet run` as the Job over `snapshots` in the folder, and leave nothing of it in the cluster.

    Its work, manifests and report then lie beside the snapshots (see deploy/spark/job.yaml).
    """
    image = fleet_image()
    if image.name not in node.images():
        say("importing the fleet's image into the node")
        node.import_image(image.archive)
    volume = node.volume(folder, NAME, NAMESPACE, "ReadWriteMany")
    with _applied(server, [_namespace(), volume, *manifests(image, executors, policy)]):
        return _watched(server, executors)


def manifests(image: Image, executors: int, policy: str | None) -> list[dict[str, Any]]:
    """The manifests of deploy/spark/job.yaml with this image, as many executors, and the policy unless it is None."""
    found: list[dict[str, Any]] = list(yaml.safe_load_all(JOB.read_text()))
    for manifest in found:
        manifest["metadata"]["namespace"] = NAMESPACE
        if manifest["metadata"]["name"] == "fleet-policy" and policy is not None:
            manifest["data"]["policy.yaml"] = policy
        if manifest["kind"] == "RoleBinding":
            manifest["subjects"][0]["namespace"] = NAMESPACE
        if manifest["kind"] == "Job":
            manifest["spec"]["backoffLimit"] = 0
            (driver,) = manifest["spec"]["template"]["spec"]["containers"]
            driver["image"] = image.name
            values = {"IMAGE": image.name, "EXECUTORS": str(executors)}
            for variable in driver["env"]:
                variable |= {"value": values[variable["name"]]} if variable["name"] in values else {}
    return found


def _namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


@contextmanager
def _applied(server: ApiServer, manifests: list[dict[str, Any]]) -> Iterator[None]:
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    try:
        server.kubectl("apply", "-f", "-", input=json.dumps(listed))
        yield
    finally:
        for thing in (f"namespace/{NAMESPACE}", f"persistentvolume/{NAME}"):
            server.kubectl("delete", thing, "--ignore-not-found", "--timeout=5m")


def _watched(server: ApiServer, executors: int, seconds: float = 900) -> Ran:
    """Wait for the Job's end."""
    created, started, pods = time.time(), time.monotonic(), ""

    def ended() -> bool:
        nonlocal pods
        if not pods and _running(server) == executors:
            pods = server.kubectl("get", "pods", f"--namespace={NAMESPACE}")
        job = server.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{NAME}") or {}
        conditions = (job.get("status") or {}).get("conditions", ())
        return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)

    in_time = wait_until(ended, seconds, pause=0.5)
    took = time.monotonic() - started
    code = _exit_code(server)
    log = server.kubectl("logs", f"job/{NAME}", f"--namespace={NAMESPACE}") if code is not None else ""
    if not in_time or code is None:
        described = server.kubectl("describe", "pods", f"--namespace={NAMESPACE}")
        raise PlatformError(f"the fleet's Job has not run to an end\n{described[-3000:]}\n{log[-3000:]}")
    return Ran(code, log, pods, took, created)


def _running(server: ApiServer) -> int:
    """How many executors' containers run."""
    pods = _pods(server)
    return sum(
        pod["metadata"]["labels"].items() >= EXECUTOR.items() and pod["status"].get("phase") == "Running"
        for pod in pods
    )


def _exit_code(server: ApiServer) -> int | None:
    """What the driver ended with; None while it has not."""
    for pod in _pods(server):
        for status in pod["status"].get("containerStatuses", ()):
            if status["name"] == "driver" and "terminated" in status["state"]:
                return int(status["state"]["terminated"]["exitCode"])
    return None


def _pods(server: ApiServer) -> list[dict[str, Any]]:
    found = server.get(f"/api/v1/namespaces/{NAMESPACE}/pods") or {"items": []}
    return list(found["items"])
