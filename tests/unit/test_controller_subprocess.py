"""A process for one function: its answer, its errors, and its end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from reassign.controller.plans.subprocess import run_in_subprocess
from reassign.errors import ClusterError, PlanningError, Reason


def doubled(number: int) -> tuple[int, int]:
    print("this goes to the log")
    return os.getpid(), 2 * number


def refused() -> None:
    raise PlanningError(Reason.NOT_ENOUGH_BROKERS, "2 brokers cannot hold 3 replicas; add one")


def out_of_reach() -> None:
    raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")


def faulty() -> None:
    raise KeyError("a bug")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def out_of_memory() -> None:
    raise MemoryError


def talking() -> None:
    structlog.get_logger("reassign.test").info("a detail")
    structlog.get_logger("reassign.test").warning("worth a look", broker=3)
    logging.getLogger("kafka.conn").warning("chatter")


def for_ever(says_its_id: Path | None = None) -> None:
    if says_its_id:
        says_its_id.with_suffix(".new").write_text(str(os.getpid()))
        says_its_id.with_suffix(".new").rename(says_its_id)
    threading.Event().wait()


def run(function: Callable[..., Any], *arguments: object, seconds: float = 60) -> Any:
    return asyncio.run(run_in_subprocess(function, *arguments, seconds=seconds))


def test_a_function_runs_in_a_subprocess_and_returns_its_answer() -> None:
    process, answer = run(doubled, 21)
    assert answer == 42
    assert process != os.getpid()


def test_a_goal_that_cannot_be_planned_is_the_same_error_here() -> None:
    with pytest.raises(PlanningError, match="2 brokers cannot hold 3 replicas; add one") as raised:
        run(refused)
    assert raised.value.reason is Reason.NOT_ENOUGH_BROKERS


def test_an_unreachable_cluster_is_the_same_reason_here() -> None:
    with pytest.raises(PlanningError, match="no broker answers") as raised:
        run(out_of_reach)
    assert raised.value.reason is Reason.CLUSTER_UNREACHABLE


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (faulty, "ended with exit code 1, by a bug of the operator"),
        (terminated, "was ended by SIGTERM"),
    ],
)
def test_a_subprocess_that_ends_without_an_answer_is_an_error(function: Callable[[], None], said: str) -> None:
    with pytest.raises(PlanningError, match=said) as raised:
        run(function)
    assert raised.value.reason is Reason.PLANNING_FAILED


def test_a_subprocess_killed_from_outside_is_a_planning_error() -> None:
    with pytest.raises(PlanningError, match="was killed, and not by the operator") as raised:
        run(killed)
    assert raised.value.reason is Reason.PLANNING_FAILED


def test_a_subprocess_out_of_memory_reports_it() -> None:
    with pytest.raises(PlanningError, match="raise the operator's memory limit") as raised:
        run(out_of_memory)
    assert raised.value.reason is Reason.INSUFFICIENT_MEMORY


def test_the_process_logs_as_ours_does_and_from_the_same_level_on(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    run(talking)
    (record,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert (record["event"], record["level"], record["broker"]) == ("worth a look", "warning", 3)


def test_a_bug_in_the_subprocess_is_one_line_of_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PlanningError):
        run(faulty)
    (record,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert "KeyError: 'a bug'" in record["exception"]


def test_a_subprocess_whose_caller_is_cancelled_is_ended(tmp_path: Path) -> None:
    async def scenario() -> int:
        running = asyncio.create_task(run_in_subprocess(for_ever, tmp_path / "id", seconds=60))
        while not (tmp_path / "id").exists() and not running.done():  # noqa: ASYNC110  (a file sends no event)
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return int((tmp_path / "id").read_text())

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(scenario()), 0)


def test_a_subprocess_that_takes_too_long_is_ended() -> None:
    with pytest.raises(PlanningError, match="took longer than") as raised:
        run(for_ever, seconds=0.2)
    assert raised.value.reason is Reason.PLANNING_FAILED


def memory_of(folder: Path, limit: str, used: int, cached: int) -> None:
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - cached}\ninactive_file {cached}\n")


def test_a_subprocess_is_ended_before_it_uses_all_container_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("reassign.cgroup.GROUP", tmp_path)
    memory_of(tmp_path, "1000", 950, 10)
    with pytest.raises(PlanningError, match="raise the operator's memory limit") as raised:
        run(for_ever)
    assert raised.value.reason is Reason.INSUFFICIENT_MEMORY


@pytest.mark.parametrize(("limit", "used", "cached"), [("1000", 950, 100), ("max", 10**12, 0)])
def test_memory_for_cached_files_or_without_a_limit_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, used: int, cached: int
) -> None:
    monkeypatch.setattr("reassign.cgroup.GROUP", tmp_path)
    memory_of(tmp_path, limit, used, cached)
    assert run(doubled, 21)[1] == 42


def test_the_event_loop_goes_on_meanwhile() -> None:
    async def scenario() -> Any:
        running = asyncio.create_task(run_in_subprocess(doubled, 1, seconds=60))
        turns = 0
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(scenario()) > 1
