"""Pacing: fewer partitions in flight when the cluster shows strain, and one more at a time while it is calm.

Additive increase, multiplicative decrease: D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms
for Congestion Avoidance in Computer Networks", 1989; Cruise Control adjusts the concurrency of its moves alike. Half is
half of what is in flight (RFC 5681, section 3.1), and the budget grows only while it is used up (RFC 7661): where other
limits bind first, half of a budget that is not used up would change nothing.

Strain is a partition that is not being moved and has lost replicas in sync since the last comparison.
What lacked them before is no news, and nothing in flight is ever cancelled for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from reassign.api.kafka_cluster import Limits, Pacing, PacingStatus
from reassign.core.model.budget import unlisted
from reassign.core.model.memory import Recent
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, Topic, TopicPartition
from reassign.core.model.verdict import Verdict
from reassign.text import counted, listed

COOLDOWN = timedelta(seconds=60)
"""For so long after it was halved the budget stays. Followers that fall behind for one cause leave the ISR within one
and a half times replica.lag.time.max.ms (45 s by default), and metadata shows it later: that is one event."""
COMPARABLE_SECONDS = 60.0
"""A sample that is further back says nothing of what is new now."""

Missing = Mapping[TopicPartition, int]
"""How many of its replicas are not in sync, by partition, of those that lack any."""


class Sample(NamedTuple):
    """All partitions at one moment: what they lack, which ones are being moved, and the monotonic clock's seconds."""

    missing: Missing
    moving: Collection[TopicPartition]
    at: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing samples so far."""

    last: Sample
    new: tuple[TopicPartition, ...] = ()
    """The partitions that lost replicas in sync at the last comparison while they were not moved."""
    fallen: Missing = field(default_factory=dict)
    """The partitions that did so at any comparison and have not recovered, with what they were missing before."""


def take_sample(
    topics: Mapping[str, Topic], snapshot: Snapshot, resources: Iterable[Resource], recent: Recent
) -> Sample:
    """Return what `topics`, all that lack replicas in sync or a leader, show.

    Replicas being added are not missing, and without a leader all are. A partition counts as moving until metadata is
    sure to show its end.
    """
    missing: dict[TopicPartition, int] = {}
    for name, topic in topics.items():
        for number, partition in topic.partitions.items():
            in_flight = snapshot.reassignments.get(tp := TopicPartition(name, number))
            replicas = set(in_flight.original if in_flight else partition.replicas)
            if lost := len(replicas if partition.leader is None else replicas - partition.isr):
                missing[tp] = lost
    moving = {tp for resource in resources for tp in active(resource.record)}
    return Sample(missing, moving | recent.busy.keys() | snapshot.reassignments.keys(), recent.now)


def compare(before: Comparison | None, now: Sample) -> Comparison:
    """Compare a sample with the one before it; the first one is only what later ones are compared with."""
    if before is None or now.at - before.last.at > COMPARABLE_SECONDS:
        return Comparison(now)
    known = before.last.missing
    new = tuple(sorted(tp for tp, lost in now.missing.items() if lost > known.get(tp, 0) and tp not in now.moving))
    fallen = {tp: known.get(tp, 0) for tp in new} | dict(before.fallen)
    return Comparison(now, new, {tp: level for tp, level in fallen.items() if now.missing.get(tp, 0) > level})


def within(before: PacingStatus | None, limit: int) -> PacingStatus:
    """Return the budget as it was left, within the limit as it is now.

    A budget that was not halved, or has grown back, is the limit itself.
    """
    if before is None or before.last_halved_time is None or before.partitions_in_flight >= limit:
        return PacingStatus(partitions_in_flight=limit)
    return before


def paced(
    before: PacingStatus, limit: int, seen: Comparison, taken: int, now: datetime, others: int = 0
) -> PacingStatus:
    """Return the budget after a sample, from 1 to `limit`.

    `taken` places were taken after the last admission, `others` of them by moves that are not ours.
    """
    budget, halved = before.partitions_in_flight, before.last_halved_time
    if halved and timedelta(0) <= now - halved < COOLDOWN:
        return before
    half = max(1, min(budget, taken) // 2)
    if seen.new and taken and half < budget:
        message = _halved(half, budget, taken, seen.new)
        return PacingStatus(partitions_in_flight=half, last_halved_time=now, message=message)
    if taken >= budget >= taken - others and not seen.fallen:
        return within(before.model_copy(update={"partitions_in_flight": budget + 1}), limit)
    return before


def _halved(half: int, budget: int, taken: int, new: Sequence[TopicPartition]) -> str:
    return (
        f"taken from {budget} to {half}, with {taken} in flight, when {counted(len(new), 'partition')} that did not "
        f"move lost replicas in sync ({listed(new)}); when they have them back it grows again, one at a time; if a "
        "broker is down, start it, or move its replicas"
    )


def places_taken(verdicts: Sequence[Verdict], snapshot: Snapshot) -> tuple[int, int]:
    """Count the partitions with a place in the cluster's budget after admission, and those that are not ours."""
    besides = {tp for verdict in verdicts for tp in unlisted(verdict.record, snapshot)}
    ours = {tp for verdict in verdicts for tp in active(verdict.record)}
    return len(besides | snapshot.reassignments.keys()), len(snapshot.reassignments.keys() - ours)


@dataclass(frozen=True, slots=True)
class Pacer:
    """The pace of one cluster, from one comparison to the next; a new process takes it from the status."""

    taken: int = 0
    """The places that were taken after the last admission."""
    others: int = 0
    """The places of these that moves of other clients took."""
    seen: Comparison | None = None
    status: PacingStatus | None = None
    """The budget now; None where it is the limit whatever happens."""

    def pace(self, limits: Limits, status: PacingStatus | None, now: datetime, sample: Sample | None = None) -> Pacer:
        """Return the pace after a sample, if there was one; `status` is the budget that was written last."""
        if limits.pacing is Pacing.FIXED:
            return replace(self, seen=None, status=None)
        budget = within(self.status or status, limits.partitions_in_flight)
        if sample is None:
            return replace(self, status=budget)
        seen = compare(self.seen, sample)
        return replace(
            self,
            seen=seen,
            status=paced(budget, limits.partitions_in_flight, seen, self.taken, now, self.others),
        )

    def admitted(self, verdicts: Sequence[Verdict], snapshot: Snapshot) -> Pacer:
        """Return the pace after an admission."""
        taken, others = places_taken(verdicts, snapshot)
        return replace(self, taken=taken, others=others)
