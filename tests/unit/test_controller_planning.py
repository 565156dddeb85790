"""From a job to a plan: what the process that plans does around the planner itself."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from reassign.api.goal import Awareness, By, GoalPart
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL, ReassignmentPlanStatus
from reassign.controller.plans.job import (
    Job,
    goal_of,
    known_topics,
    owned_plan_of,
    permitted,
    plan_of,
    work_out,
    worked_out,
)
from reassign.controller.plans.planner import SECONDS
from reassign.controller.plans.subprocess import run_in_subprocess
from reassign.core.model.snapshot import Broker, LogDir, Partition, Snapshot, TopicPartition
from reassign.core.model.steps import Alter
from reassign.core.plans.model import GoalSeen, Planned
from reassign.core.survey import survey
from reassign.errors import ClusterError, PlanningError, Reason
from reassign.kafka.connection import Connection, Sasl, Tls
from reassign.kafka.tokens import OAuth
from reassign.planning.problem import model
from reassign.planning.problem.unseen import unseen_goals
from tests.unit.planning_job import WAY, job
from tests.unit.sim import SimKafka
from tests.unit.world import api_object

A, B, C = (TopicPartition(topic, 0) for topic in ("a", "b", "c"))


@dataclass
class Seen:
    """In the place of KafkaClient: it connects, shows the cluster, and is closed."""

    kafka: SimKafka
    did: list[object]

    async def connect(self, connection: Connection, *, timeout: float, before_write: object) -> Seen:  # noqa: ASYNC109
        self.did.append(connection)
        return self

    async def observe_everything(self) -> Snapshot:
        return self.kafka.snapshot()

    async def close(self) -> None:
        self.did.append("closed")


def clusters() -> SimKafka:
    kafka = SimKafka(dict.fromkeys((A, B, C), (1, 2)))
    kafka.sizes = {tp: {1: size, 2: size} for tp, size in ((A, 100), (B, 300), (C, 7))}
    return kafka


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The cluster that the client looks at."""
    found = Seen(clusters(), [])
    monkeypatch.setattr("reassign.inspect.cluster.KafkaClient", found)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the planner was asked; it moves A and B off broker 1 and adds a replica, in a wave each."""
    seen: list[tuple[object, ...]] = []

    def make(cluster: model.Cluster, goal: model.PlacementGoal, *limits: object) -> model.Plan:
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
            unmet=(model.UnmetGoal("broker 5 is not registered", "nothing is put there"),),
        )
        return model.Plan(rows, np.full_like(rows, -1), np.array([1, 0, -1], np.int32), certificate)

    monkeypatch.setattr("reassign.planning.plan.make", make)
    return seen


def test_the_planner_is_asked_what_the_spec_says(seen: Seen, asked: list[tuple[object, ...]]) -> None:
    work_out(job())
    goal = model.PlacementGoal(
        drain=frozenset({1}),
        replication_factor=3,
        balance=frozenset({By.DISK}),
        tolerance=0.05,
        awareness=Awareness.FLAT,
        min_free=0.1,
    )
    assert asked == [(goal, 1, 2**30, 2**21)]
    assert seen.did == [WAY, "closed"]


def test_a_plan_moves_what_stays_on_brokers_whose_cordons_count_as_lifted(seen: Seen) -> None:
    seen.kafka.cordons = {2: "*"}
    goal = {"drainBrokers": [1], "scope": "Drained", "avoidBrokers": [2]}
    asked = job(goal=goal, waves={}, template={})
    assert work_out(asked).waves == ()
    [wave] = work_out(asked._replace(lifted=frozenset({2}))).waves
    assert wave.partitions == 3


def test_brokers_of_another_cluster_than_at_first_are_not_planned_for(seen: Seen, asked: list[object]) -> None:
    with pytest.raises(ClusterError) as raised:
        work_out(job(cluster_id="another"))
    assert raised.value.reason is Reason.CLUSTER_ID_CHANGED
    assert asked == []
    assert seen.did == [WAY, "closed"]


@pytest.mark.parametrize(
    "goal",
    [
        {"drainBrokers": [1], "balance": {}},
        {"drainBrokers": [0, 1, 2, 3], "balance": {"tolerancePercent": 1}},
        {"replicationFactor": 3},
    ],
)
def test_a_plan_names_no_topic_that_its_namespace_may_not_move(seen: Seen, goal: object) -> None:
    hidden = [TopicPartition("hidden", number) for number in range(40)]
    seen.kafka = SimKafka({A: (1, 2), B: (1, 2), **dict.fromkeys(hidden, (1, 0))})
    seen.kafka.sizes = {tp: dict.fromkeys(range(6), 10) for tp in (A, B, *hidden[:30])}
    seen.kafka.perform(Alter(hidden[0], (1, 3)))
    made = work_out(job(goal=goal, waves={}, template={})._replace(allowed=("a", "b")))
    assert "hidden" not in repr(made)
    assert "40" not in repr(made.unmet)
    assert {entry["topic"] for manifest in made.manifests for entry in manifest["spec"]["partitions"]} == {"a", "b"}


@pytest.mark.parametrize("fenced", ["Keep", "Replace"])
def test_a_plan_made_during_a_restart_evacuates_no_broker(seen: Seen, fenced: str) -> None:
    seen.kafka = SimKafka({A: (1, 2), B: (2, 3), C: (1, 3)})
    seen.kafka.sizes = {tp: dict.fromkeys(range(6), 10) for tp in (A, B, C)}
    seen.kafka.brokers[2] = Broker(2, fenced=True)
    made = work_out(job(goal={"drainBrokers": [1], "fencedBrokers": fenced}, waves={}, template={}))
    moved = {entry["topic"] for manifest in made.manifests for entry in manifest["spec"]["partitions"]}
    assert moved == ({"c"} if fenced == "Keep" else {"a", "b", "c"})
    assert [part.part for part in made.unmet] == ([GoalPart.DRAIN] if fenced == "Keep" else [])


def test_a_narrow_drain_is_judged_by_its_drain_alone(seen: Seen) -> None:
    """Racks of partitions that it does not touch are none of its goal, nor is a broker to avoid that is gone."""
    asked = job(goal={"drainBrokers": [1], "scope": "Drained", "avoidBrokers": [9]}, waves={}, template={})
    status = ReassignmentPlanStatus(planned_input_hash=asked.plan.input_hash)
    racks = {1: "y", 2: "x", 3: "x", 4: "y"}
    seen.kafka = SimKafka({A: (2, 3)}, brokers={broker: Broker(broker, rack) for broker, rack in racks.items()})
    seen.kafka.log_dirs = {1: {"/d": LogDir()}}
    found = work_out(asked._replace(plan=replace(asked.plan, status=status)))
    assert isinstance(found, GoalSeen)
    assert (found.unmet, found.after) == ((), None)


def test_a_plan_becomes_suspended_waves_in_its_namespace_with_their_bytes(seen: object, asked: object) -> None:
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


def test_unknown_bytes_of_a_wave_count_as_in_the_planner(seen: Seen, asked: object) -> None:
    del seen.kafka.sizes[B]
    mean_of_the_others = (100 + 7) // 2
    assert [wave.bytes for wave in work_out(job()).waves] == [2 * mean_of_the_others, 200]


def test_what_it_came_to_can_go_from_one_process_to_another(seen: object, asked: object) -> None:
    made = work_out(job())
    assert pickle.loads(pickle.dumps(made)) == made
    assert isinstance(made, Planned)
    pickle.loads(pickle.dumps((work_out, (job(),))))


def test_the_same_plan_has_the_same_digest_and_new_names_per_generation(seen: object, asked: object) -> None:
    first, again = work_out(job()), work_out(job())
    assert first == again
    later = job()
    later = later._replace(plan=replace(later.plan, generation=4))
    assert {wave.name for wave in work_out(later).waves}.isdisjoint({wave.name for wave in first.waves})


def test_the_planner_itself_drains_a_broker_in_a_process_of_its_own() -> None:
    kafka = SimKafka(dict.fromkeys((A, B, C), (1, 2)))
    kafka.sizes = {tp: {1: 100, 2: 100} for tp in (A, B, C)}
    asked = job(goal={"drainBrokers": [1]}, waves={}, racks={}, template={})
    made = asyncio.run(run_in_subprocess(plan_of, asked, survey(kafka.snapshot()), seconds=SECONDS))
    entries = [entry for manifest in made.manifests for entry in manifest["spec"]["partitions"]]
    assert sorted(entry["topic"] for entry in entries) == ["a", "b", "c"]
    assert all(1 not in entry["replicas"] and entry["expectedReplicas"] == [1, 2] for entry in entries)
    assert (made.moves.replicas, made.moves.bytes) == (3, 300) == (made.lower_bound.replicas, made.lower_bound.bytes)


@pytest.mark.parametrize(
    "sasl", [Sasl("mover", "secret"), OAuth("https://login", "mover", "secret")], ids=["password", "token"]
)
def test_a_process_of_its_own_gets_the_way_in(sasl: Sasl | OAuth) -> None:
    way = Connection("b:9092", Tls("ca"), sasl)
    assert asyncio.run(run_in_subprocess(itself, way, seconds=SECONDS)) == way


def itself(way: Connection) -> Connection:
    return way


def test_the_rate_of_a_plan_is_never_above_the_clusters_maximum() -> None:
    slow = api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092", "limits": {"maxThrottle": "1Mi"}})
    assert job().rate == 2 * 2**20
    assert job()._replace(cluster=KafkaCluster.parse(slow)).rate == 2**20


def test_a_broker_without_a_rack_beside_others_is_no_plan() -> None:
    kafka = SimKafka({A: (1, 2)}, brokers={id: Broker(id, rack) for id, rack in ((1, "a"), (2, "b"), (3, ""))})
    with pytest.raises(PlanningError, match="broker 3 has no rack") as refused:
        plan_of(job(goal={"drainBrokers": [1]}), survey(kafka.snapshot()))
    assert refused.value.reason is Reason.INVALID_RACKS


def test_a_namespace_learns_only_that_a_broker_has_replicas_of_others() -> None:
    kafka = SimKafka({A: (1, 2), B: (2, 3)})
    hidden = TopicPartition("theirs", 0)
    kafka.log_dirs = {1: {"/a": LogDir(logs={hidden: 7, A: 1})}}
    asked = job(goal={"drainBrokers": [1]})._replace(allowed=("a*",))
    seen, said = permitted(asked, survey(kafka.snapshot()))
    assert seen.unseen is not None
    assert seen.unseen.logs == ()
    assert [part.what for part in said] == ["broker 1 has replicas that this namespace may not move"]
    assert permitted(asked._replace(allowed=("*",)), survey(kafka.snapshot()))[1] == []
    _, of_shown = permitted(asked._replace(allowed=("b*",)), survey(SimKafka({A: (1, 2), B: (2, 3)}).snapshot()))
    assert [part.what for part in of_shown] == ["broker 1 has replicas that this namespace may not move"]
    _, of_none = permitted(asked, survey(SimKafka({A: (1, 2), B: (2, 3)}).snapshot()))
    assert of_none == []


def test_a_namespace_reads_of_its_own_topics_that_may_not_be_seen() -> None:
    kafka = SimKafka({A: (1, 2)})
    kafka.log_dirs = {1: {"/a": LogDir(logs={TopicPartition("a-hidden", 0): 7, A: 1})}}
    asked = job(goal={"drainBrokers": [1]})._replace(allowed=("a*",))
    seen, said = permitted(asked, survey(kafka.snapshot()))
    assert said == []
    assert "a-hidden" in goal_of(asked, known_topics(seen)).include
    [unmet] = unseen_goals(seen, goal_of(asked, known_topics(seen)))
    assert unmet.what == "1 log (7 B) on broker 1, to be emptied, of topics that could not be read: a-hidden"


def cut_off(*, avoid: tuple[int, ...] = ()) -> tuple[Job, Snapshot]:
    """Broker 1 is down, and has the only replica in sync of A; B has another one on broker 3."""
    kafka = SimKafka({A: (1, 2), B: (1, 3)})
    kafka.brokers[1] = Broker(1, "r1", fenced=True)
    found = kafka.snapshot()
    a, b = found.topics["a"], found.topics["b"]
    alone = replace(a, partitions={0: Partition((1, 2), frozenset({1}), None, frozenset({1}))})
    other = replace(b, partitions={0: Partition((1, 3), frozenset({3}), 3, frozenset({1}))})
    goal = {"drainBrokers": [1], "scope": "Drained"} | ({"avoidBrokers": [*avoid]} if avoid else {})
    return job(goal=goal), replace(found, topics={**found.topics, "a": alone, "b": other})


def test_a_plan_with_an_owner_is_made_as_it_was_worked_out() -> None:
    its, snapshot = cut_off()
    made = owned_plan_of(its, snapshot, survey(snapshot))
    worked = worked_out(its._replace(owner="uid-owner"), snapshot, survey(snapshot))
    assert [wave.digest for wave in made.waves] == [wave.digest for wave in worked.planned.waves]
    assert [entry["topic"] for wave in made.manifests for entry in wave["spec"]["partitions"]] == ["b"]


def test_a_plan_with_an_owner_is_not_made_in_part() -> None:
    its, snapshot = cut_off(avoid=(0, 2, 4, 5))
    with pytest.raises(PlanningError) as error:
        owned_plan_of(its, snapshot, survey(snapshot))
    assert error.value.reason == Reason.DRAIN_INCOMPLETE


def test_the_planners_process_is_silent_when_nobody_reads_its_answer() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "reassign.controller.plans.subprocess", "INFO"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    task = pickle.dumps((max, (1, 2)))
    ended = subprocess.run(command, input=task, stdout=writer, stderr=subprocess.PIPE, env=env, check=False)
    os.close(writer)
    assert ended.stderr == b""
