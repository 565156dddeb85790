"""Admit: judge the partitions that have no entry yet, and start those that there is room for.

`turns` says whose turn it is. Within a resource the partition with the most bytes to copy comes first, so that the end
is not one long tail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reassign.api.partition_reassignment import (
    ANY_LOG_DIR,
    PartitionEntry,
    PartitionState,
    PreferredLeader,
    ReplicationFactorChange,
)
from reassign.core.admission.dry_run import would_move
from reassign.core.admission.supersede import supersede
from reassign.core.admission.turns import Queue, in_turn, older_first
from reassign.core.checks.budget import budget, reserve
from reassign.core.checks.chain import ADMISSION, DRY_RUN, Violation, fails, first_violation, needs_user, waits
from reassign.core.checks.disk import silence
from reassign.core.checks.existence import existence
from reassign.core.checks.hold import hold, idle, settled
from reassign.core.checks.in_flight import claim
from reassign.core.checks.input import Input
from reassign.core.checks.permission import permission
from reassign.core.model.budget import Budget, slots_of, stuck_moves, take_in_flight, unlisted
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.log_dirs import bytes_to_copy
from reassign.core.model.memory import Recent
from reassign.core.model.permission import name_of
from reassign.core.model.problem import Name
from reassign.core.model.record import Entry, Record, active, recorded_problem
from reassign.core.model.resource import Resource
from reassign.core.model.room import Room
from reassign.core.model.row import BLOCKED, PENDING, Row, SayingKind, waiting
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import HOLDING, State
from reassign.core.model.steps import Alter, AlterLogDirs, Elect, Judged
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Claims:
    """The resources that have partitions: they hold them, or are older than others and wait for no user."""

    owners: dict[TopicPartition, Resource]
    rivals: Mapping[TopicPartition, Sequence[str]]
    """The resources that wait for the same partition, by uid, the oldest first."""

    def of(self, tp: TopicPartition, resource: Resource) -> Name | None:
        """Return the name of the other resource that goes first, if there is one."""
        owner = self.owners.get(tp)
        return None if owner is None or owner is resource else name_of(owner)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What all partitions are judged by: what is observed, and what is left of the cluster's room and budget."""

    snapshot: Snapshot
    rules: ClusterRules
    recent: Recent
    room: Room
    budget: Budget
    shared: Mapping[str, Budget]
    claims: Claims

    def inputs(self, verdict: Verdict, own: Budget) -> Iterator[Input]:
        """Return the partitions of a resource without an entry, each with all that is known when its turn comes."""
        room = self.room.copy() if verdict.resource.dry_run else self.room  # before anything starts
        return self._inputs(verdict, own, room)

    def _inputs(self, verdict: Verdict, own: Budget, room: Room) -> Iterator[Input]:
        resource = verdict.resource
        began = bool(active(verdict.record))
        places = own.partitions
        for tp, wanted in _largest_first(verdict, self.snapshot):
            yield Input(
                tp,
                wanted,
                resource,
                self.snapshot,
                self.rules,
                self.recent,
                room,
                self.budget,
                own,
                self.shared[resource.namespace],
                moving=began or own.partitions > places,
                expired=verdict.expired,
                claimed_by=self.claims.of(tp, resource),
            )


def admit(
    verdicts: Sequence[Verdict], snapshot: Snapshot, rules: ClusterRules, recent: Recent
) -> tuple[list[Verdict], dict[TopicPartition, float]]:
    """Return the verdicts with what becomes of the partitions that wait, and since when brokers are silent about some.

    The verdicts come in the order of their resources' age: the older resource claims a partition.
    """
    claims = _claims(verdicts, snapshot, recent)
    stuck = stuck_moves(
        (tp for v in verdicts for tp, row in v.rows.items() if row.said(SayingKind.STALL, SayingKind.OVERDUE)), snapshot
    )
    ours = {tp for verdict in verdicts for tp in active(verdict.record)}
    whole = Budget(rules.limits.partitions_in_flight, rules.limits.moves_per_broker)
    small = rules.small_move_bytes
    take_in_flight(whole, snapshot, snapshot.reassignments, stuck | (snapshot.reassignments.keys() - ours), small)
    room = Room.of(snapshot, rules.limits.min_free_disk_percent, recent.reports.fresh(recent.now))
    for verdict in verdicts:
        _take_unlisted(whole, verdict.record, snapshot, small)
        _expect_unlisted(room, verdict.record, snapshot)
    shared = _shared_budgets(verdicts, snapshot, rules, stuck, small)
    _take_left_behind(shared, ours, snapshot, recent, small)
    ledger = Ledger(snapshot, rules, recent, room, whole, shared, claims)
    queues = [
        Queue(verdict, own := _own_budget(verdict, snapshot, stuck, small), ledger.inputs(verdict, own))
        for verdict in verdicts
    ]
    silent: dict[TopicPartition, float] = {}
    for queue, i in older_first(in_turn(queues, shared), claims.rivals):
        contested = i.tp in claims.rivals
        if contested:
            i = replace(i, claimed_by=claims.of(i.tp, i.resource))
        violation: Violation | None = None
        if i.resource.dry_run:
            row = _rehearse(i)
        elif not permission(i) and not existence(i) and i.done:
            row = _settle_at_target(i)
        elif violation := first_violation(ADMISSION, i):
            row = _held_back(i, violation)
            if violation.check is silence:
                silent[i.tp] = recent.silence.get(i.tp, recent.now)
        else:
            row = _begin(i)
        queue.rows[i.tp] = row
        if contested and _claims_it(i, row, violation):
            claims.owners.setdefault(i.tp, i.resource)
    return [queue.verdict.with_rows(queue.rows) for queue in queues], silent


def _claims_it(i: Input, row: Row, violation: Violation | None) -> bool:
    """Whether the partition is kept from younger resources: it has begun, or begins without a user."""
    if row.entry:
        return row.entry.active
    wishes = i.resource.dry_run or i.resource.spec.suspend
    return not wishes and (violation is None or not needs_user(i, violation))


def _rehearse(i: Input) -> Row:
    if not permission(i) and not existence(i) and i.done:
        return waiting(PartitionState.COMPLETED)
    if violation := first_violation(DRY_RUN, i):
        return waiting(BLOCKED, violation.problem)
    i.room.rehearse(i.tp, i.directories)
    return waiting(PENDING, would_move(i))


def _held_back(i: Input, violation: Violation) -> Row:
    if violation.check is budget:
        reserve(i)
    if not fails(i, violation):
        return waits(i, violation)
    if existence(i):
        return _failed(i, violation.problem.reason, topic_id="", original=())
    return _failed(i, violation.problem.reason, i.topic.id, i.current)


def _failed(i: Input, reason: Reason, topic_id: str, original: tuple[int, ...]) -> Row:
    return Row(Entry(topic_id, original, i.target, State.FAILED, recorded_problem(reason), i.wanted.named))


def _begin(i: Input) -> Row:
    if i.in_flight:
        return supersede(i)
    source = i.partition.leader
    i.room.expect(i.tp, i.directories)
    i.budget.take(i.slots, source)
    i.own.take(i.slots, source)
    i.shared.take(i.slots, source)
    to_come = tuple((b, path) for b, path in sorted(i.directories.items()) if b in i.added and path != ANY_LOG_DIR)
    directed = AlterLogDirs(i.tp, to_come) if to_come else None
    allow = i.resource.spec.replication_factor_change is ReplicationFactorChange.ALLOW
    alter = Alter(i.tp, i.target, allow, Judged(i.topic.id, frozenset(i.current)), directed)
    return Row(_entry(i, State.SUBMITTING), (directed, alter) if directed else (alter,))


def _settle_at_target(i: Input) -> Row:
    """Settle a partition that is where it should be, without any check; at most its leader is elected.

    While metadata may be stale the partition waits, and so does an election while nothing may start.
    """
    elect = i.resource.spec.preferred_leader is PreferredLeader.ELECT and i.partition.leader != i.target[0]
    in_sync = i.partition.isr >= set(i.target)
    held = first_violation((hold, idle), i)
    if settled(i) or (elect and held):
        return waiting(PENDING, held.problem if held else None)
    if in_sync and not elect:
        return Row(_entry(i, State.COMPLETED))
    if problem := claim(i):  # another one may move it away before this one is settled
        return waiting(BLOCKED, problem)
    return Row(_entry(i, State.IN_FLIGHT if i.log_dirs else State.SETTLING), (Elect(i.tp),) if in_sync else ())


def _entry(i: Input, state: State) -> Entry:
    return Entry(i.topic.id, i.partition.replicas, i.target, state, log_dirs=tuple(sorted(i.log_dirs.items())))


def _claims(verdicts: Sequence[Verdict], snapshot: Snapshot, recent: Recent) -> Claims:
    # what a status still says is held is held: killed now, the next process would read that
    held = {
        tp: v.resource
        for v in verdicts
        for record in (v.resource.record, v.record)
        for tp, entry in active(record).items()
        if entry.state in HOLDING and (recent.in_doubt(tp, entry) or not snapshot.lost(tp, entry.topic_id))
    }
    first: dict[TopicPartition, str] = {}
    rivals: dict[TopicPartition, list[str]] = {}
    for verdict in verdicts:
        if verdict.resource.deleted:
            continue
        uid = verdict.resource.uid
        for tp in verdict.resource.asked:
            if tp not in verdict.record and (oldest := first.setdefault(tp, uid)) != uid:
                rivals.setdefault(tp, [oldest]).append(uid)
    return Claims(held, rivals)


def _largest_first(verdict: Verdict, snapshot: Snapshot) -> list[tuple[TopicPartition, PartitionEntry]]:
    """Return the partitions to judge, the largest first; those of a dry run in the order of its entries."""
    resource = verdict.resource
    if resource.deleted:
        return []
    waiting = [(tp, wanted) for tp, wanted in resource.asked.items() if tp not in verdict.record]

    def size(one: tuple[TopicPartition, PartitionEntry]) -> int:
        tp, wanted = one
        copied = bytes_to_copy(tp, None, wanted.replicas, wanted.named, snapshot)
        return copied.total if copied else 0

    return waiting if resource.dry_run else sorted(waiting, key=size, reverse=True)


def _take_unlisted(taken: Budget, record: Record, snapshot: Snapshot, small: int) -> None:
    for tp, entry in unlisted(record, snapshot).items():
        if entry.may_land:
            taken.take(slots_of(tp, entry.added, snapshot, small), snapshot.leader(tp))
        else:
            taken.take((), None)


def _expect_unlisted(room: Room, record: Record, snapshot: Snapshot) -> None:
    for tp, entry in unlisted(record, snapshot).items():
        if entry.may_land:
            named = dict(entry.log_dirs)
            room.expect(tp, {broker: named.get(broker, ANY_LOG_DIR) for broker in entry.added})


def _own_budget(verdict: Verdict, snapshot: Snapshot, stuck: Collection[TopicPartition], small: int) -> Budget:
    concurrency = verdict.resource.spec.concurrency
    own = Budget(
        concurrency.partitions if concurrency else None,
        concurrency.moves_per_broker if concurrency else None,
    )
    _take_record(own, verdict.record, snapshot, stuck, small)
    return own


def _shared_budgets(
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
    rules: ClusterRules,
    stuck: Collection[TopicPartition],
    small: int,
) -> dict[str, Budget]:
    """Return what each namespace has in flight, and may have."""
    shared: dict[str, Budget] = {}
    for verdict in verdicts:
        namespace = verdict.resource.namespace
        limits = rules.limits_of(namespace)
        budget = Budget(limits.partitions_in_flight, limits.moves_per_broker)
        _take_record(shared.setdefault(namespace, budget), verdict.record, snapshot, stuck, small)
    return shared


def _take_left_behind(
    shared: Mapping[str, Budget], ours: Collection[TopicPartition], snapshot: Snapshot, recent: Recent, small: int
) -> None:
    """Count what a namespace has in flight that no resource holds any more, such as after deletionPolicy: Orphan."""
    for tp, holder in recent.holders.items():
        if tp not in ours and holder.namespace in shared:
            take_in_flight(shared[holder.namespace], snapshot, [tp], [tp], small)


def _take_record(
    taken: Budget, record: Record, snapshot: Snapshot, stuck: Collection[TopicPartition], small: int
) -> None:
    take_in_flight(taken, snapshot, active(record).keys() & snapshot.reassignments.keys(), stuck, small)
    _take_unlisted(taken, record, snapshot, small)
