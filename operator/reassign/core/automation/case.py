"""What a decision about one BrokerDecommission reads, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from reassign.api.broker_decommission import CordonWish
from reassign.api.common import API_VERSION, CustomResource
from reassign.api.goal import Scope
from reassign.api.kafka_cluster import Execution
from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.partition_reassignment import ClusterRef
from reassign.api.reassignment_plan import Goal, ReassignmentPlan, ReassignmentPlanSpec, Template, Topics
from reassign.api.reassignment_record import RecordedPlan
from reassign.core.automation.model import BrokersSeen, DecommissionResource, OwnedCluster, PlanSeen, WorkedOut
from reassign.core.automation.timers import Timer, Waits
from reassign.core.model.forwarding import LANDING_SECONDS, Clock
from reassign.core.model.problem import Problem
from reassign.core.plans.model import Manifest
from reassign.core.plans.windows import windows_at

MADE_BY_LABEL = "kafka.reassign.dev/made-by"
"""The uid of the object that a plan was made for."""
TTL_SECONDS = 604_800
"""How long plans and waves stay after their end."""


@dataclass(frozen=True, slots=True)
class DecommissionCase:
    """All that a decision about one decommission reads."""

    it: DecommissionResource
    cluster: OwnedCluster
    seen: BrokersSeen | Problem
    now: Clock
    plans: Mapping[str, PlanSeen] = field(default_factory=dict)
    """The plans in its namespace, by name."""
    worked: WorkedOut | Problem | None = None
    """What working out a plan came to, where the last decision asked for it; older ones are to be forgotten."""
    first: str | None = None
    """What goes first, where it is not its turn."""
    retires: str | None = None
    """The plan of a policy that comes to its end for it: it begins after that."""
    yields: str | None = None
    """The plan of a policy that its own plan is retired for."""
    avoid: frozenset[int] = frozenset()
    """The brokers of all others that were approved and have not succeeded."""
    shared: frozenset[int] = frozenset()
    """Brokers that are to be cordoned for others."""
    timers: Mapping[int, Timer] = field(default_factory=dict)
    waits: Waits = field(default_factory=dict)
    """When its recorded waits began."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The uids of the plans in its namespace that cannot be read, by name."""

    @property
    def braked(self) -> bool:
        return self.cluster.execution is not Execution.RUN

    @property
    def in_window(self) -> bool:
        """Whether its waves may start now, as far as its windows go."""
        return windows_at(self.it.spec.windows, self.now.time).is_open

    def is_taken(self, name: str) -> bool:
        """Whether there is a plan of that name."""
        return name in self.plans or name in self.unreadable

    @property
    def plan(self) -> PlanSeen | None:
        """Its last plan, where it is there."""
        return plan_of(self.plans, self.it.record.plan, self.it.uid)

    @property
    def spec(self) -> ReassignmentPlanSpec:
        """The spec of the plan that it needs now."""
        spec = self.it.spec
        seen = self.it.brokers | self.avoid if isinstance(self.seen, Problem) else self.seen.brokers.keys()
        goal = Goal(
            drain_brokers=tuple(sorted(self.it.brokers & seen or self.it.brokers)),
            scope=Scope.DRAINED,
            avoid_brokers=first_avoided(self.avoid & seen, self.seen),
        )
        return ReassignmentPlanSpec(
            cluster_ref=ClusterRef(name=spec.cluster_ref.name),
            topics=Topics(exclude=spec.exclude_topics),
            goal=goal,
            racks=spec.racks,
            waves=spec.waves,
            template=with_ttl(spec.template),
            ttl_seconds_after_finished=TTL_SECONDS,
        )


def first_avoided(brokers: frozenset[int], seen: BrokersSeen | Problem) -> tuple[int, ...] | None:
    """Return the brokers that a plan is to avoid, as many as a goal takes: those first that may get replicas at all."""
    up = {b for b in brokers if b in seen.brokers and seen.brokers[b].up} if isinstance(seen, BrokersSeen) else set()
    first = sorted(brokers, key=lambda broker: (broker not in up, broker))[:MAX_PLAN_BROKERS]
    return tuple(sorted(first)) or None


def wanted_cordons(it: DecommissionResource, cluster: OwnedCluster, now: datetime) -> frozenset[int]:
    """Return the brokers that are to be cordoned for a decommission, whatever is observed."""
    if it.spec.cordon is CordonWish.NEVER or not cluster.wants_cordons or it.finished:
        return frozenset()
    if it.deleted:
        return frozenset(broker.id for broker in it.record.brokers if in_doubt(it, broker.id, now)) & cluster.cordons
    held = cluster.execution in (Execution.CANCEL_OURS, Execution.CANCEL_ALL)
    return it.brokers if it.approved and not held else frozenset()


def in_doubt(it: DecommissionResource, broker: int, now: datetime, seen: BrokersSeen | Problem | None = None) -> bool:
    """Whether an UnregisterBroker that was sent may still land."""
    known = it.recorded(broker)
    if known is None or known.unregister_sent_at is None:
        return False
    gone = isinstance(seen, BrokersSeen) and not (broker in seen.brokers and seen.brokers[broker].registered)
    return not gone and now - known.unregister_sent_at < timedelta(seconds=LANDING_SECONDS)


def plan_of(plans: Mapping[str, PlanSeen], recorded: RecordedPlan | None, owner: str) -> PlanSeen | None:
    """Return a plan that a record names, where it is there: it has the recorded uid, or is as it was to be created."""
    found = plans.get(recorded.name) if recorded else None
    if recorded is None or found is None:
        return None
    if recorded.uid:
        return found if found.plan.uid == recorded.uid else None
    as_created = found.owner == owner and found.spec_digest == recorded.spec_digest
    return found if as_created and not found.plan.deleted else None


def with_ttl(template: Template) -> Template:
    """Return the options of waves, which go after a week where nothing else is asked for."""
    if template.ttl_seconds_after_finished is not None:
        return template
    return template.model_copy(update={"ttl_seconds_after_finished": TTL_SECONDS})


class Owner(Protocol):
    """An object that plans are made for."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


def manifest_of(it: Owner, kind: type[CustomResource], name: str, spec: ReassignmentPlanSpec) -> Manifest:
    """Return a plan, as an object that its owner, of this kind, controls."""
    owner = {
        "apiVersion": API_VERSION,
        "kind": kind.KIND,
        "name": it.name,
        "uid": it.uid,
        "controller": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": ReassignmentPlan.KIND,
        "metadata": {
            "name": name,
            "namespace": it.namespace,
            "labels": {MADE_BY_LABEL: it.uid},
            "ownerReferences": [owner],
        },
        "spec": spec.wire(),
    }
