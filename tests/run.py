"""Runs the parts of the tests three at a time. All run, even when one fails. At the end it prints the seconds of each
part, and the slowest tests of all.

Tests of the platform and of brokers wait more than they work, so two such parts and one that computes fill two cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree

from localplatform import settings
from localplatform.console import SettingError

TESTS = Path(__file__).parent
LEAST_FREE = 0.15
"""Share of the disk that tests need to be free when they begin: 10 % as any move does, and what they write."""
PARTS = {
    "e2e": ("e2e", "-k", "not test_spark"),
    "kafka": ("kafka", "-k", "not 4.1.2 and not test_decommissions and not test_policies"),
    "unit": ("unit",),
    "fleet": ("fleet",),
    "api": ("api",),
    "decommissions": ("kafka", "-k", "test_decommissions and not 4.1.2"),
    "policies": ("kafka", "-k", "test_policies"),
    "kafka 4.1.2": ("kafka", "-k", "4.1.2"),
    "spark pods": ("e2e", "-k", "test_spark"),
    "images": ("images",),
    "argocd": ("argocd",),
    "monitoring": ("monitoring",),
}
"""By name, the folder and pytest's options, in the order in which they begin: the longest first, and `unit`, which
compiles what plans, before others plan much. Each version of Kafka has brokers of its own, and so have the tests of
decommissions and of policies, which stop them; Spark's pods share the platform, and leave its brokers and its operator
alone."""
AT_ONCE = 3
SLOWEST = 20
MESSAGE = 1000
"""Characters of why a test failed that are repeated at the end."""


class Part(NamedTuple):
    """Some of the tests, which one process runs."""

    name: str
    options: tuple[str, ...]


class Case(NamedTuple):
    """A test: its seconds with set-up and tear-down, its name, and why it failed, if it did."""

    seconds: float
    name: str
    failure: str | None


class Ran(NamedTuple):
    """How they ended, and each test."""

    part: Part
    seconds: float
    code: int
    tests: list[Case]

    def __str__(self) -> str:
        result = "passed" if self.code == 0 else f"FAILED (exit {self.code})"
        return f"{self.part.name:13} {self.seconds:6.0f} s  {len(self.tests):5} tests  {result}"


def parts_of(folders: Sequence[str]) -> list[Part]:
    """Return the parts of these folders; KAFKA_VERSION stands in the place of all versions of Kafka."""
    if unknown := set(folders) - {folder for folder, *_ in PARTS.values()}:
        raise SystemExit(f"no part of the tests is called {' or '.join(sorted(unknown))}")
    left_out = {"kafka 4.1.2"} if os.environ.get("KAFKA_VERSION") else set()
    return [
        Part(name, (str(TESTS / folder), *more))
        for name, (folder, *more) in PARTS.items()
        if folder in folders and name not in left_out
    ]


def run(part: Part, alone: bool) -> Ran:
    """Run a part to its end; its output is shown as it comes, or when it has ended where others run beside it."""
    print(f"=== {part.name} begins ===", flush=True)
    started = time.monotonic()
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *part.options, f"--junitxml={report}"],
            cwd=TESTS.parent,
            stdout=None if alone else subprocess.PIPE,
            stderr=None if alone else subprocess.STDOUT,
            text=True,
        )
        seconds = time.monotonic() - started
        if not alone:
            print(f"\n=== {part.name} ===\n{ended.stdout}", flush=True)
        return Ran(part, seconds, abs(ended.returncode), tests_of(report))


def tests_of(report: Path) -> list[Case]:
    """Return the tests; none where pytest wrote no report."""
    if not report.exists():
        return []
    return [_case(found) for found in ElementTree.parse(report).iter("testcase")]


def _case(found: ElementTree.Element) -> Case:
    failures = (found.find(kind) for kind in ("failure", "error"))
    failure = next((one.attrib["message"] for one in failures if one is not None), None)
    return Case(float(found.attrib["time"]), f"{found.attrib['classname']}.{found.attrib['name']}", failure)


def slowest(ends: Iterable[Ran]) -> list[str]:
    """Return the slowest tests of all parts, a line each."""
    tests = sorted((test for ran in ends for test in ran.tests), reverse=True, key=lambda test: test.seconds)
    return [f"{test.seconds:6.1f} s  {test.name}" for test in tests[:SLOWEST]]


def failed(ends: Iterable[Ran]) -> list[str]:
    """Return the tests that failed, each with the beginning of why: the last that is printed."""
    return [
        f"FAILED {one.name}: {one.failure[:MESSAGE]}" for ran in ends for one in ran.tests if one.failure is not None
    ]


def main(folders: Sequence[str]) -> int:
    try:
        settings.check()
    except SettingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    disk = shutil.disk_usage(TESTS)
    if disk.free < LEAST_FREE * disk.total:
        print(f"only {disk.free / disk.total:.0%} of the disk is free: tests fail where brokers cannot keep 10 % free")
    parts = parts_of(folders)
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = list(pool.map(partial(run, alone=len(parts) == 1), parts))
    print("\n".join(["the slowest tests:", *slowest(ends), "", *map(str, ends)]))
    print(f"{'all':12} {time.monotonic() - started:6.0f} s")
    for line in failed(ends):
        print(line)
    return max(ran.code for ran in ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
