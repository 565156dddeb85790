"""The drawings of the pages: for light and dark, for screen readers, and without anything loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DRAWINGS = sorted(ROOT.glob("docs/**/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
README_LINES = 120


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
