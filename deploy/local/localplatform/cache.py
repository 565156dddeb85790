"""Things that take long to build, kept outside the checkout under a key made of all their pins.

An entry is built beside its final place and published by a rename, so a half-built one is never used;
a lock file keeps two builders of the same entry apart, and the second one finds the first one's work.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localplatform.console import say

Pin = str | bytes | Path


def root() -> Path:
    """The cache's folder: $KAFKA_REASSIGN_CACHE, or kafka-reassign in the user's cache folder."""
    if chosen := os.environ.get("KAFKA_REASSIGN_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-reassign"


def key(pins: Iterable[Pin]) -> str:
    """A short hash of the pins; a path stands for the content of its file."""
    digest = hashlib.sha256()
    for pin in pins:
        content = pin.read_bytes() if isinstance(pin, Path) else pin.encode() if isinstance(pin, str) else pin
        digest.update(len(content).to_bytes(8, "big") + content)  # with lengths, so that no two lists agree
    return digest.hexdigest()[:16]


def entry(name: str, pins: Iterable[Pin], build: Callable[[Path], None]) -> Path:
    """The folder built from these pins; when there is none yet, `build` is called with an empty one to fill."""
    place = root() / f"{name}-{key(pins)}"
    if place.is_dir():
        return place
    with locked(root() / f"{place.name}.lock", f"{name}: another process builds it, waiting for that"):
        if not place.is_dir():
            unfinished = place.with_name(f"{place.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(place)
    return place


def keep_latest(name: str, count: int) -> None:
    """Remove all but the latest entries of that name: for what is built often."""
    entries = [place for place in root().glob(f"{name}-*") if place.is_dir()]
    for place in sorted(entries, key=lambda place: place.stat().st_mtime, reverse=True)[count:]:
        shutil.rmtree(place, ignore_errors=True)
        place.with_name(f"{place.name}.lock").unlink(missing_ok=True)


@contextmanager
def locked(path: Path, if_waiting: str) -> Iterator[None]:
    """Hold an exclusive lock on the file, which ends with the process; say so when it has to be waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(if_waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
