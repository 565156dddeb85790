"""What numba makes of the planner, kept outside the checkout: a fresh clone would compile it for a minute.

Numba sees that a file has changed, and not that another one has which it inlines; so the key is made of all of them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from localplatform import cache

ROOT = Path(__file__).parents[1]
PLANNING = ROOT / "operator" / "reassign" / "planning"
COMPILED = PLANNING / "__pycache__"
NAME, KEPT = "planner", 5


def _pins() -> list[cache.Pin]:
    sources = sorted(PLANNING.glob("*.py"))
    return [sys.version, ROOT / "requirements.lock", *(pin for path in sources for pin in (path.name, path))]


def _copy(source: Path, target: Path) -> None:
    for path in source.glob("*.nb[ci]"):
        shutil.copy(path, target)


def bring_back() -> bool:
    """Put what is kept of these very sources beside them; whether what is there at the end is made of nothing else."""
    alone = not any(COMPILED.glob("*.nb[ci]"))
    kept = cache.root() / f"{NAME}-{cache.key(_pins())}"
    if kept.is_dir():
        COMPILED.mkdir(exist_ok=True)
        _copy(kept, COMPILED)
    return alone


def keep() -> None:
    """Keep what is beside the sources, unless that was done before."""
    cache.entry(NAME, _pins(), lambda place: _copy(COMPILED, place))
    cache.keep_latest(NAME, KEPT)
