"""Steps that are withheld: nothing of them is left but what undoes, whatever happens to the resource meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from reassign.api.kafka_cluster import Execution
from reassign.core import tick
from reassign.core.admission.pacing import Pacer
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.forwarding import Forwarded
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.states import State
from reassign.core.model.steps import Cancel, Outcome, Result
from reassign.core.tick import Decision, decide, gate, kept, recorded, settle
from reassign.errors import Reason
from tests.unit.configs import broker, topic
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, spec, without_record

P0, P1 = partitions(2)
WAITS = Problem(Reason.THROTTLE_NOT_SET, "an older KafkaCluster restores its throttles first")
REFUSED = Problem(Reason.NOT_AUTHORIZED, "the API server refuses it")


def judged(driver: Driver) -> Decision:
    snapshot = driver.kafka.snapshot()
    driver.now += 1
    driver.observe(snapshot.reassignments.keys(), snapshot.brokers.keys(), Forwarded(1, {1, 2}))
    known = list(driver.resources.values())
    return decide(known, snapshot, driver.read_configs(), driver.memory, driver.rules, driver.time)


def decided(driver: Driver) -> Decision:
    return gate(judged(driver), {}, driver.now)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r,
        lambda r: replace(r, deleted=r.created),
        lambda r: replace(r, spec=spec({P1: (4, 2, 3)}), generation=2),
    ],
    ids=["unchanged", "deleted", "edited"],
)
def test_a_withheld_move_is_asked_for_later_whatever_became_of_it(change: Callable[[Resource], Resource]) -> None:
    moving = resource({P0: (4, 2, 3)}, throttle={"interBroker": 204800})
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), moving, throttle=ConfigRules(older=WAITS))
    driver.now += 100
    decision = decided(driver)
    assert (decision.verdicts[0].rows[P0].put_off, decision.steps) == ((4, 2, 3), ())
    decision = recorded(decision, {"a": change(driver.resources["a"])})
    settled = settle(kept(decision, None), {}, driver.now)
    assert settled.memory.recent.refusal(P0, (4, 2, 3)) == WAITS


def test_a_cancel_that_nothing_could_be_kept_of_goes_on_later() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    assert driver.resources["a"].record[P0].state is State.IN_FLIGHT
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.execution = Execution.CANCEL_ALL
    decision = decided(driver)
    assert decision.steps == (Cancel(P0, (2, 3, 4)),)
    decision = kept(recorded(decision, {}, {"a": REFUSED}), REFUSED)
    assert decision.steps == ()
    [verdict] = settle(decision, {}, driver.now).verdicts
    assert verdict.record[P0].state is State.CANCELLING


def wrong(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError


@pytest.mark.parametrize(("where", "function"), [(tick, "gate_throttles"), (Pacer, "admitted")])
def test_a_bug_at_the_gate_forgets_no_throttle_that_may_land(
    monkeypatch: pytest.MonkeyPatch, where: Any, function: str
) -> None:
    moving = resource({P0: (4, 2, 3)}, throttle={"interBroker": 204800})
    driver = drive(SimKafka({P0: (1, 2, 3)}), moving)
    driver.configs = {**{broker(number): {} for number in driver.kafka.snapshot().brokers}, topic(P0.topic): {}}
    driver.now += 100
    driver.memory = judged(driver).memory
    decision = judged(driver)
    lost = {change: Outcome(Result.UNKNOWN) for change in decision.throttle.changes}
    assert {change.key.resource for change in lost} >= {broker(1), topic(P0.topic)}
    monkeypatch.setattr(where, function, wrong)
    after = gate(decision, lost, driver.now)
    assert (len(after.errors), after.steps) == (1, ())
    assert {sent.change for sent in after.memory.throttle.recent.sent} == lost.keys()
    assert 1 not in after.memory.recent.forwarding.listed
