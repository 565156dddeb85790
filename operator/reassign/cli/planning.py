"""The command `plan`: a plan for a goal and a cluster, live or kept, shown or written as manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import typer

from reassign.api.common import bytes_of
from reassign.api.goal import EXCLUDED_BY_DEFAULT, Awareness, By, FencedBrokers, Scope
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import Throttle
from reassign.api.reassignment_plan import BalanceGoal, Goal, Topics
from reassign.cli import options, picture
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.options import ManifestOutput, PlanOutput, Racks, checked, cluster_ref, items, template
from reassign.cli.source import Where, observe, print_notes
from reassign.core.configs.desired import rates_of
from reassign.core.model.cluster_rules import ConfigRules
from reassign.manifests.objects import Manifest
from reassign.manifests.waves import reassignments
from reassign.planning.plan import make
from reassign.planning.problem.model import Cluster, GoalWords, PlacementGoal, Plan
from reassign.planning.problem.selection import any_of
from reassign.planning.unseen import unseen_notes
from reassign.text import counted, listed


class Wanted(NamedTuple):
    """A goal, and the options of its plan."""

    goal: PlacementGoal
    min_free_disk: int | None
    """In percent; None: that of the KafkaCluster."""
    max_partitions: int
    max_bytes: str | None
    throttle: str | None
    name: str


def goal_of(
    *,
    drain: frozenset[int] | None,
    brokers: frozenset[int] | None,
    replication_factor: int | None,
    balance: list[str] | None,
    tolerance: int,
    racks: Racks,
    include: tuple[str, ...] | None,
    exclude: tuple[str, ...] | None,
    scope: options.Scope,
    avoid: frozenset[int] | None,
    fenced_brokers: options.Fenced,
) -> PlacementGoal:
    """Return the goal of the options; raises a usage error for one that no ReassignmentPlan can have."""
    if not (drain or brokers or replication_factor or balance is not None):
        raise typer.BadParameter(
            "a goal needs at least one of --drain-broker, --broker, --replication-factor and --balance"
        )
    drain, avoid = drain or frozenset(), avoid or frozenset()
    if both := sorted(drain & (brokers or frozenset())):
        raise typer.BadParameter(
            f"broker {both[0]} cannot be emptied and hold replicas; take it out of one", param_hint="'--drain-broker'"
        )
    if scope is options.Scope.DRAINED and (not drain or replication_factor or balance is not None):
        raise typer.BadParameter(
            "drained needs --drain-broker, and excludes --replication-factor and --balance", param_hint="'--scope'"
        )
    if both := sorted(avoid & drain or (avoid - brokers if brokers else frozenset())):
        raise typer.BadParameter(
            f"broker {both[0]} is to be emptied, and what avoided brokers have may stay; take it out of one",
            param_hint="'--avoid-broker'",
        )
    by = () if balance is None else tuple(map(_by, items(balance)))
    for option, model, fields in (
        ("--drain-broker", Goal, {"drain_brokers": tuple(drain) or None}),
        ("--broker", Goal, {"brokers": brokers}),
        ("--balance", BalanceGoal, {"by": by} if by else {}),
        ("--avoid-broker", Goal, {"avoid_brokers": tuple(avoid) or None}),
        ("--include", Topics, {} if include is None else {"include": include}),
        ("--exclude", Topics, {"exclude": exclude}),
    ):
        checked(option, model, **fields)
    return PlacementGoal(
        include=PlacementGoal().include if include is None else include,
        exclude=exclude,
        drain=drain,
        brokers=brokers,
        replication_factor=replication_factor,
        balance=frozenset(by),
        tolerance=tolerance / 100,
        awareness=Awareness(racks.capitalize()),
        words=GoalWords(f"`--racks {Racks.FLAT}`", f"`--racks {Racks.NONE}`", "`--exclude ''`"),
        avoid=avoid,
        scope=Scope(scope.capitalize()),
        fenced_brokers=FencedBrokers(fenced_brokers.capitalize()),
    )


def pattern_notes(goal: PlacementGoal, topics: Sequence[str]) -> Iterator[str]:
    """Yield what its author may not see of the patterns: that one matches nothing, or not what was meant."""

    def matching(*patterns: str) -> list[str]:
        return [*filter(any_of(patterns), topics)]

    for option, patterns in (("--include", goal.include), ("--exclude", goal.exclude or ())):
        for pattern in patterns:
            found, loose = len(matching(pattern)), pattern.replace(".*", "*")
            more = f"; {loose} matches {counted(len(matching(loose)), 'topic')}"
            if loose == pattern or len(matching(loose)) == found:
                more = ""
            if not found:
                yield f"no topic matches {pattern} of {option}{more}"
            elif more:
                yield f"{pattern} of {option} matches {counted(found, 'topic')}, with a dot in the name{more}"
    if goal.exclude:
        planned = {*matching(*goal.include)}.difference(matching(*goal.exclude))
        internal = [topic for topic in matching(*EXCLUDED_BY_DEFAULT) if topic in planned]
        if internal:
            default = ",".join(EXCLUDED_BY_DEFAULT)
            yield f"--exclude replaces its default, so {listed(internal)} may move; add {default} to prevent that"


def _by(name: str) -> By:
    known = {by.lower(): by for by in By}
    if (by := known.get(name.strip().lower())) is None:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint="'--balance'")
    return by


def run(where: Where, wanted: Wanted, output: PlanOutput) -> bool:
    """Make a plan and write it; return whether it reaches the whole goal."""
    if output is PlanOutput.MANIFESTS:
        cluster_ref(where.cluster)
    with out.progress("observing the cluster", "planning") as next_step:
        cluster, by = observe(where)
        print_notes(unseen_notes(cluster.unseen))
        next_step()
        max_bytes = bytes_of(wanted.max_bytes) if wanted.max_bytes else None
        goal = replace(wanted.goal, min_free=_min_free(wanted, by))
        throttle = Throttle(inter_broker=wanted.throttle) if wanted.throttle else None
        rate = rates_of(throttle, ConfigRules.of(by.spec) if by else ConfigRules()).inter_broker
        plan = make(cluster, goal, wanted.max_partitions, max_bytes, rate)
    print_notes(pattern_notes(goal, cluster.topics))
    if output is PlanOutput.MANIFESTS:
        manifests = _manifests(cluster, plan, where, wanted)
        if not manifests:
            out.say("note: there are no manifests, because the plan changes no partition")
        out.write_objects(manifests, ManifestOutput.YAML)
    elif not out.write_value(picture.as_json(cluster, plan), output):
        out.write_picture(picture.parts(cluster, plan))
        if output is PlanOutput.WIDE:
            out.write("\n")
            out.write_tables([picture.partitions(cluster, plan)])
    return not plan.certificate.unmet


def _min_free(wanted: Wanted, by: KafkaCluster | None) -> float:
    if wanted.min_free_disk is not None:
        return wanted.min_free_disk / 100
    return by.spec.limits.min_free_disk_percent / 100 if by else wanted.goal.min_free


def _manifests(cluster: Cluster, plan: Plan, where: Where, wanted: Wanted) -> list[Manifest]:
    return reassignments(
        cluster,
        plan,
        name=wanted.name,
        namespace=namespace_of(where.kube),
        cluster_ref=cluster_ref(where.cluster),
        template=template(wanted.throttle),
        max_partitions=wanted.max_partitions,
    )
