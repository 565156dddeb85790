"""A plan becomes suspended PartitionReassignments, which are approved by their digest and can be taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from reassign.api.limits import MAX_DETAILS
from reassign.api.partition_reassignment import (
    PartitionDetail,
    PartitionReassignment,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
    PartitionState,
    RecordPartition,
    RecordState,
    RecordTopic,
)
from reassign.api.reassignment_plan import PLAN_LABEL, Wave, WaveState
from reassign.core.checks.size import too_large
from reassign.core.plans.model import manifest_digest, plan_digest
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import Manifest, plan_label
from reassign.manifests.rollback import lists_all, rollback
from reassign.manifests.waves import check_stored, reassignments
from reassign.planning.object_size import most_that_fit
from reassign.planning.problem.model import UNKNOWN, Certificate, Cluster, Directories, Plan

NOTHING = Certificate(0, 0, 0, 0, 0, (), 0, 0)
IDS = np.array([10, 20, 30, 40], np.int32)


def cluster_of(replicas: list[list[int]], topics: tuple[str, ...] = ("orders",)) -> Cluster:
    """Partitions of the topics in turns, on brokers by index; each broker has /a and /b."""
    count, brokers = len(replicas), len(IDS)
    number = np.arange(count, dtype=np.int32)
    directories = Directories(
        broker=np.repeat(np.arange(brokers, dtype=np.int32), 2),
        path=("/a", "/b") * brokers,
        total=np.full(2 * brokers, 1000, np.int64),
        usable=np.full(2 * brokers, 1000, np.int64),
        cordoned=np.zeros(2 * brokers, np.bool_),
        online=np.ones(2 * brokers, np.bool_),
    )
    return Cluster(
        id="c",
        brokers=IDS,
        racks=("",) * brokers,
        registered=np.ones(brokers, np.bool_),
        alive=np.ones(brokers, np.bool_),
        directories=directories,
        topics=topics,
        topic=np.sort(number % len(topics)),
        partition=number // len(topics),
        replicas=np.array(replicas, np.int32),
        sizes=np.full(count, 5, np.int64),
        in_flight=np.zeros(count, np.bool_),
    )


def plan_of(target: list[list[int]], wave: list[int], directories: list[list[int]] | None = None) -> Plan:
    named = np.array(directories, np.int32) if directories else np.full_like(np.array(target, np.int32), UNKNOWN)
    return Plan(np.array(target, np.int32), named, np.array(wave, np.int32), NOTHING)


FOUR = cluster_of([[0, 1, -1], [1, 2, -1], [2, 0, 1], [0, 1, 2]])
PLAN = plan_of([[3, 1, -1], [1, 2, -1], [0, 2, 1], [1, 0, -1]], [1, UNKNOWN, 0, 1])


def made(cluster: Cluster = FOUR, plan: Plan = PLAN, name: str = "drain-5", **options: Any) -> list[Manifest]:
    template = options.pop("template", {})
    return reassignments(
        cluster, plan, name=name, namespace="kafka", cluster_ref={"name": "main"}, template=template, **options
    )


def test_each_wave_is_a_suspended_reassignment_of_broker_ids() -> None:
    first, second = made()
    assert first["apiVersion"] == "kafka.reassign.dev/v1alpha1"
    assert first["kind"] == "PartitionReassignment"
    assert first["metadata"]["namespace"] == "kafka"
    assert first["metadata"]["labels"] == {PLAN_LABEL: "drain-5"}
    assert first["spec"] == {
        "clusterRef": {"name": "main"},
        "suspend": True,
        "replicationFactorChange": "Forbid",
        "partitions": [{"topic": "orders", "partition": 2, "replicas": [10, 30, 20], "expectedReplicas": [30, 10, 20]}],
    }
    assert [(e["partition"], e["replicas"], e["expectedReplicas"]) for e in second["spec"]["partitions"]] == [
        (0, [40, 20], [10, 20]),
        (3, [20, 10], [10, 20, 30]),
    ]


def test_the_replication_factor_may_change_only_in_waves_that_change_it() -> None:
    assert [m["spec"]["replicationFactorChange"] for m in made()] == ["Forbid", "Allow"]


def test_directories_are_given_only_where_the_plan_names_one() -> None:
    plan = plan_of([[3, 1], [0, 1]], [0, 0], [[7, UNKNOWN], [UNKNOWN, UNKNOWN]])
    [wave] = made(cluster_of([[0, 1], [1, 0]]), plan)
    assert [entry.get("logDirs") for entry in wave["spec"]["partitions"]] == [["/b", "any"], None]


def test_options_come_from_the_template() -> None:
    options = {"throttle": {"interBroker": "50Mi"}, "concurrency": {"partitions": 7}, "preferredLeader": "Keep"}
    for manifest in made(template=options):
        assert manifest["spec"].items() >= options.items()
        assert manifest["spec"]["suspend"] is True


def test_an_option_that_the_resource_does_not_allow_is_refused() -> None:
    with pytest.raises(PlanningError, match=r"throttle.interBroker") as refusal:
        made(template={"throttle": {"interBroker": "50MB"}})
    assert refusal.value.reason is Reason.INVALID_GOAL


def test_what_is_made_is_what_the_resource_reads() -> None:
    for manifest in made():
        assert PartitionReassignment.parse(manifest).spec.suspend
        assert json.loads(json.dumps(manifest)) == manifest


def test_a_plan_that_changes_nothing_has_no_reassignments() -> None:
    assert made(plan=plan_of([[0, 1], [1, 2], [2, 0], [0, 1]], [UNKNOWN] * 4)) == []


def names(manifests: list[Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


def test_names_have_the_plan_its_content_and_the_wave() -> None:
    first, second = names(made())
    assert re.fullmatch(r"drain-5-[0-9a-f]{8}-1", first)
    assert second == first[:-1] + "2"
    assert names(made()) == [first, second]
    assert not set(names(made(template={"preferredLeader": "Keep"}))) & {first, second}


def test_names_sort_as_the_waves_run() -> None:
    cluster = cluster_of([[0, 1]] * 12)
    found = names(made(cluster, plan_of([[1, 0]] * 12, list(range(12)))))
    assert found == sorted(found)


@pytest.mark.parametrize("name", ["a" * 253, "a" * 236 + "." + "b" * 16, "x" * 63, "x" * 64, "a." * 40 + "a"])
def test_names_and_labels_stay_legal_however_long_the_plans_name(name: str) -> None:
    found = made(name=name)
    assert len(set(names(found))) == 2
    for manifest in found:
        assert len(manifest["metadata"]["name"]) <= 253
        assert re.fullmatch(
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", manifest["metadata"]["name"]
        )
        label = manifest["metadata"]["labels"][PLAN_LABEL]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", label)
        assert label == plan_label(name)


def test_long_names_that_begin_alike_have_other_labels() -> None:
    assert plan_label("a" * 70) != plan_label("a" * 71)
    assert not set(names(made(name="a" * 252))) & set(names(made(name="a" * 253)))


def test_a_wave_that_is_larger_than_one_object_should_be_is_refused() -> None:
    cluster, plan = cluster_of([[0, 1]] * 501), plan_of([[1, 0]] * 501, [0] * 501)
    with pytest.raises(PlanningError, match="wave 1 has 501 partitions of at most 500: lower"):
        made(cluster, plan)
    assert len(made(cluster, plan, max_partitions=501)) == 1


def test_topic_names_that_are_too_long_together_are_refused() -> None:
    topics = tuple(f"{n:03}" + "t" * 246 for n in range(643))
    cluster, plan = cluster_of([[0, 1]] * 643, topics), plan_of([[1, 0]] * 643, [0] * 643)
    with pytest.raises(PlanningError, match="topic names of wave 1 have 160107 characters"):
        made(cluster, plan, max_partitions=2000)


def test_a_plan_too_large_to_be_stored_is_refused_with_what_to_do() -> None:
    check_stored(plan_of([[1, 0]] * 20_001, [0] * 20_000 + [UNKNOWN]))
    with pytest.raises(PlanningError, match=r"20001 partitions.*Git.*fleet pipeline") as refusal:
        check_stored(plan_of([[1, 0]] * 20_001, [0] * 20_001))
    assert refusal.value.reason is Reason.PLAN_TOO_LARGE


# --- The digest ---


def as_stored(manifest: Manifest) -> Manifest:
    """Return the wave as the API server stores it, resumed: with defaults, metadata and a status."""
    live = deepcopy(manifest)
    live["spec"] |= {"suspend": False, "whenInFlight": "Wait", "stallTimeoutSeconds": 600, "mode": "Execute"}
    live["metadata"] |= {
        "uid": "u",
        "resourceVersion": "5",
        "generation": 2,
        "finalizers": ["kafka.reassign.dev/cancel"],
    }
    live["metadata"]["labels"]["argocd.argoproj.io/instance"] = "moves"
    live["status"] = {"summary": "1/2 partitions"}
    return live


def digest(manifests: Iterable[Manifest]) -> str:
    """The digest of the plan that has these waves."""
    waves = (
        Wave(name=m["metadata"]["name"], partitions=1, bytes=0, state=WaveState.PENDING, digest=manifest_digest(m))
        for m in manifests
    )
    return plan_digest([*waves])


def test_the_digest_is_the_same_as_made_and_as_stored() -> None:
    manifests = made()
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest(manifests))
    assert digest(as_stored(manifest) for manifest in manifests) == digest(manifests)


@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "name"),
        ("spec", "clusterRef", "name"),
        ("spec", "partitions", 0, "topic"),
    ],
)
def test_the_digest_changes_with_every_edit(path: tuple[str | int, ...]) -> None:
    manifests = made()
    edited = deepcopy(manifests)
    *way, last = path
    place: Any = edited[0]
    for step in way:
        place = place[step]
    place[last] = "other"
    assert digest(edited) != digest(manifests)


def test_the_digest_depends_on_replicas_order_options_and_waves() -> None:
    manifests = made()
    others = [made()[:1], made()[::-1], made(template={"preferredLeader": "Keep"})]
    for change in ([20, 40], [40, 30]):
        others.append(deepcopy(manifests))
        others[-1][1]["spec"]["partitions"][0]["replicas"] = change
    assert len({digest(manifests), *(digest(other) for other in others)}) == 6


# --- The way back ---


def live(entries: list[dict[str, Any]], record: list[dict[str, Any]], **spec: Any) -> Manifest:
    return {
        "metadata": {"name": "moves", "namespace": "kafka", "labels": {PLAN_LABEL: "drain-5"}},
        "spec": {"clusterRef": {"name": "main"}, "partitions": entries, **spec},
        "status": {"partitions": [{"topic": "orders", **partition} for partition in record]},
    }


def entry(partition: int, *replicas: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": partition, "replicas": list(replicas), "expectedReplicas": [9, 8]}


def done(partition: int, original: list[int], target: list[int], state: str = "Completed") -> dict[str, Any]:
    return {"partition": partition, "originalReplicas": original, "targetReplicas": target, "state": state}


def test_a_rollback_brings_back_what_was_moved_from_where_it_was_put() -> None:
    back = rollback(
        live(
            [entry(0, 3, 1), entry(1, 5, 6), entry(2, 2, 1)],
            [done(0, [0, 1], [3, 1]), done(2, [1, 2], [2, 1], "InFlight"), done(7, [1, 2], [2, 1])],
            throttle={"interBroker": "5Mi"},
            mode="Execute",
            suspend=True,
            deadlineSeconds=5,
        )
    )
    assert re.fullmatch("moves-rollback-[0-9a-f]{8}", back["metadata"].pop("name"))
    assert back["metadata"] == {"namespace": "kafka"}
    assert back["spec"] == {
        "clusterRef": {"name": "main"},
        "throttle": {"interBroker": "5Mi"},
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [0, 1], "expectedReplicas": [3, 1]},
            {"topic": "orders", "partition": 2, "replicas": [1, 2], "expectedReplicas": [2, 1]},
        ],
    }


def test_a_rollback_leaves_out_what_never_began() -> None:
    blocked = {"topic": "orders", "partition": 1, "state": "Blocked"}
    back = rollback(live([entry(0, 3, 1), entry(1, 99, 1)], [done(0, [0, 1], [3, 1]), blocked]))
    assert [one["partition"] for one in back["spec"]["partitions"]] == [0]


@pytest.mark.parametrize("state", ["Pending", "Blocked", "Cancelling", "Cancelled", "Failed"])
def test_a_rollback_leaves_out_what_is_not_moved(state: str) -> None:
    back = rollback(live([entry(0, 3, 1), entry(1, 3, 1)], [done(0, [0, 1], [3, 1]), done(1, [0, 1], [3, 1], state)]))
    assert [one["partition"] for one in back["spec"]["partitions"]] == [0]


@pytest.mark.parametrize("state", ["Superseding", "Submitting", "Cancelling", "Cancelled", "Failed"])
def test_a_rollback_by_records_leaves_out_what_is_not_moved(state: str) -> None:
    moved = live([entry(0, 3, 1), entry(1, 3, 1), entry(2, 3, 1)], [])
    moved["metadata"]["uid"] = "u"
    settling = done(2, [0, 1], [3, 1], "Settling")
    partitions = [done(0, [0, 1], [3, 1], "InFlight"), done(1, [0, 1], [3, 1], state), settling]
    topics = [{"topic": "orders", "topicId": "t", "partitions": partitions}]
    record = {
        "metadata": {
            "name": "u-1",
            "namespace": "kafka",
            "ownerReferences": [{"kind": "PartitionReassignment", "name": "moves", "uid": "u"}],
        },
        "spec": {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 1, "topics": topics},
    }
    assert [one["partition"] for one in rollback(moved, [record])["spec"]["partitions"]] == [0, 2]


def test_a_rollback_may_change_the_replication_factor_back() -> None:
    back = rollback(live([entry(0, 3, 1, 0)], [done(0, [0, 1], [3, 1, 0])]))
    assert back["spec"]["replicationFactorChange"] == "Allow"


@pytest.mark.parametrize("record", [[], [done(0, [3, 1], [3, 1])], [done(5, [0, 1], [3, 1])]])
def test_where_nothing_was_moved_there_is_nothing_to_roll_back(record: list[dict[str, Any]]) -> None:
    with pytest.raises(PlanningError, match="nothing to roll back") as refusal:
        rollback(live([entry(0, 3, 1)], record))
    assert refusal.value.reason is Reason.NOTHING_SELECTED


def test_a_rollback_reads_the_records_where_status_is_not_whole() -> None:
    moved = live([entry(0, 3, 1), entry(1, 3, 1)], [])
    moved["metadata"]["uid"] = "u"
    moved["status"]["progress"] = {"partitionsTotal": 2}
    assert not lists_all(moved)
    topics = [{"topic": "orders", "topicId": "t", "partitions": [done(1, [0, 1], [3, 1])]}]
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 1, "topics": topics}
    owner = {"kind": "PartitionReassignment", "name": "moves", "uid": "u"}
    ours = {"metadata": {"name": "u-1", "namespace": "kafka", "ownerReferences": [owner]}, "spec": spec}
    theirs = {
        "metadata": {"name": "v-1", "namespace": "kafka", "ownerReferences": [owner | {"uid": "v"}]},
        "spec": spec,
    }
    assert [e["replicas"] for e in rollback(moved, [ours, theirs])["spec"]["partitions"]] == [[0, 1]]
    with pytest.raises(PlanningError, match="nothing to roll back"):
        rollback(moved, [theirs])


def test_a_rollback_of_something_else_is_refused() -> None:
    with pytest.raises(PlanningError, match="no PartitionReassignment can have this"):
        rollback({"metadata": {"name": "a", "namespace": "b"}, "spec": {"partitions": []}})


ETCD_BYTES = 1_572_864
"""What etcd takes in one request by default."""
EVERY = 700


def of_size(topic: int, replicas: int, path: int) -> tuple[Cluster, Plan]:
    """Partitions that all move, each of another topic; names and paths have so many characters, and 0 names none."""
    count = 2 * replicas
    ids = np.arange(2**31 - count, 2**31, dtype=np.int64).astype(np.int32)
    unknown = np.full(count, UNKNOWN, np.int64)
    online = np.ones(count, np.bool_)
    brokers = np.arange(count, dtype=np.int32)
    directories = Directories(brokers, ("/".ljust(path, "d"),) * count, unknown, unknown, ~online, online)
    old, new = (np.tile(half, (EVERY, 1)) for half in (brokers[:replicas], brokers[replicas:]))
    cluster = Cluster(
        id="c",
        brokers=ids,
        racks=("",) * count,
        registered=online,
        alive=online,
        directories=directories,
        topics=tuple(f"{number:04}".rjust(topic, "t") for number in range(EVERY)),
        topic=np.arange(EVERY, dtype=np.int32),
        partition=np.zeros(EVERY, np.int32),
        replicas=old,
        sizes=np.full(EVERY, 5, np.int64),
        in_flight=np.zeros(EVERY, np.bool_),
    )
    named = new if path else np.full_like(new, UNKNOWN)
    return cluster, Plan(new, named, np.zeros(EVERY, np.int32), NOTHING)


def grown(manifest: Manifest) -> dict[str, Any]:
    """An object with the largest status that its entries can come to, and what the API server adds to it."""
    spec = PartitionReassignmentSpec.parse(manifest["spec"])
    details = [
        PartitionDetail(
            topic=entry.topic,
            partition=entry.partition,
            state=PartitionState.CANCELLING,
            original_replicas=entry.expected_replicas,
            current_replicas=(*entry.replicas, *(entry.expected_replicas or ())),
            target_replicas=entry.replicas,
            adding_replicas=entry.replicas,
            removing_replicas=entry.expected_replicas,
            bytes_copied=10**18,
            bytes_total=10**18,
            reason="R" * 128,
            message="m" * 1024,
        )
        for entry in spec.partitions[:MAX_DETAILS]
    ]
    record = [
        RecordTopic(
            topic=entry.topic,
            topic_id="i" * 22,
            partitions=(
                RecordPartition(
                    partition=entry.partition,
                    original_replicas=entry.expected_replicas or (),
                    target_replicas=entry.replicas,
                    state=RecordState.CANCELLING,
                    reason="R" * 128,
                    log_dirs=entry.log_dirs,
                ),
            ),
        )
        for entry in spec.partitions
    ]
    status = PartitionReassignmentStatus(partitions=tuple(details), record=tuple(record))
    keys = [json.dumps({"partition": entry.partition, "topic": entry.topic}) for entry in spec.partitions]
    fields = ("", "f:expectedReplicas", "f:logDirs", "f:partition", "f:replicas", "f:topic")
    owned = {"f:spec": {"f:partitions": {f"k:{key}": {field: {} for field in fields} for key in keys}}}
    metadata = manifest["metadata"] | {"managedFields": [{"manager": "m" * 128, "fieldsV1": owned}]}
    return manifest | {"metadata": metadata, "status": status.wire()}


@pytest.mark.parametrize(
    ("topic", "replicas", "path", "fit"),
    [(40, 3, 0, 700), (249, 3, 60, 500), (40, 3, 400, 280), (249, 16, 1024, 25), (4, 16, 0, 700), (249, 1, 0, 600)],
)
def test_a_wave_of_the_largest_entries_fits_into_one_object(topic: int, replicas: int, path: int, fit: int) -> None:
    cluster, plan = of_size(topic, replicas, path)
    most = most_that_fit(cluster, plan.target, plan.target_directory, np.arange(EVERY, dtype=np.int32))
    assert fit <= most < fit + 100
    plan.wave[most:] = UNKNOWN
    (wave,) = made(cluster, plan, max_partitions=2000)
    largest = grown(wave)
    assert len(json.dumps(largest, separators=(",", ":"))) < ETCD_BYTES - 50_000
    assert too_large(largest, PartitionReassignmentSpec.parse(wave["spec"])) is None


def test_of_entries_that_differ_the_largest_count() -> None:
    """One topic with a long name takes no place from the others as long as these are few."""
    cluster, plan = of_size(40, 16, 1024)
    plan.target_directory[5:] = UNKNOWN
    rows = np.arange(EVERY, dtype=np.int32)
    assert most_that_fit(cluster, plan.target, plan.target_directory, rows) > 400
    assert most_that_fit(cluster, plan.target, plan.target_directory, rows[:5]) == 5
    assert most_that_fit(cluster, plan.target, plan.target_directory, rows[:0]) == 1
