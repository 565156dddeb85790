"""Carries out steps on a cluster: groups of them that one request can carry, and what each step met.

What others have done since a step was judged is read once more right before the request, and is not undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.snapshot import Reassignment
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.errors import Reason
from reassign.kafka import requests
from reassign.kafka.errors import lost, not_sent, outcome
from reassign.kafka.wire import AnswerLostError, Wire

BATCH = 200
"""Partitions in one request: the controller takes no more than 10,000 records of one."""
NOT_ANSWERED = Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "the brokers did not answer for it")


def turn(step: Step) -> int:
    """Return the place of a step in the order: cancels, log directories, all others."""
    return 0 if isinstance(step, Cancel) else 1 if isinstance(step, AlterLogDirs) else 2


def batches(steps: Sequence[Step]) -> Iterator[list[Any]]:
    """Yield the steps in order, in groups that one request can carry, each partition at most once in a group.

    The groups: cancels, elections, log directories, alters that may change the replication factor, other alters.
    """
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
    if isinstance(step, Cancel):
        return "cancel"
    return "alter" if step.allow_replication_factor_change else "guarded alter"


@dataclass(frozen=True, slots=True)
class StepWriter:
    """A sender of steps through a wire."""

    wire: Wire
    before_write: Callable[[], None]
    """Called right before each request that changes something; when it raises, the request is not sent."""

    def carry_out(self, batch: Sequence[Any], via: int | None) -> dict[Step, Outcome]:
        """Send one of the `batches` to this broker, or any, and return what each step met."""
        if isinstance(batch[0], Elect):
            return self._elect(batch, via)
        return self._alter_log_dirs(batch) if isinstance(batch[0], AlterLogDirs) else self._alter(batch, via)

    def _elect(self, batch: Sequence[Elect], via: int | None) -> dict[Step, Outcome]:
        partitions = [step.tp for step in batch]
        return self._send(batch, lambda: requests.elect(self.wire, partitions, self.before_write, via))

    def _alter_log_dirs(self, batch: Sequence[AlterLogDirs]) -> dict[Step, Outcome]:
        """Send one request to each broker, side by side; a step is applied when each of its brokers has applied it."""
        outcomes: dict[Step, Outcome] = dict.fromkeys(batch, APPLIED)
        brokers = sorted({broker for step in batch for broker, _ in step.dirs})

        def tell(broker: int) -> dict[Step, Outcome]:
            there = [step for step in batch if broker in dict(step.dirs)]
            paths = {step.tp: dict(step.dirs)[broker] for step in there}
            send = partial(requests.alter_log_dirs, self.wire, broker, paths, self.before_write)
            return self._send(there, send, lost)  # other brokers may have been told

        with ThreadPoolExecutor(len(brokers), thread_name_prefix="log-dirs") as side_by_side:
            for met in side_by_side.map(tell, brokers):
                outcomes |= {step: outcome for step, outcome in met.items() if outcome is not APPLIED}
        return outcomes

    def _alter(self, batch: Sequence[Alter | Cancel], via: int | None) -> dict[Step, Outcome]:
        """Send alters and cancels; read the partitions right before, so that another client's change is not undone.

        Kafka has no compare-and-set for this, so a race of one round trip remains. Metadata counts the adding and the
        removing replicas of a partition in flight; so reassignments are listed after metadata was read.
        """
        try:
            named = {step.tp.topic for step in batch if isinstance(step, Alter)}
            found = requests.topics(self.wire, named)
            in_flight = requests.reassignments(self.wire, [step.tp for step in batch])
        except KafkaError as error:
            return dict.fromkeys(batch, not_sent(error))
        refused = {
            step: outcome
            for step in batch
            if (outcome := _overtaken(step, in_flight.get(step.tp)) or _changed(step, found))
        }
        return refused | self._request([step for step in batch if step not in refused], found.topics, via)

    def _request(
        self, batch: Sequence[Alter | Cancel], topics: requests.Topics, via: int | None
    ) -> dict[Step, Outcome]:
        guarded = any(isinstance(step, Alter) and not step.allow_replication_factor_change for step in batch)
        if not (guarded and requests.guard(self.wire) is ReplicationFactorGuard.EMULATED):
            try:
                return self._submit(batch, via, allow=not guarded)
            except IncompatibleBrokerVersion:  # a broker older than the first one, in a rolling upgrade
                pass
        refused = {step: outcome for step in batch if (outcome := _changes_replication_factor(step, topics))}
        return refused | self._submit([step for step in batch if step not in refused], via, allow=True)

    def _submit(self, batch: Sequence[Alter | Cancel], via: int | None, *, allow: bool) -> dict[Step, Outcome]:
        if not batch:
            return {}
        targets = {step.tp: step.replicas if isinstance(step, Alter) else None for step in batch}
        return self._send(
            batch,
            lambda: requests.alter(
                self.wire, targets, allow_replication_factor_change=allow, before_write=self.before_write, broker=via
            ),
        )

    def _send(
        self,
        batch: Sequence[Step],
        send: Callable[[], requests.Answers],
        failed: Callable[[Exception], Outcome] = not_sent,
    ) -> dict[Step, Outcome]:
        try:
            return _outcomes(batch, send())
        except IncompatibleBrokerVersion:
            raise
        except AnswerLostError as error:
            message = f"the answer was lost: {error}"
            return dict.fromkeys(batch, Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, message))
        except KafkaError as error:
            return dict.fromkeys(batch, failed(error))


def _overtaken(step: Alter | Cancel, in_flight: Reassignment | None) -> Outcome | None:
    """Return the outcome of a step that need not, or must not, be sent: the partition is not as it was judged."""
    if isinstance(step, Alter):
        if in_flight is None:
            return None
        if in_flight.target == set(step.replicas):
            return APPLIED
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, "another client has begun to move it")
    if in_flight is None:
        return Outcome(Result.REFUSED, Reason.NO_REASSIGNMENT_IN_PROGRESS, "nothing is in flight for the partition")
    if in_flight.target != set(step.target):
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, "another client has changed the move")
    return None


def _changed(step: Alter | Cancel, found: requests.Described) -> Outcome | None:
    """Return the outcome of a step whose partition was recreated since, has other replicas now, or cannot be read."""
    if problem := found.unread.get(step.tp.topic):
        return Outcome(Result.NOT_SENT, problem.reason, problem.message)
    if not (isinstance(step, Alter) and step.judged and step.tp.topic in found.topics):
        return None
    topic_id, partitions = found.topics[step.tp.topic]
    if topic_id != step.judged.topic_id:
        return Outcome(Result.REFUSED, Reason.TOPIC_RECREATED, "the topic was deleted and made again just now")
    now = partitions.get(step.tp.partition)
    if now and set(now.replicas) != step.judged.replicas:
        message = f"another client has just moved it to {list(now.replicas)}; it is judged again"
        return Outcome(Result.REFUSED, Reason.IN_FLIGHT_ELSEWHERE, message)
    return None


def _changes_replication_factor(step: Alter | Cancel, topics: requests.Topics) -> Outcome | None:
    """Return the outcome of a step that is not sent, where the brokers have no guard of their own (KIP-860)."""
    if not isinstance(step, Alter) or step.tp.topic not in topics:
        return None
    now = topics[step.tp.topic][1].get(step.tp.partition)
    if now is None or len(now.replicas) == len(step.replicas):
        return None
    message = f"The replication factor is changed from {len(now.replicas)} to {len(step.replicas)}"
    return Outcome(Result.REFUSED, Reason.REPLICATION_FACTOR_CHANGE, message)


def _outcomes(batch: Sequence[Step], answers: requests.Answers) -> dict[Step, Outcome]:
    return {step: outcome(step, *answers[step.tp]) if step.tp in answers else NOT_ANSWERED for step in batch}
