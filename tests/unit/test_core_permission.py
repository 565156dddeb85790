"""allowedNamespaces: who may move what, and what the others learn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.core.model.permission import Permission
from reassign.core.model.record import Entry
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Reassignment, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel
from reassign.errors import Reason
from tests.unit.configs import broker, copy, topic
from tests.unit.sim import SimKafka, drive, partitions, resource, states, true_conditions, without_record

ALLOWED = Permission({"kafka": ("*",), "team-a": ("team-a-*", "shared.?")})

MINE, OTHERS = TopicPartition("team-a-orders", 0), TopicPartition("payments", 0)
(P0,) = partitions(1, "team-a-orders")


def of_team_a(found: Resource) -> Resource:
    return replace(found, namespace="team-a")


@pytest.mark.parametrize(
    ("namespace", "topic", "allowed"),
    [
        ("kafka", "anything", True),
        ("team-a", "team-a-orders", True),
        ("team-a", "team-a-", True),
        ("team-a", "Team-a-orders", False),
        ("team-a", "my-team-a-orders", False),
        ("team-a", "shared.1", True),
        ("team-a", "shared.12", False),
        ("team-a", "sharedx1", False),
        ("team-b", "team-a-orders", False),
    ],
)
def test_topics_are_allowed_by_pattern_and_namespace(namespace: str, topic: str, allowed: bool) -> None:
    problem = ALLOWED.of_topic(namespace, topic)
    assert (problem is None) == allowed
    assert problem is None or problem.reason is Reason.NAMESPACE_NOT_ALLOWED


def test_an_entry_of_a_topic_not_allowed_is_blocked_alone() -> None:
    kafka = SimKafka({MINE: (1, 2), OTHERS: (1, 2)})
    driver = drive(kafka, of_team_a(resource({MINE: (3, 2), OTHERS: (3, 2)})), permission=ALLOWED)
    driver.ticks(3)
    assert kafka.writes == [Alter(MINE, (3, 2))]
    driver.finish()
    assert states(driver) == {MINE: "Completed", OTHERS: "Blocked"}
    assert true_conditions(driver) == {"Stalled": "NamespaceNotAllowed"}


def test_the_status_reveals_nothing_of_a_topic_not_allowed() -> None:
    kafka = SimKafka({MINE: (1, 2), OTHERS: (1, 2)})
    kafka.sizes = {OTHERS: {1: 100, 2: 100}}
    asked = {OTHERS: (3, 2), TopicPartition("no-such-topic", 0): (3, 2)}
    driver = drive(kafka, of_team_a(resource(asked)), permission=ALLOWED)
    driver.ticks(3)
    status = driver.resources["a"].status
    assert {detail.reason for detail in status.partitions} == {"NamespaceNotAllowed"}
    assert {detail.current_replicas for detail in status.partitions} == {None}
    assert status.progress is not None
    assert not status.progress.bytes_total


def test_an_entry_that_is_not_allowed_claims_no_partition() -> None:
    older = of_team_a(resource({OTHERS: (4, 2)}, "a"))
    driver = drive(SimKafka({OTHERS: (1, 2)}), older, resource({OTHERS: (3, 2)}, "b"), permission=ALLOWED)
    driver.ticks(3)
    assert states(driver, "b") == {OTHERS: "InFlight"}


def test_a_permission_withdrawn_in_flight_starts_nothing_new() -> None:
    kafka = SimKafka({MINE: (1, 2), P0._replace(partition=1): (1, 2)})
    second = P0._replace(partition=1)
    driver = drive(kafka, of_team_a(resource({MINE: (3, 2)})), permission=ALLOWED)
    driver.ticks(3)
    driver.permission = Permission({"kafka": ("*",)})
    driver.edit("a", {MINE: (3, 2), second: (3, 2)})
    driver.finish()
    assert kafka.replicas == {MINE: (3, 2), second: (1, 2)}
    assert states(driver) == {MINE: "Completed", second: "Blocked"}


def test_a_move_without_permission_is_still_cancelled_by_deletion() -> None:
    driver = drive(SimKafka({MINE: (1, 2)}), of_team_a(resource({MINE: (3, 2)})), permission=ALLOWED)
    driver.ticks(3)
    driver.permission = Permission({"kafka": ("*",)})
    driver.delete("a")
    driver.ticks(6)
    assert driver.gone == {"a"}
    assert driver.kafka.replicas[MINE] == (1, 2)


@pytest.mark.parametrize(("tp", "mode"), [(OTHERS, "Supersede"), (MINE, "Wait"), (MINE, "Fail")])
def test_a_forged_loss_of_the_record_takes_over_no_foreign_moves(tp: TopicPartition, mode: str) -> None:
    kafka = SimKafka({tp: (1, 2)})
    kafka.perform(Alter(tp, (3, 2)))
    looks_lost = without_record(of_team_a(resource({tp: (3, 2)}, whenInFlight=mode)))
    driver = drive(kafka, looks_lost, permission=ALLOWED)
    driver.ticks(2)
    driver.delete("a")
    driver.ticks(6)
    assert tp in kafka.reassignments
    assert not any(isinstance(step, Cancel) for step in kafka.writes)


def forged(state: State, target: tuple[int, ...], **more: object) -> Entry:
    """An entry that others have written about the topic of others."""
    return replace(Entry("id-payments", (2, 1), target, state), **more)


def holding(entry: Entry, **options: object) -> Resource:
    found = of_team_a(resource({OTHERS: entry.target}, throttle={"interBroker": "1Mi"}, **options))
    return replace(found, record={OTHERS: entry})


THEIRS = Reassignment((3, 2, 1), (3,), (1,))
HANGING = Reassignment((1, 5, 3), (3,), (3,))


@pytest.mark.parametrize("move", [None, THEIRS, HANGING], ids=["no move", "their move", "a move that hangs"])
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("target", [(1, 2), (2, 1), (4, 2)])
def test_a_forged_record_touches_nothing_of_others(
    state: State, target: tuple[int, ...], deleted: bool, move: Reassignment | None
) -> None:
    if state is State.RESTORING:
        return  # no record has it
    kafka = SimKafka({OTHERS: (1, 2)}, leader={OTHERS: 2})
    if move:
        kafka.replicas[OTHERS], kafka.reassignments[OTHERS] = move.replicas, move
    driver = drive(kafka, holding(forged(state, target)), permission=ALLOWED)
    driver.configs = {topic(OTHERS.topic): {}, **{broker(b): {} for b in range(6)}}
    before = copy(driver.configs)
    if deleted:
        driver.delete("a")
    driver.ticks(12)
    assert kafka.writes == []
    assert driver.configs == before
    assert (driver.gone == {"a"}) is deleted


def test_only_a_move_that_is_listed_as_recorded_is_brought_back() -> None:
    kafka = SimKafka({OTHERS: (1, 2)})
    kafka.replicas[OTHERS], kafka.reassignments[OTHERS] = THEIRS.replicas, THEIRS
    driver = drive(kafka, holding(forged(State.IN_FLIGHT, (3, 2))), permission=ALLOWED)
    driver.delete("a")
    driver.ticks(10)
    assert [type(step) for step in kafka.writes] == [Cancel, Alter]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_throttled_move_without_permission_is_brought_back(restarted: bool) -> None:
    driver = drive(
        SimKafka({MINE: (1, 2)}),
        of_team_a(resource({MINE: (3, 2)}, throttle={"interBroker": "1Mi"})),
        permission=ALLOWED,
        configs={topic(MINE.topic): {}, **{broker(b): {} for b in range(6)}},
    )
    before = copy(driver.configs)
    driver.ticks(3)
    throttled = copy(driver.configs)
    assert throttled != before
    driver.permission = Permission({"kafka": ("*",)})
    if restarted:
        driver.restart()
    driver.ticks(3)
    assert driver.configs == throttled
    driver.delete("a")
    driver.ticks(100)
    assert driver.gone == {"a"}
    assert driver.kafka.replicas[MINE] == (1, 2)
    assert driver.configs == before
