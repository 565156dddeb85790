"""What begins nothing, and touches nothing of others, while its throttle cannot be set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reassign.api.config_keys import FOLLOWER_REPLICAS
from reassign.api.kafka_cluster import Limits
from reassign.core.brake import undo_foreign
from reassign.core.configs import diff as throttle
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.resource import Resource
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import Broker
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel
from reassign.core.model.verdict import Verdict
from reassign.core.partition.outcomes import settle_steps
from reassign.core.tick import Memory, decide
from reassign.errors import Reason
from tests.unit.configs import broker, topic
from tests.unit.sim import START, SimKafka, partitions, resource
from tests.unit.throttled_brokers import NEW, OLD, Client, snapshot
from tests.unit.throttling import Operator, grow_up, with_steps
from tests.unit.world import LATER, OURS, World, forget
from tests.unit.world import THEIRS as MOVED

P0, P1 = partitions(2)


@pytest.fixture
def client() -> Client:
    """Topics may be read, and not changed."""
    return Client(denied={topic()})


@pytest.fixture
def operator(client: Client) -> Operator:
    """One whose process is not new any more."""
    found = Operator(client)
    found.grow_up()
    return found


def test_no_log_dir_is_requested_while_its_move_is_held_back(operator: Operator) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW), P1: (OLD, (1, 0))}, "5Ki")
    verdict = with_steps(verdict, AlterLogDirs(P0, ((2, "/b"),)), *verdict.steps)
    operator.tick(snapshot(), [verdict])
    left = operator.after(verdict)
    assert left.steps == (Alter(P1, (1, 0)),)
    assert left.must_record
    problem = left.rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED


THEIRS = (3, 1)


@pytest.fixture
def kafka() -> SimKafka:
    """Another client moves P0."""
    found = SimKafka({P0: OLD, P1: OLD}, brokers={b: Broker(b) for b in range(4)})
    found.move_as_another(P0, THEIRS)
    return found


@pytest.fixture
def superseding() -> Resource:
    return resource({P0: NEW}, whenInFlight="Supersede", throttle={"interBroker": "5Ki"})


def running(kafka: SimKafka) -> Recent:
    """What a process remembers that has been running for long."""
    return Recent(started=float("-inf")).observe(1.0, 1.0, kafka.reassignments.keys(), kafka.brokers)


def judged(asks: Resource, kafka: SimKafka, recent: Recent | None = None) -> Verdict:
    """As it is judged when all configurations have been read."""
    memory = replace(Memory.begin(0.0), recent=recent or running(kafka))
    read = ConfigRead(1.0, {topic(): {}, **{broker(b): {} for b in kafka.brokers}})
    [verdict] = decide([asks], kafka.snapshot(), read, memory, ClusterRules(Limits()), START).verdicts
    return verdict


def test_a_foreign_move_is_not_cancelled_for_one_without_a_throttle(
    operator: Operator, kafka: SimKafka, superseding: Resource
) -> None:
    verdict = judged(superseding, kafka)
    assert verdict.steps == (Cancel(P0, (1, 3)),)
    operator.tick(kafka.snapshot(), [verdict])
    left = operator.after(verdict)
    assert (left.steps, left.record, left.rows[P0].said(SayingKind.NOTE)) == ((), {}, None)
    problem = left.rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED


def test_a_foreign_move_is_not_cancelled_without_room_in_the_record(
    operator: Operator, client: Client, kafka: SimKafka, superseding: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.denied.clear()
    monkeypatch.setattr(throttle, "MAX_THROTTLE_RECORD_BYTES", 1)
    verdict = judged(superseding, kafka)
    operator.tick(kafka.snapshot(), [verdict])
    left = operator.after(verdict)
    problem = left.rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert (left.steps, problem.reason) == ((), Reason.RESOURCE_TOO_LARGE)


def test_a_foreign_move_is_cancelled_once_ours_is_throttled(
    operator: Operator, client: Client, kafka: SimKafka, superseding: Resource
) -> None:
    client.denied.clear()
    verdict = judged(superseding, kafka)
    operator.tick(kafka.snapshot(), [verdict])
    assert operator.after(verdict).steps == (Cancel(P0, (1, 3)),)
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"


def test_a_cancel_possibly_sent_continues_without_a_throttle(
    operator: Operator, kafka: SimKafka, superseding: Resource
) -> None:
    verdict = judged(replace(superseding, record=judged(superseding, kafka).record), kafka)
    operator.tick(kafka.snapshot(), [verdict])
    assert operator.after(verdict).steps == (Cancel(P0, (1, 3)),)


def test_a_move_whose_throttle_is_refused_takes_no_place_from_others() -> None:
    world = World()
    client = Client({**{broker(b): {} for b in range(6)}, topic(LATER.topic): {}}, {topic(LATER.topic)})
    brokers: Any = world.brokers
    brokers.configs, brokers.change = client.configs, client.change
    grow_up(world.loop)
    world.kafka.copy(OURS)
    world.kafka.copy(MOVED)
    world.tick(2)
    forget(world.loop, busy={})
    world.change("main", lambda obj: obj["spec"].update(limits={"partitionsInFlight": 1}))
    world.add("refused", LATER, (4, 2, 3))
    world.change("refused", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))
    world.add("younger", MOVED, (1, 2, 3))
    world.change("younger", lambda obj: obj["metadata"].update(creationTimestamp="2026-01-02T00:00:00Z"))
    world.tick(until=lambda: MOVED in world.kafka.reassignments)
    assert world.conditions("refused") == {"Stalled": "NotAuthorized"}


def test_the_brake_cancels_at_once_what_a_refused_throttle_has_left_alone(
    operator: Operator, kafka: SimKafka, superseding: Resource
) -> None:
    verdict = judged(superseding, kafka)
    operator.tick(kafka.snapshot(), [verdict])
    _, recent = settle_steps(operator.after(verdict), {}, running(kafka), 1.0)
    verdict = judged(superseding, kafka, recent)
    assert verdict.steps == ()
    state, problem = verdict.rows[P0].shown()
    assert problem is not None
    assert (state, problem.reason) == ("Blocked", Reason.NOT_AUTHORIZED)
    assert undo_foreign([P0], kafka.snapshot(), recent).cancels == (Cancel(P0, (1, 3)),)
