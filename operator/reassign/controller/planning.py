"""Has plans made, one at a time, each in a process of its own; what comes of it is kept until its waves are written."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import structlog

from reassign.api.common import INT32_MAX, bytes_of, bytes_per_second
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_plan import (
    MAX_UNMET,
    PLAN_LABEL,
    PLAN_UID_LABEL,
    BalanceStatus,
    LowerBound,
    Moves,
    Shares,
    Unmet,
    Wave,
    WaveState,
)
from reassign.controller.apart import run_apart
from reassign.controller.serving import check_identity
from reassign.core.model import Problem, Snapshot
from reassign.core.plan import Manifest, Plan, Planned, manifest_digest
from reassign.errors import PlanningError, Reason
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection

if TYPE_CHECKING:
    from reassign.planning.model import Balance, Certificate, Cluster, Goal

log = structlog.get_logger()

SECONDS = 300.0
"""What a plan may take, with the look at the whole cluster."""
CONNECT_SECONDS = 15.0
RETRY_SECONDS = 60.0
"""How long after a failure it is tried again, at the soonest: what it came from may have been mended."""
WAIT_SECONDS = 60.0
"""How long others wait for the turn of one that has asked: a loop that is well looks, and asks, again sooner."""


class Job(NamedTuple):
    """What a plan is made from: the cluster, the way to it, and patterns of the topics that the plan's namespace may
    move."""

    plan: Plan
    cluster: KafkaCluster
    connection: Connection
    allowed: tuple[str, ...]

    @property
    def rate(self) -> int | None:
        """Bytes per second of each broker; None where nothing is throttled."""
        both = (self.plan.spec.template.throttle, self.cluster.spec.throttle)
        rates = [throttle.inter_broker for throttle in both if throttle and throttle.inter_broker is not None]
        return bytes_per_second(rates[0]) if rates else None

    @property
    def terms(self) -> tuple[object, ...]:
        """All that decides what a plan may be, the brokers apart: what was made on other terms counts no more."""
        cluster = self.cluster
        min_free = cluster.spec.limits.min_free_disk_percent
        return self.plan.input_hash, cluster.metadata.uid, self.allowed, min_free, self.rate


class _Outcome(NamedTuple):
    terms: tuple[object, ...]
    made: Planned | Problem
    at: float


class Planner:
    """One process at a time, for all clusters: a plan needs memory, and the loops need a processor."""

    def __init__(self, work: Callable[[Job], Awaitable[Planned]] | None = None) -> None:
        self._work = work or (lambda job: run_apart(work_out, job, seconds=SECONDS))
        self._outcomes: dict[str, _Outcome] = {}
        self._waiting: dict[str, tuple[float, Callable[[], object]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._under_way: Job | None = None

    def made(self, job: Job) -> Planned | Problem | None:
        """What planning came to on the terms as they are."""
        outcome = self._outcomes.get(job.plan.uid)
        return outcome.made if outcome and outcome.terms == job.terms else None

    def ask(self, job: Job, wake: Callable[[], object]) -> None:
        """Begin with a plan if it is due and its turn; `wake` is called when it has ended, or when others have and it
        may ask again. One under way on the terms that were before ends.

        Of those that wait one that was never tried goes first, then the one whose last try ended longest ago: those
        that fail again and again keep no other from being made.
        """
        uid = job.plan.uid
        if self._under_way and self._under_way.plan.uid == uid:
            if self._under_way.terms != job.terms:
                self.forget(uid)
            return
        if not self._due(job):
            return
        now = time.monotonic()
        self._waiting[uid] = now, wake
        waiting = [other for other, (asked_at, _) in self._waiting.items() if now - asked_at < WAIT_SECONDS]
        if self._under_way is None and all(self._tried_at(uid) <= self._tried_at(other) for other in waiting):
            del self._waiting[uid]
            self._start(job, wake)

    def _due(self, job: Job) -> bool:
        """What needs more memory than there is will need it again: it waits for other terms, or another process of
        ours."""
        outcome = self._outcomes.get(job.plan.uid)
        if outcome is None or outcome.terms != job.terms:
            return True
        hopeless = isinstance(outcome.made, Problem) and outcome.made.reason is Reason.INSUFFICIENT_MEMORY
        return not hopeless and time.monotonic() - outcome.at >= RETRY_SECONDS

    def _tried_at(self, uid: str) -> float:
        outcome = self._outcomes.get(uid)
        return outcome.at if outcome else -math.inf

    def _start(self, job: Job, wake: Callable[[], object]) -> None:
        self._under_way = job
        self._task = asyncio.create_task(self._run(job), name=f"plan {job.plan.namespace}/{job.plan.name}")
        self._task.add_done_callback(lambda _: self._end(wake))

    def _end(self, wake: Callable[[], object]) -> None:
        self._under_way = None
        for each in (wake, *(other for _, other in self._waiting.values())):
            each()

    def keep(self, uids: Collection[str]) -> None:
        """Forget the plans that are not among these any more."""
        under_way = {self._under_way.plan.uid} if self._under_way else set()
        for uid in (self._outcomes.keys() | self._waiting.keys() | under_way) - set(uids):
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """A plan is written, or gone."""
        self._outcomes.pop(uid, None)
        self._waiting.pop(uid, None)
        if self._task and self._under_way and self._under_way.plan.uid == uid:
            self._task.cancel()

    async def _run(self, job: Job) -> None:
        plan = job.plan
        name = f"{plan.namespace}/{plan.name}"
        began = time.monotonic()
        made: Planned | Problem
        try:
            made = await self._work(job)
            log.info("planned", plan=name, waves=len(made.waves), seconds=round(time.monotonic() - began, 1))
        except PlanningError as error:
            log.warning("not planned", plan=name, reason=error.reason, error=error.message)
            made = Problem(error.reason, error.message)
        except Exception as error:
            log.exception("planning failed unexpectedly", plan=name)
            message = f"a mistake of the operator ({type(error).__name__}) keeps it from planning; its log has more"
            made = Problem(Reason.INTERNAL_ERROR, message)
        self._outcomes[plan.uid] = _Outcome(job.terms, made, time.monotonic())


# --- In the other process: the whole cluster, numpy and numba are there and nowhere else ---


def work_out(job: Job) -> Planned:
    """Look at the whole cluster and make a plan. Raises PlanningError for what cannot be planned, ClusterError where
    the cluster cannot be seen.

    The look is taken here: it is far larger than what is looked at to move partitions, and it may take a minute.
    """
    from reassign.core.survey import survey
    from reassign.planning import compiled

    compiled.link()
    return plan_of(job, survey(asyncio.run(_look(job))))


async def _look(job: Job) -> Snapshot:
    client = await KafkaClient.connect(job.connection, timeout=CONNECT_SECONDS)
    try:
        snapshot = await client.observe_everything()
    finally:
        await client.close()
    check_identity(job.cluster, snapshot.cluster_id)
    return snapshot


def plan_of(job: Job, cluster: Cluster) -> Planned:
    """The plan for the cluster as it was seen."""
    from reassign.planning.manifests import check_stored, digest, reassignments
    from reassign.planning.plan import make

    plan = job.plan
    waves, max_bytes = plan.spec.waves, plan.spec.waves.max_bytes
    made = make(
        cluster,
        goal_of(job, cluster.topics),
        waves.max_partitions,
        None if max_bytes is None else bytes_of(max_bytes),
        job.rate,
    )
    check_stored(made)
    manifests = reassignments(
        cluster,
        made,
        name=plan.wave_prefix,
        namespace=plan.namespace,
        cluster_ref=plan.spec.cluster_ref.wire(),
        template=plan.spec.template.wire(),
    )
    labelled = [_labelled(manifest, plan) for manifest in manifests]
    return planned(plan, labelled, digest(labelled), made.certificate, sizes_of(cluster))


def goal_of(job: Job, topics: Sequence[str]) -> Goal:
    """The goal in the planner's words, for a cluster with these topics."""
    from reassign.planning import model

    spec, goal = job.plan.spec, job.plan.spec.goal
    return model.Goal(
        include=spec.topics.include if "*" in job.allowed else _allowed(job, topics),
        exclude=spec.topics.exclude,
        drain=frozenset(goal.drain_brokers or ()),
        brokers=None if goal.brokers is None else frozenset(goal.brokers),
        replication_factor=goal.replication_factor,
        balance=frozenset(goal.balance.by) if goal.balance else frozenset(),
        tolerance=goal.balance.tolerance_percent / 100 if goal.balance else 0.10,
        awareness=spec.racks.awareness,
        min_free=job.cluster.spec.limits.min_free_disk_percent / 100,
    )


def _allowed(job: Job, topics: Sequence[str]) -> tuple[str, ...]:
    """The topics to plan for by their names, since they have to match two lists of patterns. Of the others a namespace
    that may not move them learns nothing, not even how many there are."""

    def matches(topic: str, patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(topic, pattern) for pattern in patterns)

    wanted = job.plan.spec.topics
    names = tuple(t for t in topics if matches(t, wanted.include) and matches(t, job.allowed))
    if all(matches(name, wanted.exclude) for name in names):
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"no topic that the namespace {job.plan.namespace} may move ({', '.join(job.allowed)}) matches "
            "spec.topics: change the patterns, or have spec.allowedNamespaces of the KafkaCluster list more",
        )
    return names


def sizes_of(cluster: Cluster) -> dict[tuple[str, int], int]:
    """Bytes of one replica by topic and partition; those that are not known as the planner takes them."""
    from reassign.planning.problem import sizes_or_means

    size, _ = sizes_or_means(cluster)
    rows = zip(cluster.topic.tolist(), cluster.partition.tolist(), size.tolist(), strict=True)
    return {(cluster.topics[topic], partition): size for topic, partition, size in rows}


def _labelled(manifest: Manifest, plan: Plan) -> Manifest:
    metadata = manifest["metadata"]
    labels = metadata.get("labels", {}) | {PLAN_LABEL: plan.name, PLAN_UID_LABEL: plan.uid}
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def planned(
    plan: Plan,
    manifests: Sequence[Manifest],
    digest: str,
    certificate: Certificate,
    sizes: Mapping[tuple[str, int], int],
) -> Planned:
    """What becomes of a plan: plain values, so that whoever reads them needs no arrays."""
    return Planned(
        input_hash=plan.input_hash,
        manifests=tuple(manifests),
        waves=tuple(_wave(manifest, sizes) for manifest in manifests),
        digest=digest,
        moves=Moves(
            replicas=certificate.moves,
            bytes=certificate.bytes,
            leaders=certificate.leaders,
            seconds=_seconds(certificate.makespan),
        ),
        lower_bound=LowerBound(
            replicas=certificate.moves_bound,
            bytes=certificate.bytes_bound,
            waves=certificate.waves_bound,
            seconds=_seconds(certificate.makespan_bound),
        ),
        balance=BalanceStatus(
            before=tuple(_shares(balance, balance.before) for balance in certificate.balance),
            after=tuple(_shares(balance, balance.after) for balance in certificate.balance),
        ),
        unmet=tuple(Unmet(what=part.what, nearest=part.nearest) for part in certificate.unmet[:MAX_UNMET]),
    )


def _wave(manifest: Manifest, sizes: Mapping[tuple[str, int], int]) -> Wave:
    entries = manifest["spec"]["partitions"]
    added = ((e, len(set(e["replicas"]) - set(e["expectedReplicas"]))) for e in entries)
    return Wave(
        name=manifest["metadata"]["name"],
        partitions=len(entries),
        bytes=sum(count * sizes[entry["topic"], entry["partition"]] for entry, count in added),
        state=WaveState.PENDING,
        digest=manifest_digest(manifest),
    )


def _shares(balance: Balance, ends: tuple[float, float]) -> Shares:
    least, greatest = ends
    return Shares(
        by=balance.by,
        least_percent=math.floor(100 * least),
        greatest_percent=min(math.ceil(100 * greatest), INT32_MAX) if math.isfinite(greatest) else INT32_MAX,
    )


def _seconds(makespan: float | None) -> int | None:
    return None if makespan is None else round(makespan)
