"""BrokerDecommissions carried out on a model of brokers, step by step, with crashes after any step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from reassign.api.broker_decommission import BrokerDecommissionSpec, BrokerDecommissionStatus
from reassign.api.common import Condition, ConditionStatus
from reassign.api.kafka_cluster import Execution
from reassign.api.partition_reassignment import PartitionReassignmentSpec, PartitionReassignmentStatus, Progress
from reassign.api.reassignment_plan import (
    BalanceStatus,
    LowerBound,
    PlanMoves,
    ReassignmentPlanSpec,
    ReassignmentPlanStatus,
    Wave,
    WaveState,
)
from reassign.api.reassignment_record import RecordedDecommission, RecordedPlan
from reassign.core.automation.decide import AutomationDecision, decide_automation
from reassign.core.automation.model import (
    AutomationStep,
    BrokerSeen,
    BrokersSeen,
    CreatePlan,
    DecommissionResource,
    DeletePlan,
    LogsRead,
    OwnedCluster,
    PlanSeen,
    RetirePlan,
    RunPlan,
    UnregisterBroker,
    WorkedOut,
    WorkOut,
    WriteRecord,
    plan_spec_digest,
)
from reassign.core.automation.timers import Timer, Waits
from reassign.core.configs.cordons import CordonReason, CordonState
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.plans.model import AddFinalizer, Planned, PlanResource, RemoveFinalizer, manifest_digest
from reassign.core.report.conditions import STATUSES
from reassign.errors import Reason
from tests.unit.sim import START

UP, FENCED, GONE = "up", "fenced", "gone"
BYTES = 100
"""Of each replica."""
WAVE = 2
"""Partitions of a wave."""
TICK = 15.0
STALLS = 4
"""Ticks without progress after which a move is stalled."""


class Crashed(Exception):  # noqa: N818
    """The process ends."""


def said(kind: str, status: bool, reason: str, message: str) -> Condition:
    """Return a condition."""
    return Condition(
        type=kind,
        status=STATUSES[status],
        observed_generation=1,
        last_transition_time=START,
        reason=reason,
        message=message,
    )


@dataclass
class SimMove:
    target: tuple[int, ...]
    left: int = 2
    """Ticks until it is done."""
    stuck: int = 0
    """Ticks without progress."""


@dataclass
class SimOwnedPlan:
    uid: str
    name: str
    spec: ReassignmentPlanSpec
    owner: str | None
    waves: list[SimOwnedWave] = field(default_factory=list)
    made: bool = False
    stale: bool = False
    deleted: bool = False
    kept: bool = False
    """Whether something keeps it, with what it has in flight, though it is deleted."""
    retired: bool = False
    over: bool = False
    """Whether its status says that it was retired."""
    cut_off: bool = False
    """Whether its status says that its cluster cannot be reached."""


@dataclass
class SimOwnedWave:
    name: str
    entries: dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]
    """Each partition's replicas before and after."""
    state: WaveState = WaveState.PENDING
    forged: int | None = None
    """Bytes that others have written into the status of its plan."""

    @property
    def targets(self) -> set[int]:
        """Brokers that get replicas."""
        return {broker for before, after in self.entries.values() for broker in {*after} - {*before}}

    @property
    def manifest(self) -> dict[str, Any]:
        partitions = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": [*after], "expectedReplicas": [*before]}
            for tp, (before, after) in self.entries.items()
        ]
        spec = {"clusterRef": {"name": "main"}, "partitions": partitions, "suspend": True}
        return {"metadata": {"name": self.name, "namespace": "kafka"}, "spec": spec}

    @property
    def planned(self) -> Wave:
        return Wave(
            name=self.name,
            partitions=len(self.entries),
            bytes=BYTES * len(self.entries) if self.forged is None else self.forged,
            state=WaveState.PENDING,
            digest=manifest_digest(self.manifest),
        )


@dataclass
class SimDecommission:
    """One object of the API server, with its record."""

    uid: str
    name: str
    spec: BrokerDecommissionSpec
    created: datetime
    record: RecordedDecommission = field(default_factory=RecordedDecommission)
    status: BrokerDecommissionStatus = field(default_factory=BrokerDecommissionStatus)
    generation: int = 1
    finalizer: bool = False
    deleted: datetime | None = None

    @property
    def resource(self) -> DecommissionResource:
        return DecommissionResource(
            uid=self.uid,
            version=1,
            namespace="kafka",
            name=self.name,
            generation=self.generation,
            created=self.created,
            spec=self.spec,
            status=self.status,
            record=self.record,
            has_finalizer=self.finalizer,
            deleted=self.deleted,
        )

    def condition(self, kind: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == kind), None)

    @property
    def reason(self) -> str | None:
        """The reason of Ready."""
        ready = self.condition("Ready")
        return ready and ready.reason

    @property
    def message(self) -> str:
        ready = self.condition("Ready")
        return ready.message if ready else ""

    @property
    def true(self) -> set[str]:
        return {c.type for c in self.status.conditions if c.status is ConditionStatus.TRUE}

    def edit(self, **fields: Any) -> None:
        """Change the spec, as a user does."""
        self.spec = BrokerDecommissionSpec.parse({**self.spec.wire(), **fields})
        self.generation += 1

    def approve(self) -> None:
        self.edit(approvedDigest=self.status.digest)


class Decommissions:
    """Brokers, the objects of the API server, and a process that decides and acts."""

    def __init__(
        self, replicas: Mapping[TopicPartition, tuple[int, ...]], brokers: Sequence[int] = range(6), factor: int = 2
    ) -> None:
        self.brokers = dict.fromkeys(brokers, UP)
        self.replicas = dict(replicas)
        self.moves: dict[TopicPartition, SimMove] = {}
        self.cordons: dict[int, float] = {}
        """Our cordons, with when they were set."""
        self.withheld: set[str] = set()
        """Topics that metadata does not show."""
        self.silent: set[int] = set()
        self.blank: set[int] = set()
        """Brokers that report no logs, whatever they have."""
        self.voters: frozenset[int] | None = frozenset({0})
        self.factor = factor
        self.lists_fenced = True
        self.supports_cordons = True
        self.lifts_cordons = True
        """Whether brokers lift our cordons once they are not wanted any more."""
        self.lifted: dict[int, float] = {}
        """When our cordons were lifted."""
        self.reports_cordons = True
        self.refused: set[str] = set()
        """Names of plans that the API server does not take."""
        self.of_waves: Sequence[Condition] = ()
        """What waves say."""
        self.of_plans: Sequence[Condition] = ()
        """What plans say besides."""
        self.execution = Execution.RUN
        self.problem: Problem | None = None
        self.objects: dict[str, SimDecommission] = {}
        self.plans: dict[str, SimOwnedPlan] = {}
        self.created: list[str] = []
        """The names of all plans that were created."""
        self.begun: list[str] = []
        """The names of all waves that began."""
        self.unregistered: list[int] = []
        self.loses_unregister = False
        self.seconds = 0.0
        self.booted = 0.0
        self.crash_after: int | None = None
        self.restart()

    # --- The process ---

    def restart(self) -> None:
        """Lose the memory of the process."""
        self.timers: Mapping[int, Timer] = {}
        self.waits: Mapping[str, Waits] = {}
        self.worked: dict[str, WorkedOut | Problem] = {}
        self.reads: dict[int, list[LogsRead]] = {}
        self.wanted: dict[int, float] = {}
        self.cordoned: dict[int, float] = {}
        self.booted = self.seconds

    @property
    def now(self) -> Clock:
        return Clock(self.seconds - self.booted, START + timedelta(seconds=self.seconds))

    def decide(self) -> AutomationDecision:
        return decide_automation(
            [it.resource for it in self.objects.values()],
            {plan.name: self.plan_seen(plan) for plan in self.plans.values()},
            self.worked,
            OwnedCluster("main", self.execution, cordons=frozenset(self.cordons)),
            self.problem or self._seen(),
            self.timers,
            self.now,
            waits=self.waits,
        )

    def tick(self, times: int = 1, seconds: float = TICK) -> None:
        for _ in range(times):
            self.seconds += seconds
            self._observe()
            decision = self.decide()
            try:
                self._act(decision)
            except Crashed:
                self.restart()
            for plan in self.plans.values():
                plan.cut_off = self.problem is not None
            self._go_on()

    def until(self, reason: str, of: str = "old", most: int = 60, seconds: float = TICK) -> SimDecommission:
        for _ in range(most):
            if self.objects[of].reason == reason:
                return self.objects[of]
            self.tick(seconds=seconds)
        it = self.objects[of]
        raise AssertionError(f"never {reason}, but {it.reason}: {it.message}")

    def _act(self, decision: AutomationDecision) -> None:
        if decision.errors:
            raise next(iter(decision.errors.values()))
        self.timers, self.waits = decision.timers, decision.waits
        running, retired = dict[str, int](), set[str]()
        left = self._take(decision, self.crash_after, running, retired)
        self.crash_after = None
        self._configure(decision.cordons)
        if left is not None:
            raise Crashed
        for plan in self.plans.values():
            self._serve(plan, running.get(plan.uid, 0), plan.uid in retired)

    def _take(
        self, decision: AutomationDecision, left: int | None, running: dict[str, int], retired: set[str]
    ) -> int | None:
        """Take the steps, and crash after so many of them; return how many are left until then."""
        self.crash_after = None
        for uid, found in decision.decommissions.items():
            it = next(it for it in self.objects.values() if it.uid == uid)
            self.worked.pop(uid, None)
            for step in found.steps:
                if left == 0:
                    raise Crashed
                left = None if left is None else left - 1
                self._perform(it, step, running, retired)
            if left == 0:
                raise Crashed
            if it.name in self.objects:
                it.status = found.status
        return left

    def _perform(self, it: SimDecommission, step: AutomationStep, running: dict[str, int], retired: set[str]) -> None:
        match step:
            case AddFinalizer():
                it.finalizer = True
            case RemoveFinalizer():
                it.finalizer = False
                if it.deleted:
                    del self.objects[it.name]
            case WriteRecord(record):
                assert it.finalizer
                it.record = RecordedDecommission.parse(record.wire())
            case WorkOut(spec):
                self.worked[it.uid] = self._work_out(spec)
            case CreatePlan(manifest):
                self._create(it.record.plan, manifest)
            case RunPlan(plan, waves):
                assert it.record.plan
                assert it.record.plan.begun_waves >= waves
                assert it.resource.approved
                running[plan.uid] = waves
            case RetirePlan(plan):
                assert it.record.plan
                assert it.record.plan.retired or it.resource.finished
                retired.add(plan.uid)
            case DeletePlan(plan):
                self.plans[plan.name].deleted = True
            case UnregisterBroker(broker):
                known = it.resource.recorded(broker)
                assert known
                assert known.unregister_sent_at
                assert self.brokers[broker] == FENCED
                assert not any(broker in replicas for replicas in self.replicas.values())
                if not self.loses_unregister:
                    self.brokers[broker] = GONE
                self.unregistered.append(broker)

    def _create(self, recorded: RecordedPlan | None, manifest: Mapping[str, Any]) -> None:
        name, spec = manifest["metadata"]["name"], ReassignmentPlanSpec.parse(manifest["spec"])
        assert recorded
        assert (recorded.name, recorded.spec_digest) == (name, plan_spec_digest(spec))
        if name in self.refused:
            return
        assert name not in self.created
        self.created.append(name)
        (owner,) = manifest["metadata"]["ownerReferences"]
        self.plans[name] = SimOwnedPlan(f"uid-{name}", name, spec, owner["uid"])

    def _configure(self, wanted: frozenset[int]) -> None:
        for broker in wanted:
            owner = [it.resource for it in self.objects.values() if broker in it.spec.brokers]
            assert any(it.record.approval for it in owner)
        self.wanted = {broker: self.wanted.get(broker, self.now.monotonic) for broker in wanted}
        live = {broker for broker, state in self.brokers.items() if state == UP}
        for broker in live & wanted - self.cordons.keys() if self.supports_cordons else ():
            self.cordons[broker] = self.seconds
        for broker in self.cordons.keys() - wanted:
            if self.brokers.get(broker) != FENCED and self.lifts_cordons:
                del self.cordons[broker]
                self.lifted[broker] = self.seconds

    # --- What is observed ---

    def _observe(self) -> None:
        for broker, state in self.brokers.items():
            if state != UP or broker in self.silent:
                self.reads.pop(broker, None)
                continue
            logs = {tp.topic for tp, row in self.replicas.items() if broker in row}
            logs |= {tp.topic for tp, move in self.moves.items() if broker in move.target}
            logs = set() if broker in self.blank else logs
            self.reads[broker] = [*self.reads.get(broker, ())[-2:], LogsRead(self.now.monotonic, frozenset(logs))]
            if broker in self.cordons and self.reports_cordons:
                self.cordoned.setdefault(broker, self.now.monotonic)
            else:
                self.cordoned.pop(broker, None)

    def _seen(self) -> BrokersSeen:
        shown = {tp: row for tp, row in self.replicas.items() if tp.topic not in self.withheld}
        named = {broker for row in shown.values() for broker in row}
        there = {broker for broker, state in self.brokers.items() if state == UP or self._registered(broker)}
        return BrokersSeen(
            {broker: self._broker_seen(broker, shown) for broker in sorted(there | named)},
            frozenset(tp.topic for tp in shown),
            lists_fenced=self.lists_fenced,
            factor=self.factor,
            voters=self.voters,
            via=0,
        )

    def _registered(self, broker: int) -> bool:
        state = self.brokers.get(broker, GONE)
        return state == UP or (state == FENCED and self.lists_fenced)

    def _broker_seen(self, broker: int, shown: Mapping[TopicPartition, tuple[int, ...]]) -> BrokerSeen:
        replicas, in_flight = dict[str, int](), dict[str, int]()
        for tp, row in shown.items():
            if broker in row:
                replicas[tp.topic] = replicas.get(tp.topic, 0) + 1
        for tp, move in self.moves.items():
            if broker in move.target or broker in self.replicas[tp]:
                in_flight[tp.topic] = in_flight.get(tp.topic, 0) + 1
        up, cordon = self.brokers.get(broker) == UP, None
        if broker in self.wanted:
            if not up:
                reason = CordonReason.BROKER_FENCED
            elif not self.supports_cordons:
                reason = CordonReason.NOT_SUPPORTED
            else:
                in_force = broker in self.cordons and self.reports_cordons
                reason = CordonReason.IN_FORCE if in_force else CordonReason.NOT_YET
            cordon = CordonState(reason, f"broker {broker}: {reason}", held=broker in self.cordons)
        return BrokerSeen(
            self._registered(broker),
            self.brokers.get(broker) == FENCED,
            replicas,
            in_flight,
            tuple(self.reads.get(broker, ())),
            cordon,
            (up and broker in self.cordons) if self.reports_cordons else None,
            self.wanted.get(broker),
            self.cordoned.get(broker),
        )

    def plan_seen(self, plan: SimOwnedPlan) -> PlanSeen:
        moves = [self.moves[tp] for wave in plan.waves for tp in wave.entries if tp in self.moves]
        stalled = any(move.stuck >= STALLS for move in moves)
        states = {
            ("PlanStale", True, "PlanStale"): plan.stale,
            ("Stalled", True, "ClusterUnreachable"): plan.cut_off,
            ("Stalled", True, "MoveStalled"): stalled and not plan.cut_off,
            ("Succeeded", False, "Retired"): plan.over,
        }
        conditions = [
            said(kind, status, reason, "replicas are elsewhere")
            for (kind, status, reason), true in states.items()
            if true
        ]
        resource = PlanResource(
            plan.uid, 1, "kafka", plan.name, 1, plan.spec, ReassignmentPlanStatus(), True, plan.deleted
        )
        status = ReassignmentPlanStatus(
            observed_generation=1,
            conditions=(*conditions, *self.of_plans),
            planned_input_hash=resource.input_hash if plan.made else None,
            waves=tuple(wave.planned for wave in plan.waves),
        )
        found = [self._wave_seen(plan, wave) for wave in plan.waves if wave.state is not WaveState.MISSING]
        return PlanSeen(replace(resource, status=status), plan.owner, found)

    def _wave_seen(self, plan: SimOwnedPlan, wave: SimOwnedWave) -> Resource | Settled:
        spec = PartitionReassignmentSpec.parse(wave.manifest["spec"])
        moving = wave.state is WaveState.RUNNING
        record = {
            tp: Entry("id", before, after, State.IN_FLIGHT)
            for tp, (before, after) in wave.entries.items()
            if moving and tp in self.moves
        }
        spec = spec.model_copy(update={"suspend": not moving})
        status = PartitionReassignmentStatus(
            observed_generation=1, conditions=self.of_waves, progress=Progress(bytes_per_second=1)
        )
        resource = Resource(wave.name, 1, "kafka", wave.name, 1, START, spec, status, True, record, plan=plan.name)
        if wave.state is not WaveState.SUCCEEDED:
            return resource
        age, digest, number = resource.age_key, resource.digest, len(wave.entries)
        return Settled(wave.name, 1, "kafka", wave.name, age, digest, number, True, START, None, True)

    # --- Planning, and the plans' own controller ---

    def _work_out(self, spec: ReassignmentPlanSpec, refused: Set[int] = frozenset()) -> WorkedOut | Problem:
        waves, incomplete, left_out = self._evacuation("worked", spec, refused)
        planned = Planned(
            input_hash="",
            manifests=tuple(wave.manifest for wave in waves),
            waves=tuple(wave.planned for wave in waves),
            moves=PlanMoves(replicas=0, bytes=0, leaders=0),
            lower_bound=LowerBound(replicas=0, bytes=0, waves=0),
            balance=BalanceStatus(),
        )
        return WorkedOut(plan_spec_digest(spec), planned, tuple(incomplete), tuple(left_out))

    def _refused(self, plan: SimOwnedPlan) -> Set[int]:
        """Return the brokers that no target of a plan may name."""
        return frozenset()

    def _evacuation(
        self, prefix: str, spec: ReassignmentPlanSpec, refused: Set[int]
    ) -> tuple[list[SimOwnedWave], list[str], list[str]]:
        """Return waves, and which partitions would stay or have no source; no target names the `refused` brokers."""
        drained, avoid = set(spec.goal.drain_brokers or ()), set(spec.goal.avoid_brokers or ())
        up = {broker for broker, state in self.brokers.items() if state == UP}
        entries, incomplete, left_out = dict[TopicPartition, Any](), list[str](), list[str]()
        for tp, row in self.replicas.items():
            if not drained & set(row) or tp in self.moves or tp.topic in self.withheld:
                continue
            if not up & set(row):
                left_out.append(f"{tp.topic}-{tp.partition}")
                continue
            free = sorted(up - drained - avoid - set(row) - self.cordons.keys())
            target = tuple(free.pop(0) if b in drained and free else b for b in row)
            if (drained | refused) & set(target) or not set(row) - drained <= up:
                incomplete.append(f"{tp.topic}-{tp.partition}")
            else:
                entries[tp] = row, target
        ordered = list(entries.items())
        chunks = [dict(ordered[at : at + WAVE]) for at in range(0, len(ordered), WAVE)]
        waves = [SimOwnedWave(f"{prefix}-w{number}", chunk) for number, chunk in enumerate(chunks, 1)]
        return waves, incomplete, left_out

    def _serve(self, plan: SimOwnedPlan, waves: int, retired: bool) -> None:
        plan.retired |= retired
        if plan.deleted or plan.retired:
            for wave in plan.waves:
                if wave.state is WaveState.PENDING:
                    wave.state = WaveState.MISSING
            states = {wave.state for wave in plan.waves}
            plan.over = plan.retired and WaveState.RUNNING not in states and states != {WaveState.SUCCEEDED}
            return
        if not plan.made:
            plan.waves, plan.made = self._evacuation(plan.name, plan.spec, self._refused(plan))[0], True
            return
        current = next((wave for wave in plan.waves if wave.state is not WaveState.SUCCEEDED), None)
        if current is None or current.state is not WaveState.PENDING:
            return
        plan.stale = any(self.replicas[tp] != before for tp, (before, _) in current.entries.items())
        if plan.waves.index(current) >= waves or plan.stale or self.execution is not Execution.RUN:
            return
        self._check_owner(plan)
        current.state = WaveState.RUNNING
        self.begun.append(current.name)
        for tp, (_, after) in current.entries.items():
            self.moves[tp] = SimMove(after)

    def _check_owner(self, plan: SimOwnedPlan) -> None:
        """Whether a wave of a plan may begin."""
        owner = next(it for it in self.objects.values() if it.uid == plan.owner)
        assert owner.resource.approved
        assert not owner.spec.suspend
        assert not owner.deleted

    def _go_on(self) -> None:
        """Let time pass for the brokers and for what is being deleted."""
        for tp, move in list(self.moves.items()):
            added = set(move.target) - set(self.replicas[tp])
            source = any(self.brokers[broker] == UP for broker in self.replicas[tp])
            if source and all(self.brokers[broker] == UP for broker in added):
                move.left, move.stuck = move.left - 1, 0
            else:
                move.stuck += 1
            if move.left <= 0:
                self.replicas[tp] = move.target
                del self.moves[tp]
        for plan in [plan for plan in self.plans.values() if not plan.kept]:
            for wave in plan.waves:
                stuck = [tp for tp in wave.entries if tp in self.moves and self.moves[tp].stuck >= STALLS]
                if wave.state is WaveState.RUNNING and (plan.deleted or (plan.retired and stuck)):
                    for tp in wave.entries if plan.deleted else stuck:
                        self.moves.pop(tp, None)
                    if not wave.entries.keys() & self.moves.keys():
                        wave.state = WaveState.MISSING
                elif wave.state is WaveState.RUNNING and not wave.entries.keys() & self.moves.keys():
                    wave.state = WaveState.SUCCEEDED
            if plan.deleted:
                del self.plans[plan.name]

    # --- Users ---

    def apply(self, name: str = "old", brokers: Sequence[int] = (5,), **fields: Any) -> SimDecommission:
        spec = {"clusterRef": {"name": "main"}, "brokers": [*brokers], **fields}
        created = START + timedelta(seconds=self.seconds)
        it = SimDecommission(f"uid-{name}", name, BrokerDecommissionSpec.parse(spec), created)
        self.objects[name] = it
        return it

    def delete(self, name: str = "old") -> None:
        it = self.objects[name]
        if it.deleted is None:
            it.deleted = self.now.time
        if not it.finalizer:
            del self.objects[name]

    @property
    def working(self) -> set[str]:
        """The owners of the plans that have waves in flight."""
        return {
            str(plan.owner) for plan in self.plans.values() for wave in plan.waves if wave.state is WaveState.RUNNING
        }

    def on(self, broker: int) -> list[TopicPartition]:
        return [tp for tp, row in self.replicas.items() if broker in row]


UNREACHABLE = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")


def orders(*rows: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("orders", number): row for number, row in enumerate(rows)}
