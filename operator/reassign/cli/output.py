"""Output in UTF-8: results alone on stdout, in the words of `-o`, and progress on stderr, on a terminal only."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reassign.errors import Reason, ReassignError
from reassign.text import printable, source

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
    from rich.segment import Segment
    from rich.table import Table

WIDTH = 120  # where there is no terminal that has one
UNBOUNDED = 1_000_000
"""Width of what programs read: nothing is cut or wrapped."""


_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""By byte order marks; the longer ones are first."""
_NO_TEXT = "it is not text in UTF-8, or in UTF-16 with a byte order mark; save it as UTF-8, or name another file"


class UnwritableError(Exception):
    """Stdout cannot be written: the disk is full, or the pipe or stdout is closed."""


def as_utf8() -> None:
    """Write UTF-8 in every locale, with escapes for file names that are no text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def write(text: str) -> None:
    """Write to stdout; raises UnwritableError."""
    if sys.stdout is None:
        raise UnwritableError("it is closed")
    with _writing():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        drop()
        raise UnwritableError(error.strerror) from error


def write_line(text: str) -> None:
    """Write a line for people to stdout."""
    write(f"{printable(text)}\n")


def say(text: str) -> None:
    """Write a line for people to stderr."""
    import typer

    typer.echo(printable(text), err=True)


def drop() -> None:
    """Discard what stdout did not take, so that the exit of the process does not retry it."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(value: Any) -> None:
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_value(value: Any, output: str) -> bool:
    """Write a value as JSON or YAML; return False where another output is asked for."""
    from reassign.manifests.text import dump

    if output == "json":
        write_json(value)
    elif output == "yaml":
        write(dump([json.loads(json.dumps(value))]))  # of plain types alone
    return output in ("json", "yaml")


def write_objects(objects: Sequence[Mapping[str, Any]], output: str) -> None:
    """Write objects that can be applied: as YAML documents, or as JSON, several of them as one List."""
    from reassign.manifests.text import dump

    if output == "yaml":
        write(dump(objects, explicit_start=True))
    else:
        write_json(objects[0] if len(objects) == 1 else as_list(objects))


def as_list(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return objects as kubectl has several of them in one."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def table(*columns: str, numbers: Collection[str] = ()) -> Table:
    """Return an empty table as kubectl has it; numbers are right-justified."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        made.add_column(column, justify=justify, no_wrap=True, overflow="fold")
    return made


class Printable:
    """A table or a text without control characters, but those of its own colours and lines."""

    def __init__(self, part: RenderableType) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._part, options):
            lines = segment.text.split("\n")
            yield segment if segment.control else segment._replace(text="\n".join(map(printable, lines)))


def write_tables(parts: Iterable[RenderableType]) -> None:
    """Write tables and text as kubectl does: without colours, in lines that may be longer than a terminal's."""
    from rich.console import Console

    _write(parts, Console(highlight=False, markup=False, emoji=False, width=UNBOUNDED, color_system=None), plain=True)


def write_picture(parts: Iterable[RenderableType]) -> None:
    """Write tables and text: coloured and as wide as the terminal, else in WIDTH."""
    from rich.console import Console

    terminal = bool(sys.stdout) and sys.stdout.isatty()
    console = Console(highlight=False, markup=False, emoji=False, width=None if terminal else WIDTH)
    _write(parts, console, plain=not terminal)


def _write(parts: Iterable[RenderableType], console: Console, plain: bool) -> None:
    """Write with a blank line between the parts; what is plain has no spaces at the ends of lines."""
    with _writing(), console.capture() as captured:  # where rich cannot write, it ends the process
        for i, part in enumerate(parts):
            console.print(*([""] if i else []), Printable(part), sep="\n")
    text = captured.get()
    write("".join(f"{line.rstrip()}\n" for line in text.splitlines()) if plain else text)


def confirm(question: str, yes: bool) -> None:
    """Ask on stderr, unless the user has said yes already; ends the command for any other answer."""
    import typer

    if yes:
        return
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin is None or sys.stdin.readline().strip().lower() not in ("y", "yes"):
        typer.echo("nothing was changed: answer y, or give --yes", err=True)
        raise typer.Exit(1)


def read(file: Path) -> str:
    """Read a file, or stdin for `-`: UTF-8, or what a byte order mark says, as that of PowerShell's `>`."""
    if str(file) == "-" and sys.stdin is None:
        raise ReassignError(Reason.CANNOT_BE_READ, "standard input is closed; name a file")
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        encoding = next((encoding for mark, encoding in _ENCODINGS.items() if content.startswith(mark)), "utf-8")
        text = content.decode(encoding)
        if "\0" not in text:
            return text
        why = _NO_TEXT
    except OSError as error:
        why = f"{error.strerror}; name another file"
    except UnicodeDecodeError:
        why = _NO_TEXT
    raise ReassignError(Reason.CANNOT_BE_READ, f"{source(file)} cannot be read: {why}")


@contextmanager
def progress(*steps: str) -> Iterator[Callable[[], None]]:
    """Show a progress bar while the block runs; call the yielded function when the next step begins."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    err = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(steps[0], total=len(steps))
        names = iter(steps[1:])
        yield lambda: bar.update(task, advance=1, description=next(names, ""))
