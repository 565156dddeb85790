"""The figures of a Kafka cluster after a reconciliation: partitions by state, bytes to come, throttles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.partition_reassignment import PartitionState
from reassign.core.brake import foreign, partitions_held_by
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.configs.diff import from_record
from reassign.core.configs.stage import ConfigDecision, left_in_flight
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import Snapshot, cordoned
from reassign.core.model.verdict import Verdict
from reassign.core.report.lines import lines_of
from reassign.core.report.statuses import targets_of
from reassign.core.tick import Decision

WITH_BYTES_TO_COME = (PartitionState.PENDING, PartitionState.BLOCKED, PartitionState.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of one Kafka cluster. Partitions are those of resources that are neither suspended nor ended."""

    partitions: Mapping[str, int]
    """Partitions by state."""
    blocked: Mapping[str, int]
    """Blocked partitions by reason."""
    stalled: Mapping[str, int]
    """Stalled partitions by reason."""
    remaining_bytes: int
    """Known bytes that are not copied yet."""
    foreign: int
    """Partitions that other clients move."""
    throttles: Mapping[str, int]
    """Rates by the field of spec.throttle, in bytes per second; 0 for none."""
    left_over: int
    """Brokers and topics whose throttle no move needs any more."""
    cordoned: int
    """Brokers that have our cordon, and report that they are cordoned."""


def figures_of(decision: Decision) -> Figures:
    """Count partitions, bytes and throttles of a cluster, as a settled decision leaves them."""
    snapshot, verdicts = decision.snapshot, [v for v in decision.verdicts if _counts(v)]
    lines = [line for v in verdicts for line in lines_of(v, targets_of(v), snapshot)]
    states = Counter(line.state for line in lines)
    to_come = (line.bytes for line in lines if line.bytes and line.state in WITH_BYTES_TO_COME)
    record = decision.throttle.record
    return Figures(
        partitions={state: states[state] for state in PartitionState},
        blocked=Counter(line.problem.reason for line in lines if line.state is PartitionState.BLOCKED and line.problem),
        stalled=Counter(
            problem.reason for v in verdicts for row in v.rows.values() if (problem := row.said(SayingKind.OVERDUE))
        ),
        remaining_bytes=sum(known.total - known.copied for known in to_come),
        foreign=len(foreign(partitions_held_by(v.resource for v in decision.verdicts), snapshot)),
        throttles={
            "interBroker": (record and record.inter_broker) or 0,
            "logDir": (record and record.log_dir) or 0,
        },
        left_over=_left_over(decision.throttle, snapshot),
        cordoned=sum(
            broker in snapshot.brokers and cordoned(snapshot.log_dirs.get(broker, {})) is True
            for broker in recorded_cordons(record)
        ),
    )


def _counts(verdict: Verdict) -> bool:
    resource = verdict.resource
    return not (resource.settled or resource.asleep or resource.dry_run)


def _left_over(throttle: ConfigDecision, snapshot: Snapshot) -> int:
    if throttle.untouched and left_in_flight(throttle.record, snapshot):
        return 0
    wanted = {key.resource for key in (*throttle.aim.values, *throttle.aim.items) if key.config != CORDONED_LOG_DIRS}
    recorded = {key.resource for key in from_record(throttle.record) if key.config != CORDONED_LOG_DIRS}
    return len(recorded - wanted)
