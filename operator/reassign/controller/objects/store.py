"""What the watches and our own writes brought: the newest version known of each object.

A PartitionReassignment is read together with its ReassignmentRecords, which have its uid.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller.objects.packing import Packed
from reassign.controller.objects.part import Owner, Part, has_our_name, owner_of
from reassign.controller.objects.reading import (
    Unreadable,
    counts,
    differs,
    in_order,
    is_wave,
    joined,
    left_of,
    lost,
    named,
    once,
    packed,
    parse_decommission,
    parse_plan,
    parse_policy,
    parse_resource,
    place,
    version,
)
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PolicyResource, begun_anew
from reassign.core.duplicates import Peer, standing
from reassign.core.model.permission import Namespaces
from reassign.core.model.problem import Name, Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.model import PlanResource
from reassign.errors import Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key, has_finalizer

log = structlog.get_logger()

T = TypeVar("T")


class _Served(NamedTuple):
    """How a KafkaCluster is served; the fields are those of `Peer`."""

    unready: str
    keeps: bool
    since: float
    cordons: frozenset[int] = frozenset()


class Store:
    """The objects of our kinds by uid, which no two objects of any kind share."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._began = clock()
        self._served: dict[str, _Served] = {}
        """How KafkaClusters are served, by their uids."""
        self._objects: dict[str, Object] = {}
        self._referring: dict[tuple[Kind, ClusterKey], dict[str, Object]] = {}
        """The same by kind and cluster."""
        self._parts: dict[str, dict[str, Object]] = {}
        """The ReassignmentRecords of an owner's uid, by their own."""
        self._gone: dict[str, datetime] = {}
        """The uids of owners that a GET did not find, and since when."""
        self._parsed: dict[str, tuple[int, Resource | Problem]] = {}
        self._parsed_parts: dict[str, tuple[int, Part | Problem]] = {}
        self._joined: dict[str, Resource | Settled | Problem] = {}
        self._parsed_clusters: dict[str, tuple[int, KafkaCluster | Problem]] = {}
        self._parsed_plans: dict[str, tuple[int, PlanResource | Problem]] = {}
        self._parsed_decommissions: dict[str, tuple[int, DecommissionResource | Problem]] = {}
        self._parsed_policies: dict[str, tuple[int, PolicyResource | Problem]] = {}
        self.unreadable_namespaces = Namespaces()
        """Watched namespaces that may not be read now: what is known of them stays."""
        self.unlisted: set[str] = set()
        """Those that this process has never read, so that nothing is known of them."""

    def put(self, obj: Object) -> bool:
        """Take over an object; return whether that is news."""
        uid = obj["metadata"]["uid"]
        known = self._objects.get(uid)
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            self.drop(uid)  # the API server has removed it, whatever the watch says later
            return known is not None
        if known is not None and version(known) >= version(obj):
            return False
        obj = packed(obj)
        self._forget(uid)
        self._objects[uid] = obj
        self._referring.setdefault(place(obj), {})[uid] = obj
        if obj["kind"] == Kind.REASSIGNMENT_RECORD and has_our_name(obj):
            owner = owner_of(obj)
            self._parts.setdefault(owner.uid, {})[uid] = obj
            self._joined.pop(owner.uid, None)
        return True

    def drop(self, uid: str) -> None:
        obj = self._forget(uid)
        if obj is not None and uid in self._served:
            self._served[uid] = _Served(str(Reason.CLUSTER_NOT_FOUND), False, self.clock())
        if obj is not None and obj["kind"] == Kind.REASSIGNMENT_RECORD:
            owner = owner_of(obj).uid
            self._joined.pop(owner, None)
            self._parts.get(owner, {}).pop(uid, None)
            if not self._parts.get(owner):
                self._parts.pop(owner, None)
                self._gone.pop(owner, None)
        for gone in [uid for uid in self._served if uid not in self._objects and uid not in self._parts]:
            del self._served[gone]

    def _forget(self, uid: str) -> Object | None:
        """Remove an object and what was read of it; return the object as it was."""
        obj = self._objects.pop(uid, None)
        for parsed in (
            self._parsed,
            self._parsed_clusters,
            self._parsed_plans,
            self._parsed_decommissions,
            self._parsed_policies,
            self._parsed_parts,
            self._joined,
        ):
            parsed.pop(uid, None)
        if obj is not None:
            del self._referring[place(obj)][uid]
            if not self._referring[place(obj)]:
                del self._referring[place(obj)]
        return obj

    def learn(self, uid: str, obj: Object | None) -> None:
        """Take over what the API server answered to a write; None says that the object is gone."""
        if obj is None:
            self.drop(uid)
        else:
            self.put(obj)

    def uids(self) -> frozenset[str]:
        return frozenset(self._objects)

    def versions(self, namespace: str = "") -> dict[str, int]:
        """Return the known version of each object, or of each in one namespace, by uid."""
        objects = self._objects.items()
        return {uid: version(obj) for uid, obj in objects if namespace in ("", obj["metadata"]["namespace"])}

    def version_of(self, uid: str) -> int | None:
        obj = self._objects.get(uid)
        return version(obj) if obj else None

    def take_over(self, objects: Sequence[Object], known: Mapping[str, int]) -> None:
        """Take over a list of all objects; what was `known` before the listing began and is not in it is gone."""
        for obj in objects:
            self.read(obj, known.get(obj["metadata"]["uid"]))
        for uid in set(known) - {obj["metadata"]["uid"] for obj in objects}:
            self.drop(uid)

    def read(self, obj: Object, known: int | None) -> None:
        """Take over what the API server answered, be it older than the version `known` before it was asked.

        Then etcd was restored from a backup, and counts its versions once more from there.
        """
        now = self._objects.get(obj["metadata"]["uid"])
        if now is not None and known is not None and (version(obj) < known or differs(obj, now)):
            log.warning("etcd was restored: an older version is taken over", **named(obj), known=known)
            self.drop(obj["metadata"]["uid"])
        self.put(obj)

    def get(self, uid: str) -> Object | None:
        return self._objects.get(uid)

    def clusters(self) -> list[Object]:
        found = (objects for (kind, _), objects in self._referring.items() if kind is Kind.KAFKA_CLUSTER)
        return [obj for objects in found for obj in objects.values()]

    def cluster(self, key: ClusterKey) -> Object | None:
        named = self._referring.get((Kind.KAFKA_CLUSTER, key), {})
        return max(named.values(), key=version, default=None)

    def parse_cluster(self, cluster: Object) -> KafkaCluster:
        """Parse a KafkaCluster; raises ReassignError (CannotBeRead) where this version cannot read it."""
        parsed = self._parse_cluster(cluster)
        if isinstance(parsed, Problem):
            raise ReassignError(parsed.reason, parsed.message)
        return parsed

    def peers(self) -> list[Peer]:
        """Return the KafkaClusters, readable or not, and those that are gone and left throttles in their records."""
        left = (obj for uid, parts in self._parts.items() if uid not in self._objects for obj in parts.values())
        held = ((owner_of(obj), obj) for obj in left if has_finalizer(obj))
        gone = [self._peer(owner, obj) for owner, obj in held if owner.kind is Kind.KAFKA_CLUSTER]
        return gone + [self._peer(Owner.of(obj), obj) for obj in self.clusters()]

    def _peer(self, owner: Owner, obj: Object) -> Peer:
        """Return how a KafkaCluster is served, by its own object or its record."""
        served = self._served.get(owner.uid, _Served(str(Reason.CONNECTING), False, self._began))
        cluster = self._parse_cluster(obj) if owner.uid in self._objects else None
        allowed = cluster.spec.allowed_namespaces if isinstance(cluster, KafkaCluster) else ()
        readers = frozenset({owner.namespace, *(namespace.name for namespace in allowed)})
        return Peer(
            owner.uid,
            Name(f"{owner.namespace}/{owner.name}", namespaces=readers, elsewhere=True),
            (datetime.fromisoformat(obj["metadata"]["creationTimestamp"]), owner.uid),
            self.cluster_id(owner.uid),
            served.unready if owner.uid in self._objects else str(Reason.CLUSTER_NOT_FOUND),
            served.since,
            self.throttle(owner.uid),
            served.keeps,
            self.has_record(owner.uid) and not self.parts(owner.uid),
            served.cordons,
        )

    def note_served(
        self, uid: str, problem: Problem | None, *, keeps: bool = False, cordons: frozenset[int] = frozenset()
    ) -> None:
        """Note that a KafkaCluster, by its uid, is Ready now, or why it is not.

        Note also whether it keeps its throttles, and which brokers it is to have cordoned.
        """
        unready = str(problem.reason) if problem else ""
        before = self._served.get(uid)
        stays = before is not None and standing(before.unready, before.keeps) == standing(unready, keeps)
        self._served[uid] = _Served(unready, keeps, before.since if before and stays else self.clock(), cordons)

    def _parse_cluster(self, obj: Object) -> KafkaCluster | Problem:
        return once(self._parsed_clusters, KafkaCluster.parse, obj)

    def resource(self, uid: str) -> Resource | None:
        """Return a PartitionReassignment, if it is there and can be read."""
        found = self.known(uid)
        read = self._whole(self._objects[uid]) if isinstance(found, Settled) else found
        return read if isinstance(read, Resource) else None

    def known(self, uid: str) -> Resource | Settled | None:
        """Return the PartitionReassignment, or its `Settled` summary where only that is kept."""
        obj = self.get(uid)
        found = self._read(obj) if obj else None
        return None if isinstance(found, Problem) else found

    def settled(self, key: ClusterKey) -> list[Settled]:
        """Return the summaries of the settled PartitionReassignments that refer to a cluster."""
        return [found for found in map(self._read, self._counting(key)) if isinstance(found, Settled)]

    def resources(self, key: ClusterKey) -> list[Resource]:
        """Return the PartitionReassignments that refer to a cluster and are not settled.

        One whose deletion only other clients hold back is left out. One that went without us is there as its record.
        """
        readable = [found for found in map(self._read, self._counting(key)) if isinstance(found, Resource)]
        left = (left_of(self.parts(uid), since) for uid, since in self._gone.items() if self._held(uid))
        return readable + [resource for of, resource in left if of == key]

    def unreadable(self, key: ClusterKey) -> list[Unreadable]:
        """Return the PartitionReassignments that refer to a cluster and cannot be read."""
        referring = ((obj, self._read(obj)) for obj in self._counting(key))
        return [self._unreadable(obj, parsed) for obj, parsed in referring if isinstance(parsed, Problem)]

    def parts(self, owner: str) -> list[Part]:
        """Return the parts of the record of an owner, by its uid, that can be read."""
        return in_order(self._read_parts(owner))

    def has_record(self, owner: str) -> bool:
        """Whether there is a record of an owner, by its uid, readable or not."""
        return owner in self._parts

    def throttle(self, cluster: str) -> RecordedConfigs | None:
        """Return the record of the throttles that are set on a KafkaCluster, by its uid."""
        return next((part.spec.throttle for part in self.parts(cluster)), None)

    def cluster_id(self, cluster: str) -> str | None:
        """Return the recorded id of the Kafka cluster that a KafkaCluster stands for, by its uid."""
        return next((obj["spec"].get("clusterId") for obj in self._parts.get(cluster, {}).values()), None)

    def kafka_of(self, key: ClusterKey) -> str | None:
        """Return the recorded id of the Kafka cluster that the KafkaCluster of that name stands for."""
        obj = self.cluster(key)
        return self.cluster_id(obj["metadata"]["uid"]) if obj else None

    def foreign_cancels(self, cluster: str) -> bool:
        """Whether cancels of other clients' moves may be under way for a KafkaCluster, by its uid."""
        return any(part.spec.foreign_cancels for part in self.parts(cluster))

    def unowned(self, key: ClusterKey) -> set[Owner]:
        """Return the owners that are not known, and have a record of what may be in flight, or throttled."""
        unknown = (parts for uid, parts in self._parts.items() if uid not in self._objects and uid not in self._gone)
        records = (obj for parts in unknown for obj in parts.values() if has_finalizer(obj) and cluster_key(obj) == key)
        return set(map(owner_of, records))

    def is_gone(self, owner: Owner, since: datetime) -> None:
        """Remember that a GET found the owner of a record to be gone."""
        self._gone[owner.uid] = since

    def plan(self, uid: str) -> PlanResource | None:
        """Return a ReassignmentPlan, if it is there and can be read."""
        if (obj := self.get(uid)) is None:
            return None
        parsed = once(self._parsed_plans, parse_plan, obj)
        return parsed if isinstance(parsed, PlanResource) else None

    def plans(self, key: ClusterKey) -> list[PlanResource | Unreadable]:
        """Return the ReassignmentPlans that refer to a cluster, without those that only other clients hold back."""
        referring = self._counting(key, Kind.REASSIGNMENT_PLAN)
        all_parsed = ((obj, once(self._parsed_plans, parse_plan, obj)) for obj in referring)
        return [parsed if isinstance(parsed, PlanResource) else Unreadable(obj, parsed) for obj, parsed in all_parsed]

    def plans_in(self, namespace: str) -> list[PlanResource]:
        """Return the ReassignmentPlans in a namespace that can be read, whichever clusters they refer to."""
        return [plan for uid in self._plans_in(namespace).values() if (plan := self.plan(uid))]

    def unreadable_plans(self, namespace: str) -> dict[str, str]:
        """Return the uids of the ReassignmentPlans in a namespace that cannot be read, by name."""
        return {name: uid for name, uid in self._plans_in(namespace).items() if self.plan(uid) is None}

    def _plans_in(self, namespace: str) -> dict[str, str]:
        plans = (each for (kind, _), each in self._referring.items() if kind is Kind.REASSIGNMENT_PLAN)
        metas = (obj["metadata"] for each in plans for obj in each.values())
        return {meta["name"]: meta["uid"] for meta in metas if meta["namespace"] == namespace}

    def decommissions(self, key: ClusterKey) -> list[DecommissionResource | Unreadable]:
        """Return the BrokerDecommissions of a cluster with their records, without those only others hold back."""
        return [self._decommission(obj) for obj in self._counting(key, Kind.BROKER_DECOMMISSION)]

    def _decommission(self, obj: Object) -> DecommissionResource | Unreadable:
        parsed = self._with_parts(obj, once(self._parsed_decommissions, parse_decommission, obj))
        if isinstance(parsed, Unreadable):
            return parsed
        recorded = next((part.spec.decommission for part in self.parts(parsed.uid) if part.spec.decommission), None)
        return replace(parsed, record=recorded) if recorded else parsed

    def policies(self, key: ClusterKey) -> list[PolicyResource | Unreadable]:
        """Return the ReassignmentPolicies of a cluster with their records, without those only others hold back."""
        return [self._policy(obj) for obj in self._counting(key, Kind.REASSIGNMENT_POLICY)]

    def _policy(self, obj: Object) -> PolicyResource | Unreadable:
        parsed = self._with_parts(obj, once(self._parsed_policies, parse_policy, obj))
        if isinstance(parsed, Unreadable):
            return parsed
        spec = next((part.spec for part in self.parts(parsed.uid) if part.spec.policy), None)
        if spec is None or spec.policy is None:
            return parsed
        now = self.kafka_of((parsed.namespace, parsed.spec.cluster_ref.name))
        is_another = None not in (spec.cluster_id, now) and spec.cluster_id != now
        return replace(parsed, record=begun_anew(spec.policy) if is_another else spec.policy)

    def _with_parts(self, obj: Object, parsed: T | Problem) -> T | Unreadable:
        """Return what was parsed of an object, unless it or a part of its record cannot be read."""
        if isinstance(parsed, Problem):
            return Unreadable(obj, parsed)
        parts = self._read_parts(obj["metadata"]["uid"])
        problem = next((part for part in parts if isinstance(part, Problem)), None)
        return Unreadable(obj, problem) if problem else parsed

    def waves(self, plan: PlanResource) -> list[Resource | Settled | Unreadable]:
        """Return the PartitionReassignments that are labelled as waves of a plan, by name."""
        key = plan.spec.cluster_ref.namespace or plan.namespace, plan.spec.cluster_ref.name
        labelled = [obj for obj in self._counting(key) if is_wave(obj, plan)]
        all_parsed = ((obj, self._read(obj)) for obj in labelled)
        waves = [self._unreadable(obj, r) if isinstance(r, Problem) else r for obj, r in all_parsed]
        return sorted(waves, key=lambda wave: wave.name)

    def conditions(self, key: ClusterKey) -> Counter[tuple[str, str]]:
        """Count the objects of a cluster, itself among them, that have a condition that is True, by kind and type."""
        objects = (obj for kind in Kind for obj in self._referring.get((kind, key), {}).values())
        with_conditions = ((obj["kind"], (obj.get("status") or {}).get("conditions") or ()) for obj in objects)
        return Counter(
            (kind, c["type"]) for kind, conditions in with_conditions for c in conditions if c["status"] == "True"
        )

    def mortal(self) -> list[Object]:
        """Return the objects that are deleted some time after they have come to their end."""
        return [obj for obj in self._objects.values() if "ttlSecondsAfterFinished" in obj["spec"]]

    def referred(self) -> set[ClusterKey]:
        """Return the clusters that PartitionReassignments and ReassignmentPlans refer to, whether they exist or not."""
        return {key for kind, key in self._referring if kind is not Kind.KAFKA_CLUSTER}

    def _held(self, owner: str) -> bool:
        return any(part.held for part in self.parts(owner))

    def _unreadable(self, obj: Object, problem: Problem) -> Unreadable:
        parts = self._read_parts(obj["metadata"]["uid"])
        return Unreadable(obj, problem, any(isinstance(part, Problem) or active(part.record) for part in parts))

    def _counting(self, key: ClusterKey, kind: Kind = Kind.PARTITION_REASSIGNMENT) -> list[Object]:
        return [obj for obj in self._referring.get((kind, key), {}).values() if counts(obj)]

    def _read(self, obj: Object) -> Resource | Settled | Problem:
        """Return a PartitionReassignment with its record, or its summary where only that is kept."""
        uid = obj["metadata"]["uid"]
        if uid not in self._joined:
            self._joined[uid] = self._kept(obj) or self._whole(obj)
        return self._joined[uid]

    def _kept(self, obj: Object) -> Settled | None:
        """Return the summary of a settled PartitionReassignment whose record is complete and settled too."""
        parts = self._parts.get(obj["metadata"]["uid"], {}).values()
        if not isinstance(obj, Packed) or obj.settled is None or not all(isinstance(part, Packed) for part in parts):
            return None
        specs = sorted((part["spec"] for part in parts), key=lambda spec: spec["part"])
        said = specs[0].get("parts") if specs else None
        return None if lost(obj.settled.has_moved, [spec["part"] for spec in specs], said) else obj.settled

    def _whole(self, obj: Object) -> Resource | Problem:
        parsed = once(self._parsed, parse_resource, obj)
        if isinstance(parsed, Problem):
            return parsed
        parts = self._read_parts(obj["metadata"]["uid"])
        problem = next((part for part in parts if isinstance(part, Problem)), None)
        return problem or joined(parsed, in_order(parts))

    def _read_parts(self, owner: str) -> list[Part | Problem]:
        return [once(self._parsed_parts, Part.parse, obj) for obj in self._parts.get(owner, {}).values()]


async def refresh(kube: KubeClient, store: Store, kind: Kind, namespace: str, name: str, uid: str) -> bool:
    """Ask for the object of that uid and take it over; return whether it is there. One made anew is another object."""
    known = store.version_of(uid)
    found = await kube.get(kind, namespace, name)
    if found is None or found["metadata"]["uid"] != uid:
        store.drop(uid)
        return False
    store.read(found, known)
    return True
