"""The stage of a tick for the owners of plans, BrokerDecommissions and ReassignmentPolicies: decided before the moves,
which need its cordons, and done after."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import structlog

from reassign.api.common import ConditionStatus
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_policy import TriggerKind
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller.plans.automation import (
    AT_ONCE_SECONDS,
    CONFLICT_SECONDS,
    Automation,
    AutomationInputs,
    Unregister,
)
from reassign.controller.plans.broker_watch import BrokerWatch
from reassign.controller.plans.job import Job
from reassign.controller.plans.orders import Orders
from reassign.core.automation.decide import AutomationDecision
from reassign.core.automation.model import BrokersSeen, DecommissionResource, OwnedCluster
from reassign.core.automation.policy_case import PlanOwner, PolicyResource
from reassign.core.automation.timers import COUNT_HOLDS_SECONDS, Timer, Waits
from reassign.core.automation.watch import Watched
from reassign.core.cluster import ClusterHold, permission_of
from reassign.core.configs.cordons import CordonMemory, CordonReason, CordonState, recorded_cordons
from reassign.core.figures import AutomationFigures, automation_figures
from reassign.core.model.problem import Problem, render
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.steps import Result
from reassign.core.plans.model import PlanResource
from reassign.errors import Reason
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import ClusterKey

log = structlog.get_logger()

EMPTYING_SECONDS, IDLE_SECONDS = 15.0, 300.0
"""How often all replicas are counted while brokers are being emptied, and otherwise."""
CORDONS_SECONDS = 60.0
"""How often it is asked which brokers are cordoned, where a policy has a trigger for that."""
UNJUDGED = Problem(
    Reason.INTERNAL_ERROR, "a bug of the operator keeps it from being judged; its log has the details: report it"
)
NEVER_SET = (CordonReason.NOT_SUPPORTED, CordonReason.NOT_EFFECTIVE, CordonReason.CORDON_DRIFT)
"""Why a cordon that is wanted is not set."""
AT_REST = (Reason.SUSPENDED, Reason.OUTSIDE_WINDOW, Reason.PLAN_FAILED)
"""Reasons of Ready while nothing of a decommission goes on."""
READING = Problem(Reason.PLANNING, "it is being read where all replicas are")


@dataclass(slots=True)
class AutomationStage:
    """What one KafkaCluster's loop does for the owners of plans, and remembers of its brokers."""

    key: ClusterKey
    automation: Automation
    watch: BrokerWatch
    cordons: frozenset[int] = frozenset()
    """The brokers that are to take no new replicas."""
    lost: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The lost brokers that plans evacuate, by the uid of the plan."""
    figures: AutomationFigures = field(default_factory=AutomationFigures)
    """What the last decision shows."""
    _states: Mapping[int, CordonState] = field(default_factory=dict)
    """How far the cordons are, by the last reconciliation."""
    _memory: CordonMemory = field(default_factory=CordonMemory)
    """What the last reconciliation remembers of cordons."""
    _changed: bool = False
    """Whether the state of a cordon has changed since the decision."""
    _timers: Mapping[int, Timer] = field(default_factory=dict)
    _watched: Mapping[str, Watched] = field(default_factory=dict)
    """What was watched for each policy, by uid."""
    _waits: Mapping[str, Waits] = field(default_factory=dict)
    """When recorded waits of each owner of plans began, by uid."""
    _ended: frozenset[tuple[str, int]] = frozenset()
    """The plans that had ended at the last decision, by owner and number."""
    _began: Mapping[str, float] = field(default_factory=dict)
    """When each decommission was first seen: a reading that began before says too little of its brokers."""
    _decided: tuple[AutomationDecision, AutomationInputs] | None = None
    _kafka: str | None = None
    """The id of the Kafka cluster that all this is of."""

    async def decide(
        self,
        cluster: KafkaCluster,
        pinned: str | None,
        hold: ClusterHold,
        throttle: RecordedConfigs | None,
        snapshot: Snapshot,
        client: KafkaClient,
        connection: Connection,
        wake: Callable[[], object],
    ) -> float | None:
        """Decide about the owners of plans; return in how many seconds there is more to see, or None.

        Until that has succeeded the cordons are those that are recorded, where none is to be lifted.
        """
        await self._forget_another(pinned)
        self._decided, before = None, self.cordons
        if not self.automation.has_any(self.key):
            self.cordons, self.lost, self.figures = frozenset(), {}, AutomationFigures()
            return None
        those, policies = self.automation.decommissions(self.key), self.automation.policies(self.key)
        lifted = any(it.record.lifts_cordons for it in policies)
        self.cordons = frozenset() if lifted else recorded_cordons(throttle)
        now = time.monotonic()
        self._began = {it.uid: self._began.get(it.uid, now) for it in those}
        self.watch.memory = self.watch.memory.observe(snapshot, before, now)
        again = self._look(those, policies, connection, pinned, snapshot, wake)
        inputs = AutomationInputs(
            replace(
                _owned(cluster, hold, throttle),
                lifting=self._memory.lifted_lately(now),
                unlifted=self._memory.unlifted,
            ),
            self._seen(cluster, hold, snapshot, before, now),
            self._timers,
            self._watched,
            self._waits,
            lambda seconds: self._lost(snapshot, seconds, now),
            _job(cluster, pinned, connection),
            wake,
            self._unregister(client),
        )
        decision = self.automation.decide(self.key, inputs, now, self._unread(those))
        self.figures = automation_figures(decision)
        if inputs.seen is READING:  # what was said before a restart stays said until more is known
            decision = _of_those_that_end(decision, those)
        if hold.claim and hold.claim.undecided:
            decision = replace(decision, cordons=decision.cordons & self.cordons)
        new = frozenset(broker for broker in decision.cordons - self.cordons if self._may_be_set(broker))
        if new and not await self.automation.unchanged(it for it in those if it.brokers & new):
            decision = replace(decision, cordons=decision.cordons - new)
            again = CONFLICT_SECONDS
        unread = self.cordons if self.automation.has_unreadable_decommission(self.key) else frozenset[int]()
        self.lost = _lost_by_plan(those, inputs) | _evacuated(policies, decision)
        self._decided, self._timers, self._waits = (decision, inputs), decision.timers, decision.waits
        self.cordons = decision.cordons | (frozenset() if decision.lifts_cordons else unread)
        kept = {uid: watched for uid, watched in self._watched.items() if uid in decision.judged}
        self._watched = kept | {uid: one.watched for uid, one in decision.policies.items() if one.watched}
        return again

    async def _forget_another(self, pinned: str | None) -> None:
        """Begin anew where the KafkaCluster was made again for another Kafka cluster."""
        if self._kafka and self._kafka != pinned:
            await self.watch.stop()
            self.watch = BrokerWatch(self.watch.explain)
            self._timers, self._watched = {}, {}
        self._kafka = pinned

    def _look(
        self,
        those: Sequence[DecommissionResource],
        policies: Sequence[PolicyResource],
        connection: Connection,
        pinned: str | None,
        snapshot: Snapshot,
        wake: Callable[[], object],
    ) -> float | None:
        """Read where replicas are, and which brokers are cordoned, when that is due; return when it is next."""
        left = [it for it in those if not (it.finished or it.deleted)]
        if not (left or policies):
            return None
        emptied = [it for it in left if it.record.approval]
        owners: Sequence[PlanOwner] = (*left, *policies)
        recorded = ((it.uid, it.record.plan) for it in owners)
        ended = frozenset((uid, plan.number) for uid, plan in recorded if plan and plan.retired)
        if ended - self._ended or self._unread(left):
            self.watch.expire()
        self._ended = ended
        at_rest = all(map(_rests, emptied)) and not any(it.evacuates for it in policies)
        seconds = IDLE_SECONDS if at_rest else EMPTYING_SECONDS
        asks_for_cordons = any(it.trigger_of(TriggerKind.BROKERS_CORDONED) for it in policies)
        cordons = CORDONS_SECONDS if asks_for_cordons else inf
        brokers = {broker for it in emptied for broker in it.brokers}
        return self.watch.look(connection, pinned, brokers, snapshot, seconds, wake, cordons)

    def _unread(self, those: Sequence[DecommissionResource]) -> frozenset[str]:
        """Return the decommissions, by uid, that were made since the last reading began, while there is one to come.

        Where readings fail they are judged all the same, so that their statuses say why.
        """
        read = None if self.watch.failed else self.watch.memory.read
        return frozenset(it.uid for it in those if read and self._began[it.uid] > read.at and not it.record.approval)

    def _seen(
        self, cluster: KafkaCluster, hold: ClusterHold, snapshot: Snapshot, cordons: frozenset[int], now: float
    ) -> BrokersSeen | Problem:
        if hold.hold:
            return render(hold.hold, permission_of(cluster).audience(self.key[0]))
        if hold.claim and hold.claim.undecided:
            return READING
        memory = self.watch.memory
        seen = memory.seen(snapshot, self._states, cordons, self.automation.moved(self.key))
        fresh = memory.read is not None and now - memory.read.at <= COUNT_HOLDS_SECONDS
        return seen if seen and fresh else self.watch.failed or READING

    def _may_be_set(self, broker: int) -> bool:
        """Whether a cordon that is not recorded may be set in this reconciliation."""
        state = self._states.get(broker)
        return state is None or state.reason not in NEVER_SET

    def _lost(self, snapshot: Snapshot, seconds: float, now: float) -> frozenset[int]:
        """Return the brokers that replicas name and that are not registered, or have been fenced for so long."""
        memory = self.watch.memory
        named = memory.read.layout.ids if memory.read else frozenset[int]()
        missing = named - snapshot.brokers.keys() if snapshot.lists_fenced else frozenset[int]()
        return missing | memory.lost(seconds, now)

    def _unregister(self, client: KafkaClient) -> Unregister:
        async def unregister(broker: int, via: int | None) -> None:
            layout = await client.observe_layout(lambda _: ())
            found = layout.brokers.get(broker)
            if found is None or not found.fenced or layout.replicas.get(broker):
                log.info("not unregistered: it is not as it was judged", broker=broker)
                return
            met = await client.unregister(broker, via)
            log.info("unregister", broker=broker, result=met.result, reason=met.reason, message=met.message)
            refused = met.problem if met.result in (Result.REFUSED, Result.NOT_SENT) else None
            self.watch.memory = self.watch.memory.unregister(broker, refused)

        return unregister

    def note_cordons(self, states: Mapping[int, CordonState], memory: CordonMemory) -> None:
        """Remember how far the cordons are; what has changed is decided about at once."""
        self._memory = memory
        now, before = ({broker: it.reason for broker, it in those.items()} for those in (states, self._states))
        self._states, self._changed = states, now != before

    async def perform(self) -> tuple[Orders | None, float | None]:
        """Do what was decided; return the orders for the plans, and in how many seconds to decide again, or None."""
        orders: Orders | None = None
        again: float | None = None
        if self._decided:
            orders, again = await self.automation.perform(self.key, *self._decided)
        else:
            await self.automation.say(self.key, UNJUDGED)
        return orders, AT_ONCE_SECONDS if self._changed else again

    async def have_wait(self, cluster: KafkaCluster, throttle: RecordedConfigs | None, problem: Problem) -> None:
        """Say on the owners of plans why nothing of them goes on."""
        said = render(problem, permission_of(cluster).audience(self.key[0]))
        await self.automation.have_wait(self.key, _owned(cluster, ClusterHold(), throttle), said)


def _of_those_that_end(decision: AutomationDecision, those: Sequence[DecommissionResource]) -> AutomationDecision:
    """Return what is decided about the decommissions that nothing has to be seen for, and about nothing else."""
    uids = {it.uid for it in those if it.deleted or it.finished or not it.has_finalizer}
    found = {uid: one for uid, one in decision.decommissions.items() if uid in uids}
    return replace(decision, decommissions=found, policies={})


def _lost_by_plan(those: Sequence[DecommissionResource], inputs: AutomationInputs) -> dict[str, frozenset[int]]:
    """Return the lost brokers that plans of decommissions evacuate, by the uid of the plan."""
    running = {plan.uid: it for it in those if (plan := it.record.plan) and plan.uid and plan.approved}
    return {uid: its for uid, it in running.items() if (its := it.brokers & inputs.lost(it.lost_seconds))}


def _evacuated(policies: Sequence[PolicyResource], decision: AutomationDecision) -> dict[str, frozenset[int]]:
    """Return the lost brokers that plans of policies evacuate, by the uid of the plan."""
    running = {plan.uid: it.uid for it in policies if (plan := it.record.plan) and plan.uid}
    decided = decision.policies
    return {plan: decided[uid].lost for plan, uid in running.items() if uid in decided and decided[uid].lost}


def _owned(cluster: KafkaCluster, hold: ClusterHold, throttle: RecordedConfigs | None) -> OwnedCluster:
    unserved = cluster.metadata.deletion_timestamp or hold.older or hold.claimed
    name, execution = cluster.metadata.name, cluster.spec.execution
    return OwnedCluster(name, execution, not unserved, recorded_cordons(throttle))


def _job(
    cluster: KafkaCluster, pinned: str | None, connection: Connection
) -> Callable[[PlanResource, str | None], Job | None]:
    def job(plan: PlanResource, owner: str | None) -> Job | None:
        allowed = permission_of(cluster).allowed.get(plan.namespace)
        return Job(plan, cluster, pinned, connection, allowed, owner) if allowed else None

    return job


def _rests(it: DecommissionResource) -> bool:
    """Whether the brokers are empty, or nothing is done about them now, by what the status says."""
    ready = next((c for c in it.status.conditions if c.type == "Ready"), None)
    return ready is not None and (ready.status is ConditionStatus.TRUE or ready.reason in AT_REST)
