"""The platform on kind, for machines with Docker: only when asked for with PLATFORM=kind, not covered by CI.

Kubernetes and the operator run in kind. The brokers are processes of this machine, as always, and listen also on
the gateway of kind's network, where pods reach them.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from localplatform import brokers, operator_, parts
from localplatform.console import PlatformError, say
from localplatform.controlplane import ApiServer
from localplatform.image import CONTAINERFILE, OPERATOR, Image, source_tag
from localplatform.machine import CHECKOUT, LOCAL
from localplatform.processes import Processes, run

CLUSTER = "kafka-reassign"
PLACE = LOCAL / "kind"


def up(part: str | None = None) -> None:
    """Create the cluster unless there is one, start brokers unless they run, install the operator."""
    _require_docker()
    _refuse_part(part)
    processes, server = _processes(), _server()
    if CLUSTER not in run(["kind", "get", "clusters"]).split():
        say("creating a cluster with kind")
        run(["kind", "create", "cluster", f"--name={CLUSTER}", "--wait=3m"], env={"KUBECONFIG": str(server.kubeconfig)})
    if not any(process.name.startswith("kafka-controller-") for process in processes.all()):
        _start_brokers(processes)
    found = brokers.load(processes, PLACE / "brokers")
    operator_.install(server, found, _load_image())
    parts.write_env(server, found)
    say("ready: source .local/env")


def down(part: str | None = None) -> None:
    """Delete the cluster and stop the brokers."""
    _require_docker()
    _refuse_part(part)
    _processes().stop_all()
    run(["kind", "delete", "cluster", f"--name={CLUSTER}"])
    shutil.rmtree(PLACE, ignore_errors=True)
    say("stopped")


def _start_brokers(processes: Processes) -> None:
    say("starting brokers")
    networks = json.loads(run(["docker", "network", "inspect", "kind"]))[0]["IPAM"]["Config"]
    gateway = next(network["Gateway"] for network in networks if "." in network.get("Gateway", ""))
    brokers.start(
        processes,
        PLACE / "brokers",
        version=os.environ.get("KAFKA_VERSION") or brokers.DEFAULT_VERSION,
        brokers=int(os.environ.get("BROKERS") or 4),
        base_port=int(os.environ.get("KAFKA_PORT") or brokers.PLATFORM_PORT),
        bridge=gateway,
        secure=True,
    )


def _load_image() -> Image:
    say("building the operator's image with docker")
    image = Image(f"localhost/{OPERATOR.repository}", source_tag(OPERATOR), PLACE / "unused")
    run(["docker", "buildx", "build", "--load", "--file", CHECKOUT / CONTAINERFILE, "--tag", image.name, CHECKOUT])
    run(["kind", "load", "docker-image", image.name, f"--name={CLUSTER}"])
    return image


def _require_docker() -> None:
    needed = {"docker": "https://docs.docker.com/engine/install", "kind": "https://kind.sigs.k8s.io"}
    asked = subprocess.run(["docker", "version"], capture_output=True, text=True) if shutil.which("docker") else None
    if asked and asked.returncode:
        said = "".join(asked.stderr.strip().splitlines()[-1:])
        raise PlatformError(f"PLATFORM=kind needs Docker's engine, which does not answer: {said}")
    for command, where in needed.items():
        if not shutil.which(command):
            raise PlatformError(f"PLATFORM=kind needs {command}: {where}; without PLATFORM=kind it is not needed")


def _refuse_part(part: str | None) -> None:
    if part:
        raise PlatformError("with PLATFORM=kind the platform comes as a whole: name no part")


def _processes() -> Processes:
    return Processes(PLACE / "processes", LOCAL / "logs")


def _server() -> ApiServer:
    PLACE.mkdir(parents=True, exist_ok=True, mode=0o700)
    kubeconfig = PLACE / "kubeconfig"
    return ApiServer(PLACE, "", kubeconfig, certificate_authority=kubeconfig, audit_log=Path(os.devnull))
