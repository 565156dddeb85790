"""A made fleet for the report: the same seed gives the same data. What it says adds up as a real one does."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from reassign.api.goal import COUNTED
from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import Row
from reassign.fleet.report.model import Cluster, Fleet, State

GIB = 2**30
NEWEST = datetime(2026, 11, 21, 23, 5, tzinfo=UTC)
TEAMS = ("payments", "orders", "clicks", "search", "ledger", "telemetry", "iot", "mail", "risk", "stock")
PLACES = ("eu-west", "eu-north", "us-east", "us-west", "ap-south")
TOPICS = ("events", "orders.v2", "audit", "clickstream", "metrics.raw", "sessions", "invoices", "dead-letters")
KINDS = (
    ("UnknownBroker", "partitions", "replica 41 of events-7 is on no broker of the snapshot"),
    ("LeaderOutsideIsr", "partitions", "orders.v2-3 is led by 4, its ISR is [1, 2]"),
    ("PartitionGap", "partitions", "audit: 5 partitions up to 7"),
    ("UnreadableFile", "log_dirs", "the file ends before its footer"),
    ("SharedClusterId", "", "rZ0y9vQ7TkGf0xkJ8yq3Gw is the id of ledger-eu-west-2 too"),
)
BAND = [0.9, 1.1]
NOTHING: Row = {
    "waves": [],
    **dict.fromkeys(("bytes", "bytes_bound", "moves", "moves_bound", "leaders", "waves_bound"), 0),
    "makespan": None,
    "makespan_bound": None,
}

Loads = Mapping[str, Sequence[float]]
Brokers = Mapping[str, Sequence[Any]]


def made(clusters: int = 60, seed: int = 1, brokers: int = 30, giant: int = 0) -> Fleet:
    """So many clusters of about so many brokers each; the first of them has `giant` brokers, where that is not 0."""
    chance = random.Random(seed)
    names = [f"{TEAMS[i % len(TEAMS)]}-{PLACES[i // len(TEAMS) % len(PLACES)]}-{i // 50 + 1}" for i in range(clusters)]
    found = [_cluster(chance, name, giant if giant and i == 0 else brokers) for i, name in enumerate(names)]
    quarantine = [verdict for one in found if one.state == "Quarantined" for verdict in _quarantined(chance, one)]
    return Fleet(NEWEST, "0.1.0", f"{chance.getrandbits(48):012x}", found, quarantine)


def _quarantined(chance: random.Random, cluster: Cluster) -> list[Verdict]:
    return [
        Verdict(cluster.name, "2026-11-21", table, kind, chance.randint(1, 400), example, True)
        for kind, table, example in chance.sample(KINDS, chance.choice((1, 1, 2)))
    ]


def _cluster(chance: random.Random, name: str, brokers: int) -> Cluster:
    state: State = chance.choices(("Planned", "Unchanged", "NotPlanned", "Quarantined"), (70, 20, 5, 5))[0]
    partitions = brokers * chance.randint(20, 60)
    topics = max(1, partitions // chance.randint(6, 24))
    found, after, target = _brokers(chance, brokers, partitions, state)
    stored = int(sum(found["bytes"]))
    costs = _costs(chance, found, after) if state == "Planned" else NOTHING
    planned = state in ("Planned", "Unchanged")
    cluster = Cluster(
        name=name,
        cluster_id=f"{chance.getrandbits(128):032x}"[:22],
        taken_at=NEWEST - timedelta(minutes=chance.randint(0, 50)),
        state=state,
        problem=None,
        goal="balance Disk, Replicas, Leaders within 10 %"
        + (f"; drain {found['broker'][-1]}" if planned and not target["Disk"][-1] else ""),
        load={
            "brokers": brokers,
            "topics": topics,
            "partitions": partitions,
            "replicas": int(sum(found["replicas"])),
            "bytes": stored,
            "violations": chance.choice((0, 0, 0, chance.randint(1, partitions // 4))) if state == "Planned" else 0,
        },
        plan=_plan(found, after, target) | costs if planned else {},
        brokers=found,
        racks=_racks(found, {by: found[of.what] for by, of in COUNTED.items()}),
        topics=[],
        disks=[],
        leftovers=[],
    )
    cluster.topics, cluster.disks = _growth(chance, found, stored)
    if state == "NotPlanned":
        cluster.problem = {
            "reason": "NotEnoughBrokers",
            "message": "replication factor 3 needs 3 brokers, and the goal leaves 2; change goal.brokers",
        }
    if state == "Quarantined":
        cluster.problem = {
            "reason": "SnapshotBroken",
            "message": "take a new snapshot; nothing is planned from this one",
        }
        cluster.load, cluster.brokers, cluster.racks, cluster.topics, cluster.disks = {}, {}, [], [], []
    if state == "Planned" and chance.random() < 0.06:
        cluster.plan["unmet"] = [{"what": "disk of broker 4 within 10 %", "nearest": "127 % of its share"}]
    if planned and chance.random() < 0.1:
        since = NEWEST - timedelta(days=chance.randint(1, 30))
        cluster.leftovers = [
            {"kind": "Throttle", "what": "leader.replication.throttled.rate on 6 brokers", "since": since}
        ]
    return cluster


def _brokers(chance: random.Random, brokers: int, partitions: int, state: State) -> tuple[Brokers, Loads, Loads]:
    """The brokers as they are, and what would lie on them after a plan, and should."""
    racks = [f"/dc{i % 2 + 1}/row{i // 2 % 3 + 1}" for i in range(brokers)]
    size = chance.choice((1, 2, 4)) * 1024 * GIB
    weights = [chance.choice((1, 1, 1, 2)) if brokers > 12 and i >= brokers // 2 else 1 for i in range(brokers)]
    drained = state == "Planned" and chance.random() < 0.15
    if drained:
        weights[-1] = 0
    totals = {"Disk": size * brokers * chance.uniform(0.2, 0.4), "Replicas": partitions * 3, "Leaders": partitions}
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    target: dict[str, list[float]] = {}
    for by, total in totals.items():
        target[by] = [total * weight / sum(weights) for weight in weights]
        skew = 0.35 if state == "Planned" else 0.03
        rough = [max(weight, drained) * chance.lognormvariate(0, skew) for weight in weights]
        if state == "Planned" and chance.random() < 0.3:
            rough[0] = 0  # new
        before[by] = [float(round(total * one / sum(rough))) for one in rough]
        near = [weight * chance.uniform(0.94, 1.06) for weight in weights]
        after[by] = [float(round(total * one / sum(near))) for one in near] if state == "Planned" else before[by]
    rows: Brokers = {
        "broker": list(range(brokers)),
        "rack": racks,
        "capacity": [None if brokers < 6 else size * max(1, weight) for weight in weights],
        **{of.what: before[by] for by, of in COUNTED.items()},
    }
    return rows, after, target


def _plan(brokers: Brokers, after: Loads, target: Loads) -> Row:
    """A plan that costs nothing."""
    return {
        "racks": _racks(brokers, after),
        "after": after,
        "target": target,
        "balance": [
            {
                "by": by.value,
                "before": _ends(brokers[of.what], target[by]),
                "after": _ends(after[by], target[by]),
                "reachable": 1.0,
                "band": BAND,
            }
            for by, of in COUNTED.items()
        ],
        "unmet": [],
        **NOTHING,
    }


def _ends(load: Sequence[float], target: Sequence[float]) -> list[float]:
    shares = [has / should for has, should in zip(load, target, strict=True) if should]
    return [min(shares), max(shares)]


def _racks(brokers: Brokers, loads: Loads) -> list[Row]:
    found: list[Row] = []
    for level in (1, 2):
        places = ["/" + "/".join(rack.split("/")[1 : level + 1]) for rack in brokers["rack"]]
        for place in sorted(set(places)):
            mine = [i for i, one in enumerate(places) if one == place]
            lying = {of.what: sum(loads[by][i] for i in mine) for by, of in COUNTED.items()}
            found.append({"level": level, "path": place, "brokers": len(mine), **lying})
    return found


def _costs(chance: random.Random, brokers: Brokers, after: Loads) -> Row:
    gained = [max(0, a - b) for b, a in zip(brokers["bytes"], after["Disk"], strict=True)]
    bound, waves = int(sum(gained)), chance.randint(1, 12)
    bytes_ = int(bound * chance.uniform(1.0, 1.3))
    moves = max(1, int(sum(brokers["replicas"]) * bytes_ / sum(brokers["bytes"])))
    parts = sorted((chance.uniform(0.5, 1.5) for _ in range(waves)), reverse=True)
    throttled = chance.random() < 0.8
    made_waves = [
        {
            "partitions": max(1, moves // waves),
            "bytes": int(bytes_ * one / sum(parts)),
            "seconds": bytes_ * one / sum(parts) / (50 * 2**20 * len(brokers["broker"]) / 4) * chance.uniform(1, 1.5)
            if throttled
            else None,
        }
        for one in parts
    ]
    seconds = sum(wave["seconds"] or 0 for wave in made_waves) if throttled else None
    return {
        "waves": made_waves,
        "bytes": bytes_,
        "bytes_bound": bound,
        "moves": moves,
        "moves_bound": int(moves * chance.uniform(0.8, 1)),
        "leaders": moves // 2,
        "waves_bound": max(1, waves - chance.randint(0, 1)),
        "makespan": seconds,
        "makespan_bound": seconds and seconds * chance.uniform(0.85, 1),
    }


def _growth(chance: random.Random, brokers: Brokers, stored: int) -> tuple[list[Row], list[Row]]:
    """The topics and the disks."""
    shares = sorted((chance.random() ** 3 for _ in TOPICS), reverse=True)
    disks = sorted(
        (
            (broker, int(used), capacity or 2048 * GIB, int(used * chance.random() ** 3 * 0.05))
            for broker, used, capacity in zip(brokers["broker"], brokers["bytes"], brokers["capacity"], strict=True)
        ),
        key=lambda one: (one[2] - one[1]) / max(1, one[3]),
    )
    growing = [
        {
            "topic": topic,
            "bytes": int(stored * share / 5),
            "bytes_per_day": stored * share / 5 * chance.uniform(0.001, 0.03),
        }
        for topic, share in zip(TOPICS, shares, strict=True)
    ]
    filling = [
        {
            "broker": broker,
            "path": "/var/lib/kafka/data",
            "used_bytes": used,
            "total_bytes": total,
            "bytes_per_day": float(grows),
            "days_until_full": max(0.0, (total - used) / grows) if grows else None,
        }
        for broker, used, total, grows in disks[:10]
    ]
    return growing, filling
