"""Turns: whose partition is judged next, while there is room.

It is the turn of the namespace that has the fewest partitions in flight, so that one with many resources does not crowd
out the others. Within a namespace it is that of the resource that has the fewest, so that an old giant does not starve
a small new one. A partition that several resources ask for is judged for the older one first, since that may claim it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reassign.core.checks.input import Input
from reassign.core.model.budget import Budget
from reassign.core.model.row import Row
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.verdict import Verdict


@dataclass(slots=True)
class Queue:
    """The partitions of one resource that are to be judged, its own budget, and what has become of them so far."""

    verdict: Verdict
    own: Budget
    inputs: Iterator[Input]
    rows: dict[TopicPartition, Row] = field(default_factory=dict)


def older_first(
    turns: Iterable[tuple[Queue, Input]], rivals: Mapping[TopicPartition, Iterable[str]]
) -> Iterator[tuple[Queue, Input]]:
    """Yield the partitions in turn; one that several resources ask for in the order of `rivals`, their uids by age."""
    order = {tp: deque(uids) for tp, uids in rivals.items()}
    ahead: dict[tuple[TopicPartition, str], tuple[Queue, Input]] = {}
    for queue, i in turns:
        if (uids := order.get(i.tp)) is None:
            yield queue, i
            continue
        ahead[i.tp, i.resource.uid] = queue, i
        while uids and (turn := ahead.pop((i.tp, uids[0]), None)):
            uids.popleft()
            yield turn


def in_turn(queues: Sequence[Queue], shared: Mapping[str, Budget]) -> Iterator[tuple[Queue, Input]]:
    """Yield the partitions to judge, by what their namespaces and resources have in flight by then."""
    by_namespace: dict[str, list[tuple[int, int, Queue]]] = {}
    for age, queue in enumerate(queues):
        own = by_namespace.setdefault(queue.verdict.resource.namespace, [])
        heapq.heappush(own, (queue.own.weight, age, queue))
    turns = [(shared[name].weight, age, name) for age, name in enumerate(by_namespace)]
    heapq.heapify(turns)
    while turns:
        _, namespace_age, name = heapq.heappop(turns)
        own = by_namespace[name]
        _, age, queue = heapq.heappop(own)
        if (i := next(queue.inputs, None)) is not None:
            yield queue, i
            heapq.heappush(own, (queue.own.weight, age, queue))
        if own:
            heapq.heappush(turns, (shared[name].weight, namespace_age, name))
