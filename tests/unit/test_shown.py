"""What the pages show: the languages, a policy, our own commands and make's, and which tests run the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from localplatform import prerequisites
from reassign.cli.app import app
from reassign.fleet import policy
from reassign.planning import machine_code
from reassign.spark import class_archive
from tests.pages import ROOT, Command, blocks, commands, manifests, of_program, program

LANGUAGES = {"sh", "console", "yaml", "json", "python", "text", "{toctree}"}
ELSEWHERE = {
    "tests/api/test_shown.py": {"kubectl", "helm"},
    "tests/kafka/test_authorization.py": {"kafka-acls.sh", "kafka-configs.sh"},
    "tests/e2e/test_brake.py": {"kafka-reassign-partitions.sh"},
    "tests/kafka/test_survey.py": {"kafka-topics.sh"},
    "tests/api/test_distribution.py": {"pipx"},
    "tests/e2e/test_readme.py": {"source"},
}
"""Where a test runs these programs as the pages do."""
NOWHERE = {"docker", "ctr", "gunzip", "sha256sum", "cosign", "gh"}
"""They need an engine, a node of yours, or what has been published."""
EXAMPLES = ROOT / "deploy" / "examples"


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


def test_make_help_lists_every_target_in_lines_that_fit() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    made = subprocess.run(
        ["make", "help"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    said = made.stdout
    listed = {name for line in said.splitlines() for name in re.split(r"  +", line)[0].split(" ")}
    assert listed == set(re.findall(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split())
    assert [line for line in said.splitlines() if len(line) > 100] == []


def test_the_readme_shows_the_example_that_it_applies() -> None:
    (shown,) = [found for block, found in manifests() if block.page == "README.md"]
    assert shown == yaml.safe_load((EXAMPLES / "partitionreassignment.yaml").read_text())


def test_an_example_copies_what_the_steps_before_it_have_not() -> None:
    first = yaml.safe_load((EXAMPLES / "partitionreassignment.yaml").read_text())
    drained = yaml.safe_load((EXAMPLES / "reassignmentplan.yaml").read_text())["spec"]["goal"]["drainBrokers"]
    at = replicas(first)
    shown = [found for block, found in manifests() if block.page == "docs/quickstart/local.md"]
    for manifest in (found for found in shown if found.get("kind") == "PartitionReassignment"):
        targets = replicas(manifest)
        assert [len(set(target) - set(at[key])) for key, target in targets.items()] == [1]  # half a minute for one
        at |= targets
    assert at != replicas(first)
    assert all(set(drained) & set(brokers) for brokers in at.values())
    assert len({brokers[0] for brokers in at.values()}) == len(at)


def replicas(manifest: dict[str, Any]) -> dict[tuple[str, int], list[int]]:
    """The target of each partition of a PartitionReassignment."""
    return {(entry["topic"], entry["partition"]): entry["replicas"] for entry in manifest["spec"]["partitions"]}


def test_what_the_platform_leaves_is_where_the_page_says() -> None:
    left = (ROOT / "deploy/local/README.md").read_text().partition("\n## What it leaves\n")[2].partition("\n## ")[0]
    caches = ("kafka-reassign", machine_code.NAME, class_archive.NAME)
    kept = {str(prerequisites.BACKPORTS), *(f"~/.cache/{name}" for name in caches)}
    assert [path for path in kept if f"`{path}`" not in left] == []


def test_the_policies_of_a_fleet_are_accepted() -> None:
    (shown,) = [(block, found) for block, found in manifests() if "defaults" in found]
    assert policy.parse(yaml.safe_dump(shown[1]), shown[0].page)
    file = EXAMPLES / "fleet" / "policy.yaml"
    assert policy.parse(file.read_text(), file.name).terms("any").namespace == "kafka"
    uncommented = re.sub(r"^# (?=overrides|- |  )", "", file.read_text(), flags=re.MULTILINE)
    assert policy.parse(uncommented, file.name).terms("prod-1") != policy.parse(uncommented, file.name).terms("any")
