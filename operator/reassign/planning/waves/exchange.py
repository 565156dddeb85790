"""Shortens waves by exchanging moves between them, one for one or one for none, whichever brokers they are of.

It is for plans where partitions add several replicas, which trails cannot swap. A wave gets shorter when its busiest
broker has less in it, so only moves of that broker are tried. The largest go first, each with all moves of all other
waves at once.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.model import Bytes
from reassign.planning.waves.colouring import Packing
from reassign.planning.waves.placement import best_exchange

PAIRS_TRIED = 20_000_000
TRIED = 8
"""Moves of a wave at a time."""


def shorten(packing: Packing) -> None:
    """Exchange until nothing gets shorter, or the limit of work is reached. Caps hold; shares of brokers need not."""
    copied, wave, load = packing.copied, packing.wave, packing.load
    ports = np.maximum(packing.moves.ports, 0).astype(np.int64)
    weight = packing.shares * packing.moves.size[:, None]  # bytes at each of these ports
    there = np.flatnonzero(wave >= 0)
    pairs, shortened = 0, True
    while shortened:
        shortened = False
        for here in np.argsort(-packing.longest, kind="stable").tolist():
            busy = load[:, here].argmax()
            those = np.flatnonzero(wave == here)
            those = those[((ports[those] == busy) & (weight[those] > 0)).any(axis=1)]
            for move in those[np.argsort(-copied[those], kind="stable")][:TRIED].tolist():
                pairs += len(there)
                if pairs > PAIRS_TRIED:
                    return
                if _exchange(packing, ports, weight, there, move):
                    shortened = True
                    break


def _exchange(packing: Packing, ports: Bytes, weight: Bytes, there: Bytes, move: int) -> bool:
    """Exchange a move with the one, or with none, that shortens two waves the most together, if any does."""
    load, longest, copied, wave = packing.load, packing.longest, packing.copied, packing.wave
    here = int(wave[move])
    without = load[:, here].copy()
    np.subtract.at(without, ports[move], weight[move])
    other, shorter = best_exchange(packing.filled, wave, copied, ports, weight, there, move, without)

    waves = np.arange(len(longest))
    alone = np.maximum(longest, (load[ports[move]] + weight[move][:, None]).max(axis=0)) - longest
    alone += without.max() - longest[here]
    room = (packing.partitions < packing.max_partitions) & (packing.bytes + copied[move] <= packing.max_bytes)
    alone = np.where(room & (waves != here), alone, 0)

    best = min((shorter, 0), (int(alone.min()), 1))
    if best[0] >= 0:
        return False
    other = -1 if best[1] else other
    target = int(alone.argmin()) if best[1] else int(wave[other])
    packing.bring(move, target)
    if other >= 0:
        packing.bring(other, here)
    for changed in (here, target):
        longest[changed] = load[:, changed].max()
    return True
