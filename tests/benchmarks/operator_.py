"""`make bench-operator`: the operator beside the stock tool, in one run, on brokers and an API server of their own.

- `empty`: EMPTY empty partitions over six brokers, by kafka-reassign-partitions, by the operator with its caps off, and
  with those that it has by default.
- `throttled`: THROTTLED partitions under a throttle, by both.
- `large`: one resource of LARGE partitions: how many a second, and how often and how slowly the API server is written
  to, by kind.
- `many`: MANY resources of EACH partitions; how soon one more is acted on, and what the operator takes when it is idle.

Timed is from the start of `kubectl apply`, or of the tool, until the brokers list no move of the topic and have all
replicas where they should be. Ratios are over the stock tool's time. Arguments choose some of these, and with
`scale=0.1` a tenth of the partitions. Ends non-zero when a figure is over its bound.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median
from threading import Thread

from tests.benchmarks.apart import Apart, Object, Targets, apart, eventually, manifest, report_writes

BROKERS = 6
EMPTY, THROTTLED, LARGE = 1000, 1000, 2000
MANY, EACH, REACTIONS, IDLE_SECONDS = 1000, 10, 100, 60
BYTES, RATE = 128 * 1024, 1024 * 1024
"""Of one throttled partition, and of the throttle, a second."""
CAPS_OFF: Object = {"partitionsInFlight": 10_000, "movesPerBroker": 1000}
CAPS_OFF_RATIO, DEFAULT_RATIO, THROTTLED_RATIO = 1.5, 3.0, 1.05
PARTITIONS_PER_SECOND, STATUS_SECONDS, RECORD_SECONDS = 20.0, 5.0, 0.02
REACTION_SECONDS, RSS_BYTES, IDLE_CORES = 2.0, 256 * 2**20, 0.05
RECORDS, STATUS = "reassignmentrecords", "partitionreassignments/status"
SECONDS = 1800


def main(*arguments: str) -> int:
    scale = next((float(a.removeprefix("scale=")) for a in arguments if a.startswith("scale=")), 1.0)
    stages = {"empty": empty, "throttled": throttled, "large": large, "many": many}
    chosen = [stages[a] for a in arguments if a in stages] or [*stages.values()]
    with apart(BROKERS) as bench:
        within = [stage(bench, scale) for stage in chosen]
    return 0 if all(within) else 1


def empty(bench: Apart, scale: float) -> bool:
    """Whether empty partitions are moved nearly as fast as by the stock tool."""
    count = int(EMPTY * scale)
    print(f"{count} empty partitions", flush=True)
    stock = by_stock_tool(bench, "empty-stock", count)
    within = []
    for name, limits, bound in (("caps-off", CAPS_OFF, CAPS_OFF_RATIO), ("default-caps", {}, DEFAULT_RATIO)):
        bench.limit(limits)
        took = by_operator(bench, f"empty-{name}", count)
        within.append(check(f"{name.replace('-', ' ')} ÷ stock tool", took / stock, bound))
    return all(within)


def throttled(bench: Apart, scale: float) -> bool:
    """Whether a throttle is used up as the stock tool uses it up."""
    count = int(THROTTLED * scale)
    print(f"{count} partitions of {BYTES >> 10} KiB under a throttle of {RATE >> 10} KiB/s", flush=True)
    bench.limit({})
    stock = by_stock_tool(bench, "throttled-stock", count, BYTES, RATE)
    took = by_operator(bench, "throttled", count, BYTES, RATE)
    return check("throttled ÷ stock tool", took / stock, THROTTLED_RATIO)


def large(bench: Apart, scale: float) -> bool:
    """Whether one large resource goes on at speed, and what it costs the API server."""
    count, since = int(LARGE * scale), datetime.now(UTC)
    print(f"one resource of {count} empty partitions", flush=True)
    bench.limit({})
    took = by_operator(bench, "large", count)
    writes = bench.writes(since)
    report_writes(writes)
    # the first and the last say that it has begun, and that it has ended
    own = sorted(write.at for write in bench.writes(since, "large").get(STATUS, ()))[1:-1]
    between = [(b - a).total_seconds() for a, b in pairwise(own)]
    within = [check("partitions a second", count / took, PARTITIONS_PER_SECOND, at_least=True)]
    if between:
        within.append(check("seconds between writes of its status", min(between), STATUS_SECONDS, at_least=True))
    if records := writes.get(RECORDS):
        within.append(check("seconds of a record's write, median", median(w.seconds for w in records), RECORD_SECONDS))
    return all(within)


def many(bench: Apart, scale: float) -> bool:
    """Whether many resources slow nothing down, and cost nothing when all is done."""
    count = int(MANY * scale)
    print(f"{count} resources of {EACH} partitions", flush=True)
    bench.limit({})
    names = [f"many-{number:04}" for number in range(count)]
    per_topic = 100
    for first in range(0, count, per_topic):
        topic, numbers = f"many-{first}", range(min(per_topic, count - first))
        bench.kafka.create(topic, [[p % BROKERS] for p in range(len(numbers) * EACH)])
        bench.apply(*(manifest(names[first + n], topic, _next(range(n * EACH, (n + 1) * EACH), 1)) for n in numbers))
    began = time.monotonic()
    all_done = eventually("all have succeeded", lambda: _succeeded(bench, names), SECONDS, 2)
    print(f"  all have succeeded {all_done - began:.0f} s after the last was made", flush=True)
    reactions = [
        _reaction(bench, names[n], f"many-{n - n % per_topic}", n % per_topic) for n in range(min(REACTIONS, count))
    ]
    eventually("all have succeeded again", lambda: _succeeded(bench, names), SECONDS, 2)
    time.sleep(20)  # what watches still bring
    since, cpu, kafka, at = datetime.now(UTC), bench.cpu_seconds(), bench.kafka_writes(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    cores = (bench.cpu_seconds() - cpu) / (time.monotonic() - at)
    written = sum(map(len, bench.writes(since).values())) + bench.kafka_writes() - kafka
    print(f"  reaction: median {median(reactions):.2f} s, maximum {max(reactions):.2f} s")
    return all(
        [
            check("reaction in seconds, p99", sorted(reactions)[ceil(0.99 * len(reactions)) - 1], REACTION_SECONDS),
            check("memory in MiB, greatest", bench.memory() / 2**20, RSS_BYTES / 2**20),
            check("cores when idle", cores, IDLE_CORES),
            check("writes when idle", written, 0),
        ]
    )


def _next(numbers: range, by: int) -> Targets:
    return {p: [(p + by) % BROKERS] for p in numbers}


def _succeeded(bench: Apart, names: Sequence[str]) -> bool:
    found = json.loads(bench.kubectl("get", "partitionreassignments", "-o=json"))["items"]
    ready = {o["metadata"]["name"] for o in found if _is_done(o)}
    return ready.issuperset(names)


def _is_done(obj: Object) -> bool:
    status = obj.get("status", {})
    current = status.get("observedGeneration") == obj["metadata"]["generation"]
    return current and any(c["type"] == "Succeeded" and c["status"] == "True" for c in status.get("conditions", ()))


def _reaction(bench: Apart, name: str, topic: str, number: int) -> float:
    """From the start of `kubectl apply` of other targets until the first partition has its replica there."""
    first = number * EACH
    obj = manifest(name, topic, _next(range(first, first + EACH), 2))
    began = time.monotonic()
    apply = Thread(target=bench.apply, args=(obj,))
    apply.start()
    try:
        target = (first + 2) % BROKERS
        return eventually("it moves", lambda: target in bench.replicas(topic)[first], 60, 0.02) - began
    finally:
        apply.join()


def by_stock_tool(bench: Apart, topic: str, count: int, size: int = 0, rate: int = 0) -> float:
    """How long the stock tool takes for so many partitions."""
    targets = _topic(bench, topic, count, size)
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "reassignment.json")
        entries = [{"topic": topic, "partition": n, "replicas": list(replicas)} for n, replicas in targets.items()]
        plan.write_text(json.dumps({"version": 1, "partitions": entries}))
        options = ["--reassignment-json-file", str(plan)]
        throttle = ["--throttle", str(rate)] if rate else []
        took = _timed(
            bench, topic, targets, lambda: bench.brokers.tool("reassign-partitions", "--execute", *options, *throttle)
        )
        bench.brokers.tool("reassign-partitions", "--verify", *options)
    print(f"  stock tool: {took:.1f} s", flush=True)
    bench.kafka.delete([topic])
    return took


def by_operator(bench: Apart, name: str, count: int, size: int = 0, rate: int = 0) -> float:
    """How long the operator takes for so many partitions of one resource."""
    targets = _topic(bench, name, count, size)
    obj = manifest(name, name, targets, **({"throttle": {"interBroker": rate}} if rate else {}))
    began, cpu = time.monotonic(), bench.cpu_seconds()
    took = _timed(bench, name, targets, lambda: bench.apply(obj))
    succeeded = eventually("it has succeeded", lambda: bench.condition(name, "Succeeded"), SECONDS) - began
    used = bench.cpu_seconds() - cpu
    print(f"  operator, {name}: {took:.1f} s, Succeeded after {succeeded:.1f} s, {used:.1f} s of CPU", flush=True)
    bench.kubectl("delete", "partitionreassignment", name)
    bench.kafka.delete([name])
    return took


def _topic(bench: Apart, topic: str, count: int, size: int) -> Targets:
    """Make it; where its partitions are to go. The leader stays."""
    bench.kafka.create(topic, [[n % BROKERS, (n + 1) % BROKERS] for n in range(count)], size)
    return {n: [n % BROKERS, (n + 2) % BROKERS] for n in range(count)}


def _timed(bench: Apart, topic: str, targets: Targets, start: Callable[[], object]) -> float:
    began = time.monotonic()
    start()
    return eventually(f"{topic} is moved", lambda: bench.moved(topic, targets), SECONDS) - began


def check(what: str, figure: float, bound: float, *, at_least: bool = False) -> bool:
    within = figure >= bound if at_least else figure <= bound
    print(
        f"{what}: {figure:.2f}, {'within' if within else 'OVER'} {'at least ' if at_least else ''}{bound:g}", flush=True
    )
    return within


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
