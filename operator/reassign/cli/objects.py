"""The objects that verbs are about: what they say of themselves, and how they are found and changed.

A change is decided on the object as it was read, and written only if the API server still has that version. Else the
object is read again, and the change decided again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.common import API_VERSION, TRACKED_BY_ARGO_CD, Condition, ConditionStatus
from reassign.api.partition_reassignment import PartitionReassignmentStatus, Progress
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL, ReassignmentPlanStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.cli import output as out
from reassign.cli.refs import SHORT, Ref, several
from reassign.errors import ConflictError, MissingReferenceError, Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key
from reassign.text import listed

WITH_VERBS = tuple(map(Kind, SHORT.values()))
OWNERS = (Kind.BROKER_DECOMMISSION, Kind.REASSIGNMENT_POLICY)
"""The kinds that make plans."""
UNSEEN = (Reason.NOT_AUTHORIZED, Reason.REQUEST_FAILED)
"""Why a kind may not be seen: its user lacks the right, or an older operator does not have it."""
TRIES = 5
"""How often a change is decided anew because the object has changed meanwhile."""


Status = PartitionReassignmentStatus | ReassignmentPlanStatus | BrokerDecommissionStatus | ReassignmentPolicyStatus
_STATUSES: dict[Kind, type[Status]] = {
    Kind.PARTITION_REASSIGNMENT: PartitionReassignmentStatus,
    Kind.BROKER_DECOMMISSION: BrokerDecommissionStatus,
    Kind.REASSIGNMENT_POLICY: ReassignmentPolicyStatus,
}


class Owner(NamedTuple):
    """What has made a plan."""

    name: str
    uid: str
    kind: Kind

    def __str__(self) -> str:
        """As kubectl names it."""
        return f"{SHORT_OF[self.kind]}/{self.name}"


@dataclass(frozen=True)
class Item:
    """An object of a kind with verbs, or a KafkaCluster, as the API server has it."""

    obj: Object

    @property
    def kind(self) -> Kind:
        return Kind(self.obj["kind"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.obj["spec"])

    @property
    def cluster(self) -> ClusterKey:
        return cluster_key(self.obj)

    def __str__(self) -> str:
        """As kubectl names it."""
        return f"{SHORT_OF[self.kind]}/{self.name}"

    @cached_property
    def status(self) -> Status:
        """Its status; an empty one where this version cannot read it."""
        model = _STATUSES.get(self.kind, ReassignmentPlanStatus)
        try:
            return model.parse(self.obj.get("status") or {})
        except ValidationError:
            return model()

    @property
    def is_reassignment(self) -> bool:
        return self.kind is Kind.PARTITION_REASSIGNMENT

    @property
    def is_decommission(self) -> bool:
        return self.kind is Kind.BROKER_DECOMMISSION

    @property
    def is_policy(self) -> bool:
        return self.kind is Kind.REASSIGNMENT_POLICY

    @property
    def progress(self) -> Progress:
        """The counts of a PartitionReassignment."""
        known = self.status.progress if isinstance(self.status, PartitionReassignmentStatus) else None
        return known or Progress()

    @property
    def up_to_date(self) -> bool:
        """Whether the status is about the spec as it is."""
        return bool(self.status.observed_generation == self.obj["metadata"].get("generation"))

    @property
    def deleted(self) -> bool:
        return "deletionTimestamp" in self.obj["metadata"]

    @property
    def ready(self) -> Condition | None:
        return self.condition("Ready")

    def condition(self, type: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == type), None)

    def says(self, type: str) -> bool:
        """Whether a condition is True, of the spec as it is."""
        condition = self.condition(type)
        return self.up_to_date and condition is not None and condition.status is ConditionStatus.TRUE

    @property
    def succeeded(self) -> bool:
        return not self.deleted and self.says("Succeeded")

    @property
    def ended(self) -> bool:
        """Whether it moves nothing any more by itself."""
        return self.succeeded or (not self.deleted and self.is_reassignment and self.says("Failed"))

    @property
    def tracked(self) -> bool:
        """Whether Argo CD sets it back to what Git has."""
        return TRACKED_BY_ARGO_CD in (self.obj["metadata"].get("annotations") or {})

    @property
    def plan(self) -> tuple[str, str] | None:
        """Name and uid of the plan that it is a wave of."""
        labels = self.obj["metadata"].get("labels") or {}
        return (labels[PLAN_LABEL], labels[PLAN_UID_LABEL]) if {PLAN_LABEL, PLAN_UID_LABEL} <= labels.keys() else None

    @property
    def owner(self) -> Owner | None:
        """What has made a plan."""
        for ref in self.obj["metadata"].get("ownerReferences") or ():
            if ref.get("controller") and ref["apiVersion"] == API_VERSION and ref["kind"] in OWNERS:
                return Owner(ref["name"], ref["uid"], Kind(ref["kind"]))
        return None


SHORT_OF = {Kind.KAFKA_CLUSTER: "kcl", **{Kind(kind): short for short, kind in SHORT.items()}}


async def find(kube: KubeClient, namespace: str, ref: Ref, kinds: Sequence[Kind] = WITH_VERBS) -> Item:
    """Return the object of this name; raises MissingReferenceError that says which there are."""
    kinds = [kind for kind in kinds if ref.kind in (None, kind)]
    objects, unseen = list[Object](), list[ReassignError]()
    for kind in kinds:
        try:
            obj = await kube.get(kind, namespace, ref.name)
        except ReassignError as error:
            if error.reason not in UNSEEN:
                raise
            unseen.append(error)
        else:
            objects += [obj] if obj else []
    if len(objects) > 1:
        all = " and ".join(str(Item(obj)) for obj in objects)
        raise ReassignError(Reason.NOTHING_SELECTED, f"there are {all}; name one of them")
    if not objects and unseen:
        raise unseen[0]
    if not objects:
        raise await missing(kube, namespace, ref.name, kinds)
    return Item(objects[0])


async def missing(kube: KubeClient, namespace: str, name: str, kinds: Sequence[Kind]) -> ReassignError:
    """Return the error for an object that is not there; of a plan where a PartitionReassignment is meant, its waves."""
    meant = [*kinds] == [Kind.PARTITION_REASSIGNMENT]
    try:
        plan = await kube.get(Kind.REASSIGNMENT_PLAN, namespace, name) if meant else None
    except ReassignError as error:
        if error.reason is not Reason.NOT_AUTHORIZED:
            return error
        plan = None
    status = Item(plan).status if plan else None
    if not isinstance(status, ReassignmentPlanStatus):
        return await live.missing(kube, namespace, name, kinds)
    waves = f"name one of its waves: {listed(wave.name for wave in status.waves)}"
    return MissingReferenceError(
        Reason.NOTHING_SELECTED,
        f"{name} is a ReassignmentPlan; {waves if status.waves else 'it has no waves yet'}",
    )


async def list_each(kube: KubeClient, kinds: Sequence[Kind], namespace: str | None) -> list[Item]:
    """Return the objects of these kinds; those that make plans and may not be seen are left out, and named."""
    items = list[Item]()
    for kind in kinds:
        try:
            items += map(Item, await kube.list(kind, namespace))
        except ReassignError as error:
            if kind not in OWNERS or error.reason not in UNSEEN:
                raise
            out.say(f"note: {several(kind)} are left out: {error.message}")
    return items


async def find_each(kube: KubeClient, namespace: str, refs: Iterable[Ref]) -> list[Item]:
    """Return the objects of these names, each once."""
    items = [await find(kube, namespace, ref) for ref in refs]
    return [*{item.obj["metadata"]["uid"]: item for item in items}.values()]


async def change(kube: KubeClient, item: Item, write: Callable[[Item], Awaitable[Object | None]]) -> Object | None:
    """Write a change of an object, decided by `write` on what it is given; None when the object is gone.

    Where another client was first, the object is read again, and `write` decides again.
    """
    for _ in range(TRIES):
        try:
            return await write(item)
        except ConflictError:
            obj = await kube.get(item.kind, item.namespace, item.name)
            if obj is None or obj["metadata"]["uid"] != item.obj["metadata"]["uid"]:
                return None
            item = Item(obj)
    raise ConflictError(f"{item} is changed again and again by other clients; try again")


async def plan_of(kube: KubeClient, item: Item) -> Item | None:
    """Return the plan that a PartitionReassignment is a wave of, while that plan is there and not carried out."""
    if item.plan is None:
        return None
    name, uid = item.plan
    obj = await kube.get(Kind.REASSIGNMENT_PLAN, item.namespace, name)
    same = obj is not None and obj["metadata"]["uid"] == uid
    return Item(obj) if obj and same and not Item(obj).succeeded else None


async def check_whole(kube: KubeClient, item: Item, verb: str) -> None:
    """Raise ReassignError for a part: a wave of a plan, or a plan that was made for another object.

    A plan of a policy can be cancelled alone: the policy stays.
    """
    plan = await plan_of(kube, item)
    made = plan or (None if item.succeeded else item)
    owner = made and made.owner
    if owner and not (verb == "cancel" and owner.kind is Kind.REASSIGNMENT_POLICY):
        part = f"a wave of {plan}" if plan else "a plan"
        what = f"{part} that the {owner.kind} {owner.name} has made; {verb} {owner}"
    elif plan:
        what = f"a wave of {plan}; {verb} {plan}"
    else:
        return
    raise ReassignError(Reason.NOTHING_SELECTED, f"{item} is {what}")


def of_cluster(items: Iterable[Item], cluster: str | None) -> list[Item]:
    """Return the objects that refer to a KafkaCluster of this name, in order of namespace and name; None for all."""
    chosen = (item for item in items if cluster is None or item.cluster[1] == cluster)
    return sorted(chosen, key=lambda item: (item.namespace, item.name))
