"""Files that are whole, or as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reassign.errors import PlanningError, Reason

UNFINISHED = ".unfinished"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Report what cannot be written in one sentence."""
    try:
        yield
    except OSError as error:
        raise PlanningError(
            Reason.CANNOT_BE_WRITTEN,
            f"{error.filename or place} cannot be written: {error.strerror or error}; what was written before stays, "
            "run it again when that is fixed",
        ) from None


def write(file: Path, content: bytes) -> bool:
    """Write a file unless it has this content already; return whether it was written."""
    try:
        if file.read_bytes() == content:
            return False
    except FileNotFoundError:
        pass
    put(file, [content])
    return True


def put(file: Path, parts: Iterable[bytes]) -> None:
    """Write a file anew, which has these parts; until all are written it is as it was."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}{UNFINISHED}")
    try:
        with unfinished.open("wb") as out:
            out.writelines(parts)
        unfinished.replace(file)
    except BaseException:  # also Ctrl-C: no incomplete file remains
        unfinished.unlink(missing_ok=True)
        raise
