"""Runs the parts of the tests one after another, and says how long each took. All run, even when one fails.

The two halves of `kafka` run side by side: each waits most of the time for brokers of its own, of one version.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parent
HALVES = {"kafka": (["-k", "not 4.1.2"], ["-k", "4.1.2"])}
SLOWEST = "--durations=10"


def run(part: str) -> int:
    """The exit code; output is shown as it comes, that of a second half when it has ended."""
    command = [sys.executable, "-m", "pytest", str(TESTS / part), SLOWEST]
    first, *others = HALVES.get(part, ([],))
    with tempfile.TemporaryFile("w+") as output:
        besides = [
            subprocess.Popen([*command, *chosen], cwd=TESTS.parent, stdout=output, stderr=subprocess.STDOUT)
            for chosen in others
        ]
        codes = [subprocess.run([*command, *first], cwd=TESTS.parent).returncode, *(other.wait() for other in besides)]
        output.seek(0)
        print(output.read(), end="", flush=True)
    return max(map(abs, codes))


def main(parts: list[str]) -> int:
    results: list[tuple[str, float, int]] = []
    for part in parts:
        print(f"\n=== {part} ===", flush=True)
        started = time.monotonic()
        code = run(part)
        results.append((part, time.monotonic() - started, code))
    print()
    for part, seconds, code in results:
        print(f"{part:8} {seconds:6.0f} s  {'passed' if code == 0 else f'FAILED (exit {code})'}")
    return max(code for _, _, code in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
