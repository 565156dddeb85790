"""`make bench-policy`: what a ReassignmentPolicy costs, and how soon a trigger has its plan, on brokers of its own.

A cluster with TOPICS topics, and a policy with a trigger of each kind. First no trigger is true: the operator's CPU is
compared with that before there was a policy, and writes of the policy's record are counted. Then another client
cordons a broker, and they are counted while the time of that trigger runs. At last the trigger is true, and only
`suspend` holds it. Timed is from the start of `kubectl patch`, which lifts that, until the plan's object is there,
planning aside; that is done RUNS times, each with a policy of its own. With `scale=0.1` a tenth of the topics. Ends
non-zero when a figure is over its bound.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.benchmarks.apart import API, CLUSTER, NAMESPACE, Apart, Object, apart, eventually
from tests.benchmarks.decommission import BROKERS, IDLE_CORES, PLAN_SECONDS, TOPICS, create, idle_cores, seconds_to_plan
from tests.benchmarks.operator_ import RECORDS, check

RUNS, TIMER_SECONDS = 3, 185.0
SETTLE_SECONDS, AFTER_SECONDS = 60, 600
CORDONED = 5
WRITES_IDLE, WRITES_A_MINUTE = 0, 1


def main(*arguments: str) -> int:
    scale = next((float(a.removeprefix("scale=")) for a in arguments if a.startswith("scale=")), 1.0)
    with apart(BROKERS) as bench:
        numbers = range(int(TOPICS * scale))
        create(bench, {f"topic-{number:04}": [number % BROKERS, (number + 1) % BROKERS] for number in numbers})
        say_load()
        before = idle_cores(bench)
        bench.apply(policy("idle", AFTER_SECONDS))
        eventually("no trigger is true", lambda: state(bench, "idle", "lost") == "Idle")
        time.sleep(2 * SETTLE_SECONDS)  # until it has been seen that the cluster is settled
        since = datetime.now(UTC)
        after = idle_cores(bench)
        idle = records_written(bench, "idle", since)
        cordon(bench)
        eventually("its time runs", lambda: state(bench, "idle", "cordoned") == "Waiting", 150)
        since = datetime.now(UTC)
        time.sleep(TIMER_SECONDS)
        waiting = records_written(bench, "idle", since) / (TIMER_SECONDS // 60)
        bench.kubectl("delete", "reassignmentpolicy", "idle")
        say_load()
        took = [started(bench, f"run-{number}") for number in range(RUNS)]
        say_load()
    print(f"  cores when idle: {before:.4f} without a policy, {after:.4f} with one")
    print("  seconds to the plan's object:", *(f"{seconds:.2f}" for seconds in took))
    within = [
        check("percent of a core with a policy of all triggers, beside none", (after - before) * 100, IDLE_CORES * 100),
        check("writes of its record when idle", idle, WRITES_IDLE),
        check("writes of its record a minute, while a time runs", waiting, WRITES_A_MINUTE),
        check("seconds from a trigger that may start to the plan's object, planning aside", max(took), PLAN_SECONDS),
    ]
    return 0 if all(within) else 1


def policy(name: str, after_seconds: int, *, suspend: bool = False) -> Object:
    """Return a policy with a trigger of each kind; the schedule's moment is a month away at least."""
    triggers: list[Object] = [
        {"name": "lost", "brokerLost": {"afterSeconds": AFTER_SECONDS}},
        {"name": "cordoned", "brokersCordoned": {"afterSeconds": after_seconds}},
        {"name": "added", "brokersAdded": {"afterSeconds": AFTER_SECONDS}},
        {"name": "yearly", "schedule": {"cron": f"0 0 1 {(datetime.now(UTC).month + 1) % 12 + 1} *"}},
    ]
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "ReassignmentPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "clusterRef": {"name": CLUSTER},
            "suspend": suspend,
            "triggers": triggers,
            "planTemplate": {"goal": {"balance": {}}},
            "settleSeconds": SETTLE_SECONDS,
        },
    }


def state(bench: Apart, name: str, trigger: str) -> str | None:
    """Return the state of a trigger, as its policy says."""
    found = bench.api.get(f"{API}/reassignmentpolicies/{name}") or {}
    triggers = found.get("status", {}).get("triggers", ())
    return next((it["state"] for it in triggers if it["name"] == trigger), None)


def records_written(bench: Apart, name: str, since: datetime) -> int:
    """Return how often the record of a policy was written since then."""
    owned = json.loads(bench.kubectl("get", RECORDS, "-o=json"))["items"]
    its = [it["metadata"]["name"] for it in owned if it["metadata"]["ownerReferences"][0]["name"] == name]
    return sum(len(bench.writes(since, record).get(RECORDS, ())) for record in its)


def cordon(bench: Apart) -> None:
    """Cordon all directories of a broker, as another client does."""
    entry = ConfigEntry("cordoned.log.dirs", "*", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.BROKER, str(CORDONED), incremental_configs=[entry])
    bench.kafka.ask(lambda admin: admin.incremental_alter_configs([change]))


def started(bench: Apart, name: str) -> float:
    """Return the seconds from the edit that lets a trigger start until its plan's object is there."""
    bench.apply(policy(name, 60, suspend=True))
    applied = time.monotonic()
    eventually("suspend holds it", lambda: state(bench, name, "cordoned") == "Held", 300)
    # nothing else does once the cluster has been settled for its time, and that was seen
    time.sleep(max(applied + SETTLE_SECONDS + 30 - time.monotonic(), 0))
    go_on = ("patch", "reassignmentpolicy", name, "--type=merge", "-p", json.dumps({"spec": {"suspend": False}}))
    took = seconds_to_plan(bench, name, f"{name}-cordoned-1", lambda: bench.kubectl(*go_on))
    bench.kubectl("delete", "reassignmentpolicy", name)
    return took


def say_load() -> None:
    """Say how busy the machine is: others may use it."""
    print(f"  load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
