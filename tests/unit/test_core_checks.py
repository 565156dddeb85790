"""The checks before a move, each with a reason and a sentence; the budgets; what is too large; progress."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import Limits
from reassign.api.limits import MAX_OBJECT_BYTES
from reassign.api.partition_reassignment import PartitionState
from reassign.core.checks.size import too_large
from reassign.core.model import progress
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker
from reassign.core.model.steps import Alter
from reassign.errors import Reason
from tests.unit.sim import SimKafka, drive, partitions, resource, spec, states, true_conditions

P0, P1, P2 = partitions(3)


@pytest.mark.parametrize(
    ("target", "fields", "reason", "says"),
    [
        ((0, 1, 99), {}, "UnknownBroker", "99"),
        ((0, 1, 5), {}, "BrokerFenced", "broker 5"),
        ((0, 1), {}, "ReplicationFactorChange", "from 3 to 2"),
        ((0,), {"replicationFactorChange": "Allow"}, "BelowMinInSyncReplicas", "min.insync.replicas=2"),
    ],
)
def test_a_target_that_must_not_be_is_blocked_with_its_reason(
    target: tuple[int, ...], fields: dict[str, str], reason: str, says: str
) -> None:
    kafka = SimKafka({P0: (0, 1, 2)}, min_insync=2)
    kafka.brokers[5] = Broker(5, fenced=True)
    driver = drive(kafka, resource({P0: target}, **fields))
    driver.ticks(3)
    detail = driver.resources["a"].status.partitions[0]
    assert (detail.state, detail.reason) == (PartitionState.BLOCKED, reason)
    assert says in (detail.message or "")
    kind = "Reconciling" if reason == "BrokerFenced" else "Stalled"
    assert true_conditions(driver) == {kind: reason}
    assert kafka.writes == []


def test_a_message_names_some_brokers_and_counts_the_rest() -> None:
    kafka = SimKafka({P0: (1000, 1001)}, brokers={b: Broker(b) for b in range(1000, 1300)})
    driver = drive(kafka, resource({P0: (1000, 9)}))
    driver.ticks(3)
    assert "1018, 1019 and 280 more" in (driver.resources["a"].status.partitions[0].message or "")


def test_the_replication_factor_changes_where_that_is_allowed() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (0, 1)}, replicationFactorChange="Allow"))
    driver.ticks(2)
    driver.finish()
    assert driver.kafka.replicas[P0] == (0, 1)
    assert driver.kafka.writes == [Alter(P0, (0, 1), allow_replication_factor_change=True)]


@pytest.mark.parametrize(("expected", "moves"), [((2, 1, 0), True), ((0, 1, 3), False)])
def test_expected_replicas_are_compared_as_a_set(expected: tuple[int, ...], moves: bool) -> None:
    asked = resource({P0: (3, 1, 2)})
    entry = asked.spec.partitions[0].model_copy(update={"expected_replicas": expected})
    guarded = asked.spec.model_copy(update={"partitions": (entry,)})
    driver = drive(SimKafka({P0: (0, 1, 2)}))
    driver.resources["a"] = replace(asked, spec=guarded)
    driver.ticks(3)
    assert (P0 in driver.kafka.reassignments) is moves
    if not moves:
        assert true_conditions(driver) == {"Stalled": "ExpectedReplicasMismatch"}


def test_a_blocked_partition_starts_when_its_broker_is_back() -> None:
    kafka = SimKafka({P0: (0, 1, 2)})
    kafka.brokers[3] = Broker(3, fenced=True)
    driver = drive(kafka, resource({P0: (3, 1, 2)}))
    driver.ticks(3)
    kafka.brokers[3] = Broker(3)
    driver.tick()
    assert P0 in kafka.reassignments


@pytest.mark.parametrize("reason", [Reason.DUPLICATE_CLUSTER, Reason.CLUSTER_DELETED])
def test_a_cluster_hold_that_only_a_user_can_end_is_stalled(reason: Reason) -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}), hold=Problem(reason, "it is so"))
    driver.ticks(3)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Stalled": reason}
    assert states(driver) == {P0: "Pending"}


def test_a_cluster_hold_comes_before_a_broker_that_is_down() -> None:
    kafka = SimKafka({P0: (0, 1, 2)})
    kafka.brokers[3] = Broker(3, fenced=True)
    driver = drive(kafka, resource({P0: (3, 1, 2)}), hold=Problem(Reason.CLUSTER_DELETED, "it is so"))
    driver.ticks(3)
    assert true_conditions(driver) == {"Stalled": Reason.CLUSTER_DELETED}
    assert states(driver) == {P0: "Pending"}


def test_the_limits_of_the_cluster_and_of_the_resource_hold() -> None:
    asked = dict.fromkeys(partitions(6), (3, 4))
    kafka = SimKafka({tp: (tp.partition % 3, (tp.partition + 1) % 3) for tp in partitions(6)})
    driver = drive(
        kafka, resource(asked, concurrency={"partitions": 2}), limits=Limits(partitions_in_flight=4, moves_per_broker=3)
    )
    driver.ticks(3)
    assert len(kafka.reassignments) == 2
    assert list(states(driver).values()).count("Pending") == 4
    driver.finish()
    assert all(kafka.replicas[tp] == (3, 4) for tp in asked)


def test_a_partition_above_the_limits_runs_by_itself() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    driver = drive(
        kafka, resource({P0: (3, 4, 5), P1: (5, 3, 4)}), limits=Limits(partitions_in_flight=10, moves_per_broker=2)
    )
    driver.ticks(3)
    assert set(kafka.reassignments) == {P0}
    kafka.copy(P0)
    driver.ticks(3)
    assert set(kafka.reassignments) == {P1}


def test_a_resource_that_could_outgrow_the_api_server_moves_nothing() -> None:
    small = spec({P0: (0, 1)})
    assert too_large({"metadata": {"name": "a"}}, small) is None
    problem = too_large({"metadata": {"managedFields": "x" * MAX_OBJECT_BYTES}}, small)
    assert problem is not None
    assert problem.reason is Reason.RESOURCE_TOO_LARGE


@given(
    copied=st.integers(0, 10**15), total=st.integers(0, 10**15), completed=st.integers(0, 50), more=st.integers(0, 50)
)
def test_percent_is_100_only_when_every_partition_is_completed(
    copied: int, total: int, completed: int, more: int
) -> None:
    percent = progress.percent(min(copied, total), total, completed, completed + more)
    assert 0 <= percent <= 100
    assert (percent == 100) is (more == 0)


def test_rate_and_completion_time_come_from_the_window() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    rate = progress.rate([(0.0, 0), (10.0, 1000)])
    assert rate == 100
    assert progress.completion_time(500, rate, now) == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert progress.rate([(0.0, 5), (10.0, 5)]) is None


def test_bytes_grow_with_the_replica_and_are_whole_only_in_sync() -> None:
    kafka = SimKafka({P0: (0, 1)}, sizes={P0: {0: 1000, 1: 1000}})
    driver = drive(kafka, resource({P0: (0, 2)}))
    driver.ticks(2)
    kafka.sizes = {P0: {0: 1000, 1: 1000, 2: 1000}}
    driver.tick()
    shown = driver.resources["a"].status.progress
    assert shown is not None
    assert (shown.bytes_copied, shown.bytes_total, shown.percent) == (999, 1000, 99)
    kafka.copy(P0)
    driver.ticks(2)
    shown = driver.resources["a"].status.progress
    assert shown is not None
    assert (shown.bytes_copied, shown.bytes_total, shown.percent) == (1000, 1000, 100)
