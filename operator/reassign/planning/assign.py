"""Where the replicas of a new topic go, and where more of them go when its replication factor is raised (KIP-879).

Every node of the tree of racks has a ring of its children. A replica is added from the root down: take the child under
the ring's pointer, move the pointer behind it, go on in that child. A child whose brokers all have the partition is
passed over.

Where replicas came from elsewhere, the ring's order alone could crowd them. So the child is the first one from the
pointer on among those with the fewest. In undisturbed rings that is the next one anyway.

Each partition's order is then rotated, so that no broker leads many of them. The set of its brokers stays.

Where a partition left the rings is not stored. It follows from the seed and the replicas up to that partition, so
raising a replication factor plays them back. That also serves topics that were moved since they were made.
docs/built/planning.md proves how evenly this spreads.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

import numpy as np

from reassign.api.goal import Awareness
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import UNKNOWN, Ints
from reassign.planning.problem.racks import levels

ReplicaRow = list[int]


def assign(
    partitions: int,
    replication_factor: int,
    nodes: Mapping[int, str],
    force_simple_assignment: bool,
    seed: int | None,
    awareness: Awareness = Awareness.TREE,
) -> Ints:
    """Return the broker ids of each partition's replicas (P, RF), the preferred leader first.

    The parameters are those of KIP-879's CreateReplicaAssignment; `nodes` are broker ids with their racks, "" for none.
    `awareness` is the assignor. Simple assignment overrides it, as None does. It is Kafka's where no broker has a rack:
    AdminUtils.assignReplicasToBrokersRackUnaware, with the brokers by id.

    `seed` decides where the rings begin, or Kafka's start index and shift; None: at their first child, or 0. Raises
    INVALID_GOAL for less than one partition, replica or broker, NOT_ENOUGH_BROKERS, INVALID_RACKS.
    """
    if partitions < 1:
        raise PlanningError(Reason.INVALID_GOAL, f"a topic cannot have {partitions} partitions: ask for 1 or more")
    chosen = Awareness.NONE if force_simple_assignment else awareness
    rows = _extended([[] for _ in range(partitions)], replication_factor, nodes, chosen, seed)
    return _array(rows if chosen is Awareness.NONE else _rotated(rows, len(nodes)), replication_factor)


def add_replicas(
    assignment: Ints,
    replication_factor: int,
    nodes: Mapping[int, str],
    force_simple_assignment: bool,
    seed: int | None,
    awareness: Awareness = Awareness.TREE,
) -> Ints:
    """Return the assignment (P, R) of partitions 0 to P - 1 with replicas added at the end of each row: (P, RF).

    Each partition goes on from where its last replica left the rings; what it has stays in place and in order. Rows may
    be filled with UNKNOWN. The other parameters and errors are those of `assign`; the seed is the one it had there.
    Raises INVALID_GOAL as well for a partition that has more replicas, or one on a broker that is none of `nodes`.
    """
    rows = [[b for b in row if b != UNKNOWN] for row in assignment.tolist()]
    for p, row in enumerate(rows):
        if len(row) > replication_factor:
            raise PlanningError(
                Reason.INVALID_GOAL,
                f"partition {p} has {len(row)} replicas, more than {replication_factor}; replicas are only added here, "
                f"so ask for {len(row)} or more",
            )
        if unknown := [b for b in row if b not in nodes]:
            raise PlanningError(
                Reason.INVALID_GOAL,
                f"partition {p} has a replica on broker {unknown[0]}, which is none of those to choose from; name it "
                "with its rack, or move that replica first",
            )
    chosen = Awareness.NONE if force_simple_assignment else awareness
    return _array(_extended(rows, replication_factor, nodes, chosen, seed), replication_factor)


def _extended(
    rows: list[ReplicaRow], to: int, nodes: Mapping[int, str], awareness: Awareness, seed: int | None
) -> list[ReplicaRow]:
    if not nodes:
        raise PlanningError(Reason.INVALID_GOAL, "there is no broker to put replicas on: name one or more")
    if to < 1:
        raise PlanningError(Reason.INVALID_GOAL, f"a partition cannot have {to} replicas: ask for 1 or more")
    if to > len(nodes):
        raise PlanningError(
            Reason.NOT_ENOUGH_BROKERS,
            f"{to} replicas need as many brokers, and there are {len(nodes)}; ask for {len(nodes)} at most, or name "
            "more brokers",
        )
    random = (lambda _: 0) if seed is None else _below(Random(seed))
    extend = _simple(nodes, random) if awareness is Awareness.NONE else _Rings(nodes, awareness, random).extend
    return [extend(p, row, to) for p, row in enumerate(rows)]


def _array(rows: list[ReplicaRow], to: int) -> Ints:
    return np.array(rows, np.int32).reshape(len(rows), to)


def _rotated(rows: Sequence[ReplicaRow], brokers: int) -> list[ReplicaRow]:
    """Return the rows, each from its preferred leader on: the broker that has led least, then the longest ago.

    No broker leads three of so many partitions in a row, as many as there are brokers, if it can be helped: where each
    of a partition would, one hands another partition over to a broker that does not.
    """
    leads: dict[int, list[int]] = {b: [] for row in rows for b in row}
    leaders: list[int] = []

    def crowded(b: int, p: int) -> bool:
        at = bisect(leads[b], p)
        near = [*leads[b][max(0, at - 2) : at], p, *leads[b][at : at + 2]]
        return any(third - first < brokers for first, third in zip(near, near[2:], strict=False))

    def relieved(p: int) -> int | None:
        for b in rows[p]:
            for q in leads[b][-2:]:
                for other in rows[q]:
                    if other != b and not crowded(other, q):
                        leads[b].remove(q)
                        insort(leads[other], q)
                        leaders[q] = other
                        return b
        return None

    for p, row in enumerate(rows):
        leader = min(row, key=lambda b: (crowded(b, p), len(leads[b]), leads[b][-1:]))
        if crowded(leader, p) and (other := relieved(p)) is not None:
            leader = other
        leads[leader].append(p)
        leaders.append(leader)
    firsts = (row.index(leader) for row, leader in zip(rows, leaders, strict=True))
    return [row[first:] + row[:first] for row, first in zip(rows, firsts, strict=True)]


def _below(random: Random) -> Callable[[int], int]:
    # of a seeded Random, Python promises the same numbers in every version for random() alone
    return lambda n: int(random.random() * n)


def _simple(nodes: Iterable[int], random: Callable[[int], int]) -> Callable[[int, ReplicaRow, int], ReplicaRow]:
    """Return Kafka's rack-unaware placement: first replicas go round, the others follow with a shift that grows."""
    ids = sorted(nodes)
    index = {b: i for i, b in enumerate(ids)}
    n = len(ids)
    start, shift = random(n), random(n)

    def extend(p: int, row: ReplicaRow, to: int) -> ReplicaRow:
        places = [index[b] for b in row] or [(p + start) % n]
        while len(places) < to:
            step = 1 if len(places) > 1 else 1 + (shift + p // n) % (n - 1)
            place = (places[-1] + step) % n
            while place in places:
                place = (place + 1) % n
            places.append(place)
        return [ids[i] for i in places]

    return extend


class _Rings:
    """The tree, a ring in each node. Nodes are numbered from the root, 0; the last level are the brokers, by id."""

    def __init__(self, nodes: Mapping[int, str], awareness: Awareness, random: Callable[[int], int]) -> None:
        ids = sorted(nodes)
        groups = levels([nodes[b] for b in ids], awareness, ids)
        self.children: list[list[int]] = [[]]
        self.parent, self.place, self.size = [0], [0], [len(ids)]
        node = [0] * len(ids)
        path: list[list[int]] = [[] for _ in ids]
        for level in [*groups.tolist(), list(range(len(ids)))]:
            of_group: dict[int, int] = {}
            for i in sorted(range(len(ids)), key=level.__getitem__):
                if level[i] not in of_group:
                    of_group[level[i]] = len(self.children)
                    self.parent.append(node[i])
                    self.place.append(len(self.children[node[i]]))
                    self.size.append(0)
                    self.children[node[i]].append(len(self.children))
                    self.children.append([])
                node[i] = of_group[level[i]]
                self.size[node[i]] += 1
                path[i].append(node[i])
        self.path = dict(zip(ids, path, strict=True))
        self.broker = dict(zip(node, ids, strict=True))
        self.pointer = [random(len(ring)) if ring else 0 for ring in self.children]

    def extend(self, _: int, row: ReplicaRow, to: int) -> ReplicaRow:
        has = [0] * len(self.children)
        for b in self._in_order_of_the_rings(row):
            self._take(b, has)
        played_back = self.pointer.copy()
        added = [self._take(self._next(has), has) for _ in range(to - len(row))]
        if row:  # the next partition was made before these were added; a new one goes on behind them
            self.pointer = played_back
        return row + added

    def _in_order_of_the_rings(self, row: ReplicaRow) -> ReplicaRow:
        """Return the replicas in the order in which the rings give them next; as they are where they came otherwise."""
        pointer, has = self.pointer.copy(), [0] * len(self.children)
        made = [self._take(self._next(has), has) for _ in row]
        self.pointer = pointer
        return made if set(made) == set(row) else row

    def _next(self, has: list[int]) -> int:
        node = 0
        while ring := self.children[node]:
            start = self.pointer[node]
            fewest = self.size[node] + 1
            for child in ring[start:] + ring[:start]:
                if has[child] < min(fewest, self.size[child]):
                    node, fewest = child, has[child]
                    if not fewest:
                        break
        return self.broker[node]

    def _take(self, broker: int, has: list[int]) -> int:
        for node in self.path[broker]:
            has[node] += 1
            above = self.parent[node]
            self.pointer[above] = (self.place[node] + 1) % len(self.children[above])
        return broker
