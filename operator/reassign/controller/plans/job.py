"""What a plan is made from, and what the process does that makes it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from reassign.api.common import INT32_MAX, bytes_of
from reassign.api.goal import GoalPart, Scope
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.names import matches
from reassign.api.reassignment_plan import (
    PLAN_LABEL,
    PLAN_UID_LABEL,
    BalanceStatus,
    LowerBound,
    PlanMoves,
    Shares,
    Unmet,
    Wave,
    WaveState,
)
from reassign.core.automation.model import WorkedOut, plan_spec_digest
from reassign.core.configs.desired import rates_of
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.snapshot import Snapshot
from reassign.core.plans.goal import cut_short, not_reached, unregistered
from reassign.core.plans.model import GoalSeen, Manifest, Planned, PlanResource, manifest_digest
from reassign.errors import PlanningError, Reason
from reassign.inspect.cluster import observe, read_only
from reassign.kafka.connection import Connection
from reassign.text import listed

if TYPE_CHECKING:
    from reassign.planning.problem.model import Balance, Certificate, Cluster, PlacementGoal, UnmetGoal

CONNECT_SECONDS = 15.0


class Job(NamedTuple):
    """What a plan is made from: the cluster with its recorded id, the way to it, and patterns of the topics that the
    plan's namespace may move. Of a plan that is made already its goal is observed."""

    plan: PlanResource
    cluster: KafkaCluster
    cluster_id: str | None
    connection: Connection
    allowed: tuple[str, ...]
    owner: str | None = None
    """The uid of the object that the plan is worked out for, where there is no object of the plan itself."""
    owned: bool = False
    """Whether the plan has an owner: then it is made as it is worked out for that."""
    in_part: bool = False
    """Whether such a plan may leave replicas on the brokers that it empties."""
    lifted: frozenset[int] = frozenset()
    """Brokers whose cordons count as lifted: they are when the plan begins."""

    @property
    def uid(self) -> str:
        """What tells it from others: the uid of the plan, or of its owner."""
        return self.owner or self.plan.uid

    @property
    def rate(self) -> int | None:
        """Bytes per second of each broker; None where nothing is throttled."""
        return rates_of(self.plan.spec.template.throttle, ConfigRules.of(self.cluster.spec)).inter_broker

    @property
    def terms(self) -> tuple[object, ...]:
        """All that decides what a plan may be, the brokers apart: what was made on other terms counts no more."""
        cluster = self.cluster
        min_free = cluster.spec.limits.min_free_disk_percent
        return self.plan.planned, self.plan.input_hash, cluster.metadata.uid, self.allowed, min_free, self.rate


def renamed(planned: Planned, before: PlanResource, plan: PlanResource) -> Planned:
    """Return what was worked out in the name of one plan in the name of another one with the same spec."""
    names = {wave.name: plan.wave_prefix + wave.name.removeprefix(before.wave_prefix) for wave in planned.waves}
    manifests = (
        {**manifest, "metadata": {**manifest["metadata"], "name": names[manifest["metadata"]["name"]]}}
        for manifest in planned.manifests
    )
    return replace(
        planned,
        manifests=tuple(_labelled(manifest, plan) for manifest in manifests),
        waves=tuple(wave.model_copy(update={"name": names[wave.name]}) for wave in planned.waves),
    )


# --- In the other process: the whole cluster, numpy and numba are there and nowhere else ---


def work_out(job: Job) -> Planned | GoalSeen | WorkedOut:
    """Observe the whole cluster, and make a plan or compare it with the goal; raises PlanningError and ClusterError.

    The cluster is observed here: that is far more than what the loop observes, and it may take a minute.
    """
    from reassign.core.survey import survey

    snapshot = uncordoned(asyncio.run(_observe(job)), job.lifted)
    cluster = survey(snapshot)
    if job.owner:
        return worked_out(job, snapshot, cluster)
    if job.plan.planned:
        return goal_seen(job, layout_seen(snapshot), cluster)
    return owned_plan_of(job, snapshot, cluster) if job.owned else plan_of(job, cluster)


async def _observe(job: Job) -> Snapshot:
    async with read_only(job.connection, CONNECT_SECONDS) as client:
        snapshot, _ = await observe(client, job.cluster_id)
    return snapshot


def uncordoned(snapshot: Snapshot, brokers: frozenset[int]) -> Snapshot:
    """Return a snapshot in which no log directory of these brokers is cordoned."""
    log_dirs = {
        broker: {path: replace(it, cordoned=False) for path, it in its.items()} if broker in brokers else its
        for broker, its in snapshot.log_dirs.items()
    }
    return replace(snapshot, log_dirs=log_dirs)


def goal_seen(job: Job, layout: Layout, cluster: Cluster) -> GoalSeen:
    """Return what of the goal is not reached in the cluster as it was seen."""
    from reassign.planning.plan import evenness

    plan, ids = job.plan, frozenset(cluster.brokers.tolist())
    unmet, gone = not_reached(plan, layout, job.allowed), unregistered(plan, layout)
    if plan.spec.goal.scope is Scope.DRAINED:  # nothing else was to be moved
        return GoalSeen(unmet, None, gone)
    try:
        goal = goal_of(job, cluster.topics)
        left = replace(
            goal, drain=goal.drain & ids, brokers=goal.brokers and goal.brokers & ids, avoid=goal.avoid & ids
        )
        found = evenness(cluster, left)
    except PlanningError as error:  # such as topics that are all gone
        judged = Unmet(what="whether replicas lie evenly", nearest=f"not known: {error.message}", part=GoalPart.BALANCE)
        return GoalSeen((*unmet, judged), (), gone)
    after = tuple(_shares(balance, balance.after) for balance in found.balance)
    return GoalSeen((*unmet, *map(_unmet, found.unmet)), after, gone)


def worked_out(job: Job, snapshot: Snapshot, cluster: Cluster) -> WorkedOut:
    """Make a plan to evacuate brokers, and say what it would leave on them.

    Partitions that nothing can be copied of are planned around. What brokers that are down may have, or an offline log
    directory, beside what metadata shows, is no question for the plan.
    """
    from reassign.core.survey import sourceless
    from reassign.planning.problem.names import partition_name

    drained = frozenset(job.plan.spec.goal.drain_brokers or ())
    rows = sourceless(snapshot, cluster)
    hosts = {row: {*cluster.brokers[its[its >= 0]].tolist()} for row in rows for its in (cluster.replicas[row],)}
    excluded = job.plan.spec.topics.exclude or ()
    left_out = [
        row for row, its in hosts.items() if drained & its and not matches(cluster.topics[cluster.topic[row]], excluded)
    ]
    up = frozenset(cluster.brokers[cluster.alive].tolist())
    in_flight = cluster.in_flight.copy()
    # those without any live replica are left where they are by any plan, which says so
    in_flight[[row for row, its in hosts.items() if up & its]] = True
    silent = up - snapshot.log_dirs.keys()
    unseen = cluster.unseen and replace(cluster.unseen, silent=cluster.unseen.silent & silent)
    found, unmet = _made(job, replace(cluster, in_flight=in_flight, unseen=unseen))
    return WorkedOut(
        plan_spec_digest(job.plan.spec),
        found,
        incomplete=tuple(one.what for one in unmet if one.part is GoalPart.DRAIN and one.cause is None),
        left_out=tuple(partition_name(cluster, row) for row in left_out),
    )


def owned_plan_of(job: Job, snapshot: Snapshot, cluster: Cluster) -> Planned:
    """Make a plan whose owner has had it created, where what was worked out for that was lost in a restart."""
    found = worked_out(job, snapshot, cluster)
    if found.incomplete and not job.in_part:
        raise PlanningError(Reason.DRAIN_INCOMPLETE, f"would stay: {listed(found.incomplete)}")
    return found.planned


def plan_of(job: Job, cluster: Cluster) -> Planned:
    """Make the plan for the cluster as it was seen."""
    return _made(job, cluster)[0]


def _made(job: Job, cluster: Cluster) -> tuple[Planned, tuple[UnmetGoal, ...]]:
    """Return a plan, and what of its goal it does not reach."""
    from reassign.manifests.waves import check_stored, reassignments
    from reassign.planning.plan import make

    plan = job.plan
    waves, max_bytes = plan.spec.waves, plan.spec.waves.max_bytes
    cluster, withheld = permitted(job, cluster)
    made = make(
        cluster,
        goal_of(job, known_topics(cluster)),
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
    certificate = replace(made.certificate, unmet=(*withheld, *made.certificate.unmet))
    return planned(plan, labelled, certificate, sizes_of(cluster)), certificate.unmet


def permitted(job: Job, cluster: Cluster) -> tuple[Cluster, list[UnmetGoal]]:
    """Return the cluster without logs that the plan's namespace may not know of, and which drained brokers have others.

    Of these it learns no more than that there are some, whatever topics the plan names.
    """
    from reassign.planning.problem.model import UnmetGoal
    from reassign.planning.problem.unseen import drained_brokers

    if "*" in job.allowed:
        return cluster, []
    own = [matches(topic, job.allowed) for topic in cluster.topics]
    rows = cluster.replicas[[not own[topic] for topic in cluster.topic.tolist()]]
    holding = {int(cluster.brokers[broker]) for broker in set(rows[rows >= 0].tolist())}
    if unseen := cluster.unseen:
        logs = tuple(one for one in unseen.logs if matches(one.topic, job.allowed))
        holding |= {one.broker for one in unseen.logs if not matches(one.topic, job.allowed)}
        cluster = replace(cluster, unseen=replace(unseen, logs=logs))
    return cluster, [
        UnmetGoal(
            f"broker {broker} has replicas that this namespace may not move",
            "they stay; the owner of the KafkaCluster can drain it, or list more topics in allowedNamespaces",
            GoalPart.DRAIN,
        )
        for broker in sorted(drained_brokers(cluster, _goal(job)) & holding)
    ]


def known_topics(cluster: Cluster) -> list[str]:
    """Return the names of all topics, of those that metadata does not show too."""
    logs = cluster.unseen.logs if cluster.unseen else ()
    return sorted({*cluster.topics, *(one.topic for one in logs)})


def goal_of(job: Job, topics: Sequence[str]) -> PlacementGoal:
    """Return the goal in the planner's words, for a cluster with these topics."""
    goal = _goal(job)
    return goal if "*" in job.allowed else replace(goal, include=_allowed(job, topics))


def _goal(job: Job) -> PlacementGoal:
    from reassign.planning.problem import goals

    spec = job.plan.spec
    return goals.goal_of(spec.goal, spec.topics, spec.racks, job.cluster.spec.limits.min_free_disk_percent)


def _allowed(job: Job, topics: Sequence[str]) -> tuple[str, ...]:
    """Return the topics to plan for by their names, since they have to match two lists of patterns.

    A namespace learns nothing of topics that it may not move, not even how many there are.
    """
    wanted, goal = job.plan.spec.topics, job.plan.spec.goal
    names = tuple(t for t in topics if matches(t, wanted.include) and matches(t, job.allowed))
    excluded = () if wanted.exclude is None and goal.drains else wanted.excluded
    if all(matches(name, excluded) for name in names):
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"no topic that the namespace {job.plan.namespace} may move ({', '.join(job.allowed)}) matches "
            "spec.topics: change the patterns, or have spec.allowedNamespaces of the KafkaCluster list more",
        )
    return names


def sizes_of(cluster: Cluster) -> dict[tuple[str, int], int]:
    """Return the bytes of one replica by partition; where they are not known, as many as the planner assumes."""
    from reassign.planning.problem.measures import sizes_or_means

    size = sizes_or_means(cluster)
    rows = zip(cluster.topic.tolist(), cluster.partition.tolist(), size.tolist(), strict=True)
    return {(cluster.topics[topic], partition): size for topic, partition, size in rows}


def _labelled(manifest: Manifest, plan: PlanResource) -> Manifest:
    metadata = manifest["metadata"]
    labels = metadata.get("labels", {}) | {PLAN_LABEL: plan.name, PLAN_UID_LABEL: plan.uid}
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def planned(
    plan: PlanResource,
    manifests: Sequence[Manifest],
    certificate: Certificate,
    sizes: Mapping[tuple[str, int], int],
) -> Planned:
    """Return what becomes of a plan as plain values, so that no reader needs arrays."""
    return Planned(
        input_hash=plan.input_hash,
        manifests=tuple(manifests),
        waves=tuple(_wave(manifest, sizes) for manifest in manifests),
        moves=PlanMoves(
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
        unmet=cut_short([*map(_unmet, certificate.unmet)]),
    )


def _unmet(part: UnmetGoal) -> Unmet:
    return Unmet(what=part.what, nearest=part.nearest, part=part.part)


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
