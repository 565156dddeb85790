"""The check of names and docstrings finds what is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.names import TOGETHER, faults


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for package in TOGETHER:
        (tmp_path / package).mkdir()
    (tmp_path / "core" / "a.py").write_text("class Step: ...\n\n\nclass _Own: ...\n\n\nLIMIT = 1\n")
    return tmp_path


@pytest.mark.parametrize("again", ["class Step: ...", "Step = int | str", "Step: TypeAlias = int"])
def test_a_public_type_that_is_defined_twice_is_found(root: Path, again: str) -> None:
    (root / "api" / "b.py").write_text(again)
    assert faults(root) == ["Step is a type in core/a.py and in api/b.py: give one of them another name"]


def test_private_types_and_constants_may_share_a_name(root: Path) -> None:
    (root / "core" / "b.py").write_text("class _Own: ...\n\n\nLIMIT = 2\n\n\ndef Step() -> None: ...\n")
    assert faults(root) == []


def test_docstrings_that_name_a_thing_are_found(root: Path) -> None:
    def written(first: str, decorator: str = "") -> str:
        return f'class One:\n    {decorator}\n    def it(self):\n        """{first} bound."""\n'

    module = root / "planning" / "b.py"
    module.write_text(written("The"))
    assert faults(root) == ["planning: only 0% of the functions' docstrings say first what is done or returned"]
    for good in (written("Return the"), written("The", "@property"), written("Whether it is a")):
        module.write_text(good)
        assert faults(root) == []
