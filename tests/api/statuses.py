"""A full status of each kind."""

from tests.api.kubectl import Object

NOW = "2026-01-02T03:04:05Z"
READY: Object = {
    "type": "Ready",
    "status": "False",
    "observedGeneration": 1,
    "lastTransitionTime": NOW,
    "reason": "Moving",
    "message": "1 partition in flight",
}
REASSIGNMENT_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [READY],
    "startTime": NOW,
    "completionTime": NOW,
    "summary": "0/1 partitions, 31 %",
    "progress": {
        "partitionsTotal": 1,
        "partitionsCompleted": 0,
        "partitionsInFlight": 1,
        "partitionsPending": 0,
        "partitionsBlocked": 0,
        "partitionsFailed": 0,
        "partitionsCancelled": 0,
        "bytesTotal": 2**50,
        "bytesCopied": 2**49,
        "percent": 31,
        "bytesPerSecond": 2**33,
        "estimatedCompletionTime": NOW,
    },
    "samples": [{"time": NOW, "bytesCopied": 0}, {"time": NOW, "bytesCopied": 2**49}],
    "adding": 7,
    "removing": 8,
    "partitions": [
        {
            "topic": "orders",
            "partition": 0,
            "state": "InFlight",
            "originalReplicas": [0, 1, 2],
            "currentReplicas": [3, 0, 1, 2],
            "targetReplicas": [3, 1, 2],
            "addingReplicas": [3],
            "removingReplicas": [0],
            "bytesCopied": 2**49,
            "bytesTotal": 2**50,
            "startTime": NOW,
            "completionTime": NOW,
            "waitedFor": "WaitingForBudget",
            "reason": "Moving",
            "message": "half of it is there",
        }
    ],
}
CONFIG: Object = {"name": "leader.replication.throttled.rate", "value": "1024"}
THROTTLES: Object = {
    "interBroker": 1024,
    "brokers": [
        {"broker": 1, "configs": [CONFIG, CONFIG | {"prior": ""}], "copying": []},
        {"broker": 2, "configs": [CONFIG], "copying": [{"topic": "t", "partitions": [0, 7]}]},
    ],
    "topics": [{"topic": "t", "configs": [CONFIG | {"prior": "0:1"}]}],
}
"""Of the record of a KafkaCluster."""
CLUSTER_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [READY | {"status": "True", "reason": "Connected"}],
    "clusterId": "XbsmHWQ7T7aJbTZGRA8vGw",
    "brokers": [{"id": 0, "rack": "a", "fenced": False, "cordoned": True}, {"id": 1, "fenced": True}],
    "replicationFactorGuard": "Native",
    "inFlight": 4,
    "foreignInFlight": {
        "count": 9,
        "partitions": [{"topic": "t", "partition": 0, "addingReplicas": [1], "removingReplicas": []}],
    },
    "throttle": {
        "interBroker": 1024,
        "logDir": 2048,
        "users": [{"namespace": "kafka", "name": "move", "uid": "u"}],
        "via": 1,
        "sentAt": "2026-01-01T00:00:01Z",
        "reason": "NotAuthorized",
        "message": "grant ALTER_CONFIGS",
    },
}
DIGEST = f"sha256:{'0a' * 32}"
SHARES: Object = {"by": "Disk", "leastPercent": 0, "greatestPercent": 541}
PLAN_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [READY | {"reason": "AwaitingApproval", "message": "copy the digest"}],
    "summary": "0/1 waves, 0/200 partitions",
    "digest": DIGEST,
    "plannedInputHash": DIGEST,
    "windowOpen": False,
    "nextWindowTime": NOW,
    "staleDigest": DIGEST,
    "moves": {"replicas": 210, "bytes": 2**50, "leaders": 12},
    "lowerBound": {"bytes": 2**49, "replicas": 200, "waves": 1},
    "balance": {"before": [SHARES], "after": [SHARES | {"leastPercent": 91, "greatestPercent": 109}]},
    "unmet": [{"what": "broker 5 keeps 1 replica", "nearest": "all but that one are moved", "part": "Drain"}],
    "goalObservedTime": NOW,
    "unregisteredBrokers": [7],
    "waves": [{"name": "drain-1", "partitions": 200, "bytes": 2**50, "state": "Pending", "digest": DIGEST}],
}
DECOMMISSION_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [
        READY | {"reason": "WaveInFlight", "message": "retire-5-1: 1/4 waves"},
        READY | {"type": "Empty", "reason": "WaveInFlight"},
        READY | {"type": "Cordoned", "status": "True", "reason": "Cordoned"},
    ],
    "summary": "312 replicas left on broker 5",
    "replicasLeft": 312,
    "digest": DIGEST,
    "brokers": [{"id": 5, "state": "Draining", "replicas": 312, "cordoned": True}],
    "plans": [
        {
            "name": "retire-5-1",
            "digest": DIGEST,
            "bytes": 2**50,
            "lowerBoundBytes": 2**49,
            "replicas": 312,
            "startTime": NOW,
            "completionTime": NOW,
            "outcome": "Running",
        }
    ],
}
POLICY_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [
        READY | {"status": "True", "reason": "AwaitingApproval", "message": "standing-lost-1 waits for approval"},
        READY | {"type": "ApprovalNeeded", "status": "True", "reason": "AwaitingApproval"},
    ],
    "summary": "standing-lost-1 waits for approval",
    "plan": {"name": "standing-lost-1", "trigger": "lost"},
    "digest": DIGEST,
    "lastScheduleTime": NOW,
    "nextScheduleTime": NOW,
    "triggers": [
        {
            "name": "lost",
            "state": "Active",
            "since": NOW,
            "brokers": [5],
            "reason": "PlanInProgress",
            "message": "standing-lost-1 waits for approval",
        }
    ],
    "plans": [DECOMMISSION_STATUS["plans"][0] | {"name": "standing-lost-1", "trigger": "lost"}],
}
