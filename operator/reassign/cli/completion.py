"""Completion of `kubectl kafka-reassign`: kubectl runs `kubectl_complete-kafka_reassign` with the words so far.

It writes one completion per line, then a directive for the shell, as cobra numbers them.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO

from reassign.cli.app import PROGRAM, app

FILES, NO_FILES = ":0", ":4"


def main() -> None:
    """Run the program."""
    logging.getLogger().addHandler(logging.NullHandler())  # a shell shows nothing but completions
    candidates = completions(sys.argv[1:])
    print("\n".join([*candidates, NO_FILES if candidates else FILES]))


def completions(words: Sequence[str]) -> list[str]:
    """Return the completions of the last word, by typer's own completion for bash."""
    os.environ |= {
        f"_{PROGRAM.replace('-', '_').upper()}_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join([PROGRAM, *words]),
        "COMP_CWORD": str(max(len(words), 1)),
    }
    with redirect_stdout(StringIO()) as written, suppress(SystemExit):
        app(prog_name=PROGRAM)
    return written.getvalue().split()
