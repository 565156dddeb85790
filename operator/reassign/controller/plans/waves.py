"""The waves of a plan, as the store has them."""

from __future__ import annotations

from reassign.controller.objects.reading import Unreadable, version
from reassign.controller.objects.store import Store
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.model import PlanResource, Unread


def read_waves(store: Store, plan: PlanResource) -> tuple[list[Resource | Settled], list[Unread]]:
    """Return the waves of a plan, and those that cannot be read."""
    labelled = store.waves(plan)
    return (
        [wave for wave in labelled if not isinstance(wave, Unreadable)],
        [_unread(wave) for wave in labelled if isinstance(wave, Unreadable)],
    )


def _unread(wave: Unreadable) -> Unread:
    meta, status = wave.obj["metadata"], wave.obj.get("status", {})
    return Unread(
        uid=wave.uid,
        version=version(wave.obj),
        namespace=wave.namespace,
        name=wave.name,
        ended=bool(status.get("completionTime")) and not wave.holds,
        deleted=bool(meta.get("deletionTimestamp")),
        problem=wave.problem,
    )
