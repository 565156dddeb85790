"""The Kafka adapter: observe a cluster, and carry out steps on it.

The client library behind it blocks; it runs in a few threads of the adapter's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, TypeVar

import structlog
from kafka.errors import KafkaError, KafkaTimeoutError

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.automation.seen import BrokersRead
from reassign.core.model.configs import Change, ConfigResource, ConfigResourceType
from reassign.core.model.forwarding import NO_DOUBTS, Doubts, Forwarded
from reassign.core.model.layout import Layout, layout_of
from reassign.core.model.log_dir_reports import sizes
from reassign.core.model.problem import Problem, bug_problem, error_problem
from reassign.core.model.snapshot import (
    Broker,
    LogDir,
    LogDirs,
    Reassignment,
    Snapshot,
    Topic,
    TopicPartition,
    cordoned,
    live_brokers,
)
from reassign.core.model.steps import APPLIED, Outcome, Result, Step, not_directed
from reassign.errors import ClusterError, Reason
from reassign.kafka import requests, throttles
from reassign.kafka.claim import Membership
from reassign.kafka.configs import MinInsyncReplicas
from reassign.kafka.connection import Connection
from reassign.kafka.credentials import refused_credentials, refused_password, refused_token
from reassign.kafka.errors import BROKER_ID_NOT_REGISTERED, NONE, cluster_error, refusal
from reassign.kafka.listener import misfit
from reassign.kafka.steps import NOT_ANSWERED, StepWriter, batches, turn
from reassign.kafka.tokens import OAuth
from reassign.kafka.wire import AnswerLostError, Wire

SIZES_SECONDS = 2.0
"""For one broker's log directories: a slow broker delays a snapshot by no more; its sizes are missing then."""
EVERYTHING_SECONDS, TOGETHER_SECONDS = 20.0, 60.0
"""For the log directories of one broker, and of all brokers together, in a snapshot of the whole cluster."""
LOOK_SECONDS = 4.0
"""For finding out what listens at the addresses of a cluster that cannot be connected to."""
REFUSAL_SECONDS = 2.0
"""For asking whether a cluster that does not answer refuses our credentials."""
CLOSE_SECONDS = 5.0
THREADS = 4  # for requests to any broker; kafka-python takes five requests per broker
BROKERS_AT_ONCE = 64
"""Brokers that are asked side by side, each about itself: all that are down cost one time-out together."""

T = TypeVar("T")
StillValid = Callable[[Sequence[Step]], Awaitable[Collection[Step]]]

log = structlog.get_logger()


class KafkaClient:
    """A client of one cluster, made with `connect`; one task observes and acts at a time."""

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
        self._side_by_side = ThreadPoolExecutor(BROKERS_AT_ONCE, thread_name_prefix="broker")
        self._before_write = before_write
        self._steps = StepWriter(wire, before_write)
        self._via: int | None = None
        """The broker that writes go to: the last that listed the reassignments in flight (`Snapshot.forwarded`)."""

    @classmethod
    async def connect(
        cls,
        connection: Connection,
        *,
        timeout: float = 10.0,  # noqa: ASYNC109  (calls in a thread cannot be cancelled)
        before_write: Callable[[], None] = lambda: None,
    ) -> KafkaClient:
        """Connect within `timeout` seconds, and check that the cluster is one that the operator can serve.

        `before_write` is called right before each request that changes something, in any thread. When it raises, the
        request is not sent, and `perform` raises that error.

        Raises ClusterError: ClusterUnreachable, AuthenticationFailed, InvalidSecret, NotAuthorized,
        ClusterNotSupported, or what `OAuth.renew` raises. Refused credentials stay refused: connect again, do not keep
        the client.
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
        """Close all connections; calls under way fail, and one that hangs in its thread is left to it."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._call(self._wire.close)
        finally:
            self._executor.shutdown(wait=False)
            self._side_by_side.shutdown(wait=False)

    def keep(self, membership: Membership) -> None:
        """Keep an installation's claim on the cluster for as long as this client is open."""
        membership.keep(self._wire)

    @property
    def guard(self) -> ReplicationFactorGuard:
        return requests.guard(self._wire)

    async def observe(
        self,
        topics: Collection[str],
        sizes_of: Collection[TopicPartition] | None = None,
        destinations: Collection[int] = (),
        doubts: Doubts = NO_DOUBTS,
    ) -> Snapshot:
        """Read all reassignments in flight, all brokers, these topics, and the sizes of these partitions.

        Each broker in doubt is asked for a list as well, which shows that it forwards to the controller again
        (`Forwarding`). The list that counts is asked of the `first` broker that answers, or else of one of those in
        doubt. Metadata is read from the broker of that list, if it answers, and behind the list the offsets of the
        metadata log, if they are needed.

        Topics that do not exist are left out; min.insync.replicas may be 30 s old (`configs.CONFIG_SECONDS`). Unless
        `sizes_of` is None, the snapshot has the sizes of all partitions in flight too. It then has the log directories
        of the brokers that have or get a replica of a partition concerned, and of the `destinations`. An odd answer, or
        none in time, hides that topic alone, or the log directories of that broker. Raises ClusterError when the
        cluster does not answer.
        """
        return await self._observe(topics, sizes_of, destinations, doubts)

    async def observe_everything(self) -> Snapshot:
        """Read the whole cluster: all topics that we may see, all sizes, the log directories of all brokers.

        A topic that was made meanwhile, and has logs, is read as well. A broker's directories are left out when it
        takes longer than EVERYTHING_SECONDS, or all brokers together longer than TOGETHER_SECONDS. Raises ClusterError
        when the cluster does not answer.
        """
        return await self._observe(None, None, ())

    async def _observe(
        self,
        topics: Collection[str] | None,
        sizes_of: Collection[TopicPartition] | None,
        destinations: Collection[int],
        doubts: Doubts = NO_DOUBTS,
    ) -> Snapshot:
        await self._connection.renew_token()
        try:
            return await self._snapshot(topics, sizes_of, destinations, doubts)
        except ClusterError as error:
            raise await self._call(_explained, error, self._connection) from error

    async def _snapshot(
        self,
        topics: Collection[str] | None,
        sizes_of: Collection[TopicPartition] | None,
        destinations: Collection[int],
        doubts: Doubts,
    ) -> Snapshot:
        # The list first: it is the truth, and what is read after it can only be newer.
        reassignments, forwarded = await self._list(doubts)
        (cluster_id, brokers), (described, unread, reader) = await asyncio.gather(
            self._call(requests.cluster, self._wire), self._call(self._topics, topics, forwarded.via)
        )
        alive = {id for id, broker in brokers.items() if not broker.fenced}
        log_dirs: LogDirs = {}
        silent: dict[int, Problem] = {}
        if topics is None:
            log_dirs, silent = await self._log_dirs(dict.fromkeys(alive), EVERYTHING_SECONDS, TOGETHER_SECONDS)
            if missing := _without_metadata(log_dirs, described, unread):
                made, _, _ = await self._call(self._topics, missing, forwarded.via)
                described = described | made
        elif sizes_of is not None:
            asked = _by_broker({*sizes_of, *reassignments}, described, reassignments)
            for broker in destinations:
                asked.setdefault(broker, [])
            log_dirs, silent = await self._log_dirs({b: asked[b] for b in asked if b in alive}, SIZES_SECONDS)
        return Snapshot(
            cluster_id=cluster_id,
            guard=self.guard,
            brokers=brokers,
            topics=described,
            reassignments=reassignments,
            unread_topics=unread,
            sizes=None if topics is not None and sizes_of is None else sizes(log_dirs),
            log_dirs=log_dirs,
            unread_log_dirs=silent,
            forwarded=forwarded._replace(reader=reader),
            lists_fenced=requests.lists_fenced(self._wire),
        )

    async def _list(self, doubts: Doubts) -> tuple[dict[TopicPartition, Reassignment], Forwarded]:
        """Return the reassignments in flight, and which brokers forwarded a list; the last list counts."""
        asked = doubts.brokers
        answers = await asyncio.gather(*(_heard(self._ask(requests.forwards, self._wire, b)) for b in asked))
        heard = [b for b, answer in zip(asked, answers, strict=True) if not isinstance(answer, Problem)]
        order = [broker for broker in (*doubts.first, *heard) if broker in heard or broker not in asked]
        listed = await self._call(requests.all_reassignments, self._wire, order)
        reassignments, self._via = listed
        brokers = {*heard, *([] if self._via is None else [self._via])}
        ended = any(tp not in reassignments for tp in doubts.lately)
        needed = doubts.offsets or ended or doubts.reader not in (None, self._via)
        offsets = await _heard(self._call(requests.metadata_offsets, self._wire)) if needed else None
        if isinstance(offsets, Problem):
            offsets = None  # only time ends the doubt
        return reassignments, Forwarded(self._via, frozenset(brokers), offsets)

    async def has_ended(self, moves: Set[TopicPartition]) -> bool:
        """Whether the broker that writes go to no longer lists one of these moves.

        Only that broker is asked. Its list settles no doubt: writes go on to the broker of the last observation.
        """
        if self._via is None:
            return False
        return not moves <= (await self._ask(requests.reassignments, self._wire, moves, self._via)).keys()

    async def observe_layout(self, logs_of: Callable[[Layout], Collection[int]], *, cordons: bool = False) -> Layout:
        """Read where the replicas of all topics are, and the logs of the brokers that `logs_of` picks then.

        With `cordons` also which of all brokers that are up are cordoned.

        All metadata is one request, and a second one where topics that were made meanwhile have logs. Topics that we
        may not describe are left out; the brokers' logs show them. A broker that does not answer in time has no log
        directories. Raises ClusterError when the cluster does not answer.
        """
        reassignments, via = await self._call(requests.all_reassignments, self._wire, ())
        cluster_id, brokers = await self._call(requests.cluster, self._wire)
        topics, unread, _ = await self._call(requests.topics, self._wire, None, via)
        found = await self._call(_layout, brokers, topics, reassignments)
        alive = live_brokers(brokers)
        whole = dict.fromkeys(broker for broker in logs_of(found) if broker in alive)
        others = dict.fromkeys(alive - whole.keys(), ()) if cordons else {}
        asked, _ = await self._log_dirs({**whole, **others}, EVERYTHING_SECONDS, TOGETHER_SECONDS)
        log_dirs = {broker: directories for broker, directories in asked.items() if broker in whole}
        if missing := _without_metadata(log_dirs, topics, unread):
            made = (await self._call(requests.topics, self._wire, missing, via)).topics
            found = await self._call(_layout, brokers, topics | made, reassignments)
        lists_fenced = requests.lists_fenced(self._wire)
        return replace(
            found,
            log_dirs=log_dirs,
            cordoned={broker: cordoned(directories) for broker, directories in asked.items()},
            unread=frozenset(unread),
            lists_fenced=lists_fenced,
            cluster_id=cluster_id,
        )

    async def observe_brokers(self, logs_of: Callable[[Layout], Collection[int]]) -> BrokersRead:
        """Read what shows whether brokers can go: a layout with cordons, the factors of new topics, and the voters."""
        layout = await self.observe_layout(logs_of, cordons=True)
        first = next(iter(sorted(live_brokers(layout.brokers))), None)
        factors = None if first is None else await _heard(self._ask(requests.default_factors, self._wire, first))
        voters = await _heard(self._call(requests.voters, self._wire))
        factor = None
        if isinstance(factors, dict):
            missing = (n for name, n in factors.items() if requests.FACTORS[name] not in layout.factors)
            factor = max(missing, default=1)
        return BrokersRead(
            layout,
            factor=factor,
            voters=None if isinstance(voters, Problem) else voters,
        )

    async def observe_cordons(self) -> tuple[str, dict[int, bool | None]]:
        """Read the id of the cluster, and which of the brokers that are up and answer are cordoned."""
        cluster_id, brokers = await self._call(requests.cluster, self._wire)
        asked, _ = await self._log_dirs(dict.fromkeys(live_brokers(brokers), ()), EVERYTHING_SECONDS, TOGETHER_SECONDS)
        return cluster_id, {broker: cordoned(directories) for broker, directories in asked.items()}

    async def unregister(self, broker: int, via: int | None) -> Outcome:
        """Take a broker's registration away (UnregisterBroker, KIP-631), and return what that met."""
        try:
            code, message = await self._call(requests.unregister, self._wire, broker, self._before_write, via)
        except AnswerLostError as error:
            return Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, f"the answer was lost: {error}")
        except ClusterError as error:
            return Outcome(Result.NOT_SENT, error.reason, error.message)
        return APPLIED if code in (NONE, BROKER_ID_NOT_REGISTERED) else refusal(code, message)

    async def observe_shortages(self) -> dict[str, Topic]:
        """Read the partitions, internal ones too, that have no leader, or a replica that is not in sync.

        Replicas being added count as replicas here. All metadata is one request; min.insync.replicas are read for the
        topics concerned alone, and may be 30 s old. Topics that we may not see are left out.
        """
        return await self._call(self._shortages)

    def _shortages(self) -> dict[str, Topic]:
        short = {
            name: (id, {n: p for n, p in partitions.items() if p.leader is None or not p.isr >= set(p.replicas)})
            for name, (id, partitions) in requests.topics(self._wire, None).topics.items()
        }
        short = {name: (id, partitions) for name, (id, partitions) in short.items() if partitions}
        minima, _ = self._min_insync_replicas.of({name: id for name, (id, _) in short.items()})
        return {name: Topic(id, minima[name], ps) for name, (id, ps) in short.items() if name in minima}

    def _ask_min_insync_replicas(self, topics: Collection[str]) -> tuple[dict[str, int], requests.Unread]:
        """Ask for min.insync.replicas in batches: a broker that is down can leave every topic of a cluster short."""
        minima: dict[str, int] = {}
        unread: requests.Unread = {}
        names = list(topics)
        for start in range(0, len(names), throttles.BATCH):
            values, problems = requests.min_insync_replicas(self._wire, names[start : start + throttles.BATCH])
            minima, unread = minima | values, unread | problems
        return minima, unread

    async def perform(self, steps: Sequence[Step], still_valid: StillValid | None = None) -> dict[Step, Outcome]:
        """Carry the steps out in their order, in batches, and return what each one met.

        Cancels come first: no slow broker delays them. Then log directories: brokers have to know them beforehand.
        A step that fails stops no others but an alter that needs it; UNKNOWN means that it may have been carried out.
        Right before each batch `still_valid` says which of its steps are sent; the others have no outcome.
        """
        outcomes: dict[Step, Outcome] = {}
        for batch in batches(sorted(steps, key=turn)):
            outcomes |= {step: outcome for step in batch if (outcome := not_directed(step, outcomes))}
            ready = [step for step in batch if step not in outcomes]
            if valid := [*await still_valid(ready)] if still_valid and ready else ready:
                outcomes |= await self._call(self._steps.carry_out, valid, self._via)
        return outcomes

    async def configs(
        self,
        resources: Collection[ConfigResource],
        names: Mapping[ConfigResourceType, Sequence[str]] = throttles.HELD,
    ) -> throttles.Read:
        """Return these configurations of each broker and topic, or why one could not be read."""
        answers = [
            self._by_type(batch[0])(throttles.read, self._wire, batch, names, self._via)
            for batch in throttles.batches(resources)
        ]
        return {resource: read for answer in await asyncio.gather(*answers) for resource, read in answer.items()}

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        """Change configurations, of no configuration two, and return what each change met."""
        by_resource = throttles.by_resource(changes)
        groups = [[c for resource in batch for c in by_resource[resource]] for batch in throttles.batches(by_resource)]
        answers = [
            self._by_type(group[0].key.resource)(throttles.change, self._wire, group, self._before_write, self._via)
            for group in groups
        ]
        outcomes = {change: met for answer in await asyncio.gather(*answers) for change, met in answer.items()}
        return dict.fromkeys(changes, NOT_ANSWERED) | outcomes

    def _topics(
        self, names: Collection[str] | None, first: int | None
    ) -> tuple[dict[str, Topic], requests.Unread, int | None]:
        """Return these topics, or all (None), as far as they exist, why others cannot be read, and who was read."""
        described, unread, reader = requests.topics(self._wire, names, first)
        minima, withheld = self._min_insync_replicas.of({name: id for name, (id, _) in described.items()})
        topics = {
            name: Topic(id, minima[name], partitions) for name, (id, partitions) in described.items() if name in minima
        }
        return topics, unread | withheld, reader

    async def _log_dirs(
        self, asked: Mapping[int, Collection[TopicPartition] | None], seconds: float, together: float = inf
    ) -> tuple[LogDirs, dict[int, Problem]]:
        """Ask the brokers side by side; each may take `seconds`, and all of them `together`.

        Return also why others did not answer: one that is down, slow or odd hides its own directories only.
        """
        deadline = time.monotonic() + together

        def ask(broker: int, partitions: Collection[TopicPartition] | None) -> dict[str, LogDir]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise KafkaTimeoutError(f"broker {broker} was not asked in time")
            return requests.log_dirs(self._wire, broker, partitions, min(seconds, left))

        answers = await asyncio.gather(*(_heard(self._ask(ask, broker, tps)) for broker, tps in asked.items()))
        answered = dict(zip(asked, answers, strict=True))
        return (
            {broker: dirs for broker, dirs in answered.items() if not isinstance(dirs, Problem)},
            {broker: problem for broker, problem in answered.items() if isinstance(problem, Problem)},
        )

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking call in a thread of the adapter; the library's errors become ours."""
        return await self._run(self._executor, function, *arguments)

    async def _ask(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking call to one broker, beside the calls to other brokers; the library's errors become ours."""
        return await self._run(self._side_by_side, function, *arguments)

    def _by_type(self, resource: ConfigResource) -> Callable[..., Awaitable[Any]]:
        """Return how to ask: any broker can be asked about topics, but only the broker itself about a broker."""
        return self._ask if resource.type is ConfigResourceType.BROKER else self._call

    async def _run(self, executor: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(executor, partial(function, *arguments))
        except KafkaError as error:
            raise cluster_error(error) from error


async def _heard(answer: Awaitable[T]) -> T | Problem:
    """Return an answer that may be missing, or why it is."""
    try:
        return await answer
    except ClusterError as error:
        return error_problem(error)
    except Exception as error:
        log.exception("an answer cannot be read")
        return bug_problem(error, "an answer from being read")


def _open(connection: Connection, timeout: float) -> Wire:
    wire = Wire(connection)
    try:
        wire.open(timeout)
        return wire
    except KafkaError as error:
        wire.close()
        raise misfit(connection, LOOK_SECONDS) or _explained(cluster_error(error), connection) from error
    except BaseException:
        wire.close()
        raise


def _explained(error: ClusterError, connection: Connection) -> ClusterError:
    """Return the cause of the error; an unreachable cluster may be one that refuses our credentials."""
    if error.reason is Reason.CLUSTER_UNREACHABLE and connection.sasl:
        error = refused_credentials(connection, REFUSAL_SECONDS) or error
    if error.reason is not Reason.AUTHENTICATION_FAILED or connection.sasl is None:
        return error
    if isinstance(connection.sasl, OAuth):
        return refused_token(error, connection.sasl)
    return refused_password(error, connection.sasl)


def _layout(
    brokers: Mapping[int, Broker], topics: requests.Topics, reassignments: Mapping[TopicPartition, Reassignment]
) -> Layout:
    partitions = (
        (TopicPartition(name, number), partition.replicas)
        for name, (_, found) in topics.items()
        for number, partition in found.items()
    )
    return layout_of(brokers, partitions, reassignments)


def _without_metadata(log_dirs: LogDirs, *known: Collection[str]) -> set[str]:
    """Return the topics that have logs and are not known: we may not see them, or they were made meanwhile."""
    logged = {tp.topic for directories in log_dirs.values() for found in directories.values() for tp in found.logs}
    return logged.difference(*known)


def _by_broker(
    partitions: Collection[TopicPartition],
    topics: Mapping[str, Topic],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> dict[int, list[TopicPartition]]:
    """Return the partitions of which each broker has a replica, or gets one."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        replicas = set(reassignments[tp].replicas) if tp in reassignments else set()
        if tp.topic in topics and (partition := topics[tp.topic].partitions.get(tp.partition)):
            replicas |= set(partition.replicas)
        for broker in replicas:
            by_broker.setdefault(broker, []).append(tp)
    return by_broker
