"""The operator as a process of this machine, with an API server and, if need be, brokers, but without a node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localplatform.processes import free_port, wait_until

ROOT = Path(__file__).parents[1]
CONTROLLER = "reassign.controller"
GRACE_SECONDS = 30
"""A pod's terminationGracePeriodSeconds, after which it is killed."""


class OperatorProcess:
    """A process of the operator; it writes its log into a file."""

    def __init__(self, name: str, kubeconfig: Path, directory: Path, module: str = CONTROLLER, **settings: str) -> None:
        self.name, self.port, self._log = name, free_port(), directory / f"{name}.log"
        environment = os.environ | {
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}",
            "POD_NAME": name,
            "REASSIGN_HTTP_PORT": str(self.port),
            **settings,
        }
        with self._log.open("w") as log:
            command = [sys.executable, "-m", module]
            self._process = subprocess.Popen(command, env=environment, stderr=log, cwd=directory)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def takes_sigterm(self) -> bool:
        """Whether it does something of its own on SIGTERM; by default a container's first process ignores it."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (caught,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:")]
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    def ended(self) -> int | None:
        """Its exit status, None when it does not end in time."""
        try:
            return self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of /livez, /readyz or /metrics; status 0 while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def wait_ready(self) -> None:
        assert wait_until(lambda: self.get("/readyz")[0] == 200), f"{self.get('/readyz')}\n{self.log_text()}"

    def log_text(self) -> str:
        return self._log.read_text()

    def log(self, event: str) -> list[dict[str, Any]]:
        """The records of this event in its log."""
        lines = [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def end(self) -> None:
        if self.running:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(
    name: str, kubeconfig: Path, directory: Path, module: str = CONTROLLER, **settings: str
) -> Iterator[OperatorProcess]:
    """A process that is gone after the block."""
    process = OperatorProcess(name, kubeconfig, directory, module, **settings)
    try:
        yield process
    finally:
        process.end()
