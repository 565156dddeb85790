"""What keeps a KafkaCluster from being deleted: what has something in flight on it, or may come to."""

from __future__ import annotations

from collections.abc import Iterable

from reassign.controller.store import ClusterKey, Store, has_finalizer
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.plans.model import Plan


def unsettled_on(key: ClusterKey, resources: Iterable[Resource], store: Store) -> list[str]:
    """The names of what is not settled. What cannot be read may have begun."""
    moves = [f"{r.namespace}/{r.name}" for r in resources if not (r.settled or _holds_nothing(r))]
    unread = [
        u for u in store.unreadable(key) if has_finalizer(u.obj) or "completionTime" not in u.obj.get("status", {})
    ]
    plans = [p for p in store.plans(key) if (p.under_way if isinstance(p, Plan) else has_finalizer(p.obj))]
    return moves + [f"{other.namespace}/{other.name}" for other in (*unread, *plans)]


def _holds_nothing(resource: Resource) -> bool:
    """Whether it is a dry run, or a wave that waits for its plan."""
    waits = resource.dry_run or (resource.plan is not None and resource.asleep)
    return waits and not active(resource.record)
