"""Bring replicas to the log directories that an entry names (KIP-113).

A broker is not told again, and nothing counts as done, before it has answered since it was last told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from reassign.core.model.log_dir_reports import Answers
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import AlterLogDirs


class Directed(NamedTuple):
    """How far the replicas of a partition are on their way to the directories that are named.

    `log_dirs` is what the record says from now on: a directory that is named no longer stays in it until the copy to
    it has surely ended. `done` is whether nothing is left to do, as far as brokers have said since they were told;
    `refused` is why a broker that refused is not told now.
    """

    log_dirs: tuple[tuple[int, str], ...]
    tell: AlterLogDirs | None
    done: bool
    refused: Problem | None


@dataclass(frozen=True, slots=True)
class Director:
    """Sees replicas to directories. `shown` is whether a broker's show all that it was told about a partition.

    A copy to another directory than the one in the record is somebody else's: it is left alone, unless superseded.
    """

    snapshot: Snapshot
    answers: Answers
    shown: Callable[[TopicPartition, int], bool]
    supersede: bool
    refusal: Callable[[TopicPartition, tuple[tuple[int, str], ...]], Problem | None]

    def direct(
        self,
        tp: TopicPartition,
        log_dirs: tuple[tuple[int, str], ...],
        named: tuple[tuple[int, str], ...],
        holders: Iterable[int],
    ) -> Directed:
        """From the directories in the record to those that are named; `holders` are the brokers that keep a replica."""
        there = self.snapshot.brokers.keys() & set(holders)
        dropped = placements(tp, (item for item in log_dirs if item not in named), self.snapshot)
        ending = [p for p in dropped if p.broker in there and not self._has_ended(tp, p)]
        held_up = {p.broker for p in ending}
        wanted = [p for p in placements(tp, named, self.snapshot) if p.broker not in held_up]
        send = [(p.broker, p.current) for p in ending if p.current and self._is_ours(tp, p)]
        send += [(p.broker, p.path) for p in wanted if p.to_send(supersede=self.supersede)]
        refused = {item: problem for item in send if (problem := self.refusal(tp, (item,)))}
        send = sorted(item for item in send if item not in refused and self._may_tell(tp, item[0]))
        return Directed(
            log_dirs=tuple(sorted((p.broker, p.path) for p in (*ending, *wanted))),
            tell=AlterLogDirs(tp, tuple(send)) if send else None,
            done=not ending and all(p.done and self.shown(tp, p.broker) for p in wanted),
            refused=refused[min(refused)] if refused else None,
        )

    def _has_ended(self, tp: TopicPartition, place: LogDirPlacement) -> bool:
        partition = self.snapshot.partition(tp)
        shown = place.current or (partition is not None and place.broker in partition.offline)
        return self.shown(tp, place.broker) and not self._is_ours(tp, place) and bool(shown)

    def _is_ours(self, tp: TopicPartition, place: LogDirPlacement) -> bool:
        """Whether the copy under way is to where it was recorded; or to where it was to stay, told too late."""
        return place.future in (place.path, self.answers.last_told(tp, place.broker))

    def _may_tell(self, tp: TopicPartition, broker: int) -> bool:
        found = self.snapshot.brokers.get(broker)
        return found is not None and not found.fenced and self.answers.may_tell(tp, broker)
