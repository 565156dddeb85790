"""`make bench-throttle`: the rate at which a throttled move copies, beside its throttle.

One partition of SIZE bytes gets another replica on brokers of its own, throttled as the operator throttles it, and
the rate is taken from the alter until the new replica is in sync. Brokers stay below their throttle: of 2.5 MB/s they
used 2.15, of 5 MB/s 4.2 (two cores, all brokers on one machine). Ends non-zero when the rate is further off than
TOLERANCE.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from localplatform.brokers import running
from reassign.core.model import Alter, TopicPartition
from tests.kafka.harness import Kafka, eventually
from tests.unit.throttling import Operator, ended

MB = 1_000_000
SIZE, RATE = 100 * MB, 5 * MB // 2
TOLERANCE = 0.15
TP = TopicPartition("bench-throttle", 0)
OLD, NEW = [0, 1], [2, 1]


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as brokers:
        kafka = Kafka(brokers)
        try:
            kafka.workload.create(TP.topic, [OLD], SIZE)
            found = measure(kafka)
        finally:
            kafka.close()
    ratio = found / RATE
    verdict = "within" if abs(ratio - 1) <= TOLERANCE else "OVER"
    print(
        f"throttle {RATE / MB:.2f} MB/s, copied at {found / MB:.2f} MB/s: ratio {ratio:.3f}, {verdict} {TOLERANCE:.0%}"
    )
    return 0 if verdict == "within" else 1


def measure(kafka: Kafka) -> float:
    """Bytes per second that the new replica got."""
    operator = Operator(kafka.client)

    def begun() -> bool:
        verdict = operator.verdict("bench", {TP: (OLD, NEW)}, str(RATE))
        operator.tick(kafka.observe(TP.topic), [verdict])
        return bool(verdict.steps)

    eventually(begun)
    kafka.perform(Alter(TP, tuple(NEW)))
    started, seen = time.monotonic(), 0
    while not kafka.settled(TP, NEW):
        size = (kafka.observe(TP.topic, sizes_of=[TP]).sizes or {}).get(TP, {}).get(NEW[0], 0)
        if size > seen:
            seen = size
            print(f"{time.monotonic() - started:5.1f} s: {size / MB:6.1f} of {SIZE / MB:.0f} MB", flush=True)
        time.sleep(0.2)
    took = time.monotonic() - started
    moved = operator.verdict("bench", {TP: (OLD, NEW)}, str(RATE), begun=True)
    eventually(lambda: not operator.tick(kafka.observe(TP.topic), [ended(moved)]))
    return SIZE / took


if __name__ == "__main__":
    sys.exit(main())
