"""What is shown: results on stdout and nothing else there; progress on stderr, and on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from reassign.errors import Reason, ReassignError

WIDTH = 120  # where there is no terminal that has one


def write(text: str) -> None:
    sys.stdout.write(text)


def write_json(value: Any) -> None:
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_picture(parts: Iterator[RenderableType]) -> None:
    """Tables and text, with a line between them; coloured on a terminal."""
    console = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDTH)
    for i, part in enumerate(parts):
        console.print(*([""] if i else []), part, sep="\n")


def read(file: Path) -> str:
    """A file, or stdin for `-`."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ReassignError(Reason.CANNOT_BE_READ, f"{file} cannot be read: {why}; name another file") from None


@contextmanager
def progress(*steps: str) -> Iterator[Callable[[], None]]:
    """A bar of these steps while the block runs; what it gives is called when the next one begins."""
    err = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(steps[0], total=len(steps))
        names = iter(steps[1:])
        yield lambda: bar.update(task, advance=1, description=next(names, ""))
