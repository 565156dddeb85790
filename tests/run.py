"""Runs the parts of the tests one after another, and says how long each took. All run, even when one fails."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent


def main(parts: list[str]) -> int:
    results: list[tuple[str, float, int]] = []
    for part in parts:
        print(f"\n=== {part} ===", flush=True)
        started = time.monotonic()
        code = subprocess.run([sys.executable, "-m", "pytest", str(TESTS / part)], cwd=TESTS.parent).returncode
        results.append((part, time.monotonic() - started, code))
    print()
    for part, seconds, code in results:
        print(f"{part:8} {seconds:6.0f} s  {'passed' if code == 0 else f'FAILED (exit {code})'}")
    return max(code for _, _, code in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
