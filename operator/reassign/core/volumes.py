"""What is known of brokers' log directories and volumes, from one look to the next."""

from __future__ import annotations

from collections.abc import Collection

from reassign.core.model import LogDirs, Sizes, TopicPartition


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
