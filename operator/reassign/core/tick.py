"""The tick: decide what to do about all resources of a cluster, gate it by what could be prepared, settle what it met.

Pure functions, each from values to a new `Decision`: `decide`, then `gate` after the throttles were changed, `recorded`
after the records were written, `kept` and `marked` after what the brake undoes was kept and noted, and `settle` after
the steps. `kubectl kafka-reassign verify` calls `decide` only. Nothing is remembered but the records, and the `Memory`,
which comes in and goes out.

Resources are judged in the order of their age, so that the older one goes first where two want the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.admission.admit import admit
from reassign.core.admission.pacing import Pacer
from reassign.core.brake import TargetReplicas, Undo, foreign, met_by, partitions_held_by, undo_foreign, undone_by
from reassign.core.checks.deadline import deadline_passed
from reassign.core.configs.desired import bounded
from reassign.core.configs.stage import (
    ConfigDecision,
    ConfigMemory,
    ConfigRead,
    decide_configs,
    gate_throttles,
    remember_configs,
)
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.configs import Change
from reassign.core.model.forwarding import Clock, Doubts
from reassign.core.model.memory import Recent, Touched
from reassign.core.model.permission import name_of
from reassign.core.model.problem import Names, Problem
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.row import Row
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import AlterLogDirs, Cancel, Outcome, Step
from reassign.core.model.verdict import Verdict
from reassign.core.partition.adopt import held_partitions, holders_of, unshown_moves, with_adopted
from reassign.core.partition.life import follow
from reassign.core.partition.outcomes import sent_through, settle_steps
from reassign.core.partition.stall import stalls
from reassign.core.partition.undo import release, undo
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Memory:
    """What one process remembers from one reconciliation to the next."""

    recent: Recent
    throttle: ConfigMemory
    pacer: Pacer = field(default_factory=Pacer)
    kept: TargetReplicas = field(default_factory=dict)
    """The moves of others that were kept before a cancel."""

    @classmethod
    def begin(cls, now: float) -> Memory:
        """Return the memory of a process that has just started, by a monotonic clock."""
        return cls(Recent(started=now), ConfigMemory(RecentChanges(started=now)))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reconciliation is to do, and by which observation. Each function of the tick returns a new one."""

    snapshot: Snapshot
    configs: ConfigRead
    execution: Execution
    verdicts: tuple[Verdict, ...]
    memory: Memory
    """What the next reconciliation remembers."""
    throttle: ConfigDecision = field(default_factory=ConfigDecision)
    brake: Undo | None = None
    """The cancels of other clients' moves."""
    keep: TargetReplicas = field(default_factory=dict)
    """The moves to keep before anything is cancelled."""
    errors: tuple[tuple[Resource | None, Exception], ...] = ()
    """The resources that a bug keeps from being judged; None stands for what no single resource explains."""

    @property
    def beginning(self) -> Mapping[Step, str]:
        """The steps that wait for a last check of what they were judged by, each with the uid of its resource."""
        return {step: verdict.resource.uid for verdict in self.verdicts for step in verdict.beginning}

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, each once."""
        own = (step for verdict in self.verdicts for step in verdict.steps)
        return tuple(dict.fromkeys([*own, *(self.brake.cancels if self.brake else ())]))

    def failed(self, error: Exception) -> Decision:
        """Return the decision after an error that no single resource explains."""
        return replace(self, errors=(*self.errors, (None, error)))


def doubts(resources: Sequence[Resource], throttle: RecordedConfigs | None, memory: Memory) -> Doubts:
    """Return what the next observation is to settle: writes without an answer, and metadata that may be stale."""
    recent, changes = memory.recent, memory.throttle.recent
    entries = (recent.open_write(tp, entry) for resource in resources for tp, entry in resource.record.items())
    moves = [*recent.unanswered.values(), *(write for write in entries if write)]
    return recent.doubts_about(moves, changes.in_doubt(throttle), (resource.named for resource in resources))


def decide(
    resources: Sequence[Resource],
    snapshot: Snapshot,
    configs: ConfigRead,
    memory: Memory,
    rules: ClusterRules,
    now: datetime,
) -> Decision:
    """Decide about all resources: first what brings moves back, which stands whatever fails after it.

    A resource that a bug keeps from being judged is in `errors`, and of it only the undo is decided. Its other moves
    are unknown, so no move starts on the cluster. After an error that no single resource explains only the undo is
    left: of all resources, or, where the throttles alone cannot be decided, beside what was judged.
    """
    recent = replace(memory.recent, clock=Clock(memory.recent.now, now))
    inputs = _Inputs(snapshot, configs, replace(memory, recent=recent), rules, now)
    try:
        return _remembered(_throttled(_judged(resources, inputs), inputs))
    except Exception:
        return _remembered(_undone_at_least(resources, inputs))


class _Inputs(NamedTuple):
    """What resources are judged by."""

    snapshot: Snapshot
    configs: ConfigRead
    memory: Memory
    rules: ClusterRules
    now: datetime


def _undone(resources: Sequence[Resource], inputs: _Inputs) -> tuple[list[Verdict], Recent]:
    """Judge what brings moves back, and nothing else."""
    snapshot, _, memory, rules, now = inputs
    recent = memory.recent
    by_age = sorted((bounded(r, rules.throttle) for r in resources), key=lambda r: r.age_key)
    held = held_partitions(by_age, snapshot)
    records = [with_adopted(r, snapshot, rules, recent, held) for r in by_age]
    verdicts = [
        Verdict.of(r, record, expired=deadline_passed(r, now)) for r, record in zip(by_age, records, strict=True)
    ]
    recent = replace(recent, holders=holders_of(verdicts, snapshot, recent.holders))
    recent = recent.awaiting(unshown_moves(verdicts, snapshot, recent))
    return [undo(verdict, snapshot, recent, rules, now) for verdict in verdicts], recent


def _judged(resources: Sequence[Resource], inputs: _Inputs) -> Decision:
    """Judge all but the throttles, which are left as they are."""
    snapshot, _, memory, rules, _ = inputs
    verdicts, recent = _undone(resources, inputs)
    verdicts = [release(follow(verdict, snapshot, recent, rules)) for verdict in verdicts]
    verdicts, tracks = stalls(verdicts, snapshot, recent, rules)
    verdicts, silence = admit(verdicts, snapshot, rules, recent)
    return _undecided(verdicts, replace(memory, recent=replace(recent, tracks=tracks, silence=silence)), inputs)


def _undecided(verdicts: Sequence[Verdict], memory: Memory, inputs: _Inputs) -> Decision:
    """Return the decision that leaves the throttles as they are."""
    snapshot, configs, _, rules, _ = inputs
    untouched = ConfigDecision(rules.throttle.record, untouched=True)
    return Decision(snapshot, configs, rules.execution, tuple(verdicts), memory, untouched)


def _throttled(decision: Decision, inputs: _Inputs) -> Decision:
    """Decide about the throttles that the moves need."""
    memory, rules = decision.memory, inputs.rules
    verdicts, throttle, after = decide_configs(
        decision.verdicts,
        inputs.snapshot,
        inputs.configs,
        memory.throttle,
        memory.recent,
        replace(rules.throttle, permission=rules.permission, cordons=rules.wanted_cordons),
    )
    recent = replace(memory.recent, lifting=after.cordons.lifted_lately(memory.recent.now))
    memory = replace(memory, recent=recent, throttle=after)
    return replace(decision, verdicts=tuple(verdicts), throttle=throttle, memory=memory)


def _undone_at_least(resources: Sequence[Resource], inputs: _Inputs) -> Decision:
    """Decide what can be decided after an error: each resource is tried alone."""
    alone = [(resource, *_alone(resource, inputs)) for resource in resources]
    errors = [(resource, error) for resource, _, error in alone if error]
    if holding := next((r for r, _ in errors if r.record_lost or active(r.record)), None):
        inputs = inputs._replace(rules=inputs.rules.held_by(_wait_for(holding)))
    try:
        decision = _judged([resource for resource, _, error in alone if error is None], inputs)
    except Exception as error:
        decision, errors = _undecided((), inputs.memory, inputs).failed(error), []
    else:
        try:
            decision = _throttled(decision, inputs)
        except Exception as error:
            decision = _only_undone(decision).failed(error)
    known = {verdict.resource.uid for verdict in decision.verdicts}
    undone = (replace(v, partial=True) for _, v, _ in alone if v and v.resource.uid not in known)
    return replace(decision, verdicts=(*decision.verdicts, *undone), errors=(*errors, *decision.errors))


def _alone(resource: Resource, inputs: _Inputs) -> tuple[Verdict | None, Exception | None]:
    """Judge one resource alone; return its undo, unless that fails too, and the error."""
    verdict = None
    try:
        [verdict], _ = _undone([resource], inputs)
        _throttled(_judged([resource], inputs), inputs)
    except Exception as error:
        return verdict, error
    return verdict, None


def _remembered(decision: Decision) -> Decision:
    """Forget what no verdict is about any more."""
    recent, verdicts = decision.memory.recent, decision.verdicts
    recent = replace(
        recent,
        cancelled=recent.cancelled & _cancelling(verdicts),
        answered=recent.answered & {tp for v in verdicts for tp in active(v.record)},
        doubts={k: p for k, p in recent.doubts.items() if any(k[0] in v.resource.named for v in verdicts)},
    )
    return replace(decision, memory=replace(decision.memory, recent=recent))


def gate(decision: Decision, changes: Mapping[Change, Outcome], at: float) -> Decision:
    """Withhold the steps whose throttle could not be set; the changes ended at this moment.

    The gate comes before the records: a cancel or a move that is recorded has passed it.
    """
    for part in (_changed, _held_back):
        try:
            decision = part(decision, changes, at)
        except Exception as error:
            decision = _only_undone(decision).failed(error)
    stamped, recent = [], decision.memory.recent
    for verdict in decision.verdicts:
        try:
            verdict, recent = sent_through(verdict, recent, at)
        except Exception as error:
            decision, verdict = decision.failed(error), _only_undo(verdict)
        stamped.append(verdict)
    memory = replace(decision.memory, recent=recent)
    return replace(decision, verdicts=tuple(stamped), memory=memory)


def _changed(decision: Decision, changes: Mapping[Change, Outcome], at: float) -> Decision:
    """Remember what became of the changes."""
    memory = decision.memory
    throttle = remember_configs(memory.throttle, decision.throttle, changes, at)
    recent = memory.recent.remember_changes(changes)
    return replace(decision, memory=replace(memory, recent=recent, throttle=throttle))


def _held_back(decision: Decision, changes: Mapping[Change, Outcome], at: float) -> Decision:
    """Hold back the moves whose throttle could not be set."""
    memory, snapshot = decision.memory, decision.snapshot
    recent = memory.throttle.recent
    verdicts = gate_throttles(decision.verdicts, snapshot, decision.configs, decision.throttle, recent, changes)
    memory = replace(memory, pacer=memory.pacer.admitted(verdicts, snapshot))
    return replace(decision, verdicts=tuple(verdicts), memory=memory)


def recorded(
    decision: Decision, resources: Mapping[str, Resource], refused: Mapping[str, Problem] | None = None
) -> Decision:
    """Keep the steps of the resources whose record was written, by uid.

    Of all others keep only the steps that undo: they need no new record. A resource whose record the API server
    `refused` is tried again after growing delays. With CancelAll, also cancel every move that no resource holds; the
    moves of a resource that could not be judged count as another client's.
    """
    met = [(v, problem) for v in decision.verdicts if (problem := (refused or {}).get(v.resource.uid))]
    recent = decision.memory.recent.put_off({v.resource.uid: problem for v, problem in met if v.starts})
    memory = replace(decision.memory, recent=recent)
    verdicts = [
        replace(v, resource=resources[v.resource.uid]) if v.resource.uid in resources else _only_undo(v)
        for v in decision.verdicts
        if not v.release
    ]
    decision = replace(decision, verdicts=tuple(verdicts), memory=memory)
    if decision.execution is not Execution.CANCEL_ALL:
        return replace(decision, memory=replace(decision.memory, kept={}))
    others = foreign(partitions_held_by(v.resource for v in verdicts), decision.snapshot)
    try:
        decision = replace(decision, brake=undo_foreign(others, decision.snapshot, decision.memory.recent))
    except Exception as error:  # what is ours goes back all the same
        decision = decision.failed(error)
    undone = undone_by(decision.steps, decision.snapshot)
    kept = decision.memory.kept
    return replace(decision, keep={tp: replicas for tp, replicas in undone.items() if kept.get(tp) != replicas})


def kept(decision: Decision, problem: Problem | None) -> Decision:
    """Remember what was kept of the moves to cancel; after a problem, withhold the cancel of all that was not."""
    if problem is None or decision.brake is None:
        moves: TargetReplicas = {**decision.memory.kept, **decision.keep}
        return replace(decision, memory=replace(decision.memory, kept=moves))

    was_kept = decision.memory.kept.keys() - decision.keep.keys()
    verdicts = tuple(  # what is being deleted goes back by its own record
        v
        if v.resource.deleted
        else _withhold(v, lambda row, step: isinstance(step, Cancel) and step.tp not in was_kept)
        for v in decision.verdicts
    )
    cancels = tuple(cancel for cancel in decision.brake.cancels if cancel.tp in was_kept)
    return replace(decision, verdicts=verdicts, brake=replace(decision.brake, cancels=cancels, not_kept=problem))


def marked(decision: Decision, problem: Problem | None) -> Decision:
    """Withhold the cancels of other clients' moves after a problem: it could not be recorded that they are sent."""
    if problem is None or decision.brake is None:
        return decision
    return replace(decision, brake=replace(decision.brake, cancels=(), not_kept=problem))


def unanswered(decision: Decision, at: float) -> Memory:
    """Return what is remembered while the steps have no answer, should the reconciliation end before that."""
    facts = [Touched(step.tp, False) for step in decision.steps if not isinstance(step, AlterLogDirs)]
    return replace(decision.memory, recent=decision.memory.recent.remember(facts, at))


def settle(
    decision: Decision, outcomes: Mapping[Step, Outcome], at: float, refused: Mapping[str, Problem] | None = None
) -> Decision:
    """Take what the steps met into records, sayings and memory; the steps ended at this moment.

    A resource, by uid, that the API server `refused` to show right before is tried again after growing delays.
    """
    recent = decision.memory.recent.put_off(refused or {})
    verdicts = []
    for verdict in decision.verdicts:
        verdict, recent = settle_steps(verdict, outcomes, recent, at)
        verdicts.append(verdict)
    if decision.brake:
        recent = recent.remember(met_by(decision.brake, outcomes), at)
    return replace(decision, verdicts=tuple(verdicts), memory=replace(decision.memory, recent=recent))


def _only_undone(decision: Decision) -> Decision:
    """Withhold all that begins."""
    return replace(decision, verdicts=tuple(map(_only_undo, decision.verdicts)))


def _only_undo(verdict: Verdict) -> Verdict:
    """Return the verdict with the steps that bring something back, and without all others."""
    return _withhold(verdict, lambda row, step: not row.goes_back)


def _withhold(verdict: Verdict, withheld: Callable[[Row, Step], bool]) -> Verdict:
    """Return the verdict without some of its steps, as if they had not been decided."""
    rows = {}
    for tp, row in verdict.rows.items():
        if steps := [step for step in row.steps if withheld(row, step)]:
            rows[tp] = row.withhold(steps, verdict.resource.record.get(tp))
    return verdict.with_rows(rows)


def _wait_for(resource: Resource) -> Problem:
    return Problem(
        Reason.INTERNAL_ERROR,
        "by a bug of the operator the PartitionReassignment ",
        Names((name_of(resource),), "of another namespace"),
        " cannot be judged, and it may have moves in flight: nothing new starts until it is gone; see its status",
    )


def _cancelling(verdicts: Sequence[Verdict]) -> set[tuple[str, TopicPartition]]:
    return {(v.resource.uid, tp) for v in verdicts for tp, e in v.record.items() if e.state is State.CANCELLING}
