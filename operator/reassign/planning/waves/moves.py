"""What a plan moves: which broker is the source, which ones are destinations, and how many bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reassign.planning.problem.assignments import added
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Ints


@dataclass(frozen=True, slots=True)
class Moves:
    """The M of P partitions that a plan changes. A broker is two ports: b sends, brokers + b receives."""

    partition: Ints  # (M,) ascending
    ports: Ints  # (M, N) the source, then each destination; UNKNOWN fills rows, and is all where nothing is copied
    size: Bytes  # (M,) of one replica
    adds: Ints  # (M,) replicas added
    port_count: int
    of: int  # P

    @property
    def shares(self) -> Bytes:
        """(M, N) how often each uses each of its ports: the source once per replica added."""
        shares: Bytes = (self.ports != UNKNOWN).astype(np.int64)
        shares[:, 0] = self.adds
        return shares

    @property
    def bytes(self) -> Bytes:
        return self.size * self.adds

    def __len__(self) -> int:
        return len(self.partition)


def moves_of(current: Ints, target: Ints, size: Bytes, online: Bools) -> Moves:
    """Return what changes between two assignments, (P, R) and (P, R') of broker indices; a change of order counts too.

    New replicas are copied from the leader. That is the first replica of those that are `online` (P, R): the preferred
    leader, or the broker that Kafka elects in its place. `size` (P,) are bytes of a replica.
    """
    width = max(current.shape[1], target.shape[1])
    old, new = (
        np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=UNKNOWN) for rows in (current, target)
    )
    changed = np.flatnonzero((old != new).any(axis=1))
    old, new = old[changed], new[changed]
    copied = added(old, new)
    leader = old[np.arange(len(old)), online[changed].argmax(axis=1)]
    brokers = int(max(current.max(initial=-1), target.max(initial=-1))) + 1
    adds = copied.sum(axis=1).astype(np.int32)
    ports = np.full((len(old), 1 + adds.max(initial=1)), UNKNOWN, np.int32)
    ports[:, 0] = np.where(adds > 0, leader, UNKNOWN)
    ports[:, 1:][np.arange(ports.shape[1] - 1) < adds[:, None]] = brokers + new[copied]
    return Moves(changed.astype(np.int32), ports, size[changed], adds, 2 * brokers, len(current))
