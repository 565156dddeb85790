"""What a snapshot of a cluster shows."""

import asyncio
from shutil import disk_usage

from localplatform.brokers import rack
from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.forwarding import Doubts, Forwarded
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from reassign.core.model.steps import Alter
from tests.kafka.harness import MEGABYTE, Kafka, eventually


def test_all_brokers_with_their_racks(kafka: Kafka) -> None:
    assert kafka.observe().brokers == {i: Broker(i, rack=rack(i), fenced=False) for i in range(4)}


def test_the_cluster_id_is_the_one_that_the_brokers_give(kafka: Kafka) -> None:
    assert kafka.observe().cluster_id == kafka.workload.metadata().cluster_id


def test_brokers_from_4_1_hold_the_replication_factor_themselves(kafka: Kafka) -> None:
    assert kafka.observe().guard is ReplicationFactorGuard.NATIVE


def test_a_topic_as_the_brokers_describe_it(kafka: Kafka) -> None:
    name = kafka.topic([2, 0, 1], [3, 1, 0], min_insync_replicas="2")

    topic = kafka.observe(name).topics[name]

    assert f"TopicId: {topic.id}\t" in kafka.brokers.tool("topics", "--describe", "--topic", name)
    assert topic.min_insync_replicas == 2
    assert {number: p.replicas for number, p in topic.partitions.items()} == {0: (2, 0, 1), 1: (3, 1, 0)}
    assert topic.partitions[0].isr == {0, 1, 2}
    assert topic.partitions[0].leader == 2


def test_min_insync_replicas_not_set_on_the_topic_is_the_brokers(kafka: Kafka) -> None:
    name = kafka.topic([0])
    assert kafka.observe(name).topics[name].min_insync_replicas == 1


def test_a_topic_that_does_not_exist_is_left_out_and_not_made(kafka: Kafka) -> None:
    known = kafka.topic([0])
    assert set(kafka.observe(known, "no-such-topic", "not a name!").topics) == {known}
    assert "no-such-topic" not in kafka.workload.metadata().topics


def test_a_topic_made_again_is_another_one(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], min_insync_replicas="2")
    before = kafka.observe(name).topics[name]
    kafka.delete(name)
    kafka.brokers.tool("topics", "--create", "--topic", name, "--replica-assignment", "1:0")
    eventually(lambda: name in kafka.observe(name).topics)

    after = kafka.observe(name).topics[name]

    assert after.id != before.id
    assert (before.min_insync_replicas, after.min_insync_replicas) == (2, 1)


def test_only_the_topics_asked_for(kafka: Kafka) -> None:
    kafka.topic([0])
    assert kafka.observe().topics == {}


def test_sizes_of_the_partitions_asked_for_on_each_of_their_brokers(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [2, 0], megabytes=2)
    full, empty = TopicPartition(name, 0), TopicPartition(name, 1)

    eventually(lambda: kafka.observe(name, sizes_of=[empty]).sizes == {empty: {2: 0, 0: 0}})
    sizes = kafka.observe(name, sizes_of=[full, empty]).sizes
    assert sizes is not None
    assert set(sizes[full]) == {0, 1}
    assert all(2 * MEGABYTE < size < 3 * MEGABYTE for size in sizes[full].values())


def test_log_directories_with_their_volumes_of_holders_and_destinations(kafka: Kafka) -> None:
    name = kafka.topic([0], megabytes=1)
    tp = TopicPartition(name, 0)

    log_dirs = kafka.observe(name, sizes_of=[tp], destinations=[2]).log_dirs

    assert set(log_dirs) == {0, 2}
    for broker, directories in log_dirs.items():
        for path, found in directories.items():
            assert str(broker) in path
            assert found.online
            assert not found.cordoned
            assert found.total == disk_usage(path).total
            assert 0 < (found.usable or 0) < found.total
            assert found.futures == {}
    assert sum(found.logs.get(tp, 0) for found in log_dirs[0].values()) > MEGABYTE


def test_no_sizes_when_none_are_asked_for(kafka: Kafka) -> None:
    assert kafka.observe().sizes is None


def test_a_move_in_flight_with_the_bytes_that_are_there_already(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)

    def copied() -> int:
        sizes = kafka.observe(name, sizes_of=[tp]).sizes
        assert sizes is not None
        return sizes.get(tp, {}).get(2, 0)

    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        eventually(lambda: kafka.partition(tp).replicas == (2, 1, 0))  # metadata comes a moment later
        snapshot = kafka.observe(name)
        assert snapshot.reassignments[tp] == Reassignment(replicas=(2, 1, 0), adding=(2,), removing=(0,))
        assert snapshot.reassignments[tp].target == {2, 1}
        assert snapshot.topics[name].partitions[0].isr == {0, 1}

        eventually(lambda: copied() > 0)
        assert copied() < 5 * MEGABYTE

    eventually(lambda: kafka.settled(tp, [2, 1]))
    eventually(lambda: copied() > 5 * MEGABYTE)


def test_what_is_in_flight_is_listed_for_topics_not_asked_for_too(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        assert tp in kafka.observe().reassignments
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_the_end_of_a_move_is_seen_without_an_observation(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)

    def has_ended() -> bool:
        return asyncio.run(kafka.client.has_ended({tp}))

    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        assert tp in kafka.observe().reassignments
        assert not has_ended()
    eventually(has_ended)
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_a_broker_in_doubt_lists_what_is_in_flight_and_its_offset_is_read(kafka: Kafka) -> None:
    doubts = Doubts((2,), offsets=True)

    def forwarded() -> Forwarded:
        return asyncio.run(kafka.client.observe((), None, (), doubts)).forwarded

    first = forwarded()
    assert (first.via, first.brokers) == (2, {2})
    assert first.offsets is not None
    end, offsets = first.offsets.end, first.offsets.brokers
    assert first.offsets.complete
    assert set(offsets) == {*kafka.brokers.ids, *kafka.brokers.controllers}
    assert end > 0
    eventually(lambda: (found := forwarded().offsets) is not None and min(found.brokers.values()) >= end)


def test_a_broker_in_doubt_that_is_gone_leaves_the_others(kafka: Kafka) -> None:
    found = asyncio.run(kafka.client.observe((), None, (), Doubts((99,)))).forwarded
    assert found.via in kafka.brokers.ids
    assert found.brokers == {found.via}
