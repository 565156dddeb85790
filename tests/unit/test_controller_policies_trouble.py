"""What a ReassignmentPolicy meets in the loop: a Lease that is lost, topics that go, a cluster that is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from reassign.kube.lease import LeaseLost
from tests.unit.decommission_world import A, B, C
from tests.unit.policy_world import LOST, NIGHTLY, Policing
from tests.unit.world import api_object

SLOWLY = {"name": "lost", "brokerLost": {"afterSeconds": 300}}


def policing(monkeypatch: pytest.MonkeyPatch, *triggers: Any, **spec: Any) -> Policing:
    return Policing(monkeypatch, triggers=[*triggers], **{"approval": "NotRequired", **spec})


@contextmanager
def without_lease(world: Policing) -> Iterator[None]:
    """Another process has the Lease: nothing may be written, to the API server or to Kafka."""

    def writing(*_: object, **__: object) -> Any:
        raise LeaseLost("another process has the Lease")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.kube, "writing", writing)
        yield


@pytest.mark.parametrize("waves", [0, 1, 2])
def test_a_process_without_its_lease_leaves_a_plan_to_the_next(monkeypatch: pytest.MonkeyPatch, waves: int) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: bool(world.plans()) and len(world.kube.started) == waves)
    before = deepcopy(world.kube.objects)
    with without_lease(world):
        world.tick(20, safely=True)
    assert (world.kube.objects, world.plans()) == (before, ["main-lost-1"])
    world.restart()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(20)
    assert (world.plans(), sorted(world.brokers.begun), world.on(1)) == (["main-lost-1"], [A, B], [])
    world.assert_nothing_left()


@pytest.mark.parametrize("topic", [A, B], ids=["in flight", "in a wave that waits"])
def test_a_topic_that_is_deleted_counts_as_done(monkeypatch: pytest.MonkeyPatch, topic: Any) -> None:
    world = policing(monkeypatch, LOST)
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    assert set(world.kafka.reassignments) == {A}
    world.kafka.reassignments.pop(topic, None)
    del world.kafka.replicas[topic]
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(60)
    assert (world.plans(), world.on(1), world.ready_of()) == (["main-lost-1"], [], "Idle")
    world.assert_nothing_left()


# --- A KafkaCluster that is made anew ---


def made_anew(world: Policing, kafka: str | None = None, *, at_once: bool = False) -> None:
    """The KafkaCluster is deleted, and made again: for the same Kafka, or for another one with this id."""
    del world.kube.objects["uid-main"]
    if not at_once:
        world.kube.collect_garbage()
        world.watch()
        world.sweep(2)
        world.loop = world.new_loop()
    again = api_object("KafkaCluster", "main", {"bootstrapServers": "other:9092"})
    again["metadata"] |= {"uid": "uid-main-again"}
    world.put(again)
    world.watch()
    if kafka:
        other_brokers(world, kafka)


def other_brokers(world: Policing, kafka: str) -> None:
    """The brokers behind the address are of another Kafka cluster from now on."""
    snapshot = world.kafka.snapshot
    world.kafka.snapshot = lambda *given: replace(snapshot(*given), cluster_id=kafka)  # type: ignore[method-assign]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("kafka", "plans"), [(None, ["main-lost-1"]), ("another", [])])
def test_how_long_a_broker_was_down_counts_in_its_kafka_alone(
    monkeypatch: pytest.MonkeyPatch, kafka: str | None, plans: list[str], at_once: bool
) -> None:
    world = policing(monkeypatch, SLOWLY)
    world.tick(3)
    world.down(1)
    world.tick(50)
    assert world.policy_record()["brokers"][0]["down"]["seconds"] > 200
    made_anew(world, kafka, at_once=at_once)
    world.tick(30)
    assert world.plans() == plans
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("first", [True, False])
def test_an_approval_counts_in_its_kafka_alone(monkeypatch: pytest.MonkeyPatch, first: bool, at_once: bool) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    digest = world.policy()["digest"]
    if first:
        world.edit_policy(approvedDigest=digest)
    made_anew(world, "another", at_once=at_once)
    world.edit_policy(approvedDigest=digest)
    world.tick(until=lambda: world.plans() == ["main-lost-2"])
    world.tick(until=lambda: world.ready_of() in ("AwaitingApproval", "ApprovedDigestMismatch"))
    assert (world.kube.started, world.brokers.begun) == ([], [])
    world.approve_policy()
    world.tick(until=lambda: ("main-lost-2", "Succeeded") in world.outcomes())


def test_a_plan_under_way_goes_on_in_the_same_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    made_anew(world)
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.plans() == ["main-lost-1"]


def test_a_plan_under_way_is_retired_in_another_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    made_anew(world, "another")
    world.tick(until=lambda: ("main-lost-2", "Succeeded") in world.outcomes())
    assert world.outcomes()[0] == ("main-lost-1", "Retired")
    assert [wave for wave in world.kube.started if "-lost-1-" in wave] == world.kube.started[:1]


def test_other_brokers_behind_the_address_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.approve_policy()
    other_brokers(world, "another")
    world.tick(15)
    assert (world.ready_of(), world.kube.started, world.brokers.begun) == ("ClusterIdChanged", [], [])
    other_brokers(world, "sim")
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


# --- Plans of users ---


def test_a_users_plan_that_has_been_stale_for_a_month_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, NIGHTLY, cooldownSeconds=0)
    world.apply_plan("rebalance", drainBrokers=[3])
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.kafka.replicas[C] = (3, 5)
    world.copies = True
    world.clock.seconds = 2 * 3600 - 120
    world.tick(until=lambda: world.trigger("nightly") == ("Held", "PlanInProgress"))
    true = {c["type"] for c in world.plan("rebalance")["status"]["conditions"] if c["status"] == "True"}
    assert "PlanStale" in true
    for day in (1, 2, 30):
        world.clock.seconds = day * 24 * 3600 + 2 * 3600 - 120
        world.tick(60)
        assert world.policy()["lastScheduleTime"] == f"2026-01-{day + 1:02}T02:00:00Z"
        assert world.trigger("nightly") in (("Idle", None), ("Idle", "NothingToDo"))
    assert world.outcomes() == [("main-nightly-1", "Succeeded")]
