"""Made objects that the verbs of the command line show and change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from reassign.api.common import API_VERSION
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL
from reassign.cli.objects import Item
from reassign.core.automation.approval import shown_digest

Object = dict[str, Any]
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DIGEST, OTHER = f"sha256:{'0a' * 32}", f"sha256:{'0b' * 32}"
MIB, GIB = 2**20, 2**30


def condition(type: str, status: str = "True", reason: str = "Completed", message: str = "all is done") -> Object:
    times = {"observedGeneration": 1, "lastTransitionTime": "2026-01-31T11:00:00Z"}
    return {"type": type, "status": status, "reason": reason, "message": message, **times}


def made(kind: str, name: str, spec: Object, status: Object, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": "kafka", "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    meta["creationTimestamp"] = "2026-01-31T11:40:00Z"
    return {"kind": kind, "metadata": meta | metadata, "spec": spec, "status": {"observedGeneration": 1} | status}


def detail(topic: str, partition: int, adding: int, removing: int, copied: int, total: int) -> Object:
    return {
        "topic": topic,
        "partition": partition,
        "state": "InFlight",
        "addingReplicas": [adding],
        "removingReplicas": [removing],
        "bytesCopied": copied,
        "bytesTotal": total,
    }


def moving(name: str = "drain-5-wave", **metadata: Any) -> Object:
    """Twelve partitions of which three are in flight, 5 to 3 and 4."""
    details = [
        detail("orders", 0, 3, 5, 6 * GIB, 8 * GIB),
        detail("orders", 1, 4, 5, 2 * GIB, 8 * GIB),
        detail("payments", 7, 3, 5, GIB, 4 * GIB),
    ]
    entries = [{"topic": "orders", "partition": p, "replicas": [3, 1, 2]} for p in range(11)]
    spec = {
        "clusterRef": {"name": "main"},
        "partitions": [*entries, {"topic": "payments", "partition": 7, "replicas": [3, 1, 2]}],
    }
    status = {
        "conditions": [
            condition("Ready", "False", "PartitionsInFlight", "4 of 12 partitions are at their target"),
            condition("Succeeded", "False", "PartitionsInFlight", "4 of 12 partitions are at their target"),
            condition("Reconciling", "True", "PartitionsInFlight", "4 of 12 partitions are at their target"),
        ],
        "summary": "4/12 partitions, 40 %, about 9 min left",
        "progress": {
            "partitionsTotal": 12,
            "partitionsCompleted": 4,
            "partitionsInFlight": 3,
            "partitionsPending": 5,
            "bytesTotal": 49 * GIB,
            "bytesCopied": 20 * GIB,
            "percent": 40,
            "bytesPerSecond": 52 * MIB,
            "estimatedCompletionTime": (NOW + timedelta(minutes=9)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "partitions": details,
    }
    return made("PartitionReassignment", name, spec, status, **metadata)


def ended(name: str = "march", type: str = "Succeeded", **metadata: Any) -> Object:
    ready = condition("Ready", str(type == "Succeeded"), "Completed", "all 8 partitions are at their target, in sync")
    spec = {
        "clusterRef": {"name": "main"},
        "partitions": [{"topic": "orders", "partition": p, "replicas": [1, 2]} for p in range(8)],
    }
    progress = {"partitionsTotal": 8, "partitionsCompleted": 8}
    status = {"conditions": [ready, condition(type)], "summary": "8/8 partitions, 100 %", "progress": progress}
    return made("PartitionReassignment", name, spec, status, **metadata)


def suspended(name: str = "next", **metadata: Any) -> Object:
    obj = ended(name, **metadata)
    obj["spec"]["suspend"] = True
    obj["status"]["conditions"] = [condition("Ready", "False", "Suspended", "spec.suspend is true")]
    obj["status"] |= {"summary": "0/8 partitions", "progress": {"partitionsTotal": 8, "partitionsPending": 8}}
    return obj


def plan(name: str = "drain-5", **status: Any) -> Object:
    """A plan with two waves that awaits its approval."""
    waves = [
        {"name": "drain-5-wave", "partitions": 12, "bytes": 49 * GIB, "state": "Pending", "digest": DIGEST},
        {"name": "drain-5-wave-2", "partitions": 3, "bytes": 2 * GIB, "state": "Pending", "digest": OTHER},
    ]
    known = {
        "conditions": [condition("Ready", "False", "AwaitingApproval", "read it, then approve it")],
        "summary": "0/2 waves, 0/15 partitions",
        "digest": DIGEST,
        "moves": {"replicas": 15, "bytes": 51 * GIB, "leaders": 4, "seconds": 1044},
        "waves": waves,
    }
    spec = {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [5]}, "approval": "Required"}
    return made("ReassignmentPlan", name, spec, known | status)


def wave_of(plan: Object) -> Object:
    meta = plan["metadata"]
    return moving(labels={PLAN_LABEL: meta["name"], PLAN_UID_LABEL: meta["uid"]})


def decommission(name: str = "decommission-5", **status: Any) -> Object:
    """A BrokerDecommission of broker 5 whose plan awaits its approval."""
    known = {
        "conditions": [
            condition("Ready", "False", "AwaitingApproval", "decommission-5-1: 2 waves, 15 partitions; copy it"),
            condition("Empty", "False", "AwaitingApproval"),
            condition("Cordoned", "False", "NotYet"),
        ],
        "summary": "15 replicas left on broker 5",
        "replicasLeft": 15,
        "digest": shown_digest([DIGEST, OTHER], frozenset({5})),
        "brokers": [{"id": 5, "state": "Serving", "replicas": 15, "cordoned": False}],
    }
    spec = {"clusterRef": {"name": "main"}, "brokers": [5], "approval": "Required"}
    return made("BrokerDecommission", name, spec, known | status)


def empty(name: str = "decommission-6") -> Object:
    """A BrokerDecommission whose broker can be stopped."""
    known = {
        "conditions": [
            condition("Ready", "True", "Empty", "broker 6 is empty, and can be stopped"),
            condition("Empty", "True", "Empty", "broker 6 is empty, and can be stopped"),
            condition("Cordoned", "True", "Cordoned"),
        ],
        "summary": "0 replicas left on broker 6",
        "replicasLeft": 0,
        "digest": None,
        "brokers": [{"id": 6, "state": "Empty", "replicas": 0, "cordoned": True}],
    }
    obj = decommission(name, **known)
    obj["spec"]["brokers"] = [6]
    return obj


def policy(name: str = "main", **status: Any) -> Object:
    """A ReassignmentPolicy with a trigger in each state; the plan for a lost broker awaits its approval."""
    current, digest = f"{name}-lost-2", shown_digest([DIGEST, OTHER], frozenset({5}), f"{name}-lost-2")
    awaits = f"{current}: 2 waves, 15 partitions; copy status.digest, {digest}, to spec.approvedDigest"
    last = {"name": f"{name}-saturday-1", "trigger": "saturday", "digest": DIGEST, "outcome": "Succeeded"}
    last |= {"bytes": 48 * GIB, "lowerBoundBytes": 45 * GIB, "replicas": 14}
    triggers = [
        trigger("lost", "Active", awaits, brokers=[5]),
        trigger("scale-in", "Waiting", "broker 3 is cordoned, for less than 1800 s", brokers=[3]),
        trigger(
            "scale-out",
            "Held",
            f"broker 6 has few replicas, the same ones for 600 s; {current} waits for its approval",
            reason="PlanInProgress",
            brokers=[6],
        ),
        trigger("saturday", "Idle", "next at 2026-02-07 01:00 UTC"),
    ]
    known = {
        "conditions": [
            condition("Ready", "True", "AwaitingApproval", awaits),
            condition("ApprovalNeeded", "True", "AwaitingApproval", awaits),
        ],
        "summary": awaits,
        "plan": {"name": current, "trigger": "lost"},
        "digest": digest,
        "nextScheduleTime": "2026-02-07T01:00:00Z",
        "triggers": triggers,
        "plans": [last | {"startTime": "2026-01-31T01:05:00Z", "completionTime": "2026-01-31T03:00:00Z"}],
    }
    spec = {
        "clusterRef": {"name": "main"},
        "triggers": [
            {"name": "lost", "brokerLost": {"afterSeconds": 1800, "maxBrokers": 1}},
            {"name": "scale-in", "brokersCordoned": {"afterSeconds": 1800}},
            {"name": "scale-out", "brokersAdded": {"afterSeconds": 600, "belowPercent": 20}},
            {"name": "saturday", "schedule": {"cron": "0 2 * * 6", "timeZone": "Europe/Berlin"}},
        ],
        "approval": "Required",
        "planTemplate": {"goal": {"balance": {"by": ["Disk"], "tolerancePercent": 10}}},
        "settleSeconds": 600,
    }
    written = [
        {"manager": "kafka-reassign-operator", "subresource": "status", "time": "2026-01-31T11:58:00Z"},
        {"manager": "kubectl", "time": "2026-01-31T11:59:00Z"},
    ]
    return made("ReassignmentPolicy", name, spec, known | status, managedFields=written)


def trigger(name: str, state: str, message: str, **more: Any) -> Object:
    return {"name": name, "state": state, "since": "2026-01-31T11:40:00Z", "message": message} | more


def made_by(owner: Object, **status: Any) -> Object:
    """The plan that was made for a BrokerDecommission or a ReassignmentPolicy."""
    meta = owner["metadata"]
    ref = {"apiVersion": API_VERSION, "kind": owner["kind"], "controller": True}
    current = owner["status"].get("plan") or {"name": f"{meta['name']}-1"}
    obj = plan(current["name"], **status)
    obj["metadata"] |= {"ownerReferences": [ref | {"name": meta["name"], "uid": meta["uid"]}]}
    return obj


def cluster(**status: Any) -> Object:
    known = {
        "conditions": [condition("Ready", "True", "Connected", "connected")],
        "brokers": [{"id": id, "rack": f"rack-{id % 3}", "fenced": id == 5} for id in range(6)],
        "inFlight": 3,
        "foreignInFlight": {
            "count": 1,
            "partitions": [{"topic": "logs", "partition": 0, "addingReplicas": [2], "removingReplicas": [5]}],
        },
        "throttle": {"interBroker": 50 * MIB},
    }
    return made("KafkaCluster", "main", {"bootstrapServers": "b:9092"}, known | status)


def item(obj: Object) -> Item:
    return Item(obj)
