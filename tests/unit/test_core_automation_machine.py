"""Whatever becomes of brokers, wishes and the process: at the end what the contract says, and nothing too early."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reassign.api.kafka_cluster import Execution
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, GONE, UP, Decommissions, orders
from tests.unit.examples import examples

NAMES = {"old": (5,), "next": (4,), "both": (3, 5)}
names, brokers = st.sampled_from(sorted(NAMES)), st.integers(0, 5)


class Automation(RuleBasedStateMachine):
    """Decommissions of brokers 3, 4 and 5 of six, of which broker 0 is always up."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Decommissions(orders((5, 1), (2, 5), (5, 3), (4, 2), (4, 5), (1, 2)))
        self.landed = 0

    @rule(times=st.integers(1, 12))
    def time_passes(self, times: int) -> None:
        for _ in range(times):
            self.run.tick()
            self.one_is_at_work()

    @rule(after=st.integers(0, 4))
    def crash(self, after: int) -> None:
        self.run.crash_after = after
        self.run.tick()

    @rule(name=names, approval=st.sampled_from(["Required", "NotRequired"]), unregister=st.booleans())
    def apply(self, name: str, approval: str, unregister: bool) -> None:
        if name not in self.run.objects and not any(p.name.startswith(name) for p in self.run.plans.values()):
            wish = "WhenDown" if unregister else "Never"
            self.run.apply(name, NAMES[name], approval=approval, unregister=wish)
            self.run.objects[name].uid += f"-{self.run.seconds}"
            self.run.created = [made for made in self.run.created if not made.startswith(name)]

    @rule(name=names, given=st.booleans())
    def approve(self, name: str, given: bool) -> None:
        if it := self.run.objects.get(name):
            it.edit(approvedDigest=it.status.digest if given else None)

    @rule(name=names, fields=st.sampled_from([{"suspend": True}, {"suspend": False}, {"waves": {"maxPartitions": 7}}]))
    def edit(self, name: str, fields: dict[str, Any]) -> None:
        if it := self.run.objects.get(name):
            it.edit(**fields)

    @rule(execution=st.sampled_from(Execution))
    def brake(self, execution: Execution) -> None:
        self.run.execution = execution

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name in self.run.objects:
            self.run.delete(name)

    @precondition(lambda self: self.run.plans)
    @rule(data=st.data())
    def a_user_deletes_a_plan(self, data: st.DataObject) -> None:
        self.run.plans[data.draw(st.sampled_from(sorted(self.run.plans)))].deleted = True

    @rule(broker=st.integers(1, 5), state=st.sampled_from([UP, FENCED]))
    def a_broker_goes_or_comes(self, broker: int, state: str) -> None:
        self.run.brokers[broker] = state

    @rule(silent=st.sets(brokers, max_size=2))
    def brokers_are_silent(self, silent: set[int]) -> None:
        self.run.silent = silent

    @rule(broker=st.integers(3, 5))
    def a_replica_lands(self, broker: int) -> None:
        if self.landed < 6 and self.run.brokers[broker] == UP:
            self.landed += 1
            self.run.replicas[TopicPartition("late", self.landed)] = (broker, 0)

    @rule(row=st.sampled_from([(5, 2), (1, 5), (1, 2)]))
    def another_client_moves_a_replica(self, row: tuple[int, int]) -> None:
        if (first := TopicPartition("orders", 0)) not in self.run.moves:
            self.run.replicas[first] = row

    @rule(lost=st.booleans())
    def answers_are_lost(self, lost: bool) -> None:
        self.run.loses_unregister = lost

    @invariant()
    def one_is_at_work(self) -> None:
        assert len(self.run.working) <= 1

    @invariant()
    def nobody_unapproved_has_a_cordon(self) -> None:
        approved = {b for it in self.run.objects.values() if it.record.approval for b in it.spec.brokers}
        assert {b for b in self.run.wanted if b not in approved} == set()

    @invariant()
    def ready_means_empty(self) -> None:
        for it in self.run.objects.values():
            for broker in it.status.brokers:
                if broker.state in ("Empty", "Down", "Unregistered", "Gone"):
                    assert broker.replicas == 0

    def teardown(self) -> None:
        run = self.run
        run.execution, run.silent, run.loses_unregister, run.crash_after = Execution.RUN, set(), False, None
        run.brokers = dict.fromkeys(run.brokers, UP)
        for it in run.objects.values():
            if not (it.deleted or it.resource.finished):
                it.edit(suspend=False, approval="NotRequired")
        self._until(lambda: all("Ready" in it.true for it in run.objects.values()))
        for it in run.objects.values():
            run.brokers |= dict.fromkeys(it.spec.brokers, GONE)
        self._until(lambda: all("Succeeded" in it.true for it in run.objects.values()))
        run.tick(8)
        assert (run.cordons, run.moves, run.wanted) == ({}, {}, {})
        assert not any(it.finalizer for it in run.objects.values())
        gone = {b for it in run.objects.values() for b in it.spec.brokers}
        assert not any(gone & set(row) for row in run.replicas.values())

    def _until(self, true: Any) -> None:
        for _ in range(600):
            if true():
                return
            self.run.tick(seconds=60)
            assert len(self.run.working) <= 1
        raise AssertionError([(it.name, it.reason, it.message) for it in self.run.objects.values()])


TestAutomation = Automation.TestCase
TestAutomation.settings = examples(200, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
