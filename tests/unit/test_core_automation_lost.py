"""How long brokers have been seen down or cordoned, by the observations that count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.core.automation.seen import BrokersMemory
from reassign.core.model.forwarding import NOT_FORWARDED, Forwarded
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from tests.unit.sim import SimKafka

FORWARDED = Forwarded(0, frozenset({0}))


def seen(*, forwarded: Forwarded = FORWARDED) -> Snapshot:
    """Broker 1 is fenced."""
    kafka = SimKafka({TopicPartition("orders", 0): (1, 2)})
    kafka.brokers[1] = Broker(1, "r1", fenced=True)
    return replace(kafka.snapshot(), forwarded=forwarded)


@pytest.mark.parametrize(
    ("times", "lost"),
    [
        ([0, 120, 240, 360, 480, 600], {1}),
        ([0, 120, 240, 360, 480, 599], set()),
        ([0, 700], set()),  # it may have been up in between
        ([0, 120, 241, 361, 481, 601], set()),
    ],
)
def test_a_broker_is_lost_once_it_was_seen_fenced_for_so_long(times: list[float], lost: set[int]) -> None:
    memory = BrokersMemory()
    for at in times:
        memory = memory.observe(seen(), frozenset(), at)
    assert memory.lost(600, times[-1]) == lost


def test_brokers_that_are_cut_off_make_no_other_one_lost() -> None:
    memory = BrokersMemory().observe(seen(), frozenset(), 0)
    for at in range(100, 700, 100):
        memory = memory.observe(seen(forwarded=NOT_FORWARDED), frozenset(), at)
    assert memory.observe(seen(), frozenset(), 700).lost(600, 700) == set()
