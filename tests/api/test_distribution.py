"""The wheel and the source distribution: what is in them, and what installing the command line brings."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localplatform.controlplane import binaries
from reassign import __version__

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WITHOUT = {"kopf", "pyspark", "prometheus-client", "pandas"}


def run(*command: str | Path, **env: str) -> str:
    finished = subprocess.run(
        [*map(str, command)], cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False, timeout=300
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(BIN / "uv", "build", "--quiet", "--out-dir", folder)
    return folder


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel and what its extra `cli` asks for, in the versions of the lock."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, place)
    (wheel,) = dist.glob("*.whl")
    wanted = ["--constraints", ROOT / "requirements.lock", f"{wheel}[cli]"]
    run(BIN / "uv", "pip", "install", "--quiet", "--python", place / "bin" / "python", *wanted)
    return place / "bin"


def test_the_command_line_brings_neither_kopf_nor_spark(installed: Path) -> None:
    listed = run(BIN / "uv", "pip", "freeze", "--python", installed / "python")
    names = {line.split("==")[0].split(" @")[0].lower() for line in listed.splitlines()}
    assert "typer" in names
    assert names.isdisjoint(WITHOUT)


def test_kubectl_finds_what_is_installed_as_its_plugin(installed: Path) -> None:
    path = {"PATH": f"{installed}:/usr/bin:/bin"}
    assert run(binaries() / "kubectl", "kafka-reassign", "--version", **path) == f"kafka-reassign {__version__}\n"
    assert "verify" in run(binaries() / "kubectl", "kafka-reassign", "--help", **path)
    assert "kubectl-kafka_reassign" in run(binaries() / "kubectl", "plugin", "list", **path)


def test_the_wheel_has_the_package_alone_and_dependencies_are_ranges(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        needs = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Requires-Dist")]
    assert {name for name in top if not name.endswith(".dist-info")} == {"reassign"}
    assert [line for line in needs if "==" in line.split(";")[0]] == []


def test_the_source_distribution_has_what_the_wheel_is_built_from(dist: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if name.count("/")}
    assert {"operator", "pyproject.toml", "README.md", "LICENSE"} <= top
    assert {"tests", "deploy", "docs"}.isdisjoint(top)
