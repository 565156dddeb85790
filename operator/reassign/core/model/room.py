"""Room: how much the volumes of brokers can still take, with all that is to come.

To come is what moves in flight have not copied yet, and what was admitted since. What sources will free does not count:
it is freed only after the copy. A volume whose size is not known has room; a broker that has not said what is in its
directories may not have any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(slots=True)
class Room:
    """What brokers have room for."""

    snapshot: Snapshot
    min_free_percent: int
    """The share of each volume that is left free."""
    answered: Collection[int]
    """Brokers that have reported lately."""
    coming: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    """Bytes to come by broker and directory; None for a directory that the broker chooses."""
    _volumes: dict[int, list[Volume]] = field(default_factory=dict)

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

    def _log(self, broker: int, tp: TopicPartition) -> tuple[str | None, int]:
        for path, directory in self.snapshot.log_dirs.get(broker, {}).items():
            if tp in directory.logs:
                return path, directory.logs[tp]
        return None, 0

    def fits(self, broker: int, path: str | None, size: int) -> bool:
        """Whether a broker has room for so many bytes more, in the directory that is named or in any."""
        directories = self.snapshot.log_dirs.get(broker, {})
        if broker not in self._volumes:
            self._volumes[broker] = volumes(directories)
        chosen = [v for v in self._volumes[broker] if path is None or path in v.paths]
        unknown = path is None and any(d.online and (d.total is None or d.usable is None) for d in directories.values())
        if unknown or not chosen:
            return True
        paths = {None, *(p for volume in chosen for p in volume.paths)}
        coming = sum(bytes for (b, p), bytes in self.coming.items() if b == broker and p in paths)
        together = Volume(sum(v.total for v in chosen), sum(v.usable for v in chosen) - coming, ())
        return any(self._takes(volume, size) for volume in chosen) and self._takes(together, size)

    def _takes(self, volume: Volume, size: int) -> bool:
        return (volume.usable - size) * 100 >= volume.total * self.min_free_percent

    def expect(self, tp: TopicPartition, brokers: Collection[int], log_dirs: Mapping[int, str]) -> None:
        """Count a partition of which nothing has been copied yet."""
        size = leader_bytes(tp, self.snapshot) or 0
        for broker in brokers:
            self.coming[broker, log_dirs.get(broker)] += size

    def copy(self) -> Room:
        """Return a copy, for counting what if."""
        return replace(self, coming=Counter(self.coming))
