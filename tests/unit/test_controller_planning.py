"""From a job to a plan: what the process that plans does around the planner itself."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace

import numpy as np
import pytest

from reassign.api.goal import Awareness, By
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL, ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.controller.apart import run_apart
from reassign.controller.planning import SECONDS, Job, work_out
from reassign.core.model import TopicPartition
from reassign.core.plan import Plan, Planned
from reassign.planning import model
from tests.unit.sim import SimKafka

A, B, C = (TopicPartition(topic, 0) for topic in ("a", "b", "c"))
SPEC = {
    "clusterRef": {"name": "main"},
    "goal": {"drainBrokers": [1], "replicationFactor": 3, "balance": {"by": ["Disk"], "tolerancePercent": 5}},
    "waves": {"maxPartitions": 1, "maxBytes": "1Gi"},
    "racks": {"awareness": "Flat"},
    "template": {"throttle": {"interBroker": "2Mi"}},
}


def job(rate: int | None = 2**21) -> Job:
    kafka = SimKafka(dict.fromkeys((A, B, C), (1, 2)))
    kafka.sizes = {tp: {1: size, 2: size} for tp, size in ((A, 100), (B, 300), (C, 7))}
    plan = Plan("uid", 1, "team-a", "drain", 3, ReassignmentPlanSpec.parse(SPEC), ReassignmentPlanStatus(), True)
    return Job(plan, kafka.snapshot(), ("*",), 10, rate)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the planner was asked; it moves A and B off broker 1 and adds a replica, in a wave each."""
    seen: list[tuple[object, ...]] = []

    def make(cluster: model.Cluster, goal: model.Goal, *limits: object) -> model.Plan:
        seen.append((goal, *limits))
        at = {broker: index for index, broker in enumerate(cluster.brokers.tolist())}
        moved = [at[3], at[2], at[4]]
        rows = np.array([moved, moved, [at[1], at[2], -1]], np.int32)
        certificate = model.Certificate(
            bytes=800,
            bytes_bound=700,
            moves=4,
            moves_bound=3,
            leaders=2,
            balance=(model.Balance(By.LEADERS, (0.0, float("inf")), (0.5, 1.5), 1.0, (0.9, 1.1)),),
            waves=2,
            waves_bound=2,
            unmet=(model.Unmet("broker 5 is not registered", "nothing is put there"),),
        )
        return model.Plan(rows, np.full_like(rows, -1), np.array([1, 0, -1], np.int32), certificate)

    monkeypatch.setattr("reassign.planning.plan.make", make)
    return seen


def test_the_planner_is_asked_what_the_spec_says(asked: list[tuple[object, ...]]) -> None:
    work_out(job())
    goal = model.Goal(
        drain=frozenset({1}),
        replication_factor=3,
        balance=frozenset({By.DISK}),
        tolerance=0.05,
        awareness=Awareness.FLAT,
        min_free=0.1,
    )
    assert asked == [(goal, 1, 2**30, 2**21)]


def test_its_plan_becomes_suspended_waves_of_the_plans_namespace_with_their_bytes(asked: object) -> None:
    made = work_out(job())
    metadata = [manifest["metadata"] for manifest in made.manifests]
    assert [(m["namespace"], m["labels"]) for m in metadata] == [
        ("team-a", {PLAN_LABEL: "drain", PLAN_UID_LABEL: "uid"})
    ] * 2
    assert [m["name"] for m in metadata] == [wave.name for wave in made.waves]
    specs = [manifest["spec"] for manifest in made.manifests]
    assert [spec["suspend"] for spec in specs] == [True, True]
    assert [spec["replicationFactorChange"] for spec in specs] == ["Allow", "Allow"]
    assert [spec["throttle"] for spec in specs] == [{"interBroker": "2Mi"}] * 2
    assert [spec["partitions"][0]["topic"] for spec in specs] == ["b", "a"]
    assert [(wave.partitions, wave.bytes) for wave in made.waves] == [(1, 600), (1, 200)]
    assert made.unmet[0].what == "broker 5 is not registered"
    assert made.balance.before[0].greatest_percent == 2**31 - 1


def test_bytes_of_a_wave_that_are_not_known_count_as_the_planner_takes_them(asked: object) -> None:
    known = job()
    sizes = {tp: each for tp, each in (known.snapshot.sizes or {}).items() if tp != B}
    made = work_out(known._replace(snapshot=replace(known.snapshot, sizes=sizes)))
    mean_of_the_others = (100 + 7) // 2
    assert [wave.bytes for wave in made.waves] == [2 * mean_of_the_others, 200]


def test_what_it_came_to_can_go_from_one_process_to_another(asked: object) -> None:
    made = work_out(job())
    assert pickle.loads(pickle.dumps(made)) == made
    assert isinstance(made, Planned)
    pickle.loads(pickle.dumps((work_out, (job(),))))


def test_the_same_job_has_the_same_digest_and_another_generation_other_names(asked: object) -> None:
    first, again = work_out(job()), work_out(job())
    assert first == again
    later = job()
    later = later._replace(plan=replace(later.plan, generation=4))
    assert {wave.name for wave in work_out(later).waves}.isdisjoint({wave.name for wave in first.waves})


def test_the_planner_itself_drains_a_broker_in_a_process_of_its_own() -> None:
    kafka = SimKafka(dict.fromkeys((A, B, C), (1, 2)))
    kafka.sizes = {tp: {1: 100, 2: 100} for tp in (A, B, C)}
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}})
    asked = job(None)
    asked = asked._replace(plan=replace(asked.plan, spec=spec), snapshot=kafka.snapshot())
    made = asyncio.run(run_apart(work_out, asked, seconds=SECONDS))
    entries = [entry for manifest in made.manifests for entry in manifest["spec"]["partitions"]]
    assert sorted(entry["topic"] for entry in entries) == ["a", "b", "c"]
    assert all(1 not in entry["replicas"] and entry["expectedReplicas"] == [1, 2] for entry in entries)
    assert (made.moves.replicas, made.moves.bytes) == (3, 300) == (made.lower_bound.replicas, made.lower_bound.bytes)
