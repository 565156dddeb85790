"""Runs a function in a process of its own, which ends with it: the event loop goes on, and the memory comes back.

Not multiprocessing: its children import the main module, which is the whole operator.

Where a container has too little memory, Kubernetes ends all of it (memory.oom.group of cgroup v2), the operator too,
and after its restart once more. So the process is ended before it comes to that, unless it takes all the rest between
two looks. RLIMIT_DATA would hold for certain, but counts what is never touched, and thread stacks; and libraries that
meet it fail in any way, not only by a MemoryError.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import structlog

from reassign import cgroup
from reassign.controller.logs import set_up_logs
from reassign.errors import PlanningError, Reason, ReassignError

__all__ = ["run_in_subprocess"]

T = TypeVar("T")

log = structlog.get_logger()

NICENESS = 10
"""The loops of all clusters come first."""
FULL = 0.9
"""Of the container's memory; what is allocated between two looks has to fit into the rest."""
LOOK_SECONDS = 0.05
TOO_MUCH = (
    "the process that plans was ended, since it needs more memory than there is: raise the operator's memory limit "
    "(resources.limits.memory of the chart). It is tried again when the operator has been restarted with that, or when "
    "the plan is changed"
)


async def run_in_subprocess(function: Callable[..., T], *arguments: Any, seconds: float) -> T:
    """Return what the function, which both processes can import, makes of the arguments.

    Raises PlanningError: what the function raised of ours, InsufficientMemory for a process that needs more than there
    is, or PlanningFailed for one that did not come to an end in time, or to another than an answer. What it logs goes
    where our own log goes, as ours does and from the same level on.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        run_in_subprocess.__module__,
        logging.getLevelName(logging.getLogger().level),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    watch = asyncio.create_task(_end_when_full(process))
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate(pickle.dumps((function, arguments)))
    except TimeoutError:
        message = f"it took longer than {seconds:.0f} s; select fewer topics, or balance by less; it is tried again"
        raise PlanningError(Reason.PLANNING_FAILED, message) from None
    finally:
        watch.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise PlanningError(Reason.INSUFFICIENT_MEMORY, TOO_MUCH) if watch.done() else _ending(process.returncode)
    error, result = pickle.loads(answer)
    if error:
        raise PlanningError(*error)
    return cast(T, result)


async def _end_when_full(process: asyncio.subprocess.Process) -> None:
    """Wait until memory is full, and end the process then."""
    while not _memory_is_full():  # noqa: ASYNC110  (nothing tells)
        await asyncio.sleep(LOOK_SECONDS)
    with suppress(ProcessLookupError):
        process.kill()


def _memory_is_full() -> bool:
    """Whether the container's memory is nearly used up; False where that is not said."""
    memory = cgroup.memory()
    return memory is not None and memory.used > FULL * memory.limit


def _ending(code: int) -> PlanningError:
    if code == -signal.SIGKILL:
        message = (
            "the process that plans was killed, and not by the operator: by the kernel, if the node ran out of memory "
            "(its log says so). It is tried again"
        )
        return PlanningError(Reason.PLANNING_FAILED, message)
    what = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    message = f"the process that plans {what}, by a bug of the operator; its log has the details: report it"
    return PlanningError(Reason.PLANNING_FAILED, message)


def _serve(level: str) -> None:
    """Be the other process: one task in, one answer out; standard output is for nothing else."""
    set_up_logs(level)
    os.nice(NICENESS)
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as out:  # nobody reads it when the operator was killed
        os.dup2(2, 1)  # whatever is printed goes to the log
        out.write(_answer())


def _answer() -> bytes:
    try:
        function, arguments = pickle.load(sys.stdin.buffer)
        return pickle.dumps((None, function(*arguments)))
    except ReassignError as error:
        return pickle.dumps(((error.reason, error.message), None))
    except MemoryError:
        return pickle.dumps(((Reason.INSUFFICIENT_MEMORY, TOO_MUCH), None))
    except Exception:
        log.exception("the process that plans failed unexpectedly")
        sys.exit(1)


if __name__ == "__main__":
    _serve(sys.argv[1])
