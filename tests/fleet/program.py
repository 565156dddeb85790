"""The fleet's commands as a user runs them, in this process or in one of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.unit import cli
from tests.unit.cli import Ran

ROOT = Path(__file__).parents[2]
MODULE = ("-m", "reassign.cli")


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

    def run(self, *options: str | Path) -> Ran:
        """`fleet run`, in this process."""
        return cli.run(*self.words(*options))

    def killed(self, *options: str | Path, at: tuple[str, str, str]) -> Ran:
        """`fleet run` in a process of its own, killed as `killed` does."""
        return program("-m", "tests.fleet.killed", *at, *self.words(*options))

    @contextmanager
    def begun(self, *options: str | Path) -> Iterator[subprocess.Popen[str]]:
        """`fleet run` in a process of its own, which goes on while the block runs, and has ended after it."""
        with begun(*MODULE, *self.words(*options)) as process:
            try:
                yield process
            finally:
                process.kill()

    def words(self, *options: str | Path) -> list[str]:
        words = ["fleet", "run", "--snapshots", self.snapshots, "--work", self.work]
        words += ["--manifests", self.manifests, "--report", self.report, "--master", "local[1]", *options]
        return [str(word) for word in words]

    def output(self) -> dict[str, bytes]:
        """All that a run writes for people and for Git."""
        files = [self.report, *self.manifests.rglob("*")]
        return {str(f.relative_to(self.folder)): f.read_bytes() for f in files if f.is_file()}


def begun(*words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )


def program(*words: str) -> Ran:
    process = begun(*words)
    out, err = process.communicate()
    return Ran(process.returncode, out, err)
