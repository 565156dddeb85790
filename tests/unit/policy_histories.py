"""Random objects for the arbiter: policies and decommissions at any stage, together, on brokers in any state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_plan import WaveState
from reassign.api.reassignment_policy import TriggerKind, TriggerState
from reassign.core.automation.arbiter import RANKS, HoldReason, Rank, retires
from reassign.core.automation.decide import AutomationDecision
from reassign.core.automation.model import RetirePlan, RunPlan, WorkOut
from reassign.errors import Reason
from tests.unit.automation_sim import FENCED, GONE, UP, SimOwnedPlan, SimOwnedWave, orders
from tests.unit.policy_sim import Policies, SimPolicy

BROKERS = 7
GIVE_WAY = {Reason.DUPLICATE_POLICY, Reason.TOO_MANY_BROKERS_LOST, Reason.RACK_LOST}
"""Reasons of policies whose plans are no matter of theirs any more: a user has to act."""
QUIET = 5
"""For how many reconciliations nothing is done where nothing is left to do."""
KINDS: dict[str, dict[str, Any]] = {
    "lost": {"brokerLost": {"afterSeconds": 300, "maxBrokers": 2}},
    "in": {"brokersCordoned": {"afterSeconds": 60}},
    "out": {"brokersAdded": {"afterSeconds": 120}},
    "often": {"schedule": {"cron": "*/20 * * * *", "startingDeadlineSeconds": 600}},
}
APPROVALS = st.sampled_from(["NotRequired", "NotRequired", "Required"])

brokers = st.integers(0, BROKERS - 1)
rows = st.lists(st.lists(brokers, min_size=2, max_size=2, unique=True).map(tuple), min_size=2, max_size=10)
OTHERS = BROKERS - 2
states = st.one_of(
    st.just([UP] * OTHERS), st.lists(st.sampled_from([UP, UP, UP, FENCED, GONE]), min_size=OTHERS, max_size=OTHERS)
)
triggers = st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True)


class ArbitratedPolicies(Policies):
    """The model, which sees to the order of precedence whenever a plan is approved, or one of its waves begins."""

    def __init__(self, replicas: Sequence[tuple[int, ...]], states: Sequence[str]) -> None:
        super().__init__(orders(*replicas), range(BROKERS))
        self.brokers = dict(enumerate([UP, UP, *states]))
        self.acts = 0
        """How many steps of the last reconciliation change anything that is recorded."""
        self.kept_waiting: dict[str, int] = {}
        """For how many reconciliations a decommission has said that it waits for its turn alone."""

    def _act(self, decision: AutomationDecision) -> None:
        levels = WorkOut | RunPlan | RetirePlan
        self.acts = sum(not isinstance(step, levels) for step in decision.steps)
        before = {it.uid: it.record.plan for it in self.policies.values()}
        super()._act(decision)
        for it in self.objects.values():
            self.kept_waiting[it.uid] = self.kept_waiting.get(it.uid, 0) + 1 if it.reason == "PlanInProgress" else 0
        for it in self.policies.values():
            plan, last = it.record.plan, before[it.uid]
            if plan and plan.approved and (last is None or last.name != plan.name):
                self._check_precedence(it, plan.kind)

    def _check_precedence(self, it: SimPolicy, kind: TriggerKind) -> None:
        """No trigger that would retire a plan is true without a hold of its own when that plan is approved."""
        for status in it.status.triggers:
            trigger = it.resource.trigger(status.name)
            assert trigger
            if retires(RANKS[trigger.kind], RANKS[kind]):
                assert status.state is not TriggerState.ACTIVE
                assert status.state is not TriggerState.HELD or status.reason != HoldReason.PLAN_IN_PROGRESS

    def _check_owner(self, plan: SimOwnedPlan) -> None:
        super()._check_owner(plan)
        policy = next((it for it in self.policies.values() if it.uid == plan.owner), None)
        if policy is None:
            in_force = [it for it in self.policies.values() if not it.resource.deleted and it.reason not in GIVE_WAY]
            others = [(it.resource, it.record.plan) for it in in_force]
            under_way = [other for it, other in others if other and not other.retired and it.lets_go_on(other.name)]
            assert all(other.kind is not TriggerKind.BROKER_LOST for other in under_way), "a lost broker goes first"
        elif policy.record.plan and RANKS[policy.record.plan.kind] > Rank.DECOMMISSION:
            waiting = [uid for uid, times in self.kept_waiting.items() if times > 2 and not self.users]
            assert not waiting, "a decommission goes first"

    def comes_to_rest(self, most: int = 80) -> None:
        """Let the clock stand still: what is decided and done comes to a point where nothing is left to do."""
        quiet = 0
        for _ in range(most):
            before = self._written()
            self.tick(seconds=0)
            quiet = 0 if self.acts or self._moving() or before != self._written() else quiet + 1
            if quiet == QUIET:
                return
        raise AssertionError("no fixpoint")

    def _written(self) -> list[object]:
        objects = [*self.objects.values(), *self.policies.values()]
        return [(it.record, it.status) for it in objects]

    def _moving(self) -> list[SimOwnedWave]:
        """Return the waves with moves that come to their end."""
        waves = (wave for plan in self.plans.values() for wave in plan.waves)
        return [wave for wave in waves if any(tp in self.moves and not self.moves[tp].stuck for tp in wave.entries)]

    def calm(self) -> None:
        """End all that keeps plans waiting, approvals aside."""
        self.problem, self.execution, self.users, self.crash_after = None, Execution.RUN, [], None
        for it in self.policies.values():
            if it.spec.suspend:
                it.edit(suspend=False)

    def adopt(self, other: Policies) -> None:
        """Take over the objects of another cluster, its plans as far as nothing of them is in flight."""
        self.objects |= other.objects
        self.policies |= other.policies
        self.created += other.created
        for plan in other.plans.values():
            for wave in plan.waves:
                if wave.state is WaveState.RUNNING:
                    wave.state = WaveState.PENDING
            self.plans[plan.name] = plan


@st.composite
def worlds(draw: st.DrawFn) -> ArbitratedPolicies:
    """Return up to two decommissions and two policies, each as far as it came alone, on one cluster."""
    replicas, brokers_are, cordoned = draw(rows), draw(states), draw(st.sets(brokers, max_size=2))
    run = ArbitratedPolicies(replicas, brokers_are)
    for number in range(draw(st.integers(0, 2))):
        alone = ArbitratedPolicies(replicas, brokers_are)
        emptied = draw(st.lists(brokers, min_size=1, max_size=2, unique=True))
        alone.apply(f"old{number}", emptied, approval=draw(APPROVALS))
        _go_on(alone, draw(st.one_of(st.none(), st.integers(0, 8))))
        run.adopt(alone)
    for number in range(draw(st.integers(0, 2))):
        alone = ArbitratedPolicies(replicas, brokers_are)
        alone.others = set(cordoned)
        given = [KINDS[name] | {"name": name, "approval": draw(APPROVALS)} for name in draw(triggers)]
        alone.policy(*given, name=f"main{number}", settleSeconds=60, cooldownSeconds=300)
        _go_on(alone, draw(st.one_of(st.none(), st.integers(0, 60))))
        run.adopt(alone)
    run.others, run.seconds = set(cordoned), 900.0
    return run


def _go_on(alone: ArbitratedPolicies, ticks: int | None) -> None:
    """Let time pass; None: until a plan is at work, if one ever is."""
    for _ in range(60 if ticks is None else ticks):
        if ticks is None and alone.begun:
            break
        alone.tick()
