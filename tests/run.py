"""Runs the parts of the tests two at a time, and says how long each took. All run, even when one fails.

Most of them wait more than they work: `e2e` for the platform and its operator, `kafka` for brokers of its own, of one
version in each of its halves. So the longest comes first, and those without brokers beside it: even an idle broker
takes a tenth of a core where a machine is slow to switch between processes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
LEAST_FREE = 0.15
"""Share of the disk that tests need to be free when they begin: 10 % as any move does, and what they write."""
HALVES = {"kafka": {"kafka": "not 4.1.2", "kafka 4.1.2": "4.1.2"}}
ORDER = ("e2e", "unit", "fleet", "api", "kafka", "argocd", "monitoring")
"""Before the others have to plan, `unit` has compiled what plans."""
AT_ONCE = 2


class Part(NamedTuple):
    """Some of the tests, which one process runs."""

    name: str
    options: tuple[str, ...]


class Ran(NamedTuple):
    """How they ended."""

    part: Part
    seconds: float
    code: int

    def __str__(self) -> str:
        result = "passed" if self.code == 0 else f"FAILED (exit {self.code})"
        return f"{self.part.name:12} {self.seconds:6.0f} s  {result}"


def parts_of(name: str) -> list[Part]:
    """A folder as one part, or as its halves."""
    folder = str(TESTS / name)
    halves = HALVES.get(name)
    return (
        [Part(half, (folder, "-k", chosen)) for half, chosen in halves.items()] if halves else [Part(name, (folder,))]
    )


def run(part: Part, alone: bool) -> Ran:
    """Run a part to its end; its output is shown as it comes, or when it has ended where others run beside it."""
    print(f"=== {part.name} begins ===", flush=True)
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *part.options, "--durations=10"],
        cwd=TESTS.parent,
        stdout=None if alone else subprocess.PIPE,
        stderr=None if alone else subprocess.STDOUT,
        text=True,
    )
    if not alone:
        print(f"\n=== {part.name} ===\n{ended.stdout}", flush=True)
    return Ran(part, time.monotonic() - started, abs(ended.returncode))


def main(names: Sequence[str]) -> int:
    disk = shutil.disk_usage(TESTS)
    if disk.free < LEAST_FREE * disk.total:
        print(f"only {disk.free / disk.total:.0%} of the disk is free: tests fail where brokers cannot keep 10 % free")
    parts = [part for name in sorted(names, key=ORDER.index) for part in parts_of(name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = list(pool.map(partial(run, alone=len(parts) == 1), parts))
    print("\n".join(map(str, ends)))
    return max(ran.code for ran in ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
