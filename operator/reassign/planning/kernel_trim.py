"""Moves that the bands do not need are undone, the greatest first."""

from __future__ import annotations

from .kernel import State, entry, fits, inner, move, slot_of
from .model import Bools


@inner
def may_go(s: State, b: int, size: int) -> bool:
    return bool(s.load[0, b] - size >= s.low[0, b] and s.load[1, b] - 1 >= s.low[1, b])


@inner
def may_come(s: State, b: int, size: int) -> bool:
    return bool(s.load[0, b] + size <= min(s.high[0, b], s.room[b]) and s.load[1, b] + 1 <= s.high[1, b])


@entry
def tidy(s: State) -> None:
    """A replica that came to where another of its row was is put in that one's place: nothing moves between them."""
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
def undo(s: State, keep: Bools) -> None:
    """Takes back every move that both brokers can do without."""
    for p in range(len(s.row)):
        if s.still[p]:
            continue
        for k in range(s.row.shape[1]):
            home, b = s.home[p, k], s.row[p, k]
            if home < 0 or b < 0 or b == home or not keep[p, k]:
                continue
            if may_go(s, b, s.size[p]) and may_come(s, home, s.size[p]) and fits(s, p, k, home):
                move(s, p, k, home)
