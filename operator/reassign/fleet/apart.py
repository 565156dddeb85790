"""An answer from a process of its own, so that what ends that process ends no other.

It is the first that the system kills where memory runs out, and it may not take more than there was when it began.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

GROUP = Path("/sys/fs/cgroup")
"""Of a container, which may have less memory than its machine."""


class LostError(Exception):
    """The process has ended without an answer."""


def apart(answer: Callable[[], pa.Table]) -> pa.Table:
    """Return what this returns in a process of its own; raises LostError where that ends before."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(source)
            _expendable()
            table = answer()
            with os.fdopen(sink, "wb") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
                writer.write_table(table)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(sink)
    with os.fdopen(source, "rb") as answered:
        content = answered.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise LostError(f"by signal {-status}" if status < 0 else "for want of memory, or by a bug")
    return pa.ipc.open_stream(content).read_all()


def _expendable() -> None:
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    most = _said("/proc/self/status", "VmData") + _available()
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _available() -> int:
    """Return the bytes of memory that are free for this process."""
    free = _said("/proc/meminfo", "MemAvailable")
    with suppress(OSError, ValueError):  # no such group, or one without a limit
        limit, used = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, limit - used)
    return max(free, 0)


def _said(file: str, name: str) -> int:
    """Return the bytes of a line such as `MemAvailable: 4 kB`."""
    lines = Path(file).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
