"""Stall: which moves in flight do not come nearer to their end, since when, and why.

`model.track` says what comes nearer. What is remembered is this process's own; another one begins to count anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from reassign.api.partition_reassignment import can_be_directed
from reassign.core.checks.in_flight import copy_of_others
from reassign.core.checks.log_dirs import name_too_long, unknown_log_dir
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem, ids
from reassign.core.model.progress import duration, leader_bytes
from reassign.core.model.record import Entry
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.snapshot import Partition, Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.track import Distance, Track
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason
from reassign.text import named_brokers, plural

WRONGLY_DIRECTED = (Reason.UNKNOWN_LOG_DIR, Reason.TOPIC_NAME_TOO_LONG)
"""Why a move can never end: it is stalled at once."""


def stalls(
    verdicts: Sequence[Verdict], snapshot: Snapshot, recent: Recent, rules: ClusterRules
) -> tuple[list[Verdict], dict[TopicPartition, Track]]:
    """Return the verdicts with what keeps moves from coming nearer, and how near each move has come by now."""
    tracks: dict[TopicPartition, Track] = {}
    return [_with_stalls(verdict, snapshot, recent, rules, tracks) for verdict in verdicts], tracks


def _with_stalls(
    verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules, tracks: dict[TopicPartition, Track]
) -> Verdict:
    timeout, throttled = verdict.resource.spec.stall_timeout_seconds, rules.throttles(verdict.resource)
    rows: dict[TopicPartition, Row] = {}
    for tp, row in verdict.rows.items():
        entry = row.entry
        if entry is None or not entry.active or row.said(SayingKind.PROBLEM):
            continue
        if (partition := snapshot.partition(tp)) is None:
            continue
        before, refused = recent.tracks.get(tp), row.said(SayingKind.STALL)
        seen = tp in snapshot.reassignments and not row.listed
        unseen = None if seen else _unseen(recent.lagging(tp))
        if entry.state in (State.CANCELLING, State.SUPERSEDING):
            tracks[tp] = track = _track(before, (), Distance(0, frozenset()), recent.now)
            overdue = recent.now - track.since >= timeout
            if overdue or unseen:
                problem = refused or _hangs(tp, entry, partition, snapshot, timeout, unseen)
                rows[tp] = row.stalled(problem, overdue=overdue)
        elif row.listed or entry.state in (State.IN_FLIGHT, State.SETTLING):
            move = _Move(tp, entry, partition, snapshot, timeout, unseen)
            tracks[tp] = track = _track(before, entry.target, move.distance, recent.now)
            rows[tp] = move.judged(row, track, recent.now, throttled=throttled)
    return verdict.with_rows(rows)


def _track(before: Track | None, target: tuple[int, ...], distance: Distance, now: float) -> Track:
    """Return the track after an observation; a cancel, which has no target, comes nearer to its end by ending."""
    track = before if before and before.target == target else Track.begin(target, now, distance)
    return track.observe(now, distance)


@dataclass(frozen=True)
class _Move:
    """A move in flight, and what is observed of it."""

    tp: TopicPartition
    entry: Entry
    partition: Partition
    snapshot: Snapshot
    timeout: int
    unseen: Problem | None
    """Why its end cannot be seen, where it may have ended."""

    @cached_property
    def placements(self) -> list[LogDirPlacement]:
        return placements(self.tp, self.entry.log_dirs, self.snapshot)

    @cached_property
    def copies(self) -> list[LogDirPlacement]:
        """Between log directories of a broker."""
        return [place for place in self.placements if place.copies]

    @cached_property
    def distance(self) -> Distance:
        lacking = frozenset(self.entry.target) - self.partition.isr
        gap, copied = _bytes(self.tp, lacking, self.copies, self.snapshot)
        return Distance(len(self.entry.target) - len(lacking) - len(self.copies), lacking, gap, copied)

    def judged(self, row: Row, track: Track, now: float, *, throttled: bool) -> Row:
        """Return the row with what keeps the move from coming nearer, if it is known or has lasted."""
        overdue = now - track.since >= self.timeout
        problem = self._known or row.said(SayingKind.STALL)
        if overdue and problem is None:
            problem = self._unknown(track, throttled=throttled)
        if problem is None:
            return row
        return row.stalled(problem, overdue=overdue or problem.reason in WRONGLY_DIRECTED)

    @property
    def _known(self) -> Problem | None:
        """What is wrong with what the move needs, if that is known.

        Where metadata lags, and does not show the target, only what brokers report on their directories counts.
        """
        lacking, partition = self.distance.lacking, self.partition
        directory = _of_directories(self.tp, self.placements, self.snapshot)
        if self.unseen and (lacking or partition.replicas != self.entry.target):
            return directory or self.unseen
        return _of_brokers(lacking, partition, self.snapshot) or directory or _of_leader(partition)

    def _unknown(self, track: Track, *, throttled: bool) -> Problem:
        """Say what keeps a move from its end that no broker explains.

        What replicas in sync fetch counts against the leader's throttle, too.
        """
        lacking, gap, copied = self.distance.lacking, self.distance.gap, self.distance.copied
        written_to = bool(lacking and gap and track.gap is not None and gap > track.gap)
        lacking |= {place.broker for place in self.copies}
        if copied > track.copied:
            return Problem(
                Reason.THROTTLE_BELOW_PRODUCE_RATE,
                f"{named_brokers(lacking, 'copies')}, but no faster than the leader is written to, for "
                f"{duration(self.timeout)}; raise the throttle; if there is none, the network or a disk is too slow, "
                "or producers are too fast",
            )
        if lacking and written_to and throttled:
            return Problem(
                Reason.THROTTLE_BELOW_PRODUCE_RATE,
                f"{named_brokers(lacking, 'has')} copied nothing for {duration(self.timeout)}, while the leader is "
                "written to: what the replicas in sync fetch uses up the throttle; raise it",
            )
        if lacking:
            return Problem(
                Reason.MOVE_STALLED,
                f"{named_brokers(lacking, 'has')} copied nothing for {duration(self.timeout)}, though "
                f"{plural(lacking, 'it seems', 'they seem')} to be well; check "
                f"{plural(lacking, 'its log', 'their logs')}, and the throttle",
            )
        return Problem(
            Reason.MOVE_STALLED,
            f"the replicas {list(self.entry.target)} are in sync, but the brokers have not completed the move for "
            f"{duration(self.timeout)}; remove the entry to cancel it, then add it again",
        )


def _unseen(lagging: int | None) -> Problem | None:
    """Say that what became of a move that is not listed any more cannot be seen, by the broker that lags."""
    if lagging is None:
        return None
    return Problem(
        Reason.MOVE_STALLED,
        f"broker {lagging}, from which the operator reads metadata, lags behind the controllers (by DescribeQuorum), "
        "so the end of the move cannot be seen; check its log, and its connection to the controllers",
    )


def _hangs(
    tp: TopicPartition, entry: Entry, partition: Partition, snapshot: Snapshot, timeout: int, unseen: Problem | None
) -> Problem:
    """Say what a cancel waits for; `unseen` is why its end cannot be seen."""
    keepers = {broker for broker, _ in entry.log_dirs} & set(partition.replicas) & snapshot.brokers.keys()
    if down := {broker for broker in keepers if snapshot.brokers[broker].fenced}:
        return Problem(
            Reason.BROKER_FENCED,
            f"{named_brokers(down, 'is')} fenced (down or still starting), and may go on with a copy between log "
            f"directories after a restart; start {plural(down, 'it', 'them')}, or set deletionPolicy: Orphan "
            "on a resource that is deleted",
        )
    if unseen:
        return unseen
    if tp in snapshot.reassignments:
        return Problem(
            Reason.MOVE_STALLED,
            f"the way back to {list(entry.original)} is still in flight after {duration(timeout)}; "
            "check the controller's log",
        )
    return Problem(
        Reason.MOVE_STALLED,
        f"the brokers have not confirmed for {duration(timeout)} that it is back"
        f"{' and that no copy between log directories is left' if entry.log_dirs else ''}; check their logs",
    )


def _bytes(
    tp: TopicPartition, lacking: frozenset[int], copies: Sequence[LogDirPlacement], snapshot: Snapshot
) -> tuple[int | None, int]:
    """Return the bytes of the leader that these replicas and copies between directories lack, and those they have."""
    whole = leader_bytes(tp, snapshot)
    if whole is None:
        return None, 0
    sizes = (snapshot.sizes or {})[tp]
    copied = sum(sizes.get(broker, 0) for broker in lacking) + sum(place.copied for place in copies)
    return whole * (len(lacking) + len(copies)) - copied, copied


def _of_brokers(lacking: frozenset[int], partition: Partition, snapshot: Snapshot) -> Problem | None:
    """Say what is wrong with the brokers that lack a replica."""
    if missing := lacking - snapshot.brokers.keys():
        return Problem(
            Reason.UNKNOWN_BROKER,
            f"{named_brokers(missing, 'is')} no longer registered, and the move waits; "
            f"start {plural(missing, 'it', 'them')} again, or correct the entry",
        )
    if fenced := {b for b in lacking if snapshot.brokers[b].fenced}:
        return Problem(
            Reason.BROKER_FENCED,
            f"{named_brokers(fenced, 'is')} fenced (down or still starting), and the move waits; "
            f"start {plural(fenced, 'it', 'them')}, or correct the entry",
        )
    if offline := lacking & partition.offline:
        return Problem(
            Reason.LOG_DIR_OFFLINE,
            f"the log directory of the replica on {named_brokers(offline, 'is')} offline"
            f"{_offline_dirs(offline, snapshot)}; repair the disk and restart the broker, or correct the entry",
        )
    return None


def _of_directories(tp: TopicPartition, places: Sequence[LogDirPlacement], snapshot: Snapshot) -> Problem | None:
    """Say what is wrong with the directories that are named, as their brokers report them."""
    if not can_be_directed(*tp) and (elsewhere := [p for p in places if p.known and not p.done]):
        return name_too_long(tp, elsewhere[0].broker)
    if unknown := [p for p in places if p.known and p.path not in snapshot.log_dirs[p.broker]]:
        return unknown_log_dir(unknown[0].broker, unknown[0].path, snapshot.log_dirs[unknown[0].broker])
    if closed := [place for place in places if place.known and not place.online]:
        return Problem(
            Reason.LOG_DIR_OFFLINE,
            f"the log directory {closed[0].path} of broker {closed[0].broker} is offline; "
            "repair the disk and restart the broker, or name another directory",
        )
    if theirs := [place for place in places if place.copied_elsewhere]:
        return copy_of_others(theirs[0])
    return None


def _of_leader(partition: Partition) -> Problem | None:
    if partition.leader is None:
        return Problem(
            Reason.NO_LEADER,
            f"the partition has no leader to copy from; start one of its in-sync replicas, {ids(partition.isr) or '-'}",
        )
    return None


def _offline_dirs(brokers: frozenset[int], snapshot: Snapshot) -> str:
    paths = sorted(
        path for b in brokers for path, directory in snapshot.log_dirs.get(b, {}).items() if not directory.online
    )
    return f" ({', '.join(paths)})" if paths else ""
