"""Files that are whole, or as they were."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_IMODE

from reassign.errors import PlanningError, Reason

UNFINISHED = ".unfinished"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn an error of writing into a PlanningError of one sentence."""
    try:
        yield
    except OSError as error:
        raise PlanningError(
            Reason.CANNOT_BE_WRITTEN,
            f"{error.filename or place} cannot be written: {error.strerror or error}; what was written before stays, "
            "run it again when that is fixed",
        ) from None


def check_writable(folder: Path, what: str) -> None:
    """Raise PlanningError for a folder in which no file can be written; leave nothing there."""
    place = folder
    try:
        while not _is_there(place):
            place = place.parent
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        why = f"{what} cannot be written in {folder} ({error.strerror or error}): name another folder, or correct that"
        raise PlanningError(Reason.CANNOT_BE_WRITTEN, why) from None


def _is_there(place: Path) -> bool:
    try:
        place.lstat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def alone_in(folder: Path | None) -> Iterator[None]:
    """Keep a folder for one process during the block, as far as its file system can lock one; None: do nothing.

    Raises PlanningError where another process has the folder.
    """
    with ExitStack() as stack:
        try:
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                place = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, place)
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"another run uses {folder}: wait until that has ended, or name another folder"
            raise PlanningError(Reason.CANNOT_BE_WRITTEN, why) from None
        except OSError:
            pass  # what cannot be used says so where it is written
        yield


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
    """Write a file anew from these parts; until all are written, it stays as it was. It keeps its mode."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}{UNFINISHED}")
    try:
        with unfinished.open("wb") as out:
            with suppress(FileNotFoundError):
                unfinished.chmod(S_IMODE(file.stat().st_mode))
            out.writelines(parts)
        unfinished.replace(file)
    except BaseException:  # also Ctrl-C: no incomplete file remains
        unfinished.unlink(missing_ok=True)
        raise
