"""The requests of this product, as kafka-python encodes them: one function each, from a line to plain values.

librdkafka has none of AlterPartitionReassignments, ListPartitionReassignments, DescribeLogDirs and AlterReplicaLogDirs,
and no fenced brokers in DescribeCluster. docs/built/writers.md says why the others come this way too, and
tests/kafka/test_confluent_kafka.py fails when a release of confluent-kafka ends one of the reasons.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from kafka import errors
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.api_key import ApiKey
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import MetadataRequest

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.forwarding import MetadataOffsets
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, LogDir, Partition, Reassignment, TopicPartition
from reassign.errors import Reason
from reassign.kafka import schemas
from reassign.kafka.errors import GONE, TOPIC_AUTHORIZATION_FAILED, name_of
from reassign.kafka.wire import READ_SECONDS, WRITE_SECONDS, Wire

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
METADATA_TOPIC = "__cluster_metadata"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
FACTORS = {
    "default.replication.factor": None,
    "offsets.topic.replication.factor": "__consumer_offsets",
    "transaction.state.log.replication.factor": "__transaction_state",
}
"""Configurations with the replication factor of topics that are still to be made; of one topic by its name, or any."""
LISTS_FENCED = 2
"""Version of DescribeCluster (KIP-1073, Kafka 4.0)."""
SAYS_CORDONED = 5
"""Version of DescribeLogDirs (KIP-1066, Kafka 4.3)."""

Answers = dict[TopicPartition, tuple[int, str | None]]
"""Code and message of each partition that was answered for."""


class UnregisterBrokerRequest(ApiMessage, load_json=schemas):
    """KIP-631: takes a broker's registration away."""


class UnregisterBrokerResponse(ApiMessage, load_json=schemas):
    """What the controller answers to it."""


def guard(wire: Wire) -> ReplicationFactorGuard:
    """Return NATIVE when the brokers take AlterPartitionReassignments v1 (KIP-860, Kafka 4.1), else EMULATED."""
    newest = wire.newest_version(ApiKey.AlterPartitionReassignments)
    return ReplicationFactorGuard.NATIVE if newest >= 1 else ReplicationFactorGuard.EMULATED


def forwards(wire: Wire, broker: int) -> None:
    """Wait until a broker has forwarded a request to the controller (ListPartitionReassignments of no topic)."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(READ_SECONDS * 1000), topics=[])
    answer = wire.read_from(broker, request, READ_SECONDS)
    _raise_for(answer.error_code, answer.error_message)


def all_reassignments(wire: Wire, first: Sequence[int]) -> tuple[dict[TopicPartition, Reassignment], int | None]:
    """Return all reassignments in flight, and the broker that listed them: the first of these that answers."""
    answer, broker = wire.read_by(lambda: _list_request(()), first)
    return _listed(answer), broker


def reassignments(
    wire: Wire, only: Collection[TopicPartition], broker: int | None = None
) -> dict[TopicPartition, Reassignment]:
    """Return the reassignments in flight of these partitions, as this broker lists them, or any (None)."""
    request = partial(_list_request, only)
    return _listed(wire.read(request) if broker is None else wire.read_from(broker, request(), READ_SECONDS))


def _list_request(only: Collection[TopicPartition]) -> Any:
    """Return a ListPartitionReassignments of these partitions, or of all where none is named."""
    listed = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    topics = [listed(name=t, partition_indexes=numbers) for t, numbers in _by_topic(only).items()]
    return ListPartitionReassignmentsRequest(timeout_ms=int(READ_SECONDS * 1000), topics=topics or None)


def _listed(answer: Any) -> dict[TopicPartition, Reassignment]:
    _raise_for(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, p.partition_index): Reassignment(
            tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
        )
        for topic in answer.topics
        for p in topic.partitions
    }


def metadata_offsets(wire: Wire) -> MetadataOffsets:
    """Return the end of the metadata log, and how far each broker has fetched it (DescribeQuorum, KIP-595)."""
    described = _quorum(wire)
    replicas = [*described.current_voters, *described.observers]  # a controller may be a broker, too
    fetched = {replica.replica_id: replica.log_end_offset for replica in replicas}
    return MetadataOffsets(described.high_watermark, fetched, complete=bool(described.observers))


def _quorum(wire: Wire) -> Any:
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    answer = wire.read(lambda: DescribeQuorumRequest(topics=[topic(topic_name=METADATA_TOPIC, partitions=[partition])]))
    _raise_for(answer.error_code, None)
    [described] = answer.topics[0].partitions
    _raise_for(described.error_code, None)
    return described


def voters(wire: Wire) -> frozenset[int]:
    """Return the voters of the controller quorum (DescribeQuorum, KIP-595)."""
    return frozenset(replica.replica_id for replica in _quorum(wire).current_voters)


def default_factors(wire: Wire, broker: int) -> dict[str, int]:
    """Return the replication factors that a broker gives to new topics, by configuration (DescribeConfigs)."""
    described = DescribeConfigsRequest.DescribeConfigsResource
    asked = described(resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=[*FACTORS])
    [result] = wire.read_from(broker, DescribeConfigsRequest(resources=[asked]), READ_SECONDS).results
    _raise_for(result.error_code, result.error_message)
    return {config.name: int(config.value) for config in result.configs if (config.value or "").isdecimal()}


def cluster(wire: Wire) -> tuple[str, dict[int, Broker]]:
    """Return the cluster id and its registered brokers; fenced ones only from Kafka 4.0 (KIP-1073)."""
    answer = wire.read(lambda: DescribeClusterRequest(include_fenced_brokers=True))
    _raise_for(answer.error_code, answer.error_message)
    brokers = (Broker(b.broker_id, b.rack, bool(getattr(b, "is_fenced", False))) for b in answer.brokers)
    return answer.cluster_id, {broker.id: broker for broker in brokers}


def lists_fenced(wire: Wire) -> bool:
    """Whether fenced brokers are among those of `cluster`."""
    return wire.newest_version(ApiKey.DescribeCluster) >= LISTS_FENCED


Topics = dict[str, tuple[str, dict[int, Partition]]]
"""Topic id and partitions, by name."""
Unread = dict[str, Problem]
"""Why topics cannot be read, by name: one of them hides no other."""


class Described(NamedTuple):
    """What a broker's metadata shows of topics."""

    topics: Topics
    unread: Unread
    reader: int | None
    """The broker whose metadata this is."""


def topics(wire: Wire, names: Collection[str] | None, first: int | None = None) -> Described:
    """Return the topics that exist, and why others cannot be read (Metadata), by broker `first`, if it answers.

    None stands for all topics that we may see.
    """
    if names is not None and not names:
        return Described({}, {}, first)
    named = MetadataRequest.MetadataRequestTopic
    wanted = None if names is None else [named(name=n) for n in names]
    order = () if first is None else (first,)
    answer, reader = wire.read_by(lambda: MetadataRequest(topics=wanted, allow_auto_topic_creation=False), order)
    described: Topics = {}
    unread: Unread = {}
    for topic in answer.topics:
        if topic.error_code in GONE:
            continue
        if topic.error_code:
            unread[topic.name] = unread_topic(topic.name, topic.error_code, None)
        else:
            partitions = {
                p.partition_index: Partition(
                    replicas=tuple(p.replica_nodes),
                    isr=frozenset(p.isr_nodes),
                    leader=p.leader_id if p.leader_id >= 0 else None,
                    offline=frozenset(p.offline_replicas),
                )
                for p in topic.partitions
            }
            described[topic.name] = (_topic_id(topic.topic_id), partitions)
    return Described(described, unread, reader)


def min_insync_replicas(wire: Wire, topics: Collection[str]) -> tuple[dict[str, int], Unread]:
    """Return min.insync.replicas by topic, and why those of others cannot be read (DescribeConfigs).

    Topics that are gone are left out.
    """
    described = DescribeConfigsRequest.DescribeConfigsResource
    wanted = [
        described(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[MIN_INSYNC_REPLICAS])
        for topic in topics
    ]
    values: dict[str, int] = {}
    unread: Unread = {}
    for result in wire.read(lambda: DescribeConfigsRequest(resources=wanted)).results:
        topic, code = result.resource_name, result.error_code
        value = next((c.value for c in result.configs if c.name == MIN_INSYNC_REPLICAS), None) or ""
        if code in GONE:
            continue
        if code:
            unread[topic] = unread_topic(topic, code, result.error_message)
        elif value.isdecimal():
            values[topic] = int(value)
        else:
            unread[topic] = unread_topic(topic, code, f"its {MIN_INSYNC_REPLICAS} is {value!r}")
    return values, unread


def unread_topic(topic: str, code: int, message: str | None) -> Problem:
    """Return why a topic cannot be read, by a broker's code and its own message, where it sends one."""
    if code == TOPIC_AUTHORIZATION_FAILED:
        return Problem(
            Reason.NOT_AUTHORIZED,
            f"DESCRIBE and DESCRIBE_CONFIGS on the topic {topic} are not both allowed; "
            "grant them to the operator's user",
        )
    return Problem(
        Reason.REQUEST_FAILED,
        f"the brokers do not describe the topic {topic}: {message or name_of(code)}; they are asked again",
    )


def log_dirs(
    wire: Wire, broker: int, partitions: Collection[TopicPartition] | None, seconds: float
) -> dict[str, LogDir]:
    """Return a broker's directories by path, with the sizes of these partitions, or all (None) (DescribeLogDirs).

    Volumes' sizes come from Kafka 3.3 on (KIP-827), cordons from 4.3 on (KIP-1066).
    """
    described = DescribeLogDirsRequest.DescribableLogDirTopic
    topics = [described(topic=topic, partitions=numbers) for topic, numbers in _by_topic(partitions or ()).items()]
    wanted = None if partitions is None else topics
    request = DescribeLogDirsRequest(topics=wanted)
    answer = wire.read_from(broker, request, seconds)
    _raise_for(answer.error_code or 0, None)  # the field is there since v3
    says_cordoned = (request.API_VERSION or 0) >= SAYS_CORDONED
    return {directory.log_dir: _log_dir(directory, says_cordoned=says_cordoned) for directory in answer.results}


def _log_dir(described: Any, *, says_cordoned: bool) -> LogDir:
    logs: dict[TopicPartition, int] = {}
    futures: dict[TopicPartition, int] = {}
    for topic in described.topics:
        for p in topic.partitions:
            (futures if p.is_future_key else logs)[TopicPartition(topic.name, p.partition_index)] = p.partition_size
    return LogDir(
        online=described.error_code == 0,
        cordoned=bool(described.is_cordoned) if says_cordoned else None,
        total=_known(described.total_bytes),
        usable=_known(described.usable_bytes),
        logs=logs,
        futures=futures,
    )


def _known(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


def alter(
    wire: Wire,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    allow_replication_factor_change: bool,
    before_write: Callable[[], None],
    broker: int | None = None,
) -> Answers:
    """Submit replicas, or None to cancel (AlterPartitionReassignments); return the code and message of each partition.

    Brokers without the native guard cannot refuse a change of the replication factor: IncompatibleBrokerVersion then.
    Raises AnswerLostError when the request may have been carried out; after any other error it was not sent.
    """
    of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics: dict[str, list[Any]] = defaultdict(list)
    for tp, target in targets.items():
        replicas = None if target is None else list(target)
        topics[tp.topic].append(of_topic.ReassignablePartition(partition_index=tp.partition, replicas=replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=int(WRITE_SECONDS * 1000),
        allow_replication_factor_change=allow_replication_factor_change,
        topics=[of_topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        # v0 has no guard and would drop it silently
        min_version=0 if allow_replication_factor_change else 1,
    )
    answer = wire.write(request, before_write, broker)
    if answer.error_code:
        return dict.fromkeys(targets, (answer.error_code, answer.error_message))
    return {
        TopicPartition(topic.name, p.partition_index): (p.error_code, p.error_message)
        for topic in answer.responses
        for p in topic.partitions
    }


def alter_log_dirs(
    wire: Wire, broker: int, paths: Mapping[TopicPartition, str], before_write: Callable[[], None]
) -> Answers:
    """Put the broker's replicas into these directories (AlterReplicaLogDirs); return each code. Errors as `alter`."""
    alterable = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    by_path: dict[str, list[TopicPartition]] = defaultdict(list)
    for tp, path in paths.items():
        by_path[path].append(tp)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            alterable(
                path=path,
                topics=[
                    alterable.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                    for topic, numbers in _by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )
    answer = wire.write(request, before_write, broker)
    return {
        TopicPartition(topic.topic_name, p.partition_index): (p.error_code, None)
        for topic in answer.results
        for p in topic.partitions
    }


def elect(
    wire: Wire, partitions: Collection[TopicPartition], before_write: Callable[[], None], broker: int | None = None
) -> Answers:
    """Elect preferred leaders (KIP-460); return the code and message of each partition. Errors as `alter`."""
    of_topic = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest(
        election_type=0,
        topic_partitions=[of_topic(topic=t, partitions=numbers) for t, numbers in _by_topic(partitions).items()],
        timeout_ms=int(WRITE_SECONDS * 1000),
        min_version=1,
    )
    answer = wire.write(request, before_write, broker)
    if answer.error_code:
        return dict.fromkeys(partitions, (answer.error_code, None))
    return {
        TopicPartition(topic.topic, p.partition_id): (p.error_code, p.error_message)
        for topic in answer.replica_election_results
        for p in topic.partition_result
    }


def unregister(
    wire: Wire, id: int, before_write: Callable[[], None], broker: int | None = None
) -> tuple[int, str | None]:
    """Take a broker's registration away (UnregisterBroker, KIP-631); return the code and message. Errors as `alter`.

    The controller asks nothing: a broker that is up, and one that holds replicas, is unregistered as well, and stays
    out until it starts again. BROKER_ID_NOT_REGISTERED says that it was not registered.
    """
    request = UnregisterBrokerRequest(broker_id=id)  # type: ignore[no-untyped-call]
    answer = wire.write(request, before_write, broker)
    return answer.error_code, answer.error_message


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        numbers[topic].append(number)
    return numbers


def _topic_id(raw: UUID) -> str:
    """Return a topic's id as Kafka writes it: base64 for URLs, without padding."""
    return urlsafe_b64encode(raw.bytes).decode().rstrip("=")


def _raise_for(code: int, message: str | None) -> None:
    if code:
        raise errors.for_code(code)(message or "")
