"""The program, killed at a chosen moment: `python -m tests.fleet.killed MODULE FUNCTION TEXT ARGUMENT...`

The first call of that function with this text in an argument sends SIGKILL instead of doing anything.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

from reassign.cli.app import main


def arm(module: str, name: str, text: str) -> None:
    """`name` may be a method, `Class.method`."""
    holder: Any = importlib.import_module(module)
    *outer, function = name.split(".")
    for each in outer:
        holder = getattr(holder, each)
    real = getattr(holder, function)

    def armed(*args: Any, **options: Any) -> Any:
        if any(text in str(each) for each in args):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(holder, function, armed)


if __name__ == "__main__":
    arm(*sys.argv[1:4])
    sys.argv[1:] = sys.argv[4:]
    main()
