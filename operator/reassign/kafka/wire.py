"""The line to a cluster, through kafka-python: which broker is asked, for how long, and which one next.

Blocking calls; a thread of the library does the I/O. A request goes to one broker, or to any: in KRaft every broker
forwards what is the controller's. Reads are tried at one broker after another; a write is sent once. Only this package
imports a client of Kafka; import-linter holds that.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakSet

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from reassign.errors import ClusterError, Reason
from reassign.kafka.connection import Connection
from reassign.kafka.errors import INVALID_REQUEST

# What it has to say comes as exceptions too; its debug output would hold credentials.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

CONNECT_SECONDS = 2.0
READ_SECONDS = 3.0
"""For one broker's answer; then the next one is asked."""
WRITE_SECONDS = 5.0
SEARCH_SECONDS = 10.0
"""For finding a broker that answers; then the cluster counts as unreachable."""
OLDEST = (3, 9)
BROKER_RESOURCE = 4
OF_ONE_BROKER = (DescribeLogDirsRequest, AlterReplicaLogDirsRequest)
"""Requests about a broker's own disks, which do not say whose: any broker would answer."""

Node = int | str
"""A broker's id, or kafka-python's name of a bootstrap server."""


class AnswerLostError(Exception):
    """A write was sent, and no answer came: it may have been carried out."""


class Wire:
    """A line to a cluster. Its methods raise errors of kafka-python (`kafka.errors.KafkaError`).

    A refused password stays refused: make a new line.
    """

    def __init__(self, connection: Connection) -> None:
        settings = connection.kafka_python() | {
            "client_id": "kafka-reassign-operator",
            "reconnect_backoff_max_ms": 1000,
            "metadata_max_age_ms": 60_000,
            "receive_message_max_bytes": 100_000_000,
        }
        self._net: Any = NetworkSelector(**settings)
        self._manager: Any = KafkaConnectionManager(self._net, **settings)
        self._last: Node | None = None
        self._identified: WeakSet[Any] = WeakSet()
        """The connections whose other end has confirmed its id."""
        self._opened = False

    def open(self, seconds: float) -> None:
        """Connect to the first bootstrap server that answers; raise the error of the last one where none does."""
        self._net.start()
        self._opened = True
        self._manager.run(self._bootstrap, seconds)

    def close(self) -> None:
        if self._opened:
            self._manager.run(self._manager.close)
        self._net.close()

    def newest_version(self, api: ApiKey) -> int:
        """Return the newest version of a request that the brokers take."""
        newest: int = self._manager.broker_version_data.api_versions[api.value][1]
        return newest

    def read(self, make: Callable[[], Any]) -> Any:
        """Ask one broker after another until one answers; each gets a new request, which fits one version only."""
        answer, _ = self.read_by(make)
        return answer

    def read_by(self, make: Callable[[], Any], first: Sequence[int] = ()) -> tuple[Any, int | None]:
        """Ask as `read` does, these brokers `first`; return also who answered, None for a bootstrap server."""
        answer, node = self._manager.run(self._any, lambda node: self._ask(node, make(), READ_SECONDS), first)
        return answer, node if isinstance(node, int) else None

    def read_from(self, node: Node, request: Any, seconds: float) -> Any:
        """Ask this broker."""
        return self._manager.run(self._ask, node, request, seconds)

    def coordinator(self, group: str) -> Node:
        """Return a group's coordinator, as a node with its own connection: what waits there holds up nothing else."""
        kind = CoordinatorType.GROUP
        answer = self.read(lambda: FindCoordinatorRequest(key_type=kind, key=group, coordinator_keys=[group]))
        answer = answer.coordinators[0] if answer.coordinators else answer
        node: str = self._manager.cluster.add_coordinator(answer, kind, group)
        return node

    def write(self, request: Any, before_write: Callable[[], None], broker: int | None = None) -> Any:
        """Send a request once, to this broker, or else to the first one that can be connected to.

        Raises AnswerLostError when the request may have been carried out; after any other error it was not sent.
        """
        return self._manager.run(self._write, broker, request, before_write)

    async def _bootstrap(self, seconds: float) -> None:
        # the library's own bootstrap hides a wrong password or certificate behind a time-out
        servers = self._bootstrap_servers()
        await self._first(servers, lambda server: self._enter(server, seconds / len(servers)))
        self._manager.cluster.start_refresh_loop()

    async def _enter(self, server: Node, seconds: float) -> None:
        connection = await self._connect(server, seconds)
        data = connection.broker_version_data
        if ApiKey.Metadata.value not in data.api_versions:
            self._manager.broker_version_data = None  # else brokers count as this old
            where = self._manager.cluster.broker_metadata(server)
            raise errors.KafkaConnectionError(f"{where.host}:{where.port} is the address of a controller")
        if ApiKey.DescribeQuorum.value not in data.api_versions:
            raise ClusterError(
                Reason.CLUSTER_NOT_SUPPORTED, "the cluster runs in ZooKeeper mode: migrate it to KRaft first"
            )
        if data.broker_version < OLDEST:
            oldest, actual = (".".join(map(str, version)) for version in (OLDEST, data.broker_version))
            raise ClusterError(Reason.CLUSTER_NOT_SUPPORTED, f"Kafka {oldest} or later is needed, this is {actual}")
        await self._manager.cluster.refresh_metadata(server)

    async def _ask(self, node: Node, request: Any, seconds: float) -> Any:
        connection = await self._connect_for(request, node, min(seconds, CONNECT_SECONDS))
        return await connection.send_request(request, request_timeout_ms=int(seconds * 1000))

    async def _write(self, broker: int | None, request: Any, before_write: Callable[[], None]) -> Any:
        if broker is None:
            connection, _ = await self._any(lambda node: self._connect(node, CONNECT_SECONDS))
        else:
            connection = await self._connect_for(request, broker, CONNECT_SECONDS)
        before_write()
        try:
            return await connection.send_request(request, request_timeout_ms=int(WRITE_SECONDS * 1000))
        except errors.IncompatibleBrokerVersion:
            raise
        except errors.KafkaError as error:
            raise AnswerLostError(str(error) or type(error).__name__) from error

    async def _any(self, attempt: Callable[[Node], Any], first: Sequence[int] = ()) -> tuple[Any, Node]:
        """Return the first result that an attempt at a broker has, and the broker.

        Brokers are tried in this order: those that are named `first`, the one that answered last, all others at random,
        the bootstrap servers.
        """
        known: list[Node] = [broker.node_id for broker in self._manager.cluster.brokers()]
        random.shuffle(known)
        places: dict[Node, int] = {node: place for place, node in enumerate(first)}
        known.sort(
            key=lambda node: (
                places.get(node, len(places)),
                node != self._last,
                self._manager.connection_delay(node) > 0,
            )
        )

        async def remember(node: Node) -> tuple[Any, Node]:
            result = await attempt(node)
            self._last = node
            return result, node

        result: tuple[Any, Node] = await self._first([*known, *self._bootstrap_servers()], remember)
        return result

    async def _first(self, nodes: Iterable[Node], attempt: Callable[[Node], Any]) -> Any:
        """Return the first result that an attempt at a node has, or raise the error of the last one tried."""
        last: Exception = errors.NodeNotReadyError("no broker is known")
        deadline = time.monotonic() + SEARCH_SECONDS
        for node in nodes:
            if time.monotonic() > deadline:
                break
            try:
                return await attempt(node)
            except (errors.SaslAuthenticationFailedError, errors.IncompatibleBrokerVersion):
                raise  # no other broker would say anything else
            except errors.KafkaError as error:
                last = error
        raise last

    async def _connect_for(self, request: Any, node: Node, seconds: float) -> Any:
        """Connect to a node; where a request names no broker and only one can answer, see that it is that one."""
        connection = await self._connect(node, seconds)
        if isinstance(request, OF_ONE_BROKER) and connection not in self._identified:
            await self._identify(connection, node, seconds)
            self._identified.add(connection)
        return connection

    async def _identify(self, connection: Any, broker: Node, seconds: float) -> None:
        """See that the other end is this broker: another one refuses to describe its configurations.

        Where DescribeConfigs is not permitted, that is not known, and the request goes out as before.

        Another broker can have its address by now, such as a pod's. Then the connection is closed, and its address is
        asked for again.
        """
        named = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=["broker.id"]
        )
        request = DescribeConfigsRequest(resources=[named])
        answer = await connection.send_request(request, request_timeout_ms=int(seconds * 1000))
        if any(result.error_code == INVALID_REQUEST for result in answer.results):
            where = self._manager.cluster.broker_metadata(broker)
            error = errors.KafkaConnectionError(f"{where.host}:{where.port} is the address of another broker")
            connection.close(error)
            raise error

    async def _connect(self, node: Node, seconds: float) -> Any:
        # a bootstrap server that fails would start the library's own bootstrap, which goes on for ever
        try:
            connection = self._manager.get_connection(
                node, timeout_ms=int(seconds * 1000), refresh_metadata_on_err=isinstance(node, int)
            )
        except errors.UnknownBrokerIdError:  # it has joined since the library last refreshed
            self._manager.cluster.request_update()
            raise
        try:
            await self._manager.wait_for(connection.init_future, int(seconds * 1000))
        except UnicodeError as error:  # Python cannot even ask DNS for it
            host = self._manager.cluster.broker_metadata(node).host
            raise errors.KafkaConnectionError(f"{host} is no host name") from error
        except (errors.KafkaConnectionError, errors.KafkaTimeoutError) as error:
            tried = self._manager.cluster.broker_metadata(node)
            detail = error.args[0] if error.args else "no answer in time"
            raise type(error)(f"{tried.host}:{tried.port}: {detail}") from error
        return connection

    def _bootstrap_servers(self) -> list[Node]:
        return [server.node_id for server in self._manager.cluster.bootstrap_brokers()]
