"""What the owners of ReassignmentPlans have decided about them, and whether the owners are still as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reassign.api.limits import MAX_WAVES
from reassign.api.window import Windows
from reassign.controller.objects.reading import Unreadable, controller_of, wish
from reassign.controller.objects.store import Store
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PlanOwner
from reassign.core.plans.model import PlanOrder, PlanResource
from reassign.errors import ConflictError
from reassign.kube.client import ClusterKey, Kind, KubeClient

NOTHING = PlanOrder()


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders, and the objects that gave them where these can be read, by the uid of the plan."""

    given: Mapping[str, PlanOrder] = field(default_factory=dict)
    owners: Mapping[str, PlanOwner] = field(default_factory=dict)

    def of(self, plan: PlanResource) -> PlanOrder | None:
        """Return what the owner of a plan has decided; None for a user's plan."""
        return self.given.get(plan.uid, NOTHING if plan.uid in self.owners else None)

    def windows_of(self, plan: PlanResource) -> Windows:
        """Return the windows that a plan waits for: its owner's, where it has one."""
        owner = self.owners.get(plan.uid)
        return owner.windows_of(plan.name) if owner else plan.spec.windows

    def needs_all_of(self, plan: PlanResource) -> bool:
        """Whether a plan is made only where it leaves nothing on the brokers that it empties."""
        owner = self.owners.get(plan.uid)
        return owner is not None and owner.needs_all_of(plan.name)


def kind_of(owner: PlanOwner) -> Kind:
    return Kind.BROKER_DECOMMISSION if isinstance(owner, DecommissionResource) else Kind.REASSIGNMENT_POLICY


def recorded_orders(store: Store, key: ClusterKey) -> Orders:
    """Return what follows from the records alone: what has begun goes on, and nothing else begins.

    So it is of a plan whose owner, or whose record, cannot be read: no user may approve it meanwhile.
    """
    those = [*store.decommissions(key), *store.policies(key)]
    owners = {it.uid: it for it in those if not isinstance(it, Unreadable)}
    unread = {it.uid for it in those if isinstance(it, Unreadable)}
    recorded = {plan.uid: it for it in owners.values() for plan in it.recorded_plans}
    given, of = dict[str, PlanOrder](), dict[str, PlanOwner]()
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


def _recorded(owner: PlanOwner, plan: PlanResource) -> PlanOrder | None:
    """Return the order for a plan by the record of its owner; None where that does not know it, as a user's."""
    known = owner.recorded_plan(plan.name)
    if known is None:
        return PlanOrder(retired=True) if owner.has_made(plan.name) else None
    if known.uid not in (None, plan.uid):
        return None
    waves = known.begun_waves if known.approved else 0
    return PlanOrder(waves=waves, starts=False, retired=known.retired and known.approved)


async def check_owner(kube: KubeClient, owner: PlanOwner) -> None:
    """Raise ConflictError where the API server has another wish for the owner than the one that was judged, or none."""
    found = await kube.metadata(kind_of(owner), owner.namespace, owner.name)
    if found is None or wish(found) != (owner.uid, owner.generation, owner.deleted is not None):
        raise ConflictError(f"{owner.namespace}/{owner.name} has changed meanwhile")
