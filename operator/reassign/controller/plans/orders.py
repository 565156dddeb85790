"""What the owners of ReassignmentPlans have decided about them, and whether the owners are still as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reassign.api.limits import MAX_WAVES
from reassign.controller.objects.reading import Unreadable, controller_of, wish
from reassign.controller.objects.store import Store
from reassign.core.automation.model import DecommissionResource
from reassign.core.plans.model import PlanOrder, PlanResource
from reassign.errors import ConflictError
from reassign.kube.client import ClusterKey, Kind, KubeClient

NOTHING = PlanOrder()


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders, and the objects that gave them where these can be read, by the uid of the plan."""

    given: Mapping[str, PlanOrder] = field(default_factory=dict)
    owners: Mapping[str, DecommissionResource] = field(default_factory=dict)

    def of(self, plan: PlanResource) -> PlanOrder | None:
        """Return what the owner of a plan has decided; None for a user's plan."""
        return self.given.get(plan.uid, NOTHING if plan.uid in self.owners else None)


def recorded_orders(store: Store, key: ClusterKey) -> Orders:
    """Return what follows from the records alone: what has begun goes on, and nothing else begins.

    So it is of a plan whose owner, or whose record, cannot be read: no user may approve it meanwhile.
    """
    those = store.decommissions(key)
    owners = {it.uid: it for it in those if isinstance(it, DecommissionResource)}
    unread = {it.uid for it in those if isinstance(it, Unreadable)}
    recorded = {it.record.plan.uid: it for it in owners.values() if it.record.plan}
    given, of = dict[str, PlanOrder](), dict[str, DecommissionResource]()
    for plan in store.plans(key) if those else ():
        controller = _controller(store, plan) or ""
        if controller in unread:
            given[plan.uid] = PlanOrder(waves=MAX_WAVES, starts=False)
        owner = recorded.get(plan.uid) or owners.get(controller)
        if isinstance(plan, PlanResource) and owner and (order := _recorded(owner, plan)):
            given[plan.uid], of[plan.uid] = order, owner
    return Orders(given, of)


def _controller(store: Store, plan: PlanResource | Unreadable) -> str | None:
    obj = store.get(plan.uid)
    return controller_of(obj) if obj else None


def _recorded(owner: DecommissionResource, plan: PlanResource) -> PlanOrder | None:
    """Return the order for a plan by the record of its owner; None where that does not know it, as a user's."""
    last = owner.record.plan
    if last is None:
        return None
    if plan.name != last.name:
        earlier = plan.name in {f"{owner.name}-{number}" for number in range(1, last.number)}
        return PlanOrder(retired=True) if earlier else None
    if last.uid not in (None, plan.uid):
        return None
    waves = last.begun_waves if last.approved else 0
    return PlanOrder(waves=waves, starts=False, retired=last.retired and last.approved)


async def check_owner(kube: KubeClient, owner: DecommissionResource) -> None:
    """Raise ConflictError where the API server has another wish for the owner than the one that was judged, or none."""
    found = await kube.metadata(Kind.BROKER_DECOMMISSION, owner.namespace, owner.name)
    if found is None or wish(found) != (owner.uid, owner.generation, owner.deleted is not None):
        raise ConflictError(f"{owner.namespace}/{owner.name} has changed meanwhile")
