"""How long waves take, copy by copy: an event simulation that shares no code with what it judges.

Each broker gives so many bytes per second at most, and takes as many: the throttles of leader and follower (KIP-73).
What is copied at once shares these rates as fairly as can be (max-min), since a broker that is over its rate answers
nobody, and one that is not serves whoever asks. Moves of a wave start as the operator admits them: the largest first,
no more than `per_broker` to a broker or from one, `at_once` partitions in all. The next wave waits for the last copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from reassign.planning.problem.model import Bools, Bytes, Ints

Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]

PER_BROKER, AT_ONCE = 5, 200
"""The defaults of a KafkaCluster's limits."""


class Copy(NamedTuple):
    """A replica of a partition that is copied from one broker to another, both by index."""

    partition: int
    source: int
    sink: int
    bytes: int


def waves_of(current: Ints, target: Ints, sizes: Bytes, wave: Ints, alive: Bools) -> list[list[Copy]]:
    """What each of the waves (P,) copies, each partition from its first replica on a broker that is alive (B,)."""
    copies: list[list[Copy]] = [[] for _ in range(int(wave.max(initial=-1)) + 1)]
    for p in np.flatnonzero(wave >= 0).tolist():
        old, new = ([b for b in row if b >= 0] for row in (current[p].tolist(), target[p].tolist()))
        source = next((b for b in old if alive[b]), -1)
        copies[wave[p]] += [Copy(p, source, b, int(sizes[p])) for b in new if b not in old]
    return copies


def busiest(copies: Sequence[Copy]) -> int:
    """The bytes that the busiest broker gives, or takes."""
    load = Counter[tuple[str, int]]()
    for copy in copies:
        load["gives", copy.source] += copy.bytes
        load["takes", copy.sink] += copy.bytes
    return max(load.values(), default=0)


def seconds(copies: Sequence[Copy], rate: float = 1, per_broker: int = PER_BROKER, at_once: int = AT_ONCE) -> float:
    """How long one wave takes."""
    if not copies:
        return 0.0
    rows = np.array(copies, np.int64)
    brokers = int(rows[:, 1:3].max()) + 1
    rows[:, 2] += brokers
    _, move, adds = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    rows = rows[np.lexsort((rows[:, 0], -rows[:, 3] * adds[move]))]
    start = np.flatnonzero(np.diff(rows[:, 0], prepend=-1, append=-1))
    _, source, sink, size = (np.ascontiguousarray(column) for column in rows.T)
    return float(_run(start, source, sink, size, 2 * brokers, per_broker, at_once)) / rate


@njit(cache=True)
def _run(
    start: Slots, source: Slots, sink: Slots, size: Slots, ports: int, per_broker: int, at_once: int
) -> float:  # pragma: no cover
    """Moves `start[m]` to `start[m + 1]` are copied at once, and make room when all of these are done."""
    moves, copies = len(start) - 1, len(size)
    left = size.astype(np.float64)
    state, slots = np.zeros(moves, np.int8), np.zeros(ports, np.int64)
    active, rate, fixed = np.zeros(copies, np.int64), np.zeros(copies), np.zeros(copies, np.bool_)
    count, running, done, now, first = 0, 0, 0, 0.0, 0
    while done < moves:
        while first < moves and state[first] == 2:
            first += 1
        for m in range(first, moves):
            adds, a = start[m + 1] - start[m], start[m]
            if state[m] or running == at_once:
                continue
            used = slots[source[a]]
            room = used == 0 or used + adds <= per_broker
            for c in range(a, start[m + 1]):
                room &= slots[sink[c]] < per_broker
            if not room:
                continue
            state[m], running = 1, running + 1
            for c in range(a, start[m + 1]):
                slots[source[c]] += 1
                slots[sink[c]] += 1
                active[count], count = c, count + 1
        _share(active[:count], source, sink, rate, fixed, ports)
        step = np.inf
        for c in active[:count]:
            step = min(step, left[c] / rate[c])
        now += step
        kept = 0
        for i in range(count):
            c = active[i]
            left[c] -= rate[c] * step
            if left[c] > 1e-6 * size[c]:
                active[kept], kept = c, kept + 1
            else:
                left[c] = 0
        count = kept
        for m in range(first, moves):
            if state[m] == 1 and not left[start[m] : start[m + 1]].any():
                state[m], running, done = 2, running - 1, done + 1
                for c in range(start[m], start[m + 1]):
                    slots[source[c]] -= 1
                    slots[sink[c]] -= 1
    return now


@njit(cache=True)
def _share(
    active: Slots, source: Slots, sink: Slots, rate: Floats, fixed: npt.NDArray[np.bool_], ports: int
) -> None:  # pragma: no cover
    """Max-min fair rates by filling: the port with the least for each of its copies fixes theirs, then the next."""
    free, using = np.ones(ports), np.zeros(ports, np.int64)
    for c in active:
        fixed[c] = False
        using[source[c]] += 1
        using[sink[c]] += 1
    open_ = len(active)
    while open_:
        tightest, least = -1, np.inf
        for port in range(ports):
            if using[port] and free[port] / using[port] < least:
                tightest, least = port, free[port] / using[port]
        for c in active:
            if not fixed[c] and (source[c] == tightest or sink[c] == tightest):
                fixed[c], rate[c], open_ = True, least, open_ - 1
                for port in (source[c], sink[c]):
                    free[port] = max(free[port] - least, 0.0)
                    using[port] -= 1
