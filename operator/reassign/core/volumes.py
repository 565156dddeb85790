"""What is known of brokers' log directories and volumes, from one look to the next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf

from reassign.core.model import AlterLogDirs, LogDirs, Sizes, TopicPartition


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


@dataclass(slots=True)
class Answers:
    """How old what is known of each broker's log directories is, by a monotonic clock.

    `read` is when the last look began that the broker answered. `told` is when it was last told where to put a
    replica, as long as it has not answered a later look.
    """

    read: dict[int, float] = field(default_factory=dict)
    told: dict[tuple[TopicPartition, int], float] = field(default_factory=dict)

    def observe(self, began: float, brokers: Collection[int]) -> None:
        """These brokers answered a look that began then."""
        self.read |= dict.fromkeys(brokers, began)
        self.told = {key: at for key, at in self.told.items() if self.read.get(key[1], -inf) <= at}

    def fresh(self, now: float) -> frozenset[int]:
        """The brokers that have answered lately."""
        return frozenset(broker for broker, at in self.read.items() if now - at < FRESH_SECONDS)

    def tell(self, step: AlterLogDirs, at: float) -> None:
        """Its brokers were told, or may be told as late as this."""
        self.told |= {(step.tp, broker): at for broker, _ in step.dirs}

    def current(self, tp: TopicPartition, broker: int, since: float = -inf) -> bool:
        """Whether the broker has said where its replica is after it was last told where to put it, and since then."""
        return (tp, broker) not in self.told and self.read.get(broker, -inf) >= since
