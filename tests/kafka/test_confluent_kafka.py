"""What keeps a call on kafka-python: each test expects of confluent-kafka what it cannot do yet.

When a release can do it, the test passes, which `strict` makes a failure: then that call moves to confluent-kafka.
docs/built/writers.md has the same reasons, under "Two client libraries". The issues are upstream's.
"""

import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.kafka.harness import Kafka, eventually

pytestmark = pytest.mark.any_version

SECONDS, PATIENCE = 2.0, 20.0
"""For a call that fails, and for one that does not."""
RATE = "leader.replication.throttled.rate"


def missing(why: str, raises: type[Exception] | tuple[type[Exception], ...] = AssertionError) -> pytest.MarkDecorator:
    """What confluent-kafka cannot do, and what says so."""
    return pytest.mark.xfail(strict=True, raises=raises, reason=why)


@pytest.fixture
def admin(kafka: Kafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.brokers.bootstrap_servers, "log_level": 0})


@missing(
    "confluent-kafka-go#585: neither AlterPartitionReassignments nor its list",
    AssertionError,
)
def test_reassignments_can_be_made_and_listed(admin: AdminClient) -> None:
    assert len([name for name in dir(admin) if "reassign" in name]) >= 2


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="librdkafka#5192, confluent-kafka-python#1179: no DescribeLogDirs"
)
def test_log_directories_can_be_described(admin: AdminClient) -> None:
    assert [name for name in dir(admin) if "log_dirs" in name]


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="librdkafka has no AlterReplicaLogDirs (KIP-113); no issue is filed"
)
def test_replicas_can_be_moved_between_log_directories(admin: AdminClient) -> None:
    assert [name for name in dir(admin) if "log_dirs" in name and "alter" in name]


@missing("KIP-1073 is not in librdkafka; no issue is filed", TypeError)
def test_fenced_brokers_are_described(kafka: Kafka, admin: AdminClient) -> None:
    described = admin.describe_cluster(include_fenced_brokers=True).result(PATIENCE)
    assert {node.id for node in described.nodes} == set(kafka.brokers.ids)


@missing("librdkafka skips OfflineReplicas; no issue is filed", AttributeError)
def test_offline_replicas_are_described(kafka: Kafka, admin: AdminClient) -> None:
    name = kafka.topic([0, 1])
    described = admin.describe_topics(TopicCollection([name]))[name].result(PATIENCE)
    assert described.partitions[0].offline_replicas == []


@missing(
    "confluent-kafka-python#1818 left a comma out of the names of its arguments; no issue is filed",
    (SystemError, TypeError),
)
def test_an_election_takes_a_timeout(kafka: Kafka, admin: AdminClient) -> None:
    partition = LibrdkafkaPartition(kafka.topic([0, 1]), 0)
    met = admin.elect_leaders(ElectionType.PREFERRED, [partition], request_timeout=PATIENCE).result(PATIENCE)
    assert met[partition].code() == KafkaError.ELECTION_NOT_NEEDED


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="librdkafka#5033: describes all configurations of a resource, never some"
)
def test_one_configuration_can_be_described(kafka: Kafka, admin: AdminClient) -> None:
    wanted = ConfigResource(ResourceType.TOPIC, kafka.topic([0]), set_config={"min.insync.replicas": ""})
    described = admin.describe_configs([wanted])[wanted].result(PATIENCE)
    assert described.keys() == {"min.insync.replicas"}


@missing(
    "librdkafka waits for the broker that metadata named as controller, dead or alive; no issue is filed",
    KafkaException,
)
def test_configurations_are_described_while_a_broker_dies(kafka: Kafka, admin: AdminClient) -> None:
    topic = ConfigResource(ResourceType.TOPIC, kafka.topic([0]))
    kafka.brokers.kill(2)
    try:
        for _ in range(40):  # in KRaft metadata names any broker as the controller, another one each time
            admin.describe_cluster(request_timeout=SECONDS).result(PATIENCE)
            admin.describe_configs([topic], request_timeout=SECONDS)[topic].result(PATIENCE)
    finally:
        kafka.brokers.restart(2)
        eventually(lambda: not kafka.observe().brokers[2].fenced)


@missing("librdkafka has one code for both; no issue is filed")
def test_a_change_not_sent_is_told_from_one_not_answered(kafka: Kafka, admin: AdminClient) -> None:
    """The first has not happened, and the second may have."""
    kept = [ConfigEntry(RATE, "", incremental_operation=AlterConfigOpType.DELETE)]

    def code(broker: int) -> int:
        rate = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=kept)
        with pytest.raises(KafkaException) as raised:
            admin.incremental_alter_configs([rate], request_timeout=SECONDS)[rate].result(PATIENCE)
        return int(raised.value.args[0].code())

    admin.describe_cluster().result(PATIENCE)  # else it waits for a broker that it does not know yet
    broker = ConfigResource(ResourceType.BROKER, "1")
    admin.describe_configs([broker])[broker].result(PATIENCE)
    with kafka.brokers.frozen(1):
        not_answered = code(1)
    eventually(lambda: not kafka.observe().brokers[1].fenced)
    kafka.brokers.kill(3)
    try:
        not_sent = code(3)
    finally:
        kafka.brokers.restart(3)
        eventually(lambda: not kafka.observe().brokers[3].fenced)
    assert not_sent != not_answered
