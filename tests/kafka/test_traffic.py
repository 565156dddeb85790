"""What demos of brokers that come and go stand on: such brokers, and clients that miss what is lost."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from localplatform.traffic import Made, Reader, Traffic
from localplatform.workload import Workload
from tests.kafka.harness import Kafka, eventually

pytestmark = pytest.mark.any_version


def test_a_broker_with_an_empty_disk_joins_and_leaves(kafka: Kafka) -> None:
    brokers, topic = kafka.brokers, "on-the-new-one"
    brokers.add(brokers.count)
    try:
        Workload(brokers.bootstrap_servers).create(topic, [[brokers.count, 0]])
        Workload(brokers.bootstrap_servers).delete([topic])
    finally:
        brokers.remove(brokers.count)
    eventually(lambda: set(kafka.observe().brokers) == set(brokers.ids))


def test_records_that_are_lost_are_missed(kafka: Kafka) -> None:
    servers = kafka.brokers.bootstrap_servers
    traffic = Traffic(servers, "traffic")
    with traffic.going_on():
        eventually(lambda: traffic.count > 20)
    assert traffic.lost() == {}
    (place, written), *_ = traffic.acknowledged.items()
    before = TopicPartition(*place, 1)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_records([before])[before].result(20)
    assert traffic.lost() == {place: {min(written)}}
    Workload(servers).delete({topic for topic, _ in traffic.acknowledged})


def test_a_reader_misses_what_it_has_not_read(kafka: Kafka) -> None:
    servers, topic = kafka.brokers.bootstrap_servers, "read-all-the-time"
    Workload(servers).create(topic, [[0, 1], [1, 2]])
    traffic = Traffic(servers, "traffic", made=[Made(topic, 0)], topic_seconds=None)
    reader = Reader(traffic)
    with reader.going_on(), traffic.going_on():
        eventually(lambda: traffic.count > 20)
    assert {of for of, _ in traffic.acknowledged} == {topic}
    assert reader.unread() == {}
    traffic.acknowledged[topic, 0].add(-1)
    assert reader.unread() == {(topic, 0): {-1}}
    Workload(servers).delete([topic])
