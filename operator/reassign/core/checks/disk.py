"""Disk: whether the volumes of a destination have room for what is to come.

What is to come is what moves in flight have not copied yet, and what was admitted since. What sources will free
does not count: it is freed only after the copy. A volume whose size is not known has room; a broker that has not
said what is in its directories may not have any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from reassign.core.checks.chain import Candidate
from reassign.core.model.problem import Problem, ids
from reassign.core.model.progress import amount, leader_bytes
from reassign.core.model.snapshot import LogDir, Snapshot, TopicPartition
from reassign.errors import Reason
from reassign.planning.problem.volume import shared


@dataclass(frozen=True, slots=True)
class Volume:
    """What directories of one broker share: total and usable bytes."""

    total: int
    usable: int
    paths: tuple[str, ...]


def volumes(directories: Mapping[str, LogDir]) -> list[Volume]:
    """The distinct volumes of directories that are online, where their sizes are known."""
    found: list[Volume] = []
    for path, directory in sorted(directories.items()):
        if not directory.online or directory.total is None or directory.usable is None:
            continue
        for i, other in enumerate(found):
            if shared(directory.total, directory.usable, other.total, other.usable):
                found[i] = Volume(other.total, min(other.usable, directory.usable), (*other.paths, path))
                break
        else:
            found.append(Volume(directory.total, directory.usable, (path,)))
    return found


@dataclass(slots=True)
class Room:
    """What brokers have room for, `min_free_percent` of each volume left free; `answered` are those that said lately.

    `coming` are bytes by broker and directory; None for a directory that the broker chooses.
    """

    snapshot: Snapshot
    min_free_percent: int
    answered: Collection[int]
    coming: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    _volumes: dict[int, list[Volume]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, min_free_percent: int, answered: Collection[int]) -> Room:
        """With what is in flight still to come."""
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

    def silent(self, candidate: Candidate) -> Problem | None:
        """Which brokers have not said what has to be known: what the leader has, and what the others have room for."""
        tp, leader = candidate.tp, candidate.partition.leader
        asked = self._receivers(candidate)
        unknown = {broker for broker in asked if broker not in self.answered}
        if asked and leader is not None and self.snapshot.sizes is not None and leader_bytes(tp, self.snapshot) is None:
            unknown.add(leader)
        unknown |= {p.broker for p in candidate.placements if not p.known}
        if not unknown:
            return None
        return Problem(
            Reason.REQUEST_FAILED,
            f"broker {ids(unknown)} has not said yet what is in its log directories; it is asked again",
        )

    def lacks(self, candidate: Candidate) -> Problem | None:
        """Why there is no room for a partition on one of the brokers that get it."""
        size = leader_bytes(candidate.tp, self.snapshot) or 0
        for broker in sorted(self._receivers(candidate)):
            if not self._fits(broker, candidate.log_dirs.get(broker), size):
                return Problem(
                    Reason.INSUFFICIENT_DISK,
                    f"broker {broker} has no room for {amount(size)} more, with all that is on its way there: less "
                    f"than {self.min_free_percent} % would stay free; free some disk, choose another broker, "
                    "or lower limits.minFreeDiskPercent of the KafkaCluster",
                )
        return None

    def _fits(self, broker: int, path: str | None, size: int) -> bool:
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

    def take(self, candidate: Candidate) -> None:
        """Count a partition that is to be copied."""
        self.expect(candidate.tp, self._receivers(candidate), candidate.log_dirs)

    @staticmethod
    def _receivers(candidate: Candidate) -> set[int]:
        """Brokers that get a replica, or copy theirs to another directory."""
        return {*candidate.added, *(p.broker for p in candidate.placements if p.copies)}

    def expect(self, tp: TopicPartition, brokers: Collection[int], log_dirs: Mapping[int, str]) -> None:
        """Count a partition of which nothing has been copied yet."""
        size = leader_bytes(tp, self.snapshot) or 0
        for broker in brokers:
            self.coming[broker, log_dirs.get(broker)] += size

    def copy(self) -> Room:
        """The same, for counting what if."""
        return replace(self, coming=Counter(self.coming))
