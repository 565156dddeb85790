"""The operator's pod on the platform, from outside: its process, its metrics, its log."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.operator_ import NAMESPACE, RELEASE

__all__ = ["OperatorPod"]

SELECTOR = f"--selector=app.kubernetes.io/instance={RELEASE}"


class OperatorPod:
    """There is one, but for an upgrade; the kubelet starts its container again whenever that has ended."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def kill(self) -> None:
        """End the process at once (SIGKILL), if it runs."""
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """The operator's processes, as this machine numbers them; none while it is being started."""
        uids = [pod["metadata"]["uid"] for pod in self._pods()]
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _is_operator(p, uids)]

    def metrics(self) -> dict[str, float]:
        """What it counts, by name and labels as Prometheus writes them."""
        (pod,) = self._pods()
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}:8080/proxy/metrics"
        lines = self._server.kubectl("get", "--raw", path).splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def log(self) -> str:
        """The end of its log, or why there is none."""
        try:
            return self._server.kubectl("logs", f"--namespace={NAMESPACE}", SELECTOR, "--tail=60")
        except PlatformError as error:
            return str(error)

    def _pods(self) -> list[dict[str, dict[str, str]]]:
        answer = self._server.kubectl("get", "pods", f"--namespace={NAMESPACE}", SELECTOR, "-o", "json")
        pods: list[dict[str, dict[str, str]]] = json.loads(answer)["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def _is_operator(process: Path, uids: Iterable[str]) -> bool:
    try:
        groups, command = (process / "cgroup").read_text(), (process / "cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return False
    return b"reassign" in command and any(uid in groups for uid in uids)
