"""Whether the volumes of the brokers that get a replica have room, and whether the brokers have said so."""

from __future__ import annotations

from reassign.api.partition_reassignment import can_be_directed
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.progress import leader_bytes
from reassign.errors import Reason
from reassign.text import amount, named_brokers


def silence(i: Input) -> Problem | None:
    """Wait for brokers' reports: how much the leader has, and what the brokers that receive have room for.

    A broker with several volumes also has to report where it puts what is on its way, if that decides about the room.
    """
    leader, receivers = i.partition.leader, i.receivers
    unknown = receivers.difference(i.room.answered)
    if receivers and leader is not None and i.snapshot.sizes is not None and leader_bytes(i.tp, i.snapshot) is None:
        unknown |= {leader}
    unknown |= {place.broker for place in i.placements if not place.known} | i.unplaced
    if not unknown:
        return None
    why = next((i.snapshot.unread_log_dirs[b] for b in sorted(unknown) if b in i.snapshot.unread_log_dirs), None)
    return Problem(
        Reason.REQUEST_FAILED,
        f"{named_brokers(unknown, 'has')} not reported yet what the log directories hold",
        *((" (", *why.parts, ")") if why else ()),
        "; the operator asks again",
    )


def disk(i: Input) -> Problem | None:
    if len(i.directories) == len(i.receivers):
        return None
    full = sorted(i.receivers - i.directories.keys())
    size, of_all = leader_bytes(i.tp, i.snapshot) or 0, ""
    if full[0] in i.added and full[0] not in i.log_dirs and not can_be_directed(*i.tp):
        of_all = " in each log directory, and it chooses one itself for a topic with so long a name"
    return Problem(
        Reason.INSUFFICIENT_DISK,
        f"broker {full[0]} has no room for {amount(size)} more{of_all}, with all that is on its way there: less "
        f"than {i.room.min_free_percent} % would stay free; free some disk, choose another broker, "
        "or lower limits.minFreeDiskPercent of the KafkaCluster",
    )
