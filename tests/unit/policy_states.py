"""The states of a ReassignmentPolicy that docs/reference/conditions.md shows, as the simulator brings them about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reassign.api.kafka_cluster import Execution
from tests.unit.automation_sim import FENCED, UNREACHABLE, orders
from tests.unit.kstatus import NEW, Object, seen
from tests.unit.policy_sim import Policies, SimPolicy

LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}, "approval": "NotRequired"}
LATE = {"name": "nightly", "schedule": {"cron": "0 4 * * *"}}
NEVER_OPEN = [{"cron": "0 0 30 2 *", "durationSeconds": 300}]
NEW_YEAR = [{"cron": "0 0 1 1 *", "durationSeconds": 300}]


def policies() -> Iterator[tuple[str, Object]]:
    """Its states, in the order of a life."""
    yield "applied, and not seen by the operator yet", NEW
    run, it = _applied()
    run.tick()
    yield "no trigger is true", _seen(it)
    run.brokers[5] = FENCED
    run.rest(900)
    yield "a trigger waits, until a broker has been down for long enough", _seen(it)
    held, its = _lost(1, approval="NotRequired")
    held.plans["main-lost-1"].deleted = True
    held.rest(60)
    yield "a trigger is held, until the next plan is due", _seen(its)
    waits, its = _lost(1)
    yield "a plan waits for approval", _seen(its)
    its.edit(approvedDigest=f"sha256:{'f' * 64}")
    waits.tick()
    yield "the same, and `approvedDigest` is another one", _seen(its)
    its.edit(suspend=True)
    waits.tick()
    yield "suspended, and a plan waits for approval", _seen(its)
    run.wait(lambda: run.begun)
    yield "a plan is under way", _seen(it)
    outside, its = _lost(1, approval="NotRequired", windows=NEW_YEAR)
    outside.tick()
    yield "the same, and none of its windows is open", _seen(its)
    its.edit(suspend=True)
    outside.tick()
    yield "suspended, and a plan is under way", _seen(its)
    braked, its = _applied()
    braked.execution = Execution.PAUSE
    braked.tick()
    yield "`execution` of the KafkaCluster is `Pause`", _seen(its)
    many, its = _applied()
    for broker in (3, 4, 5):
        many.brokers[broker] = FENCED
    many.rest(900)
    yield "more brokers are down than `maxBrokers`, for ten minutes", _seen(its)
    racks, its = _applied(brokerLost={"maxBrokers": 2})
    racks.racks = {broker: "b" if broker > 3 else "a" for broker in range(6)}
    racks.brokers[4] = racks.brokers[5] = FENCED
    racks.wait(lambda: its.reason == "RackLost")
    yield "all brokers of a rack are lost", _seen(its)
    failed, its = _applied()
    failed.brokers[5] = FENCED
    while its.reason != "PlanFailed":
        failed.tick()
        plan = its.record.plan
        if plan and not plan.retired:
            failed.plans[plan.name].deleted = True
    yield "three plans of a trigger in a row could not go on", _seen(its)
    yield "a schedule never comes", _after(schedule={"cron": "0 0 30 2 *"})
    yield "a window never opens", _after(**LATE, windows=NEVER_OPEN)
    double, _ = _applied()
    double.tick()
    second = double.policy(LOST, name="second")
    double.tick()
    yield "an older ReassignmentPolicy is for the same KafkaCluster", _seen(second)
    deaf, its = _applied()
    deaf.deaf = True
    deaf.tick()
    yield "no broker reaches a controller", _seen(its)
    unreachable, its = _applied()
    unreachable.problem = UNREACHABLE
    unreachable.tick()
    yield "Kafka is unreachable", _seen(its)
    unreachable.rest(900)
    yield "the same, after `stallTimeoutSeconds`", _seen(its)


def _applied(**trigger: Any) -> tuple[Policies, SimPolicy]:
    run = Policies(orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1)))
    return run, run.policy(LOST | trigger)


def _lost(broker: int, **trigger: Any) -> tuple[Policies, SimPolicy]:
    """One whose trigger has made a plan for a broker that is lost."""
    run, it = _applied(**{"approval": "Required"} | trigger)
    run.brokers[broker] = FENCED
    run.wait(lambda: it.status.digest or it.record.plan)
    return run, it


def _after(**trigger: Any) -> Object:
    run = Policies(orders((5, 1)))
    it = run.policy({"name": "nightly"} | trigger)
    run.tick()
    return _seen(it)


def _seen(it: SimPolicy) -> Object:
    return seen(it.status, it.generation)
