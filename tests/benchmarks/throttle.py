"""`make bench-throttle`: the rate at which a throttled move goes over the wire, beside its throttle.

One partition of SIZE bytes gets another replica on brokers of its own, throttled as the operator throttles it. On the
wire is what the broker of the new replica reads meanwhile; it is the rate of this that may be no further off than
TOLERANCE. What is copied is less: a response of replica.fetch.max.bytes ends in the middle of a batch, which is sent
again whole with the next one, and the larger the batches of a producer the more of that there is. It is said for the
whole move, from the alter until the new replica is in sync, and for what lies well inside of it.

Brokers stay below their throttle. One that has used it up asks again after replica.fetch.backoff.ms (1 s), and its
quota is over the last eleven samples of a second (replication.quota.window.num): these begin and end with what came at
once, so that ten seconds have eleven of them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from localplatform.brokers import Brokers, running
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Alter
from tests.kafka.harness import Kafka, eventually
from tests.unit.throttling import Operator, ended

MB = 1_000_000
SIZE, RATE = 100 * MB, 5 * MB // 2
INSIDE = range(SIZE // 5, SIZE * 4 // 5)
TOLERANCE = 0.15
TP = TopicPartition("bench-throttle", 0)
OLD, NEW = [0, 1], [2, 1]


class Rates(NamedTuple):
    """Bytes per second."""

    on_the_wire: float
    copied: float
    copied_inside: float


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as brokers:
        kafka = Kafka(brokers)
        try:
            kafka.workload.create(TP.topic, [OLD], SIZE)
            found = measure(kafka)
        finally:
            kafka.close()
    print(f"throttle {RATE / MB:.2f} MB/s")
    for name, rate in found._asdict().items():
        print(f"{name.replace('_', ' '):14} {rate / MB:.2f} MB/s: ratio {rate / RATE:.3f}")
    within = abs(found.on_the_wire / RATE - 1) <= TOLERANCE
    print(f"on the wire: {'within' if within else 'OVER'} {TOLERANCE:.0%}")
    return 0 if within else 1


def measure(kafka: Kafka) -> Rates:
    operator = Operator(kafka.client)
    operator.know(kafka.observe(TP.topic))

    def begun() -> bool:
        verdict = operator.verdict("bench", {TP: (OLD, NEW)}, str(RATE))
        operator.tick(kafka.observe(TP.topic), [verdict])
        return bool(operator.after(verdict).steps)

    eventually(begun)
    read_before = bytes_read(kafka.brokers, NEW[0])
    kafka.perform(Alter(TP, tuple(NEW)))
    started, seen = time.monotonic(), [(0.0, 0)]
    while not kafka.settled(TP, NEW):
        size = (kafka.observe(TP.topic, sizes_of=[TP]).sizes or {}).get(TP, {}).get(NEW[0], 0)
        if size > seen[-1][1]:
            seen.append((time.monotonic() - started, size))
            print(f"{seen[-1][0]:5.1f} s: {size / MB:6.1f} of {SIZE / MB:.0f} MB", flush=True)
        time.sleep(0.2)
    took, read = time.monotonic() - started, bytes_read(kafka.brokers, NEW[0]) - read_before
    moved = operator.verdict("bench", {TP: (OLD, NEW)}, str(RATE), begun=True)
    eventually(lambda: not operator.tick(kafka.observe(TP.topic), [ended(moved)]))
    inside = [(at, size) for at, size in seen if size in INSIDE]
    (begin, first), (end, last) = inside[0], inside[-1]
    return Rates(read / took, SIZE / took, (last - first) / (end - begin))


def bytes_read(brokers: Brokers, broker: int) -> int:
    """What a broker's process has read so far (proc(5)); all but a little of it from the network."""
    process = brokers.processes.find(f"kafka-{broker}")
    assert process
    fields = dict(line.split(": ") for line in Path(f"/proc/{process.pid}/io").read_text().splitlines())
    return int(fields["rchar"])


if __name__ == "__main__":
    sys.exit(main())
