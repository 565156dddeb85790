"""The rules that the pages keep: references to tests that exist, short sentences, the field's words."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from reassign.core.model.read_back import (
    DecommissionStatusReadBack,
    PlanStatusReadBack,
    PolicyStatusReadBack,
    StatusReadBack,
)
from tests import pages

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/README.md")])
MAX_WORDS = 30
WITH_TESTS = [
    "built/behaviour.md",
    "comparison/pains.md",
    "comparison/peers.md",
    "security/decommissions.md",
    "security/policies.md",
    "security/threats.md",
]
KIND_OF_THROTTLE = re.compile(
    r'\b(?<!directory\.)log_dir\b|LOG_DIR_RATE|LogDirMove|log_dir_moves|"logDir"|\bCopiedTopic\b'
)
"""How code names the throttle between log directories, the second kind that there is, in its record `CopiedTopic`."""
PRIVATE_WORDS = re.compile(
    r"\b((some|no|any|every)body|whoever|mend(s|ed|ing)?|let(s|ting)? go|own(s|ed)? up|t(ake|akes|aken|aking|ook) away"
    r"|mistakes?|look(s|ed|ing)?|ticks?|lack(s|ed|ing)?|(is|are|was|were) over)\b",
    re.IGNORECASE,
)
"""style.md, Words: what the field does not say."""


def prose(page: Path) -> Iterator[str]:
    """Paragraphs, headings, list items and cells of tables, with a code span as the word CODE."""
    text = re.sub(r"^( *)```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`+[^`]+`+", "CODE", text)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|#+|\|) ?)", text):
        yield from block.strip().strip("|").split(" | ") if block.lstrip().startswith("|") else [block]


def sentences(page: Path) -> Iterator[str]:
    for block in prose(page):
        flat = " ".join(block.split())
        yield from re.split(r"(?<=[.!?])\)?(?:\*\*)?\s+", re.sub(r"^(#+|[-*+]|\d+\.) ", "", flat))


def claims(page: str) -> list[list[str]]:
    """The rows of a page's tables whose last column is `test`, cell by cell."""
    tables = re.findall(r"(?:^\|.*\|\n)+", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    rows = ([[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()] for table in tables)
    return [row for head, _, *body in rows if head[-1] == "test" for row in body]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_has_more_than_thirty_words(page: Path) -> None:
    long = [s for s in sentences(page) if sum(any(map(str.isalnum, word)) for word in s.split()) > MAX_WORDS]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    assert [s for s in sentences(page) if PRIVATE_WORDS.search(s)] == []


@pytest.mark.parametrize("page", [page for page in pages.PAGES if ROOT / "docs" not in page.parents], ids=str)
def test_a_link_of_a_page_beside_the_site_leads_somewhere(page: Path) -> None:
    links = re.findall(r"(?:\]\(|<img src=\")(?!https?:)([^)#\s\"]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_page_that_the_code_names_exists() -> None:
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    texts = [ROOT / file for file in files if file.endswith((".py", ".yaml", ".tpl", ".txt", ".toml", ".json"))]
    named = {name for file in texts for name in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())}
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("page", WITH_TESTS)
def test_every_test_that_is_named_exists(page: str) -> None:
    for *_, cell in claims(page):
        file = ""
        for named, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", cell):
            file = named or file
            text = (ROOT / file).read_text()
            assert re.search(rf"^(def {test}\(|{test} = )", text, re.MULTILINE), f"{file} has no {test}"


@pytest.mark.parametrize("page", WITH_TESTS)
def test_every_row_names_tests_and_no_whole_file(page: str) -> None:
    reference = re.compile(r"`tests/[\w/]+\.py::\w+`(, `(tests/[\w/]+\.py)?::\w+`)*")
    untested = [row for row in claims(page) if not reference.fullmatch(row[-1])]
    assert [row for row in untested if (row[1], row[-1]) != ("no", "")] == []  # what we do not have needs no test


def test_the_pages_of_claims_are_complete() -> None:
    rows = {page: len(claims(page)) for page in WITH_TESTS}
    assert rows.pop("built/behaviour.md") > 200
    assert rows == {
        "comparison/pains.md": 18,
        "comparison/peers.md": 31,
        "security/decommissions.md": 24,
        "security/policies.md": 31,
        "security/threats.md": 19,
    }


def test_the_row_of_a_kind_of_throttle_names_every_file_that_knows_one() -> None:
    table = (ROOT / "docs/built/developing.md").read_text().splitlines()
    [row] = [line for line in table if line.startswith("| a kind of throttle |")]
    package = ROOT / "operator/reassign"
    knowing = [file for file in package.rglob("*.py") if KIND_OF_THROTTLE.search(file.read_text())]
    assert sorted(re.findall(r"`([\w/]+\.py)`", row)) == sorted(str(file.relative_to(package)) for file in knowing)


def test_the_layout_names_every_room_and_no_other() -> None:
    layout = (ROOT / "docs/built/developing.md").read_text().partition("```text\n")[2].partition("```")[0]
    package, above, named = ROOT / "operator/reassign", "", set()
    for indent, name in re.findall(r"^( +)(\w+)/ ", layout, re.M):
        above = above if len(indent) > 2 else name
        named.add(name if len(indent) == 2 else f"{above}/{name}")
    rooms = {folder for folder in package.rglob("*") if any(folder.glob("*.py"))}
    found = {str(folder.relative_to(package)) for folder in rooms}
    assert named <= found
    assert {room for room in found if room.count("/") == 0 or room.split("/")[0] in ("core", "controller")} <= named


def test_every_field_read_back_from_a_status_has_its_reason() -> None:
    explained = (ROOT / "docs/security/threats.md").read_text().partition("## What is read back from statuses")[2]
    read = (StatusReadBack, PlanStatusReadBack, DecommissionStatusReadBack, PolicyStatusReadBack)
    members = [member for each in read for member in vars(each).items()]
    fields = [name for name, member in members if isinstance(member, property)]
    assert len(fields) == 7 + 12 + 2 + 4
    assert [name for name in fields if f"`{to_camel(name)}`" not in explained] == []
