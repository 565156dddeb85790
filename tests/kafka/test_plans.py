"""A plan's whole story on real brokers: the operator's loop and planner as they are, the API server in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans import goal_watch
from reassign.controller.plans.job import Job, work_out
from reassign.controller.plans.planner import Planner
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.model import GoalSeen, Planned
from tests.kafka.harness import Kafka, eventually
from tests.kafka.log_dirs import TAKES_NO_NOTICE, full_cordon
from tests.unit.plan_world import Planning
from tests.unit.world import Kube, api_object

PAUSE_SECONDS = 0.1
SECONDS = 300.0
"""With compiling what plans, where no other test has."""


async def plan_here(job: Job) -> Planned | GoalSeen:
    """In a thread: that the operator does it in another process is no matter of brokers."""
    return await asyncio.to_thread(work_out, job)


class Operator(Planning):
    """It serves one KafkaCluster, which stands for real brokers, and one plan."""

    def __init__(self, kafka: Kafka, spec: dict[str, Any]) -> None:
        self.store, self.kube, self.metrics = Store(), Kube(), Metrics()
        self.planner = Planner(plan_here)
        self.brokers: Any = None
        cluster = api_object("KafkaCluster", "main", {"bootstrapServers": kafka.brokers.bootstrap_servers})
        self.put(cluster | {"status": {}})
        self.loop = self.new_loop()
        self.loop.observer._connected_to = None
        self.put(api_object("ReassignmentPlan", "drain", {"clusterRef": {"name": "main"}} | spec))

    def serve(self, until: Callable[[], bool]) -> None:
        """Look at the cluster again and again until it has come true."""

        async def serve() -> None:
            deadline = time.monotonic() + SECONDS
            while not until():
                assert time.monotonic() < deadline, self.plan
                await self.loop._safe_tick()
                await asyncio.sleep(PAUSE_SECONDS)

        asyncio.run(serve())

    def close(self) -> None:
        asyncio.run(self.loop.observer.disconnect())


def test_a_plan_approved_by_its_digest_drains_a_broker_wave_by_wave(kafka: Kafka) -> None:
    name = kafka.topic([3, 0], [1, 3], [2, 3], [0, 1], megabytes=1)
    partitions = [TopicPartition(name, number) for number in range(4)]
    spec = {"topics": {"include": [name]}, "goal": {"drainBrokers": [3]}, "waves": {"maxPartitions": 2}}
    with closing(Operator(kafka, spec)) as operator:
        operator.serve(until=lambda: operator.says("AwaitingApproval"))
        waves = operator.waves()
        assert [wave["spec"]["suspend"] for wave in waves] == [True, True]
        targets = {e["partition"]: tuple(e["replicas"]) for w in waves for e in w["spec"]["partitions"]}
        assert targets.keys() == {0, 1, 2}
        assert kafka.settled(partitions[0], [3, 0])
        operator.approve()
        operator.serve(until=lambda: operator.says("Completed"))
    assert [wave["state"] for wave in operator.status["waves"]] == ["Succeeded", "Succeeded"]
    ends = [operator.kube.objects[f"uid-{w['name']}"]["status"]["completionTime"] for w in operator.status["waves"]]
    assert ends == sorted(ends)
    found = [kafka.stock_tool_says(tp) for tp in partitions]
    assert found == [targets[0], targets[1], targets[2], (0, 1)]
    assert all(3 not in (replicas or ()) for replicas in found)


def test_what_lands_on_a_drained_broker_after_the_digest_is_observed(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goal_watch, "GOAL_SECONDS", 0.0)
    name = kafka.topic([3, 0])
    spec = {"topics": {"include": [f"{name}*"]}, "goal": {"drainBrokers": [3]}}
    with closing(Operator(kafka, spec)) as operator:
        operator.serve(until=lambda: operator.says("AwaitingApproval"))
        assert operator.goal["status"] == "True"
        later = NewTopic(f"{name}-later", num_partitions=1, replica_assignment=[[3, 0]])
        kafka.workload.ask(lambda admin: admin.create_topics([later]))
        operator.approve()
        operator.serve(until=lambda: "goalObservedTime" in operator.status)
        assert (operator.goal["status"], operator.goal["reason"]) == ("False", "DrainIncomplete")
        assert f"1 replica on broker 3, to be emptied (topics: {name}-later)" in operator.goal["message"]
        kafka.delete(f"{name}-later")
        operator.serve(until=lambda: operator.goal["status"] == "True")


def targets(operator: Operator) -> dict[int, set[int]]:
    """The brokers that a plan gives to the partitions that it moves."""
    return {e["partition"]: set(e["replicas"]) for wave in operator.waves() for e in wave["spec"]["partitions"]}


def test_a_broker_that_is_down_keeps_what_it_has_and_gets_nothing(kafka: Kafka) -> None:
    name = kafka.topic([2, 0], [2, 1], [3, 0], [2, 3])
    kafka.brokers.shut_down(3)
    try:
        eventually(lambda: kafka.observe().brokers[3].fenced)
        spec = {"topics": {"include": [name]}, "goal": {"drainBrokers": [2]}}
        with closing(Operator(kafka, spec)) as operator:
            operator.serve(until=lambda: operator.says("AwaitingApproval"))
            assert targets(operator) == {0: {0, 1}, 1: {0, 1}}
            assert (operator.goal["status"], operator.goal["reason"]) == ("False", "DrainIncomplete")
            assert "2 partitions not moved, since broker 3 is fenced" in operator.goal["message"]
    finally:
        kafka.brokers.restart(3)


def test_what_would_keep_a_replica_on_a_cordoned_broker_is_left(kafka: Kafka) -> None:
    if kafka.brokers.version == TAKES_NO_NOTICE:
        pytest.skip("the brokers from 4.3 have cordons (KIP-1066)")
    name = kafka.topic([3, 2], [3, 0])
    with full_cordon(kafka, TopicPartition(name, 0), 2):
        spec = {"topics": {"include": [name]}, "goal": {"drainBrokers": [3]}}
        with closing(Operator(kafka, spec)) as operator:
            operator.serve(until=lambda: operator.says("AwaitingApproval"))
            assert targets(operator) == {1: {0, 1}}
            assert operator.goal["reason"] == "DrainIncomplete"
            assert f"{name}-0" in operator.goal["message"]
