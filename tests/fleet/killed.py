"""The program, killed at a chosen moment: `python -m tests.fleet.killed MODULE FUNCTION NUMBER ARGUMENT...`

Of that function's calls the one of that number sends SIGKILL instead of doing anything.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from itertools import count
from typing import Any

from reassign.cli.app import main


def arm(module: str, name: str, number: int) -> None:
    """`name` may be a method, `Class.method`."""
    holder: Any = importlib.import_module(module)
    *outer, function = name.split(".")
    for each in outer:
        holder = getattr(holder, each)
    real, calls = getattr(holder, function), count(1)

    def armed(*args: Any, **options: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(holder, function, armed)


if __name__ == "__main__":
    arm(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.argv[1:] = sys.argv[4:]
    main()
