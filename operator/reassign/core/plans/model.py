"""A ReassignmentPlan as the core sees it, what planning made of it, its waves, and what can be done about them.

The plan is its waves: PartitionReassignments in its namespace, labelled with its uid. Taking that label off takes one
out of the plan. numpy stays out of here: the arrays live and die in the process that plans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from reassign.api.common import Condition, ConditionStatus
from reassign.api.digest import hashed, spec_digest
from reassign.api.goal import EXCLUDED_BY_DEFAULT
from reassign.api.partition_reassignment import PartitionReassignmentSpec
from reassign.api.reassignment_plan import (
    Approval,
    BalanceStatus,
    LowerBound,
    PlanMoves,
    ReassignmentPlanSpec,
    ReassignmentPlanStatus,
    Shares,
    Unmet,
    Wave,
    WaveState,
)
from reassign.core.model.problem import Problem
from reassign.core.model.read_back import PlanStatusReadBack
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.waits import PASSES
from reassign.errors import Reason

Manifest = Mapping[str, Any]
ObservedCluster = Snapshot | Problem
"""The cluster, with the topics of all waves; or why nothing may be begun on it."""
IsSettled = Callable[[TopicPartition], bool]
"""Whether what metadata shows of a partition that is not in flight can be believed."""


@dataclass(frozen=True)
class PlanResource:
    """One ReassignmentPlan."""

    uid: str
    version: int
    namespace: str
    name: str
    generation: int
    spec: ReassignmentPlanSpec
    status: PlanStatusReadBack
    has_finalizer: bool
    deleted: bool = False

    @cached_property
    def input_hash(self) -> str:
        """Hash of what a plan is made from: all of the spec but approval, suspend and windows.

        Naming the topics that are excluded by default is no change: older versions of the schema wrote them down.
        """
        parts = {"topics", "goal", "racks", "waves", "template"}
        dumped = self.spec.model_dump(mode="json", include=parts, exclude_defaults=True)
        if self.spec.topics.exclude == EXCLUDED_BY_DEFAULT:
            del dumped["topics"]["exclude"]
            if not dumped["topics"]:
                del dumped["topics"]
        return hashed(dumped)

    @property
    def planned(self) -> bool:
        """Whether status has a plan for the spec as it is."""
        return self.status.planned_input_hash == self.input_hash

    @cached_property
    def digest(self) -> str:
        """What an approval names. It comes from the waves that are carried out, whatever status says it is."""
        return plan_digest(self.status.waves)

    @property
    def approved(self) -> bool:
        """Whether the plan in status may be carried out."""
        return self.spec.approval is Approval.NOT_REQUIRED or self.spec.approved_digest == self.digest

    @property
    def retired(self) -> bool:
        """Whether status says that it has ended without being carried out."""
        return any(c.type == "Succeeded" and c.reason == Reason.RETIRED for c in self.status.conditions)

    @property
    def under_way(self) -> bool:
        """Whether it has begun, and has not ended."""
        states = {wave.state for wave in self.status.waves}
        begun = bool(states & {WaveState.RUNNING, WaveState.SUCCEEDED, WaveState.FAILED})
        return begun and states != {WaveState.SUCCEEDED} and not self.retired

    @property
    def wave_prefix(self) -> str:
        """What the names of its waves begin with: others for each plan that is made, since waves that are done stay."""
        return f"{self.name}-{hashlib.sha256(f'{self.uid}/{self.generation}'.encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Planned:
    """A plan that was made from a spec."""

    input_hash: str
    """PlanResource.input_hash of the spec."""
    manifests: tuple[Manifest, ...]
    """The waves, in their order."""
    waves: tuple[Wave, ...]
    """What status says of each wave, in the same order."""
    moves: PlanMoves
    lower_bound: LowerBound
    balance: BalanceStatus
    unmet: tuple[Unmet, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanOrder:
    """What the owner of a plan has decided about it. The approval and suspend of the plan itself do not count then."""

    waves: int = 0
    """How many of its waves, from the first, may run."""
    starts: bool = True
    """Whether the next of these may be let go now; else what has begun goes on, and nothing begins."""
    retired: bool = False
    """Whether it starts nothing more, and ends."""
    lost: frozenset[int] = frozenset()
    """Brokers that are lost: moves to them cannot end."""


def plan_digest(waves: Sequence[Wave]) -> str:
    """Return the digest of all that these waves do, in their order."""
    return hashed([[wave.name, wave.digest] for wave in waves])


@dataclass(frozen=True)
class GoalSeen:
    """How much of the goal is not reached, as it was observed after the last wave."""

    unmet: tuple[Unmet, ...]
    after: tuple[Shares, ...] | None = None
    """How even the loads are; None where only the drain and the replication factor were looked at."""
    unregistered: tuple[int, ...] = ()
    """ReassignmentPlanStatus.unregistered_brokers."""


@dataclass(frozen=True, slots=True)
class GoalUnseen:
    """Why the cluster could not be observed for the goal."""

    problem: Problem
    retry_seconds: float | None = None
    """How long after that it is tried again; None where something has to change first."""


def manifest_digest(manifest: Manifest) -> str:
    """Return the digest of the PartitionReassignment that a manifest makes."""
    return spec_digest(PartitionReassignmentSpec.model_validate(manifest["spec"]))


# --- One wave ---


def state_of(wave: Resource | Settled) -> WaveState:
    """Return how far a wave is."""
    if isinstance(wave, Settled):
        return WaveState.SUCCEEDED if wave.succeeded else WaveState.FAILED
    if wave.deleted:
        return WaveState.MISSING
    if ended(wave):
        return WaveState.SUCCEEDED if says(wave, "Succeeded") else WaveState.FAILED
    return WaveState.RUNNING if begun(wave) or not wave.spec.suspend else WaveState.PENDING


def ended(wave: Resource) -> bool:
    """Whether all its partitions are settled, well or not: it moves nothing any more by itself."""
    settled = wave.up_to_date and wave.status.completion_time is not None and not active(wave.record)
    return settled and (says(wave, "Succeeded") or says(wave, "Failed"))


def unended(waves: Sequence[Resource | Settled]) -> list[Resource]:
    """Return the waves that have not ended."""
    return [wave for wave in waves if isinstance(wave, Resource) and not ended(wave)]


def begun(wave: Resource) -> bool:
    """Whether anything was altered for a wave: not so where all partitions were at their target before."""
    return any(entry.original != entry.target or entry.log_dirs or entry.problem for entry in wave.record.values())


def stall_of(wave: Resource) -> Condition | None:
    """Return the condition that says why a wave does not come nearer to its end."""
    return _true(wave, "Stalled") if wave.up_to_date else None


def obstacle_of(wave: Resource) -> Condition | None:
    """Return the condition that says why a wave is stalled, or what it waits for."""
    ready = _ready(wave)
    waits = ready and wave.up_to_date and ready.status is ConditionStatus.FALSE and ready.reason in PASSES
    return stall_of(wave) or (ready if waits else None)


def held_of(wave: Resource) -> Condition | None:
    """Return the condition that says why a wave is stalled, or suspended by the brake and not by its own spec."""
    ready = _ready(wave)
    braked = ready and wave.up_to_date and not wave.spec.suspend and ready.reason == Reason.SUSPENDED
    return stall_of(wave) or (ready if braked else None)


def _ready(wave: Resource) -> Condition | None:
    return next((c for c in wave.status.conditions if c.type == "Ready"), None)


def says(wave: Resource, type: str) -> bool:
    """Whether a condition is True."""
    return _true(wave, type) is not None


def _true(wave: Resource, type: str) -> Condition | None:
    return next((c for c in wave.status.conditions if c.type == type and c.status is ConditionStatus.TRUE), None)


@dataclass(frozen=True, slots=True)
class Unread:
    """A wave that this version of the operator cannot read, with what says why."""

    uid: str
    version: int
    namespace: str
    name: str
    ended: bool
    """Whether its status says that it came to an end, and that it holds nothing."""
    deleted: bool
    problem: Problem


# --- What can be done ---


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put our finalizer on the object: its deletion waits for us."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take our finalizer off the object."""


@dataclass(frozen=True, slots=True)
class MakePlan:
    """Work the plan out."""


@dataclass(frozen=True, slots=True)
class ObserveGoal:
    """Look at the whole cluster, and compare it with the goal."""


@dataclass(frozen=True, slots=True)
class CreateWave:
    """Make a wave; a wave that exists with the same spec will do."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class StartWave:
    """Let a wave go."""

    wave: Resource


@dataclass(frozen=True, slots=True)
class SuspendWave:
    """Suspend a wave: it starts no new moves."""

    wave: Resource


@dataclass(frozen=True, slots=True)
class DeleteWave:
    """Delete a wave, which cancels what it has in flight."""

    wave: Resource | Unread


@dataclass(frozen=True, slots=True)
class CancelEntries:
    """Take partitions out of a wave, which cancels what it has in flight of them, and nothing else."""

    wave: Resource
    partitions: frozenset[TopicPartition]


PlanStep = (
    AddFinalizer
    | RemoveFinalizer
    | MakePlan
    | ObserveGoal
    | CreateWave
    | StartWave
    | SuspendWave
    | DeleteWave
    | CancelEntries
)


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """Steps to take for a plan, and its status meanwhile."""

    steps: Sequence[PlanStep]
    status: ReassignmentPlanStatus
    changes: datetime | None = None
    """When a window of the plan opens or closes next."""
