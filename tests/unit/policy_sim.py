"""ReassignmentPolicies beside BrokerDecommissions, carried out on the model of brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from reassign.api.common import ConditionStatus
from reassign.api.reassignment_plan import ReassignmentPlanSpec, WaveState
from reassign.api.reassignment_policy import (
    ReassignmentPolicySpec,
    ReassignmentPolicyStatus,
    TriggerKind,
    TriggerStatus,
)
from reassign.api.reassignment_record import RecordedPolicy
from reassign.core.automation.decide import AutomationDecision, PolicyInputs, decide_automation
from reassign.core.automation.model import (
    BrokerSeen,
    BrokersSeen,
    CreatePlan,
    DeletePlan,
    OwnedCluster,
    RetirePlan,
    RunPlan,
    WorkOut,
)
from reassign.core.automation.policy_case import PolicyResource, PolicyStep, WritePolicyRecord
from reassign.core.automation.watch import Watched
from reassign.core.configs.cordons import LIFTING_SECONDS
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import UP, WAVE, Crashed, Decommissions, SimOwnedPlan, SimOwnedWave
from tests.unit.sim import START

TEMPLATE = {"goal": {"balance": {"by": ["Replicas"]}}}


@dataclass
class SimPolicy:
    """One policy of the API server, with its record."""

    uid: str
    name: str
    spec: ReassignmentPolicySpec
    created: datetime
    record: RecordedPolicy = field(default_factory=RecordedPolicy)
    status: ReassignmentPolicyStatus = field(default_factory=ReassignmentPolicyStatus)
    generation: int = 1
    writes: int = 0
    """Of its record."""

    @property
    def resource(self) -> PolicyResource:
        return PolicyResource(
            uid=self.uid,
            version=1,
            namespace="kafka",
            name=self.name,
            generation=self.generation,
            created=self.created,
            spec=self.spec,
            status=self.status,
            record=self.record,
        )

    @property
    def reason(self) -> str | None:
        """The reason of Ready."""
        return next((c.reason for c in self.status.conditions if c.type == "Ready"), None)

    @property
    def true(self) -> set[str]:
        return {c.type for c in self.status.conditions if c.status is ConditionStatus.TRUE}

    def trigger(self, name: str) -> TriggerStatus:
        return next(trigger for trigger in self.status.triggers if trigger.name == name)

    def says(self, name: str) -> tuple[str, str | None]:
        """The state of a trigger, with its reason."""
        found = self.trigger(name)
        return found.state.value, found.reason

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(plan.name, plan.outcome.value) for plan in self.status.plans]

    def edit(self, **fields: Any) -> None:
        """Change the spec, as a user does."""
        self.spec = ReassignmentPolicySpec.parse({**self.spec.wire(), **fields})
        self.generation += 1

    def approve(self) -> None:
        assert self.status.digest
        self.edit(approvedDigest=self.status.digest)


class Policies(Decommissions):
    """The model with policies."""

    def __init__(
        self, replicas: Mapping[TopicPartition, tuple[int, ...]], brokers: Sequence[int] = range(6), factor: int = 2
    ) -> None:
        self.policies: dict[str, SimPolicy] = {}
        self.racks: dict[int, str] = {}
        self.foreign: frozenset[int] = frozenset()
        self.foreign_from: frozenset[int] = frozenset()
        self.users: list[str] = []
        self.others: set[int] = set()
        """Brokers that another client has cordoned."""
        self.refusal: Problem | None = None
        """Why brokers do not lift our cordons."""
        self.untold: set[int] = set()
        """Brokers that do not say whether they are cordoned."""
        self.cordons_at: float | None = None
        """When it was read which brokers are cordoned; None: just now."""
        self.deaf = False
        """Whether no broker reaches a controller."""
        self.unreadable: set[str] = set()
        """The names of plans that cannot be read."""
        self.unread: dict[str, frozenset[int]] = {}
        """The brokers of decommissions that cannot be read, by name."""
        self.clock = 0.0
        """How far the clock is ahead."""
        super().__init__(replicas, brokers, factor)

    def restart(self) -> None:
        super().restart()
        self.watched: Mapping[str, Watched] = {}

    def decide(self) -> AutomationDecision:
        now = replace(self.now, time=self.now.time + timedelta(seconds=self.clock))
        return decide_automation(
            [it.resource for it in self.objects.values()],
            {plan.name: self.plan_seen(plan) for plan in self.plans.values() if plan.name not in self.unreadable},
            self.worked,
            OwnedCluster(
                "main",
                self.execution,
                cordons=frozenset(self.cordons),
                lifting=self._lifting,
                unlifted=dict.fromkeys(self.cordons, self.refusal) if self.refusal else {},
            ),
            self.problem or self._seen(),
            self.timers,
            now,
            {plan.name: plan.uid for plan in self.plans.values() if plan.name in self.unreadable},
            PolicyInputs(
                [it.resource for it in self.policies.values()],
                self.watched,
                self.users,
                unread_decommissions=self.unread,
            ),
            self.waits,
        )

    @property
    def _lifting(self) -> frozenset[int]:
        return frozenset(broker for broker, at in self.lifted.items() if self.seconds - at < LIFTING_SECONDS)

    def _seen(self) -> BrokersSeen:
        found = super()._seen()
        foreign = {"foreign": self.foreign, "foreign_from": self.foreign_from}
        return replace(found, **foreign, cordons_at=self.cordons_at, forwarded=not self.deaf)

    def _broker_seen(self, broker: int, shown: Mapping[TopicPartition, tuple[int, ...]]) -> BrokerSeen:
        found = super()._broker_seen(broker, shown)
        told = (found.up and broker in self.others) or found.cordoned
        cordoned = None if broker in self.untold else told
        return replace(found, rack=self.racks.get(broker), cordoned=cordoned)

    def _take(
        self, decision: AutomationDecision, left: int | None, running: dict[str, int], retired: set[str]
    ) -> int | None:
        left = super()._take(decision, left, running, retired)
        self.watched = {uid: found.watched for uid, found in decision.policies.items() if found.watched}
        for uid, found in decision.policies.items():
            it = next(it for it in self.policies.values() if it.uid == uid)
            self.worked.pop(uid, None)
            for step in found.steps:
                if left == 0:
                    raise Crashed
                left = None if left is None else left - 1
                self._perform_policy(it, step, running, retired)
            if left == 0:
                raise Crashed
            it.status = ReassignmentPolicyStatus.parse(found.status.wire())
        return left

    def _perform_policy(self, it: SimPolicy, step: PolicyStep, running: dict[str, int], retired: set[str]) -> None:
        plan = it.record.plan
        match step:
            case WritePolicyRecord(record):
                it.record = RecordedPolicy.parse(record.wire())
                it.writes += 1
            case WorkOut(spec, lifted):
                self.worked[it.uid] = self._work_out(spec, set() if lifted else self.cordons.keys())
            case CreatePlan(manifest):
                self._create(it.record.waiting, manifest)
            case RunPlan(resource, waves):
                assert plan
                assert plan.begun_waves >= waves
                assert plan.approved
                assert plan.uid == resource.uid
                running[resource.uid] = waves
            case RetirePlan(resource):
                assert plan
                assert plan.retired
                retired.add(resource.uid)
            case DeletePlan(resource):
                assert resource.uid not in {plan and plan.uid, *running}
                self.plans[resource.name].deleted = True

    def _check_owner(self, plan: SimOwnedPlan) -> None:
        owner = next((it for it in self.policies.values() if it.uid == plan.owner), None)
        others = {uid for uid in self.working if uid != plan.owner}
        assert not others, "two plans at once"
        if owner is None:
            super()._check_owner(plan)
            return
        recorded = owner.record.plan
        assert recorded
        assert (recorded.name, recorded.approved, recorded.retired) == (plan.name, True, False)
        assert owner.resource.approves(recorded)
        assert not owner.spec.suspend
        wave = next(wave for wave in plan.waves if wave.state is WaveState.PENDING)
        named = {broker for _, after in wave.entries.values() for broker in after}
        assert not named & (self.cordons.keys() | self._lifting), "Kafka refuses targets that name cordoned brokers"

    def _refused(self, plan: SimOwnedPlan) -> Set[int]:
        its = [it.record.waiting or it.record.plan for it in self.policies.values() if it.uid == plan.owner]
        lost = any(one and one.kind is TriggerKind.BROKER_LOST for one in its)
        return self.cordons.keys() if its and not lost else set()

    def _evacuation(
        self, prefix: str, spec: ReassignmentPlanSpec, refused: Set[int]
    ) -> tuple[list[SimOwnedWave], list[str], list[str]]:
        if spec.goal.drain_brokers:
            avoid = {*(spec.goal.avoid_brokers or ()), *self.others} - {*spec.goal.drain_brokers}
            goal = spec.goal.model_copy(update={"avoid_brokers": tuple(avoid)})
            return super()._evacuation(prefix, spec.model_copy(update={"goal": goal}), refused)
        return self._balance(prefix, spec), [], []

    def _balance(self, prefix: str, spec: ReassignmentPlanSpec) -> list[SimOwnedWave]:
        """Move replicas from the fullest broker to the emptiest one, while these are two apart or more."""
        avoid = {*(spec.goal.avoid_brokers or ()), *self.others}
        up = {broker for broker, state in self.brokers.items() if state == UP} - avoid
        rows = {tp: row for tp, row in self.replicas.items() if set(row) <= up and tp not in self.moves}
        after = dict(rows)
        while True:
            load = {broker: sum(broker in row for row in self._with(after)) for broker in sorted(up)}
            full, bare = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
            movable = [tp for tp, row in after.items() if full in row and bare not in row and row == rows[tp]]
            if load[full] - load[bare] < 2 or not movable:
                break
            after[movable[0]] = tuple(bare if broker == full else broker for broker in after[movable[0]])
        entries = [(tp, (rows[tp], row)) for tp, row in after.items() if row != rows[tp]]
        chunks = [dict(entries[at : at + WAVE]) for at in range(0, len(entries), WAVE)]
        return [SimOwnedWave(f"{prefix}-w{number}", chunk) for number, chunk in enumerate(chunks, 1)]

    def _with(self, after: Mapping[TopicPartition, tuple[int, ...]]) -> list[tuple[int, ...]]:
        return list({**self.replicas, **after}.values())

    # --- Users, and what is waited for ---

    def policy(self, *triggers: Mapping[str, Any], name: str = "main", **fields: Any) -> SimPolicy:
        spec = {"clusterRef": {"name": "main"}, "triggers": [*triggers], "planTemplate": TEMPLATE, **fields}
        created = START + timedelta(seconds=self.seconds)
        it = SimPolicy(f"uid-{name}", name, ReassignmentPolicySpec.parse(spec), created)
        self.policies[name] = it
        return it

    def wait(self, holds: Callable[[], object], most: int = 2000, seconds: float = 15.0) -> None:
        for _ in range(most):
            if holds():
                return
            self.tick(seconds=seconds)
        said = {it.name: (it.reason, [it.says(t.name) for t in it.status.triggers]) for it in self.policies.values()}
        raise AssertionError(f"never: {said}")

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        self.tick(int(seconds // 15))
