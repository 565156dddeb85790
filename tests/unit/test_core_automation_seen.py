"""What a process remembers of brokers, and what a decision about decommissions sees of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reassign.core.automation.model import BrokerSeen, BrokersSeen
from reassign.core.automation.seen import READS, BrokersMemory, BrokersRead, CordonsRead, logs_wanted
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.snapshot import Broker, LogDir, Snapshot, TopicPartition, cordoned
from tests.unit.sim import SimKafka

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def kafka(*fenced: int) -> SimKafka:
    brokers = {n: Broker(n, fenced=n in fenced) for n in range(4)}
    found = SimKafka({A: (1, 2), B: (3, 2)}, brokers=brokers)
    found.sizes = {tp: dict.fromkeys(row, 1) for tp, row in found.replicas.items()}
    return found


def shown(sim: SimKafka) -> Snapshot:
    return replace(sim.snapshot(), lists_fenced=True)


def read(sim: SimKafka, at: float, asked: Collection[int] = (1,), factor: int = 1) -> BrokersRead:
    found = layout_seen(shown(sim))
    logs = {number: dirs for number, dirs in found.log_dirs.items() if number in asked}
    told = {number: cordoned(dirs) for number, dirs in found.log_dirs.items()}
    return BrokersRead(replace(found, log_dirs=logs, cordoned=told), factor=factor, voters=frozenset({0}), at=at)


def seen(memory: BrokersMemory, sim: SimKafka, cordons: Collection[int] = ()) -> BrokersSeen:
    found = memory.seen(shown(sim), {}, frozenset(cordons))
    assert found
    return found


def of(memory: BrokersMemory, sim: SimKafka, broker: int = 1, cordons: Collection[int] = ()) -> BrokerSeen:
    return seen(memory, sim, cordons).brokers[broker]


def test_nothing_is_seen_before_something_was_read() -> None:
    assert BrokersMemory().seen(shown(kafka()), {}, frozenset()) is None
    assert BrokersMemory().differs(shown(kafka()))


def test_replicas_are_those_of_the_last_reading() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10))
    assert dict(of(memory, sim).replicas) == {"a": 1}
    sim.add(A, (0, 2))
    assert dict(of(memory, sim).replicas) == {"a": 1}
    assert dict(of(memory.take(read(sim, 20)), sim).replicas) == {}


def test_moves_in_flight_are_those_of_the_last_observation() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10))
    sim.move_as_another(B, (3, 1))
    found = seen(memory, sim).brokers
    assert {number: dict(one.in_flight) for number, one in found.items() if one.in_flight} == {
        1: {"b": 1},
        2: {"b": 1},
        3: {"b": 1},
    }


def test_a_broker_is_gone_only_when_the_last_reading_says_so_too() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10))
    del sim.brokers[1]
    assert memory.differs(shown(sim))
    assert of(memory, sim).registered
    assert of(memory, sim).fenced
    later = memory.take(read(sim, 20))
    assert not of(later, sim).registered
    assert not later.differs(shown(sim))


def test_a_broker_that_came_back_is_registered_at_once() -> None:
    sim = kafka()
    del sim.brokers[1]
    memory = BrokersMemory().take(read(sim, 10))
    sim.brokers[1] = Broker(1)
    assert of(memory, sim).up
    assert not of(memory, sim).logs


def test_a_silent_broker_has_no_logs_until_it_answers_again() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10))
    assert [(one.at, one.topics) for one in of(memory, sim).logs] == [(10, {"a"})]
    sim.silent = {1}
    memory = memory.take(read(sim, 20))
    assert not of(memory, sim).logs
    sim.silent = set()
    assert [one.at for one in of(memory.take(read(sim, 30)), sim).logs] == [30]


def test_a_broker_that_was_not_asked_has_no_logs() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10, asked=(1, 2)))
    memory = memory.take(read(sim, 20, asked=(2,)))
    assert (len(of(memory, sim, 1).logs), len(of(memory, sim, 2).logs)) == (0, 2)


def test_a_broker_with_an_offline_directory_has_not_answered() -> None:
    sim = kafka()
    sim.log_dirs = {1: {"/a": LogDir(), "/b": LogDir(online=False)}}
    assert not of(BrokersMemory().take(read(sim, 10)), sim).logs


def test_the_last_answers_are_kept() -> None:
    sim, memory = kafka(), BrokersMemory()
    for at in range(10):
        memory = memory.take(read(sim, at))
    assert [one.at for one in of(memory, sim).logs] == [7, 8, 9]
    assert READS == 3


def test_a_cordon_counts_from_when_it_is_seen() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10)).observe(shown(sim), frozenset({1}), 11)
    assert (of(memory, sim, cordons={1}).cordon_wanted_at, of(memory, sim, cordons={1}).cordoned_at) == (11, None)
    sim.cordons = {1: "*"}
    memory = memory.observe(shown(sim), frozenset({1}), 12).observe(shown(sim), frozenset({1}), 13)
    assert (of(memory, sim, cordons={1}).cordon_wanted_at, of(memory, sim, cordons={1}).cordoned_at) == (11, 12)
    assert of(memory, sim, cordons={1}).cordoned
    sim.cordons = {}
    memory = memory.observe(shown(sim), frozenset({1}), 14)
    assert (of(memory, sim, cordons={1}).cordoned, of(memory, sim, cordons={1}).cordoned_at) == (False, None)
    memory = memory.observe(shown(sim), frozenset(), 15)
    assert of(memory, sim).cordon_wanted_at is None


def test_the_cordon_of_others_is_that_of_the_last_reading() -> None:
    sim = kafka()
    sim.cordons = {1: "*"}
    memory = BrokersMemory().take(read(sim, 10)).observe(shown(sim), frozenset(), 11)
    sim.cordons = {}
    assert (of(memory, sim).cordoned, of(memory, sim).cordoned_at) == (True, 11)
    memory = memory.take(read(sim, 20)).observe(shown(sim), frozenset(), 21)
    assert (of(memory, sim).cordoned, of(memory, sim).cordoned_at) == (False, None)


def test_of_a_broker_that_is_down_no_cordon_is_known() -> None:
    sim = kafka()
    sim.cordons = {1: "*"}
    memory = BrokersMemory().take(read(sim, 10)).observe(shown(sim), frozenset({1}), 11)
    sim.brokers[1] = Broker(1, fenced=True)
    memory = memory.observe(shown(sim), frozenset({1}), 12)
    assert (of(memory, sim, cordons={1}).cordoned, of(memory, sim, cordons={1}).cordoned_at) == (None, None)
    sim.brokers[1] = Broker(1)
    memory = memory.observe(shown(sim), frozenset({1}), 13)
    assert of(memory, sim, cordons={1}).cordoned_at == 13


def test_a_broker_is_lost_once_it_was_fenced_for_long() -> None:
    sim, memory = kafka(1), BrokersMemory()
    memory = memory.observe(shown(sim), frozenset(), 10)
    assert (memory.lost(60, 69), memory.lost(60, 70)) == (set(), {1})
    memory = memory.observe(shown(kafka()), frozenset(), 80).observe(shown(sim), frozenset(), 90)
    assert (memory.lost(60, 149), memory.lost(60, 150)) == (set(), {1})


def test_cordons_are_read_alone_in_between() -> None:
    sim = kafka()
    memory = BrokersMemory().take(read(sim, 10)).take_cordons(CordonsRead({1: True, 2: None}, at=20))
    assert [of(memory, sim, number).cordoned for number in (1, 2, 3)] == [True, None, None]
    assert (seen(memory, sim).counted_at, seen(memory, sim).cordons_at) == (10, 20)
    assert memory.take_cordons(CordonsRead({}, at=15)) == memory
    assert seen(memory.take(read(sim, 30)), sim).cordons_at == 30


def test_racks_are_those_of_the_registration() -> None:
    sim = kafka()
    sim.brokers[1] = Broker(1, "east")
    memory = BrokersMemory().take(read(sim, 10))
    del sim.brokers[1]
    assert of(memory, sim).rack == "east"
    sim.brokers[1] = Broker(1, "west", fenced=True)
    assert (of(memory, sim).rack, of(memory, sim, 2).rack) == ("west", None)


def test_moves_that_are_not_ours_are_foreign() -> None:
    sim = kafka()
    sim.move_as_another(A, (1, 0))
    sim.move_as_another(B, (3, 1))
    found = BrokersMemory().take(read(sim, 10)).seen(shown(sim), {}, frozenset(), frozenset({A}))
    assert found
    assert (found.foreign, found.foreign_from) == ({1, 2}, {2})


def test_the_factor_is_the_greatest_of_topics_and_defaults() -> None:
    sim = kafka()
    assert seen(BrokersMemory().take(read(sim, 10)), sim).factor == 2
    assert seen(BrokersMemory().take(read(sim, 10, factor=3)), sim).factor == 3
    known = BrokersMemory().take(read(sim, 10, factor=3))
    assert seen(known.take(replace(read(sim, 20), factor=None)), sim).factor == 3
    empty = SimKafka({}, brokers={0: Broker(0)})
    assert seen(BrokersMemory().take(read(empty, 10)), empty).factor == 1


def test_topics_are_those_that_metadata_shows() -> None:
    sim = kafka()
    assert sim.sizes is not None
    sim.sizes[TopicPartition("secret", 0)] = {1: 5}
    found = seen(BrokersMemory().take(read(sim, 10)), sim)
    assert found.topics == {"a", "b"}
    assert found.hidden(1) == {"secret"}
    assert found.hidden(2) == set()


def layout(brokers: Mapping[int, Broker]) -> Layout:
    return Layout(brokers, {}, {})


def test_logs_are_wanted_of_the_emptied_and_of_all_where_one_is_down() -> None:
    up = {n: Broker(n) for n in range(3)}
    assert logs_wanted(layout(up), [1]) == {1}
    assert logs_wanted(layout(up), []) == set()
    assert logs_wanted(layout({**up, 1: Broker(1, fenced=True)}), [1]) == {0, 2}
    assert logs_wanted(layout({0: Broker(0), 2: Broker(2)}), [1]) == {0, 2}
    assert logs_wanted(layout(up), [1, 9]) == {0, 1, 2}
