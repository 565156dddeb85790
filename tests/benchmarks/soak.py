"""`make soak`: the operator is killed again and again during one reassignment, and then has nothing to do.

What must hold: the same end as without kills; no replica copied twice (brokers log each one that they create);
nothing left over; and while nothing changes, no write at all, neither to Kafka nor to the API server.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from localplatform.console import PlatformError, say
from tests.benchmarks.platform import world
from tests.e2e.world import MB, World, eventually

PARTITIONS, KILLS, SIZE = 40, 10, 4 * MB
RATE = 400_000
"""Bytes per second on each broker until the last kill: slow enough that all of them are in flight."""
FINISHED = 20
IDLE_SECONDS = 300
WRITES = ("create", "update", "patch", "delete")


def main() -> int:
    soak = world("soak")
    try:
        kills(soak)
        idle(soak)
    except (AssertionError, PlatformError, TimeoutError) as error:
        print(f"soak failed: {error}", file=sys.stderr)
        print(soak.operator.log(), file=sys.stderr)
        return 1
    finally:
        soak.clean_up()
    print(
        f"soak passed: {KILLS} kills, no replica moved twice, nothing left over, and no write in {IDLE_SECONDS} idle s"
    )
    return 0


def kills(soak: World) -> None:
    """One reassignment, during which the operator is killed at random moments."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    say(f"{PARTITIONS} partitions, {KILLS} kills at random moments (seed {seed})")
    before = [[p % 4, (p + 1) % 4] for p in range(PARTITIONS)]
    topic = soak.topic("move", *before, size=SIZE)
    earlier = soak.created(topic)
    soak.kafka.throttle([topic], RATE)
    targets = {(topic, p): [p % 4, (p + 2) % 4] for p in range(PARTITIONS)}
    name = soak.move("move", targets)
    for number in range(1, KILLS + 1):
        time.sleep(chance.uniform(0.2, 6))
        (killed,) = eventually("the operator runs", soak.operator.pids)
        soak.operator.kill()
        eventually("the operator runs again", lambda killed=killed: set(soak.operator.pids()) - {killed})  # type: ignore[misc]
        say(f"kill {number}: {_done(soak, name)} of {PARTITIONS} partitions done")
    if _done(soak, name) == PARTITIONS:
        raise AssertionError("all was done before the last kill; lower RATE")
    soak.let_go(topic)
    soak.wait_for(name, "Succeeded", seconds=180)
    soak.stock_tool_says(targets)
    added = Counter({(p, target[1]): 1 for (_, p), target in targets.items()})
    created = soak.created(topic) - earlier
    if created != added:
        raise AssertionError(f"replicas created in the move, by (partition, broker): {created - added} too many")
    say("succeeded, and each replica was created once")
    soak.delete(name)
    soak.wait_gone(name)
    soak.stock_tool_says(targets)


def _done(soak: World, name: str) -> int:
    progress = ((soak.read(name) or {}).get("status") or {}).get("progress") or {}
    return int(progress.get("partitionsCompleted", 0))


def idle(soak: World) -> None:
    """Nothing changes for IDLE_SECONDS, so nothing is written."""
    topic = soak.topic("idle", *[[p % 4, (p + 1) % 4] for p in range(FINISHED)])
    names = [soak.move(f"idle-{p}", {(topic, p): [(p + 2) % 4, p % 4]}) for p in range(FINISHED)]
    for name in names:
        soak.wait_for(name, "Succeeded", seconds=120)
    say(f"{FINISHED} resources have succeeded; now nothing happens for {IDLE_SECONDS} s")
    time.sleep(5)  # what a watch still brings about the last of them
    before, (pid,), since = _writes(soak), soak.operator.pids(), datetime.now(UTC)
    time.sleep(IDLE_SECONDS)
    patches = _audited_writes(soak.api.audit_log, since)
    after = _writes(soak)
    if soak.operator.pids() != [pid]:
        raise AssertionError("the operator was started again meanwhile")
    say(f"{len(patches)} writes in the API server's audit log; counted by the operator: {_difference(before, after)}")
    if patches or after != before:
        raise AssertionError(f"writes while nothing changed: {patches[:5]} {_difference(before, after)}")


def _writes(soak: World) -> dict[str, float]:
    counted = ("kafka_reassign_kafka_writes_total", "kafka_reassign_status_patches_total")
    return {name: value for name, value in soak.operator.metrics().items() if name.startswith(counted)}


def _difference(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _audited_writes(log: Path, since: datetime) -> list[str]:
    """What anybody wrote to resources of ours since then."""
    found = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        when = datetime.fromisoformat(event["requestReceivedTimestamp"])
        if (
            when >= since
            and event["verb"] in ("create", "update", "patch", "delete")
            and event["stage"] == "ResponseComplete"
        ):
            found.append(f"{event['verb']} {event['requestURI']}")
    return found


if __name__ == "__main__":
    sys.exit(main())
