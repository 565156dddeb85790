"""Turns one observation of a whole cluster into the arrays that a plan is made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.core.model.layout import showing, unseen_logs
from reassign.core.model.progress import leader_bytes
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Cluster, Directories, Ints
from reassign.planning.unseen import Unseen


def survey(snapshot: Snapshot) -> Cluster:
    """Return the cluster that a snapshot of all topics, sizes and log directories shows (`observe_everything`).

    A broker that only a replica names is not registered; before Kafka 4.0 it may be fenced, since these are not listed.
    A replica that is being copied to another log directory (KIP-113) counts there. Logs without metadata are of topics
    that may not be seen.
    """
    partitions = [
        (TopicPartition(name, number), partition)
        for name, topic in sorted(snapshot.topics.items())
        for number, partition in sorted(topic.partitions.items())
    ]
    moves = snapshot.reassignments
    replicas = [moves[tp].final if tp in moves else partition.replicas for tp, partition in partitions]
    ids = sorted(snapshot.brokers.keys() | {broker for row in replicas for broker in row})
    index = {broker: i for i, broker in enumerate(ids)}
    known = [snapshot.brokers.get(broker) for broker in ids]
    topics = tuple(sorted(snapshot.topics))
    topic_index = {name: i for i, name in enumerate(topics)}
    sizes = (leader_bytes(tp, snapshot) for tp, _ in partitions)
    return Cluster(
        id=snapshot.cluster_id,
        brokers=_ints(ids),
        racks=tuple((broker and broker.rack) or "" for broker in known),
        registered=_bools([broker is not None for broker in known]),
        alive=_bools([broker is not None and not broker.fenced for broker in known]),
        directories=_directories(snapshot, index),
        topics=topics,
        topic=_ints([topic_index[tp.topic] for tp, _ in partitions]),
        partition=_ints([tp.partition for tp, _ in partitions]),
        replicas=_rows([[index[broker] for broker in row] for row in replicas]),
        sizes=_bytes([UNKNOWN if size is None else size for size in sizes]),
        in_flight=_bools([tp in moves for tp, _ in partitions]),
        directory=_rows(_places(snapshot, [(tp, row) for (tp, _), row in zip(partitions, replicas, strict=True)])),
        unseen=Unseen(
            unseen_logs(snapshot.log_dirs, lambda tp: tp.topic in snapshot.topics),
            frozenset(snapshot.unread_topics),
            frozenset(ids) - showing(snapshot.log_dirs),
        ),
    )


def sourceless(snapshot: Snapshot, cluster: Cluster) -> list[int]:
    """Return the partitions of a survey, ascending, without an in-sync replica on a live broker.

    Nothing can be copied of them. Those in flight are left out.
    """
    alive = {broker.id for broker in snapshot.brokers.values() if not broker.fenced}
    rows = enumerate(zip(cluster.topic.tolist(), cluster.partition.tolist(), cluster.in_flight.tolist(), strict=True))
    return [
        row
        for row, (topic, number, moves) in rows
        if not moves and alive.isdisjoint(snapshot.topics[cluster.topics[topic]].partitions[number].isr)
    ]


class Roles(NamedTuple):
    """The leader and in-sync replicas of a survey's partitions; letters of the shapes as in `problem.model`."""

    leader: Ints  # (P,) index of the broker; UNKNOWN where there is none
    isr: Ints  # (P, R') indices, ascending; UNKNOWN fills rows


def roles(snapshot: Snapshot, cluster: Cluster) -> Roles:
    """Return the leaders and in-sync replicas of a survey's partitions, as metadata has them.

    While a partition is moved, its original replicas count too. A broker that the survey does not have is left out: it
    is down and about to lose its replica.
    """
    index = {int(broker): i for i, broker in enumerate(cluster.brokers)}
    partitions = [
        snapshot.topics[cluster.topics[topic]].partitions[int(number)]
        for topic, number in zip(cluster.topic, cluster.partition, strict=True)
    ]
    return Roles(
        leader=_ints([UNKNOWN if p.leader is None else index.get(p.leader, UNKNOWN) for p in partitions]),
        isr=_rows([sorted(index[broker] for broker in p.isr if broker in index) for p in partitions]),
    )


def _directories(snapshot: Snapshot, index: dict[int, int]) -> Directories:
    rows = [(index[broker], path, snapshot.log_dirs[broker][path]) for broker, path in _by_broker_and_path(snapshot)]
    return Directories(
        broker=_ints([broker for broker, _, _ in rows]),
        path=tuple(path for _, path, _ in rows),
        total=_bytes([UNKNOWN if d.total is None else d.total for _, _, d in rows]),
        usable=_bytes([UNKNOWN if d.usable is None else d.usable for _, _, d in rows]),
        cordoned=_bools([bool(d.cordoned) for _, _, d in rows]),
        online=_bools([d.online for _, _, d in rows]),
    )


def _by_broker_and_path(snapshot: Snapshot) -> list[tuple[int, str]]:
    return sorted((broker, path) for broker in snapshot.log_dirs for path in snapshot.log_dirs[broker])


def _places(snapshot: Snapshot, replicas: list[tuple[TopicPartition, tuple[int, ...]]]) -> list[list[int]]:
    """Return each replica's log directory as an index; UNKNOWN where it is not known."""
    by_broker: dict[int, dict[TopicPartition, int]] = {}
    numbered = list(enumerate(_by_broker_and_path(snapshot)))
    for i, (broker, path) in numbered:
        by_broker.setdefault(broker, {}).update(dict.fromkeys(snapshot.log_dirs[broker][path].logs, i))
    for i, (broker, path) in numbered:
        by_broker[broker].update(dict.fromkeys(snapshot.log_dirs[broker][path].futures, i))
    return [[by_broker.get(broker, {}).get(tp, UNKNOWN) for broker in row] for tp, row in replicas]


def _rows(rows: list[list[int]]) -> Ints:
    """Return rows as an array as wide as the longest."""
    array = np.full((len(rows), max(map(len, rows), default=0)), UNKNOWN, np.int32)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int32)


def _bytes(values: list[int]) -> Bytes:
    return np.array(values, np.int64)


def _bools(values: list[bool]) -> Bools:
    return np.array(values, np.bool_)
