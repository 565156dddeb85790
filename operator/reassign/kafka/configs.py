"""min.insync.replicas of topics, kept for a while: it changes rarely, and the cluster is observed every second."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from reassign.kafka.requests import Unread

CONFIG_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Read:
    topic_id: str
    value: int
    at: float


class MinInsyncReplicas:
    """A cache of min.insync.replicas by topic, for CONFIG_SECONDS.

    `ask` takes names of topics. It returns the values by name, and why those of others cannot be read.
    """

    def __init__(self, ask: Callable[[Collection[str]], tuple[dict[str, int], Unread]]) -> None:
        self._ask = ask
        self._kept: dict[str, _Read] = {}

    def of(self, topic_ids: Mapping[str, str]) -> tuple[dict[str, int], Unread]:
        """Return the values by name, and why others cannot be read; topics that are gone are left out.

        The topics come with the ids that they have now: a topic that was made again is asked for again.
        """
        now = time.monotonic()
        kept = {name: read for name, read in self._kept.items() if now - read.at < CONFIG_SECONDS}
        known = {name: kept[name].value for name, id in topic_ids.items() if name in kept and kept[name].topic_id == id}
        missing = topic_ids.keys() - known.keys()
        answers, unread = self._ask(missing) if missing else ({}, {})
        self._kept = kept | {name: _Read(topic_ids[name], value, now) for name, value in answers.items()}
        return known | answers, unread
