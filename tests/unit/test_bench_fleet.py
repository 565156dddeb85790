"""What the benchmark of fleets looks at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.fleet import MIB, look, size

PROGRAM = "held = bytearray(64 << 20); del held; print(flush=True); input()"


def test_a_process_and_its_children_are_measured_with_their_peaks() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        looked = look(os.getpid())
        process.communicate(b"\n")
    used = looked[process.pid]
    assert (next(iter(looked)), used.name) == (os.getpid(), Path(sys.executable).name)
    assert used.most >= 64 * MIB > used.memory > 0


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "one").write_bytes(b"123")
    (tmp_path / "two").write_bytes(b"45")
    assert (size(tmp_path), size(tmp_path / "two"), size(tmp_path / "none")) == (5, 2, 0)
