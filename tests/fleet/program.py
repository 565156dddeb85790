"""The fleet's commands as a user runs them, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Place(NamedTuple):
    """Where a run reads and writes."""

    snapshots: Path
    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def manifests(self) -> Path:
        return self.folder / "manifests"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def run(self, *options: str | Path, killed_at: tuple[str, str, str] | None = None) -> Ran:
        """`fleet run`; killed as `killed` does."""
        kill = ("-m", "tests.fleet.killed", *map(str, killed_at)) if killed_at else ("-m", "reassign.cli")
        words = ["fleet", "run", "--snapshots", self.snapshots, "--work", self.work]
        words += ["--manifests", self.manifests, "--report", self.report, "--master", "local[1]", *options]
        return program(*kill, *map(str, words))

    def output(self) -> dict[str, bytes]:
        """All that a run writes for people and for Git."""
        files = [self.report, *self.manifests.rglob("*")]
        return {str(f.relative_to(self.folder)): f.read_bytes() for f in files if f.is_file()}


def program(*words: str) -> Ran:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}{os.pathsep}{ROOT}"}
    ran = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    return Ran(ran.returncode, ran.stdout, ran.stderr)
