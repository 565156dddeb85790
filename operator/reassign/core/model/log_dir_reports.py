"""What is known of brokers' log directories and volumes, from one look to the next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from reassign.core.model.snapshot import LogDirs, Sizes, TopicPartition
from reassign.core.model.steps import AlterLogDirs


def sizes(log_dirs: LogDirs) -> Sizes:
    """Bytes of main logs in directories that are online, by partition and broker."""
    found: dict[TopicPartition, dict[int, int]] = {}
    for broker, directories in log_dirs.items():
        for directory in directories.values():
            if directory.online:
                for tp, size in directory.logs.items():
                    found.setdefault(tp, {})[broker] = size
    return found


def remembered(before: LogDirs, now: LogDirs, brokers: Collection[int]) -> LogDirs:
    """With what was last seen of the registered brokers that did not answer: a slow one loses no progress."""
    return {broker: found for broker, found in before.items() if broker in brokers} | dict(now)


FRESH_SECONDS = 30.0
"""What a broker said of its volumes longer ago says nothing of the room that they have."""


class Told(NamedTuple):
    """When a broker was told where to put a replica, and as late as when that may land."""

    path: str
    at: float
    lands: float


NEVER = Told("", -inf, -inf)
MEMORY_SECONDS = 60.0


@dataclass(slots=True)
class Answers:
    """How old what is known of each broker's log directories is, by a monotonic clock.

    `read` is when the last look began that the broker answered, `told` what it was told last about a partition.
    """

    read: dict[int, float] = field(default_factory=dict)
    told: dict[tuple[TopicPartition, int], Told] = field(default_factory=dict)

    def observe(self, began: float, brokers: Collection[int]) -> None:
        """These brokers answered a look that began then."""
        self.read |= dict.fromkeys(brokers, began)
        self.told = {k: told for k, told in self.told.items() if self._read(k[1]) - told.lands < MEMORY_SECONDS}

    def fresh(self, now: float) -> frozenset[int]:
        """The brokers that have answered lately."""
        return frozenset(broker for broker, at in self.read.items() if now - at < FRESH_SECONDS)

    def tell(self, step: AlterLogDirs, at: float, lands: float) -> None:
        """Its brokers were told at this moment."""
        self.told |= {(step.tp, broker): Told(path, at, lands) for broker, path in step.dirs}

    def last_told(self, tp: TopicPartition, broker: int) -> str:
        """The directory, lately; empty when there was none."""
        return self.told.get((tp, broker), NEVER).path

    def may_tell(self, tp: TopicPartition, broker: int) -> bool:
        """Whether the broker has said where its replica is since it was last told where to put it."""
        return self._read(broker) > self.told.get((tp, broker), NEVER).at

    def is_sure(self, tp: TopicPartition, broker: int, since: float) -> bool:
        """Whether what the broker said can change no more by what it was told, and is not older than `since`."""
        read = self._read(broker)
        return read > self.told.get((tp, broker), NEVER).lands and read >= since

    def _read(self, broker: int) -> float:
        return self.read.get(broker, -inf)
