"""`make bench-makespan`: how long the waves of a plan take on real brokers under a throttle, beside what the plan says.

Two of four brokers hold everything, and a plan with a throttle brings half of it to the others, in some waves. Timed is
from its first move that the brokers list until the plan says Succeeded, and within that for each wave how long it had
something in flight, beside what its busiest broker needs and what `simulation` says, and what passed until the first
move of the next: the operator sees the end of one, restores the throttle, and sets it again. Brokers stay below their
throttle (`make bench-throttle`), so one move by itself is timed before, under the same throttle: beside its rate one
sees what is the waves' part. Ends non-zero when that is over TOLERANCE.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka.admin import KafkaAdminClient

from tests.benchmarks import simulation
from tests.benchmarks.platform import world
from tests.e2e.world import Object, World, eventually

MB = 1_000_000
RATE = 4 * MB
SINGLE = 80 * MB
SIZES = {"a": 5, "b": 8, "c": 12, "d": 18, "e": 25, "f": 32}
"""Topics of PARTITIONS partitions each, and the MB that one of them has."""
PARTITIONS = 6
MAX_PARTITIONS = 9
TOLERANCE = 1.05
PLAN = "reassignmentplan"


class Seen(NamedTuple):
    """When the moves of a wave were first and last listed, on the monotonic clock."""

    first: float
    last: float


def main() -> int:
    bench = world("makespan")
    try:
        single = one_move(bench)
        print(
            f"one move of {SINGLE / MB:.0f} MB: {single / MB:.2f} MB/s, {single / RATE:.3f} of the throttle", flush=True
        )
        return 0 if waves(bench, single) else 1
    finally:
        bench.clean_up()


def one_move(bench: World) -> float:
    """The rate of a single throttled move, from where the brokers list it to where they no longer do."""
    topic = bench.topic("one", [0, 1], size=SINGLE)
    with listed(bench) as in_flight:
        name = bench.move("one", {(topic, 0): [2, 1]}, throttle={"interBroker": RATE})
        eventually("the move is in flight", in_flight)
        began = time.monotonic()
        eventually("the move has ended", lambda: not in_flight(), 2 * SINGLE / RATE)
        took = time.monotonic() - began
    bench.wait_for(name, "Succeeded")
    return SINGLE / took


def waves(bench: World, single: float) -> bool:
    """Whether a plan takes as long as its bound, at the rate of a single move."""
    size = {}
    for name, each in SIZES.items():
        topic = bench.topic(f"waves-{name}", *[[p % 2, 1 - p % 2] for p in range(PARTITIONS)], size=each * MB)
        size |= {(topic, p): each * MB for p in range(PARTITIONS)}
    with planned(bench) as name:
        eventually("it is planned", lambda: "digest" in status(bench, name), 120)
        found = status(bench, name)
        wave_of, copied = {}, []
        for number, wave in enumerate(found["waves"]):
            entries = (bench.read(wave["name"]) or {})["spec"]["partitions"]
            wave_of |= {(entry["topic"], entry["partition"]): number for entry in entries}
            copied.append(copies(entries, size))
        bench.patch(name, {"approvedDigest": found["digest"]}, kind=PLAN)
        seen, ended = follow(bench, name, wave_of)
    overall = ended - seen[0].first
    ends = [each.first for each in seen[1:]] + [ended]
    print("wave  partitions  busiest broker  simulated  in flight  ÷ at a single move's rate  until the next begins")
    for number, (each, those, end) in enumerate(zip(seen, copied, ends, strict=True)):
        took, least = each.last - each.first, simulation.busiest(those) / RATE
        print(
            f"{number + 1:4}  {Counter(wave_of.values())[number]:10}  {least:12.1f} s"
            f"  {simulation.seconds(those, RATE):7.1f} s  {took:7.1f} s"
            f"  {took / least * single / RATE:25.3f}  {end - each.last:20.1f} s"
        )
    moves, bound = found["moves"]["seconds"], found["lowerBound"]["seconds"]
    between = sum(end - each.last for each, end in zip(seen, ends, strict=True))
    alone = single / RATE
    print(f"certificate: {moves} s at the throttle, at least {bound} s")
    print(f"took {overall:.1f} s, {between:.1f} s of it with nothing in flight")
    print(f"took ÷ bound: {overall / bound:.3f} at the throttle, {overall / bound * alone:.3f} at a single move's rate")
    ratio = (overall - between) / bound * alone
    print(
        f"and without what had nothing in flight {ratio:.3f}: {'within' if ratio <= TOLERANCE else 'OVER'} {TOLERANCE}"
    )
    return ratio <= TOLERANCE


def copies(entries: list[Object], size: dict[tuple[str, int], int]) -> list[simulation.Copy]:
    """What a wave copies, from the preferred leaders."""
    return [
        simulation.Copy(number, entry["expectedReplicas"][0], broker, size[entry["topic"], entry["partition"]])
        for number, entry in enumerate(entries)
        for broker in set(entry["replicas"]) - set(entry["expectedReplicas"])
    ]


def follow(bench: World, name: str, wave_of: dict[tuple[str, int], int]) -> tuple[list[Seen], float]:
    """The waves as the brokers list them, and when the plan said Succeeded."""
    seen: dict[int, Seen] = {}
    with listed(bench) as in_flight:
        while not succeeded(bench, name):
            now = time.monotonic()
            for number in {wave_of[tp] for tp in in_flight() if tp in wave_of}:
                if number not in seen:
                    print(f"wave {number + 1} has begun", flush=True)
                seen[number] = Seen(seen[number].first if number in seen else now, now)
            time.sleep(0.1)
    return [seen[number] for number in sorted(seen)], time.monotonic()


def succeeded(bench: World, name: str) -> bool:
    return any(c["type"] == "Succeeded" and c["status"] == "True" for c in status(bench, name).get("conditions", ()))


def status(bench: World, name: str) -> Object:
    return dict((bench.read(name, PLAN) or {}).get("status") or {})


@contextmanager
def planned(bench: World) -> Iterator[str]:
    """A plan that balances the bytes of our topics; gone afterwards, with its waves."""
    name = f"{bench.prefix}-plan"
    spec: dict[str, Any] = {
        "topics": {"include": [f"{bench.prefix}-waves-*"]},
        "goal": {"balance": {"by": ["Disk"], "tolerancePercent": 3}},
        "waves": {"maxPartitions": MAX_PARTITIONS},
        "template": {"throttle": {"interBroker": RATE}},
    }
    manifest = bench.manifest(name, {}) | {"kind": "ReassignmentPlan"}
    manifest["spec"] = {"clusterRef": {"name": bench.cluster}} | spec
    bench.apply(manifest)
    try:
        yield name
    finally:
        bench.delete(name, PLAN)
        bench.wait_gone(name, kind=PLAN)
        bench.kubectl("delete", "kpr", f"--selector=kafka.reassign.dev/plan={name}")


@contextmanager
def listed(bench: World) -> Iterator[Callable[[], set[tuple[str, int]]]]:
    """What the brokers list in flight now, by a client that stays connected."""
    admin = KafkaAdminClient(bootstrap_servers=bench.brokers.bootstrap_servers)
    try:
        yield lambda: {(tp.topic, tp.partition) for tp in admin.list_partition_reassignments()}
    finally:
        admin.close()


if __name__ == "__main__":
    sys.exit(main())
