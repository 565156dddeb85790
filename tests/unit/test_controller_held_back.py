"""What begins nothing, and touches nothing of others, while its throttle cannot be set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.api.kafka_cluster import Limits
from reassign.core import throttle
from reassign.core.admit import Policy
from reassign.core.decide import decide
from reassign.core.follow import Recent
from reassign.core.model import Alter, AlterLogDirs, Broker, Cancel
from reassign.core.report import report
from reassign.core.resource import Resource
from reassign.core.throttled import FOLLOWER_REPLICAS
from reassign.core.verdict import Verdict
from reassign.errors import Reason
from tests.unit.configs import topic
from tests.unit.sim import START, SimKafka, partitions, resource
from tests.unit.test_controller_throttling import NEW, OLD, Client, snapshot
from tests.unit.throttling import Operator

P0, P1 = partitions(2)


@pytest.fixture
def client() -> Client:
    """Topics may be read, and not changed."""
    return Client(denied={topic()})


@pytest.fixture
def operator(client: Client) -> Operator:
    """One whose process is not new any more."""
    found = Operator(client)
    found.throttling._lately.started -= 100
    return found


def test_no_log_directory_is_asked_for_while_its_move_is_held_back_and_the_others_go_on(operator: Operator) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW), P1: (OLD, (1, 0))}, "5Ki")
    verdict.steps.insert(0, AlterLogDirs(P0, ((2, "/b"),)))
    operator.tick(snapshot(), [verdict])
    assert verdict.steps == [Alter(P1, (1, 0))]
    assert verdict.must_record
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED


THEIRS = (3, 1)


@pytest.fixture
def kafka() -> SimKafka:
    """Somebody else moves P0."""
    found = SimKafka({P0: OLD, P1: OLD}, brokers={b: Broker(b) for b in range(4)})
    found.move_as_another(P0, THEIRS)
    return found


@pytest.fixture
def superseding() -> Resource:
    return resource({P0: NEW}, whenInFlight="Supersede", throttle={"interBroker": "5Ki"})


def judged(asks: Resource, kafka: SimKafka) -> Verdict:
    """As a process judges it that has been running for long."""
    recent = Recent(started=float("-inf"))
    recent.observe(1.0, 1.0, kafka.reassignments.keys(), kafka.brokers)
    [verdict] = decide([asks], kafka.snapshot(), Policy(Limits()), recent, START)
    return verdict


def test_somebody_elses_move_is_not_cancelled_for_one_that_cannot_be_throttled(
    operator: Operator, kafka: SimKafka, superseding: Resource
) -> None:
    verdict = judged(superseding, kafka)
    assert verdict.steps == [Cancel(P0, (1, 3))]
    operator.tick(kafka.snapshot(), [verdict])
    assert (verdict.steps, verdict.record, verdict.notes) == ([], {}, {})
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED


def test_somebody_elses_move_is_not_cancelled_for_one_that_the_record_has_no_room_for(
    operator: Operator, client: Client, kafka: SimKafka, superseding: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.denied.clear()
    monkeypatch.setattr(throttle, "MAX_RECORD_BYTES", 1)
    verdict = judged(superseding, kafka)
    operator.tick(kafka.snapshot(), [verdict])
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert (verdict.steps, problem.reason) == ([], Reason.RESOURCE_TOO_LARGE)


def test_somebody_elses_move_is_cancelled_when_ours_is_throttled_and_not_theirs(
    operator: Operator, client: Client, kafka: SimKafka, superseding: Resource
) -> None:
    client.denied.clear()
    verdict = judged(superseding, kafka)
    operator.tick(kafka.snapshot(), [verdict])
    assert verdict.steps == [Cancel(P0, (1, 3))]
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"


def test_a_cancel_that_may_have_been_sent_goes_on_whether_ours_can_be_throttled_or_not(
    operator: Operator, kafka: SimKafka, superseding: Resource
) -> None:
    status = report(judged(superseding, kafka), kafka.snapshot(), (), START)
    verdict = judged(replace(superseding, status=status), kafka)
    operator.tick(kafka.snapshot(), [verdict])
    assert verdict.steps == [Cancel(P0, (1, 3))]
