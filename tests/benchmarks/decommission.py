"""`make bench-decommission`: what a BrokerDecommission costs, and how soon it goes on, on brokers of its own.

A cluster with TOPICS topics. Timed is from the start of `kubectl apply` until the plan's object is there, planning
aside; and from when no replica is left on the broker until the decommission is Empty. Then the operator's CPU while it
is Empty is compared with that before it was made. With `scale=0.1` a tenth of the topics. Ends non-zero when a figure
is over its bound.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka.admin import NewTopic

from tests.benchmarks.apart import API, CLUSTER, NAMESPACE, Apart, apart, eventually
from tests.benchmarks.operator_ import check

BROKERS, TOPICS, ON_IT, AT_ONCE = 6, 1000, 40, 100
IDLE_SECONDS = 310.0
"""All replicas are counted every five minutes."""
PLAN_SECONDS, EMPTY_SECONDS, IDLE_CORES = 2.0, 20.0, 0.01
NAME = "retire-5"


def main(*arguments: str) -> int:
    scale = next((float(a.removeprefix("scale=")) for a in arguments if a.startswith("scale=")), 1.0)
    with apart(BROKERS) as bench:
        topics = [f"topic-{number:04}" for number in range(int(TOPICS * scale))]
        for first in range(0, len(topics), AT_ONCE):
            new = [_topic(number, topics[number]) for number in range(first, min(first + AT_ONCE, len(topics)))]
            bench.kafka.ask(lambda admin, new=new: admin.create_topics(new))
        time.sleep(20)  # what the brokers still do
        before = idle_cores(bench)
        planned, emptied = decommission(bench, topics[:ON_IT])
        after = idle_cores(bench)
    within = [
        check("seconds from apply to the plan's object, planning aside", planned, PLAN_SECONDS),
        check("seconds from the last replica gone to Empty", emptied, EMPTY_SECONDS),
        check("cores when Empty, beside none", after - before, IDLE_CORES),
    ]
    return 0 if all(within) else 1


def _topic(number: int, name: str) -> NewTopic:
    return NewTopic(name, 1, replica_assignment=[[5 if number < ON_IT else number % 5, (number + 1) % 5]])


def decommission(bench: Apart, topics: list[str]) -> tuple[float, float]:
    """Return the seconds until its plan's object was there, and from its last replica until it was Empty."""
    spec = {"clusterRef": {"name": CLUSTER}, "brokers": [5], "approval": "NotRequired"}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    began = time.monotonic()
    bench.apply(
        {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "BrokerDecommission", "metadata": metadata, "spec": spec}
    )
    plan = f"{API}/reassignmentplans/{NAME}-1"
    made = eventually("its plan is there", lambda: bench.api.get(plan) is not None, 120, 0.05) - began
    gone = eventually("its replicas are gone", lambda: not any(on_it(bench, topic) for topic in topics), 300, 0.5)
    empty = eventually("it is Empty", lambda: bench.condition(NAME, "Empty", "brokerdecommission"), 300)
    return made - planning_seconds(bench), empty - gone


def on_it(bench: Apart, topic: str) -> bool:
    return any(5 in replicas for replicas in bench.replicas(topic).values())


def planning_seconds(bench: Apart) -> float:
    """Return how long the plan took to be worked out, by the operator's log."""
    lines = map(json.loads, filter(lambda line: line.startswith("{"), bench.log().splitlines()))
    planned = (line["seconds"] for line in lines if line["event"] == "planned" and line["resource"].endswith(NAME))
    return float(next(planned))


def idle_cores(bench: Apart) -> float:
    cpu, at = bench.cpu_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (bench.cpu_seconds() - cpu) / (time.monotonic() - at)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
