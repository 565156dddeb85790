"""The command `assign`: where the replicas of a new topic should be (KIP-879)."""

from __future__ import annotations

from typing import NamedTuple

from reassign.cli import output as out
from reassign.cli.options import AssignmentOutput
from reassign.cli.source import Where, seen
from reassign.errors import PlanningError, Reason
from reassign.planning import stock
from reassign.planning.assign import assign
from reassign.planning.problem.model import Cluster


class Asked(NamedTuple):
    """A topic that is to be made, with KIP-879's parameters."""

    topic: str
    partitions: int
    replication_factor: int
    force_simple: bool
    seed: int | None


def run(where: Where, asked: Asked, chosen: frozenset[int] | None, output: AssignmentOutput) -> None:
    """Work the assignment out over the brokers that are up, or those that are chosen, and write it."""
    with out.progress("looking at the cluster"):
        cluster = seen(where).cluster
    nodes = _nodes(cluster, chosen)
    rows = assign(asked.partitions, asked.replication_factor, nodes, asked.force_simple, asked.seed).tolist()
    if output is AssignmentOutput.TOPICS:
        out.write(",".join(":".join(map(str, row)) for row in rows) + "\n")
        return
    partitions = [{"topic": asked.topic, "partition": p, "replicas": row} for p, row in enumerate(rows)]
    out.write(stock.write([{"spec": {"partitions": partitions}}]))


def _nodes(cluster: Cluster, chosen: frozenset[int] | None) -> dict[int, str]:
    """Ids and racks."""
    ids = cluster.brokers.tolist()
    nodes = dict(zip(ids, cluster.racks, strict=True))
    if chosen is None:
        return {id: nodes[id] for id, alive in zip(ids, cluster.alive, strict=True) if alive}
    if missing := sorted(chosen - nodes.keys()):
        raise PlanningError(Reason.INVALID_GOAL, f"the cluster has no broker {missing[0]}; choose from {ids}")
    return {id: nodes[id] for id in sorted(chosen)}
