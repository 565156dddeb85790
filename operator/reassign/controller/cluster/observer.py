"""Observe: keeps the connection to a cluster's brokers, and reads from it all that a tick is decided by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reassign.api.kafka_cluster import Execution, KafkaCluster, KafkaClusterSpec, Pacing, PauseWhen
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.checks.pause import Shortages, our_own, pause_problem, shortages, waits_to_start
from reassign.core.claim import ClaimState
from reassign.core.cluster import check_identity, permission_of
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.configs.desired import log_dir_moves_of
from reassign.core.configs.stage import ConfigRead, readable
from reassign.core.model.configs import ConfigResource
from reassign.core.model.forwarding import Doubts
from reassign.core.model.log_dir_reports import remembered, sizes
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import LogDirs, Snapshot, Topic, TopicPartition, cordoned
from reassign.errors import MissingReferenceError
from reassign.inspect.connect import connection_of, correct_secret
from reassign.kafka.claim import Membership
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import KubeClient

SIZES_SECONDS = 2.0
SURVEY_SECONDS = 15.0
CONNECT_SECONDS = 8.0


class Paused(NamedTuple):
    """Why nothing new starts, by spec.pauseWhen."""

    everything: Problem | None = None
    of_plans: Mapping[str, Problem | None] = {}
    """The same for the waves of plans that evacuate lost brokers, by the uid of the plan."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one observation read, between two moments of the monotonic clock."""

    snapshot: Snapshot
    began: float
    ended: float
    reported: Collection[int]
    """The brokers that reported their log directories."""
    configs: ConfigRead = field(default_factory=ConfigRead)
    paused: Paused = field(default_factory=Paused)
    short: Mapping[str, Topic] | None = None
    """All partitions with too few replicas in sync, where all were read just now."""
    claim: ClaimState | None = None
    """What is known of other installations on the same cluster."""

    def remembered_by(self, recent: Recent) -> Recent:
        return recent.observe(
            self.began, self.ended, self.snapshot.reassignments.keys(), self.reported, self.snapshot.forwarded
        )


@dataclass(slots=True)
class Survey:
    """Reads all partitions of a cluster for pauseWhen and limits.pacing, at a slow pace, and only while something
    waits to start. Between two reads the last one counts for pauseWhen, and so does what kept it from being read."""

    _at: float = float("-inf")
    _asked: tuple[PauseWhen, Pacing] | None = None
    _short: Shortages = field(default_factory=dict)
    _problem: Problem | None = None

    async def read(
        self,
        client: KafkaClient,
        cluster: KafkaCluster,
        resources: Sequence[Resource],
        snapshot: Snapshot,
        lost: Mapping[str, frozenset[int]],
        explain: Callable[[Exception], Problem],
    ) -> tuple[Paused, Mapping[str, Topic] | None]:
        """Return what pauses, and all partitions that are short, where they were read just now.

        `lost` are the lost brokers that plans evacuate, by the uid of the plan.
        """
        when = cluster.spec.pause_when
        asked = when, cluster.spec.limits.pacing
        if asked == (PauseWhen.NEVER, Pacing.FIXED) or not waits_to_start(resources):
            return Paused(), None
        ours, topics = our_own(resources, permission_of(cluster)), None
        if asked != self._asked or time.monotonic() - self._at >= SURVEY_SECONDS:
            try:
                topics = await client.observe_shortages()
                # what our own move has repaired since would count until the next survey
                short = shortages(when, topics, snapshot.reassignments)
                self._short = {tp: lacking for tp, lacking in short.items() if tp not in ours}
                self._problem = None
            except Exception as error:
                self._problem, topics = explain(error), None
            self._asked, self._at = asked, time.monotonic()
        if self._problem:
            return Paused(self._problem), topics
        of_plans = {uid: pause_problem(when, self._short, ours, brokers) for uid, brokers in lost.items()}
        return Paused(pause_problem(when, self._short, ours), of_plans), topics


@dataclass(slots=True)
class Observer:
    """The connection to one cluster's brokers, and what was read from it that the next observation needs."""

    kube: KubeClient
    before_write: Callable[[], None]
    installation: str = ""
    client: KafkaClient | None = None
    connection: Connection | None = None
    _connected_to: tuple[str, KafkaClusterSpec] | None = None
    _survey: Survey = field(default_factory=Survey)
    _log_dirs: LogDirs = field(default_factory=dict)
    _unread_log_dirs: Mapping[int, Problem] = field(default_factory=dict)
    _sized_at: float = 0.0
    _sized: frozenset[tuple[str, int]] = frozenset()
    _listed_topics: frozenset[str] = frozenset()
    _membership: Membership | None = None

    async def observe(
        self,
        cluster: KafkaCluster,
        pinned: str | None,
        resources: Sequence[Resource],
        throttle: RecordedConfigs | None,
        cordons: Set[int],
        doubts: Doubts,
    ) -> Observation:
        """Read what is in flight, metadata, and log directories when they are due.

        `pinned` is the recorded id of the Kafka cluster, `throttle` the record of throttles and cordons. `cordons` are
        the brokers that are to be cordoned, and `doubts` what the observation is to settle.

        Raises whatever keeps the cluster from being seen; then the connection is made anew at the next observation.
        """
        async with self._disconnecting():
            client = await self._connected(cluster)
            began = time.monotonic()
            snapshot = await self._snapshot(client, throttle, resources, cordons, doubts)
            check_identity(pinned, snapshot.cluster_id)
            reported = tuple(snapshot.log_dirs)
            snapshot = replace(
                snapshot, sizes=sizes(self._log_dirs), log_dirs=self._log_dirs, unread_log_dirs=self._unread_log_dirs
            )
            return Observation(snapshot, began, time.monotonic(), reported)

    async def complete(
        self,
        observed: Observation,
        cluster: KafkaCluster,
        resources: Sequence[Resource],
        reads: Collection[ConfigResource],
        throttle: RecordedConfigs | None,
        lost: Mapping[str, frozenset[int]],
        explain: Callable[[Exception], Problem],
    ) -> Observation:
        """Read these configurations, keep the claim, and read all partitions when that is due.

        `lost` are the lost brokers that plans evacuate, by the uid of the plan.

        Each is an attempt of its own. What fails is a problem in the observation: it keeps moves from beginning, and no
        undo.
        """
        client, snapshot = self.client, observed.snapshot
        assert client is not None
        wanted = readable(throttle, reads, snapshot.brokers)
        read_at = time.monotonic()
        try:
            configs = ConfigRead(read_at, await client.configs(sorted(wanted)) if wanted else {})
        except Exception as error:
            configs = ConfigRead(read_at, dict.fromkeys(wanted, explain(error)))
        observed = replace(observed, configs=configs)
        try:
            observed = replace(observed, claim=self._claim(client, cluster.metadata.uid, snapshot.cluster_id))
            if cluster.spec.execution is not Execution.RUN:
                return observed
            paused, short = await self._survey.read(client, cluster, resources, snapshot, lost, explain)
            return replace(observed, paused=paused, short=short)
        except Exception as error:
            return replace(observed, paused=Paused(explain(error)))

    async def has_ended(self, moves: Set[TopicPartition]) -> bool:
        """Whether any of these moves has ended since the last observation, as far as that is known."""
        with suppress(Exception):  # the next observation says what is wrong
            return self.client is not None and await self.client.has_ended(moves)
        return False

    @asynccontextmanager
    async def _disconnecting(self) -> AsyncIterator[None]:
        try:
            yield
        except Exception:
            await self.disconnect()
            raise

    async def disconnect(self) -> None:
        client, self.client = self.client, None
        if client:
            await client.close()

    def _claim(self, client: KafkaClient, uid: str, cluster_id: str) -> ClaimState | None:
        """Keep the claim, and return what is known of it."""
        if not self.installation:
            return None
        kept = self._membership
        if kept is None or (kept.kafka_cluster, kept.cluster_id) != (uid, cluster_id):
            if kept:
                kept.stop()
            kept = self._membership = Membership(self.installation, uid, cluster_id, self.before_write)
        client.keep(kept)
        return kept.state.by(time.monotonic())

    async def close(self) -> None:
        """End the connection. The claim stays for the process that comes next."""
        if self._membership:
            self._membership.stop()
        await self.disconnect()

    async def give_up_claim(self) -> None:
        """Give up the claim of a KafkaCluster that is gone: another installation may serve the cluster at once."""
        if self._membership:
            await asyncio.to_thread(self._membership.leave)

    async def _snapshot(
        self,
        client: KafkaClient,
        throttle: RecordedConfigs | None,
        resources: Sequence[Resource],
        cordons: Set[int],
        doubts: Doubts,
    ) -> Snapshot:
        between_dirs = {tp for tps in log_dir_moves_of(throttle).values() for tp in tps}
        topics = {tp.topic for r in resources for tp in r.named} | {tp.topic for tp in between_dirs}
        unsettled = {(r.uid, r.generation): r for r in resources if not r.settled}
        new = not unsettled.keys() <= self._sized
        sizes_due = new or time.monotonic() - self._sized_at >= SIZES_SECONDS
        if not sizes_due:
            unsettled = {}
        sized = {tp for r in unsettled.values() for tp in r.named} | (between_dirs if sizes_due else set())
        destinations = {broker for r in unsettled.values() for replicas in r.wanted.values() for broker in replicas}
        if sizes_due:
            destinations |= cordons | recorded_cordons(throttle) | self._cordoned
        snapshot = await client.observe(
            topics | self._listed_topics, sized if sized or destinations else None, destinations, doubts
        )
        self._listed_topics = frozenset(tp.topic for tp in snapshot.reassignments)
        if snapshot.sizes is not None:
            self._sized_at, self._sized = time.monotonic(), frozenset(unsettled)
            self._log_dirs = remembered(self._log_dirs, snapshot.log_dirs, snapshot.brokers)
            self._unread_log_dirs = snapshot.unread_log_dirs
        return snapshot

    @property
    def _cordoned(self) -> set[int]:
        """The brokers that last reported that they are cordoned, by any client: they are asked until they are not."""
        return {broker for broker, directories in self._log_dirs.items() if cordoned(directories)}

    async def _connected(self, cluster: KafkaCluster) -> KafkaClient:
        wanted = (cluster.metadata.uid, cluster.spec)
        if self.client and self.connection and self._connected_to == wanted:
            await correct_secret(self.connection, cluster, self.kube)
            return self.client
        connection = await self._connection_of(cluster)
        if self.client is None or connection != self.connection:
            await self.disconnect()
            self.client = await KafkaClient.connect(connection, timeout=CONNECT_SECONDS, before_write=self.before_write)
        self.connection, self._connected_to = connection, wanted
        return self.client

    async def _connection_of(self, cluster: KafkaCluster) -> Connection:
        """Return how to connect. Where moves are undone and Secrets are gone with their namespace, use the last ones.

        An unchanged connection is the same object: it holds a token that may be good for long.
        """
        try:
            connection = await connection_of(cluster, self.kube)
            return self.connection if connection == self.connection else connection
        except MissingReferenceError:
            same = self._connected_to is not None and self._connected_to[0] == cluster.metadata.uid
            undoes = cluster.metadata.deletion_timestamp or cluster.spec.execution is not Execution.RUN
            if undoes and same and self.connection:
                return self.connection
            raise
