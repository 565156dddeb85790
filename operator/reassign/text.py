"""What messages have in common: a list cut short, a number of things, an object's first error, what can be printed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def listed(items: Iterable[object], total: int | None = None, *, most: int = 5, separator: str = ", ") -> str:
    """Return "a, b, c and 4 more": the first items, and the number of the others.

    `total` is the number of all items where only some are given.
    """
    texts = [str(item) for item in items]
    more = (len(texts) if total is None else total) - len(texts[:most])
    return separator.join(texts[:most]) + (f" and {more} more" if more else "")


def source(file: Path) -> str:
    """Return the name of a file; standard input is `-` for commands alone."""
    return "standard input" if str(file) == "-" else str(file)


def counted(number: int, noun: str) -> str:
    """Return "1 partition", or "2 partitions"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """Return one line without control characters: others choose names and paths, and these go to terminals."""
    return "".join(character if character.isprintable() else "?" for character in text)


def cut(text: str, most: int = 500) -> str:
    """Return a text of at most that many characters, with an ellipsis in place of what is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_error(error: ValidationError) -> str:
    """Return "field: message" of an object's first error."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"])) or "it"
    return f"{field}: {first['msg'].removeprefix('Value error, ')}"
