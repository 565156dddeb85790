"""What we use of kafka-python below its public client: these fail when a new version moves it."""

import inspect
import threading

import pytest
from kafka.cluster import ClusterMetadata
from kafka.errors import KafkaError
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, DescribeClusterRequest
from kafka.protocol.broker_version_data import BrokerVersionData

from reassign.kafka.connection import Connection
from reassign.kafka.wire import Wire


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (KafkaConnectionManager.get_connection, {"node_id", "timeout_ms", "refresh_metadata_on_err"}),
        (KafkaConnectionManager.wait_for, {"future", "timeout_ms"}),
        (KafkaConnectionManager.run, {"coro", "args"}),
        (KafkaConnection.close, {"error"}),
        (KafkaConnectionManager.connection_delay, {"node_id"}),
        (ClusterMetadata.request_update, set()),
        (ClusterMetadata.add_coordinator, {"response", "key_type", "key"}),
        (NetworkSelector.start, set()),
        (NetworkSelector.close, set()),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_a_name_that_we_use_is_there(method: object, parameters: set[str]) -> None:
    assert callable(method)
    assert parameters <= set(inspect.signature(method).parameters)


def test_a_guarded_alter_is_never_sent_in_the_version_without_a_guard() -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False, topics=[], min_version=1)
    with_guard = BrokerVersionData(api_versions={request.API_KEY: (0, 1)})
    without = BrokerVersionData(api_versions={request.API_KEY: (0, 0)})
    assert with_guard.api_version(request) == 1
    with pytest.raises(KafkaError):
        without.api_version(request)


def test_fenced_brokers_can_be_asked_for() -> None:
    assert DescribeClusterRequest(include_fenced_brokers=True).include_fenced_brokers


def test_a_connection_without_a_broker_fails_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    wire = Wire(Connection("127.0.0.1:1"))
    with pytest.raises(KafkaError):
        wire.open(seconds=2)
    wire.close()
    assert set(threading.enumerate()) <= before
