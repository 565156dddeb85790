"""A made PartitionReassignment with all that the API server has about it, as a real run leaves it."""

from __future__ import annotations

import heapq
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reassign.api.limits import MAX_DETAILS, MAX_PART_PARTITIONS
from reassign.cli.report.history import Sources

Object = dict[str, Any]
BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
MIB = 2**20
UID = "uid-march"
ORDER = ("InFlight", "Blocked", "Pending", "Completed")
STATES = {"Pending": None, "Blocked": None, "InFlight": "InFlight", "Completed": "Completed"}


def at(seconds: float) -> str:
    """A time on the wire, counted from the beginning."""
    return (BEGAN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type: str, status: str, reason: str, message: str) -> Object:
    times = {"observedGeneration": 1, "lastTransitionTime": at(0)}
    return {"type": type, "status": status, "reason": reason, "message": message, **times}


def event(reason: str, note: str, seconds: float, kind: str = "PartitionReassignment", **fields: Any) -> Object:
    """As core/v1 shows one that was written as events.k8s.io/v1."""
    about = {"kind": kind, "name": "march" if kind == "PartitionReassignment" else "main"}
    return {
        "metadata": {"creationTimestamp": at(seconds)},
        "type": "Normal",
        "reason": reason,
        "message": note,
        "eventTime": at(seconds).replace("Z", ".000000Z"),
        "firstTimestamp": None,
        "involvedObject": about,
        **fields,
    }


def made(
    partitions: int = 12, topics: tuple[str, ...] = ("orders", "payments"), at_once: int = 4, now: float | None = None
) -> Sources:
    """So many partitions, of which some move at once, until the last has ended or until `now`.

    Partition 0 waits for nothing, and takes 20 seconds. The last one of all is blocked as long as it goes on.
    """
    free = [0.0] * at_once
    moves: list[tuple[str, int, float, float]] = []
    for i in range(partitions):
        began = heapq.heappop(free)
        ended = began + 20 + (i * 7) % 30
        heapq.heappush(free, ended)
        moves.append((topics[i % len(topics)], i // len(topics), began, ended))
    end = max(ended for *_, ended in moves)
    until = end if now is None else now
    details = [_detail(move, until, i == partitions - 1 and now is not None) for i, move in enumerate(moves)]
    described = sorted(details, key=lambda detail: ORDER.index(detail["state"]))[:MAX_DETAILS]
    done = sum(detail["state"] == "Completed" for detail in details)
    ready = ("True", "Completed", "all partitions are at their target, in sync") if done == partitions else (
        "False", "PartitionsInFlight", f"{done} of {partitions} partitions are at their target")  # fmt: skip
    status: Object = {
        "observedGeneration": 1,
        "conditions": [condition("Ready", *ready), condition("Succeeded", *ready)],
        "startTime": at(0),
        "summary": f"{done}/{partitions} partitions",
        "progress": {
            "partitionsTotal": partitions,
            "partitionsCompleted": done,
            "partitionsInFlight": sum(detail["state"] == "InFlight" for detail in details),
            "partitionsPending": sum(detail["state"] == "Pending" for detail in details),
            "partitionsBlocked": sum(detail["state"] == "Blocked" for detail in details),
            "bytesTotal": partitions * 64 * MIB,
            "bytesCopied": _copied(moves, until),
            **({"bytesPerSecond": 12 * MIB} if done < partitions else {}),
        },
        "samples": [{"time": at(until * i / 20), "bytesCopied": _copied(moves, until * i / 20)} for i in range(21)],
        "partitions": described,
    }
    if done == partitions:
        status["completionTime"] = at(end)
    entries = [{"topic": topic, "partition": p, "replicas": [3, 1, 2]} for topic, p, *_ in moves]
    meta: Object = {"name": "march", "namespace": "kafka", "uid": UID, "generation": 1, "creationTimestamp": at(-30)}
    meta["managedFields"] = [written(-30)]
    spec = {"clusterRef": {"name": "main"}, "partitions": entries, "throttle": {"interBroker": "20Mi"}}
    return Sources(
        obj={"kind": "PartitionReassignment", "metadata": meta, "spec": spec, "status": status},
        records=_records(details) if partitions > MAX_DETAILS else [],
        events=[
            event("ReassignmentStarted", "partitions are in flight; status says how far they are", 1),
            event("BudgetHalved", "the budget of partitions in flight was halved", 30, "KafkaCluster", type="Warning"),
            event(
                "BrokerFenced",
                "broker 4 is fenced",
                40,
                type="Warning",
                series={"count": 3, "lastObservedTime": at(50)},
            ),
        ],
        cluster=cluster(),
        now=BEGAN + timedelta(seconds=until if now is not None else end + 60),
    )


def written(seconds: float, field: str = "f:spec", **fields: str) -> Object:
    """How the API server keeps a write."""
    return {"manager": "kubectl", "operation": "Update", "time": at(seconds), "fieldsV1": {field: {}}, **fields}


def cluster() -> Object:
    users = [{"namespace": "kafka", "name": name, "uid": f"uid-{name}"} for name in ("march", "april")]
    return {
        "kind": "KafkaCluster",
        "metadata": {"name": "main", "namespace": "kafka", "uid": "uid-main", "managedFields": [written(-60)]},
        "spec": {"bootstrapServers": "b:9092", "throttle": {"interBroker": "50Mi"}},
        "status": {"throttle": {"interBroker": 20 * MIB, "users": users}},
    }


def _copied(moves: list[tuple[str, int, float, float]], seconds: float) -> int:
    shares = (min(max((seconds - began) / (ended - began), 0), 1) for *_, began, ended in moves)
    return int(sum(shares) * 64 * MIB)


def _detail(move: tuple[str, int, float, float], until: float, blocked: bool) -> Object:
    topic, partition, began, ended = move
    state = "Blocked" if blocked else "Pending" if began > until else "InFlight" if ended > until else "Completed"
    detail: Object = {"topic": topic, "partition": partition, "state": state, "targetReplicas": [3, 1, 2]}
    if state == "Blocked":
        return detail | {"reason": "BrokerFenced", "message": "broker 3 is fenced; start it"}
    if state == "Pending":
        message = "broker 3 receives 4 replicas already; it starts when one of them is done"
        return detail | {"reason": "WaitingForBudget", "message": message}
    detail |= {"originalReplicas": [0, 1, 2], "startTime": at(began)}
    if began:
        detail["waitedFor"] = "WaitingForBudget"
    if state == "InFlight":
        return detail | {"bytesCopied": 32 * MIB, "bytesTotal": 64 * MIB}
    return detail | {"completionTime": at(ended)}


def _records(details: list[Object]) -> list[Object]:
    held = [detail for detail in details if STATES[detail["state"]]]
    return [
        _record(n, held[at : at + MAX_PART_PARTITIONS]) for n, at in enumerate(range(0, len(held), MAX_PART_PARTITIONS))
    ]


def _record(part: int, details: list[Object]) -> Object:
    kept = ("partition", "originalReplicas", "targetReplicas", "state", "startTime", "completionTime", "waitedFor")
    topics = [
        {"topic": d["topic"], "topicId": "id", "partitions": [{key: d[key] for key in kept if key in d}]}
        for d in details
    ]
    owner = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "PartitionReassignment", "name": "march", "uid": UID}
    meta = {"name": f"{UID}-{part}", "namespace": "kafka", "uid": f"record-{part}", "ownerReferences": [owner]}
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": part, "topics": topics}
    return {"kind": "ReassignmentRecord", "metadata": meta, "spec": spec}


def named(topic: str) -> Sources:
    """One whose topic, and whatever else is text, is of this name."""
    sources = made(3, (topic,), now=10)
    obj, cluster = deepcopy(sources.obj), deepcopy(sources.cluster)
    assert cluster
    obj["metadata"] |= {"name": topic, "labels": {"kafka.reassign.dev/plan": topic}}
    obj["spec"]["clusterRef"] = {"name": topic}
    obj["status"]["summary"] = topic
    for one in (*obj["status"]["partitions"], *obj["status"]["conditions"]):
        one |= {"reason": "Named", "message": topic}
    events = [event(topic, topic, 3, involvedObject={"kind": topic, "name": topic})]
    return replace(sources, obj=obj, events=events)
