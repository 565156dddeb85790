"""The command `plan`: a goal and a cluster, live or kept, become a plan that is shown or written as manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import typer

from reassign.api.common import bytes_of, bytes_per_second
from reassign.api.goal import Awareness, By
from reassign.api.kafka_cluster import KafkaCluster
from reassign.cli import manifests, picture
from reassign.cli import output as out
from reassign.cli.options import PlanOutput, Racks
from reassign.cli.source import Where, namespace_or_default, seen
from reassign.planning.manifests import reassignments
from reassign.planning.plan import make
from reassign.planning.problem.model import Cluster, Goal, Plan


class Wanted(NamedTuple):
    """A goal, and how a plan is made of it: what stays free of a disk (None: what the KafkaCluster says), its waves, in
    quantities, what they are called, and whether it is polished."""

    goal: Goal
    min_free_disk: int | None
    max_partitions: int
    max_bytes: str | None
    throttle: str | None
    name: str
    exact: bool


def goal_of(
    *,
    drain: frozenset[int],
    brokers: frozenset[int] | None,
    replication_factor: int | None,
    balance: str | None,
    tolerance: int,
    racks: Racks,
    include: list[str] | None,
    exclude: list[str] | None,
) -> Goal:
    """What the options ask for; a usage error for what a ReassignmentPlan could not ask for either."""
    if not (drain or brokers or replication_factor or balance is not None):
        raise typer.BadParameter(
            "a goal needs at least one of --drain-broker, --broker, --replication-factor and --balance"
        )
    if both := sorted(drain & (brokers or frozenset())):
        raise typer.BadParameter(
            f"broker {both[0]} cannot be emptied and hold replicas; take it out of one", param_hint="'--drain-broker'"
        )
    default = Goal()
    return Goal(
        include=tuple(include) if include else default.include,
        exclude=tuple(exclude) if exclude else default.exclude,
        drain=drain,
        brokers=brokers,
        replication_factor=replication_factor,
        balance=default.balance if balance is None else frozenset(map(_by, balance.split(","))),
        tolerance=tolerance / 100,
        awareness=Awareness(racks.capitalize()),
    )


def _by(name: str) -> By:
    try:
        return By(name.strip().capitalize())
    except ValueError:
        raise typer.BadParameter(f"{name!r} is none of disk, replicas, leaders", param_hint="'--balance'") from None


def run(where: Where, wanted: Wanted, output: PlanOutput) -> bool:
    """Plan, and write the plan; whether it reaches the whole goal."""
    if output is PlanOutput.MANIFESTS:
        manifests.cluster_ref(where.cluster)
    with out.progress("looking at the cluster", "planning") as next_step:
        cluster, by = seen(where)
        next_step()
        max_bytes = bytes_of(wanted.max_bytes) if wanted.max_bytes else None
        goal = replace(wanted.goal, min_free=_min_free(wanted, by))
        plan = make(cluster, goal, wanted.max_partitions, max_bytes, _rate(wanted, by), exact=wanted.exact)
    if output is PlanOutput.JSON:
        out.write_json(picture.as_json(cluster, plan))
    elif output is PlanOutput.TEXT:
        out.write_picture(picture.parts(cluster, plan))
    else:
        out.write(manifests.write(_manifests(cluster, plan, where, wanted)))
    return not plan.certificate.unmet


def _min_free(wanted: Wanted, by: KafkaCluster | None) -> float:
    if wanted.min_free_disk is not None:
        return wanted.min_free_disk / 100
    return by.spec.limits.min_free_disk_percent / 100 if by else wanted.goal.min_free


def _rate(wanted: Wanted, by: KafkaCluster | None) -> int | None:
    """Bytes per second of each broker; None where nothing is throttled."""
    rate: int | str | None = wanted.throttle
    if rate is None and by and by.spec.throttle:
        rate = by.spec.throttle.inter_broker
    return None if rate is None else bytes_per_second(rate)


def _manifests(cluster: Cluster, plan: Plan, where: Where, wanted: Wanted) -> list[manifests.Manifest]:
    return reassignments(
        cluster,
        plan,
        name=wanted.name,
        namespace=namespace_or_default(where.namespace),
        cluster_ref=manifests.cluster_ref(where.cluster),
        template=manifests.template(wanted.throttle),
        max_partitions=wanted.max_partitions,
    )
