"""Trimming: moves that the bands do not need are undone, the greatest first; others are made with a smaller replica."""

from __future__ import annotations

from reassign.planning.kernel.state import KernelState, first_not_above, fits, lists, move, slot_of
from reassign.planning.machine_code import entry, inlined
from reassign.planning.problem.model import Bools

TRIES = 16
"""Smaller replicas that are tried for one move."""
WORTH = 256
"""Part of a replica's mean bytes below which a smaller replica is not searched for."""


@inlined
def came_from(s: KernelState, p: int, k: int) -> int:
    """Return the former broker of the replica in a slot, if it is elsewhere now; else -1."""
    home, b = s.home[p, k], s.row[p, k]
    if b < 0 or b == home or s.still[p]:
        return -1
    return int(home)


@inlined
def may_go(s: KernelState, b: int, size: int) -> bool:
    """Return whether a broker stays in its bands without a replica of that size."""
    return bool(s.load[0, b] - size >= s.low[0, b] and s.load[1, b] - 1 >= s.low[1, b])


@inlined
def may_come(s: KernelState, b: int, size: int) -> bool:
    """Return whether a broker has room and stays in its bands with a replica of that size more."""
    return bool(s.load[0, b] + size <= min(s.high[0, b], s.room[b]) and s.load[1, b] + 1 <= s.high[1, b])


@entry
def tidy(s: KernelState) -> None:
    """Put a replica that came to a former broker of its row into that broker's slot: nothing moves between the two."""
    for p in range(len(s.row)):
        if s.still[p]:
            continue
        for k in range(s.row.shape[1]):
            home = s.home[p, k]
            if home >= 0 and s.row[p, k] != home:
                j = slot_of(s, p, home)
                if j >= 0:
                    s.row[p, j], s.row[p, k] = s.row[p, k], home


@entry
def undo(s: KernelState, keep: Bools) -> None:
    """Undo every move that both brokers can do without."""
    for p in range(len(s.row)):
        for k in range(s.row.shape[1]):
            home = came_from(s, p, k)
            if home < 0 or not keep[p, k]:
                continue
            if may_go(s, s.row[p, k], s.size[p]) and may_come(s, home, s.size[p]) and fits(s, p, k, home):
                move(s, p, k, home)


@entry
def perturb(s: KernelState, keep: Bools, first: int, most: int) -> int:
    """Undo moves of brokers that need not give, whatever the receiver's band; return the bytes of what was undone.

    The greatest moves are undone: `most` of them, from the `first` on. Local search goes on from there. Other replicas
    that move anyway can often make up for them.
    """
    taken, total = 0, 0
    for p in range(len(s.row)):
        for k in range(s.row.shape[1]):
            home = came_from(s, p, k)
            if home < 0 or not keep[p, k]:
                continue
            if may_come(s, home, s.size[p]) and fits(s, p, k, home):
                if first > 0:
                    first -= 1
                    continue
                move(s, p, k, home)
                taken += 1
                total += s.size[p]
                if taken == most:
                    return int(total)
    return int(total)


@entry
def shrink(s: KernelState) -> None:
    """Where a moved replica brings more than is needed, move a smaller one of the same broker instead."""
    starts, items = lists(s)
    start, item = starts[0], items[0]
    for p in range(len(s.row)):
        for k in range(s.row.shape[1]):
            home = came_from(s, p, k)
            if home < 0:
                continue
            b = s.row[p, k]
            spare = min(s.load[0, b] - s.low[0, b], min(s.high[0, home], s.room[home]) - s.load[0, home])
            if spare < s.mean / WORTH or not fits(s, p, k, home):
                continue
            i = first_not_above(s, item, start[home], start[home + 1], float(s.size[p] - spare - 1)) - 1
            tries = 0
            while i >= start[home] and tries < TRIES and s.size[item[i]] < s.size[p]:
                q = item[i]
                i -= 1
                tries += 1
                m = slot_of(s, q, home)
                if m >= 0 and s.home[q, m] == home and fits(s, q, m, b):
                    move(s, p, k, home)
                    move(s, q, m, b)
                    break
