"""How the end of a move is noticed between two reconciliations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from typing import Any, cast

import pytest

from reassign.controller.cluster import pace as pace_module
from reassign.controller.cluster.observer import Observer
from reassign.controller.cluster.pace import MOVING_SECONDS, POLL_SECONDS, Pace, poll_seconds
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import ClusterError, Reason
from reassign.kafka.client import KafkaClient
from tests.unit.sim import partitions

[P0] = partitions(1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for long."""
    monkeypatch.setattr(pace_module, "POLL_SECONDS", 0.001)


def asked(pace: Pace, pause: float, answers: Sequence[bool], *, woken: bool = False) -> int:
    """How often it was asked, in a pause, whether a move has ended."""
    left, wake = list(answers), asyncio.Event()
    if woken:
        wake.set()

    async def has_ended(moves: Set[TopicPartition]) -> bool:
        assert moves == {P0}
        return left.pop(0)

    asyncio.run(pace.rest(pause, wake, has_ended))
    return len(answers) - len(left)


@pytest.fixture
def pace() -> Pace:
    """A move is in flight."""
    pace = Pace()
    pace.ended({P0})
    return pace


@pytest.mark.parametrize(("quiet", "seconds"), [(0.0, 0.2), (4.0, 0.2), (10.0, 0.5), (20.0, 1.0), (60.0, 3.0)])
def test_moves_are_polled_less_often_the_longer_none_has_ended(
    monkeypatch: pytest.MonkeyPatch, quiet: float, seconds: float
) -> None:
    monkeypatch.setattr(pace_module, "POLL_SECONDS", POLL_SECONDS)
    assert poll_seconds(quiet) == pytest.approx(seconds)


def test_the_end_of_a_move_ends_the_pause(pace: Pace) -> None:
    assert asked(pace, MOVING_SECONDS, [False, False, True, True]) == 3


def test_an_event_ends_the_pause(pace: Pace) -> None:
    assert asked(pace, MOVING_SECONDS, [True], woken=True) == 0


def test_nothing_is_asked_while_nothing_is_in_flight() -> None:
    assert asked(Pace(), 0.01, [True]) == 0


def test_nothing_is_asked_while_no_move_of_ours_is_followed(pace: Pace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_module, "MOVING_SECONDS", 0.5)
    assert asked(pace, 0.6, [True]) == 0
    assert asked(pace, 0.5, [True]) == 1


def test_slow_moves_are_not_polled_within_a_pause(pace: Pace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_happened", pace._happened - 3600)
    assert asked(pace, 0.02, [True]) == 0


@pytest.mark.parametrize("answer", [True, False, ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")])
def test_what_the_broker_does_not_say_has_not_ended(answer: bool | ClusterError) -> None:
    class Client:
        async def has_ended(self, moves: Set[TopicPartition]) -> bool:
            if isinstance(answer, ClusterError):
                raise answer
            return answer

    unused: Any = None
    observer = Observer(unused, unused)
    assert not asyncio.run(observer.has_ended({P0}))  # it is not connected
    observer.client = cast(KafkaClient, Client())
    assert asyncio.run(observer.has_ended({P0})) is (answer is True)
