"""Long-running processes, known by process id and start time, so that they outlive the command that
started them, can be found and stopped by a later one, and are never mistaken for somebody else's.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localplatform.console import PlatformError, say

TIMEOUT = 300.0
"""Seconds until a wait fails. It detects what hangs, not what is slow: a busy machine takes ten times as long."""

# A child that has ended stays a zombie until its parent asks for it.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Process:
    """A process of ours: its id, and its start time in clock ticks since boot, which no later process shares."""

    name: str
    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return _start_time(self.pid) == self.started

    def stop(self, patience: float = 15) -> None:
        """Ask it to end (SIGTERM), insist after `patience` seconds (SIGKILL), and wait until it is gone."""
        for sign, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
            if not self.alive:
                return
            os.kill(self.pid, sign)
            if wait_until(lambda: not self.alive, seconds, pause=0.05):
                return
        raise PlatformError(f"{self.name} (process {self.pid}) does not end")


class Processes:
    """The processes of one platform or test: a record of each in `records`, their output in `logs`."""

    def __init__(self, records: Path, logs: Path, *, end_with_us: bool = False) -> None:
        """`end_with_us` lets the kernel kill them when this process ends, however it ends."""
        self.records = records
        self.logs = logs
        self.end_with_us = end_with_us

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start a command in a session of its own; `env` is added to the environment."""
        for folder in (self.records, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        prefix = ["setpriv", "--pdeathsig", "KILL", "--"] if self.end_with_us else []
        with self.log(name).open("wb") as log:
            child = subprocess.Popen(
                [*prefix, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        _children[child.pid] = child
        process = Process(name, child.pid, _start_time(child.pid) or 0)
        publish(self.records / f"{name}.json", json.dumps({"pid": process.pid, "started": process.started}))
        return process

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def find(self, name: str) -> Process | None:
        """The process of that name, if it is alive."""
        return next((process for process in self.all() if process.name == name), None)

    def all(self) -> list[Process]:
        """Those that are alive, the latest started first."""
        found = []
        for record in self.records.glob("*.json"):
            process = Process(name=record.stem, **json.loads(record.read_text()))
            if process.alive:
                found.append(process)
            else:
                record.unlink(missing_ok=True)
        return sorted(found, key=lambda process: process.started, reverse=True)

    def stop(self, *names: str) -> None:
        """Stop the named ones, in this order."""
        for process in [found for name in names if (found := self.find(name))]:
            process.stop()
            (self.records / f"{process.name}.json").unlink(missing_ok=True)

    def stop_all(self) -> None:
        """Stop all, the latest started first."""
        self.stop(*(process.name for process in self.all()))

    def wait(self, what: str, ready: Callable[[], bool], *processes: Process) -> None:
        """Wait until `ready` says so; fail at once, with the log's end, when one of the processes ends instead."""
        told = time.monotonic()

        def settled() -> bool:
            nonlocal told
            if time.monotonic() - told > 10:
                told = time.monotonic()
                say(f"still waiting: {what}")
            return ready() or not all(process.alive for process in processes)

        in_time = wait_until(settled)
        for process in processes:
            if not process.alive:
                raise PlatformError(f"{what} failed: {process.name} ended\n{self.log_end(process.name)}")
        if not in_time:
            raise PlatformError(f"{what} is not there after {TIMEOUT:.0f} s\n{self.log_end(processes[0].name)}")

    def log_end(self, name: str, lines: int = 15) -> str:
        """The last lines of a log, under its path."""
        log = self.log(name)
        return "\n".join([f"{log}:", *log.read_text(errors="replace").splitlines()[-lines:]])


def wait_until(condition: Callable[[], bool], seconds: float = TIMEOUT, pause: float = 0.2) -> bool:
    """Whether the condition came true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def run(command: Sequence[str | Path], *, input: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed; a failure is a PlatformError that quotes it."""
    finished = subprocess.run(
        [str(part) for part in command],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
    )
    if finished.returncode:
        output = (finished.stdout + finished.stderr).strip()[-4000:]
        raise PlatformError(f"failed ({finished.returncode}): {' '.join(map(str, command))}\n{output}")
    return finished.stdout


def publish(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file beside its place and rename it: others read it whole, or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.chmod(mode)
    unfinished.rename(path)


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


def _start_time(pid: int) -> int | None:
    """Start time in clock ticks since boot (field 22 of proc's stat), None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in "ZX":
        if pid in _children:
            _children.pop(pid).wait()
        return None
    return int(fields[19])
