"""`make bench-reaction`: how fast the operator is, as somebody outside sees it.

Three times, over RUNS moves of one partition each, none of which moved before: from the start of `kubectl apply`
until the brokers list the move, from the start of `kubectl patch` that pulls the brake until they list it no more, and
from the last added replica in sync until the resource says Succeeded. Ends non-zero when a maximum is over its bound.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from kafka.admin import KafkaAdminClient

from tests.benchmarks.platform import world
from tests.e2e.world import MB, World

RUNS = 20
APPLY_SECONDS, BRAKE_SECONDS, SUCCEEDED_SECONDS = 2.0, 2.0, 5.0
BEFORE, TARGET = [0, 1], [2, 3]
SIZE = 3 * MB
"""At the held rate enough to stay in flight until it has been seen."""


def main() -> int:
    bench = world("reaction")
    to_alter, to_stop, to_succeeded = [], [], []
    try:
        topic = bench.topic("bench", *[BEFORE] * RUNS, size=SIZE)
        for run in range(RUNS):
            alter, stop, succeeded = measure(bench, topic, run)
            to_alter.append(alter)
            to_stop.append(stop)
            to_succeeded.append(succeeded)
            said = f"apply to alter {alter:.2f} s, brake to stop {stop:.2f} s, in sync to Succeeded {succeeded:.2f} s"
            print(f"run {run + 1:2}: {said}", flush=True)
    finally:
        bench.clean_up()
    within = [
        _report("kubectl apply to the alter request", to_alter, APPLY_SECONDS),
        _report("CancelOurs to nothing in flight", to_stop, BRAKE_SECONDS),
        _report("last replica in sync to Succeeded", to_succeeded, SUCCEEDED_SECONDS),
    ]
    return 0 if all(within) else 1


def measure(bench: World, topic: str, partition: int) -> tuple[float, float, float]:
    """The three times of one move, in seconds."""
    bench.hold(topic)
    admin = KafkaAdminClient(bootstrap_servers=bench.brokers.bootstrap_servers)
    try:
        started = time.monotonic()
        name = bench.move(f"run-{partition}", {(topic, partition): TARGET})
        altered = _first(listed := lambda: any(tp.topic == topic for tp in admin.list_partition_reassignments()))
        pulled = time.monotonic()
        bench.patch("local", {"execution": "CancelOurs"}, kind="kafkacluster")
        stopped = _first(lambda: not listed())
        bench.patch("local", {"execution": "Run"}, kind="kafkacluster")
        _first(listed)
    finally:
        admin.close()
    bench.let_go(topic)
    in_sync = _first(lambda: bench.kafka.in_sync(topic, {partition: TARGET}))
    succeeded = _first(lambda: bench.condition(name, "Succeeded").get("status") == "True")
    return altered - started, stopped - pulled, succeeded - in_sync


def _first(happened: Callable[[], bool]) -> float:
    """When it was first seen, on the monotonic clock."""
    deadline = time.monotonic() + 60
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError("waited in vain")
        time.sleep(0.01)
    return time.monotonic()


def _report(what: str, seconds: list[float], bound: float) -> bool:
    worst = max(seconds)
    verdict = "within" if worst <= bound else "OVER"
    print(f"{what}: median {statistics.median(seconds):.2f} s, maximum {worst:.2f} s, {verdict} {bound:.0f} s")
    return worst <= bound


if __name__ == "__main__":
    sys.exit(main())
