"""`make bench-failover`: the controllers fail again and again while writes are queued, and the operator is killed.

Each time a resource is deleted whose changes or alters have no answer. What must hold: nothing is in flight and no
throttle is left when the operator has released it, and nothing comes after that.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from localplatform.brokers import Brokers, running
from localplatform.console import say
from localplatform.processes import wait_until
from reassign.core.model.snapshot import TopicPartition
from tests.kafka.live import Stopping
from tests.unit.sim import resource

FAILOVERS, PARTITIONS, SIZE = 20, 3, 3 * 2**20
FAILURES = ("the active controller is killed", "all controllers are stopped", "all controllers are killed")
LONGEST_SECONDS = 20.0


def main() -> int:
    seed = random.randrange(10**6)
    say(f"{FAILOVERS} failovers, {PARTITIONS} partitions each (seed {seed})")
    chance = random.Random(seed)
    seconds: list[float] = []
    unanswered = 0
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as brokers:
        for number in range(FAILOVERS):
            stage = ("steps", "changes")[number % 2]
            found = fail(brokers, number, FAILURES[number % len(FAILURES)], stage, chance.uniform(1, LONGEST_SECONDS))
            seconds.append(found[0])
            unanswered += found[1]
    print(
        f"nothing orphaned after {FAILOVERS} failovers with {unanswered} writes without an answer; from the failure to "
        f"the release: median {statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s"
    )
    return 0


def fail(brokers: Brokers, number: int, failure: str, stage: str, lasts: float) -> tuple[float, int]:
    """Fail once; the seconds until the resource was released, and the writes that had no answer."""
    stopping = Stopping(brokers)
    operator, topic = stopping.operator, f"failover-{number}"
    stopping.kafka.workload.create(topic, [[0, 1]] * PARTITIONS, SIZE)
    partitions = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    active = brokers.active_controller()
    stopping.at(stage, *([active] if "active" in failure else brokers.controllers))
    operator.add(resource(dict.fromkeys(partitions, (0, 2)), throttle={"interBroker": "1Ki"}))
    operator.run(lambda: operator.unanswered > 0, 60)
    began = time.monotonic()
    operator.delete("a")
    operator.kill()
    killed = [] if "stopped" in failure else [active] if "active" in failure else list(brokers.controllers)
    for node in killed:
        brokers.kill(node)
    time.sleep(lasts)
    stopping.go_on()
    for node in killed:
        brokers.restart(node)
    stopping.leaves_nothing(*partitions)
    took = time.monotonic() - began
    say(f"{number + 1}: {failure} at the {stage} for {lasts:.0f} s: released after {took:.0f} s, nothing is left")
    stopping.kafka.close()
    if not wait_until(lambda: brokers.registered() == set(brokers.ids), 60):
        raise TimeoutError("not all brokers are there again")
    return took, operator.unanswered


if __name__ == "__main__":
    sys.exit(main())
