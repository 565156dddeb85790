"""What the brake keeps before it cancels, when all partitions are looked at, and what a KafkaCluster says of both."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reassign.api.kafka_cluster import Execution, KafkaCluster, KafkaClusterStatus, Limits, PauseWhen
from reassign.api.limits import MAX_BRAKE_COPIES
from reassign.controller.cluster.actor import Actor
from reassign.controller.cluster.observer import SURVEY_SECONDS, Paused, Survey
from reassign.controller.writing import brake_copies
from reassign.core.cluster import ClusterHold, brake_of, cluster_status, permission_of, rules_of
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.row import Row
from reassign.core.model.snapshot import Partition, Topic, TopicPartition
from reassign.core.model.steps import Alter, Cancel, Step
from reassign.core.model.verdict import Verdict
from reassign.core.tick import Decision, Memory, decide, gate, kept, recorded
from reassign.errors import ClusterError, ConflictError, Reason, ReassignError
from reassign.kafka.client import KafkaClient
from tests.unit.sim import SimKafka, partitions, resource

NOW = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
P0, P1, P2 = partitions(3)


class ConfigMaps:
    """Takes what is to be kept, or refuses it."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, list[dict[str, Any]], dict[str, str]]] = []
        self.refusal: ReassignError | None = None
        self.taken: set[str] = set()

    async def create_config_map(self, namespace: str, name: str, data: dict[str, str], labels: dict[str, str]) -> None:
        if self.refusal:
            raise self.refusal
        if name in self.taken:
            raise ConflictError("already exists")
        self.taken.add(name)
        self.made.append((namespace, name, json.loads(data["reassignment.json"])["partitions"], labels))


def in_flight(*tps: TopicPartition) -> SimKafka:
    kafka = SimKafka(dict.fromkeys((P0, P1), (1, 2, 3)))
    for tp in tps:
        kafka.perform(Alter(tp, (4, 2, 3)))
    return kafka


class Braked:
    """Ticks a KafkaCluster whose brake is CancelAll as the loop does, and takes no step."""

    def __init__(self, kube: ConfigMaps, name: str = "main") -> None:
        unused: Any = None
        self.actor = Actor(("kafka", name), unused, kube, unused, unused, unused)  # type: ignore[arg-type]
        self.execution = Execution.CANCEL_ALL
        self.memory = Memory.begin(-100.0)

    def tick(self, kafka: SimKafka, *steps: Step) -> Decision:
        """Keep and gate what is decided, and these steps of a resource."""
        rules = ClusterRules(Limits(), execution=self.execution)
        decision = decide([], kafka.snapshot(), ConfigRead(), self.memory, rules, NOW)
        ours = Verdict(resource({P1: (1, 2, 3)}), {step.tp: Row(steps=(step,)) for step in steps})
        decision = gate(replace(decision, verdicts=(ours,)), {}, 0.0)
        decision = recorded(decision, {ours.resource.uid: ours.resource})
        decision = kept(decision, asyncio.run(self.actor.copies.keep(decision.keep)))
        self.memory = decision.memory
        return decision


def cancel(tp: TopicPartition) -> Cancel:
    return Cancel(tp, (2, 3, 4))


def problem_of(decision: Decision) -> Problem | None:
    """Why the brake has not undone everything."""
    assert decision.brake
    return decision.brake.problem


def test_cancelled_moves_are_kept_beside_the_cluster_with_its_label() -> None:
    kube = ConfigMaps()
    gated = Braked(kube).tick(in_flight(P0), cancel(P2), Alter(P1, (1, 2, 3)))
    assert gated.steps == (cancel(P2), Alter(P1, (1, 2, 3)), cancel(P0))
    ((namespace, name, moves, labels),) = kube.made
    assert (namespace, name) == ("kafka", "main-cancelled-1")
    assert moves == [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]
    assert labels == {"kafka.reassign.dev/cluster": "main"}


def test_a_move_is_kept_once_and_one_that_comes_later_by_itself() -> None:
    kube = ConfigMaps()
    braked = Braked(kube)
    for kafka in (in_flight(P0), in_flight(P0), in_flight(P0, P1)):
        braked.tick(kafka)
    assert [[move["partition"] for move in moves] for _, _, moves, _ in kube.made] == [[0], [1]]


def test_a_move_cancelled_again_after_a_release_is_kept_again() -> None:
    kube = ConfigMaps()
    braked = Braked(kube)
    braked.tick(in_flight(P0))
    braked.execution = Execution.RUN
    assert braked.tick(in_flight()).brake is None
    braked.execution = Execution.CANCEL_ALL
    braked.tick(in_flight(P0))
    assert len(kube.made) == 2


def test_moves_that_cannot_be_kept_are_reported_and_not_cancelled() -> None:
    kube = ConfigMaps()
    braked = Braked(kube)
    kube.refusal = ReassignError(Reason.NOT_AUTHORIZED, "exceeded quota")
    gated = braked.tick(in_flight(P0), cancel(P2), Alter(P1, (1, 2, 3)))
    assert gated.steps == (Alter(P1, (1, 2, 3)),)
    problem = problem_of(gated)
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED
    assert "exceeded quota" in problem.message
    kube.refusal = None
    gated = braked.tick(in_flight(P0))
    assert gated.steps == (cancel(P0),)
    assert problem_of(gated) is None
    assert len(kube.made) == 1


def kept_numbers(kube: ConfigMaps) -> list[int]:
    return [int(name.rpartition("-")[2]) for _, name, _, _ in kube.made]


def test_a_new_process_overwrites_no_copy_of_the_one_before() -> None:
    kube = ConfigMaps()
    for _ in range(3):
        assert Braked(kube).tick(in_flight(P0)).steps == (cancel(P0),)
    assert kept_numbers(kube) == [1, 2, 3]


def test_without_a_free_number_only_what_was_kept_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = ConfigMaps()
    braked = Braked(kube)
    braked.tick(in_flight(P0))
    kube.taken |= {f"main-cancelled-{number}" for number in range(1, MAX_BRAKE_COPIES + 1)}
    gated = braked.tick(in_flight(P0, P1), Alter(P1, (1, 2, 3)))
    assert gated.steps == (Alter(P1, (1, 2, 3)), cancel(P0))
    problem = problem_of(gated)
    assert problem is not None
    assert "delete those that you no longer need" in problem.message
    monkeypatch.setattr(brake_copies, "RETRY_SECONDS", 0.0)
    kube.taken.discard("main-cancelled-7")
    gated = braked.tick(in_flight(P0, P1))
    assert gated.steps == (cancel(P0), cancel(P1))
    assert kept_numbers(kube) == [1, 7]


def test_moves_begun_again_and_again_use_up_no_numbers_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(brake_copies, "time", clock)
    kube = ConfigMaps()
    braked = Braked(kube)
    cancelled = 0
    for number in range(3600):
        clock.now += 1
        replicas = (4, 2, 3) if number % 2 else (5, 2, 3)
        kafka = SimKafka({P0: (1, 2, 3)})
        kafka.perform(Alter(P0, replicas))
        cancelled += bool(braked.tick(kafka).steps)
    assert cancelled >= len(kube.made)
    assert 10 < len(kube.made) < MAX_BRAKE_COPIES


def test_names_and_labels_of_what_is_kept_fit_whatever_the_clusters_name() -> None:
    kube = ConfigMaps()
    Braked(kube, "a" * 62 + "." + "b" * 190).tick(in_flight(P0))
    ((_, name, _, labels),) = kube.made
    assert len(name) <= 253
    assert labels == {"kafka.reassign.dev/cluster": "a" * 62}


def cluster(**spec: Any) -> KafkaCluster:
    metadata = {"name": "main", "namespace": "kafka", "uid": "u", "generation": 3}
    return KafkaCluster.parse({"metadata": metadata, "spec": {"bootstrapServers": "b:9092", **spec}})


def test_the_brake_decides_hold_and_undo_of_the_resources() -> None:
    found = {
        execution: (rules.hold and rules.hold.reason, rules.undo)
        for execution in Execution
        for rules in [rules_of(cluster(execution=execution), ClusterHold(pause=brake_of(execution)))]
    }
    assert found == {
        Execution.RUN: (None, False),
        Execution.PAUSE: (Reason.PAUSED, False),
        Execution.CANCEL_OURS: (Reason.CANCELLED_BY_BRAKE, True),
        Execution.CANCEL_ALL: (Reason.CANCELLED_BY_BRAKE, True),
    }


def test_its_own_namespace_may_move_everything_whatever_the_list_says() -> None:
    allowed = [{"name": "kafka", "topics": ["a"]}, {"name": "team-a", "topics": ["team-a-*"]}]
    permission = permission_of(cluster(allowedNamespaces=allowed))
    assert permission.of_topic("kafka", "b") is None
    assert permission.of_topic("team-a", "team-a-b") is None
    assert permission.of_topic("team-a", "b") is not None


def status(kafka: SimKafka, stance: ClusterHold, *resources: Resource) -> KafkaClusterStatus:
    return cluster_status(cluster(), kafka.snapshot(), resources, stance, NOW)


def true_conditions(found: KafkaClusterStatus) -> dict[str, str]:
    return {c.type: c.reason for c in found.conditions if c.status == "True"}


def test_a_cluster_that_pauses_is_ready_and_reports_why() -> None:
    stuck = Problem(Reason.CANCEL_UNSAFE, "one move is held back")
    assert true_conditions(status(in_flight(), ClusterHold())) == {"Ready": "Connected"}
    braked = status(in_flight(), ClusterHold(pause=brake_of(Execution.CANCEL_ALL), stuck=stuck))
    assert true_conditions(braked) == {"Ready": "Connected", "Paused": "CancelledByBrake", "Stalled": "CancelUnsafe"}


def test_moves_of_others_are_counted_exactly_and_a_hundred_of_them_shown() -> None:
    tps = partitions(150, "theirs")
    kafka = SimKafka(dict.fromkeys(tps, (1, 2, 3)))
    for tp in tps:
        kafka.perform(Alter(tp, (4, 2, 3)))
    found = status(kafka, ClusterHold())
    assert found.foreign_in_flight is not None
    assert (found.foreign_in_flight.count, len(found.foreign_in_flight.partitions), found.in_flight) == (150, 100, 0)
    first = found.foreign_in_flight.partitions[0]
    assert (first.partition, first.adding_replicas, first.removing_replicas) == (0, (4,), (1,))


EVACUATES = {"uid-evacuates": frozenset({5})}


class Shortages:
    """A cluster with a partition under min.insync.replicas, and how often it was looked for."""

    def __init__(self) -> None:
        self.looks, self.fails = 0, False
        self.topics = {"other": Topic("id", 2, {0: Partition((1, 2), frozenset({1}), 1)})}

    async def observe_shortages(self) -> dict[str, Topic]:
        self.looks += 1
        if self.fails:
            raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")
        return self.topics


def look(survey: Survey, client: Shortages, found: KafkaCluster, *resources: Resource) -> Problem | None:
    snapshot, any_client = in_flight().snapshot(), cast(KafkaClient, client)
    paused, _ = asyncio.run(survey.read(any_client, found, resources, snapshot, EVACUATES, explained))
    assert paused.of_plans.get("uid-evacuates", paused.everything) == paused.everything
    return paused.everything


def explained(error: Exception) -> Problem:
    return Problem(Reason.CLUSTER_UNREACHABLE, str(error))


def test_partitions_are_surveyed_only_while_a_move_waits_to_start() -> None:
    survey, client, waits = Survey(), Shortages(), resource({P0: (4, 2, 3)})
    assert look(survey, client, cluster(pauseWhen="Never"), waits) is None
    assert look(survey, client, cluster()) is None
    assert client.looks == 0
    for _ in range(3):
        problem = look(survey, client, cluster(), waits)
        assert problem is not None
        assert "other-0" in problem.message
    assert client.looks == 1
    survey._at -= SURVEY_SECONDS
    client.topics = {}
    assert look(survey, client, cluster(), waits) is None
    assert client.looks == 2


def test_a_plan_is_not_paused_by_the_brokers_that_it_evacuates() -> None:
    survey, client, waits = Survey(), Shortages(), resource({P0: (4, 2, 3)})
    client.topics["alone"] = Topic("id", 1, {0: Partition((5,), frozenset({5}), None)})
    snapshot, any_client = in_flight().snapshot(), cast(KafkaClient, client)

    def paused() -> Paused:
        return asyncio.run(survey.read(any_client, cluster(), [waits], snapshot, EVACUATES, explained))[0]

    found = paused().of_plans["uid-evacuates"]
    assert found is not None
    assert "other-0" in found.message
    assert "alone-0" not in found.message
    del client.topics["other"]
    survey._at -= SURVEY_SECONDS
    assert paused().everything is not None
    assert paused().of_plans == {"uid-evacuates": None}


def test_a_survey_that_fails_pauses_and_is_not_repeated_at_once() -> None:
    survey, client, waits = Survey(), Shortages(), resource({P0: (4, 2, 3)})
    client.topics, client.fails = {}, True
    for _ in range(3):
        problem = look(survey, client, cluster(), waits)
        assert problem is not None
        assert problem.reason is Reason.CLUSTER_UNREACHABLE
    assert client.looks == 1
    client.fails = False
    survey._at -= SURVEY_SECONDS
    assert look(survey, client, cluster(), waits) is None


def test_a_changed_pause_when_surveys_at_once() -> None:
    survey, client, waits = Survey(), Shortages(), resource({P0: (4, 2, 3)})
    look(survey, client, cluster(), waits)
    look(survey, client, cluster(pauseWhen=PauseWhen.UNDER_REPLICATED), waits)
    assert client.looks == 2


def test_a_partition_ours_at_the_survey_does_not_pause_once_completed() -> None:
    survey, client = Survey(), Shortages()
    repairs = resource({TopicPartition("other", 0): (1, 3)}, "repairs")
    waits = resource({P0: (4, 2, 3)}, "waits")
    assert look(survey, client, cluster(), repairs, waits) is None
    assert look(survey, client, cluster(), waits) is None
    assert look(Survey(), client, cluster(), replace(waits, uid="other")) is not None
