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
from collections.abc import Callable, Mapping, Sequence

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
        create(bench, {name: [5 if n < ON_IT else n % 5, (n + 1) % 5] for n, name in enumerate(topics)})
        before = idle_cores(bench)
        planned, emptied = decommission(bench, topics[:ON_IT])
        after = idle_cores(bench)
    within = [
        check("seconds from apply to the plan's object, planning aside", planned, PLAN_SECONDS),
        check("seconds from the last replica gone to Empty", emptied, EMPTY_SECONDS),
        check("cores when Empty, beside none", after - before, IDLE_CORES),
    ]
    return 0 if all(within) else 1


def create(bench: Apart, topics: Mapping[str, Sequence[int]]) -> None:
    """Make topics of one partition with these replicas, and wait until the brokers are idle."""
    new = [NewTopic(name, 1, replica_assignment=[list(replicas)]) for name, replicas in topics.items()]
    for first in range(0, len(new), AT_ONCE):
        bench.kafka.ask(lambda admin, first=first: admin.create_topics(new[first : first + AT_ONCE]))
    time.sleep(20)  # what the brokers still do


def decommission(bench: Apart, topics: list[str]) -> tuple[float, float]:
    """Return the seconds until its plan's object was there, and from its last replica until it was Empty."""
    spec = {"clusterRef": {"name": CLUSTER}, "brokers": [5], "approval": "NotRequired"}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    obj = {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "BrokerDecommission",
        "metadata": metadata,
        "spec": spec,
    }
    made = seconds_to_plan(bench, NAME, f"{NAME}-1", lambda: bench.apply(obj))
    gone = eventually("its replicas are gone", lambda: not any(on_it(bench, topic) for topic in topics), 300, 0.5)
    empty = eventually("it is Empty", lambda: bench.condition(NAME, "Empty", "brokerdecommission"), 300)
    return made, empty - gone


def on_it(bench: Apart, topic: str) -> bool:
    return any(5 in replicas for replicas in bench.replicas(topic).values())


def seconds_to_plan(bench: Apart, owner: str, plan: str, start: Callable[[], object]) -> float:
    """Return the seconds from then until the plan's object is there, less those that it took to be worked out."""
    began = time.monotonic()
    start()
    path = f"{API}/reassignmentplans/{plan}"
    made = eventually("its plan is there", lambda: bench.api.get(path) is not None, 120, 0.05)
    return made - began - _planning_seconds(bench, owner)


def _planning_seconds(bench: Apart, owner: str) -> float:
    """Return how long the plan took to be worked out, by the operator's log."""
    lines = map(json.loads, filter(lambda line: line.startswith("{"), bench.log().splitlines()))
    planned = (line["seconds"] for line in lines if line["event"] == "planned" and line["resource"].endswith(owner))
    return float(next(planned))


def idle_cores(bench: Apart) -> float:
    cpu, at = bench.cpu_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (bench.cpu_seconds() - cpu) / (time.monotonic() - at)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
