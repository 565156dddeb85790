"""The loop of one KafkaCluster: observe, decide, act, report.

What must survive a crash is in status before the act that needs it, and nothing is altered before our finalizer
has been seen on the object. Events only wake the loop; it ticks anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from reassign.api.kafka_cluster import Execution, KafkaCluster, KafkaClusterSpec, PacingStatus
from reassign.api.partition_reassignment import PartitionState, RecordState
from reassign.controller.brake import BrakeRecord, Finding, Survey, brake_of
from reassign.controller.metrics import Metrics
from reassign.controller.planning import Job
from reassign.controller.plans import PlanInputs, Plans
from reassign.controller.reporter import Attempts, Reporter, mistake
from reassign.controller.server import Health
from reassign.controller.serving import cluster_status, duplicate_of, hold_of
from reassign.controller.store import Store, full_name
from reassign.controller.throttling import Throttling
from reassign.core.cluster import ClusterHold, check_identity, permission_of, policy_of
from reassign.core.judge import judge
from reassign.core.model.log_dir_reports import remembered, sizes
from reassign.core.model.memory import Recent
from reassign.core.model.permission import Permission
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.core.model.progress import WINDOW_SECONDS
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import LogDirs, Snapshot
from reassign.core.model.steps import Outcome, Result, Step
from reassign.core.model.verdict import Verdict
from reassign.core.moves.brake import fold_foreign
from reassign.core.moves.pacing import Pacer, look, places_taken
from reassign.core.moves.settle import fold, put_off
from reassign.core.plans.model import Plan, Seen
from reassign.core.report.statuses import report
from reassign.core.throttle.desired import above_maximum, bounded
from reassign.errors import ApiServerError, ConflictError, MissingReferenceError, Reason, ReassignError
from reassign.inspect.connect import connection_of, correct_secret
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import ClusterKey, KubeClient, Object

log = structlog.get_logger()

AT_ONCE_SECONDS = 0.1
CONFLICT_SECONDS = 0.5
MOVING_SECONDS = 1.0
WAITING_SECONDS = 5.0
IDLE_SECONDS = 15.0
UNREACHABLE_SECONDS = 5.0
SIZES_SECONDS = 2.0
CONNECT_SECONDS = 15.0
PATIENCE_SECONDS = 10.0
"""How long a cluster that was seen may be unreachable before statuses say so: one lost answer is no news."""


@dataclass(slots=True)
class ClusterLoop:
    """Serves one KafkaCluster until it is gone; `wake` makes it look at once."""

    key: ClusterKey
    store: Store
    kube: KubeClient
    reporter: Reporter
    metrics: Metrics
    health: Health
    before_write: Callable[[], None]
    plans: Plans
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _client: KafkaClient | None = None
    _connection: Connection | None = None
    _connected_to: tuple[str, KafkaClusterSpec] | None = None
    _keeper: BrakeRecord = field(init=False)
    _survey: Survey = field(default_factory=Survey)
    _pacer: Pacer = field(default_factory=Pacer)
    _recent: Recent = field(default_factory=lambda: Recent(started=time.monotonic()))
    _samples: dict[str, deque[tuple[float, int]]] = field(default_factory=lambda: defaultdict(deque))
    _log_dirs: LogDirs = field(default_factory=dict)
    _unseen_since: float | None = None
    _mistake: Problem | None = None
    """What the last tick ended with; the next one says it, so that it does not come and go within each."""
    _sized_at: float = 0.0
    _sized: frozenset[tuple[str, int]] = frozenset()
    _all_at: float = 0.0
    _listed_topics: frozenset[str] = frozenset()
    _throttling: Throttling = field(init=False)

    def __post_init__(self) -> None:
        self._throttling = Throttling(self.key, self.store, self.reporter, self.metrics)
        self._keeper = BrakeRecord(self.key, self.kube)

    async def run(self) -> None:
        """Tick until the KafkaCluster is gone; end with the connection closed."""
        try:
            while (pause := await self._safe_tick()) is not None:
                self.health.tick(self.name)
                await self._sleep(pause)
        finally:
            self.health.forget(self.name)
            self.metrics.forget(self.name)
            await self._disconnect()

    @property
    def name(self) -> str:
        return "/".join(self.key)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        except TimeoutError:
            pass

    async def _safe_tick(self) -> float | None:
        self.wake.clear()
        try:
            with self.metrics.reconciliation(self.name):
                pause = await self._tick()
            self._mistake = None
            return pause
        except ConflictError:
            return CONFLICT_SECONDS
        except ReassignError as error:
            log.warning("tick failed", cluster=self.key, reason=error.reason, error=error.message)
            return UNREACHABLE_SECONDS
        except Exception as error:
            log.exception("tick failed unexpectedly", cluster=self.key)
            self._mistake = mistake(error, "it from serving the cluster")
            return UNREACHABLE_SECONDS

    async def _tick(self) -> float | None:
        obj = self.store.cluster(self.key)
        if obj is None:
            return None
        await self.reporter.restore(self.key)
        try:
            return await self._look(obj)
        finally:  # what cannot be read waits for nobody, and nobody for it
            await self.reporter.answer_for_unreadable(self.key)

    async def _look(self, obj: Object) -> float | None:
        """Serve what can be read; how long to rest, or None when the KafkaCluster has been let go."""
        try:
            cluster = self.store.parse_cluster(obj)
        except ReassignError as error:
            return await self._cannot_read(obj, Problem(error.reason, error.message))
        if await self._throttling.write_back(cluster):
            return AT_ONCE_SECONDS
        resources = await self._admitted(permission_of(cluster))
        awaited = [f"{r.namespace}/{r.name}" for r in resources]
        awaited += [full_name(unread.obj) for unread in self.store.unreadable(self.key)]
        awaited += self.plans.names(self.key)
        if cluster.metadata.deletion_timestamp and not awaited and cluster.status.throttle is None:
            await self.reporter.release_cluster(obj)
            return None
        await self.reporter.keep_cluster(obj)
        if cluster.status.observed_generation is None:
            connecting = Problem(Reason.CONNECTING, f"connecting to {cluster.spec.bootstrap_servers}")
            await self.reporter.write_unready_cluster(self.key, connecting, _now())
        if not self._look_at_all_due():
            due = self.plans.next_waves(self.key)
            resources = [r for r in resources if not r.settled and (not r.asleep or r.uid in due)]
        finding = Finding(brake_of(cluster.spec.execution))
        try:
            client = await self._connected(cluster)
            snapshot = await self._observe(client, resources)
            check_identity(cluster, snapshot.cluster_id)
            if not finding.pause:
                finding = await self._survey.look(client, cluster, resources, snapshot)
        except Exception as error:
            await self._disconnect()
            return await self._stand_still(cluster, self._said(error), resources)
        self._unseen_since = None
        if cluster.status.cluster_id is None:
            # the id first: of two KafkaClusters that are made at once, each then sees the other
            await self.reporter.write_cluster(
                self.key, cluster_status(cluster, snapshot, resources, ClusterHold(), _now())
            )
            return AT_ONCE_SECONDS
        duplicate = duplicate_of(cluster, snapshot.cluster_id, self.store)
        pacing = self._pace(cluster, finding, resources, snapshot)
        stance = ClusterHold(
            hold_of(cluster, awaited) or duplicate, finding.pause, self._mistake or self._keeper.stuck, pacing
        )
        try:
            await self.reporter.write_cluster(self.key, cluster_status(cluster, snapshot, resources, stance, _now()))
        except ApiServerError:
            if cluster.spec.execution is Execution.RUN:
                raise  # what is to be undone waits for no status
        execution = Execution.PAUSE if duplicate else cluster.spec.execution
        sleep = await self._serve(cluster, resources, snapshot, policy_of(cluster, stance), execution)
        sleep = min(sleep, await self._serve_plans(cluster, resources, stance.hold or snapshot) or sleep)
        if cluster.metadata.deletion_timestamp and not awaited and not self._throttling.restores(snapshot.brokers):
            await self.reporter.release_cluster(self.store.cluster(self.key) or obj)
            return None
        return sleep

    def _pace(
        self, cluster: KafkaCluster, finding: Finding, resources: Sequence[Resource], snapshot: Snapshot
    ) -> PacingStatus | None:
        seen = None if finding.topics is None else look(finding.topics, snapshot, resources, self._recent)
        return self._pacer.pace(cluster.spec.limits, cluster.status.pacing, _now(), seen)

    async def _admitted(self, permission: Permission) -> list[Resource]:
        """The resources to serve. One whose namespace is not allowed is refused, but for what it has in flight."""
        admitted: list[Resource] = []
        refused: list[tuple[Resource, Problem]] = []
        for resource in self.store.resources(self.key):
            problem = permission.of_namespace(resource.namespace)
            if problem is None or active(resource.record):
                admitted.append(resource)
            else:
                refused.append((resource, problem))
        attempts = Attempts(self.reporter)
        with suppress(ApiServerError):
            for resource, problem in refused:
                async with attempts.at(resource):
                    await self.reporter.refuse(resource, problem, _now())
        return admitted

    def _look_at_all_due(self) -> bool:
        """Settled resources are looked at for drift, now and then."""
        due = time.monotonic() - self._all_at >= IDLE_SECONDS
        if due:
            self._all_at = time.monotonic()
        return due

    async def _observe(self, client: KafkaClient, resources: Sequence[Resource]) -> Snapshot:
        began = time.monotonic()
        placing = self._throttling.placing()
        topics = {tp.topic for r in resources for tp in r.named} | {tp.topic for tp in placing}
        unsettled = {(r.uid, r.generation): r for r in resources if not r.settled}
        new = not unsettled.keys() <= self._sized
        sizes_due = new or time.monotonic() - self._sized_at >= SIZES_SECONDS
        if not sizes_due:
            unsettled = {}
        snapshot = await client.observe(
            topics | self._listed_topics,
            {tp for r in unsettled.values() for tp in r.named} | (placing if sizes_due else set()) or None,
            {broker for r in unsettled.values() for replicas in r.wanted.values() for broker in replicas},
        )
        self._listed_topics = frozenset(tp.topic for tp in snapshot.reassignments)
        if snapshot.sizes is not None:
            self._sized_at, self._sized = time.monotonic(), frozenset(unsettled)
            self._log_dirs = remembered(self._log_dirs, snapshot.log_dirs, snapshot.brokers)
        self._recent.observe(began, time.monotonic(), snapshot.reassignments.keys(), snapshot.log_dirs.keys())
        return replace(snapshot, sizes=sizes(self._log_dirs), log_dirs=self._log_dirs)

    async def _connected(self, cluster: KafkaCluster) -> KafkaClient:
        wanted = (cluster.metadata.uid, cluster.spec)
        if self._client and self._connection and self._connected_to == wanted:
            await correct_secret(self._connection, cluster, self.kube)
            return self._client
        connection = await self._connection_of(cluster)
        if self._client is None or connection != self._connection:
            await self._disconnect()
            self._client = await KafkaClient.connect(
                connection, timeout=CONNECT_SECONDS, before_write=self.before_write
            )
        self._connection, self._connected_to = connection, wanted
        return self._client

    async def _connection_of(self, cluster: KafkaCluster) -> Connection:
        """Secrets can be gone when moves are to be undone, with their namespace for one: then the last ones serve.

        An unchanged connection is the same object: it holds a token that may be good for long.
        """
        try:
            connection = await connection_of(cluster, self.kube)
            return self._connection if connection == self._connection else connection
        except MissingReferenceError:
            same = self._connected_to is not None and self._connected_to[0] == cluster.metadata.uid
            undoes = cluster.metadata.deletion_timestamp or cluster.spec.execution is not Execution.RUN
            if undoes and same and self._connection:
                return self._connection
            raise

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client:
            await client.close()

    def _said(self, error: Exception) -> ReassignError:
        """What is said of an error in connecting or looking; one that nobody has foreseen is a mistake of ours."""
        if isinstance(error, ReassignError):
            return error
        log.error("failed unexpectedly", cluster=self.key, exc_info=error)
        self.metrics.failed(self.name, Reason.INTERNAL_ERROR)
        problem = mistake(error, "it from seeing the cluster")
        return ReassignError(problem.reason, problem.message)

    async def _stand_still(self, cluster: KafkaCluster, error: ReassignError, resources: Sequence[Resource]) -> float:
        """Say that the cluster cannot be used, on it and on whatever waits for it."""
        if self._unseen_since is None:
            self._unseen_since = time.monotonic()
        lately_seen = self._recent.now > 0 and time.monotonic() - self._unseen_since < PATIENCE_SECONDS
        if error.reason is Reason.CLUSTER_UNREACHABLE and lately_seen:
            return MOVING_SECONDS
        problem = Problem(error.reason, error.message)
        await self.reporter.write_unready_cluster(self.key, problem, _now())
        await self._have_wait(resources, problem)
        await self._serve_plans(cluster, resources, problem)
        return UNREACHABLE_SECONDS

    async def _have_wait(self, resources: Sequence[Resource], problem: Problem) -> None:
        attempts = Attempts(self.reporter)
        for resource in resources:
            async with attempts.at(resource):
                await self.reporter.stand_still(resource, problem, _now())

    async def _cannot_read(self, obj: Object, problem: Problem) -> float | None:
        """Nothing is served; what waits for it, allowed or not, learns no more than that."""
        resources = self.store.resources(self.key)
        referring = [*resources, *self.store.unreadable(self.key), *self.store.plans(self.key)]
        unused = not referring and not obj.get("status", {}).get("throttle")
        if obj["metadata"].get("deletionTimestamp") and unused:
            await self.reporter.release_cluster(obj)
            return None
        await self.reporter.write_unreadable(obj, problem, _now())
        said = f"the operator cannot read the KafkaCluster {self.name}: correct that one, its status says what"
        await self._have_wait(resources, Problem(problem.reason, said))
        await self.plans.serve(self.key, PlanInputs(lambda *_: Problem(problem.reason, said)))
        return UNREACHABLE_SECONDS

    async def _serve(
        self,
        cluster: KafkaCluster,
        resources: Sequence[Resource],
        snapshot: Snapshot,
        policy: Policy,
        execution: Execution,
    ) -> float:
        attempts = Attempts(self.reporter)
        resources = [bounded(r, cluster.spec) for r in resources]
        verdicts, mistakes = judge(resources, snapshot, policy, self._recent, _now())
        for resource, error in mistakes:
            async with attempts.at(resource):
                raise error
        assert self._client is not None
        throttling = await self._throttling.throttle(cluster, self._client, verdicts, snapshot, self._recent)
        for verdict in verdicts:
            put_off(verdict, self._recent, time.monotonic())
        self._pacer.taken, self._pacer.others = places_taken(verdicts, snapshot)
        changed = False
        ready: list[Verdict] = []
        for verdict in verdicts:
            async with attempts.at(verdict.resource):
                prepared, altered = await self._prepare(verdict, snapshot, policy)
                changed |= altered
                if prepared:
                    ready.append(prepared)
        # what a status that could not be written back says would not outlive us: nothing is done on it
        exposed = {resource.uid for resource in self.store.overwritten(self.key)}
        ready = [verdict for verdict in ready if verdict.resource.uid not in exposed]
        steps = [step for verdict in ready for step in verdict.steps]
        # what a resource holds that could not be judged, or recorded, is nobody's: CancelAll takes it back too
        if undo := self._keeper.undo(execution, [v.resource for v in ready], snapshot, self._recent):
            steps = await self._keeper.keep(list(dict.fromkeys([*steps, *undo.cancels])), snapshot, _now())
        outcomes = await self._act(steps)
        acted = time.monotonic()
        for verdict in ready:
            fold(verdict, outcomes, self._recent, acted)
        if undo:
            fold_foreign(undo, outcomes, self._recent, acted)
        for verdict in ready:
            async with attempts.at(verdict.resource):
                await self._report(verdict, snapshot, policy)
        self._count(verdicts, policy)
        if attempts.conflict:
            return CONFLICT_SECONDS
        if changed or any(outcome.result is Result.APPLIED for outcome in outcomes.values()):
            return AT_ONCE_SECONDS
        if throttling or undo or any(active(v.record) or _waits_to_settle(v) for v in verdicts):
            return MOVING_SECONDS
        return WAITING_SECONDS if any(not (r.settled or r.spec.suspend) for r in resources) else IDLE_SECONDS

    async def _prepare(self, verdict: Verdict, snapshot: Snapshot, policy: Policy) -> tuple[Verdict | None, bool]:
        """Write what has to be there before the steps; None when this tick can do nothing for the resource."""
        resource = verdict.resource
        if verdict.release:
            await self.reporter.release(verdict)
            self._samples.pop(resource.uid, None)
            return None, True
        if not verdict.must_record and not (resource.status.observed_generation is None and not resource.deleted):
            if verdict.unsettled and not resource.has_finalizer and not resource.deleted:
                await self.reporter.hold(resource)
                return None, True
            return verdict, False
        written = await self.reporter.write(resource, report(verdict, policy.view(resource, snapshot), (), _now()))
        if written is None:
            return None, True
        verdict.resource = replace(written, unsupported=resource.unsupported) if resource.unsupported else written
        return verdict, not verdict.steps

    async def _serve_plans(
        self, cluster: KafkaCluster, resources: Sequence[Resource], seen: Snapshot | Problem
    ) -> float | None:
        permission = permission_of(cluster)

        def job(plan: Plan) -> Job | None:
            allowed = permission.allowed.get(plan.namespace)
            return Job(plan, cluster, self._connection, allowed) if self._connection and allowed else None

        def seen_by(plan: Plan, wave: Resource | None) -> Seen:
            topics = sorted({tp.topic for tp in wave.asked}) if wave else ()
            withdrawn = next(filter(None, (permission.of_topic(plan.namespace, topic) for topic in topics)), None)
            too_fast = above_maximum(plan.spec.template.throttle, cluster.spec, "spec.template.throttle")
            return permission.of_namespace(plan.namespace) or withdrawn or too_fast or seen

        looked_at = frozenset(resource.uid for resource in resources)
        sight = PlanInputs(seen_by, looked_at, job, self.wake.set)
        return await self.plans.serve(self.key, sight)

    def _count(self, verdicts: Sequence[Verdict], policy: Policy) -> None:
        moving = sum(e.state is RecordState.IN_FLIGHT for v in verdicts for e in v.record.values())
        self.metrics.partitions_in_flight.labels(self.name).set(moving)
        self.metrics.partitions_in_flight_limit.labels(self.name).set(policy.limits.partitions_in_flight)

    async def _act(self, steps: Sequence[Step]) -> dict[Step, Outcome]:
        if not steps:
            return {}
        assert self._client is not None
        outcomes = await self._client.perform(steps)
        for step, outcome in outcomes.items():
            self.metrics.kafka_write(type(step).__name__)
            log.info("step", step=str(step), result=outcome.result, reason=outcome.reason, message=outcome.message)
        return outcomes

    async def _report(self, verdict: Verdict, snapshot: Snapshot, policy: Policy) -> None:
        resource = verdict.resource
        samples = self._samples[resource.uid]
        status = report(verdict, policy.view(resource, snapshot), samples, _now())
        if status.progress and status.progress.bytes_copied is not None and status.progress.partitions_in_flight:
            samples.append((time.monotonic(), status.progress.bytes_copied))
            while samples and samples[-1][0] - samples[0][0] > WINDOW_SECONDS:
                samples.popleft()
        written = await self.reporter.write(resource, status)
        if written and written.has_finalizer and not verdict.unsettled and not written.deleted:
            await self.reporter.let_go(written)


def _now() -> datetime:
    return datetime.now(UTC)


def _waits_to_settle(verdict: Verdict) -> bool:
    """Whether a partition would start, if what is known of it were not that young."""
    return any(state is PartitionState.PENDING and problem is None for state, problem in verdict.waiting.values())
