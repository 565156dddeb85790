"""A plan whose waves run in memory, ticked against the core: nothing moves here but what a wave is told to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from reassign.api.common import Condition, ConditionStatus
from reassign.api.partition_reassignment import (
    PartitionDetail,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
    PartitionState,
)
from reassign.api.reassignment_plan import (
    BalanceStatus,
    LowerBound,
    PlanMoves,
    ReassignmentPlanSpec,
    ReassignmentPlanStatus,
    Unmet,
    Wave,
    WaveState,
)
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import LogDirs, TopicPartition
from reassign.core.model.states import State
from reassign.core.plans.decide import decide_plan
from reassign.core.plans.goal import is_watched, not_reached, unregistered
from reassign.core.plans.model import (
    AddFinalizer,
    CancelEntries,
    CreateWave,
    DeleteWave,
    GoalSeen,
    GoalUnseen,
    MakePlan,
    Manifest,
    ObserveGoal,
    PlanDecision,
    Planned,
    PlanOrder,
    PlanResource,
    PlanStep,
    RemoveFinalizer,
    StartWave,
    SuspendWave,
    manifest_digest,
)
from tests.unit import kstatus
from tests.unit.sim import START, SimKafka

OLD, NEW = (1, 2, 3), (4, 2, 3)
Target = Mapping[TopicPartition, tuple[int, ...]]


@dataclass
class SimWave:
    """One PartitionReassignment: `moving` while it has partitions in flight."""

    uid: str
    name: str
    spec: PartitionReassignmentSpec
    moving: bool = False
    outcome: str | None = None
    """Succeeded or Failed, at its end."""
    deleted: bool = False
    still: set[TopicPartition] = field(default_factory=set)
    """Partitions that have not begun, though others have."""
    done: set[TopicPartition] = field(default_factory=set)
    """Partitions that are at their target while others move."""
    going_back: set[TopicPartition] = field(default_factory=set)
    """Partitions whose moves are being cancelled."""
    stuck: dict[TopicPartition, str] = field(default_factory=dict)
    """Why moves in flight do not come nearer: the first reason is that of Stalled."""

    @property
    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {TopicPartition(e.topic, e.partition): e.replicas for e in self.spec.partitions}

    def resource(self) -> Resource:
        states = {None: State.IN_FLIGHT, "Succeeded": State.COMPLETED, "Failed": State.FAILED}
        known = self.targets if self.moving or self.outcome else {}
        record = {
            tp: Entry(f"id-{tp.topic}", OLD, to, states[self.outcome])
            for tp, to in known.items()
            if tp not in self.still
        }
        record |= {
            tp: Entry(f"id-{tp.topic}", OLD, to, State.COMPLETED) for tp, to in self.targets.items() if tp in self.done
        }
        record |= {tp: Entry(f"id-{tp.topic}", OLD, NEW, State.CANCELLING) for tp in self.going_back}
        said = [condition(self.outcome)] if self.outcome else []
        said += [condition("Stalled", reason) for reason in [*self.stuck.values()][:1]]
        details = [
            PartitionDetail(topic=tp.topic, partition=tp.partition, state=PartitionState.IN_FLIGHT, reason=reason)
            for tp, reason in self.stuck.items()
        ]
        status = PartitionReassignmentStatus(
            observed_generation=1,
            conditions=tuple(said),
            partitions=tuple(details),
            completion_time=START if self.outcome else None,
        )
        deleted = START if self.deleted else None
        return Resource(self.uid, 1, "kafka", self.name, 1, START, self.spec, status, True, record, deleted=deleted)


def condition(type: str, reason: str = "Because") -> Condition:
    return Condition(
        type=type, status=ConditionStatus.TRUE, last_transition_time=START, reason=reason, message="it is so"
    )


@dataclass
class Stage:
    """A plan, its waves, and the cluster. `targets` is what planning comes to: one wave each."""

    targets: Sequence[Target]
    spec: dict[str, Any] = field(default_factory=dict)
    kafka: SimKafka = field(init=False)
    waves: dict[str, SimWave] = field(default_factory=dict)
    status: ReassignmentPlanStatus = field(default_factory=ReassignmentPlanStatus)
    unmet: tuple[Unmet, ...] = ()
    uneven: tuple[Unmet, ...] = ()
    log_dirs: LogDirs = field(default_factory=dict)
    seen: GoalSeen | GoalUnseen | None = None
    looks: int = 0
    """How often the whole cluster was looked at for the goal."""
    made: Planned | Problem | None = None
    fails: Problem | None = None
    unseen: Problem | None = None
    blind: GoalUnseen | None = None
    """Why an observation of the goal fails."""
    unsettled: set[TopicPartition] = field(default_factory=set)
    """Partitions of which metadata may show the past."""
    order: PlanOrder | None = None
    """What the owner of the plan has decided, where it has one."""
    has_finalizer: bool = False
    deleted: bool = False
    gone: bool = False
    generation: int = 1
    plans_made: int = 0
    now: int = 0
    released: list[str] = field(default_factory=list)
    """Names of resumed waves, in order."""

    def __post_init__(self) -> None:
        self.kafka = SimKafka({tp: OLD for target in self.targets for tp in target})
        self.spec = {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}} | self.spec

    @property
    def plan(self) -> PlanResource:
        spec = ReassignmentPlanSpec.parse(self.spec)
        return PlanResource(
            "uid", 1, "kafka", "drain", self.generation, spec, self.status, self.has_finalizer, deleted=self.deleted
        )

    def edit(self, **fields: Any) -> None:
        """Edit the plan as a user; None removes a field."""
        self.spec = {key: value for key, value in (self.spec | fields).items() if value is not None}
        self.generation += 1

    def edit_wave(self, name: str, **fields: Any) -> None:
        """Edit a wave as a user."""
        self.waves[name].spec = self.waves[name].spec.model_copy(update=fields)

    def approve(self) -> None:
        self.edit(approvedDigest=self.status.digest)

    def tick(self, times: int = 1, die_after: int | None = None) -> PlanDecision:
        """Look, decide and act; `die_after` so many steps the process ends and what it knew is lost."""
        for _ in range(times):
            self.now += 1
            resources = [wave.resource() for wave in sorted(self.waves.values(), key=lambda wave: wave.name)]
            seen = self.unseen or self.kafka.snapshot()
            plan = self.plan
            outcome = self.made if isinstance(self.made, Problem) or self._made_for(plan) else None
            goal, self.seen, now = self.seen, None, START + timedelta(seconds=self.now)
            known = {"goal": goal, "is_settled": lambda tp: tp not in self.unsettled, "order": self.order}
            decision = decide_plan(plan, resources, seen, outcome, now, **known)
            kept = [Settled.of(replace(wave, has_finalizer=False)) or wave for wave in resources]
            assert decide_plan(plan, kept, seen, outcome, now, **known) == decision
            for index, step in enumerate(decision.steps):
                if index == die_after:
                    self.made = None
                    return decision
                self._perform(step)
            if die_after is not None:
                self.made = None
                return decision
            self.status = decision.status
            kstatus.check(kstatus.seen(self.status, plan.generation, plan.deleted))
        return decision

    def _made_for(self, plan: PlanResource) -> bool:
        return isinstance(self.made, Planned) and self.made.input_hash == plan.input_hash

    def _perform(self, step: PlanStep) -> None:
        match step:
            case AddFinalizer():
                self.has_finalizer = True
            case RemoveFinalizer():
                self.has_finalizer, self.gone = False, self.deleted
            case MakePlan():
                self.plans_made += 1
                self.made = self.fails or self.planned()
            case ObserveGoal():
                self.looks += 1
                whole = replace(self.watched(), unmet=(*self.watched().unmet, *self.uneven), after=())
                self.seen = self.blind or whole
            case CreateWave(manifest):
                name = manifest["metadata"]["name"]
                self.waves[name] = SimWave(f"uid-{name}", name, PartitionReassignmentSpec.parse(manifest["spec"]))
            case StartWave(wave):
                assert self.waves[wave.name].spec.suspend
                self.released.append(wave.name)
                self.edit_wave(wave.name, suspend=False)
            case SuspendWave(wave):
                self.edit_wave(wave.name, suspend=True)
            case DeleteWave(wave):
                self.delete_wave(wave.name)
            case CancelEntries(wave, partitions):
                self.cancel(wave.name, partitions)

    @property
    def layout(self) -> Layout:
        """Where all replicas are now; each broker reports its log directories."""
        found = layout_seen(self.kafka.snapshot())
        return replace(found, log_dirs={broker: {} for broker in found.brokers} | self.log_dirs, lists_fenced=True)

    def watched(self) -> GoalSeen:
        """What is read every five minutes shows."""
        plan = self.plan
        return GoalSeen(not_reached(plan, self.layout, ["*"]), None, unregistered(plan, self.layout))

    def watch(self) -> None:
        """Five minutes have passed."""
        self.seen = (self.blind or self.watched()) if is_watched(self.plan) else None
        self.tick()

    def planned(self) -> Planned:
        plan = self.plan
        targets = [{tp: new for tp, new in target.items() if tp in self.kafka.replicas} for target in self.targets]
        manifests = [self._manifest(plan, number, target) for number, target in enumerate(filter(None, targets), 1)]
        waves = tuple(
            Wave(
                name=m["metadata"]["name"],
                partitions=len(m["spec"]["partitions"]),
                bytes=100,
                state=WaveState.PENDING,
                digest=manifest_digest(m),
            )
            for m in manifests
        )
        return Planned(
            input_hash=plan.input_hash,
            manifests=tuple(manifests),
            waves=waves,
            moves=PlanMoves(replicas=len(manifests), bytes=2**30, leaders=0),
            lower_bound=LowerBound(replicas=1, bytes=2**29, waves=1),
            balance=BalanceStatus(),
            unmet=self.unmet,
        )

    def _manifest(self, plan: PlanResource, number: int, target: Target) -> Manifest:
        entries = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": new, "expectedReplicas": self.kafka.replicas[tp]}
            for tp, new in target.items()
        ]
        spec = {"clusterRef": {"name": "main"}, "partitions": entries, "suspend": True, **self.spec.get("template", {})}
        return {"kind": "PartitionReassignment", "metadata": {"name": f"{plan.wave_prefix}-{number}"}, "spec": spec}

    # What becomes of waves

    def begin_again(self) -> None:
        """All waves are under way again, as after an edit that is taken back."""
        for wave in self.waves.values():
            wave.moving, wave.outcome = True, None

    def delete_wave(self, name: str) -> None:
        """Deleted: gone at once, unless something is in flight that has to be taken back."""
        if self.waves[name].moving or self.waves[name].going_back:
            self.waves[name].deleted = True
        else:
            del self.waves[name]

    def cancel(self, name: str, partitions: Collection[TopicPartition]) -> None:
        """Partitions were taken out of a wave: their moves go back."""
        wave = self.waves[name]
        kept = tuple(e for e in wave.spec.partitions if (e.topic, e.partition) not in partitions)
        assert kept, "a PartitionReassignment has at least one partition"
        self.edit_wave(name, partitions=kept)
        wave.going_back |= set(partitions)
        wave.stuck = {tp: why for tp, why in wave.stuck.items() if tp not in partitions}

    def begin(self) -> None:
        """Put the partitions of resumed waves in flight."""
        for wave in self.waves.values():
            if not wave.spec.suspend and wave.outcome is None and not wave.deleted:
                wave.moving = True

    def finish(self, outcome: str = "Succeeded") -> None:
        """What is in flight comes to its end, and what is taken back has been."""
        for name, wave in list(self.waves.items()):
            wave.going_back = set()
            if wave.deleted:
                del self.waves[name]
            elif wave.moving and wave.still:
                wave.done = wave.targets.keys() - wave.still
                wave.moving = False
                self._moved({tp: wave.targets[tp] for tp in wave.done})
            elif wave.moving:
                wave.moving, wave.outcome = False, outcome
                self._moved(wave.targets if outcome == "Succeeded" else {})

    def _moved(self, targets: Target) -> None:
        self.kafka.replicas |= {tp: new for tp, new in targets.items() if tp in self.kafka.replicas}

    def run(self, ticks: int = 30) -> None:
        """Everything goes its way."""
        for _ in range(ticks):
            self.tick()
            self.begin()
            self.finish()

    # What is said

    def name(self, number: int) -> str:
        """The name of a wave, from 1, of the plan in status."""
        return self.status.waves[number - 1].name

    @property
    def states(self) -> list[str]:
        return [wave.state.value for wave in self.status.waves]

    @property
    def reason(self) -> str:
        """The reason of Ready."""
        return next(c.reason for c in self.status.conditions if c.type == "Ready")

    @property
    def message(self) -> str:
        return next(c.message for c in self.status.conditions if c.type == "Ready")

    @property
    def true(self) -> set[str]:
        """The conditions that are True, but for GoalMet, which is there from the first."""
        return {c.type for c in self.status.conditions if c.status is ConditionStatus.TRUE} - {"GoalMet"}

    @property
    def goal_message(self) -> str:
        return next(c.message for c in self.status.conditions if c.type == "GoalMet")

    @property
    def goal(self) -> tuple[str, str] | None:
        """Status and reason of GoalMet."""
        return next(((c.status.value, c.reason) for c in self.status.conditions if c.type == "GoalMet"), None)


def stage(waves: int = 2, **spec: Any) -> Stage:
    """A plan of so many waves, each of which moves one partition off broker 1."""
    return Stage([{TopicPartition("orders", number): NEW} for number in range(waves)], spec)


def approved(waves: int = 2, **spec: Any) -> Stage:
    """The same, made and approved."""
    made = stage(waves, **spec)
    made.tick(4)
    made.approve()
    return made
