"""Reading: from objects of the API server to values of the core, each version once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import structlog
from pydantic import ValidationError

from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.common import FINALIZER
from reassign.api.partition_reassignment import (
    ClusterRef,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
)
from reassign.api.reassignment_plan import PLAN_UID_LABEL, ReassignmentPlan
from reassign.api.reassignment_policy import ReassignmentPolicy
from reassign.api.reassignment_record import RecordedDecommission, RecordedPolicy
from reassign.controller.objects.packing import Packed, whole
from reassign.controller.objects.part import Part, owner_of
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PolicyResource
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, active
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import TopicPartition
from reassign.core.parse import parse
from reassign.core.plans.model import PlanResource
from reassign.errors import Reason
from reassign.kube.client import ClusterKey, Kind, Object, cluster_key, has_finalizer
from reassign.text import first_error

log = structlog.get_logger()

T = TypeVar("T")

IDENTIFYING = frozenset({"plannedInputHash", "staleDigest", "waves"})
"""Fields of a status by which the operator knows the waves of a plan."""


class Unreadable(NamedTuple):
    """An object that this version of the operator cannot read, with what says why."""

    obj: Object
    problem: Problem
    holds: bool = False
    """Whether it is a PartitionReassignment that may have something in flight."""

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid

    @property
    def namespace(self) -> str:
        namespace: str = self.obj["metadata"]["namespace"]
        return namespace

    @property
    def name(self) -> str:
        name: str = self.obj["metadata"]["name"]
        return name

    @property
    def generation(self) -> int:
        generation: int = self.obj["metadata"]["generation"]
        return generation

    @property
    def brokers(self) -> frozenset[int]:
        """The ids in its spec.brokers, where it is a BrokerDecommission, as far as they are integers."""
        spec = self.obj.get("spec")
        brokers = spec.get("brokers") if isinstance(spec, dict) else None
        return frozenset(it for it in brokers if type(it) is int) if isinstance(brokers, list) else frozenset()


def version(obj: Object) -> int:
    """Return the resourceVersion as a number; of one object a larger one is newer."""
    return int(obj["metadata"]["resourceVersion"])


def wish(obj: Object) -> tuple[object, ...]:
    """Return a version of what users want of an object: equal as long as no client but us has written it."""
    meta = obj["metadata"]
    return meta["uid"], meta["generation"], bool(meta.get("deletionTimestamp"))


def full_name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def named(obj: Object) -> dict[str, Any]:
    """Return what a line of the log says of an object that it is about."""
    return {
        "kafka_cluster": "/".join(cluster_key(obj)),
        "kind": str(obj["kind"]),
        "resource": full_name(obj),
        "generation": obj["metadata"].get("generation"),
    }


def once(known: dict[str, tuple[int, T | Problem]], parse: Callable[[Object], T], obj: Object) -> T | Problem:
    """Parse an object, each version once; what cannot be read of it is logged once, too."""
    if isinstance(obj, Packed):
        return parse(obj)  # it can be read, and what was read of it takes room
    uid = obj["metadata"]["uid"]
    if uid not in known or known[uid][0] != version(obj):
        known[uid] = (version(obj), _parsed(parse, obj))
    return known[uid][1]


def _parsed(parse: Callable[[Object], T], obj: Object) -> T | Problem:
    """Parse an object, without fields of its status that cannot be read: users who may write them could forge one.

    The fields by which the operator knows the waves of a plan must not be lost so: see `IDENTIFYING`.
    """
    try:
        return parse(obj)
    except Exception as error:
        status = obj.get("status") or {}
        unread = _unread_fields(error)
        if unread and unread <= status.keys() - IDENTIFYING:
            log.warning("status is not readable", **named(obj), fields=sorted(unread))
            return _parsed(parse, {**obj, "status": {name: status[name] for name in status.keys() - unread}})
        problem = Problem(Reason.CANNOT_BE_READ, _cannot_read(error))
        bug = None if isinstance(error, ValidationError) else error
        log.error("cannot be read", **named(obj), error=problem.message, exc_info=bug)
        return problem


def _unread_fields(error: Exception) -> set[str]:
    """Return the fields of a status that cannot be read, where all else can; otherwise none."""
    places = [e["loc"] for e in error.errors()] if isinstance(error, ValidationError) else []
    of_status = all(place[0] == "status" and len(place) > 1 for place in places)
    return {str(place[1]) for place in places} if of_status else set()


def _cannot_read(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"a bug of the operator ({type(error).__name__}) keeps it from being read; its log has the details"
    advice = "correct it" if error.errors()[0]["loc"][0] == "spec" else "run the version that wrote it"
    return f"this version of the operator cannot read {first_error(error)}: {advice}; until then it is left alone"


def joined(resource: Resource, parts: Sequence[Part]) -> Resource:
    """Return a resource with its record. That is lost where parts are missing, or where only status tells of it."""
    record: dict[TopicPartition, Entry] = {}
    for part in parts:
        record |= part.record
    numbers, said = [part.spec.part for part in parts], parts[0].spec.parts if parts else None
    return replace(resource, record=record, record_lost=lost(resource.has_moved, numbers, said))


def lost(has_moved: bool, parts: Sequence[int], said: int | None) -> bool:
    """Whether parts of a record are missing, given the numbers of those that are there, in order.

    `said` is how many there are by the first of them. A part more than that was being added.
    """
    return [*parts] != [*range(max(len(parts), said or 0))] if parts else has_moved


def packed(obj: Object, known: Object | None = None) -> Object:
    """Pack an object if it has ended; return the one that is `known` where it is the same."""
    if isinstance(obj, Packed) or not _has_ended(obj):
        return obj
    if isinstance(known, Packed) and version(known) == version(obj) and known.whole() == obj:
        return known
    try:
        if obj["kind"] == Kind.REASSIGNMENT_RECORD:
            return obj if active(Part.parse(obj).record) else Packed(obj)
        settled = Settled.of(parse_resource(obj))
    except Exception:  # `once` says why
        return obj
    return Packed(obj, settled) if settled else obj


def _has_ended(obj: Object) -> bool:
    """Whether an object seems to have ended, before it is read."""
    meta = obj["metadata"]
    if has_finalizer(obj) or meta.get("deletionTimestamp"):
        return False
    if obj["kind"] == Kind.REASSIGNMENT_RECORD:
        return "topics" in obj["spec"]
    status = obj.get("status") or {}
    ended = status.get("completionTime") and status.get("observedGeneration") == meta.get("generation")
    return bool(obj["kind"] == Kind.PARTITION_REASSIGNMENT and ended)


def left_of(parts: Sequence[Part], since: datetime) -> tuple[ClusterKey, Resource]:
    """Return the cluster and the record of a PartitionReassignment that is gone, as if it were being deleted."""
    first, owner = parts[0], owner_of(parts[0].obj)
    created = datetime.fromisoformat(first.obj["metadata"]["creationTimestamp"])
    ref = first.spec.cluster_ref
    spec = PartitionReassignmentSpec.model_construct(
        cluster_ref=ClusterRef(name=ref.name, namespace=ref.namespace),
        partitions=(),
        deletion_policy=first.spec.deletion_policy,
        deletion_deadline_seconds=first.spec.deletion_deadline_seconds,
    )
    gone = Resource(
        uid=owner.uid,
        version=version(first.obj),
        namespace=owner.namespace,
        name=owner.name,
        generation=0,
        created=created,
        spec=spec,
        status=PartitionReassignmentStatus(),
        has_finalizer=True,
        owner_gone=True,
        deleted=since,
    )
    ours = [] if any(part.copied for part in parts) else parts
    return (ref.namespace, ref.name), joined(gone, ours)


def parse_resource(obj: Object) -> Resource:
    """Parse a PartitionReassignment, packed or not, with nothing of its record."""
    return parse(whole(obj))


def parse_plan(obj: Object) -> PlanResource:
    parsed = ReassignmentPlan.parse(obj)
    meta = parsed.metadata
    return PlanResource(
        uid=meta.uid,
        version=version(obj),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        spec=parsed.spec,
        status=parsed.status,
        has_finalizer=FINALIZER in meta.finalizers,
        deleted=meta.deletion_timestamp is not None,
    )


def parse_decommission(obj: Object) -> DecommissionResource:
    """Parse a BrokerDecommission, with nothing of its record."""
    parsed = BrokerDecommission.parse(obj)
    meta = parsed.metadata
    assert meta.creation_timestamp is not None
    return DecommissionResource(
        uid=meta.uid,
        version=version(obj),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=parsed.spec,
        status=parsed.status,
        record=RecordedDecommission(),
        has_finalizer=FINALIZER in meta.finalizers,
        deleted=meta.deletion_timestamp,
    )


def parse_policy(obj: Object) -> PolicyResource:
    """Parse a ReassignmentPolicy, with nothing of its record."""
    parsed = ReassignmentPolicy.parse(obj)
    meta = parsed.metadata
    assert meta.creation_timestamp is not None
    return PolicyResource(
        uid=meta.uid,
        version=version(obj),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=parsed.spec,
        status=parsed.status,
        record=RecordedPolicy(),
        deleted=meta.deletion_timestamp,
    )


def controller_of(obj: Object) -> str | None:
    """Return the uid of the object that controls another one, if one does."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in references if owner.get("controller")), None)


def differs(obj: Object, known: Object) -> bool:
    """Whether two objects of one version are not the same one: each is of another history."""
    if obj is known or version(obj) != version(known):
        return False
    compared = ("generation", "deletionTimestamp", "finalizers")
    return whole(obj)["spec"] != whole(known)["spec"] or any(
        obj["metadata"].get(f) != known["metadata"].get(f) for f in compared
    )


def place(obj: Object) -> tuple[Kind, ClusterKey]:
    return Kind(obj["kind"]), cluster_key(obj)


def in_order(parts: Sequence[Part | Problem]) -> list[Part]:
    """Return the parts that can be read, by number."""
    return sorted((part for part in parts if isinstance(part, Part)), key=lambda part: part.spec.part)


def counts(obj: Object) -> bool:
    """Whether an object is there for us: not one that only others still hold back."""
    return has_finalizer(obj) or not obj["metadata"].get("deletionTimestamp")


def is_wave(obj: Object, plan: PlanResource) -> bool:
    meta = obj["metadata"]
    return meta["namespace"] == plan.namespace and (meta.get("labels") or {}).get(PLAN_UID_LABEL) == plan.uid
