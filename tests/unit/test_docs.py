"""What the docs say of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def last_cells(page: str) -> list[str]:
    """What the rows of a page's tables have in their last column."""
    text = (ROOT / "docs" / page).read_text()
    cells = re.findall(r"^\| .+ \| (.+) \|$", text, re.MULTILINE)
    assert cells[:2] == ["test", "---"]
    return [cell for cell in cells if cell not in ("test", "---")]


@pytest.mark.parametrize("page", ["behaviour.md", "pains.md"])
def test_every_test_that_is_named_is_there(page: str) -> None:
    for cell in last_cells(page):
        file = ""
        for named, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", cell):
            file = named or file
            text = (ROOT / file).read_text()
            assert not test or re.search(rf"^(def {test}\(|{test} = )", text, re.MULTILINE), f"{file} has no {test}"


def test_every_behaviour_names_a_test() -> None:
    cells = last_cells("behaviour.md")
    assert len(cells) > 50
    assert [cell for cell in cells if "`tests/" not in cell] == []


def test_each_of_eighteen_pains_names_a_test() -> None:
    cells = last_cells("pains.md")
    assert len(cells) == 18
    assert [cell for cell in cells if "`tests/" not in cell] == []
