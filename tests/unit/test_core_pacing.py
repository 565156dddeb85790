"""Pacing: what counts as strain, when the budget is halved, and when it grows again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import KafkaClusterStatus, Limits, Pacing, PacingStatus
from reassign.core.admission.pacing import COMPARABLE_SECONDS, COOLDOWN, Pacer, Sample, places_taken, take_sample
from reassign.core.model.awaited import Awaited
from reassign.core.model.memory import Recent
from reassign.core.model.record import Entry
from reassign.core.model.snapshot import Partition, Reassignment, Topic, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import halvings
from reassign.core.tick import decide
from tests.unit.examples import examples
from tests.unit.sim import START, Driver, SimKafka, drive, partitions, resource

SECONDS = 15
"""Between two looks."""
A, B, C = partitions(3, "others")
CALM: dict[TopicPartition, int] = {}


class Looks:
    """Looks at a cluster, one after the other, with as much in flight as the budget allows if not said otherwise."""

    def __init__(self, limit: int, status: PacingStatus | None = None) -> None:
        self.limits = Limits(partitions_in_flight=limit, pacing=Pacing.ADAPTIVE)
        self.pacer = Pacer()
        self.seconds = 0.0
        self.pacer = Pacer().pace(self.limits, status, self.now)
        self.halved = 0

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    @property
    def status(self) -> PacingStatus | None:
        return self.pacer.status

    @property
    def budget(self) -> int:
        assert self.status
        return self.status.partitions_in_flight

    def look(
        self,
        missing: Mapping[TopicPartition, int],
        *,
        after: float = SECONDS,
        taken: int | None = None,
        moving: Collection[TopicPartition] = (),
    ) -> int:
        """The budget after one more look."""
        self.seconds += after
        before = KafkaClusterStatus(pacing=self.status)
        self.pacer = replace(self.pacer, taken=self.budget if taken is None else taken)
        self.pacer = self.pacer.pace(self.limits, None, self.now, Sample(missing, moving, self.seconds))
        self.halved += len(halvings(before, KafkaClusterStatus(pacing=self.status)))
        return self.budget

    def looks(self, missing: Mapping[TopicPartition, int], times: int) -> list[int]:
        return [self.look(missing) for _ in range(times)]


def halved(limit: int = 8) -> Looks:
    """A partition has lost a replica, for the first time just now."""
    seen = Looks(limit)
    seen.look(CALM)
    seen.look({A: 1})
    assert seen.budget == limit // 2
    return seen


def test_an_earlier_shortage_does_not_halve_the_budget() -> None:
    seen = Looks(8)
    assert seen.looks({A: 1, B: 2}, 10) == [8] * 10
    assert seen.look({A: 1, B: 1}) == 8
    assert seen.look({A: 1, B: 2}) == 4  # it had one back in between


@pytest.mark.parametrize("new", [{A: 1, B: 1}, {A: 2}], ids=["another partition", "one more replica"])
def test_newly_lost_replicas_halve_the_budget_and_the_event_names_them(
    new: dict[TopicPartition, int],
) -> None:
    seen = Looks(9)
    seen.look({A: 1})
    assert seen.look(new) == 4
    (fallen,) = new.keys() - {A} or {A}
    (tell,) = halvings(KafkaClusterStatus(), KafkaClusterStatus(pacing=seen.status))
    assert tell.warning
    assert tell.reason == "BudgetHalved"
    assert f"from 9 to 4, with 9 in flight, when 1 partition that did not move lost replicas in sync ({fallen})" in (
        tell.note
    )


def test_one_outage_halves_the_budget_once() -> None:
    seen = halved()
    assert seen.look({A: 1, B: 1}) == 4
    assert seen.look({A: 2, B: 1, C: 1}) == 4
    assert seen.looks({A: 2, B: 1, C: 1}, 20) == [4] * 20
    assert seen.halved == 1


def test_a_loss_after_the_cooldown_halves_again_down_to_one() -> None:
    seen = halved()
    for number, budget in enumerate([2, 1, 1, 1], start=2):
        assert seen.look({A: number}, after=COOLDOWN.total_seconds()) == budget
    assert seen.halved == 3


def test_the_budget_grows_by_one_up_to_the_limit_after_recovery() -> None:
    seen = halved()
    assert seen.look({A: 1}, after=COOLDOWN.total_seconds()) == 4
    assert seen.looks(CALM, 4) == [5, 6, 7, 8]
    assert seen.status == PacingStatus(partitions_in_flight=8)
    assert seen.look(CALM) == 8
    assert seen.halved == 1


def test_it_does_not_grow_during_the_cooldown() -> None:
    assert halved().looks(CALM, 4) == [4, 4, 4, 5]


def test_it_grows_only_while_it_is_used_up() -> None:
    seen = halved()
    seen.looks(CALM, 3)
    assert seen.look(CALM, taken=3) == 4
    assert seen.look(CALM, taken=6) == 4  # what began before it was halved still goes on
    assert seen.look(CALM, taken=4) == 5


def test_it_grows_though_others_have_more_in_flight_than_it_allows() -> None:
    seen = halved()
    seen.looks(CALM, 3)
    seen.pacer = replace(seen.pacer, others=3)
    assert seen.look(CALM, taken=6) == 5
    assert seen.look(CALM, taken=9) == 5  # six of ours began before it was halved


def test_where_other_limits_bind_first_it_is_half_of_what_is_in_flight() -> None:
    seen = Looks(200)
    seen.look(CALM)
    assert seen.look({A: 1}, taken=30) == 15


def test_with_nothing_in_flight_nothing_is_halved() -> None:
    seen = Looks(8)
    seen.look(CALM)
    assert seen.look({A: 1}, taken=0) == 8
    assert seen.look({A: 1}) == 8


def test_a_partition_being_moved_does_not_halve_the_budget() -> None:
    seen = Looks(8)
    seen.look(CALM)
    assert seen.look({A: 1}, moving={A}) == 8
    assert seen.look({A: 1}) == 8


def test_an_observation_is_not_compared_with_an_old_one() -> None:
    seen = Looks(8)
    seen.look(CALM)
    assert seen.look({A: 1}, after=COMPARABLE_SECONDS + 1) == 8


def test_a_new_process_resumes_from_the_status_and_the_current_shortage() -> None:
    again = Looks(8, halved().status)
    again.seconds = 30
    assert again.budget == 4
    assert again.look({A: 1, B: 1}) == 4
    assert again.look({A: 1, B: 1, C: 1}) == 4  # the cooldown is in the status, too
    assert again.halved == 0


def test_with_the_status_lost_a_new_process_starts_at_the_limit() -> None:
    assert Looks(8, None).budget == 8


def test_a_status_from_the_future_holds_nothing_up() -> None:
    future = PacingStatus(partitions_in_flight=4, last_halved_time=START + timedelta(days=1))
    again = Looks(8, future)
    assert again.looks(CALM, 2) == [5, 6]


def test_another_limit_counts_at_once() -> None:
    for limit, budget in ((6, 4), (3, 3)):
        seen = halved()
        seen.limits = Limits(partitions_in_flight=limit, pacing=Pacing.ADAPTIVE)
        assert seen.look({A: 1}) == budget
    seen = Looks(8)
    seen.limits = Limits(partitions_in_flight=20, pacing=Pacing.ADAPTIVE)
    assert seen.look(CALM) == 20  # it was never halved


def test_fixed_forgets_it_and_adaptive_begins_anew_at_the_limit() -> None:
    seen = halved()
    fixed = seen.pacer.pace(Limits(partitions_in_flight=8), seen.status, seen.now)
    assert fixed.status is None
    assert fixed.pace(seen.limits, None, seen.now).status == PacingStatus(partitions_in_flight=8)


LOOKS = st.tuples(
    st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 3)),
    st.sampled_from([5, 15, 30, 61, 120]),
    st.integers(0, 40),
    st.sets(st.sampled_from([A, B, C])),
)


@given(limit=st.integers(1, 30), looks=st.lists(LOOKS, max_size=40))
def test_the_budget_stays_within_bounds_and_returns_to_the_limit(
    limit: int, looks: Sequence[tuple[dict[TopicPartition, int], int, int, set[TopicPartition]]]
) -> None:
    seen = Looks(limit)
    last = None
    for missing, after, taken, moving in looks:
        before, times = seen.budget, seen.halved
        seen.look(missing, after=after, taken=taken, moving=moving)
        assert 1 <= seen.budget <= limit
        assert seen.budget <= before + 1
        assert (seen.budget < before) == (seen.halved > times)
        if seen.halved > times:
            assert missing.keys() - moving
            assert last is None or seen.now - last >= COOLDOWN
            last = seen.now
    assert seen.looks(CALM, limit + 5)[-1] == limit


def test_missing_replicas_exclude_those_being_added() -> None:
    topics = {
        "orders": Topic(
            "id",
            2,
            {
                0: Partition((1, 2, 3), frozenset({1, 2}), 1),
                1: Partition((4, 1, 2, 3), frozenset({1, 2, 3}), 1),
                2: Partition((1, 2, 3), frozenset({1}), None),
                3: Partition((1, 2, 3), frozenset({1, 2, 3}), 1),
            },
        )
    }
    kafka = SimKafka({})
    p0, p1, p2, p3 = partitions(4)
    kafka.reassignments[p1] = Reassignment((4, 1, 2, 3), (4,), (1,))
    found = take_sample(topics, kafka.snapshot(), [], Recent(now=7.0, busy={p3: Awaited(6.0)}))
    assert found == Sample({p0: 1, p2: 3}, {p1, p3}, 7.0)


def test_what_a_resource_has_begun_is_moving_and_what_it_waits_for_is_not() -> None:
    p0, p1 = partitions(2)
    kafka = SimKafka({p0: (0, 1), p1: (0, 1)})
    driver = drive(kafka, resource({p0: (2, 1), p1: (2, 1)}), limits=Limits(partitions_in_flight=1))
    driver.ticks(2)
    begun = set(kafka.reassignments)
    assert len(begun) == 1
    assert set(take_sample({}, SimKafka({}).snapshot(), driver.resources.values(), Recent()).moving) == begun


def test_places_are_taken_by_what_is_about_to_start_too() -> None:
    moved = partitions(5)
    kafka = SimKafka(dict.fromkeys(moved, (0, 1)))
    limits = Limits(partitions_in_flight=3, moves_per_broker=10)
    driver = drive(kafka, resource(dict.fromkeys(moved, (2, 3))), limits=limits)
    driver.observe((), kafka.brokers)
    resources, configs = list(driver.resources.values()), driver.read_configs()
    decision = decide(resources, kafka.snapshot(), configs, driver.memory, driver.rules, driver.time)
    assert kafka.reassignments == {}
    assert places_taken(decision.verdicts, kafka.snapshot()) == (3, 0)


@pytest.mark.parametrize(("log_dirs", "taken"), [(((0, "/b"),), 1), ((), 0)])
def test_a_log_dir_copy_uses_a_slot_and_a_wait_for_in_sync_does_not(
    log_dirs: tuple[tuple[int, str], ...], taken: int
) -> None:
    (tp,) = partitions(1)
    entry = Entry("id-orders", (0, 1), (0, 1), State.IN_FLIGHT, log_dirs=log_dirs)
    verdict = Verdict.of(resource({tp: (0, 1)}), {tp: entry})
    assert places_taken([verdict], SimKafka({tp: (0, 1)}).snapshot()) == (taken, 0)


class Paced:
    """The core with pacing, as the loop wires it; all partitions are looked at every 15 ticks."""

    def __init__(self, driver: Driver, limit: int) -> None:
        self.driver = driver
        self.limits = Limits(partitions_in_flight=limit, moves_per_broker=1000, pacing=Pacing.ADAPTIVE)
        self.budgets = [limit]

    def ticks(self, count: int) -> None:
        for _ in range(count):
            self.tick()

    def tick(self) -> None:
        driver, kafka = self.driver, self.driver.kafka
        driver.observe(kafka.reassignments.keys())
        snapshot = kafka.snapshot()
        looked = int(driver.now) % 15 == 0
        seen = take_sample(snapshot.topics, snapshot, driver.resources.values(), driver.recent) if looked else None
        pacer = driver.memory.pacer.pace(self.limits, None, driver.time, seen)
        driver.memory = replace(driver.memory, pacer=pacer)
        assert pacer.status
        self.budgets.append(pacer.status.partitions_in_flight)
        driver.limits = self.limits.model_copy(update={"partitions_in_flight": self.budgets[-1]})
        before = len(kafka.reassignments)
        driver.tick()
        in_flight = len(kafka.reassignments)
        assert in_flight <= max(before, self.budgets[-1])  # nothing new starts above the budget
        assert driver.memory.pacer.taken == in_flight


OTHER = TopicPartition("other", 0)


def paced(moves: int, limit: int) -> Paced:
    moved = partitions(moves)
    kafka = SimKafka({**dict.fromkeys(moved, (0, 1)), OTHER: (0, 1, 2)})
    return Paced(drive(kafka, resource(dict.fromkeys(moved, (2, 3)))), limit)


def test_an_under_replicated_partition_slows_new_moves_and_cancels_none() -> None:
    run = paced(60, 8)
    kafka = run.driver.kafka
    run.ticks(20)
    began = set(kafka.reassignments)
    assert len(began) == 8
    kafka.isr[OTHER] = frozenset({0, 1})
    run.ticks(20)
    assert run.budgets[-1] == 4
    assert set(kafka.reassignments) == began
    for tp in sorted(began)[:6]:
        kafka.copy(tp)
    run.ticks(60)
    assert len(kafka.reassignments) == 4
    kafka.isr[OTHER] = frozenset({0, 1, 2})
    run.ticks(90)
    assert run.budgets[-1] == 8
    assert len(kafka.reassignments) == 8
    assert not any(isinstance(step, Cancel) for step in kafka.writes)


def test_a_budget_used_up_by_quick_moves_grows_too() -> None:
    run = paced(250, 3)
    kafka = run.driver.kafka
    run.ticks(20)
    kafka.isr[OTHER] = frozenset({0, 1})
    run.ticks(20)
    kafka.isr[OTHER] = frozenset({0, 1, 2})
    assert run.budgets[-1] == 1
    for _ in range(80):
        for tp in list(kafka.reassignments):
            kafka.copy(tp)
        run.tick()
    assert run.budgets[-1] == 3


@examples(15)
@given(data=st.data(), limit=st.integers(1, 6))
def test_whatever_falls_meanwhile_every_move_comes_to_its_end(data: st.DataObject, limit: int) -> None:
    run = paced(8, limit)
    kafka = run.driver.kafka
    for _ in range(5):
        kafka.isr[OTHER] = data.draw(st.sampled_from([frozenset({0}), frozenset({0, 1}), frozenset({0, 1, 2})]))
        for tp in sorted(kafka.reassignments)[: data.draw(st.integers(0, 3))]:
            kafka.copy(tp)
        run.ticks(data.draw(st.integers(1, 40)))
        assert 1 <= run.budgets[-1] <= limit
    for _ in range(40):  # OTHER may never recover
        for tp in list(kafka.reassignments):
            kafka.copy(tp)
        run.ticks(4)
    assert all(kafka.replicas[tp] == (2, 3) for tp in partitions(8))
    assert len([step for step in kafka.writes if isinstance(step, Alter)]) == 8
