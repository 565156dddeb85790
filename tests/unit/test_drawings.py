"""The drawings of the pages: for light and dark, for screen readers, and without anything loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.state_drawing import NO_ENTRY, ROUTES, pairs_of

from reassign.core.model.row import STATUS
from reassign.core.model.states import TRANSITIONS

ROOT = Path(__file__).parents[2]
DRAWINGS = sorted(ROOT.glob("docs/**/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
README_LINES = 120
PAIRS = pairs_of(TRANSITIONS)


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)
def test_a_drawing_is_described_and_has_a_dark_form(drawing: Path) -> None:
    root = ElementTree.fromstring(drawing.read_text())
    assert root.get("role") == "img"
    described = [found for name in ("title", "desc") if (found := root.find(f"{SVG}{name}")) is not None]
    assert [(found.text or "").strip() != "" for found in described] == [True, True]
    assert root.get("aria-labelledby") == " ".join(found.get("id", "") for found in described)
    assert "@media (prefers-color-scheme: dark)" in root.findtext(f"{SVG}style", "")


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)
def test_a_drawing_loads_nothing(drawing: Path) -> None:
    text = drawing.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "", 1)
    assert re.findall(r"https?:|@import|<image|<script|href|url\((?!#)", text) == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_page_for_newcomers_opens_with_pictures(page: str) -> None:
    opening = (ROOT / page).read_text().partition("\n## ")[0]
    shown = re.findall(r"pictures/([\w-]+\.\w+)", opening)
    assert shown == ["loop.svg", "watch.png", "report.png"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_the_drawing_of_the_states_has_every_transition_and_no_other() -> None:
    assert sorted(pair for pair, _ in arrows()) == PAIRS
    assert ROUTES.keys() == {pair for pair in PAIRS if NO_ENTRY not in pair}


def test_every_arrow_of_the_states_leads_from_border_to_border() -> None:
    root = ElementTree.fromstring((ROOT / "docs/pictures/states.svg").read_text())
    boxes = {name: box for group in root.iter(f"{SVG}g") if (name := group.get("data-state")) for box in group[:1]}
    apart = [
        (pair, x, y)
        for pair, ends in arrows()
        for state, (x, y) in zip(pair, ends, strict=True)
        if state != NO_ENTRY and not is_on_border(boxes[state], x, y)
    ]
    assert apart == []


def is_on_border(box: ElementTree.Element, x: int, y: int) -> bool:
    left, top, width, height = (int(box.get(name, "")) for name in ("x", "y", "width", "height"))
    right, bottom = left + width, top + height
    return left <= x <= right and top <= y <= bottom and (x in (left, right) or y in (top, bottom))


def test_the_page_about_moves_explains_every_transition() -> None:
    rows = re.findall(r"^\| `?(\w+)`? \| `?(\w+)`? \| .+ \| .*\|$", (ROOT / "docs/built/moves.md").read_text(), re.M)
    assert sorted((before, after) for before, after in rows if (before, after) != ("from", "to")) == PAIRS


def test_the_page_about_moves_explains_every_state() -> None:
    table = (ROOT / "docs/built/moves.md").read_text().partition("| state | meaning | status shows |\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(\w+)` \|$", table.partition("\n\n")[0], re.M)
    assert dict(rows) == {str(state): str(shown) for state, shown in STATUS.items()}


def arrows() -> Iterator[tuple[tuple[str, str], tuple[tuple[int, int], tuple[int, int]]]]:
    """Return each arrow as the states that it joins, and the points where it begins and ends."""
    root = ElementTree.fromstring((ROOT / "docs/pictures/states.svg").read_text())
    for group in root.iter(f"{SVG}g"):
        if before := group.get("data-from"):
            (path,) = group.findall(f"{SVG}path")
            points = list(corners(path.get("d", "")))
            yield (before, group.get("data-to", "")), (points[0], points[-1])


def corners(way: str) -> Iterator[tuple[int, int]]:
    """Return the point that each command of a path leads to."""
    x = y = 0
    for command, text in re.findall(r"([A-Z])([^A-Z]*)", way):
        numbers = [int(number) for number in text.split()]
        x = numbers[-1 if command == "H" else -2] if command != "V" else x
        y = numbers[-1] if command != "H" else y
        yield x, y
