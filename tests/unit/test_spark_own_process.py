"""A process of one cluster, and how it may end."""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reassign import cgroup
from reassign.spark import own_process
from reassign.spark.own_process import ProcessEndedError, in_own_process

ROOM = 1 << 28
SECONDS = 600
PATIENCE = 60
"""Seconds after which a test has failed."""


def killed() -> pa.Table:
    os.kill(os.getpid(), signal.SIGKILL)


def too_large() -> pa.Table:
    return pa.table({"zeros": np.zeros(ROOM // 4)})


def wrong() -> pa.Table:
    raise IndexError("no such\nbroker")


def ended() -> pa.Table:
    os._exit(7)


def hanging() -> pa.Table:
    signal.pause()


ENDS: dict[Callable[[], pa.Table], str] = {
    killed: "by signal 9 (Killed)",
    too_large: "for want of memory",
    wrong: "by an error (IndexError: no such broker), of which Spark's log has the traceback",
    ended: "with exit code 7",
    hanging: "since it took longer than 1 s",
}


def test_its_result_comes_back_whole_whatever_its_size() -> None:
    table = pa.table({"numbers": np.arange(1 << 17), "texts": pa.repeat("x" * 100, 1 << 17)})
    assert in_own_process(lambda: table, SECONDS, 1).equals(table)


@pytest.mark.parametrize("function", ENDS)
def test_whatever_ends_it_is_told(
    function: Callable[[], pa.Table], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(own_process, "_available", lambda: ROOM)
    with pytest.raises(ProcessEndedError) as error:
        in_own_process(function, 1 if function is hanging else SECONDS, 1)
    assert str(error.value) == ENDS[function]
    assert ("in wrong" in capfd.readouterr().err) == (function is wrong)


def test_several_at_once_share_the_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "_available", lambda: ROOM)

    def limit() -> pa.Table:
        return pa.table({"bytes": [resource.getrlimit(resource.RLIMIT_DATA)[0]]})

    whole, shared = (in_own_process(limit, SECONDS, sharers)["bytes"][0].as_py() for sharers in (1, 4))
    assert ROOM // 2 < whole - shared < ROOM  # three quarters, beside what this process takes meanwhile


def test_it_ends_with_the_process_that_started_it() -> None:
    source, sink = os.pipe()

    def begun() -> pa.Table:
        os.write(sink, b"begun")
        return hanging()

    worker = os.fork()
    if worker == 0:
        try:
            in_own_process(begun, SECONDS, 1)
        finally:
            os._exit(1)
    os.close(sink)
    assert os.read(source, 5) == b"begun"
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    ended, _, _ = select.select([source], [], [], PATIENCE)  # it holds the other end as long as it lives
    assert ended
    assert os.read(source, 1) == b""


def test_it_does_not_begin_where_the_other_process_has_ended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(ProcessEndedError, match="exit code 1"):
        in_own_process(lambda: (tmp_path / "begun").touch(), SECONDS, 1)
    assert not (tmp_path / "begun").exists()


def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "GROUP", tmp_path)
    of_machine = own_process._available()
    assert of_machine > 1000
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 700\ninactive_file 200\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert own_process._available() > 1000
    (tmp_path / "memory.max").write_text("1700\n")
    assert own_process._available() == 700 + 200
