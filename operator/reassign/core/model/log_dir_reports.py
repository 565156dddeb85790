"""What brokers last reported of their log directories, and what they were last told about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from reassign.core.model.snapshot import LogDirs, Sizes, TopicPartition
from reassign.core.model.steps import AlterLogDirs


def sizes(log_dirs: LogDirs) -> Sizes:
    """Return the bytes of main logs in directories that are online, by partition and broker."""
    by_partition: dict[TopicPartition, dict[int, int]] = {}
    for broker, directories in log_dirs.items():
        for directory in directories.values():
            if directory.online:
                for tp, size in directory.logs.items():
                    by_partition.setdefault(tp, {})[broker] = size
    return by_partition


def remembered(before: LogDirs, now: LogDirs, brokers: Collection[int]) -> LogDirs:
    """Return the directories, with the last report of registered brokers that did not answer now.

    So a slow broker loses no progress.
    """
    return {broker: directories for broker, directories in before.items() if broker in brokers} | dict(now)


FRESH_SECONDS = 30.0
"""An older report says nothing of the room that volumes have now."""
MEMORY_SECONDS = 60.0
FORGET_SECONDS = 3600.0
"""A broker that has not reported for so long counts as one that never has."""


class Instruction(NamedTuple):
    """The directory that a broker was told for a replica, when, and by when the request has landed."""

    path: str
    at: float
    lands: float


NEVER = Instruction("", -inf, -inf)


@dataclass(frozen=True, slots=True)
class LogDirReports:
    """The age of each broker's report on its log directories, by a monotonic clock."""

    read: Mapping[int, float] = field(default_factory=dict)
    """When the last observation began that the broker answered."""
    instructions: Mapping[tuple[TopicPartition, int], Instruction] = field(default_factory=dict)
    """The last instruction by partition and broker."""

    def observe(self, began: float, brokers: Collection[int]) -> LogDirReports:
        """Return the state after an observation that these brokers answered."""
        lately = {broker: at for broker, at in self.read.items() if began - at < FORGET_SECONDS}
        after = replace(self, read={**lately, **dict.fromkeys(brokers, began)})
        kept = {
            key: instruction
            for key, instruction in self.instructions.items()
            if after._read(key[1]) - instruction.lands < MEMORY_SECONDS and began - instruction.lands < FORGET_SECONDS
        }
        return replace(after, instructions=kept)

    def instruct(self, steps: Iterable[tuple[AlterLogDirs, float]], at: float) -> LogDirReports:
        """Return the state after these steps, each with the time by which it has landed."""
        new = {(step.tp, broker): Instruction(path, at, lands) for step, lands in steps for broker, path in step.dirs}
        return replace(self, instructions={**self.instructions, **new})

    def fresh(self, now: float) -> frozenset[int]:
        """Return the brokers that have answered lately."""
        return frozenset(broker for broker, at in self.read.items() if now - at < FRESH_SECONDS)

    def last_path(self, tp: TopicPartition, broker: int) -> str:
        """Return the directory that the broker was last told for a partition; empty when it was told none lately."""
        return self.instructions.get((tp, broker), NEVER).path

    def may_instruct(self, tp: TopicPartition, broker: int) -> bool:
        """Whether the broker has reported where its replica is since it was last told where to put it."""
        return self._read(broker) > self.instructions.get((tp, broker), NEVER).at

    def is_sure(self, tp: TopicPartition, broker: int, since: float) -> bool:
        """Whether the report cannot change any more by what the broker was told, and is not older than `since`."""
        read = self._read(broker)
        return read > self.instructions.get((tp, broker), NEVER).lands and read >= since

    def _read(self, broker: int) -> float:
        return self.read.get(broker, -inf)
