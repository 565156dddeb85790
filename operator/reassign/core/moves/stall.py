"""Stall: which moves in flight do not come nearer to their end, since when, and why.

A move comes nearer when more of its target is in sync than ever before, or when its replicas lack fewer bytes of
the leader's than before. Bytes alone do not count: a replica that copies no faster than its leader is written to
never gets there. A cancel comes nearer to its end by being over. What is remembered is this process's own; another
one begins to count anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reassign.api.partition_reassignment import RecordState
from reassign.core.checks.chain import copy_of_others, unknown_log_dir
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.problem import Problem, ids
from reassign.core.model.progress import duration, leader_bytes
from reassign.core.model.record import Entry
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Snapshot, TopicPartition
from reassign.core.model.track import Track
from reassign.core.model.verdict import Stall, Verdict
from reassign.errors import Reason


def watch(
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
    tracks: dict[TopicPartition, Track],
    now: float,
    throttled: Callable[[Resource], bool],
) -> dict[TopicPartition, Track]:
    """Say in the verdicts which moves stand still; `tracks` is what the last look returned, `now` its clock.

    Where a broker has refused to go on, the verdict says why already.
    """
    kept: dict[TopicPartition, Track] = {}
    for verdict in verdicts:
        timeout = verdict.resource.spec.stall_timeout_seconds
        for tp, entry in verdict.record.items():
            partition = snapshot.partition(tp)
            if partition is None or tp in verdict.problems:
                continue
            refused = verdict.stalls[tp].problem if tp in verdict.stalls else None
            if entry.state is RecordState.CANCELLING:
                kept[tp] = _cancelling(tracks.get(tp), now)
                if now - kept[tp].since >= timeout:
                    hangs = refused or _hangs(tp, entry, partition, snapshot, timeout)
                    verdict.stalls[tp] = Stall(hangs, True)
            if entry.state is not RecordState.IN_FLIGHT:
                continue
            lacking = frozenset(entry.target) - partition.isr
            places = placements(tp, entry.log_dirs, snapshot)
            copies = [place for place in places if place.copies]
            gap, copied = _bytes(tp, lacking, copies, snapshot)
            in_sync = len(entry.target) - len(lacking) - len(copies)
            track = tracks.get(tp)
            if track is None or track.target != entry.target:
                track = Track(entry.target, now, now, in_sync, lacking, gap, gap, copied)
            track.look(lacking, in_sync, gap, copied, now)
            kept[tp] = track
            overdue = now - track.since >= timeout
            problem = _named(partition, lacking, places, snapshot) or refused
            if overdue and problem is None:
                copying = copied > track.copied
                behind = bool(lacking and gap and track.gap is not None and gap > track.gap)
                crowded_out = behind and throttled(verdict.resource)
                problem = _unnamed(entry, lacking, copies, timeout, copying=copying, crowded_out=crowded_out)
            if problem:
                verdict.stalls[tp] = Stall(problem, overdue or problem.reason is Reason.UNKNOWN_LOG_DIR)
    return kept


def _cancelling(track: Track | None, now: float) -> Track:
    if track is None or track.target:
        track = Track((), now, now, 0, frozenset())
    track.look(frozenset(), 0, None, 0, now)
    return track


def _hangs(tp: TopicPartition, entry: Entry, partition: Partition, snapshot: Snapshot, timeout: int) -> Problem:
    """What a cancel waits for."""
    keepers = {broker for broker, _ in entry.log_dirs} & set(partition.replicas) & snapshot.brokers.keys()
    if down := {broker for broker in keepers if snapshot.brokers[broker].fenced}:
        return Problem(
            Reason.BROKER_FENCED,
            f"broker {ids(down)} is fenced (down or still starting), and may go on with a copy between its log "
            "directories when it is back; start it, or set deletionPolicy: Orphan on a resource that is deleted",
        )
    if tp in snapshot.reassignments:
        return Problem(
            Reason.MOVE_STALLED,
            f"the way back to {list(entry.original)} is still in flight after {duration(timeout)}; "
            "look into the controller's log",
        )
    return Problem(
        Reason.MOVE_STALLED,
        f"the brokers have not confirmed for {duration(timeout)} that it is back"
        f"{' and that no copy between log directories is left' if entry.log_dirs else ''}; look into their logs",
    )


def _bytes(
    tp: TopicPartition, lacking: frozenset[int], copies: Sequence[LogDirPlacement], snapshot: Snapshot
) -> tuple[int | None, int]:
    """What these replicas and copies between directories lack of the leader's bytes, and what they hold."""
    whole = leader_bytes(tp, snapshot)
    if whole is None:
        return None, 0
    sizes = (snapshot.sizes or {})[tp]
    copied = sum(sizes.get(broker, 0) for broker in lacking) + sum(place.copied for place in copies)
    return whole * (len(lacking) + len(copies)) - copied, copied


def _named(
    partition: Partition, lacking: frozenset[int], places: Sequence[LogDirPlacement], snapshot: Snapshot
) -> Problem | None:
    """What is wrong with the brokers that the move needs, if they say so."""
    if missing := lacking - snapshot.brokers.keys():
        return Problem(
            Reason.UNKNOWN_BROKER,
            f"broker {ids(missing)} is no longer registered, and the move waits for it; "
            "start it again, or correct the entry",
        )
    if fenced := {b for b in lacking if snapshot.brokers[b].fenced}:
        return Problem(
            Reason.BROKER_FENCED,
            f"broker {ids(fenced)} is fenced (down or still starting), and the move waits for it; "
            "start it, or correct the entry",
        )
    if offline := lacking & partition.offline:
        return Problem(
            Reason.LOG_DIR_OFFLINE,
            f"the log directory of the replica on broker {ids(offline)} is offline{_offline_dirs(offline, snapshot)}; "
            "mend the disk and restart the broker, or correct the entry",
        )
    if unknown := [p for p in places if p.known and p.path not in snapshot.log_dirs[p.broker]]:
        return unknown_log_dir(unknown[0].broker, unknown[0].path, snapshot.log_dirs[unknown[0].broker])
    if closed := [place for place in places if place.known and not place.online]:
        return Problem(
            Reason.LOG_DIR_OFFLINE,
            f"the log directory {closed[0].path} of broker {closed[0].broker} is offline; "
            "mend the disk and restart the broker, or name another directory",
        )
    if theirs := [place for place in places if place.copied_elsewhere]:
        return copy_of_others(theirs[0])
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


def _unnamed(
    entry: Entry,
    lacking: frozenset[int],
    copies: Sequence[LogDirPlacement],
    timeout: int,
    *,
    copying: bool,
    crowded_out: bool,
) -> Problem:
    """`crowded_out` is whether a throttled leader is written to meanwhile: what replicas in sync fetch counts too."""
    lacking |= {place.broker for place in copies}
    if copying:
        return Problem(
            Reason.THROTTLE_BELOW_PRODUCE_RATE,
            f"broker {ids(lacking)} copies, but no faster than the leader is written to, for {duration(timeout)}; "
            "raise the throttle; if there is none, the network or a disk is too slow, or producers are too fast",
        )
    if lacking and crowded_out:
        return Problem(
            Reason.THROTTLE_BELOW_PRODUCE_RATE,
            f"broker {ids(lacking)} has copied nothing for {duration(timeout)}, while the leader is written to: what "
            "the replicas in sync fetch uses up the throttle; raise it",
        )
    if lacking:
        return Problem(
            Reason.MOVE_STALLED,
            f"broker {ids(lacking)} has copied nothing for {duration(timeout)}, though it seems to be well; "
            "look into its log, and at the throttle",
        )
    return Problem(
        Reason.MOVE_STALLED,
        f"the replicas {list(entry.target)} are in sync, but the brokers have not completed the move for "
        f"{duration(timeout)}; remove the entry to cancel it, then add it again",
    )
