"""What docs/reference/conditions.md shows: states that the simulators bring about, and what each tool says of them.

Printed by `python -m tests.unit.kstatus_table`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.goal import GoalPart
from reassign.api.kafka_cluster import Execution, KafkaCluster, KafkaClusterStatus
from reassign.api.reassignment_plan import Unmet
from reassign.core.claim import ClaimState
from reassign.core.cluster import ClusterHold, brake_of, cluster_status, unready_status
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.plans.model import PlanOrder
from reassign.core.report.statuses import blind
from reassign.errors import Reason
from tests.unit.argocd import health
from tests.unit.decommission_states import decommissions
from tests.unit.kstatus import NEW, Object, helm_wait, kstatus, kubectl_wait, seen
from tests.unit.plan_sim import OLD, Stage, approved, stage
from tests.unit.policy_states import policies
from tests.unit.sim import START, Driver, SimKafka, drive, partitions, resource

P0, P1 = partitions(2)
UNREACHABLE = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
HEADER = ("State", "Ready", "also True", "kstatus", "`kubectl wait` for Ready", "`helm --wait`", "Argo CD")


def lines(kind: str) -> list[str]:
    """The table of a kind, in Markdown."""
    rows = [HEADER, ("---",) * len(HEADER), *(_row(kind, state, obj) for state, obj in STATES[kind]())]
    return [f"| {' | '.join(cells)} |" for cells in rows]


def _row(kind: str, state: str, obj: Object) -> tuple[str, ...]:
    conditions = obj["status"].get("conditions", ())
    ready = next((f"{c['status']}, `{c['reason']}`" for c in conditions if c["type"] == "Ready"), "-")
    true = ", ".join(f"`{c['type']}`" for c in conditions if c["status"] == "True" and c["type"] != "Ready")
    return state, ready, true or "-", kstatus(obj), kubectl_wait(obj), helm_wait(obj), health(kind, obj)[0]


# --- PartitionReassignment ---


def reassignments() -> Iterator[tuple[str, Object]]:
    """Its states, in the order of a life."""
    yield "applied, and not seen by the operator yet", NEW
    driver = _driver()
    driver.ticks(3)
    yield "in flight", _seen(driver)
    driver.ticks(60)
    yield "in flight, and not nearer to its end for `stallTimeoutSeconds`", _seen(driver)
    driver.finish()
    yield "completed", _seen(driver)
    yield "completed, then edited, and the edit is not seen yet", {**_seen(driver), "metadata": {"generation": 2}}
    driver = _driver(theirs=True)
    driver.ticks(3)
    yield "another client moves the partition", _seen(driver)
    driver.ticks(60)
    yield "the same, after `stallTimeoutSeconds`", _seen(driver)
    yield "an unknown broker is asked for", _seen(_ticked(_driver((99, 1, 2))))
    yield "suspended, nothing in flight", _seen(_ticked(_driver(suspend=True)))
    driver = _driver(hold=brake_of(Execution.PAUSE))
    yield "waiting, and `execution` of the KafkaCluster is `Pause`", _seen(_ticked(driver))
    yield "failed at its deadline", _seen(_ticked(_driver(theirs=True, deadlineSeconds=5), 9))
    yield "a dry run that passes", _seen(_ticked(_driver(mode="DryRun")))
    yield "a dry run that fails, an unknown broker", _seen(_ticked(_driver((99, 1, 2), mode="DryRun")))
    waits = resource({P0: (3, 1, 2)})
    first = blind(waits, UNREACHABLE, START)
    yield "Kafka is unreachable", seen(first, 1)
    later = blind(replace(waits, status=first), UNREACHABLE, START + timedelta(seconds=600))
    yield "the same, after `stallTimeoutSeconds`", seen(later, 1)
    driver = _ticked(_driver())
    driver.kafka.unsafe = {P0}
    driver.delete("a")
    driver.ticks(2)
    yield "being deleted, the cancel is not confirmed", _seen(driver)


def _driver(
    target: tuple[int, ...] = (3, 1, 2), *, theirs: bool = False, hold: Problem | None = None, **fields: Any
) -> Driver:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}, sizes={P0: {0: 10, 1: 10, 2: 10}})
    if theirs:
        kafka.move_as_another(P0, (4, 1, 2))
    return drive(kafka, resource({P0: target}, **{"stallTimeoutSeconds": 60, **fields}), hold=hold)


def _ticked(driver: Driver, times: int = 3) -> Driver:
    driver.ticks(times)
    return driver


def _seen(driver: Driver) -> Object:
    found = driver.resources["a"]
    return seen(found.status, found.generation, found.deleted)


# --- ReassignmentPlan ---


def plans() -> Iterator[tuple[str, Object]]:
    """Its states, in the order of a life."""
    yield "applied, and not seen by the operator yet", NEW
    plan = stage()
    plan.tick(2)
    yield "being worked out", _plan(plan)
    plan.tick(3)
    yield "waits for approval", _plan(plan)
    incomplete = stage(topics={"exclude": ["audit"]})
    incomplete.kafka.add(TopicPartition("audit", 0), OLD)
    left = "1 replica of excluded topics on brokers to be emptied: 1 (topics: audit)"
    incomplete.unmet = (Unmet(what=left, nearest="they stay", part=GoalPart.DRAIN),)
    incomplete.tick(5)
    yield "the same, and `spec.topics` excludes topics on a drained broker", _plan(incomplete)
    owner = {"kind": BrokerDecommission.KIND, "name": "retire-1", "controller": True}
    owned = stage()
    owned.order = PlanOrder()
    owned.tick(5)
    found = _plan(owned)
    metadata = {**found["metadata"], "ownerReferences": [owner]}
    yield "waits for the approval of the BrokerDecommission that owns it", {**found, "metadata": metadata}
    suspended = stage(suspend=True)
    suspended.tick(5)
    yield "suspended", _plan(suspended)
    outside = approved(windows=[{"cron": "0 22 * * *", "durationSeconds": 3600}])
    outside.tick()
    yield "approved, and none of its windows is open", _plan(outside)
    unreadable = approved(windows=[{"cron": "0 25 * * *", "durationSeconds": 3600}])
    unreadable.tick()
    yield "a window cannot be read", _plan(unreadable)
    plan.approve()
    plan.tick()
    plan.begin()
    plan.tick()
    yield "a wave is in flight", _plan(plan)
    failed = approved()
    failed.tick()
    failed.begin()
    failed.finish("Failed")
    failed.tick()
    yield "a wave has failed", _plan(failed)
    restarts = approved()
    restarts.kafka.brokers[4] = Broker(4, "r", fenced=True)
    restarts.tick()
    yield "a broker that the next wave copies to is fenced", _plan(restarts)
    stale = approved()
    stale.kafka.replicas[TopicPartition("orders", 0)] = (5, 2, 3)
    stale.tick()
    yield "the cluster is not as the next wave expects it", _plan(stale)
    plan.run()
    yield "carried out", _plan(plan)
    incomplete.approve()
    incomplete.run()
    yield "carried out, and the drain is incomplete", _plan(incomplete)
    owned.order = PlanOrder(retired=True)
    owned.run(3)
    yield "ended by its BrokerDecommission before it was carried out", _plan(owned)


def _plan(plan: Stage) -> Object:
    return seen(plan.status, plan.generation, plan.deleted)


# --- KafkaCluster ---


def clusters() -> Iterator[tuple[str, Object]]:
    """Its states."""
    yield "applied, and not seen by the operator yet", NEW
    yield "connecting", _cluster(unready_status(_main(), Problem(Reason.CONNECTING, "connecting"), START))
    snapshot = SimKafka({P0: (0, 1, 2)}).snapshot()
    yield "connected", _cluster(cluster_status(_main(), snapshot, [], ClusterHold(), START))
    paused = ClusterHold(pause=brake_of(Execution.PAUSE))
    yield "connected, `execution` is `Pause`", _cluster(cluster_status(_main(), snapshot, [], paused, START))
    first = unready_status(_main(), UNREACHABLE, START)
    yield "unreachable", _cluster(first)
    later = unready_status(_main(first), UNREACHABLE, START + timedelta(seconds=600))
    yield "unreachable for 10 minutes", _cluster(later)
    refused = Problem(Reason.AUTHENTICATION_FAILED, "the password is refused")
    yield "the credentials are refused", _cluster(unready_status(_main(), refused, START))
    duplicate = Problem(Reason.DUPLICATE_CLUSTER, "use the older one")
    yield "an older KafkaCluster stands for the same brokers", _cluster(unready_status(_main(), duplicate, START))
    claimed = Problem(Reason.CLUSTER_CLAIMED, "use the other one")
    yield "another installation of the operator has the claim", _cluster(unready_status(_main(), claimed, START))
    not_allowed = Problem(Reason.NOT_AUTHORIZED, "grant READ on the group")
    unclaimed = ClusterHold(claim=ClaimState(0.0).failed(not_allowed, 0.0, lasts=True))
    served = _cluster(cluster_status(_main(), snapshot, [], unclaimed, START))
    yield "connected, without the right to the group of the claim", served
    drifting = ClusterHold(drift=Problem(Reason.THROTTLE_DRIFT, "find that client"))
    served = _cluster(cluster_status(_main(), snapshot, [], drifting, START))
    yield "connected, and another client changes throttles again and again", served


def _main(status: KafkaClusterStatus | None = None) -> KafkaCluster:
    metadata = {"name": "main", "namespace": "kafka", "uid": "uid", "resourceVersion": "1", "generation": 1}
    parsed = KafkaCluster.parse({"metadata": metadata, "spec": {"bootstrapServers": "b:9092"}})
    return parsed.model_copy(update={"status": status}) if status else parsed


def _cluster(status: KafkaClusterStatus) -> Object:
    return seen(status, 1)


STATES = {
    "PartitionReassignment": reassignments,
    "ReassignmentPlan": plans,
    "BrokerDecommission": decommissions,
    "ReassignmentPolicy": policies,
    "KafkaCluster": clusters,
}

if __name__ == "__main__":
    for kind in STATES:
        print(f"## {kind}\n", *lines(kind), "", sep="\n")
