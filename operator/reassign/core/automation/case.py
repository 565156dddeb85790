"""What a decision about one BrokerDecommission reads, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reassign.api.broker_decommission import BrokerDecommission, CordonWish
from reassign.api.common import API_VERSION
from reassign.api.goal import Scope
from reassign.api.kafka_cluster import Execution
from reassign.api.partition_reassignment import ClusterRef
from reassign.api.reassignment_plan import Goal, ReassignmentPlan, ReassignmentPlanSpec, Topics
from reassign.core.automation.model import BrokersSeen, DecommissionResource, OwnedCluster, PlanSeen, WorkedOut
from reassign.core.automation.timers import Timer
from reassign.core.model.forwarding import LANDING_SECONDS, Clock
from reassign.core.model.problem import Problem
from reassign.core.plans.model import Manifest

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
    """The decommission whose turn it is, where it is another one's."""
    avoid: frozenset[int] = frozenset()
    """The brokers of all others that were approved and have not succeeded."""
    timers: Mapping[int, Timer] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The uids of the plans in its namespace that cannot be read, by name."""

    @property
    def braked(self) -> bool:
        return self.cluster.execution is not Execution.RUN

    def is_taken(self, name: str) -> bool:
        """Whether there is a plan of that name."""
        return name in self.plans or name in self.unreadable

    @property
    def plan(self) -> PlanSeen | None:
        """Its last plan, where it is there: it has the recorded uid, or is as it was to be created."""
        recorded = self.it.record.plan
        found = self.plans.get(recorded.name) if recorded else None
        if recorded is None or found is None:
            return None
        if recorded.uid:
            return found if found.plan.uid == recorded.uid else None
        as_created = found.owner == self.it.uid and found.spec_digest == recorded.spec_digest
        return found if as_created and not found.plan.deleted else None

    @property
    def spec(self) -> ReassignmentPlanSpec:
        """The spec of the plan that it needs now."""
        spec = self.it.spec
        seen = self.it.brokers | self.avoid if isinstance(self.seen, Problem) else self.seen.brokers.keys()
        template = spec.template
        if template.ttl_seconds_after_finished is None:
            template = template.model_copy(update={"ttl_seconds_after_finished": TTL_SECONDS})
        goal = Goal(
            drain_brokers=tuple(sorted(self.it.brokers & seen or self.it.brokers)),
            scope=Scope.DRAINED,
            avoid_brokers=tuple(sorted(self.avoid & seen)) or None,
        )
        return ReassignmentPlanSpec(
            cluster_ref=ClusterRef(name=spec.cluster_ref.name),
            topics=Topics(exclude=spec.exclude_topics),
            goal=goal,
            racks=spec.racks,
            waves=spec.waves,
            template=template,
            ttl_seconds_after_finished=TTL_SECONDS,
        )


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


def manifest_of(case: DecommissionCase, name: str) -> Manifest:
    """Return the plan that is needed now, as an object that the decommission owns."""
    it = case.it
    owner = {
        "apiVersion": API_VERSION,
        "kind": BrokerDecommission.KIND,
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
        "spec": case.spec.wire(),
    }
