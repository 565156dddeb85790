"""Whether a partition may be moved now: ordered checks, the first violation wins.

Each check is a function `Candidate -> Problem | None`; the problem's sentence says what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reassign.api.partition_reassignment import ReplicationFactorChange, WhenInFlight
from reassign.core.checks.in_sync import holding_up
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.problem import Problem, ids
from reassign.core.model.snapshot import Broker, Partition, Reassignment, Snapshot, Topic, TopicPartition
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partition that waits to be moved, and what is known about it."""

    tp: TopicPartition
    target: tuple[int, ...]
    expected: tuple[int, ...] | None
    factor_change: ReplicationFactorChange
    when_in_flight: WhenInFlight
    topic: Topic
    partition: Partition
    snapshot: Snapshot
    claimed_by: str | None
    log_dirs: Mapping[int, str] = field(default_factory=dict)
    """The directories that the entry names, by broker."""

    @property
    def in_flight(self) -> Reassignment | None:
        """What is in flight for it; not its own, since it has not begun."""
        return self.snapshot.reassignments.get(self.tp)

    @property
    def at_target(self) -> bool:
        """Whether it is where it should be, its directories apart."""
        return self.in_flight is None and self.partition.replicas == self.target

    @property
    def placements(self) -> list[LogDirPlacement]:
        """Of each replica for which a directory is named."""
        return placements(self.tp, self.log_dirs.items(), self.snapshot)

    @property
    def done(self) -> bool:
        """Whether it is where it should be, in the directories that are named."""
        return self.at_target and all(place.done for place in self.placements)

    @property
    def current(self) -> tuple[int, ...]:
        """The replicas that it has, those being added not counted."""
        return self.in_flight.original if self.in_flight else self.partition.replicas

    @property
    def sizes(self) -> Mapping[int, int] | None:
        """Bytes by broker; None while they are not known."""
        return (self.snapshot.sizes or {}).get(self.tp)

    @property
    def supersedes(self) -> bool:
        """Whether somebody else's move has to make way for it."""
        return self.in_flight is not None and self.when_in_flight is WhenInFlight.SUPERSEDE

    @property
    def under_way(self) -> bool:
        """Whether somebody else's move, which it may supersede, goes to the same end."""
        move = self.in_flight
        return self.supersedes and move is not None and move.final == self.target and not move.hangs

    @property
    def added(self) -> frozenset[int]:
        """The brokers that get a replica."""
        return frozenset(self.target) - frozenset(self.current)


def unknown_broker(c: Candidate) -> Problem | None:
    missing = set(c.target) - set(c.snapshot.brokers)
    if not missing:
        return None
    return Problem(
        Reason.UNKNOWN_BROKER,
        f"no broker {ids(missing)} is registered in the cluster; choose from {ids(c.snapshot.brokers)}",
    )


def fenced_broker(c: Candidate) -> Problem | None:
    fenced = {b for b in c.target if c.snapshot.brokers[b].fenced}
    if not fenced:
        return None
    return Problem(
        Reason.BROKER_FENCED, f"broker {ids(fenced)} is fenced (down or still starting); start it, or choose another"
    )


def log_directory(c: Candidate) -> Problem | None:
    """A directory that is named, or any that the broker may choose (cordoned ones it does not, KIP-1066)."""
    for broker in sorted(c.added | c.log_dirs.keys()):
        directories, path = c.snapshot.log_dirs.get(broker), c.log_dirs.get(broker)
        if directories is None:
            continue
        if path is not None and path not in directories:
            return unknown_log_dir(broker, path, directories)
        open_to = {p: d for p, d in directories.items() if path in (None, p)}
        what = path or "every log directory"
        if not any(d.online for d in open_to.values()):
            return Problem(
                Reason.LOG_DIR_OFFLINE,
                f"{what} of broker {broker} is offline; mend the disk and restart the broker, or choose another",
            )
        if all(d.cordoned for d in open_to.values() if d.online):
            return Problem(
                Reason.LOG_DIR_CORDONED,
                f"{what} of broker {broker} is cordoned; take it out of cordoned.log.dirs, or choose another",
            )
    return None


def expected_replicas(c: Candidate) -> Problem | None:
    if c.expected is None or set(c.expected) == set(c.current):
        return None
    return Problem(
        Reason.EXPECTED_REPLICAS_MISMATCH,
        f"expected replicas {list(c.expected)}, but it has {list(c.current)}; look again, then correct the entry",
    )


def replication_factor(c: Candidate) -> Problem | None:
    """KIP-860, on our side of the API; the broker judges again at the alter where it can.

    In flight it is the target's size that must not change; where that move is cancelled first, the size that it
    goes back to must not change either.
    """
    before = [len(c.in_flight.target)] if c.in_flight else [len(c.current)]
    if c.supersedes:
        before.append(len(c.current))
    changed = next((size for size in before if size != len(c.target)), None)
    if c.factor_change is ReplicationFactorChange.ALLOW or changed is None:
        return None
    return Problem(
        Reason.REPLICATION_FACTOR_CHANGE,
        f"the replication factor would change from {changed} to {len(c.target)}; "
        "set replicationFactorChange: Allow if that is meant",
    )


def min_in_sync_replicas(c: Candidate) -> Problem | None:
    """Brokers take a target below min.insync.replicas, and producers with acks=all then stand still."""
    required = c.topic.min_insync_replicas
    if len(c.target) >= required or len(c.target) >= len(c.current):
        return None
    return Problem(
        Reason.BELOW_MIN_IN_SYNC_REPLICAS,
        f"{len(c.target)} replicas are fewer than min.insync.replicas={required}; name more replicas, or lower it",
    )


def claimed(c: Candidate) -> Problem | None:
    if c.claimed_by is None:
        return None
    return Problem(
        Reason.PARTITION_CLAIMED,
        f"the PartitionReassignment {c.claimed_by} has it; wait until that one is settled, or remove the entry there",
    )


def in_flight_elsewhere(c: Candidate) -> Problem | None:
    move = c.in_flight
    if move is None or c.under_way:
        return None
    if c.supersedes:
        return cancel_problem(move.original, c.partition, c.topic.min_insync_replicas, c.snapshot.brokers)
    then = (
        "that move hangs: cancel it, or set whenInFlight: Supersede" if move.hangs else "it goes on when that is over"
    )
    return Problem(Reason.IN_FLIGHT_ELSEWHERE, f"somebody else is moving it ({describe(move)}); {then}")


def copied_elsewhere(c: Candidate) -> Problem | None:
    if c.when_in_flight is WhenInFlight.SUPERSEDE:
        return None
    return next((copy_of_others(place) for place in c.placements if place.copied_elsewhere), None)


def unknown_log_dir(broker: int, path: str, directories: Iterable[str]) -> Problem:
    """A directory that is named and that the broker does not have, for a sentence."""
    return Problem(
        Reason.UNKNOWN_LOG_DIR,
        f"broker {broker} has no log directory {path}, only {', '.join(sorted(directories))}; correct the entry",
    )


def copy_of_others(place: LogDirPlacement) -> Problem:
    """A copy between directories that is in the way, for a sentence."""
    return Problem(
        Reason.IN_FLIGHT_ELSEWHERE,
        f"somebody else is copying the replica on broker {place.broker} from {place.current or 'its directory'} to "
        f"{place.future}; it goes on when that is over",
    )


def describe(move: Reassignment) -> str:
    """A move for a sentence."""
    return f"adding {ids(move.adding) or 'none'}, removing {ids(move.removing) or 'none'}"


CHECKS: tuple[Callable[[Candidate], Problem | None], ...] = (
    unknown_broker,
    fenced_broker,
    log_directory,
    expected_replicas,
    replication_factor,
    min_in_sync_replicas,
    claimed,
    in_flight_elsewhere,
    copied_elsewhere,
)


def first_problem(candidate: Candidate) -> Problem | None:
    """The first violated check, in the order of CHECKS."""
    return next((problem for check in CHECKS if (problem := check(candidate))), None)


def existence(tp: TopicPartition, snapshot: Snapshot) -> Problem | None:
    """Why nothing is known of a partition, or None when it is there."""
    if tp.topic in snapshot.unauthorized_topics:
        return Problem(
            Reason.NOT_AUTHORIZED, f"DESCRIBE on the topic {tp.topic} is not allowed; grant it to the operator's user"
        )
    if tp.topic not in snapshot.topics:
        return Problem(
            Reason.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {tp.topic}; create it, or remove the entry"
        )
    partitions = snapshot.topics[tp.topic].partitions
    if tp.partition not in partitions:
        return Problem(
            Reason.UNKNOWN_TOPIC_OR_PARTITION,
            f"the topic {tp.topic} has no partition {tp.partition}, only 0 to {max(partitions, default=-1)}; "
            "correct the entry",
        )
    return None


def cancel_problem(
    original: tuple[int, ...], partition: Partition, required: int, brokers: Mapping[int, Broker]
) -> Problem | None:
    """Why going back to the original replicas is unsafe now, or None.

    The partition must keep min.insync.replicas, or all of its originals where they are fewer, among those that
    are alive and in sync (KIP-236 asks the same of whatever is dropped in flight).
    """
    good = {b for b in original if b in partition.isr and b in brokers and not brokers[b].fenced}
    needed = min(required, len(original))
    if len(good) >= needed:
        return None
    lacking = set(original) - good
    held_up = holding_up(partition, original, required)
    until_then = f"; until then broker {ids(held_up)} must stay" if held_up else ""
    return Problem(
        Reason.CANCEL_UNSAFE,
        f"going back to {list(original)} would leave {len(good)} of at least {needed} in-sync replicas; "
        f"it is held back until broker {ids(lacking)} is alive and in sync again{until_then}",
    )
