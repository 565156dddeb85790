"""Room: how much the volumes of brokers can still take, with all that is to come.

To come is what moves in flight have not copied yet, and what was admitted since. What sources will free does not count:
it is freed only after the copy. A volume whose size is not known has room; a broker that has not said what is in its
directories may not have any.

A broker itself chooses the directory with the fewest partitions, full or not (KIP-112). So it may choose only where
each directory would take the replica, and what it has not placed yet counts in each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from reassign.api.partition_reassignment import ANY_LOG_DIR, can_be_directed
from reassign.core.model.progress import leader_bytes
from reassign.core.model.snapshot import LogDir, Snapshot, TopicPartition
from reassign.planning.problem.volume import shared


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume that directories of one broker share: total and usable bytes."""

    total: int
    usable: int
    paths: tuple[str, ...]


def volumes(directories: Mapping[str, LogDir]) -> list[Volume]:
    """Return the distinct volumes of directories that are online, where their sizes are known."""
    distinct: list[Volume] = []
    for path, directory in sorted(directories.items()):
        if not directory.online or directory.total is None or directory.usable is None:
            continue
        for i, other in enumerate(distinct):
            if shared(directory.total, directory.usable, other.total, other.usable):
                distinct[i] = Volume(other.total, min(other.usable, directory.usable), (*other.paths, path))
                break
        else:
            distinct.append(Volume(directory.total, directory.usable, (path,)))
    return distinct


@dataclass(frozen=True, slots=True)
class _OpenDirectories:
    """The directories of a broker that it may choose, online and not cordoned, and their volumes of known size."""

    paths: tuple[str, ...]
    volumes: tuple[Volume, ...]

    @classmethod
    def of(cls, directories: Mapping[str, LogDir]) -> _OpenDirectories:
        paths = tuple(path for path, d in sorted(directories.items()) if d.online and not d.cordoned)
        return cls(paths, tuple(v for v in volumes(directories) if not set(paths).isdisjoint(v.paths)))

    @property
    def on_one_volume(self) -> bool:
        return len(self.volumes) == 1 and set(self.paths) <= set(self.volumes[0].paths)


@dataclass(slots=True)
class Room:
    """What brokers have room for."""

    snapshot: Snapshot
    min_free_percent: int
    """The share of each volume that is left free."""
    answered: Collection[int]
    """Brokers that have reported lately."""
    coming: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Bytes to come by broker and directory; ANY_LOG_DIR for one that the broker chooses."""
    _open: dict[int, _OpenDirectories] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, min_free_percent: int, answered: Collection[int]) -> Room:
        """Return the room of a snapshot, with the rest of all moves in flight still to come."""
        room = cls(snapshot, min_free_percent, answered)
        for tp, in_flight in snapshot.reassignments.items():
            whole = leader_bytes(tp, snapshot) or 0
            for broker in in_flight.adding:
                path, there = room._log(broker, tp)
                room.coming[broker, path] += max(whole - there, 0)
        for broker, directories in snapshot.log_dirs.items():
            for path, directory in directories.items():
                for tp, there in directory.futures.items():
                    room.coming[broker, path] += max((leader_bytes(tp, snapshot) or 0) - there, 0)
        return room

    def _log(self, broker: int, tp: TopicPartition) -> tuple[str, int]:
        for path, directory in self.snapshot.log_dirs.get(broker, {}).items():
            if tp in directory.logs:
                return path, directory.logs[tp]
        return ANY_LOG_DIR, 0

    def directory(self, broker: int, path: str, tp: TopicPartition, *, reported: bool = False) -> str | None:
        """Return where a partition may go on a broker, for a `path` or ANY_LOG_DIR; None where there is no room.

        ANY_LOG_DIR stays where each open directory would take it. Else the one with the most room has to be named.
        `reported` asks as if the broker had placed all that is to come.
        """
        if not self._of(broker).volumes:
            return path
        left, size = self._left(broker, reported=reported), leader_bytes(tp, self.snapshot) or 0
        if path != ANY_LOG_DIR:
            return path if left.get(path, inf) >= size else None
        if min(left.values()) >= size:
            return ANY_LOG_DIR
        takes = {path: bytes for path, bytes in left.items() if bytes >= size}
        return _roomiest(takes) if can_be_directed(*tp) else None

    def _left(self, broker: int, *, reported: bool) -> dict[str, float]:
        """Return the bytes that each open directory can still take; inf where its size is not known."""
        directories = self._of(broker)
        left = dict.fromkeys(directories.paths, inf)
        unplaced = 0 if reported and not directories.on_one_volume else self.coming[broker, ANY_LOG_DIR]
        for volume in directories.volumes:
            spared = -(-volume.total * self.min_free_percent // 100)
            coming = unplaced + sum(self.coming[broker, path] for path in volume.paths)
            for path in volume.paths:
                if path in left:
                    left[path] = volume.usable - spared - coming
        return left

    def _of(self, broker: int) -> _OpenDirectories:
        if broker not in self._open:
            self._open[broker] = _OpenDirectories.of(self.snapshot.log_dirs.get(broker, {}))
        return self._open[broker]

    def expect(self, tp: TopicPartition, directories: Mapping[int, str]) -> None:
        """Count a partition of which nothing has been copied yet, by the directory on each broker."""
        size = leader_bytes(tp, self.snapshot) or 0
        for broker, path in directories.items():
            self.coming[broker, path] += size

    def rehearse(self, tp: TopicPartition, directories: Mapping[int, str]) -> None:
        """Count a partition as `expect` does, and as if brokers chose the directory with the most room."""
        for broker, path in directories.items():
            chosen = _roomiest(self._left(broker, reported=False)) if path == ANY_LOG_DIR else path
            self.expect(tp, {broker: chosen or ANY_LOG_DIR})

    def copy(self) -> Room:
        """Return a copy, for counting what if."""
        return replace(self, coming=Counter(self.coming))


def _roomiest(left: Mapping[str, float]) -> str | None:
    """Return the directory with the most bytes left, one of unknown size last; None for none."""
    return max(left, key=lambda path: (left[path] < inf, left[path]), default=None)
