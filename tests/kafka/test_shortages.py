"""Partitions that lack replicas in sync, as the brokers show them."""

from __future__ import annotations

import asyncio

from reassign.api.kafka_cluster import PauseWhen
from reassign.core.checks.pause import shortages
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Alter
from tests.kafka.harness import Kafka, eventually


def short(kafka: Kafka, when: PauseWhen) -> set[TopicPartition]:
    reassignments = kafka.observe().reassignments
    return set(shortages(when, asyncio.run(kafka.client.observe_shortages()), reassignments))


def test_a_broker_that_is_down_leaves_under_replicated_partitions(kafka: Kafka) -> None:
    strict = kafka.topic([0, 3], [0, 1], min_insync_replicas="2")
    loose, alone = kafka.topic([1, 3]), kafka.topic([3], min_insync_replicas="2")
    ours = {TopicPartition(topic, number) for topic, number in ((strict, 0), (strict, 1), (loose, 0), (alone, 0))}
    assert not ours & short(kafka, PauseWhen.UNDER_REPLICATED)
    under_replicated = {TopicPartition(strict, 0), TopicPartition(loose, 0), TopicPartition(alone, 0)}
    kafka.brokers.shut_down(3)
    try:
        eventually(lambda: ours & short(kafka, PauseWhen.UNDER_REPLICATED) == under_replicated)
        under_min_isr = under_replicated - {TopicPartition(loose, 0)}
        eventually(lambda: ours & short(kafka, PauseWhen.UNDER_MIN_ISR) == under_min_isr)
    finally:
        kafka.brokers.restart(3)
    eventually(lambda: not ours & short(kafka, PauseWhen.UNDER_REPLICATED))


def test_a_replica_that_is_being_added_leaves_nothing_short(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5, min_insync_replicas="2")
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        eventually(lambda: name in asyncio.run(kafka.client.observe_shortages()))
        assert tp not in short(kafka, PauseWhen.UNDER_REPLICATED)
    eventually(lambda: kafka.settled(tp, [2, 1]))
