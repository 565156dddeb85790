"""Splits a plan into waves that run one after the other, each as large as its caps allow.

The caps give the number of waves. A broker's copies are spread evenly over these: in each wave it receives, and sends,
at most its share of them, rounded up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import UNKNOWN, Bytes, Ints
from reassign.planning.waves.colouring import Packing
from reassign.planning.waves.exchange import shorten
from reassign.planning.waves.moves import Moves

CLASSES = 64
"""Fractions of a wave for which the lower bound counts the partitions above them."""


class Waves(NamedTuple):
    """The waves of a plan."""

    wave: Ints  # (P,)
    """Counted from 0; UNKNOWN: the partition stays as it is."""
    number: int
    """How many waves there are."""
    bound: int
    """The least number of waves that any split within the caps needs."""
    alone: Ints
    """Partitions that copy more than a wave may: one wave each, the first ones."""


class Makespan(NamedTuple):
    """Seconds that each wave takes, that all take with a barrier after each, and that any schedule takes at least."""

    waves: tuple[float, ...]
    seconds: float
    bound: float


def split(moves: Moves, max_partitions: int | None = None, max_bytes: int | None = None) -> Waves:
    """Return the fewest waves of at most `max_partitions` that copy at most `max_bytes` each; None: no such cap.

    Their number is `bound`, unless partitions nearly as large as a wave cannot be packed so tightly. A partition that
    alone is larger than `max_bytes` is a wave of its own. Raises PlanningError for a cap below 1.
    """
    if min(max_partitions or 1, max_bytes or 1) < 1 or 0 in (max_partitions, max_bytes):
        raise PlanningError(Reason.INVALID_GOAL, "a wave's caps are below 1: give 1 or more partitions and bytes")
    wave = np.full(moves.of, UNKNOWN, np.int32)
    largest_first = np.lexsort((moves.partition, -moves.adds, -moves.bytes))
    too_large = 0 if max_bytes is None else int((moves.bytes > max_bytes).sum())
    alone, rest = largest_first[:too_large], largest_first[too_large:]
    wave[moves.partition[alone]] = np.arange(too_large)
    least = count = _fewest(moves.bytes[rest], max_partitions, max_bytes)
    while len(rest):
        packing = Packing(moves, rest, count, max_partitions or len(rest), max_bytes)
        if packing.fill(rest):
            if packing.mixed:
                shorten(packing)
            numbers = np.unique(packing.wave[rest], return_inverse=True)[1]
            count = int(numbers.max()) + 1
            wave[moves.partition[rest]] = too_large + numbers
            break
        count += max(1, count // 64)
    return Waves(wave, too_large + count, too_large + least, np.sort(moves.partition[alone]))


def makespan(moves: Moves, wave: Ints, rate: int) -> Makespan:
    """Return how long the waves take where each broker sends, and receives, `rate` bytes per second.

    A wave lasts as long as its busiest broker sends or receives: some order of its copies keeps that one busy
    throughout (preemptive open shop, Gonzalez and Sahni 1976). No schedule is shorter than the busiest broker of all.
    """
    load = np.zeros((int(wave.max(initial=-1)) + 1, moves.port_count), np.int64)
    move, port = np.nonzero(moves.ports != UNKNOWN)
    copied = moves.size[move] * moves.shares[move, port]
    np.add.at(load, (wave[moves.partition[move]], moves.ports[move, port]), copied)
    busiest = load.max(axis=1, initial=0)
    return Makespan(
        waves=tuple((busiest / rate).tolist()),
        seconds=float(busiest.sum()) / rate,
        bound=float(load.sum(axis=0).max(initial=0)) / rate,
    )


def _fewest(copied: Bytes, max_partitions: int | None, max_bytes: int | None) -> int:
    """Return the least number of waves: by partitions, by bytes, and since of what is above a k-th of one, k - 1 fit
    in."""
    bounds = [min(len(copied), 1)]
    if max_partitions is not None:
        bounds.append(-(-len(copied) // max_partitions))
    if max_bytes is not None:
        bounds.append(-(-int(copied.sum()) // max_bytes))
        bounds.extend(-(-int((copied > max_bytes // k).sum()) // (k - 1)) for k in range(2, CLASSES))
    return max(bounds)
