"""A process that answers for one cluster, and how it may end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reassign.fleet import apart as apart_
from reassign.fleet.apart import LostError, apart

ROOM = 1 << 28


def killed() -> pa.Table:
    os.kill(os.getpid(), signal.SIGKILL)


def too_large() -> pa.Table:
    return pa.table({"zeros": np.zeros(ROOM // 4)})


def wrong() -> pa.Table:
    raise IndexError


def test_its_answer_comes_back_whole_whatever_its_size() -> None:
    table = pa.table({"numbers": np.arange(1 << 17), "texts": pa.repeat("x" * 100, 1 << 17)})
    assert apart(lambda: table).equals(table)


@pytest.mark.parametrize(("answer", "why"), [(killed, "by signal 9"), (wrong, "or by a bug"), (too_large, "memory")])
def test_whatever_ends_it_is_told(
    answer: Callable[[], pa.Table], why: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(apart_, "_available", lambda: ROOM)
    with pytest.raises(LostError, match=why):
        apart(answer)


def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart_, "GROUP", tmp_path)
    of_machine = apart_._available()
    assert of_machine > 1000
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert apart_._available() > 1000
    (tmp_path / "memory.max").write_text("1700\n")
    assert apart_._available() == 700
