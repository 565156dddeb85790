"""The operator's own records of its resources, as ReassignmentRecords: read in parts, written in parts.

Only the operator may write them, so they are believed as they are read. A part has our finalizer as long as its owner
has something in flight, or waits for something: the deletion of a namespace, or one in the foreground, begins with it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime

import structlog

from reassign.api.common import API_VERSION, FINALIZER
from reassign.api.reassignment_record import (
    OwnerKind,
    ReassignmentRecordSpec,
    RecordedClusterRef,
    RecordedConfigs,
    RecordedDecommission,
    RecordedPolicy,
)
from reassign.controller.objects.part import Owner, Part, owner_of
from reassign.controller.objects.store import Store, refresh
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PlanOwner, PolicyResource
from reassign.core.cluster import where_throttled
from reassign.core.configs.diff import with_taken_over
from reassign.core.model.read_back import DeclaredCluster
from reassign.core.model.record import Record, spread, write_record
from reassign.core.model.resource import Resource
from reassign.errors import ApiServerError, ConflictError, Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object

log = structlog.get_logger()

UNDO_WAITS_SECONDS = 600.0
"""How long the record of what is gone waits for a KafkaCluster to be made again: a namespace goes no sooner."""


class Records:
    """Writes the records; what the API server answers goes into the store at once.

    Each method raises ConflictError when a part is not as it was known.
    """

    def __init__(self, kube: KubeClient, store: Store) -> None:
        self._kube = kube
        self._store = store

    def up_to_date(self, resource: Resource) -> bool:
        """Whether its records say how it is to be undone without it, and how many there are."""
        spec = resource.spec
        policy = spec.deletion_policy, spec.deletion_deadline_seconds
        known = [part.spec for part in self._store.parts(resource.uid)]
        uncounted = known and known[0].parts and known[0].parts < len(known)  # a write was cut short
        return not uncounted and all((p.deletion_policy, p.deletion_deadline_seconds) == policy for p in known)

    async def write(self, resource: Resource, record: Record, *, held: bool) -> None:
        """Write the parts that change; with our finalizer where they are to be `held`.

        Part 0 says how many there are, after a new one is there: a crash in between takes nothing away. Where parts
        were lost it says so before: the record counts as lost until all are there again.
        """
        known = self._known(resource)
        parts = spread(record, {number: part.record for number, part in known.items()})
        if 0 in parts.keys() - known.keys():
            await self._write_part(resource, None, 0, parts[0], len(parts) if resource.record_lost else 1, held)
            known = self._known(resource)
        for number, entries in [*parts.items()][1:]:
            await self._write_part(resource, known.get(number), number, entries, None, held)
        if parts:
            await self._write_part(resource, known[0], 0, parts[0], len(parts), held)

    def _known(self, resource: Resource) -> dict[int, Part]:
        return {part.spec.part: part for part in self._store.parts(resource.uid)}

    async def _write_part(
        self, resource: Resource, part: Part | None, number: int, entries: Record, count: int | None, held: bool
    ) -> None:
        ref, spec = resource.spec.cluster_ref, resource.spec
        owner = Owner(Kind.PARTITION_REASSIGNMENT, resource.namespace, resource.name, resource.uid)
        written = ReassignmentRecordSpec(
            cluster_ref=RecordedClusterRef(namespace=ref.namespace or resource.namespace, name=ref.name),
            part=number,
            parts=count,
            deletion_policy=spec.deletion_policy,
            deletion_deadline_seconds=spec.deletion_deadline_seconds,
            topics=part.spec.topics if part and part.record == entries else write_record(entries),
        )
        await self._write(owner, part, written, held)

    async def pin(self, cluster: DeclaredCluster, cluster_id: str) -> None:
        """Write the id of the Kafka cluster that a KafkaCluster stands for from now on."""
        await self._write_cluster(cluster, cluster_id=cluster_id)

    async def mark_foreign_cancels(self, cluster: DeclaredCluster, sent: bool) -> None:
        """Write whether cancels of other clients' moves may be under way."""
        await self._write_cluster(cluster, foreign_cancels=sent)

    async def write_throttle(self, cluster: DeclaredCluster, throttle: RecordedConfigs | None) -> None:
        """Write the throttles that are set, and the values to restore."""
        await self._write_cluster(cluster, throttle=throttle)
        if throttle is None:
            await self.release(cluster.metadata.uid)

    async def write_decommission(self, it: DecommissionResource, record: RecordedDecommission) -> None:
        """Write how far a BrokerDecommission is."""
        await self._write_plan_owner(it, Kind.BROKER_DECOMMISSION, it.has_finalizer, decommission=record)

    async def write_policy(self, it: PolicyResource, record: RecordedPolicy) -> None:
        """Write how far a ReassignmentPolicy is."""
        await self._write_plan_owner(it, Kind.REASSIGNMENT_POLICY, False, policy=record)

    async def _write_plan_owner(
        self,
        it: PlanOwner,
        kind: Kind,
        held: bool,
        decommission: RecordedDecommission | None = None,
        policy: RecordedPolicy | None = None,
    ) -> None:
        part = next(iter(self._store.parts(it.uid)), None)
        name = it.spec.cluster_ref.name
        known = self._store.kafka_of((it.namespace, name)) or (part.spec.cluster_id if part else None)
        written = ReassignmentRecordSpec(
            cluster_ref=RecordedClusterRef(namespace=it.namespace, name=name),
            cluster_id=known if policy else None,
            owner_kind=OwnerKind(kind),
            part=0,
            decommission=decommission,
            policy=policy,
        )
        await self._write(Owner(kind, it.namespace, it.name, it.uid), part, written, held)

    async def take_over(self, cluster: DeclaredCluster, other: str) -> None:
        """Move the throttles set for another KafkaCluster, by its uid, into the record of this one, there first.

        Nothing else is needed of the other one: it may be gone, or unreadable.
        """
        part = self._readable_part(other)
        if part and part.spec.throttle:
            own = self._store.throttle(cluster.metadata.uid)
            await self.write_throttle(cluster, with_taken_over(own, part.spec.throttle))
            await self._write(owner_of(part.obj), part, part.spec.model_copy(update={"throttle": None}), False)
            await self.release(other)

    def _readable_part(self, cluster: str) -> Part | None:
        """Return the record of a KafkaCluster, by its uid; None where there is none.

        Raises ReassignError (CannotBeRead) where this version cannot read it.
        """
        part = next(iter(self._store.parts(cluster)), None)
        if part is None and self._store.has_record(cluster):
            raise ReassignError(Reason.CANNOT_BE_READ, "its record cannot be read: run the version that wrote it")
        return part

    async def _write_cluster(self, cluster: DeclaredCluster, **changes: object) -> None:
        meta = cluster.metadata
        part = self._readable_part(meta.uid)
        ref = RecordedClusterRef(namespace=meta.namespace, name=meta.name)
        owner = Owner(Kind.KAFKA_CLUSTER, meta.namespace, meta.name, meta.uid)
        before = part.spec if part else ReassignmentRecordSpec(cluster_ref=ref, part=0)
        spec = before.model_copy(update=changes)
        if spec != before or spec.throttle:
            await self._write(owner, part, spec, spec.throttle is not None)

    async def look_for_owners(self, key: ClusterKey, now: datetime) -> None:
        """Ask the API server for the owners that are not known, and have a record that may need undoing.

        What a KafkaCluster that is gone has recorded of throttles waits for another one for the same brokers.
        """
        for owner in self._store.unowned(key):
            if owner.namespace in self._store.unreadable_namespaces:
                continue
            named = {"kind": str(owner.kind), "resource": f"{owner.namespace}/{owner.name}", "generation": None}
            try:
                found = await refresh(self._kube, self._store, *owner)
            except ApiServerError:
                raise
            except ReassignError as error:  # such as in a namespace without a RoleBinding: the others go on
                log.warning("cannot be asked for", **named, error=error.message)
                continue
            if found:
                continue
            if owner.kind is Kind.BROKER_DECOMMISSION:
                log.warning("gone without its finalizer", **named)
                await self.release(owner.uid)
            elif owner.kind is not Kind.KAFKA_CLUSTER:
                log.warning("gone without its finalizer", **named)
                self._store.is_gone(owner, now)
            elif self._is_forsaken(owner.uid):
                log.warning("throttles left", **named, where=where_throttled(self._store.throttle(owner.uid)))
                await self.release(owner.uid)

    def _is_forsaken(self, cluster: str) -> bool:
        """Whether nothing restores what a KafkaCluster that is gone has set: no other one is there for its brokers.

        Which brokers these were is not known where an earlier version made the record, and never reached them again.
        """
        peers, cluster_id, now = self._store.peers(), self._store.cluster_id(cluster), self._store.clock()
        same = [p for p in peers if cluster_id is not None and p.cluster_id == cluster_id]
        others = any(p.unready != Reason.CLUSTER_NOT_FOUND for p in same)
        return not (others or any(p.uid == cluster and now - p.since < UNDO_WAITS_SECONDS for p in peers))

    async def release(self, uid: str) -> None:
        """Remove our finalizer from the parts of an owner: nothing in them has to be undone."""
        for part in self._store.parts(uid):
            if part.held:
                await self._learn(part, self._kube.remove_finalizer(part.obj))

    async def _write(self, owner: Owner, part: Part | None, spec: ReassignmentRecordSpec, held: bool) -> None:
        if part and part.spec == spec and (part.held or not held):
            return
        if part is None:
            await self._create(_made(owner, spec, held))
            return
        if await self._learn(part, self._kube.write_record(part.obj, spec.wire(), held=held)) is None:
            raise ConflictError(f"the record {part.obj['metadata']['name']} is gone")

    async def _learn(self, part: Part, write: Awaitable[Object | None]) -> Object | None:
        """Take over what a write to a part answers, and return it; after a conflict ask for the part."""
        meta = part.obj["metadata"]
        try:
            written = await write
        except ConflictError:
            kind = Kind.REASSIGNMENT_RECORD
            await refresh(self._kube, self._store, kind, meta["namespace"], meta["name"], meta["uid"])
            raise
        self._store.learn(meta["uid"], written)
        return written

    async def _create(self, obj: Object) -> None:
        try:
            self._store.put(await self._kube.create(obj))
        except ConflictError:  # the answer to an earlier request was lost
            meta = obj["metadata"]
            if found := await self._kube.get(Kind.REASSIGNMENT_RECORD, meta["namespace"], meta["name"]):
                self._store.put(found)
            raise


def _made(owner: Owner, spec: ReassignmentRecordSpec, held: bool) -> Object:
    reference = {"apiVersion": API_VERSION, "kind": owner.kind.value, "name": owner.name, "uid": owner.uid}
    return {
        "apiVersion": API_VERSION,
        "kind": Kind.REASSIGNMENT_RECORD.value,
        "metadata": {
            "name": f"{owner.uid}-{spec.part}",
            "namespace": owner.namespace,
            "ownerReferences": [reference],
            "finalizers": [FINALIZER] if held else [],
        },
        "spec": spec.wire(),
    }
