"""The pages as a site: built without a warning, with every link and anchor, and with nothing loaded from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:link|script|img|iframe)\b[^>]*?\b(?:href|src)=\"(?P<address>[^\"]+)\"")


def build(pages: Path, site: Path) -> str:
    """What Sphinx has to complain of."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--nitpicky", "--conf-dir", ROOT / "docs", pages, site]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("site")
    assert build(ROOT / "docs", found) == ""
    return found


def test_every_page_is_built_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= {page.relative_to(site) for page in site.rglob("*.html")}
    loaded = [found["address"] for page in pages for found in LOADED.finditer((site / page).read_text())]
    assert len(loaded) > len(pages)
    assert [address for address in loaded if ":" in address or address.startswith("//")] == []
    styles = [style.read_text() for style in site.rglob("*.css")]
    assert [address for style in styles for address in re.findall(r"(?:@import|url\()[\s\"']*(\w+:)?//", style)] == []


def test_a_link_that_leads_out_of_the_site_leads_somewhere() -> None:
    links = [
        (page, to) for page in ROOT.glob("docs/**/*.md") for to in re.findall(r'<a href="([^"#]+)', page.read_text())
    ]
    assert links
    assert [link for link in links if not (link[0].parent / link[1]).is_file()] == []


def test_what_is_broken_in_a_page_is_reported(tmp_path: Path) -> None:
    broken = {
        "[a](missing.md)": "missing.md",
        "[a](#nowhere)": "nowhere",
        "[a](other.md#elsewhere)": "elsewhere",
        "![a](missing.png)": "missing.png",
        "### Too deep": "H1 to H3",
    }
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# First\n\n```{toctree}\nother\n```\n\n" + "\n\n".join(broken))
    (pages / "other.md").write_text("# Other\n")
    complaints = [line for line in build(pages, tmp_path / "site").splitlines() if "WARNING" in line]
    assert len(complaints) == len(broken)
    assert [what for what in broken.values() if not any(what in line for line in complaints)] == []
