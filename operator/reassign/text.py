"""What messages have in common: lists cut short, numbers and plurals, an object's first error, what can be printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_NAMED = 20
"""Brokers that a sentence names: more than a partition's target can have."""

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
Verb = Literal["", "is", "has", "copies"]
_PLURALS: dict[Verb, str] = {"": "", "is": "are", "has": "have", "copies": "copy"}


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


def amount(size: float) -> str:
    """Return bytes for people, to two digits: `1.2 GiB`, `340 MiB`, `0 B`."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    digits = f"{size:.1f}" if unit and size < 9.95 else str(round(size, -1 if size >= 100 else 0)).removesuffix(".0")
    return f"{digits} {UNITS[unit]}"


def named_brokers(ids: Iterable[int], verb: Verb = "") -> str:
    """Return "broker 1" or "brokers 1, 2 and 3"; with the verb "is", "broker 1 is" or "brokers 1, 2 and 3 are"."""
    shown = [str(broker) for broker in sorted(ids)]
    if len(shown) < 2:
        return f"broker {shown[0] if shown else '-'} {verb}".rstrip()
    if len(shown) > MAX_NAMED:
        shown[MAX_NAMED:] = [f"{len(shown) - MAX_NAMED} more"]
    return f"brokers {', '.join(shown[:-1])} and {shown[-1]} {_PLURALS[verb]}".rstrip()


def plural(things: Collection[object], one: str, many: str) -> str:
    """Return the words for one thing, or the words for several."""
    return one if len(things) == 1 else many


def printable(text: str) -> str:
    """Return one line without control characters: others choose names and paths, and these go to terminals."""
    return "".join(character if character.isprintable() else "?" for character in text)


def cut(text: str, most: int = 500) -> str:
    """Return a text of at most that many characters, with an ellipsis in place of what is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_error(error: ValidationError) -> str:
    """Return "field: message" of an object's first error."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {own_words(first['msg'])}" if field else own_words(first["msg"])


_OWN_WORDS = [
    (re.compile(theirs, re.DOTALL), ours)
    for theirs, ours in {
        r"Value error, (.*)": r"\1",
        r"Field required": "it is missing",
        r"Extra inputs are not permitted": "there is no such field",
        r"(Input should be a valid integer|Unable to parse input string as an integer).*": "it is no whole number",
        r"Input should be a (valid|finite) number.*": "it is no number",
        r"Input should be a valid string.*": "it is no text",
        r"Input should be a valid boolean.*": "it is neither true nor false",
        r"Input should be a valid (list|tuple|array|set|frozenset).*": "it is no list",
        r"Input should be (an object|a valid dictionary).*": "it is no map of fields",
        r"Input should (be a valid datetime|have timezone info).*": "it is no time such as 2026-01-31T12:00:00Z",
        r"Input should be greater than or equal to (.*)": r"it is less than \1",
        r"Input should be less than or equal to (.*)": r"it is more than \1",
        r"Input should be greater than (.*)": r"it is not more than \1",
        r"Input should be less than (.*)": r"it is not less than \1",
        r"Input should be ('[^']*')": r"it is not \1",
        r"Input should be ('.*') or ('.*')": r"it is none of \1, \2",
        r"\w+ should have at least 1 (item|character)\b.*": "it is empty",
        r"\w+ should have at least (\d+ \w+).*": r"it has less than \1",
        r"\w+ should have at most (\d+ \w+).*": r"it has more than \1",
        r"String should match pattern '\^\[([^]]*)\]\+\$'": r"it has other characters than \1",
        r"String should match pattern '\^\[([^]]*)\]\(\[([^]]*)\]\*\[\1\]\)\?\$'": (
            r"it has other characters than \2, or begins or ends with others than \1"
        ),
        r"String should match pattern '(.*)'": r"it does not have the form \1",
    }.items()
]
"""What pydantic says, and how it is said here. The first that fits counts."""


def own_words(message: str) -> str:
    """Return a message of pydantic in plain words."""
    for theirs, ours in _OWN_WORDS:
        if found := theirs.fullmatch(message):
            return found.expand(ours)
    return message
