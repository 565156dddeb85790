"""Where a move goes among waves: what `colouring` and `exchange` ask of all waves, or of all other moves."""

from __future__ import annotations

from typing import NamedTuple

from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bytes, Ints

NOWHERE = 1 << 62


class Filled(NamedTuple):
    """What lies in W waves, and how much may. V are ports."""

    left: Bytes  # (V, W) how much more of it a port may have
    load: Bytes  # (V, W) bytes
    longest: Bytes  # (W,) bytes of the busiest port
    partitions: Bytes  # (W,)
    bytes: Bytes  # (W,)
    max_partitions: int
    max_bytes: int


@inner
def place_one(f: Filled, ports: Ints, shares: Bytes, size: int, copied: int, evenly: bool) -> int:
    """Put one move into a wave, and return the wave; -1 for none."""
    best, least, added, filled = -1, NOWHERE, NOWHERE, 0.0
    for w in range(len(f.longest)):
        if f.partitions[w] >= f.max_partitions or f.bytes[w] + copied > f.max_bytes:
            continue
        short, end = 0, 0
        for i in range(len(ports)):
            short += max(shares[i] - f.left[ports[i], w], 0)
            end = max(end, f.load[ports[i], w] + shares[i] * size)
        if short > least or (evenly and short > 0):
            continue
        longer, full = max(end - f.longest[w], 0), end / max(f.longest[w], 1)
        if short < least or longer < added or (longer == added and full < filled):
            best, least, added, filled = w, short, longer, full
    if best >= 0:
        for i in range(len(ports)):
            f.left[ports[i], best] -= shares[i]
            f.load[ports[i], best] += shares[i] * size
            f.longest[best] = max(f.longest[best], f.load[ports[i], best])
        f.partitions[best] += 1
        f.bytes[best] += copied
    return best


@entry
def place(
    f: Filled, those: Bytes, ports: Ints, shares: Bytes, size: Bytes, copied: Bytes, wave: Ints, evenly: bool
) -> int:
    """Put these moves one after another where each makes the wave the least longer; of several, into the one it fills
    least.

    `evenly`: only where all its ports have that much left, else where the least is missing. Return how many there are
    before the first without a place. `wave` (M,) gets the waves; the other arrays are of all moves too.
    """
    for i in range(len(those)):
        move, n = those[i], 0
        while n < ports.shape[1] and ports[move, n] >= 0:
            n += 1
        wave[move] = place_one(f, ports[move, :n], shares[move, :n], size[move], copied[move], evenly)
        if wave[move] < 0:
            return i
    return len(those)


@entry
def best_exchange(
    f: Filled, wave: Ints, copied: Bytes, ports: Bytes, weight: Bytes, there: Bytes, move: int, without: Bytes
) -> tuple[int, int]:
    """Return the one of `there` whose exchange with a move shortens two waves the most together, and the bytes they
    change by.

    That is (-1, 0) if none makes them shorter. `ports` and `weight` (M, N) are those of each move and its bytes there.
    `without` (V,) is the load of the move's wave without it.
    """
    here, best, least = wave[move], -1, 0
    busiest = without.max()
    for other in there:
        to, more = wave[other], copied[move] - copied[other]
        if to == here or f.bytes[to] + more > f.max_bytes or f.bytes[here] - more > f.max_bytes:
            continue
        arrives, leaves = busiest, f.longest[to]
        for i in range(ports.shape[1]):
            arrives = max(arrives, without[ports[other, i]] + weight[other, i])
            overlap = 0
            for k in range(ports.shape[1]):
                if ports[other, k] == ports[move, i]:
                    overlap += weight[other, k]
            leaves = max(leaves, f.load[ports[move, i], to] + weight[move, i] - overlap)
        longer = arrives + leaves - f.longest[here] - f.longest[to]
        if longer < least:
            best, least = other, longer
    return best, least
