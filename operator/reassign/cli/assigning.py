"""The command `assign`: an assignment of the replicas of a new topic (KIP-879)."""

from __future__ import annotations

import sys
from random import SystemRandom
from typing import NamedTuple

from reassign.api.goal import Awareness
from reassign.cli import output as out
from reassign.cli.options import AssignmentOutput
from reassign.cli.source import Where, observe
from reassign.errors import PlanningError, Reason
from reassign.manifests import stock
from reassign.planning.assign import assign
from reassign.planning.problem.model import Cluster
from reassign.planning.problem.racks import check_complete, levels
from reassign.text import counted, named_brokers

SEEDS = 1 << 32
SIMPLE = "`--force-simple`"


class Asked(NamedTuple):
    """A topic to be created, with KIP-879's parameters."""

    topic: str
    partitions: int
    replication_factor: int
    force_simple: bool
    seed: int | None


def run(where: Where, asked: Asked, chosen: frozenset[int] | None, output: AssignmentOutput) -> None:
    """Assign the replicas to the live brokers, or to the chosen ones, and write the assignment.

    Without a seed it starts at a random broker, and says on stderr how to repeat that.
    """
    with out.progress("observing the cluster"):
        cluster = observe(where).cluster
    if asked.topic in cluster.topics:
        has = int((cluster.topic == cluster.topics.index(asked.topic)).sum())
        out.say(f"note: there is a topic {asked.topic} already, with {counted(has, 'partition')}")
    nodes = _nodes(cluster, chosen)
    if not asked.force_simple:
        alive = [id for id in cluster.brokers[cluster.alive].tolist() if id in nodes]
        check_complete([nodes[id] for id in alive], Awareness.TREE, alive, SIMPLE)
        levels([*nodes.values()], Awareness.TREE, [*nodes], SIMPLE)
    seed = SystemRandom().randrange(SEEDS) if asked.seed is None else asked.seed
    rows = assign(asked.partitions, asked.replication_factor, nodes, asked.force_simple, seed).tolist()
    if asked.seed is None:
        print(f"random start; to repeat this assignment: --seed {seed}", file=sys.stderr)
    if output is AssignmentOutput.TOPICS:
        out.write(",".join(":".join(map(str, row)) for row in rows) + "\n")
        return
    partitions = [{"topic": asked.topic, "partition": p, "replicas": row} for p, row in enumerate(rows)]
    out.write(stock.write([{"spec": {"partitions": partitions}}]))


def _nodes(cluster: Cluster, chosen: frozenset[int] | None) -> dict[int, str]:
    """Return the racks of these brokers by id."""
    ids = cluster.brokers.tolist()
    nodes = dict(zip(ids, cluster.racks, strict=True))
    if chosen is None:
        return {id: nodes[id] for id, alive in zip(ids, cluster.alive, strict=True) if alive}
    if missing := sorted(chosen - nodes.keys()):
        raise PlanningError(
            Reason.INVALID_GOAL, f"{named_brokers(missing, 'is')} not in the cluster; choose from {ids}"
        )
    return {id: nodes[id] for id in sorted(chosen)}
