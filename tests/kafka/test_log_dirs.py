"""Replicas in the log directories of their brokers (KIP-113)."""

from reassign.core.model import APPLIED, Alter, AlterLogDirs, Result, TopicPartition
from reassign.errors import Reason
from tests.kafka.harness import MEGABYTE, Kafka, eventually


def directory(kafka: Kafka, tp: TopicPartition, broker: int) -> str:
    """Where a broker has its log; empty when it has none."""
    directories = kafka.observe(tp.topic, sizes_of=[tp], destinations=[broker]).log_dirs[broker]
    return next((path for path, found in directories.items() if tp in found.logs), "")


def copied(kafka: Kafka, tp: TopicPartition, broker: int) -> dict[str, int]:
    """The bytes of its future log, by the directory that it is in."""
    directories = kafka.observe(tp.topic, sizes_of=[tp]).log_dirs[broker]
    return {path: found.futures[tp] for path, found in directories.items() if tp in found.futures}


def other_directory(kafka: Kafka, tp: TopicPartition, broker: int) -> str:
    return next(str(p) for p in kafka.brokers.log_dirs(broker) if str(p) != directory(kafka, tp, broker))


def test_a_replica_is_copied_to_the_other_directory_of_its_broker(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1], megabytes=2), 0)
    other = other_directory(kafka, tp, 0)
    assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]
    eventually(lambda: directory(kafka, tp, 0) == other and copied(kafka, tp, 0) == {})
    assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]  # safe to repeat
    assert copied(kafka, tp, 0) == {}


def test_a_replica_that_is_not_there_yet_gets_into_its_directory(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [0, 1], megabytes=1)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    a, b = map(str, kafka.brokers.log_dirs(2))
    steps = AlterLogDirs(first, ((2, b),)), Alter(first, (2, 1)), AlterLogDirs(second, ((2, a),)), Alter(second, (2, 1))
    assert kafka.perform(*steps) == [APPLIED] * 4
    eventually(lambda: kafka.settled(first, [2, 1]) and kafka.settled(second, [2, 1]))
    assert (directory(kafka, first, 2), directory(kafka, second, 2)) == (b, a)


def test_a_copy_under_way_shows_its_bytes_and_ends_when_the_directory_is_sent_that_the_replica_is_in(
    kafka: Kafka,
) -> None:
    name = kafka.topic([0, 1], megabytes=8)
    tp = TopicPartition(name, 0)
    here, other = directory(kafka, tp, 0), other_directory(kafka, tp, 0)
    with kafka.held(name):
        assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]
        eventually(lambda: 0 < copied(kafka, tp, 0).get(other, 0) < 8 * MEGABYTE)
        assert directory(kafka, tp, 0) == here
        assert kafka.perform(AlterLogDirs(tp, ((0, here),))) == [APPLIED]
        eventually(lambda: copied(kafka, tp, 0) == {})
    assert directory(kafka, tp, 0) == here


def test_a_directory_that_a_broker_does_not_have_is_refused(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    [outcome] = kafka.perform(AlterLogDirs(tp, ((0, "/nowhere"),)))
    assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.UNKNOWN_LOG_DIR)


def test_of_several_brokers_one_that_is_down_does_not_keep_the_others_from_their_directory(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1], megabytes=1), 0)
    other, unused = other_directory(kafka, tp, 1), other_directory(kafka, tp, 0)
    kafka.brokers.kill(0)
    try:
        [outcome] = kafka.perform(AlterLogDirs(tp, ((0, unused), (1, other))))
        assert outcome.result is Result.UNKNOWN
        eventually(lambda: directory(kafka, tp, 1) == other)
    finally:
        kafka.brokers.restart(0)
    eventually(lambda: kafka.settled(tp, [0, 1]))
