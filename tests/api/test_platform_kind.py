"""The platform on kind, as far as it goes without Docker's engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localplatform import kind
from localplatform.image import CONTAINERFILE, OPERATOR
from localplatform.machine import CHECKOUT

WITHOUT_ENGINE = """\
#!/bin/sh
echo "Cannot connect to the Docker daemon" >&2
exit 1
"""
NO_DOCKER = 'exec: "docker": executable file not found'


def make(action: str, folder: Path) -> tuple[int, str]:
    """The exit code and errors of the platform's command with PLATFORM=kind, where the folder is the PATH."""
    ours = {"PYTHONPATH": str(CHECKOUT / "deploy" / "local"), "KAFKA_REASSIGN_CACHE": str(folder / "cache")}
    env = os.environ | ours | {"PLATFORM": "kind", "PATH": str(folder)}
    command = [sys.executable, "-m", *action.split()]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert not (folder / "cache").exists(), "something was built"
    return ended.returncode, ended.stderr + ended.stdout


@pytest.mark.parametrize("action", ["prepare", "up", "down"])
def test_without_docker_it_says_so_before_anything_is_built(tmp_path: Path, action: str) -> None:
    code, said = make(f"localplatform {action}", tmp_path)
    assert (code, said.count("\n")) == (1, 1)
    assert "PLATFORM=kind needs Docker: https://docs.docker.com/engine/install" in said


def test_a_client_without_an_engine_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(WITHOUT_ENGINE)
    (tmp_path / "docker").chmod(0o755)
    code, said = make("localplatform up", tmp_path)
    assert code == 1
    assert "Docker's engine, which does not answer: Cannot connect to the Docker daemon" in said


def test_a_demo_asks_for_the_platform_that_was_chosen(tmp_path: Path) -> None:
    code, said = make("localplatform.demo", tmp_path)
    assert code == 1
    assert "make up PLATFORM=kind" in " ".join(said.split())


@pytest.mark.parametrize("command", [kind.CREATE, kind.LIST, kind.DELETE], ids=" ".join)
def test_kind_takes_the_commands_and_needs_docker_for_nothing_before(tmp_path: Path, command: tuple[str, ...]) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "kubeconfig")}
    ended = subprocess.run([kind.built() / "kind", *command], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert NO_DOCKER in ended.stderr


def test_docker_builds_a_stage_of_the_file_whose_bases_are_in_a_registry() -> None:
    text = (CHECKOUT / CONTAINERFILE).read_text()
    assert f"FROM ${{BASE}} AS {OPERATOR.stage}\n" in text
    assert "ARG BASE=python:3.11-" in text
    assert "ARG BUILD_BASE=${BASE}\n" in text
