"""Runs a function in a process of its own, which ends with it: the event loop goes on, and the memory comes back.

Not multiprocessing: its children import the main module, which is the whole operator.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from reassign.errors import PlanningError, Reason

__all__ = ["run_apart"]

T = TypeVar("T")

NICENESS = 10
"""The loops of all clusters come first."""


async def run_apart(function: Callable[..., T], *arguments: Any, seconds: float) -> T:
    """What the function, which both processes can import, makes of the arguments.

    Raises PlanningError: the one that the function raised, or PlanningFailed for a process that did not come to an
    end in time, or to another than an answer. What it logs goes where our own log goes.
    """
    task = await asyncio.to_thread(pickle.dumps, (function, arguments))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        run_apart.__module__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate(task)
    except TimeoutError:
        message = f"it took longer than {seconds:.0f} s; select fewer topics, or balance by less; it is tried again"
        raise PlanningError(Reason.PLANNING_FAILED, message) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise PlanningError(Reason.PLANNING_FAILED, _ending(process.returncode))
    error, result = pickle.loads(answer)
    if error:
        raise PlanningError(*error)
    return cast(T, result)


def _ending(code: int) -> str:
    if code == -signal.SIGKILL:
        return (
            "the process that plans was killed, as one is that needs more memory than there is: raise the operator's "
            "memory limit, or select fewer topics; it is tried again"
        )
    what = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"the process that plans {what}, by a mistake of the operator; its log has the details: report them"


def _serve() -> None:
    """The other process: one task in, one answer out; standard output is for nothing else."""
    os.nice(NICENESS)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever is printed goes to the log
        function, arguments = pickle.load(sys.stdin.buffer)
        try:
            pickle.dump((None, function(*arguments)), out)
        except PlanningError as error:
            pickle.dump(((error.reason, error.message), None), out)


if __name__ == "__main__":
    _serve()
