"""Inputs of the checks: a partition on brokers 0, 1 and 2 that is to move to 3, 1 and 2, and variations of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reassign.api.kafka_cluster import Limits
from reassign.core.checks.input import Input
from reassign.core.model.budget import Budget
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent, Refusal, Request
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Name, Problem
from reassign.core.model.room import Room
from reassign.core.model.snapshot import Broker, LogDir, Reassignment, TopicPartition
from reassign.errors import Reason
from tests.unit.sim import SimKafka, resource

TP = TopicPartition("orders", 0)
TARGET = (3, 1, 2)
NOW = 100.0


def kafka(
    replicas: tuple[int, ...] = (0, 1, 2),
    *,
    tp: TopicPartition = TP,
    moving_to: tuple[int, ...] = (),
    fenced: Collection[int] = (),
    isr: Collection[int] | None = None,
    **fields: Any,
) -> SimKafka:
    """Six brokers with the partition; another client may be moving it, and brokers may be fenced."""
    cluster = SimKafka({tp: replicas}, **fields)
    if moving_to:
        cluster.move_as_another(tp, moving_to)
    if isr is not None:
        cluster.isr[tp] = frozenset(isr)
    cluster.brokers |= {b: Broker(b, fenced=True) for b in fenced}
    return cluster


def hanging(**fields: Any) -> SimKafka:
    """A move of another client that never ends: broker 3 is being added and removed."""
    cluster = kafka(**fields)
    cluster.reassignments[TP] = Reassignment((3, 0, 1, 2), adding=(3,), removing=(3,))
    return cluster


def with_dirs(**directories: LogDir) -> dict[int, dict[str, LogDir]]:
    """Broker 3, or the one of `b1_a`, has these directories: `a` is /a."""
    found: dict[int, dict[str, LogDir]] = {}
    for name, directory in directories.items():
        broker, path = name.removeprefix("b").split("_") if "_" in name else ("3", name)
        found.setdefault(int(broker), {})[f"/{path}"] = directory
    return found


def an_input(
    cluster: SimKafka | None = None,
    target: Sequence[int] = TARGET,
    *,
    tp: TopicPartition = TP,
    expected: tuple[int, ...] | None = None,
    log_dirs: tuple[str, ...] | None = None,
    known: Mapping[str, Any] | None = None,
    resource_is: Mapping[str, Any] | None = None,
    recent: Recent | None = None,
    answered: Collection[int] | None = None,
    allowed: Mapping[str, tuple[str, ...]] | None = None,
    cluster_hold: Problem | None = None,
    budget: Budget | None = None,
    own: Budget | None = None,
    shared: Budget | None = None,
    moving: bool = False,
    expired: bool = False,
    claimed_by: Name | None = None,
    **spec: Any,
) -> Input:
    """A partition that passes every check, but for these changes.

    `known` changes the snapshot, `resource_is` the resource; other fields are of the spec, by their names on the wire.
    `answered` are the brokers that reported log directories lately, by default those in the snapshot.
    """
    snapshot = replace((cluster or kafka()).snapshot(), **known or {})
    asked = replace(resource({tp: target}, **spec), **resource_is or {})
    wanted = asked.spec.partitions[0].model_copy(update={"expected_replicas": expected, "log_dirs": log_dirs})
    return Input(
        tp,
        wanted,
        asked,
        snapshot,
        ClusterRules(Limits(), hold=cluster_hold, permission=None if allowed is None else Permission(allowed)),
        recent or Recent(now=NOW),
        Room.of(snapshot, 10, snapshot.log_dirs.keys() if answered is None else answered),
        budget or Budget(None, None),
        own or Budget(None, None),
        shared or Budget(None, None),
        moving,
        expired,
        claimed_by,
    )


def used(
    partitions: int = 1,
    *,
    max_partitions: int | None = None,
    moves_per_broker: int | None = None,
    added: Collection[int] = (),
    source: int | None = None,
) -> Budget:
    """A budget of which so many partitions are used, each adding replicas on these brokers."""
    budget = Budget(max_partitions, moves_per_broker)
    for _ in range(partitions):
        budget.take(added, source)
    return budget


def refused(request: Request, until: float = NOW + 1) -> Recent:
    """Brokers refused this lately, and it is asked for again at this moment."""
    problem = Problem(Reason.INVALID_REPLICA_ASSIGNMENT, "the brokers refused it")
    return Recent(now=NOW, refused={(TP, request): Refusal(problem, until, 15.0)})
