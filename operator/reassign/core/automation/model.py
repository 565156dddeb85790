"""A BrokerDecommission as the core sees it, what is observed for it, and what can be done about it.

Its plan is a ReassignmentPlan that it owns. Only the owner's record says which one that is, and whether it may begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from reassign.api.broker_decommission import BrokerDecommissionSpec, BrokerDecommissionStatus
from reassign.api.digest import hashed
from reassign.api.kafka_cluster import Execution
from reassign.api.names import matches
from reassign.api.partition_reassignment import STALL_TIMEOUT_SECONDS
from reassign.api.reassignment_plan import Approval, ReassignmentPlanSpec, Wave
from reassign.api.reassignment_record import RecordedBroker, RecordedDecommission, RecordedPlan
from reassign.api.window import Windows
from reassign.core.automation.timers import Timer
from reassign.core.configs.cordons import CordonState
from reassign.core.model.problem import Problem
from reassign.core.model.read_back import DecommissionStatusReadBack
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.model import (
    AddFinalizer,
    Manifest,
    Planned,
    PlanResource,
    RemoveFinalizer,
    Unread,
    says,
    unended,
)
from reassign.core.plans.progress import WaveProgress, wave_progress


@dataclass(frozen=True, kw_only=True)
class OwnerResource:
    """An object that plans are made for, and that alone decides about them."""

    uid: str
    version: int
    namespace: str
    name: str
    generation: int
    created: datetime
    deleted: datetime | None = None

    @property
    def age_key(self) -> tuple[datetime, str]:
        """A key that sorts them by age; the uid breaks a tie."""
        return (self.created, self.uid)


@dataclass(frozen=True, kw_only=True)
class DecommissionResource(OwnerResource):
    """One BrokerDecommission."""

    spec: BrokerDecommissionSpec
    status: DecommissionStatusReadBack
    record: RecordedDecommission
    has_finalizer: bool

    @cached_property
    def brokers(self) -> frozenset[int]:
        return frozenset(self.spec.brokers)

    @property
    def approved(self) -> bool:
        """Whether the recorded approval counts: the spec still has what gave it."""
        approval = self.record.approval
        return approval is not None and (
            self.spec.approval is Approval.NOT_REQUIRED
            or (approval.digest is not None and approval.digest == self.spec.approved_digest)
        )

    @property
    def finished(self) -> bool:
        """Whether all brokers were seen empty and no longer registered; that is final."""
        return self.brokers == {broker.id for broker in self.record.brokers if broker.seen_unregistered}

    @property
    def stall_timeout_seconds(self) -> int:
        """After how long a wait that ends by itself is Stalled."""
        return self.spec.template.stall_timeout_seconds or STALL_TIMEOUT_SECONDS

    @property
    def lost_seconds(self) -> int:
        """After how long a broker that is fenced counts as lost."""
        return self.stall_timeout_seconds

    @property
    def recorded_plans(self) -> tuple[RecordedPlan, ...]:
        """The plans that its record names."""
        return (self.record.plan,) if self.record.plan else ()

    def recorded_plan(self, name: str) -> RecordedPlan | None:
        """Return what its record says of a plan."""
        return next((plan for plan in self.recorded_plans if plan.name == name), None)

    def has_made(self, name: str) -> bool:
        """Whether its plans before those that its record names had this name, or may have had."""
        last = self.record.plan
        return last is not None and name in {f"{self.name}-{number}" for number in range(1, last.number)}

    def lets_go_on(self, plan: str) -> bool:
        """Whether what has begun of a plan, by its name, may go on: its approval counts, and nothing stops it."""
        return self.approved and not (self.spec.suspend or self.deleted)

    def windows_of(self, plan: str) -> Windows:
        """Return the windows that a plan waits for."""
        return self.spec.windows

    def needs_all_of(self, plan: str) -> bool:
        """Whether a plan has to leave nothing on the brokers that it empties."""
        return True

    def recorded(self, broker: int) -> RecordedBroker | None:
        """Return what was seen of a broker before."""
        return next((known for known in self.record.brokers if known.id == broker), None)

    @property
    def excluded(self) -> str | None:
        """Digest of the patterns of topics that do not count; None where all do."""
        return hashed(sorted(self.spec.exclude_topics)) if self.spec.exclude_topics else None

    def counts(self, topic: str) -> bool:
        """Whether the replicas of a topic have to leave."""
        return not matches(topic, self.spec.exclude_topics)


# --- What is observed ---


@dataclass(frozen=True, slots=True)
class LogsRead:
    """One answer of a broker that was asked for all its logs."""

    at: float
    """When, by the monotonic clock."""
    topics: frozenset[str]
    """Topics that it has logs of."""


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """What is observed of one broker."""

    registered: bool = True
    fenced: bool = False
    replicas: Mapping[str, int] = field(default_factory=dict)
    """How many replicas metadata names, by topic."""
    in_flight: Mapping[str, int] = field(default_factory=dict)
    """How many partitions in flight name it, as a replica that stays, comes or goes, by topic."""
    logs: Sequence[LogsRead] = ()
    """Its last answers, the newest one last. None: it has not answered."""
    cordon: CordonState | None = None
    """How far its cordon is, where one is wanted."""
    cordoned: bool | None = None
    """Whether all its log directories are cordoned; None where that is not known."""
    cordon_wanted_at: float | None = None
    """Since when its cordon is wanted, by the monotonic clock."""
    cordoned_at: float | None = None
    """Since when it is cordoned, by the same clock."""
    rack: str | None = None
    """Its broker.rack, where it is registered and has one."""

    @property
    def up(self) -> bool:
        return self.registered and not self.fenced

    @property
    def holds(self) -> bool:
        """Whether it has replicas, or a move in flight names it."""
        return any(self.replicas.values()) or any(self.in_flight.values())


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    """What is observed of a cluster: its metadata, what is in flight, and the logs of brokers that were asked."""

    brokers: Mapping[int, BrokerSeen]
    """Those that are registered, or that replicas or moves in flight name."""
    topics: frozenset[str]
    """Topics that metadata shows."""
    forwarded: bool = True
    """Whether a broker forwarded ListPartitionReassignments to a controller; else nothing here counts."""
    lists_fenced: bool = True
    """Whether fenced brokers are among those that are registered (Kafka 4.0)."""
    factor: int = 1
    """The greatest replication factor that has to be possible: of topics, of defaults and of internal topics."""
    voters: frozenset[int] | None = None
    """The voters of the controller quorum; None where they are not known."""
    via: int | None = None
    """The broker that requests go to next."""
    counted_at: float | None = None
    """When the replicas were counted, by the monotonic clock; None: just now."""
    cordons_at: float | None = None
    """When it was asked which brokers are cordoned, likewise."""
    foreign: frozenset[int] = frozenset()
    """Brokers that get or lose replicas by moves in flight of other clients."""
    foreign_from: frozenset[int] = frozenset()
    """Brokers that lose replicas by these."""
    refusals: Mapping[int, Problem] = field(default_factory=dict)
    """Of brokers that are not up: why the last UnregisterBroker was refused."""

    def hidden(self, broker: int) -> frozenset[str]:
        """Return the topics whose logs a broker reports, and which metadata does not show."""
        seen = self.brokers.get(broker)
        return seen.logs[-1].topics - self.topics if seen and seen.logs else frozenset()


@dataclass(frozen=True, slots=True)
class OwnedCluster:
    """What a KafkaCluster asks of what it owns, and what its record says."""

    name: str
    execution: Execution = Execution.RUN
    wants_cordons: bool = True
    """Not while it is deleted or a duplicate."""
    cordons: frozenset[int] = frozenset()
    """Brokers that have our cordon, by its record."""
    lifting: frozenset[int] = frozenset()
    """Brokers whose cordon is being lifted, or was until just now: the controllers may not know yet."""
    unlifted: Mapping[int, Problem] = field(default_factory=dict)
    """Why the cordon of a broker could not be lifted."""


@dataclass(frozen=True)
class PlanSeen:
    """A ReassignmentPlan with its waves."""

    plan: PlanResource
    owner: str | None = None
    """The uid of the object that controls it."""
    waves: Sequence[Resource | Settled] = ()
    unread: Sequence[Unread] = ()

    @cached_property
    def spec_digest(self) -> str:
        return plan_spec_digest(self.plan.spec)

    @property
    def states(self) -> tuple[Wave, ...]:
        """Its waves as they are now."""
        return tuple(self._progress.status.waves)

    @property
    def done(self) -> bool:
        """Whether all its waves are done."""
        return self.plan.planned and self._progress.done

    @property
    def moving(self) -> bool:
        """Whether anything of it is in flight, or may come to be: a wave has been let go."""
        return any(active(w.record) or not (w.spec.suspend or w.deleted) for w in unended(self.waves))

    @property
    def ends(self) -> bool:
        """Whether it is retired and has not ended: something is in flight, or may be, or a wave is to be deleted."""
        unread = any(not (wave.ended or wave.deleted) for wave in self.unread)
        return unread or any(active(wave.record) or not wave.deleted for wave in unended(self.waves))

    @property
    def spoilt(self) -> Problem | None:
        """What has become of a wave that keeps the others from starting."""
        return self._progress.spoilt

    @property
    def advancing(self) -> bool:
        """Whether bytes are copied for its current wave, though it may be stalled."""
        wave = self._progress.current
        if wave is None or not says(wave, "Stalled"):
            return False
        return bool(wave.status.progress and wave.status.progress.bytes_per_second)

    def is_at_work(self, now: datetime) -> bool:
        """Whether it has moves in flight, or has advanced within its stallTimeoutSeconds and is not done."""
        if any(active(wave.record) for wave in unended(self.waves)):
            return True
        seconds = self.plan.spec.template.stall_timeout_seconds or STALL_TIMEOUT_SECONDS
        times = (time for wave in self.waves if (time := _advanced(wave)))
        return self.plan.under_way and any(abs(now - time) < timedelta(seconds=seconds) for time in times)

    @cached_property
    def _progress(self) -> WaveProgress:
        return wave_progress(self.plan, self.waves, self.unread, held=True)


def _advanced(wave: Resource | Settled) -> datetime | None:
    """Return when a wave has ended, or else has started."""
    if isinstance(wave, Settled):
        return wave.completion_time
    return wave.status.completion_time or wave.status.start_time


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """What planning without an object came to."""

    spec_digest: str
    """Digest of the spec that was worked out."""
    planned: Planned
    incomplete: tuple[str, ...] = ()
    """Replicas that would stay, in words; without those of partitions in flight, and those that are left out."""
    left_out: tuple[str, ...] = ()
    """Partitions without an in-sync replica elsewhere, in words: no plan can move them."""


def plan_spec_digest(spec: ReassignmentPlanSpec) -> str:
    """Return the digest of the spec of a plan, without defaults."""
    return hashed(spec.model_dump(mode="json", exclude_defaults=True))


# --- What can be done ---


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write the record of the decommission. What follows needs it."""

    record: RecordedDecommission


@dataclass(frozen=True, slots=True)
class WorkOut:
    """Work out a plan, without an object: anew when the cluster has changed. Without this step what it came to is to be
    forgotten."""

    spec: ReassignmentPlanSpec
    lifted: bool = False
    """Whether our cordons count as lifted, though they are in force meanwhile."""


@dataclass(frozen=True, slots=True)
class CreatePlan:
    """Create the plan that the record names."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Let the first waves of a plan go, one after the other."""

    plan: PlanResource
    waves: int


@dataclass(frozen=True, slots=True)
class RetirePlan:
    """Let what a plan has in flight come to its end, and nothing else."""

    plan: PlanResource


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """Delete a plan, which cancels what it has in flight."""

    plan: PlanResource


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """Unregister a broker that is empty and down, unless a new observation says otherwise."""

    broker: int
    via: int | None


AutomationStep = (
    AddFinalizer
    | RemoveFinalizer
    | WriteRecord
    | WorkOut
    | CreatePlan
    | RunPlan
    | RetirePlan
    | DeletePlan
    | UnregisterBroker
)


@dataclass(frozen=True, slots=True)
class DecommissionDecision:
    """What is to be done about one decommission.

    Steps are taken in their order, each after the one before. A plan without a RunPlan starts nothing.
    """

    steps: Sequence[AutomationStep]
    status: BrokerDecommissionStatus
    cordons: frozenset[int] = frozenset()
    """Brokers that are to be cordoned."""
    timers: Mapping[int, Timer] = field(default_factory=dict)
    """How long its brokers have been seen down."""
    changes: datetime | None = None
    """When something changes by the time alone."""
