"""The states of a BrokerDecommission that docs/reference/conditions.md shows, as the simulator brings them about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reassign.api.kafka_cluster import Execution
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, GONE, UNREACHABLE, Decommissions, SimDecommission, orders
from tests.unit.kstatus import NEW, Object, seen


def decommissions() -> Iterator[tuple[str, Object]]:
    """Its states, in the order of a life."""
    yield "applied, and not seen by the operator yet", NEW
    yield "a plan is being worked out", _seen(_applied().until("Planning"))
    incomplete = _applied()
    incomplete.brokers[1] = FENCED
    yield "no complete plan is possible now", _seen(incomplete.until("DrainIncomplete"))
    incomplete.tick(60)
    yield "the same, after `stallTimeoutSeconds`", _seen(incomplete.objects["old"])
    yield "a broker is not known", _seen(_applied(brokers=[99]).until("UnknownBroker"))
    few = _applied()
    few.factor = 6
    yield "too few brokers would remain", _seen(few.until("NotEnoughBrokers"))
    unreadable = _applied(windows=[{"cron": "0 25 * * *", "durationSeconds": 3600}])
    yield "a window cannot be read", _seen(unreadable.until("InvalidSchedule"))
    run = _applied()
    it = run.until("AwaitingApproval")
    yield "waits for approval", _seen(it)
    it.edit(approvedDigest=f"sha256:{'f' * 64}")
    run.tick()
    yield "the same, and `approvedDigest` is another one", _seen(it)
    busy = _applied(approval="NotRequired")
    busy.replicas |= {TopicPartition("many", number): (5, 1) for number in range(6)}
    busy.replicas[TopicPartition("another", 0)] = (4, 1)
    busy.until("WaveInFlight")
    second = busy.apply("second", [4], approval="NotRequired")
    busy.until("PlanInProgress", "second")
    yield "another BrokerDecommission goes first", _seen(second)
    it.approve()
    run.tick(3)
    yield "a wave is in flight", _seen(it)
    outside = _begun()
    outside.objects["old"].edit(windows=[{"cron": "0 22 * * *", "durationSeconds": 3600}])
    yield "approved, and none of its windows is open", _seen(outside.until("OutsideWindow"))
    suspended = _begun()
    suspended.objects["old"].edit(suspend=True)
    yield "suspended", _seen(suspended.until("Suspended"))
    braked = _begun()
    braked.execution = Execution.PAUSE
    yield "`execution` of the KafkaCluster is `Pause`", _seen(braked.until("Suspended"))
    unreachable = _begun()
    unreachable.problem = UNREACHABLE
    yield "Kafka is unreachable", _seen(unreachable.until("ClusterUnreachable"))
    unreachable.tick(60)
    yield "the same, after `stallTimeoutSeconds`", _seen(unreachable.objects["old"])
    failed = _applied(approval="NotRequired")
    while failed.objects["old"].reason != "PlanFailed":
        failed.tick()
        plan = failed.objects["old"].record.plan
        if plan and plan.approved and not plan.retired:
            failed.plans[plan.name].deleted = True
    yield "three plans in a row could not go on", _seen(failed.objects["old"])
    run.until("Empty")
    yield "empty", _seen(it)
    landed = _begun()
    landed.until("Empty")
    landed.replicas[TopicPartition("late", 0)] = (5, 1)
    yield "a replica has landed there again", _seen(landed.until("BrokerNotEmpty"))
    silent = _begun()
    silent.until("Empty")
    silent.silent.add(5)
    yield "one of the brokers does not answer", _seen(silent.until("NotObserved"))
    hidden = _begun()
    hidden.until("Empty")
    hidden.replicas[TopicPartition("secret", 0)] = (5, 1)
    hidden.withheld.add("secret")
    yield "the operator may not describe a topic there", _seen(hidden.until("NotAuthorized"))
    voter = _down()
    voter.voters = frozenset({5})
    yield "empty and down, and a voter of the controller quorum", _seen(voter.until("QuorumVoter"))
    earlier = _down()
    earlier.lists_fenced = False
    yield "empty and down, before Kafka 4.0", _seen(earlier.until("NotSupported"))
    yield "empty, and unregistered by the operator", _seen(_down().until("Unregistered"))
    run.brokers[5] = GONE
    yield "empty, and unregistered by others", _seen(run.until("Gone"))
    deleted = _begun()
    deleted.delete()
    yield "being deleted", _seen(deleted.until("Deleting"))


def _applied(**fields: Any) -> Decommissions:
    run = Decommissions(orders((5, 1), (2, 5), (5, 3), (1, 2)))
    run.apply(**fields)
    return run


def _begun() -> Decommissions:
    run = _applied(approval="NotRequired")
    run.until("WaveInFlight")
    return run


def _down() -> Decommissions:
    run = _applied(approval="NotRequired", unregister="WhenDown")
    run.until("Empty")
    run.brokers[5] = FENCED
    return run


def _seen(it: SimDecommission) -> Object:
    return seen(it.status, it.generation, it.deleted)
