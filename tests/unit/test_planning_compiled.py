"""The planner's machine code that the image keeps. That it is all that a plan needs is seen when the image is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reassign.planning.compiled import link


def kept(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"the image's {name}")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_the_image_keeps_is_found_and_what_was_compiled_since_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image, used = kept(tmp_path / "image", "made/a.nbi", "made/a.1.nbc", "made/other"), tmp_path / "used"
    monkeypatch.setenv("REASSIGN_COMPILED", str(image))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(used))
    link()
    assert contents(used) == {"a.nbi": "the image's made/a.nbi", "a.1.nbc": "the image's made/a.1.nbc"}
    index, code = sorted(used.rglob("*.nb*"), reverse=True)
    assert index.is_symlink()
    assert code.is_symlink()
    index.unlink()
    index.write_text("compiled since")
    link()
    assert contents(used)["a.nbi"] == "compiled since"


def test_it_is_linked_to_where_numba_looks_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = kept(tmp_path / "image", "made/a.nbi")
    script = "from reassign.planning import compiled, kernel; compiled.link(); print(kernel.lists._cache.cache_path)"
    environment = {"REASSIGN_COMPILED": str(made), "NUMBA_CACHE_DIR": str(tmp_path / "used")}
    path = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [found.name for found in Path(ran.stdout.strip()).iterdir()] == ["a.nbi"]


def test_where_nothing_is_kept_nothing_is_linked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REASSIGN_COMPILED", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    link()
    assert contents(tmp_path) == {}
