"""Packs moves into a given number of waves, each broker's copies spread evenly over them.

A plan is a bipartite multigraph of sources and destinations, so this is an edge colouring. It always exists where every
partition adds one replica (König 1916; de Werra 1971 with waves of equal size too). Partitions that add several stay
together; then an even spread is only tried, and gives way where waves get shorter (`waves.exchange`).

A wave lasts as long as its busiest broker, and the next one waits for it. So the largest moves go first, each to where
it makes the wave the least longer, which brings similar ones together. A move without a place gets one by swapping two
waves along an alternating trail.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, product

import numpy as np

from reassign.planning.problem.model import UNKNOWN, Bytes
from reassign.planning.waves.moves import Moves
from reassign.planning.waves.placement import Filled, place

TRAILS_TRIED = 64
WAVES_TRIED = 5
SURPLUS_TRIED = 4
MOVES_TRIED = 1_000_000
IDLE_TURNS = 2


class Packing:
    """One attempt to pack moves into a given number of waves."""

    def __init__(self, moves: Moves, those: Bytes, waves: int, max_partitions: int, max_bytes: int | None) -> None:
        self.moves, self.max_partitions = moves, max_partitions
        self.mixed = bool((moves.adds[those] > 1).any())
        self.copied = moves.bytes
        self.shares = moves.shares
        self.ends = np.where(moves.adds[:, None] == 1, moves.ports[:, :2], 0)
        """Both ports of those that add one replica."""
        self.pairs: list[list[int]] = self.ends.tolist()
        self.max_bytes = int(self.copied.sum()) if max_bytes is None else max_bytes
        degree = np.zeros(moves.port_count, np.int64)
        used = moves.ports[those] != UNKNOWN
        np.add.at(degree, moves.ports[those][used], self.shares[those][used])
        self.left = np.repeat(-(-degree[:, None] // waves), waves, axis=1)
        self.load = np.zeros((moves.port_count, waves), np.int64)
        self.longest = np.zeros(waves, np.int64)
        self.partitions = np.zeros(waves, np.int64)
        self.bytes = np.zeros(waves, np.int64)
        self.wave = np.full(len(moves), UNKNOWN, np.int32)
        self.single: dict[tuple[int, int], list[int]] = defaultdict(list)
        """Moves of one replica by port and wave: those that a trail can swap."""

    @property
    def filled(self) -> Filled:
        return Filled(
            self.left, self.load, self.longest, self.partitions, self.bytes, self.max_partitions, self.max_bytes
        )

    def fill(self, order: Bytes) -> bool:
        """Return whether all fit into a wave, within the caps."""
        copies = self.moves.adds[order] > 0
        those = order[copies]
        while len(those := those[self._place(those) :]):
            if not (self._make_place(int(those[0])) or self._place(those[:1], evenly=False)):
                return False
            those = those[1:]
        if not self.mixed:
            self._level()
            self._polish()
        if (self.partitions > self.max_partitions).any() or (self.bytes > self.max_bytes).any():
            return False
        emptiest = [(int(there), wave) for wave, there in enumerate(self.partitions)]
        heapq.heapify(emptiest)
        for move in order[~copies].tolist():
            there, wave = emptiest[0]
            heapq.heapreplace(emptiest, (there + 1, wave))
            self.wave[move] = wave
            self.partitions[wave] += 1
        return bool((self.partitions <= self.max_partitions).all())

    def _place(self, those: Bytes, evenly: bool = True) -> int:
        """Put each where it makes the wave the least longer; of several, into the one that it fills the least.

        Return how many there are before the first without a place.
        """
        moves = self.moves
        placed = place(self.filled, those, moves.ports, self.shares, moves.size, self.copied, self.wave, evenly)
        for move in those[:placed][moves.adds[those[:placed]] == 1].tolist():
            self._note(move)
        return placed

    def _put(self, move: int, wave: int) -> None:
        """Put a move of one replica into a wave."""
        self._count(move, wave, 1)
        self.wave[move] = wave
        self.longest[wave] = max(self.longest[wave], self.load[self.pairs[move], wave].max())
        self._note(move)

    def _note(self, move: int) -> None:
        for port in self.pairs[move]:
            self.single[port, int(self.wave[move])].append(move)

    def bring(self, move: int, wave: int) -> None:
        """Move it from its wave to this one."""
        self._count(move, int(self.wave[move]), -1)
        self._count(move, wave, 1)
        self.wave[move] = wave

    def _count(self, move: int, wave: int, sign: int) -> None:
        used = self.moves.ports[move] != UNKNOWN
        ports, shares = self.moves.ports[move, used], self.shares[move, used]
        self.left[ports, wave] -= sign * shares
        self.load[ports, wave] += sign * shares * self.moves.size[move]
        self.partitions[wave] += sign
        self.bytes[wave] += sign * self.copied[move]

    def _make_place(self, move: int) -> bool:
        """Free a wave for a single replica by swapping it with another along a trail (König's proof).

        One wave has a place at its source, another one at its destination. The trail starts at the destination and
        frees the first wave there. One that keeps the caps is preferred, otherwise `_level` repairs what it can.
        """
        if self.moves.adds[move] != 1:
            return False
        source, destination = self.pairs[move]
        emptiest_first = np.argsort(self.partitions, kind="stable")
        free = self.left[:, emptiest_first] > 0
        both, ours, theirs = (
            emptiest_first[mask].tolist()
            for mask in (
                free[source] & free[destination],
                free[source] & ~free[destination],
                free[destination] & ~free[source],
            )
        )
        best: tuple[tuple[bool, int], list[int], int, int] | None = None
        for wave, other in islice(chain(zip(both, both, strict=True), product(ours, theirs)), TRAILS_TRIED):
            trail = [] if wave == other else self._trail(destination, wave, other)
            if trail is not None:
                cost = self._cost(wave, other, [*trail, move])
                if best is None or cost < best[0]:
                    best = cost, trail, wave, other
        if best is None or (best[0][0] and self.mixed):
            return False
        _, trail, wave, other = best
        self._swap(trail, wave, other)
        self._put(move, wave)
        return True

    def _cost(self, wave: int, other: int, those: Sequence[int]) -> tuple[bool, int]:
        """Return whether a cap is broken, and how much longer the two waves get, if these single replicas swap.

        One that is in no wave yet comes to `wave`.
        """
        moves = np.array(those)
        leaves, comes = self.wave[moves] == wave, self.wave[moves] == other
        over, longer = False, 0
        for there, by in {other: 1 * leaves - comes, wave: 1 - 2 * leaves}.items():
            load = self.load[:, there].copy()
            np.add.at(load, self.ends[moves], (by * self.moves.size[moves])[:, None])
            longer += int(load.max() - self.longest[there])
            over |= bool(self.partitions[there] + by.sum() > self.max_partitions)
            over |= bool(self.bytes[there] + (by * self.copied[moves]).sum() > self.max_bytes)
        return over, longer

    def _trail(self, start: int, wave: int, other: int) -> list[int] | None:
        """Return moves, by turns in `wave` and `other`, from a full port to one that has a place for what it would
        gain."""
        trail: list[int] = []
        used: set[int] = set()
        port, leave, gain = start, wave, other
        while True:
            move = next((m for m in reversed(self.single[port, leave]) if m not in used), None)
            if move is None:
                return None
            trail.append(move)
            used.add(move)
            port, leave, gain = self._across(move, port), gain, leave
            if port != start and self.left[port, leave] > 0:
                return trail

    def _across(self, move: int, port: int) -> int:
        source, destination = self.pairs[move]
        return destination if port == source else source

    def _swap(self, trail: Sequence[int], wave: int, other: int) -> None:
        for move in trail:
            here = int(self.wave[move])
            self._count(move, here, -1)
            for port in self.pairs[move]:
                self.single[port, here].remove(move)
        for move in trail:
            self._put(move, other if self.wave[move] == wave else wave)
        for changed in (wave, other):
            self.longest[changed] = self.load[:, changed].max()

    def _level(self) -> None:
        """Bring waves of too many partitions to the cap, each along trails to others that have room."""
        for wave in np.flatnonzero(self.partitions > self.max_partitions).tolist():
            while self.partitions[wave] > self.max_partitions:
                roomy = [w for w in np.argsort(self.partitions).tolist() if self.partitions[w] < self.max_partitions]
                best = min(
                    (
                        (self._cost(wave, other, trail), trail, other)
                        for other in roomy[:WAVES_TRIED]
                        for trail in islice(self._surplus(wave, other), SURPLUS_TRIED)
                    ),
                    default=None,
                )
                if best is None:
                    return
                self._swap(best[1], wave, best[2])

    def _surplus(self, wave: int, other: int) -> Iterator[list[int]]:
        """Return trails that have one move more in `wave` than in `other`."""
        return (trail for trail in self._trails(wave, other) if len(trail) % 2 and self.wave[trail[0]] == wave)

    def _polish(self) -> None:
        """Swap trails of two waves where that shortens them together, up to the limit of work."""
        waves, tried, turn, idle = len(self.partitions), 0, 0, 0
        shortest = self.load.sum(axis=1).max(initial=0)
        while idle < IDLE_TURNS:
            turn, idle = turn + 1, idle + 1
            for wave, other in ((at, at + by) for by in range(1, waves) for at in range(waves - by)):
                if tried > MOVES_TRIED or self.longest.sum() <= shortest:
                    return
                tried += int(self.partitions[[wave, other]].sum()) + self.moves.port_count
                for trail in [*self._trails(wave, other, turn)]:
                    if self._cost(wave, other, trail) < (False, 0):
                        self._swap(trail, wave, other)
                        idle = 0

    def _trails(self, wave: int, other: int, turn: int = 0) -> Iterator[list[int]]:
        """Yield all moves of two waves as trails that take them by turns, each as long as can be, cycles last.

        At each port all are paired but the surplus of one wave. So whichever of these trails swap, no port has more in
        either wave than it had in the fuller one. At another `turn` others are paired.
        """
        free = {
            (port, w): _turned(self.single[port, w], turn * (w + 1))
            for w in (wave, other)
            for port in range(self.moves.port_count)
        }
        for first, second, surplus_only in ((wave, other, True), (other, wave, True), (wave, other, False)):
            for start in range(self.moves.port_count):
                while len(free[start, first]) > len(free[start, second]) * surplus_only:
                    trail: list[int] = []
                    port, leave, then = start, first, second
                    while those := free[port, leave]:
                        trail.append(those[-1])
                        for end in self.pairs[trail[-1]]:
                            free[end, leave].remove(trail[-1])
                        port, leave, then = self._across(trail[-1], port), then, leave
                    yield trail


def _turned(those: list[int], by: int) -> list[int]:
    at = by % len(those) if those else 0
    return those[at:] + those[:at]
