"""Runs a function in a process of its own, so that what ends that process ends no other.

The process ends with the one that started it. It has a time limit, and a share of the memory that was available when it
began; it is the first that the system kills where memory runs out.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from reassign import cgroup

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
FAILED = 1
SHOWN = 300


class ProcessEndedError(Exception):
    """The process has ended without a result; says by what."""


def in_own_process(function: Callable[[], pa.Table], seconds: int, sharers: int) -> pa.Table:
    """Return the result of a function that runs in a process of its own.

    Raises ProcessEndedError where the process ends before. The process may take `seconds`, and of the available memory
    the share of one among so many `sharers`.
    """
    parent, file = os.getpid(), os.memfd_create("result")
    try:
        child = os.fork()
        if child == 0:
            try:
                os._exit(_run(function, file, parent, seconds, sharers))
            finally:
                os._exit(FAILED)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            raise ProcessEndedError(_why(status, file, seconds))
        with pa.memory_map(f"/proc/self/fd/{file}") as content:
            return pa.ipc.open_stream(content).read_all()
    finally:
        os.close(file)


def _run(function: Callable[[], pa.Table], file: int, parent: int, seconds: int, sharers: int) -> int:
    """Write the result, or why there is none, into the file; return the exit code."""
    try:
        _limit(parent, seconds, sharers)
        table = function()
        with pa.OSFile(f"/proc/self/fd/{file}", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return 0
    except Exception as error:
        why = "for want of memory"
        if not isinstance(error, MemoryError):
            text = " ".join(f"{type(error).__name__}: {error}".split())[:SHOWN]
            why = f"by an error ({text}), of which Spark's log has the traceback"
        os.truncate(file, 0)
        os.pwrite(file, why.encode(errors="replace"), 0)
        traceback.print_exc()  # into that log, as all that a worker writes there
        return FAILED


def _limit(parent: int, seconds: int, sharers: int) -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before, so that no signal comes
        os._exit(FAILED)
    signal.alarm(seconds)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    most = _bytes_of("/proc/self/status", "VmData") + _available() // sharers
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _why(status: int, file: int, seconds: int) -> str:
    if status == -signal.SIGALRM:
        return f"since it took longer than {seconds} s"
    if status < 0:
        return f"by signal {-status} ({signal.strsignal(-status)})"
    text = os.pread(file, 2 * SHOWN, 0).decode(errors="replace") if status == FAILED else ""
    return text or f"with exit code {status}"


def _available() -> int:
    """Return the bytes of memory that are available to this process and others."""
    free = _bytes_of("/proc/meminfo", "MemAvailable")
    if memory := cgroup.memory():
        free = min(free, memory.limit - memory.used)
    return max(free, 0)


def _bytes_of(file: str, name: str) -> int:
    """Return the bytes of a line such as `MemAvailable: 4 kB`."""
    lines = Path(file).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
