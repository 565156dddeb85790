"""What the watches and our own writes brought: the newest version known of each object.

Of a status only what we wrote counts. Where another client wiped it, or changed its record, the known one stays until
it is written back. Where none was known, of a record that another client wrote counts what holds nothing: it can only
keep partitions from being moved again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

import structlog
from pydantic import ValidationError

from reassign.api.common import FINALIZER, is_written
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL, ReassignmentPlan
from reassign.core.checks.size import too_large
from reassign.core.model.problem import Problem
from reassign.core.model.record import ACTIVE
from reassign.core.model.resource import Resource
from reassign.core.plans.model import Plan
from reassign.errors import Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, Object, cluster_key
from reassign.kube.managed import finalizer_is_ours, record_is_foreign
from reassign.text import first_error

log = structlog.get_logger()

T = TypeVar("T")


class Unreadable(NamedTuple):
    """An object that this version of the operator cannot read, with what says why."""

    obj: Object
    problem: Problem

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


def version(obj: Object) -> int:
    """Resource versions of one object can be compared as numbers; a larger one is newer."""
    return int(obj["metadata"]["resourceVersion"])


class Store:
    """The objects of our kinds by uid, which no two objects of any kind share."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._overwritten: set[str] = set()
        self._parsed: dict[str, tuple[int, Resource | Problem]] = {}
        self._parsed_clusters: dict[str, tuple[int, KafkaCluster | Problem]] = {}
        self._parsed_plans: dict[str, tuple[int, Plan | Problem]] = {}

    def put(self, obj: Object) -> bool:
        """Take over an object; whether that is news."""
        uid = obj["metadata"]["uid"]
        known = self._objects.get(uid)
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            self.drop(uid)  # the API server has removed it, whatever the watch says later
            return known is not None
        if known is not None and version(known) >= version(obj):
            return False
        if _overwritten(obj, known):
            obj = obj | {"status": known.get("status", {}) if known else _believed(obj)}
            self._overwritten.add(uid)
        else:
            self._overwritten.discard(uid)
        self._objects[uid] = obj
        return True

    def drop(self, uid: str) -> None:
        self._objects.pop(uid, None)
        self._overwritten.discard(uid)
        self._parsed.pop(uid, None)
        self._parsed_clusters.pop(uid, None)
        self._parsed_plans.pop(uid, None)

    def uids(self) -> frozenset[str]:
        return frozenset(self._objects)

    def take_over(self, objects: Sequence[Object], known: Collection[str]) -> None:
        """Take over a list of all objects; what was `known` before the listing began and is not in it is gone."""
        for obj in objects:
            self.put(obj)
        for uid in set(known) - {obj["metadata"]["uid"] for obj in objects}:
            self.drop(uid)

    def get(self, uid: str) -> Object | None:
        return self._objects.get(uid)

    def clusters(self) -> list[Object]:
        return self._all(Kind.KAFKA_CLUSTER)

    def cluster(self, key: ClusterKey) -> Object | None:
        return max((c for c in self.clusters() if cluster_key(c) == key), key=version, default=None)

    def parse_cluster(self, cluster: Object) -> KafkaCluster:
        """A KafkaCluster; raises ReassignError (CannotBeRead) for what this version of the operator cannot read."""
        parsed = _once(self._parsed_clusters, KafkaCluster.parse, cluster)
        if isinstance(parsed, Problem):
            raise ReassignError(parsed.reason, parsed.message)
        return parsed

    def readable_clusters(self) -> list[KafkaCluster]:
        """Those that this version of the operator can read: the others are not served."""
        parsed = (_once(self._parsed_clusters, KafkaCluster.parse, obj) for obj in self.clusters())
        return [cluster for cluster in parsed if isinstance(cluster, KafkaCluster)]

    def resource(self, uid: str) -> Resource | None:
        """A PartitionReassignment, parsed, if it is there."""
        obj = self.get(uid)
        return self._readable(obj) if obj else None

    def resources(self, key: ClusterKey) -> list[Resource]:
        """The PartitionReassignments that refer to a cluster; not those that only others still hold back."""
        return [resource for resource in map(self._readable, self._referring(key)) if resource]

    def unreadable(self, key: ClusterKey) -> list[Unreadable]:
        """Those of them that cannot be read."""
        referring = ((obj, _once(self._parsed, _parse, obj)) for obj in self._referring(key))
        return [Unreadable(obj, parsed) for obj, parsed in referring if isinstance(parsed, Problem)]

    def overwritten(self, key: ClusterKey) -> list[Resource]:
        """Those whose status another client has changed, each with the one that counts."""
        return [resource for resource in self.resources(key) if resource.uid in self._overwritten]

    def plan(self, uid: str) -> Plan | None:
        """A ReassignmentPlan, parsed, if it is there."""
        obj = self.get(uid)
        if obj is None:
            return None
        parsed = _once(self._parsed_plans, _parse_plan, obj)
        return parsed if isinstance(parsed, Plan) else None

    def plans(self, key: ClusterKey) -> list[Plan | Unreadable]:
        """The ReassignmentPlans that refer to a cluster; not those that only others still hold back."""
        referring = self._referring(key, Kind.REASSIGNMENT_PLAN)
        all_parsed = ((obj, _once(self._parsed_plans, _parse_plan, obj)) for obj in referring)
        return [parsed if isinstance(parsed, Plan) else Unreadable(obj, parsed) for obj, parsed in all_parsed]

    def waves(self, plan: Plan) -> list[Resource | Unreadable]:
        """The PartitionReassignments that are labelled as waves of a plan, by name."""
        key = plan.spec.cluster_ref.namespace or plan.namespace, plan.spec.cluster_ref.name
        labelled = [obj for obj in self._referring(key) if _is_wave(obj, plan)]
        all_parsed = ((obj, _once(self._parsed, _parse, obj)) for obj in labelled)
        waves = [parsed if isinstance(parsed, Resource) else Unreadable(obj, parsed) for obj, parsed in all_parsed]
        return sorted(waves, key=lambda wave: wave.name)

    def referred(self) -> set[ClusterKey]:
        """The clusters that PartitionReassignments and ReassignmentPlans refer to, whether they exist or not."""
        return {cluster_key(obj) for kind in Kind if kind is not Kind.KAFKA_CLUSTER for obj in self._all(kind)}

    def _referring(self, key: ClusterKey, kind: Kind = Kind.PARTITION_REASSIGNMENT) -> list[Object]:
        return [obj for obj in self._all(kind) if cluster_key(obj) == key and _counts(obj)]

    def _all(self, kind: Kind) -> list[Object]:
        return [obj for obj in self._objects.values() if obj["kind"] == kind]

    def _readable(self, obj: Object) -> Resource | None:
        parsed = _once(self._parsed, _parse, obj)
        return None if isinstance(parsed, Problem) else parsed


def _counts(obj: Object) -> bool:
    """Whether an object is there for us: not one that only others still hold back."""
    return has_finalizer(obj) or not obj["metadata"].get("deletionTimestamp")


def _is_wave(obj: Object, plan: Plan) -> bool:
    meta = obj["metadata"]
    return meta["namespace"] == plan.namespace and (meta.get("labels") or {}).get(PLAN_UID_LABEL) == plan.uid


def full_name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def has_finalizer(obj: Object) -> bool:
    return FINALIZER in obj["metadata"].get("finalizers", ())


def holds(obj: Object) -> bool:
    """Whether a PartitionReassignment, readable or not, has something in flight, or may have."""
    status = obj.get("status", {})
    return not is_written(status) or _holds(status.get("record", ()))


def _once(known: dict[str, tuple[int, T | Problem]], parse: Callable[[Object], T], obj: Object) -> T | Problem:
    """An object parsed, each version once; what cannot be read of it is logged once, too."""
    uid = obj["metadata"]["uid"]
    if uid not in known or known[uid][0] != version(obj):
        parsed: T | Problem
        try:
            parsed = parse(obj)
        except ValidationError as error:
            parsed = Problem(Reason.CANNOT_BE_READ, _cannot_read(error))
            log.error("cannot be read", resource=full_name(obj), error=parsed.message)
        known[uid] = (version(obj), parsed)
    return known[uid][1]


def _cannot_read(error: ValidationError) -> str:
    advice = "correct it" if error.errors()[0]["loc"][0] == "spec" else "run the version that wrote it"
    return f"this version of the operator cannot read {first_error(error)}: {advice}; until then it is left alone"


def _overwritten(obj: Object, known: Object | None) -> bool:
    """Whether another client wiped a status or changed its record; what we have once written we never remove.

    Of an object that is new to this process, a record that holds nothing counts, by any writer.
    """
    if obj["kind"] != Kind.PARTITION_REASSIGNMENT:
        return False  # what a KafkaCluster must not lose is the record of its throttles, which comes and goes
    status, before = obj.get("status", {}), (known or {}).get("status", {})
    if (is_written(before) and not is_written(status)) or ("record" in before and "record" not in status):
        return True
    record = status.get("record")
    news = record != before.get("record") if known else _holds(record or ())
    return news and record_is_foreign(obj)


def _believed(obj: Object) -> Object:
    """The status of an object that is new to this process, and whose record another client wrote."""
    record = [
        topic | {"partitions": kept}
        for topic in obj["status"]["record"]
        if (kept := [partition for partition in topic["partitions"] if partition["state"] not in ACTIVE])
    ]
    return {"record": record} if record else {}


def _holds(record: Sequence[Object]) -> bool:
    return any(partition["state"] in ACTIVE for topic in record for partition in topic["partitions"])


def _parse(obj: Object) -> Resource:
    parsed = PartitionReassignment.parse(obj)
    meta = parsed.metadata
    assert meta.creation_timestamp is not None
    return Resource(
        uid=meta.uid,
        version=version(obj),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=parsed.spec,
        status=parsed.status,
        has_finalizer=FINALIZER in meta.finalizers,
        finalizer_is_ours=finalizer_is_ours(obj),
        deleted=meta.deletion_timestamp,
        unsupported=too_large(obj, parsed.spec),
        plan=_plan_of(obj),
    )


def _plan_of(obj: Object) -> str | None:
    labels = obj["metadata"].get("labels") or {}
    return labels.get(PLAN_LABEL) if PLAN_UID_LABEL in labels else None


def _parse_plan(obj: Object) -> Plan:
    parsed = ReassignmentPlan.parse(obj)
    meta = parsed.metadata
    return Plan(
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
