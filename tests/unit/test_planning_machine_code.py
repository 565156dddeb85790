"""The planner's machine code: whose it is, where it is kept, and what of an image is found.

That an image keeps all that a plan needs is seen when the image is built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reassign
from reassign.caches import LATEST
from reassign.planning import machine_code
from reassign.planning.machine_code import NAME, SETTINGS, folder, key

CALL = """
import numpy as np
from reassign.planning.bounds.counting import _keepable
kept = np.zeros((3, 2, 3), np.int32)
path, one = np.array([[1, 3], [1, 4], [2, 5]], np.int32), np.ones((6, 3), np.int32)
_keepable(np.arange(2, dtype=np.int32), path, np.full(6, 2, np.int32), one, one, kept)
print("kept" if hasattr(_keepable, "stats") and _keepable.stats.cache_hits else "compiled", kept.tolist())
"""
"""Calls a function of `bounds` that calls `ancestor`, which lies in another file."""


def ran(source: Path, **environment: str) -> tuple[str, str]:
    """Whether a new process found the function's code kept or compiled it, and what the function returns."""
    path = os.pathsep.join([str(source), *filter(None, sys.path)])
    found = subprocess.run(
        [sys.executable, "-c", CALL],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    code, _, result = found.stdout.partition(" ")
    return code, result


def test_an_edit_of_a_callee_in_another_file_runs(tmp_path: Path) -> None:
    source, code = tmp_path / "source", str(tmp_path / "code")
    shutil.copytree(Path(reassign.__file__).parent, source / "reassign", ignore=shutil.ignore_patterns("__pycache__"))
    was, before = ran(source, NUMBA_CACHE_DIR=code)
    assert was == "compiled"
    assert ran(source, NUMBA_CACHE_DIR=code) == ("kept", before)

    callee = source / "reassign" / "planning" / "problem" / "legality.py"
    text = callee.read_text()
    callee.write_text(text.replace("return path[broker, depth - 1] if depth else 0", "return path[broker, depth]"))
    assert callee.read_text() != text
    _, expected = ran(source, NUMBA_DISABLE_JIT="1")
    assert expected != before
    assert ran(source, NUMBA_CACHE_DIR=code) == ("compiled", expected)


def test_code_is_found_wherever_the_package_lies(tmp_path: Path) -> None:
    package, ignored = Path(reassign.__file__).parent, shutil.ignore_patterns("__pycache__")
    for place in ("here", "there"):
        shutil.copytree(package, tmp_path / place / "reassign", ignore=ignored)
    ran(tmp_path / "here", NUMBA_CACHE_DIR=str(tmp_path / "image"))
    moved = {"REASSIGN_COMPILED": str(tmp_path / "image"), "NUMBA_CACHE_DIR": str(tmp_path / "used")}
    assert ran(tmp_path / "there", **moved)[0] == "kept"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """No folder is known yet; all that can be named lie in this one."""
    monkeypatch.setattr(SETTINGS, "CACHE_DIR", "")
    monkeypatch.delenv("REASSIGN_COMPILED", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    folder.cache_clear()
    yield tmp_path
    folder.cache_clear()
    machine_code._temporary.cache_clear()


def test_code_is_kept_in_the_cache_of_the_user_or_in_that_of_numba(
    monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    assert folder() == places / "user" / NAME / key()
    folder.cache_clear()
    monkeypatch.setattr(SETTINGS, "CACHE_DIR", str(places / "numba"))
    assert folder() == places / "numba" / NAME / key()


def test_without_a_writable_cache_a_temporary_folder_links_the_image(
    monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    (places / "file").touch()
    kept(places / "image", "a.nbi")
    monkeypatch.setattr(SETTINGS, "CACHE_DIR", str(places / "file" / "numba"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "file" / "user"))
    monkeypatch.setenv("REASSIGN_COMPILED", str(places / "image"))
    assert places not in folder().parents
    assert contents(folder()) == {"a.nbi": "the image's a.nbi"}
    machine_code._temporary().cleanup()


def kept(root: Path, *names: str, of: str = "") -> None:
    for name in names:
        file = root / NAME / (of or key()) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"the image's {name}")


def contents(place: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in place.iterdir()}


def test_what_the_image_keeps_is_linked_and_what_was_compiled_since_stays(
    monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    kept(places / "image", "a.nbi", "a.1.nbc", "other")
    kept(places / "image", "b.nbi", of="of other sources")
    monkeypatch.setenv("REASSIGN_COMPILED", str(places / "image"))
    assert contents(folder()) == {"a.nbi": "the image's a.nbi", "a.1.nbc": "the image's a.1.nbc"}
    assert all(path.is_symlink() for path in folder().iterdir())
    (folder() / "a.nbi").unlink()
    (folder() / "a.nbi").write_text("compiled since")
    folder.cache_clear()
    assert contents(folder())["a.nbi"] == "compiled since"


def test_only_the_folders_used_last_are_kept(places: Path) -> None:
    for age in range(10):
        old = places / "user" / NAME / f"used {age} days ago"
        old.mkdir(parents=True)
        os.utime(old, (1e9 - age * 86400,) * 2)
    folder()
    left = {path.name for path in (places / "user" / NAME).iterdir()}
    assert left == {key(), *(f"used {age} days ago" for age in range(LATEST - 1))}
