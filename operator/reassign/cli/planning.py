"""The command `plan`: a goal and a cluster, live or kept, become a plan that is shown or written as manifests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import typer

from reassign.api.common import bytes_of, bytes_per_second
from reassign.api.goal import Awareness, By
from reassign.cli import manifests, picture
from reassign.cli import output as out
from reassign.cli.options import PlanOutput, Racks
from reassign.cli.source import Where, cluster_of, namespace_or_default
from reassign.planning.manifests import reassignments
from reassign.planning.model import Cluster, Goal, Plan
from reassign.planning.plan import make


class Wanted(NamedTuple):
    """How a plan is made of a goal: its waves, in quantities, what they are called, and whether it is polished."""

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
    """What the options ask for."""
    default = Goal()
    return Goal(
        include=tuple(include) if include else default.include,
        exclude=tuple(exclude) if exclude else default.exclude,
        drain=drain,
        brokers=brokers,
        replication_factor=replication_factor,
        balance=frozenset(map(_by, balance.split(","))) if balance else default.balance,
        tolerance=tolerance / 100,
        awareness=Awareness(racks.capitalize()),
    )


def _by(name: str) -> By:
    try:
        return By(name.strip().capitalize())
    except ValueError:
        raise typer.BadParameter(f"{name!r} is none of disk, replicas, leaders", param_hint="'--balance'") from None


def run(where: Where, snapshot: Path | None, goal: Goal, waves: Wanted, output: PlanOutput) -> bool:
    """Plan, and write the plan; whether it reaches the whole goal."""
    if output is PlanOutput.MANIFESTS:
        manifests.cluster_ref(where.cluster)
    with out.progress("looking at the cluster", "planning") as next_step:
        cluster = cluster_of(where, snapshot)
        next_step()
        max_bytes = bytes_of(waves.max_bytes) if waves.max_bytes else None
        rate = bytes_per_second(waves.throttle) if waves.throttle else None
        plan = make(cluster, goal, waves.max_partitions, max_bytes, rate, exact=waves.exact)
    if output is PlanOutput.JSON:
        out.write_json(picture.as_json(cluster, plan))
    elif output is PlanOutput.TEXT:
        out.write_picture(picture.parts(cluster, plan))
    else:
        out.write(manifests.write(_manifests(cluster, plan, where, waves)))
    return not plan.certificate.unmet


def _manifests(cluster: Cluster, plan: Plan, where: Where, waves: Wanted) -> list[manifests.Manifest]:
    return reassignments(
        cluster,
        plan,
        name=waves.name,
        namespace=namespace_or_default(where.namespace),
        cluster_ref=manifests.cluster_ref(where.cluster),
        template=manifests.template(waves.throttle),
        max_partitions=waves.max_partitions,
    )
