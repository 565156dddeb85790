"""The tick: decide what to do about all resources of a cluster, gate it by what could be prepared, settle what it met.

Three pure functions, each from values to a new `Decision`. The controller's loop, the simulator of the tests and
`kubectl kafka-reassign verify` call these same functions. Nothing is remembered but the records, which are in
status, and the `Memory`, which comes in and goes out.

Resources are judged in the order of their age, so that the older one goes first where two want the same partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reassign.api.kafka_cluster import Execution
from reassign.api.partition_reassignment import RecordState
from reassign.core.checks.deadline import deadline_passed
from reassign.core.model.configs import Change
from reassign.core.model.memory import Recent
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import Cancel, Outcome, Step
from reassign.core.model.verdict import Verdict
from reassign.core.moves.admit import admit
from reassign.core.moves.adopt import with_adopted
from reassign.core.moves.brake import Moves, Undo, foreign, refusals, undo_foreign, undone_by
from reassign.core.moves.follow import follow
from reassign.core.moves.pacing import Pacer
from reassign.core.moves.settle import settle_steps
from reassign.core.moves.stall import stalls
from reassign.core.moves.undo import release, undo
from reassign.core.throttle.desired import bounded
from reassign.core.throttle.stage import (
    ConfigRead,
    ThrottleDecision,
    ThrottleMemory,
    decide_throttles,
    gate_throttles,
)
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Memory:
    """What one process remembers from tick to tick. `kept` are the moves of others that were kept before a cancel."""

    recent: Recent
    throttle: ThrottleMemory
    pacer: Pacer = field(default_factory=Pacer)
    kept: Moves = field(default_factory=dict)

    @classmethod
    def begin(cls, now: float) -> Memory:
        """Of a process that has just started, by a monotonic clock."""
        return cls(Recent(started=now), ThrottleMemory(RecentChanges(started=now)))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a tick is to do, and by which observation.

    `brake` are the cancels of other clients' moves, `keep` the moves to keep before anything is cancelled, and
    `errors` the resources that a bug keeps from being judged. `memory` is what the next tick remembers.
    """

    snapshot: Snapshot
    configs: ConfigRead
    verdicts: tuple[Verdict, ...]
    memory: Memory
    throttle: ThrottleDecision = field(default_factory=ThrottleDecision)
    brake: Undo | None = None
    keep: Moves = field(default_factory=dict)
    errors: tuple[tuple[Resource, Exception], ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, each once."""
        own = (step for verdict in self.verdicts for step in verdict.steps)
        return tuple(dict.fromkeys([*own, *(self.brake.cancels if self.brake else ())]))


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done before the steps, and ended `at` a moment of the monotonic clock.

    `resources` are those that may act, as they are now that their records are written, by uid. `changes` are what
    changes of configurations met. `not_kept` is why what the brake undoes could not be kept.
    """

    resources: Mapping[str, Resource]
    changes: Mapping[Change, Outcome]
    at: float
    not_kept: Problem | None = None


def decide(
    resources: Sequence[Resource],
    snapshot: Snapshot,
    configs: ConfigRead,
    memory: Memory,
    policy: Policy,
    now: datetime,
) -> Decision:
    """The decision about all resources, and those that a bug keeps from being judged, apart.

    What such a resource has in flight is known to no verdict: so that nothing is built upon it, nothing new starts.
    Raises what no single resource explains.
    """
    try:
        return _decide(resources, snapshot, configs, memory, policy, now)
    except Exception:
        errors = [(r, e) for r in resources if (e := _error(r, snapshot, configs, memory, policy, now))]
        if not errors:
            raise
    failing = {resource.uid: resource for resource, _ in errors}
    holding = [f"{r.namespace}/{r.name}" for r in failing.values() if r.status_lost or active(r.record)]
    if holding:
        policy = replace(policy, hold=policy.hold or _wait_for(holding[0]))
    others = [resource for resource in resources if resource.uid not in failing]
    return replace(_decide(others, snapshot, configs, memory, policy, now), errors=tuple(errors))


def _decide(
    resources: Sequence[Resource],
    snapshot: Snapshot,
    configs: ConfigRead,
    memory: Memory,
    policy: Policy,
    now: datetime,
) -> Decision:
    recent = memory.recent
    by_age = sorted((bounded(r, policy.throttle) for r in resources), key=lambda r: r.age_key)
    verdicts = [Verdict(r, with_adopted(r, snapshot, policy), expired=deadline_passed(r, now)) for r in by_age]
    verdicts = [undo(verdict, snapshot, recent, policy, now) for verdict in verdicts]
    verdicts = [release(follow(verdict, snapshot, recent, policy)) for verdict in verdicts]
    verdicts, tracks = stalls(verdicts, snapshot, recent, policy)
    verdicts, silence = admit(verdicts, snapshot, policy, recent)
    verdicts, throttle, throttle_memory = decide_throttles(
        verdicts, snapshot, configs, memory.throttle, recent, policy.throttle
    )
    recent = replace(recent, tracks=tracks, silence=silence, cancelled=recent.cancelled & _cancelling(verdicts))
    brake = _brake(verdicts, snapshot, recent, policy)
    steps = [step for verdict in verdicts for step in verdict.steps]
    undone = undone_by([*steps, *brake.cancels], snapshot) if brake else {}
    kept = memory.kept if brake else {}
    return Decision(
        snapshot=snapshot,
        configs=configs,
        verdicts=tuple(verdicts),
        memory=Memory(recent, throttle_memory, memory.pacer.admitted(verdicts, snapshot), kept),
        throttle=throttle,
        brake=brake,
        keep={tp: replicas for tp, replicas in undone.items() if kept.get(tp) != replicas},
    )


def gate(decision: Decision, prepared: Prepared) -> Decision:
    """The decision without the steps that may not be taken: their record is not written, their throttle could not be
    set, or what they undo could not be kept.

    CancelAll is held up by no record: what it would cancel for a resource is cancelled as another client's.
    """
    verdicts, throttle = gate_throttles(
        decision.verdicts,
        decision.snapshot,
        decision.configs,
        decision.throttle,
        decision.memory.throttle,
        prepared.changes,
        prepared.at,
    )
    ready = [
        replace(v, resource=prepared.resources[v.resource.uid])
        for v in verdicts
        if v.resource.uid in prepared.resources
    ]
    unready = (v for v in verdicts if v.resource.uid not in prepared.resources)
    brake = decision.brake
    kept: Moves = {**decision.memory.kept, **decision.keep}
    if brake:
        orphaned = (step for verdict in unready for step in verdict.steps if isinstance(step, Cancel))
        brake = replace(brake, cancels=(*brake.cancels, *orphaned))
    if brake and prepared.not_kept:
        ready = [replace(v, steps=tuple(s for s in v.steps if not isinstance(s, Cancel))) for v in ready]
        brake, kept = replace(brake, cancels=(), not_kept=prepared.not_kept), decision.memory.kept
    return replace(
        decision,
        verdicts=tuple(ready),
        brake=brake,
        memory=replace(decision.memory, throttle=throttle, kept=kept),
    )


def settle(decision: Decision, outcomes: Mapping[Step, Outcome], at: float) -> Decision:
    """The decision after its steps, which ended at this moment: records, what to say of each partition, memory."""
    recent = decision.memory.recent
    verdicts = []
    for verdict in decision.verdicts:
        verdict, recent = settle_steps(verdict, outcomes, recent, at)
        verdicts.append(verdict)
    if decision.brake:
        recent = recent.remember(refusals(decision.brake, outcomes), at)
    return replace(decision, verdicts=tuple(verdicts), memory=replace(decision.memory, recent=recent))


def _error(
    resource: Resource, snapshot: Snapshot, configs: ConfigRead, memory: Memory, policy: Policy, now: datetime
) -> Exception | None:
    try:
        _decide([resource], snapshot, configs, memory, policy, now)
    except Exception as error:
        return error
    return None


def _wait_for(name: str) -> Problem:
    return Problem(
        Reason.INTERNAL_ERROR,
        f"by a bug of the operator the PartitionReassignment {name} cannot be judged, and it may have moves in "
        "flight: nothing new starts until it is gone; see its status",
    )


def _cancelling(verdicts: Sequence[Verdict]) -> set[tuple[str, TopicPartition]]:
    return {(v.resource.uid, tp) for v in verdicts for tp, e in v.record.items() if e.state is RecordState.CANCELLING}


def _brake(verdicts: Sequence[Verdict], snapshot: Snapshot, recent: Recent, policy: Policy) -> Undo | None:
    if policy.execution is not Execution.CANCEL_ALL:
        return None
    ours = {tp for v in verdicts for record in (v.resource.record, v.record) for tp in active(record)}
    return undo_foreign(foreign(ours, snapshot), snapshot, recent)
