"""Folders in the user's cache for what is made once and used by later processes, each named by a hash of its inputs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

LATEST = 5
"""Folders of a name that stay when another one is made, those used last."""


def of_user() -> Iterator[Path]:
    """Yield the user's cache, where the user has a home."""
    with suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def kept(roots: Iterable[Path], name: str, key: str) -> Path | None:
    """Return the folder of this key in the first root that can be written; None where none can."""
    return next(filter(None, (_kept_in(root, name, key) for root in roots)), None)


def _kept_in(root: Path, name: str, key: str) -> Path | None:
    place = root / name / key
    try:
        place.mkdir(parents=True, exist_ok=True)
        place.touch()
        latest_first = sorted(place.parent.iterdir(), key=lambda other: other.stat().st_mtime, reverse=True)
    except OSError:
        return None
    for old in latest_first[LATEST:]:
        shutil.rmtree(old, ignore_errors=True)
    return place if os.access(place, os.W_OK) else None
