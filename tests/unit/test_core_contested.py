"""Of the resources that ask for one partition the older goes first, unless it waits for a user."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import Limits
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.errors import Reason
from tests.unit.examples import examples
from tests.unit.sim import START, Driver, SimKafka, detail, drive, partitions, resource, states, true_conditions

PARTITIONS = partitions(3)
P0, P1, P2 = PARTITIONS
PERMISSION = Permission({"kafka": ("*",), "tenant": ("*",)}, "kafka")
DOWN = 5
"""A broker that may come back."""

TOO_LARGE = Problem(Reason.RESOURCE_TOO_LARGE, "split it")
NEEDS_USER = ("unknown broker", "factor change", "mismatch", "not allowed", "suspended", "too large", "down, mismatch")
STARTS = ("well", "down")


MISSING = TopicPartition("ghost", 0)


def asking(uid: str, why: str, tps: list[TopicPartition], age: int = 0) -> Resource:
    """A resource that can start, waits for a broker, or needs a user."""
    targets = {"unknown broker": (99, 1, 2), "factor change": (3, 1)}
    target = (DOWN, 1, 2) if why.startswith("down") else targets.get(why, (3 + age % 2, 1, 2))
    fields = {"suspended": {"suspend": True}}.get(why, {})
    made = resource(dict.fromkeys(tps, target), uid, **fields)
    if "mismatch" in why:
        entries = tuple(e.model_copy(update={"expected_replicas": (7, 8, 9)}) for e in made.spec.partitions)
        made = replace(made, spec=made.spec.model_copy(update={"partitions": entries}))
    return replace(
        made,
        namespace="elsewhere" if why == "not allowed" else ("kafka", "tenant")[age % 2],
        created=START + timedelta(days=age),
        unsupported=TOO_LARGE if why == "too large" else None,
    )


def driven(*resources: Resource, limits: Limits | None = None) -> Driver:
    kafka = SimKafka(dict.fromkeys(PARTITIONS, (0, 1, 2)))
    kafka.brokers[DOWN] = Broker(DOWN, fenced=True)
    return drive(kafka, *resources, permission=PERMISSION, limits=limits or Limits())


@pytest.mark.parametrize("why", NEEDS_USER)
def test_what_needs_a_user_keeps_no_partition_from_a_younger_resource(why: str) -> None:
    driver = driven(asking("older", why, [P0, P1]), asking("younger", "well", [P0, P1], age=1))
    driver.ticks(1)
    assert states(driver, "younger") == dict.fromkeys((P0, P1), "InFlight")
    driver.finish()
    assert true_conditions(driver, "younger") == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("missing", [MISSING, TopicPartition("orders", 99)], ids=["topic", "partition"])
def test_two_that_ask_for_what_is_not_there_hold_no_other_up(missing: TopicPartition) -> None:
    asking_for_it = [asking(f"r{age}", "well", [missing], age) for age in range(2)]
    driver = driven(*asking_for_it, asking("well", "well", [P0], age=2))
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)
    assert {detail(driver, missing, r.uid).reason for r in asking_for_it} == {"UnknownTopicOrPartition"}


def test_what_waits_for_a_broker_keeps_its_partition_until_it_was_moved() -> None:
    driver = driven(asking("older", "down", [P0]), asking("younger", "well", [P0], age=1))
    driver.ticks(5)
    assert detail(driver, P0, "younger").reason == "PartitionClaimed"
    driver.kafka.brokers[DOWN] = Broker(DOWN)
    driver.ticks(5)
    assert states(driver, "older") == {P0: "InFlight"}
    driver.finish()
    assert driver.kafka.replicas[P0] == (4, 1, 2), "the younger one came after it"


def test_an_older_resource_that_can_start_again_waits_for_the_younger() -> None:
    driver = driven(asking("older", "unknown broker", [P0]), asking("younger", "well", [P0], age=1))
    driver.ticks(2)
    driver.kafka.brokers[99] = Broker(99)
    driver.ticks(2)
    assert detail(driver, P0, "older").reason == "PartitionClaimed"
    driver.finish()
    assert driver.kafka.replicas[P0] == (99, 1, 2)


@pytest.mark.parametrize("why", STARTS)
def test_of_three_the_oldest_that_can_start_goes_first(why: str) -> None:
    driver = driven(
        asking("a", "mismatch", [P0]),
        asking("b", why, [P0], age=1),
        asking("c", "factor change", [P0], age=2),
        asking("d", "well", [P0], age=3),
    )
    driver.ticks(3)
    assert states(driver, "b") == {P0: "InFlight" if why == "well" else "Blocked"}
    assert detail(driver, P0, "d").reason == "PartitionClaimed"


def test_the_older_goes_first_also_where_it_is_the_turn_of_the_younger() -> None:
    """The older one has partitions in flight, so that by the turns the younger one comes before it."""
    older = asking("older", "well", [P0, P1, P2])
    driver = driven(older, limits=Limits(partitions_in_flight=2))
    driver.ticks(3)
    [left] = set(PARTITIONS) - driver.kafka.reassignments.keys()
    driver.resources["younger"] = asking("younger", "well", [left], age=1)
    driver.kafka.copy(next(iter(driver.kafka.reassignments)))
    driver.ticks(6)
    assert states(driver, "older")[left] == "InFlight"
    assert detail(driver, left, "younger").reason == "PartitionClaimed"


@examples(100)
@given(
    wishes=st.lists(
        st.tuples(st.sampled_from(NEEDS_USER + STARTS), st.sets(st.sampled_from(PARTITIONS), min_size=1)),
        min_size=2,
        max_size=5,
    ),
    places=st.integers(1, 4),
)
def test_no_partition_waits_for_a_resource_that_cannot_start(
    wishes: list[tuple[str, set[TopicPartition]]], places: int
) -> None:
    why = {f"r{age}": reason for age, (reason, _) in enumerate(wishes)}
    resources = [asking(f"r{age}", reason, sorted(tps), age) for age, (reason, tps) in enumerate(wishes)]
    driver = driven(*resources, limits=Limits(partitions_in_flight=places))
    for _ in range(4):
        driver.ticks(3)
        for moving in resources:
            for tp in moving.asked:
                if detail(driver, tp, moving.uid).reason != "PartitionClaimed":
                    continue
                others = [r for r in driver.resources.values() if r.uid != moving.uid and tp in r.asked]
                assert any(tp in active(r.record) or why[r.uid] in STARTS for r in others)
        for tp in list(driver.kafka.reassignments)[:1]:
            driver.kafka.copy(tp)
    driver.finish()
    for age, moving in enumerate(resources):
        for tp in moving.asked:
            held_off = any(why[r.uid] == "down" and tp in r.asked for r in resources[:age])
            if why[moving.uid] == "well" and not held_off:
                assert detail(driver, tp, moving.uid).state == "Completed"
