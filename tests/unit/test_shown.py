"""What the pages show: the languages, a policy, our own commands and make's, and which tests run the rest."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from reassign.cli.app import app
from reassign.fleet import policy
from tests.pages import ROOT, Command, blocks, commands, manifests, of_program, program

LANGUAGES = {"sh", "console", "yaml", "json", "python", "text", "{toctree}"}
ELSEWHERE = {
    "tests/api/test_shown.py": {"kubectl", "helm"},
    "tests/kafka/test_authorization.py": {"kafka-acls.sh", "kafka-configs.sh"},
    "tests/e2e/test_brake.py": {"kafka-reassign-partitions.sh"},
    "tests/kafka/test_survey.py": {"kafka-topics.sh"},
    "tests/api/test_distribution.py": {"pip", "pipx"},
    "tests/e2e/test_readme.py": {"source"},
}
"""Where a test runs these programs as the pages do."""
NOWHERE = {"docker", "ctr", "gunzip", "sha256sum", "cosign", "gh"}
"""They need an engine, a node of yours, or what has been published."""


def test_every_block_says_what_it_is() -> None:
    assert [str(block) for block in blocks() if block.language not in LANGUAGES] == []
    for block in blocks():
        if block.language == "json":
            json.loads(block.text)
        if block.language == "python":
            compile(block.text, block.page, "exec")


def test_every_program_is_run_by_a_test_or_is_known_not_to_be() -> None:
    shown = {program(command) for command in commands()}
    assert shown == set().union(*ELSEWHERE.values()) | NOWHERE | {"kubectl kafka-reassign", "make"}
    assert all((ROOT / test).is_file() for test in ELSEWHERE)


@pytest.mark.parametrize("command", of_program("kubectl kafka-reassign"), ids=str)
def test_a_command_of_ours_is_accepted_by_the_parser(command: Command) -> None:
    group = get_command(app)
    words = list(command.words[2:])
    if words == ["--version"]:
        return
    context = None
    while isinstance(group, TyperGroup):
        context = group.make_context("kubectl kafka-reassign", words, parent=context)
        _, found, words = group.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        group = found
    group.make_context(group.name, words, parent=context)


@pytest.mark.parametrize("words", {command.words: None for command in of_program("make")}, ids=" ".join)
def test_a_command_of_make_is_one_of_the_makefile(words: tuple[str, ...]) -> None:
    known = {*re.findall(r"^export (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split(), "OPTIONS"}
    assert {name for name, equals, _ in (word.partition("=") for word in words) if equals} <= known
    subprocess.run([*words, "--dry-run"], cwd=ROOT, check=True, capture_output=True, timeout=60)


def test_the_policy_of_a_fleet_is_accepted() -> None:
    (shown,) = [(block, found) for block, found in manifests() if "defaults" in found]
    assert policy.parse(yaml.safe_dump(shown[1]), shown[0].page)
