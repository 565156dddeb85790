"""What others may write into a status, and what no operator would write into a record, stops nothing else."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reassign.api.common import FINALIZER, YEAR_SECONDS
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.limits import MAX_PARTS
from reassign.controller.objects.part import Part
from reassign.controller.objects.reading import once, packed, parse_plan, parse_resource
from reassign.core.checks.deadline import deadline_passed
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.plans.expiry import expired
from reassign.errors import Reason
from tests.unit.sim import START
from tests.unit.world import LATER, OURS, THEIRS, Object, World, api_object

TOO_LATE, TOO_EARLY = "9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00Z"
forged_times = pytest.mark.parametrize("time", [TOO_LATE, TOO_EARLY, "9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z"])
Forge = Callable[[Object, str], None]


pytestmark = pytest.mark.usefixtures("logged")


@pytest.fixture
def world() -> World:
    return World()


def set_condition(status: Object, time: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Any", "message": "", "lastTransitionTime": time}
    status["conditions"] = [ready]


def set_pacing(status: Object, time: str) -> None:
    status["pacing"] = {"partitionsInFlight": 1, "lastHalvedTime": time}


def set_throttle(status: Object, time: str) -> None:
    status["throttle"] = {"sentAt": time}


CLUSTER: dict[str, Forge] = {"condition": set_condition, "pacing": set_pacing, "throttle": set_throttle}
RESOURCE: dict[str, Forge] = {
    "condition": set_condition,
    "start": lambda status, time: status.update(startTime=time),
    "completion": lambda status, time: status.update(completionTime=time),
    "estimate": lambda status, time: status.update(progress={"estimatedCompletionTime": time}),
}


# --- Times ---

two_digits = st.integers(0, 99).map("{:02}".format)
dates = st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(1, 12), st.integers(1, 28))
times = st.builds("{:02}:{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
fractions = st.just("") | st.builds("{}{}".format, st.sampled_from(".,x"), st.integers(0, 10**20))
offsets = st.sampled_from("Zz") | st.builds("{}{}:{}".format, st.sampled_from("+-"), two_digits, two_digits)
accepted = st.builds("{}{}{}{}{}".format, dates, st.sampled_from("Tt"), times, fractions, offsets)
"""What kube-openapi's strfmt.IsDateTime takes: any year of four digits, any offset, and anything before a fraction."""


def record_of(time: str) -> Object:
    entry = {"partition": 0, "originalReplicas": [1], "targetReplicas": [2], "state": "InFlight", "via": 1}
    topic = {"topic": "t", "topicId": "id", "partitions": [entry | {"sentAt": time}]}
    ref = {"name": "main", "namespace": "kafka"}
    return api_object("ReassignmentRecord", "uid-0", {"clusterRef": ref, "part": 0, "topics": [topic]})


@given(accepted)
@example(TOO_LATE)
@example(TOO_EARLY)
@example("9999-12-31T00:00:00Z")
def test_any_time_that_the_schema_takes_is_read_or_cannot_be_read(time: str) -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1]}
    spec: Object = {"clusterRef": {"name": "main"}, "partitions": [entry], "ttlSecondsAfterFinished": YEAR_SECONDS}
    spec["deadlineSeconds"] = YEAR_SECONDS
    read: list[object] = [once({}, Part.parse, record_of(time))]
    packed(record_of(time))
    for forge in CLUSTER.values():
        cluster = api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"})
        forge(cluster["status"], time)
        read.append(once({}, KafkaCluster.parse, cluster))
    for forge in RESOURCE.values():
        obj = api_object("PartitionReassignment", "move", spec)
        obj["status"] = {"observedGeneration": 1, "completionTime": "2026-01-01T00:00:00Z"}
        forge(obj["status"], time)
        packed(obj)
        resource = once({}, parse_resource, obj)
        assert isinstance(resource, Resource)
        assert deadline_passed(resource, START) in (True, False)
        assert expired(resource, START) in (True, False)
    plan = api_object("ReassignmentPlan", "plan", {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}})
    set_condition(plan["status"], time)
    read.append(once({}, parse_plan, plan))
    assert all(found.reason is Reason.CANNOT_BE_READ for found in read if isinstance(found, Problem))


@forged_times
@pytest.mark.parametrize("forge", RESOURCE.values(), ids=RESOURCE)
def test_a_forged_time_of_a_resource_stops_neither_its_undo_nor_others(world: World, forge: Forge, time: str) -> None:
    world.add("late", LATER, (4, 2, 3))
    world.change("move", lambda obj: obj["spec"].update(deadlineSeconds=YEAR_SECONDS))
    world.change_status("move", lambda status: forge(status, time))
    world.restart()
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.delete("move")
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


@forged_times
@pytest.mark.parametrize("forge", CLUSTER.values(), ids=CLUSTER)
def test_a_forged_time_of_a_cluster_stops_neither_undo_nor_brake(world: World, forge: Forge, time: str) -> None:
    world.change_status("main", lambda status: forge(status, time))
    world.restart()
    world.pull("CancelOurs")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


@forged_times
def test_a_forged_status_of_another_cluster_stops_nothing(world: World, time: str) -> None:
    other = api_object("KafkaCluster", "other", {"bootstrapServers": "elsewhere:9092"})
    set_pacing(other["status"], time)
    world.put(other)
    world.restart()
    world.delete("move")
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


def test_the_fields_left_out_of_a_status_are_logged_once(world: World, logged: list[Any]) -> None:
    world.kube.unwritable = {"uid-main"}
    world.change_status("main", lambda status: set_pacing(status, TOO_EARLY))
    world.safe_tick(until=lambda: True)
    world.safe_tick(until=lambda: True)
    [line] = [line for line in logged if line["event"] == "status is not readable"]
    assert line["fields"] == ["pacing"]


@pytest.mark.parametrize("forged", ["another", "x" * 65])
@pytest.mark.parametrize("restarted", [False, True])
def test_an_id_that_others_write_into_a_status_stops_nothing(world: World, forged: str, restarted: bool) -> None:
    world.change_status("main", lambda status: status.update(clusterId=forged))
    if restarted:
        world.restart()
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}
    assert world.kube.objects["uid-main"]["status"]["clusterId"] == "sim"


def test_brokers_of_another_cluster_than_the_recorded_one_are_not_touched(world: World) -> None:
    world.store.put(world.kube.write("uid-uid-main-0", lambda obj: obj["spec"].update(clusterId="another")))
    world.change_status("main", lambda status: status.update(clusterId="sim"))
    writes = len(world.kafka.writes)
    world.delete("move")
    world.tick(5)
    assert len(world.kafka.writes) == writes
    assert world.ready("main")["reason"] == "ClusterIdChanged"


def test_the_id_of_a_cluster_is_recorded_before_anything_else(world: World) -> None:
    for objects in (world.kube.objects, world.store._objects):
        objects.pop("uid-uid-main-0")
    world.restart()
    world.add("late", LATER, (4, 2, 3))
    world.tick()
    assert world.kube.objects["uid-uid-main-0"]["spec"]["clusterId"] == "sim"
    assert LATER not in world.kafka.reassignments
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_a_plan_keeps_its_waves_or_cannot_be_read() -> None:
    plan = api_object("ReassignmentPlan", "plan", {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}})
    digest = f"sha256:{'0' * 64}"
    wave = {"name": "plan-1", "partitions": 1, "bytes": 1, "state": "Running", "digest": digest}
    plan["status"] |= {"digest": digest, "waves": [wave]}
    set_condition(plan["status"], TOO_EARLY)
    read = once({}, parse_plan, plan)
    assert not isinstance(read, Problem)
    assert (read.status.digest, len(read.status.waves), read.status.conditions) == (digest, 1, ())
    wave["state"] = "OfAnotherVersion"
    assert isinstance(once({}, parse_plan, plan), Problem)


def test_a_bug_in_reading_an_object_concerns_that_one_alone(logged: list[Any]) -> None:
    def parse(obj: Object) -> str:
        if obj["metadata"]["name"] == "bad":
            raise ZeroDivisionError
        return "read"

    spec = {"clusterRef": {"name": "main"}}
    bad = once({}, parse, api_object("PartitionReassignment", "bad", spec))
    assert isinstance(bad, Problem)
    assert (bad.reason, "ZeroDivisionError" in bad.message) == (Reason.CANNOT_BE_READ, True)
    assert once({}, parse, api_object("PartitionReassignment", "good", spec)) == "read"
    assert isinstance(logged[0]["exc_info"], ZeroDivisionError)


# --- Records ---


def forged_record(name: str, **spec: Any) -> Object:
    made = api_object("ReassignmentRecord", name, record_of("2026-01-01T00:00:00Z")["spec"] | spec)
    made["metadata"]["finalizers"] = [FINALIZER]
    return made


def owned(record: Object) -> Object:
    owner = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "PartitionReassignment"}
    record["metadata"]["ownerReferences"] = [owner | {"name": "move", "uid": "uid-move"}]
    return record


@pytest.mark.parametrize("name", ["ghost", "ghost-1", "0"])
def test_a_record_without_the_name_of_one_is_ignored_and_logged_once(
    world: World, name: str, logged: list[Any]
) -> None:
    world.put(forged_record(name))
    world.delete("move")
    world.tick(until=lambda: OURS not in world.kafka.reassignments)
    world.store.put(deepcopy(world.kube.objects[f"uid-{name}"]))
    assert [line["resource"] for line in logged if line["event"].startswith("ignored")] == [f"kafka/{name}"]
    world.store.drop(f"uid-{name}")
    assert world.store.get(f"uid-{name}") is None


@pytest.mark.parametrize("time", [TOO_LATE, TOO_EARLY])
def test_a_time_of_a_record_that_cannot_be_read_stops_no_undo(world: World, time: str) -> None:
    record = record_of(time)
    record["metadata"]["finalizers"] = [FINALIZER]
    world.put(record)
    world.restart()
    world.delete("move")
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


@pytest.mark.parametrize("part", [MAX_PARTS, 400])
def test_a_part_number_beyond_the_most_parts_makes_no_records(world: World, part: int) -> None:
    world.add("late", LATER, (4, 2, 3))
    world.put(owned(forged_record(f"uid-move-{part}", part=part, topics=[])))
    before = len(world.kube.objects)
    world.delete("move")
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick(3)
    assert len(world.kube.objects) == before + len(["the record of late"])
    assert world.conditions("move") == {"Stalled": "CannotBeRead"}
