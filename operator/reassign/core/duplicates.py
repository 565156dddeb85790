"""Two KafkaClusters for the same brokers: which one starts moves, and which one sets throttles.

The records of both have the same id, and the older one starts moves while it is Ready. So a KafkaCluster that never
does anything blocks no other one. One process serves both, and knows of each how it is served: no status is asked. One
that is Ready again starts nothing before the younger one has stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.stage import left_to_restore
from reassign.core.model.problem import Name, Names, Problem
from reassign.core.model.read_back import DeclaredCluster
from reassign.core.model.snapshot import Snapshot
from reassign.errors import Reason

HANDOVER_SECONDS = 90.0
"""How long a KafkaCluster that is not Ready any more may still have a request under way: brokers hold one that they
forward for up to 60 seconds. For as long one that is Ready again waits for a younger one to stop."""


class Peer(NamedTuple):
    """A KafkaCluster, readable or not, or the record that is left of one, and how this process serves it."""

    uid: str
    name: Name
    """For those who may refer to it; the owner of another KafkaCluster is no exception."""
    age: tuple[datetime, str]
    """When it was made, and its uid, which decides between two of one age."""
    cluster_id: str | None
    """Kafka's id of the cluster, by its record."""
    unready: str
    """The reason why it is not Ready; empty where it is."""
    since: float
    """Since when its `standing` is that, by a monotonic clock. A new process knows of none before its start."""
    throttle: RecordedConfigs | None = None
    """What its record says of throttles."""
    keeps: bool = False
    """Whether these stay for now: moves in flight need them, or another installation has the claim."""
    record_unread: bool = False
    """Whether its record cannot be read, so that it may have set throttles."""
    cordons: frozenset[int] = frozenset()
    """The brokers that it is to have cordoned: these cordons are not left to restore."""

    @property
    def names(self) -> Names:
        return Names((self.name,), "of another namespace")


def duplicate_of(cluster: DeclaredCluster, cluster_id: str, peers: Iterable[Peer], now: float) -> Problem | None:
    """Return the problem of an older KafkaCluster that serves the same brokers, if any: only that one starts moves.

    One that is not Ready keeps nothing from being served: anyone who may make a KafkaCluster could block another one.
    """
    same = _same(cluster, cluster_id, peers)
    older = next((peer for peer in same if peer.age < _age(cluster) and _serves(peer, now)), None)
    serves = f" stands for the same cluster {cluster_id}; refer to that one, from a new resource"
    return Problem(Reason.DUPLICATE_CLUSTER, "the older KafkaCluster ", older.names, serves) if older else None


def not_yet_stopped(cluster: DeclaredCluster, cluster_id: str, peers: Collection[Peer], now: float) -> Problem | None:
    """Return the problem of a younger KafkaCluster that served the same brokers while this one was not Ready.

    The wait lasts until the younger one starts nothing any more, and for `HANDOVER_SECONDS` at most.
    """
    if any(p.uid == cluster.metadata.uid and not p.unready and now - p.since >= HANDOVER_SECONDS for p in peers):
        return None
    same = _same(cluster, cluster_id, peers)
    younger = next((peer for peer in same if peer.age > _age(cluster) and not peer.unready), None)
    stops = " is about to stop starting moves"
    return Problem(Reason.CONNECTING, "the younger KafkaCluster ", younger.names, stops) if younger else None


def _serves(peer: Peer, now: float) -> bool:
    """Whether a KafkaCluster starts moves, or was about to until just now."""
    stopped = peer.unready in STARTS_NOTHING or peer.unready == Reason.CLUSTER_NOT_FOUND
    return not peer.unready or (not stopped and now - peer.since < HANDOVER_SECONDS)


STARTS_NOTHING = frozenset(
    {Reason.CLUSTER_DELETED, Reason.RESTORING_THROTTLES, Reason.DUPLICATE_CLUSTER, Reason.CLUSTER_CLAIMED}
)
"""Why a KafkaCluster whose brokers are reached starts nothing new: it only ends what it has begun."""


def standing(unready: str, keeps: bool) -> tuple[bool, bool]:
    """Return what counts of how a KafkaCluster is served: whether it is Ready, and whether its throttles have to stay.

    One whose brokers are not reached cannot tell, so they need not.
    """
    return not unready, unready in STARTS_NOTHING and keeps


def abandoned(cluster: DeclaredCluster, snapshot: Snapshot, peers: Collection[Peer], now: float) -> list[Peer]:
    """Return the KafkaClusters whose throttles on the same brokers are taken over.

    For `HANDOVER_SECONDS` they could not be served, or only had to restore their throttles and have not done so, such
    as without the right to. Only the one that is served takes over, and of two that are being deleted the older one.
    """
    if duplicate_of(cluster, snapshot.cluster_id, peers, now):
        return []
    left = (p for p in _with_throttles(cluster, snapshot, peers) if standing(p.unready, p.keeps) == (False, False))
    late = [peer for peer in left if now - peer.since >= HANDOVER_SECONDS]
    if cluster.metadata.deletion_timestamp is None:
        return late
    return [peer for peer in late if peer.unready not in STARTS_NOTHING or peer.age > _age(cluster)]


def not_taken_over(peer: Peer, met: Problem) -> Problem:
    """Return the problem of an `abandoned` KafkaCluster by what reading or writing its record, or ours, has met."""
    why = Names((replace(peer.name, text=met.message),), "the operator's log says why")
    what = "no throttle is set before those of the KafkaCluster ", peer.names, " are taken over, which failed: ", why
    return Problem(Reason.THROTTLE_NOT_SET, *what)


def peers_throttles(
    cluster: DeclaredCluster, snapshot: Snapshot, peers: Collection[Peer], now: float
) -> tuple[Problem | None, Problem | None]:
    """Return why this one sets no throttle: an older, and a younger, KafkaCluster has set some on the same brokers.

    If both set rates, each would restore the other's. So the younger one restores its own first.
    """
    those = sorted(_with_throttles(cluster, snapshot, peers), key=lambda peer: peer.age)
    taker = "the KafkaCluster that is served" if duplicate_of(cluster, snapshot.cluster_id, peers, now) else "this one"
    older = next((_throttled("older", peer, taker) for peer in those if peer.age < _age(cluster)), None)
    return older, next((_throttled("younger", peer, taker) for peer in those if peer.age > _age(cluster)), None)


def _with_throttles(cluster: DeclaredCluster, snapshot: Snapshot, peers: Iterable[Peer]) -> Iterator[Peer]:
    same = _same(cluster, snapshot.cluster_id, peers)
    return (p for p in same if p.record_unread or left_to_restore(p.throttle, snapshot.brokers, p.cordons))


def _throttled(which: str, other: Peer, taker: str) -> Problem:
    takes = f"{taker} takes them over, provided that the operator can read and write its ReassignmentRecord"
    if other.unready == Reason.CLUSTER_NOT_FOUND:
        has = (
            " is gone and has left throttles on the same brokers: nothing throttled begins before they are restored. "
            f"90 seconds after it went, {takes}"
        )
    elif other.unready == Reason.CLUSTER_CLAIMED:
        has = (
            " has throttles on the same brokers, and another installation of the operator has the claim on them: "
            "nothing throttled begins before that claim has ended and the throttles are restored"
        )
    else:
        has = (
            " has throttles on the same brokers and restores them when its moves have ended: nothing throttled begins "
            f"before that. When it has not restored them for 90 seconds, or could not be served for as long, {takes}"
        )
    return Problem(Reason.THROTTLE_NOT_SET, f"the {which} KafkaCluster ", other.names, has)


def _same(cluster: DeclaredCluster, cluster_id: str, peers: Iterable[Peer]) -> Iterator[Peer]:
    """Return the other KafkaClusters that stand for the same brokers."""
    return (peer for peer in peers if peer.uid != cluster.metadata.uid and peer.cluster_id == cluster_id)


def _age(cluster: DeclaredCluster) -> tuple[datetime, str]:
    assert cluster.metadata.creation_timestamp is not None
    return cluster.metadata.creation_timestamp, cluster.metadata.uid
