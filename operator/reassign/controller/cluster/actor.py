"""Act: carries a decision out, in the order that a crash at any moment can be recovered from.

The throttles that moves need come first, their record before them. Then come the records of the moves that are
throttled, then the steps. What CancelAll undoes is kept before it is cancelled. Nothing is altered before our finalizer
has been seen on the object, and nothing begins for one that has changed since it was judged.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import Progress
from reassign.controller.cluster.last_check import LastCheck
from reassign.controller.logs import named_as
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.writing.attempts import Attempts
from reassign.controller.writing.brake_copies import BrakeCopies
from reassign.controller.writing.config_record import ConfigRecord
from reassign.controller.writing.writer import Writer
from reassign.core.cluster import ClusterHold, cluster_status
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.configs import Change, Op
from reassign.core.model.progress import WINDOW_SECONDS
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.steps import Outcome, Result, Step
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import order_not_restored
from reassign.core.report.statuses import comes_first, report
from reassign.core.tick import Decision
from reassign.errors import ApiServerError, ConflictError, Reason, ReassignError
from reassign.kafka.client import KafkaClient
from reassign.kube.client import ClusterKey, Kind, KubeClient

log = structlog.get_logger()


@dataclass(slots=True)
class Actor:
    """Carries out the decisions about one KafkaCluster."""

    key: ClusterKey
    store: Store
    kube: KubeClient
    writer: Writer
    metrics: Metrics
    config_record: ConfigRecord
    copies: BrakeCopies = field(init=False)
    written: bool = False
    """Whether the last decision changed any object."""
    _samples: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    """Bytes copied by each resource that has something in flight, for the rate."""
    _copied: dict[str, int] = field(default_factory=dict)
    """Bytes copied by each resource that was judged last, of which none count twice."""
    _unreported: dict[str, ReassignError] = field(default_factory=dict)
    """The resources, by uid, whose last status could not be made, or written, and why."""

    def __post_init__(self) -> None:
        self.copies = BrakeCopies(self.key, self.kube)

    async def throttle(self, decision: Decision, client: KafkaClient) -> Mapping[Change, Outcome]:
        """Record the throttles, then change them; return what each change met. Without the record no change is made."""
        changes = decision.throttle.changes
        try:
            await self.config_record.write(decision.throttle)
        except ReassignError as error:
            log.warning("throttles not recorded", reason=error.reason, error=error.message)
            return dict.fromkeys(changes, Outcome(Result.REFUSED, error.reason, error.message))
        return await self._change(client, changes)

    async def record(self, decision: Decision, rules: ClusterRules, attempts: Attempts) -> Mapping[str, Resource]:
        """Write the records that the steps need; return the resources that may act, by uid."""
        self.written = False
        judged = {verdict.resource.uid for verdict in decision.verdicts}
        self._samples = {uid: samples for uid, samples in self._samples.items() if uid in judged}
        self._copied = {uid: size for uid, size in self._copied.items() if uid in judged}
        self._unreported = {uid: error for uid, error in self._unreported.items() if uid in judged}
        resources: dict[str, Resource] = {}

        async def record(verdict: Verdict) -> None:
            if recorded := await self._record(verdict, decision, rules):
                resources[recorded.uid] = recorded

        with suppress(ApiServerError):  # what is being undone waits for no record
            await attempts.each(decision.verdicts, record)
        return resources

    async def act(self, decision: Decision, client: KafkaClient, check: LastCheck) -> Mapping[Step, Outcome]:
        """Take the steps, first those that need no last check; return what each met that was sent."""
        beginning = decision.beginning
        outcomes: dict[Step, Outcome] = {}
        if undoing := [step for step in decision.steps if step not in beginning]:
            outcomes |= await client.perform(undoing)
        if beginning:
            outcomes |= await client.perform([*beginning], lambda batch: check.still_valid(batch, beginning))
        owners = {step: verdict.resource for verdict in decision.verdicts for step in verdict.steps}
        for step, outcome in outcomes.items():
            self.metrics.kafka_write(type(step).__name__)
            of = named_as(Kind.PARTITION_REASSIGNMENT, owners[step]) if step in owners else {}  # else the brake's
            log.info(
                "step", **of, step=str(step), result=outcome.result, reason=outcome.reason, message=outcome.message
            )
        return outcomes

    async def report(self, verdict: Verdict, snapshot: Snapshot, rules: ClusterRules) -> None:
        """Write record and status of a resource, and remove the finalizer when all of its partitions are settled.

        Of one that was not judged to the end there is only the record.
        """
        uid = verdict.resource.uid
        self._unreported[uid] = ReassignError(Reason.INTERNAL_ERROR, "its status cannot be made")
        try:
            resource = await self.writer.record(verdict.resource, verdict.record, held=verdict.unsettled)
            if not (resource.owner_gone or verdict.partial):
                await self._report(replace(verdict, resource=resource), snapshot, rules)
        except ReassignError as error:
            self._unreported[uid] = error
            raise
        del self._unreported[uid]

    async def _report(self, verdict: Verdict, snapshot: Snapshot, rules: ClusterRules) -> None:
        resource = verdict.resource
        status = report(*rules.view(verdict, snapshot), self._samples.get(resource.uid, ()), self.writer.now())
        self._sample(resource.uid, status.progress)
        self._count_bytes(resource.uid, status.progress)
        written = await self.writer.write(resource, status)
        if verdict.unrestored and (obj := self.store.get(resource.uid)):
            await self.writer.record_event(obj, order_not_restored(verdict.unrestored))
        if written and written.has_finalizer and not verdict.unsettled and not written.deleted:
            await self.writer.remove_finalizer(written)

    def _sample(self, uid: str, progress: Progress | None) -> None:
        if not progress or not progress.partitions_in_flight:
            self._samples.pop(uid, None)
        elif progress.bytes_copied is not None:
            samples = self._samples.setdefault(uid, deque())
            samples.append((time.monotonic(), progress.bytes_copied))
            while samples[-1][0] - samples[0][0] > WINDOW_SECONDS:
                samples.popleft()

    def _count_bytes(self, uid: str, progress: Progress | None) -> None:
        if progress and progress.bytes_copied is not None:
            new = progress.bytes_copied - self._copied.get(uid, progress.bytes_copied)
            self.metrics.copied_bytes.labels("/".join(self.key)).inc(max(new, 0))
            self._copied[uid] = progress.bytes_copied

    async def report_cluster(
        self, cluster: KafkaCluster, snapshot: Snapshot, resources: Sequence[Resource], hold: ClusterHold
    ) -> None:
        """Write the status of the KafkaCluster."""
        record = self.config_record.recorded
        status = cluster_status(cluster, snapshot, resources, hold, self.writer.now(), record)
        await self.writer.write_cluster(self.key, status)

    async def _record(self, verdict: Verdict, decision: Decision, rules: ClusterRules) -> Resource | None:
        """Write what has to be there before the steps; return None when this tick can do nothing for the resource."""
        resource = verdict.resource
        if verdict.release:
            await self.writer.release(verdict)
            self.written = True
            return None
        if comes_first(resource) and not verdict.partial:
            status = report(*rules.view(verdict, decision.snapshot), (), self.writer.now())
            written = await self.writer.write(resource, status)
            self.written = True
            if written is None:
                return None
            resource = _bounded_as(resource, written)
        if verdict.unsettled and not resource.has_finalizer and not resource.deleted:
            written = await self.writer.hold(resource)
            self.written = True
            if written is None:
                return None
            resource = _bounded_as(resource, written)
        if not verdict.must_record:
            return resource
        if error := self._unreported.get(resource.uid):  # a move begins only where its status can be written
            if isinstance(error, ConflictError):
                return None
            raise error
        return await self.writer.record(resource, verdict.record, held=True)

    async def _change(self, client: KafkaClient, changes: Sequence[Change]) -> dict[Change, Outcome]:
        """Set what throttles, then restore: no configuration is changed twice in one request."""
        restoring = [c for c in changes if c.op in (Op.DELETE, Op.SUBTRACT)]
        outcomes: dict[Change, Outcome] = {}
        for group in ([c for c in changes if c not in restoring], restoring):
            if not group:
                continue
            met = await client.change(group)
            for change, outcome in met.items():
                self.metrics.kafka_write("Config")
                log.info("config", change=str(change), result=outcome.result, message=outcome.message)
            outcomes |= met
        return outcomes


def _bounded_as(judged: Resource, written: Resource) -> Resource:
    """Return a resource as it was written, with what the KafkaCluster's bounds made of it when it was judged."""
    return replace(written, unsupported=judged.unsupported or written.unsupported)
