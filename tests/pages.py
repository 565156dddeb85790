"""What the pages show: manifests, and commands as the words that a shell would pass on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("deploy/**/README.md"),
        *ROOT.glob("charts/*/README.md"),
    ]
)
BLOCK = re.compile(r"^( *)```(\S*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(kubectl (?:kafka-reassign [^`]+ [^`]+|\w+ [^-`][^`]*)|make [a-z][^`]*)`")
PLACEHOLDERS = {
    "NAMESPACE": "kafka",
    "OPERATOR": "kafka-reassign",
    "CONFIGMAP": "main-cancelled-1",
    "NAME": "main",
    "VERSION": "0.1.0",
}


class Block(NamedTuple):
    """A block of code of a page."""

    page: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: {self.text.strip().splitlines()[0]}"


class Command(NamedTuple):
    """A command of a page, with what stands for a user's names replaced."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def blocks() -> list[Block]:
    """All of them, without the indentation that a list gives them."""
    found = []
    for page in PAGES:
        for indent, language, text in BLOCK.findall(page.read_text()):
            lines = (line.removeprefix(indent) for line in text.splitlines(keepends=True))
            found.append(Block(str(page.relative_to(ROOT)), language, "".join(lines)))
    return found


def manifests() -> list[tuple[Block, dict[str, Any]]]:
    """What is shown as YAML, document by document."""
    return [
        (block, document)
        for block in blocks()
        if block.language == "yaml"
        for document in yaml.safe_load_all(block.text)
    ]


def commands() -> list[Command]:
    """Those of all blocks, and those of kubectl and make within sentences, where complete; each once for a page."""
    found: dict[Command, None] = {}
    for block in blocks():
        shown = {"sh": block.text, "console": "\n".join(re.findall(r"^\$ (.*)", block.text, re.MULTILINE))}
        for words in _split(shown.get(block.language, "")):
            found[Command(block.page, words)] = None
    for page in PAGES:
        for span in SPAN.findall(BLOCK.sub("", page.read_text())):
            for words in _split(" ".join(span.split())):
                found[Command(str(page.relative_to(ROOT)), words)] = None
    return list(found)


def of_program(*names: str) -> list[Command]:
    """The commands of these programs; kubectl's own without those of our plugin."""
    return [command for command in commands() if program(command) in names]


def program(command: Command) -> str:
    """Whom the command runs; our plugin is `kubectl kafka-reassign`."""
    return " ".join(command.words[: 2 if command.words[:2] == ("kubectl", "kafka-reassign") else 1])


def _split(script: str) -> Iterator[tuple[str, ...]]:
    """Each simple command of a script, those within $(...) too, without redirections."""
    script = re.sub(r"\\\n", " ", script)
    script = re.sub(r"(^|\s)# .*$", "", script, flags=re.MULTILINE)
    for placeholder, name in PLACEHOLDERS.items():
        script = re.sub(rf"(?<![\w-]){placeholder}(?![\w:-])", name, script)
    script = re.sub(r"(-)VERSION(-|\.)", r"\g<1>0.1.0\2", script)
    inner = re.findall(r"\$\(([^()]*)\)", script)
    for part in [*inner, re.sub(r"\$\([^()]*\)", "OUTPUT", script)]:
        lexer = shlex.shlex(part, posix=True, punctuation_chars="|;\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
        words: list[str] = []
        for token in [*lexer, "\n"]:
            if set(token) <= set("|;\n"):
                if words and "=OUTPUT" not in words[0]:
                    yield tuple(words[: words.index(">")] if ">" in words else words)
                words = []
            else:
                words.append(token)
