"""The Kafka adapter: look at a cluster, and carry out steps on it.

The client library behind it blocks; it runs in a few threads of the adapter's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Any, TypeVar

from kafka.errors import IncompatibleBrokerVersion, KafkaError

from reassign.core.model.configs import Change, ConfigResource, ConfigResourceType
from reassign.core.model.log_dir_reports import sizes
from reassign.core.model.snapshot import (
    LogDir,
    LogDirs,
    Reassignment,
    ReplicationFactorGuard,
    Snapshot,
    Topic,
    TopicPartition,
)
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.errors import ClusterError, Reason
from reassign.kafka import requests, throttles
from reassign.kafka.configs import MinInsyncReplicas
from reassign.kafka.connection import Connection
from reassign.kafka.credentials import refused_credentials, refused_token
from reassign.kafka.errors import cluster_error, lost, outcome
from reassign.kafka.tokens import OAuth
from reassign.kafka.wire import AnswerLostError, Wire

BATCH = 200
"""Partitions in one request: the controller takes no more than 10,000 records of one."""
SIZES_SECONDS = 2.0
"""For one broker's log directories: a slow broker delays a look by no more; its sizes are missing then."""
EVERYTHING_SECONDS, TOGETHER_SECONDS = 20.0, 60.0
"""For all that is in one broker's log directories, and in those of all, when the whole cluster is looked at."""
REFUSAL_SECONDS = 2.0
"""For finding out whether a cluster that does not answer refuses our credentials."""
THREADS = 4  # the brokers' log directories are asked in parallel; kafka-python takes five requests per broker

NOT_ANSWERED = Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "the brokers did not answer for it")

T = TypeVar("T")


class KafkaClient:
    """One cluster. Made with `connect`; one task looks and acts at a time."""

    def __init__(
        self,
        connection: Connection,
        wire: Wire,
        executor: ThreadPoolExecutor,
        before_write: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._wire = wire
        self._min_insync_replicas = MinInsyncReplicas(self._ask_min_insync_replicas)
        self._executor = executor
        self._before_write = before_write

    @classmethod
    async def connect(
        cls,
        connection: Connection,
        *,
        timeout: float = 10.0,  # noqa: ASYNC109  (calls in a thread cannot be cancelled)
        before_write: Callable[[], None] = lambda: None,
    ) -> KafkaClient:
        """Connect within `timeout` seconds, and see that the cluster is one that we can serve.

        `before_write` is called right before each request that changes something, in any thread; when it raises,
        that request is not sent, and `perform` raises the same.

        A ClusterError says why not: ClusterUnreachable, AuthenticationFailed, InvalidSecret, NotAuthorized,
        ClusterNotSupported, or what `OAuth.renew` raises. Refused credentials stay refused: connect again, do not
        keep the client.
        """
        await connection.renew_token()
        executor = ThreadPoolExecutor(THREADS, thread_name_prefix="kafka")
        try:
            loop = asyncio.get_running_loop()
            wire = await loop.run_in_executor(executor, _open, connection, timeout)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(connection, wire, executor, before_write)

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        await self._call(self._wire.close)
        self._executor.shutdown(wait=False)

    @property
    def guard(self) -> ReplicationFactorGuard:
        return requests.guard(self._wire)

    async def observe(
        self,
        topics: Collection[str],
        sizes_of: Collection[TopicPartition] | None = None,
        destinations: Collection[int] = (),
    ) -> Snapshot:
        """Look at the cluster: everything in flight, all brokers, these topics, the sizes of these partitions.

        Topics that do not exist are left out; min.insync.replicas may be 30 s old (`configs.CONFIG_SECONDS`).
        With sizes come those of all that is in flight, and the log directories of every broker that holds or gets
        any of it, or is one of the `destinations`; those of a broker that does not answer in time are left out.
        A ClusterError when the cluster does not answer.
        """
        return await self._look(topics, sizes_of, destinations)

    async def observe_everything(self) -> Snapshot:
        """Look at the whole cluster: all topics that we may see, all sizes, the log directories of all brokers.

        Those of a broker that does not answer within EVERYTHING_SECONDS, or not before all of them have taken
        TOGETHER_SECONDS, are left out. A ClusterError when the cluster does not answer.
        """
        return await self._look(None, None, ())

    async def _look(
        self, topics: Collection[str] | None, sizes_of: Collection[TopicPartition] | None, destinations: Collection[int]
    ) -> Snapshot:
        await self._connection.renew_token()
        try:
            return await self._see(topics, sizes_of, destinations)
        except ClusterError as error:
            raise await self._call(_explained, error, self._connection) from error

    async def _see(
        self, topics: Collection[str] | None, sizes_of: Collection[TopicPartition] | None, destinations: Collection[int]
    ) -> Snapshot:
        # The list first: it is the truth, and what is read after it can only be newer.
        reassignments = await self._call(requests.reassignments, self._wire)
        (cluster_id, brokers), (found, unauthorized) = await asyncio.gather(
            self._call(requests.cluster, self._wire), self._call(self._topics, topics)
        )
        alive = {id for id, broker in brokers.items() if not broker.fenced}
        log_dirs: LogDirs = {}
        if topics is None:
            log_dirs = await self._log_dirs(dict.fromkeys(alive), EVERYTHING_SECONDS, TOGETHER_SECONDS)
        elif sizes_of is not None:
            asked = _holders({*sizes_of, *reassignments}, found, reassignments)
            for broker in destinations:
                asked.setdefault(broker, [])
            log_dirs = await self._log_dirs({b: asked[b] for b in asked if b in alive}, SIZES_SECONDS)
        return Snapshot(
            cluster_id=cluster_id,
            guard=self.guard,
            brokers=brokers,
            topics=found,
            reassignments=reassignments,
            unauthorized_topics=frozenset(unauthorized),
            sizes=None if topics is not None and sizes_of is None else sizes(log_dirs),
            log_dirs=log_dirs,
        )

    async def observe_shortages(self) -> dict[str, Topic]:
        """Of all topics, internal ones too, the partitions without a leader, or with a replica that is not in sync.

        Replicas being added count as replicas here. One request for all metadata, and for those topics alone their
        min.insync.replicas, which may be 30 s old. Topics that we may not see are left out.
        """
        return await self._call(self._shortages)

    def _shortages(self) -> dict[str, Topic]:
        found, _ = requests.topics(self._wire, None)
        short = {
            name: (id, {n: p for n, p in partitions.items() if p.leader is None or not p.isr >= set(p.replicas)})
            for name, (id, partitions) in found.items()
        }
        short = {name: (id, partitions) for name, (id, partitions) in short.items() if partitions}
        minima, _ = self._min_insync_replicas.of({name: id for name, (id, _) in short.items()})
        return {name: Topic(id, minima[name], ps) for name, (id, ps) in short.items() if name in minima}

    def _ask_min_insync_replicas(self, topics: Collection[str]) -> tuple[dict[str, int], set[str]]:
        """In batches: a broker that is down can leave every topic of a cluster short."""
        found: dict[str, int] = {}
        withheld: set[str] = set()
        names = list(topics)
        for start in range(0, len(names), BATCH):
            values, unseen = requests.min_insync_replicas(self._wire, names[start : start + BATCH])
            found, withheld = found | values, withheld | unseen
        return found, withheld

    async def perform(self, steps: Sequence[Step]) -> dict[Step, Outcome]:
        """Carry the steps out in their order, in batches, and say what each one met.

        Cancels come first: no slow broker holds them up. Then log directories: brokers have to know them beforehand.

        What fails never keeps the others from being tried; UNKNOWN means that it may have been carried out.
        """
        outcomes: dict[Step, Outcome] = {}
        for batch in batches(sorted(steps, key=_turn)):
            outcomes |= await self._call(self._carry_out, batch)
        return outcomes

    def _carry_out(self, batch: Sequence[Any]) -> dict[Step, Outcome]:
        if isinstance(batch[0], Elect):
            return self._elect(batch)
        return self._alter_log_dirs(batch) if isinstance(batch[0], AlterLogDirs) else self._alter(batch)

    async def configs(
        self,
        resources: Collection[ConfigResource],
        names: Mapping[ConfigResourceType, Sequence[str]] = throttles.THROTTLES,
    ) -> throttles.Read:
        """The configurations of these names of brokers and topics; a problem of one hides no other."""
        answers = [self._call(throttles.read, self._wire, batch, names) for batch in throttles.batches(resources)]
        return {resource: read for answer in await asyncio.gather(*answers) for resource, read in answer.items()}

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        """Change throttle configurations, of no configuration two, and say what each change met."""
        by_resource = throttles.by_resource(changes)
        batches = [[c for resource in batch for c in by_resource[resource]] for batch in throttles.batches(by_resource)]
        answers = [self._call(throttles.change, self._wire, batch, self._before_write) for batch in batches]
        outcomes = {one: found for answer in await asyncio.gather(*answers) for one, found in answer.items()}
        return dict.fromkeys(changes, NOT_ANSWERED) | outcomes

    def _topics(self, names: Collection[str] | None) -> tuple[dict[str, Topic], set[str]]:
        """Those that exist (of all, where none are named), and the names of those that we may not see."""
        described, unseen = requests.topics(self._wire, names)
        minima, withheld = self._min_insync_replicas.of({name: id for name, (id, _) in described.items()})
        topics = {
            name: Topic(id, minima[name], partitions) for name, (id, partitions) in described.items() if name in minima
        }
        return topics, unseen | withheld

    async def _log_dirs(
        self, holders: Mapping[int, Collection[TopicPartition] | None], seconds: float, together: float = inf
    ) -> LogDirs:
        """Each broker has so many seconds, and all of them, of whom a few are asked at a time, have them `together`."""
        deadline = time.monotonic() + together

        def ask(broker: int, partitions: Collection[TopicPartition] | None) -> dict[str, LogDir] | None:
            left = deadline - time.monotonic()
            return requests.log_dirs(self._wire, broker, partitions, min(seconds, left)) if left > 0 else None

        async def answer(broker: int, partitions: Collection[TopicPartition] | None) -> dict[str, LogDir] | None:
            try:
                return await self._call(ask, broker, partitions)
            except ClusterError:
                return None  # one broker that is down or slow hides its own directories only

        answers = await asyncio.gather(*(answer(broker, tps) for broker, tps in holders.items()))
        return {broker: found for broker, found in zip(holders, answers, strict=True) if found is not None}

    def _elect(self, batch: Sequence[Elect]) -> dict[Step, Outcome]:
        return self._send(batch, lambda: requests.elect(self._wire, [step.tp for step in batch], self._before_write))

    def _alter_log_dirs(self, batch: Sequence[AlterLogDirs]) -> dict[Step, Outcome]:
        """One request for each broker; a step met the worst of what its brokers answered."""
        outcomes: dict[Step, Outcome] = dict.fromkeys(batch, APPLIED)
        for broker in sorted({broker for step in batch for broker, _ in step.dirs}):
            there = [step for step in batch if broker in dict(step.dirs)]
            paths = {step.tp: dict(step.dirs)[broker] for step in there}
            met = self._send(there, partial(requests.alter_log_dirs, self._wire, broker, paths, self._before_write))
            outcomes |= {step: outcome for step, outcome in met.items() if outcome is not APPLIED}
        return outcomes

    def _alter(self, batch: Sequence[Alter | Cancel]) -> dict[Step, Outcome]:
        """Look once more, right before the request: what others have done since must not be undone. There is no
        compare-and-set on the wire, so a race of one round trip remains.

        Metadata counts the adding and the removing replicas of a partition in flight; so what is in flight is listed
        after metadata was read, and left to the rules for that.
        """
        try:
            topics, _ = requests.topics(self._wire, {step.tp.topic for step in batch if isinstance(step, Alter)})
            in_flight = requests.reassignments(self._wire, [step.tp for step in batch])
        except KafkaError as error:
            return dict.fromkeys(batch, lost(error))
        refused = {
            step: outcome
            for step in batch
            if (outcome := _overtaken(step, in_flight.get(step.tp)) or _changed(step, topics))
        }
        return refused | self._request([step for step in batch if step not in refused], topics)

    def _request(self, batch: Sequence[Alter | Cancel], topics: requests.Topics) -> dict[Step, Outcome]:
        guarded = any(isinstance(step, Alter) and not step.allow_replication_factor_change for step in batch)
        if not (guarded and self.guard is ReplicationFactorGuard.EMULATED):
            try:
                return self._submit(batch, allow=not guarded)
            except IncompatibleBrokerVersion:  # a broker older than the first one, in a rolling upgrade
                pass
        refused = {step: outcome for step in batch if (outcome := _changes_replication_factor(step, topics))}
        return refused | self._submit([step for step in batch if step not in refused], allow=True)

    def _submit(self, batch: Sequence[Alter | Cancel], *, allow: bool) -> dict[Step, Outcome]:
        if not batch:
            return {}
        targets = {step.tp: step.replicas if isinstance(step, Alter) else None for step in batch}
        return self._send(
            batch,
            lambda: requests.alter(
                self._wire, targets, allow_replication_factor_change=allow, before_write=self._before_write
            ),
        )

    def _send(self, batch: Sequence[Step], send: Callable[[], requests.Answers]) -> dict[Step, Outcome]:
        try:
            return _outcomes(batch, send())
        except IncompatibleBrokerVersion:
            raise
        except AnswerLostError as error:
            message = f"the answer was lost: {error}"
            return dict.fromkeys(batch, Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, message))
        except KafkaError as error:
            return dict.fromkeys(batch, lost(error))

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking call in a thread of ours; the library's errors become ours."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, partial(function, *arguments))
        except KafkaError as error:
            raise cluster_error(error) from error


def _turn(step: Step) -> int:
    return 0 if isinstance(step, Cancel) else 1 if isinstance(step, AlterLogDirs) else 2


def batches(steps: Sequence[Step]) -> Iterator[list[Any]]:
    """The steps in order, in groups that one request can carry: elections, log directories, alters that may
    change the replication factor, or other alters and cancels; of no partition two."""
    batch: list[Step] = []
    for step in steps:
        fits = len(batch) < BATCH and all(step.tp != other.tp for other in batch)
        if batch and not (fits and _kind(step) == _kind(batch[0])):
            yield batch
            batch = []
        batch.append(step)
    if batch:
        yield batch


def _kind(step: Step) -> str:
    if isinstance(step, Elect):
        return "elect"
    if isinstance(step, AlterLogDirs):
        return "log dirs"
    # a cancel, which never changes the replication factor, goes with the guarded ones
    return "alter" if isinstance(step, Alter) and step.allow_replication_factor_change else "guarded alter"


def _open(connection: Connection, timeout: float) -> Wire:
    wire = Wire(connection)
    try:
        wire.open(timeout)
        return wire
    except KafkaError as error:
        wire.close()
        raise _explained(cluster_error(error), connection) from error
    except BaseException:
        wire.close()
        raise


def _explained(error: ClusterError, connection: Connection) -> ClusterError:
    """An unreachable cluster may be one that refuses our credentials: ask again in another way."""
    if error.reason is Reason.CLUSTER_UNREACHABLE and connection.sasl:
        error = refused_credentials(connection, REFUSAL_SECONDS) or error
    if error.reason is Reason.AUTHENTICATION_FAILED and isinstance(connection.sasl, OAuth):
        return refused_token(error, connection.sasl)
    return error


def _overtaken(step: Alter | Cancel, in_flight: Reassignment | None) -> Outcome | None:
    """The outcome of a step that need not, or must not, be sent, since the partition is not as it was judged."""
    if isinstance(step, Alter):
        if in_flight is None:
            return None
        if in_flight.target == set(step.replicas):
            return APPLIED
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, "somebody else has begun to move it")
    if in_flight is None:
        return Outcome(Result.REFUSED, Reason.NO_REASSIGNMENT_IN_PROGRESS, "nothing is in flight for the partition")
    if in_flight.target != set(step.target):
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, "somebody else has changed the move")
    return None


def _changed(step: Alter | Cancel, topics: requests.Topics) -> Outcome | None:
    """The outcome of a step for a partition that is another one by now, or has other replicas."""
    if not (isinstance(step, Alter) and step.judged and step.tp.topic in topics):
        return None
    topic_id, partitions = topics[step.tp.topic]
    if topic_id != step.judged.topic_id:
        return Outcome(Result.REFUSED, Reason.TOPIC_RECREATED, "the topic was deleted and made again just now")
    now = partitions.get(step.tp.partition)
    if now and set(now.replicas) != step.judged.replicas:
        message = f"somebody else has just moved it to {list(now.replicas)}; it is judged again"
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, message)
    return None


def _changes_replication_factor(step: Alter | Cancel, topics: requests.Topics) -> Outcome | None:
    """The outcome of a step that we hold back, where the brokers have no guard of their own (KIP-860)."""
    if not isinstance(step, Alter) or step.tp.topic not in topics:
        return None
    now = topics[step.tp.topic][1].get(step.tp.partition)
    if now is None or len(now.replicas) == len(step.replicas):
        return None
    message = f"The replication factor is changed from {len(now.replicas)} to {len(step.replicas)}"
    return Outcome(Result.REFUSED, Reason.REPLICATION_FACTOR_CHANGE, message)


def _outcomes(batch: Sequence[Step], answers: requests.Answers) -> dict[Step, Outcome]:
    return {step: outcome(step, *answers[step.tp]) if step.tp in answers else NOT_ANSWERED for step in batch}


def _holders(
    partitions: Collection[TopicPartition],
    topics: Mapping[str, Topic],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> dict[int, list[TopicPartition]]:
    """The partitions that each broker has a replica of, or gets one."""
    holders: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        replicas = set(reassignments[tp].replicas) if tp in reassignments else set()
        if tp.topic in topics and (found := topics[tp.topic].partitions.get(tp.partition)):
            replicas |= set(found.replicas)
        for broker in replicas:
            holders.setdefault(broker, []).append(tp)
    return holders
