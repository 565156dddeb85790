"""Bring replicas to the log directories that an entry names (KIP-113).

A broker is not told again, and nothing counts as done, before it has answered since it was last told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from reassign.api.partition_reassignment import can_be_directed
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.row import Row
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import AlterLogDirs


class Directed(NamedTuple):
    """How far the replicas of a partition are on their way to the directories that are named."""

    log_dirs: tuple[tuple[int, str], ...]
    """The directories in the record from now on. One that is named no longer stays until the copy to it has ended."""
    instruct: AlterLogDirs | None
    """What the brokers are told now."""
    done: bool
    """Whether nothing is left to do, as far as brokers have reported since they were told."""
    refused: Problem | None
    """Why a broker that refused is not told now."""

    def beside(self, row: Row) -> Row:
        """Return the row with what the brokers are told beside its steps: neither waits for the other."""
        told = replace(row, steps=(self.instruct, *row.steps)) if self.instruct else row
        return told.stalled(self.refused, overdue=False) if self.refused else told


@dataclass(frozen=True, slots=True)
class Director:
    """Brings replicas to directories.

    A copy to another directory than the one in the record is another client's: it is left alone, unless superseded.
    """

    snapshot: Snapshot
    recent: Recent
    supersede: bool

    def direct(
        self,
        tp: TopicPartition,
        log_dirs: tuple[tuple[int, str], ...],
        named: tuple[tuple[int, str], ...],
        holders: Iterable[int],
    ) -> Directed:
        """Direct replicas from the recorded directories to those named; `holders` are the brokers that keep one."""
        there = self.snapshot.brokers.keys() & set(holders)
        dropped = placements(tp, (item for item in log_dirs if item not in named), self.snapshot)
        ending = [p for p in dropped if p.broker in there and not self._has_ended(tp, p)]
        held_up = {p.broker for p in ending}
        wanted = [p for p in placements(tp, named, self.snapshot) if p.broker not in held_up]
        send = [(p.broker, p.current) for p in ending if p.current and self._is_ours(tp, p)]
        send += [(p.broker, p.path) for p in wanted if p.to_send(supersede=self.supersede)]
        refused = {item: problem for item in send if (problem := self.recent.refusal(tp, (item,)))}
        send = sorted(item for item in send if item not in refused and self._may_instruct(tp, item[0]))
        return Directed(
            log_dirs=tuple(sorted((p.broker, p.path) for p in (*ending, *wanted))),
            instruct=AlterLogDirs(tp, tuple(send)) if send else None,
            done=not ending and all(p.done and self.recent.shown(tp, p.broker) for p in wanted),
            refused=refused[min(refused)] if refused else None,
        )

    def _has_ended(self, tp: TopicPartition, place: LogDirPlacement) -> bool:
        partition = self.snapshot.partition(tp)
        shown = place.current or (partition is not None and place.broker in partition.offline)
        return self.recent.shown(tp, place.broker) and not self._is_ours(tp, place) and bool(shown)

    def _is_ours(self, tp: TopicPartition, place: LogDirPlacement) -> bool:
        """Whether the copy under way is to where it was recorded; or, told too late, to where it was to stay."""
        return place.future in (place.path, self.recent.reports.last_path(tp, place.broker))

    def _may_instruct(self, tp: TopicPartition, broker: int) -> bool:
        known = self.snapshot.brokers.get(broker)
        if known is None or known.fenced or not can_be_directed(*tp):
            return False
        return self.recent.reports.may_instruct(tp, broker)
