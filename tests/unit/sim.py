"""A cluster in memory that answers as KRaft's controller does, and a driver that ticks the core against it.

For the pure core's tests only: what real brokers do is shown in tests/kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import Execution, Limits, ReplicationFactorGuard
from reassign.api.partition_reassignment import PartitionDetail, PartitionReassignmentSpec, PartitionReassignmentStatus
from reassign.api.reassignment_record import ReassignmentRecordSpec, RecordedClusterRef, RecordedConfigs
from reassign.core.cluster import brake_of
from reassign.core.configs.cordons import CordonNews, CordonState
from reassign.core.configs.diff import from_record as from_record
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules, ConfigRules
from reassign.core.model.configs import Change, ConfigResource, ConfigResourceType, put
from reassign.core.model.forwarding import NOT_FORWARDED, Forwarded, MetadataOffsets
from reassign.core.model.log_dir_reports import remembered
from reassign.core.model.memory import Recent
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.record import Record, read_record, spread, write_record
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import (
    Broker,
    LogDir,
    LogDirs,
    Partition,
    Reassignment,
    Snapshot,
    Topic,
    TopicPartition,
)
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step, not_directed
from reassign.core.model.verdict import Verdict
from reassign.core.report.statuses import comes_first, report
from reassign.core.tick import Decision, Memory, decide, doubts, gate, kept, recorded, settle
from reassign.errors import Reason
from tests.unit import kstatus
from tests.unit.configs import Store, copy

START = datetime(2026, 1, 1, tzinfo=UTC)


LOST = Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "lost")
Metadata = dict[TopicPartition, Partition]


def refused(reason: Reason) -> Outcome:
    return Outcome(Result.REFUSED, reason, "refused by the broker")


@dataclass
class SimKafka:
    """Partitions with their replicas; a reassignment completes when `copy` is called for it."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    brokers: dict[int, Broker] = field(default_factory=lambda: {b: Broker(b, f"r{b}") for b in range(6)})
    min_insync: int = 1
    isr: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    leader: dict[TopicPartition, int | None] = field(default_factory=dict)
    reassignments: dict[TopicPartition, Reassignment] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    writes: list[Step] = field(default_factory=list)
    sizes: dict[TopicPartition, dict[int, int]] | None = None
    log_dirs: dict[int, dict[str, LogDir]] = field(default_factory=dict)
    """Of brokers that have several, or little room; the others have one whose size they do not tell."""
    silent: set[int] = field(default_factory=set)
    """Brokers that do not say what is in their log directories."""
    offline: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    preferred: dict[tuple[int, TopicPartition], str] = field(default_factory=dict)
    """The directories that brokers remember for replicas that they do not have yet."""
    guard: ReplicationFactorGuard = ReplicationFactorGuard.NATIVE
    denied: set[TopicPartition] = field(default_factory=set)
    """Partitions that the operator's user may not alter."""
    unsafe: set[TopicPartition] = field(default_factory=set)
    """Partitions whose cancel would need an unclean election."""
    cordons: dict[int, str] = field(default_factory=dict)
    """`cordoned.log.dirs` of each broker, where it is set."""
    known_cordons: set[int] = field(default_factory=set)
    """The brokers that the controllers know to be cordoned: they learn of it with the next heartbeat."""
    without_effect: set[int] = field(default_factory=set)
    """Brokers whose cordons do nothing, as with relative paths in Kafka 4.3.1."""
    reports_no_cordons: set[int] = field(default_factory=set)
    """Brokers before Kafka 4.3."""

    def __post_init__(self) -> None:
        for tp, replicas in self.replicas.items():
            self.isr.setdefault(tp, frozenset(replicas))
            self.leader.setdefault(tp, replicas[0])
            self.topic_ids.setdefault(tp.topic, f"id-{tp.topic}")

    def add(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Make a partition, or have it moved by another client, all in sync."""
        self.replicas[tp], self.isr[tp], self.leader[tp] = replicas, frozenset(replicas), replicas[0]
        self.topic_ids.setdefault(tp.topic, f"id-{tp.topic}")

    def metadata(self) -> Metadata:
        """Replicas, in-sync replicas and leader of each partition now; a broker may show it only later."""
        return {
            tp: Partition(replicas, self.isr[tp], self.leader[tp], self.offline.get(tp, frozenset()))
            for tp, replicas in self.replicas.items()
        }

    def snapshot(self, metadata: Metadata | None = None, topic_ids: dict[str, str] | None = None) -> Snapshot:
        """What observing shows; metadata and ids of topics are what they were earlier, where a broker lags."""
        topics: dict[str, dict[int, Partition]] = {}
        ids = topic_ids or self.topic_ids
        for tp, partition in (metadata or self.metadata()).items():
            topics.setdefault(tp.topic, {})[tp.partition] = partition
        return Snapshot(
            cluster_id="sim",
            guard=self.guard,
            brokers=dict(self.brokers),
            topics={t: Topic(ids[t], self.min_insync, p) for t, p in topics.items()},
            reassignments=dict(self.reassignments),
            sizes=self.sizes,
            log_dirs={b: self._directories(b) for b in self.brokers if b not in self.silent and not self._is_down(b)},
            forwarded=Forwarded(0, {0}),
        )

    def _directories(self, broker: int) -> dict[str, LogDir]:
        logs = {tp: sizes[broker] for tp, sizes in (self.sizes or {}).items() if broker in sizes}
        found = self.log_dirs.get(broker, {"/data": LogDir(logs=logs)})
        return {
            path: replace(d, logs={**d.logs}, futures={**d.futures}, cordoned=self._is_cordoned(broker, path, d))
            for path, d in found.items()
        }

    def _is_cordoned(self, broker: int, path: str, directory: LogDir) -> bool | None:
        if broker in self.reports_no_cordons:
            return None
        named = [] if broker in self.without_effect else self.cordons.get(broker, "").split(",")
        return directory.cordoned or "*" in named or path in named

    def heartbeat(self) -> None:
        """The controllers learn which brokers `cordons` cordons; of those that are down they know what they knew."""
        for broker in self.brokers:
            if not self._is_down(broker):
                cordoned = broker in self.cordons and all(d.cordoned for d in self._directories(broker).values())
                (self.known_cordons.add if cordoned else self.known_cordons.discard)(broker)

    def _is_down(self, broker: int) -> bool:
        return broker not in self.brokers or self.brokers[broker].fenced

    def perform(self, step: Step) -> Outcome:
        """Carry out a request as soon as it is sent."""
        return self.carry_out(step)

    def carry_out(self, step: Step) -> Outcome:
        self.writes.append(step)
        if step.tp not in self.replicas:
            return refused(Reason.UNKNOWN_TOPIC_OR_PARTITION)
        if step.tp in self.denied:
            return refused(Reason.NOT_AUTHORIZED)
        if isinstance(step, Cancel) and step.tp in self.unsafe:
            return refused(Reason.CANCEL_UNSAFE)
        if isinstance(step, AlterLogDirs):
            return self._alter_log_dirs(step)
        if isinstance(step, Cancel):
            return self._cancel(step.tp)
        if isinstance(step, Elect):
            self.leader[step.tp] = self.replicas[step.tp][0]
            return APPLIED
        if not self.known_cordons.isdisjoint(step.replicas):
            return refused(Reason.INVALID_REPLICA_ASSIGNMENT)  # from Kafka 4.3.2 on, replicas that stay included
        return self._alter(step)

    def _alter(self, step: Alter) -> Outcome:
        tp, target = step.tp, step.replicas
        current = self.replicas[tp]
        in_flight = self.reassignments.get(tp)
        if step.judged and in_flight is None:
            if step.judged.topic_id != self.topic_ids[tp.topic]:
                return refused(Reason.TOPIC_RECREATED)
            if step.judged.replicas != set(current):
                return refused(Reason.IN_FLIGHT_ELSEWHERE)
        size = len(in_flight.target) if in_flight else len(current)
        if not set(target) <= set(self.brokers):
            return refused(Reason.INVALID_REPLICA_ASSIGNMENT)
        if not step.allow_replication_factor_change and len(target) != size:
            return refused(Reason.REPLICATION_FACTOR_CHANGE)
        assert in_flight is None or in_flight.target == set(target), f"{tp} was overridden in flight"
        adding = tuple(b for b in target if b not in current)
        removing = tuple(b for b in current if b not in target)
        if not adding and not removing:
            self.replicas[tp] = target
            return APPLIED
        merged = (*target, *removing)
        self.replicas[tp] = merged
        self._place(tp)
        self.reassignments[tp] = Reassignment(merged, adding, removing)
        return APPLIED

    def land(self, step: Step) -> Outcome:
        """Carry out a request that a broker has held: the controller compares nothing with what it was judged by."""
        if not isinstance(step, Alter):
            return self.carry_out(step)
        in_flight = self.reassignments.get(step.tp)
        if in_flight is None or in_flight.target == set(step.replicas):
            return self.carry_out(replace(step, judged=None))
        if len(step.replicas) != len(in_flight.target) and not step.allow_replication_factor_change:
            return refused(Reason.REPLICATION_FACTOR_CHANGE)
        return self._override(step, in_flight)

    def _override(self, step: Alter, in_flight: Reassignment) -> Outcome:
        """Compare the new target with all replicas, those that are being added among them."""
        current, target = self.replicas[step.tp], step.replicas
        adding = tuple(b for b in target if b not in current) or tuple(b for b in in_flight.adding if b in target)
        removing = tuple(b for b in current if b not in target)
        self.replicas[step.tp] = (*target, *removing)
        self.reassignments[step.tp] = Reassignment(self.replicas[step.tp], adding, removing)
        self._place(step.tp)
        return APPLIED

    def _cancel(self, tp: TopicPartition) -> Outcome:
        in_flight = self.reassignments.pop(tp, None)
        if in_flight is None:
            return refused(Reason.NO_REASSIGNMENT_IN_PROGRESS)
        back = tuple(b for b in in_flight.replicas if b not in in_flight.adding)
        self.replicas[tp], self.isr[tp] = back, self.isr[tp] & set(back)
        if self.leader[tp] not in back:
            self.leader[tp] = back[0]
        self._place(tp)
        return APPLIED

    def move_as_another(self, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Move it as another client."""
        assert self._alter(Alter(tp, replicas, allow_replication_factor_change=True)) is APPLIED

    def _alter_log_dirs(self, step: AlterLogDirs) -> Outcome:
        outcome = APPLIED
        if len(f"{step.tp.topic}-{step.tp.partition}.{'0' * 32}-future") > 255:
            return refused(Reason.TOPIC_NAME_TOO_LONG)
        for broker, path in step.dirs:
            if self._is_down(broker):
                outcome = Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, f"broker {broker} does not answer")
                continue
            current = self.directory(step.tp, broker)
            self.preferred[broker, step.tp] = path
            for directory in self.log_dirs[broker].values():
                directory.futures.pop(step.tp, None)  # type: ignore[attr-defined]
            if current not in (None, path):
                self.log_dirs[broker][path].futures[step.tp] = 0  # type: ignore[index]
        return outcome

    def directory(self, tp: TopicPartition, broker: int) -> str | None:
        """Where a broker's replica is."""
        return next((path for path, d in self.log_dirs.get(broker, {}).items() if tp in d.logs), None)

    def copy_between_dirs(self, tp: TopicPartition) -> None:
        """Future logs catch up, and replace the main ones."""
        for directories in self.log_dirs.values():
            for path in [path for path, d in directories.items() if tp in d.futures]:
                for other in directories.values():
                    other.logs.pop(tp, None)  # type: ignore[attr-defined]
                directories[path].logs[tp] = directories[path].futures.pop(tp)  # type: ignore[index, attr-defined]

    def _place(self, tp: TopicPartition) -> None:
        """Replicas get and lose their directories."""
        for broker, directories in self.log_dirs.items():
            if broker not in self.replicas[tp]:
                for directory in directories.values():
                    directory.logs.pop(tp, None)  # type: ignore[attr-defined]
                    directory.futures.pop(tp, None)  # type: ignore[attr-defined]
            elif self.directory(tp, broker) is None:
                path = self.preferred.get((broker, tp), next(iter(directories)))
                directories[path].logs[tp] = 0  # type: ignore[index]

    def perform_as_another(self, tp: TopicPartition) -> None:
        """Cancel it as another client."""
        self._cancel(tp)

    def copy(self, tp: TopicPartition) -> None:
        """Everything that is being added catches up, and the reassignment completes."""
        in_flight = self.reassignments.pop(tp)
        target = tuple(b for b in in_flight.replicas if b not in in_flight.removing)
        self.replicas[tp], self.isr[tp] = target, frozenset(target)
        if self.leader[tp] not in target:
            self.leader[tp] = target[0]
        self._place(tp)


def spec(entries: Mapping[TopicPartition, Sequence[int]], **fields: object) -> PartitionReassignmentSpec:
    """A spec from target replicas; other fields by their names on the wire."""
    partitions = [{"topic": t.topic, "partition": t.partition, "replicas": list(r)} for t, r in entries.items()]
    return PartitionReassignmentSpec.parse({"clusterRef": {"name": "main"}, "partitions": partitions, **fields})


def resource(entries: Mapping[TopicPartition, Sequence[int]], uid: str = "a", **fields: object) -> Resource:
    """A resource as it is when our finalizer and its first status are there."""
    return Resource(
        uid=uid,
        version=1,
        namespace="kafka",
        name=uid,
        generation=1,
        created=START,
        spec=spec(entries, **fields),
        status=PartitionReassignmentStatus(observed_generation=1),
        has_finalizer=True,
    )


def without_record(resource: Resource) -> Resource:
    """The resource after another client removed its ReassignmentRecords."""
    return replace(resource, record={}, record_lost=True)


@dataclass
class Driver:
    """Ticks the core as the loop does: record before the alter, steps, report after."""

    kafka: SimKafka
    resources: dict[str, Resource]
    limits: Limits = field(default_factory=Limits)
    hold: Problem | None = None
    holds: Mapping[str, Problem | None] = field(default_factory=dict)
    execution: Execution = Execution.RUN
    permission: Permission | None = None
    throttle: ConfigRules = field(default_factory=ConfigRules)
    configs: Store = field(default_factory=dict)
    cordons: frozenset[int] = frozenset()
    """The brokers that are to be cordoned."""
    refuses_cordons: dict[int, Outcome] = field(default_factory=dict)
    """What brokers answer that do not take `cordoned.log.dirs`."""
    cordon_news: list[CordonNews] = field(default_factory=list)
    states: Mapping[int, CordonState] = field(default_factory=dict)
    """Of the cordons that are wanted, after the last tick."""
    now: float = 100.0
    memory: Memory = field(default_factory=lambda: Memory.begin(0.0))
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    lag: int = 0
    """How many ticks after the fetch a broker applies metadata."""
    standing: dict[int, int] = field(default_factory=dict)
    """Brokers that fetch no metadata, and how much of its log they have: one more with each tick."""
    tells_offsets: bool = True
    """Whether brokers answer DescribeQuorum."""
    limbo: list[tuple[float, int, Step]] = field(default_factory=list)
    """Requests that a broker holds, and when they land. It lists nothing before that."""
    silent: set[int] = field(default_factory=set)
    """Brokers that answer nothing."""
    ahead: float = 0.0
    """By how many seconds the API server's clock has been set."""
    _shown: list[tuple[Metadata, dict[str, str]]] = field(default_factory=list)
    _log_dirs: LogDirs = field(default_factory=dict)

    @property
    def time(self) -> datetime:
        return START + timedelta(seconds=self.now + self.ahead)

    @property
    def rules(self) -> ClusterRules:
        return ClusterRules(
            self.limits,
            self.hold,
            self.execution,
            self.permission,
            self.throttle,
            cordons=self.cordons,
            holds=self.holds,
        )

    def stand_still(self, *brokers: int) -> None:
        """These fetch no metadata any more."""
        self.standing |= {broker: len(self._shown) for broker in brokers if broker not in self.standing}

    def restart(self) -> None:
        """The process is new: what it knew of its last seconds is lost."""
        self.memory = Memory.begin(self.now)
        self._log_dirs = {}

    def tick(
        self,
        *,
        die_after: int | None = None,
        lose_answers: bool = False,
        lands_after: float = 0,
        changed: Container[str] = (),
    ) -> None:
        """One tick, a second later. `die_after` steps the process is killed and another one starts.

        Where answers are lost, the requests land `lands_after` seconds later. A last check finds the resources of these
        uids `changed`: nothing of theirs begins.
        """
        self.now += 1
        for _, _, step in [late for late in self.limbo if late[0] <= self.now]:
            self.kafka.land(step)
        self.limbo = [late for late in self.limbo if late[0] > self.now]
        self.kafka.heartbeat()
        self.kafka.cordons = {
            int(resource.name): configs[CORDONED_LOG_DIRS]
            for resource, configs in self.configs.items()
            if CORDONED_LOG_DIRS in configs
        }
        self._shown.append((self.kafka.metadata(), dict(self.kafka.topic_ids)))
        forwarded = self._forwarded()
        applied = min(self._fetched(forwarded.via), len(self._shown) - self.lag)
        snapshot = replace(self.kafka.snapshot(*self._shown[max(applied - 1, 0)]), forwarded=forwarded)
        self.observe(snapshot.reassignments.keys(), snapshot.log_dirs.keys(), forwarded)
        self._log_dirs = remembered(self._log_dirs, snapshot.log_dirs, snapshot.brokers)
        snapshot = replace(snapshot, log_dirs=self._log_dirs)
        left = die_after
        resources = list(self.resources.values())
        decision = decide(resources, snapshot, self.read_configs(), self.memory, self.rules, self.time)
        for _, error in decision.errors:
            raise error
        self.verdicts |= {verdict.resource.uid: verdict for verdict in decision.verdicts}
        self.record_throttles(decision.throttle.record)
        self.states = decision.throttle.cordons
        self.cordon_news += decision.throttle.news
        decision = gate(decision, self.change_configs(decision), self.now)
        for verdict in decision.verdicts:
            uid = verdict.resource.uid
            if verdict.release:
                del self.resources[uid]
                self.gone.add(uid)
            elif verdict.must_record:
                status = self._report(verdict, snapshot) if comes_first(verdict.resource) else verdict.resource.status
                self.resources[uid] = replace(verdict.resource, status=status, record=written(verdict.record))
        if left == 0:
            self.restart()
            return
        decision = kept(recorded(decision, self.resources), None)
        outcomes: dict[Step, Outcome] = {}
        for step in [step for step in decision.steps if decision.beginning.get(step) not in changed]:
            if left is not None and left == 0:
                self.restart()
                return
            outcomes[step] = self._perform(step, outcomes, lose_answers=lose_answers, lands_after=lands_after)
            left = None if left is None else left - 1
        if left == 0:
            self.restart()
            return
        settled = settle(decision, outcomes, self.now)
        self.memory = settled.memory
        self.verdicts |= {verdict.resource.uid: verdict for verdict in settled.verdicts}
        for verdict in settled.verdicts:
            self._write(verdict, snapshot)

    def _perform(
        self, step: Step, outcomes: Mapping[Step, Outcome], *, lose_answers: bool, lands_after: float
    ) -> Outcome:
        if withheld := not_directed(step, outcomes):
            return withheld
        if not lands_after:
            outcome = self.kafka.perform(step)
            return LOST if lose_answers else outcome
        via = self.recent.forwarding.via
        assert via is not None
        self.limbo.append((self.now + lands_after, via, step))
        return LOST

    def read_configs(self) -> ConfigRead:
        """What observing shows of configurations; a broker that is down tells none of its own."""
        up = {resource: configs for resource, configs in self.configs.items() if not self._is_of_broker_down(resource)}
        return ConfigRead(self.now, copy(up))

    def _is_of_broker_down(self, resource: ConfigResource) -> bool:
        if resource.type is not ConfigResourceType.BROKER:
            return False
        broker = self.kafka.brokers.get(int(resource.name))
        return broker is None or broker.fenced

    def record_throttles(self, record: RecordedConfigs | None) -> None:
        """The record, as the API server reads it back from the wire."""
        record = record and RecordedConfigs.parse(record.wire())
        self.throttle = replace(self.throttle, record=record)

    def change_configs(self, decision: Decision) -> dict[Change, Outcome]:
        """What becomes of the changes that were decided."""
        outcomes = {}
        for change in decision.throttle.changes:
            assert change.key in from_record(self.throttle.record), f"{change} is not recorded"
            assert not self._is_of_broker_down(change.key.resource), f"{change} is of a broker that is down"
            refusal = self.refuses_cordons.get(int(change.key.resource.name)) if is_cordon(change) else None
            outcomes[change] = refusal or APPLIED
            if refusal is None:
                put(self.configs[change.key.resource], change)
        return outcomes

    def observe(
        self,
        in_flight: Collection[TopicPartition],
        reported: Collection[int] = (),
        forwarded: Forwarded = NOT_FORWARDED,
    ) -> None:
        """Remember an observation at this moment."""
        self.recent = self.recent.observe(self.now, self.now, in_flight, reported, forwarded)

    def _forwarded(self) -> Forwarded:
        """How the list of what is in flight comes about: of the brokers that are asked, those that answer.

        One may answer a while before what it holds lands: a reconnect changes the order.
        """
        asked = doubts(list(self.resources.values()), self.throttle.record, self.memory)
        held = {via for lands, via, _ in self.limbo if lands - self.now > 5}
        up = sorted(b.id for b in self.kafka.brokers.values() if not b.fenced and b.id not in held | self.silent)
        heard = [broker for broker in up if broker in asked.brokers]
        via = next((broker for broker in [*asked.first, *heard, *up] if broker in up), None)
        brokers = frozenset([*heard, *([] if via is None else [via])])
        ended = any(tp not in self.kafka.reassignments for tp in asked.lately)
        needed = asked.offsets or ended or asked.reader not in (None, via)
        offsets = MetadataOffsets(len(self._shown), {broker: self._fetched(broker) for broker in up})
        return Forwarded(via, brokers, offsets if needed and self.tells_offsets else None, via)

    def _fetched(self, broker: int | None) -> int:
        """How much of the metadata log a broker has."""
        return len(self._shown) if broker is None else self.standing.get(broker, len(self._shown))

    @property
    def recent(self) -> Recent:
        return self.memory.recent

    @recent.setter
    def recent(self, recent: Recent) -> None:
        self.memory = replace(self.memory, recent=recent)

    def ticks(self, count: int) -> None:
        for _ in range(count):
            self.tick()

    def finish(self, limit: int = 200) -> None:
        """Let every move complete and tick until nothing changes any more."""
        for _ in range(limit):
            before = {uid: r.status for uid, r in self.resources.items()}, len(self.kafka.writes)
            for tp in list(self.kafka.reassignments):
                self.kafka.copy(tp)
            for tp in self.kafka.replicas:
                self.kafka.copy_between_dirs(tp)
            self.ticks(5)
            if before == ({uid: r.status for uid, r in self.resources.items()}, len(self.kafka.writes)):
                return
        raise AssertionError("it does not come to rest")

    def delete(self, uid: str) -> None:
        self.resources[uid] = replace(self.resources[uid], deleted=self.time)

    def edit(self, uid: str, entries: Mapping[TopicPartition, Sequence[int]], **fields: object) -> None:
        old = self.resources[uid]
        self.resources[uid] = replace(old, spec=spec(entries, **fields), generation=old.generation + 1)

    def _report(self, verdict: Verdict, snapshot: Snapshot) -> PartitionReassignmentStatus:
        status = report(*self.rules.view(verdict, snapshot), (), self.time)
        return PartitionReassignmentStatus.parse(status.wire())

    def _write(self, verdict: Verdict, snapshot: Snapshot) -> None:
        status = self._report(verdict, snapshot)
        kstatus.check(kstatus.seen(status, verdict.resource.generation, verdict.resource.deleted))
        record = written(verdict.record)
        uid = verdict.resource.uid
        self.resources[uid] = replace(verdict.resource, status=status, record=record, record_lost=False)


def is_cordon(change: Change) -> bool:
    return change.key.config == CORDONED_LOG_DIRS


def written(record: Record) -> Record:
    """A record as the API server reads it back from the wire, part by part."""
    parts = [ReassignmentRecordSpec.parse(_part(n, entries)) for n, entries in spread(record, {}).items()]
    return read_record(topic for part in parts for topic in part.topics)


def _part(number: int, entries: Record) -> dict[str, object]:
    ref = RecordedClusterRef(name="main", namespace="kafka")
    return ReassignmentRecordSpec(cluster_ref=ref, part=number, topics=write_record(entries)).wire()


def drive(kafka: SimKafka, *resources: Resource, **options: object) -> Driver:
    return Driver(kafka, {r.uid: r for r in resources}, **options)  # type: ignore[arg-type]


def partitions(count: int, topic: str = "orders") -> list[TopicPartition]:
    return [TopicPartition(topic, p) for p in range(count)]


def detail(driver: Driver, tp: TopicPartition, uid: str = "a") -> PartitionDetail:
    """What status says of one partition."""
    details = driver.resources[uid].status.partitions
    return next(d for d in details if (d.topic, d.partition) == tp)


def states(driver: Driver, uid: str = "a") -> dict[TopicPartition, str]:
    return {TopicPartition(p.topic, p.partition): str(p.state) for p in driver.resources[uid].status.partitions}


def true_conditions(driver: Driver, uid: str = "a") -> dict[str, str]:
    """The conditions that are True, with their reasons."""
    return {c.type: c.reason for c in driver.resources[uid].status.conditions if c.status == "True"}


def ready_reason(driver: Driver, uid: str = "a") -> str:
    """The reason of Ready."""
    return next(c.reason for c in driver.resources[uid].status.conditions if c.type == "Ready")


def pull(driver: Driver, execution: Execution) -> None:
    """Set spec.execution of the KafkaCluster."""
    driver.hold = brake_of(execution)
    driver.execution = execution
