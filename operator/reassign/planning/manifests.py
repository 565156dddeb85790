"""A plan as PartitionReassignments, one per wave: what a person reads, approves by its digest, and can take back.

They are suspended, and begin only from what the plan was made from (`expectedReplicas`). Their names tell the plan, its
content and the wave, so that the same plan has the same names and another one has others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from reassign.api.common import API_VERSION, GROUP, Model
from reassign.api.digest import hashed, spec_digest
from reassign.api.limits import (
    MAX_DETAILS,
    MAX_LABEL_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_OBJECT_BYTES,
    MAX_PARTITIONS,
    MAX_PLAN_PARTITIONS,
    MAX_TOPIC_CHARACTERS,
    MAX_WAVE_PARTITIONS,
    WAVE_BROKER_BYTES,
    WAVE_DETAIL_BYTES,
    WAVE_ENTRY_BYTES,
)
from reassign.api.partition_reassignment import (
    ANY_LOG_DIR,
    PartitionReassignment,
    PartitionReassignmentSpec,
    ReplicationFactorChange,
)
from reassign.api.reassignment_plan import PLAN_LABEL
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import UNKNOWN, Cluster, Ints, Plan

HASH_CHARACTERS = 8
KEPT_BY_ROLLBACK = ("clusterRef", "throttle", "concurrency", "preferredLeader")

Manifest = dict[str, Any]
M = TypeVar("M", bound=Model)


def reassignments(
    cluster: Cluster,
    plan: Plan,
    *,
    name: str,
    namespace: str,
    cluster_ref: Mapping[str, Any],
    template: Mapping[str, Any],
    max_partitions: int = MAX_WAVE_PARTITIONS,
) -> list[Manifest]:
    """The waves of a plan in their order; `name` is the plan's, `template` are options of a spec; both it and
    `cluster_ref` are as on the wire.

    Raises PlanningError where a wave has more than `max_partitions`, or than one object can hold.
    """
    waves = [entries(cluster, plan, those) for those in waves_of(plan)]
    own = {"clusterRef": cluster_ref, "suspend": True}
    return manifests_of(
        waves, name=name, namespace=namespace, template={**template, **own}, max_partitions=max_partitions
    )


def waves_of(plan: Plan) -> list[Ints]:
    """The partitions that each wave changes, in the order of the cluster's."""
    order = np.argsort(plan.wave, kind="stable").astype(np.int32)
    order = order[plan.wave[order] != UNKNOWN]
    return np.split(order, np.flatnonzero(np.diff(plan.wave[order])) + 1) if len(order) else []


def manifests_of(
    waves: Sequence[Sequence[Manifest]],
    *,
    name: str,
    namespace: str,
    template: Mapping[str, Any],
    max_partitions: int = MAX_WAVE_PARTITIONS,
) -> list[Manifest]:
    """One PartitionReassignment for the entries of each wave, with the fields of a spec in `template`."""
    specs = []
    for number, entries in enumerate(waves, 1):
        check_limits(f"wave {number}", entries, min(max_partitions, MAX_PARTITIONS))
        changes = any(len(each["replicas"]) != len(each["expectedReplicas"]) for each in entries)
        change = ReplicationFactorChange.ALLOW if changes else ReplicationFactorChange.FORBID
        specs.append(spec_of({**template, "partitions": entries, "replicationFactorChange": change.value}))
    content = _hash([name, specs])
    width = len(str(len(specs)))
    labels = {PLAN_LABEL: plan_label(name)}
    return [
        manifest(shortened(name, f"-{content}-{number:0{width}}"), namespace, spec, labels)
        for number, spec in enumerate(specs, 1)
    ]


def without_entries(manifest: Manifest) -> Manifest:
    """All that it says but the entries."""
    return {**manifest, "spec": {key: value for key, value in manifest["spec"].items() if key != "partitions"}}


def most_that_fit(cluster: Cluster, target: Ints, directories: Ints, changed: Ints) -> int:
    """How many of the `changed` partitions (M,) one object can hold, whichever of them these are; at least 1.

    Its status counts too, at its largest: the record repeats the replicas, and the directories that are named (P, R').
    """
    new, directory = target[changed], directories[changed]
    ids = (cluster.replicas[changed] >= 0).sum(axis=1) + (new >= 0).sum(axis=1)
    name = np.array([len(topic) for topic in cluster.topics], np.int64)[cluster.topic[changed]]
    path = np.array([*map(_json_bytes, cluster.directories.path), _json_bytes(ANY_LOG_DIR)], np.int64)
    named = (directory >= 0).any(axis=1) * np.where(new >= 0, path[directory], 0).sum(axis=1)
    size = WAVE_ENTRY_BYTES + 3 * name + 2 * WAVE_BROKER_BYTES * ids + 2 * named
    room = MAX_OBJECT_BYTES - MAX_DETAILS * WAVE_DETAIL_BYTES
    fit = [(np.cumsum(-np.sort(-each)) < most).sum() for each, most in ((size, room), (name, MAX_TOPIC_CHARACTERS))]
    return max(1, int(min(fit)))


def check_stored(plan: Plan) -> None:
    """Refuse a plan that is too large to be kept in the API server as its reassignments."""
    changed = int((plan.wave != UNKNOWN).sum())
    if changed > MAX_PLAN_PARTITIONS:
        raise PlanningError(
            Reason.PLAN_TOO_LARGE,
            f"the plan changes {changed} partitions, of which the operator keeps at most {MAX_PLAN_PARTITIONS}: "
            "select fewer topics, or write its reassignments to Git with kubectl kafka-reassign plan, "
            "or with the fleet pipeline, and apply them from there",
        )


def plan_label(name: str) -> str:
    """The value of PLAN_LABEL for a plan: its name; with a hash in place of its end where that is too long."""
    return name if len(name) <= MAX_LABEL_CHARACTERS else shortened(name, f"-{_hash(name)}", MAX_LABEL_CHARACTERS)


def digest(manifests: Iterable[Mapping[str, Any]]) -> str:
    """What an approval names: a hash over what these would do, in any order, as made or as the API server has them.

    Neither `suspend` counts, nor status, nor metadata but name, namespace and our labels; what is left out of a spec is
    as good as its default.
    """
    content = []
    for each in manifests:
        metadata, spec = each["metadata"], _parsed(PartitionReassignmentSpec, each["spec"])
        ours = {key: value for key, value in (metadata.get("labels") or {}).items() if key.startswith(f"{GROUP}/")}
        content.append([metadata["namespace"], metadata["name"], spec_digest(spec), ours])
    return hashed(sorted(content, key=lambda each: each[:3]))


def rollback(live: Mapping[str, Any]) -> Manifest:
    """The reassignment that brings back what this one, with its status, has moved: to the brokers, not to directories.

    Of the entries those that the record has, each only from where this one put it.
    """
    parsed = _parsed(PartitionReassignment, live)
    record = {(topic.topic, each.partition): each for topic in parsed.status.record for each in topic.partitions}
    entries: list[Manifest] = [
        {
            "topic": entry.topic,
            "partition": entry.partition,
            "replicas": list(done.original_replicas),
            "expectedReplicas": list(done.target_replicas),
        }
        for entry in parsed.spec.partitions
        if (done := record.get((entry.topic, entry.partition))) and done.original_replicas != done.target_replicas
    ]
    name = parsed.metadata.name
    if not entries:
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"{name} has nothing to roll back: its status.record has no replicas that it moved; "
            "give the object as it is in the cluster, with its status",
        )
    spec = {key: live["spec"][key] for key in KEPT_BY_ROLLBACK if key in live["spec"]} | {"partitions": entries}
    if any(len(entry["replicas"]) != len(entry["expectedReplicas"]) for entry in entries):
        spec["replicationFactorChange"] = ReplicationFactorChange.ALLOW.value
    content = _hash([name, entries])
    return manifest(shortened(name, f"-rollback-{content}"), parsed.metadata.namespace, spec_of(spec))


def manifest(name: str, namespace: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Manifest:
    metadata = {"name": name, "namespace": namespace} | ({"labels": dict(labels)} if labels else {})
    return {"apiVersion": API_VERSION, "kind": PartitionReassignment.KIND, "metadata": metadata, "spec": dict(spec)}


def spec_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """These fields of a spec, and no defaults, as the API server wants them; PlanningError for what it would refuse."""
    spec = _parsed(PartitionReassignmentSpec, fields)
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def _parsed(model: type[M], fields: Mapping[str, Any]) -> M:
    try:
        return model.parse(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PlanningError(
            Reason.INVALID_GOAL, f"no PartitionReassignment can have this {where}: {first['msg']}. Change it"
        ) from error


def check_limits(what: str, entries: Sequence[Mapping[str, Any]], max_partitions: int) -> None:
    """Refuse what one object cannot hold (design of the resource: topic names, entries)."""
    if len(entries) > max_partitions:
        raise PlanningError(
            Reason.INVALID_GOAL,
            f"{what} has {len(entries)} partitions of at most {max_partitions}: lower the waves' maxPartitions",
        )
    characters = sum(len(entry["topic"]) for entry in entries)
    if characters >= MAX_TOPIC_CHARACTERS:
        raise PlanningError(
            Reason.INVALID_GOAL,
            f"the topic names of {what} have {characters} characters, and must have less than {MAX_TOPIC_CHARACTERS}: "
            "lower the waves' maxPartitions",
        )


def entries(cluster: Cluster, plan: Plan, those: Ints) -> list[Manifest]:
    """What the plan does with each of these partitions, as a spec has it."""
    columns = cluster.topic, cluster.partition, plan.target, cluster.replicas, plan.target_directory
    ids, path, found = cluster.brokers.tolist(), cluster.directories.path, []
    for topic, partition, target, current, named in zip(*(each[those].tolist() for each in columns), strict=True):
        entry: Manifest = {
            "topic": cluster.topics[topic],
            "partition": partition,
            "replicas": [ids[broker] for broker in target if broker != UNKNOWN],
            "expectedReplicas": [ids[broker] for broker in current if broker != UNKNOWN],
        }
        if max(named) != UNKNOWN:
            entry["logDirs"] = [
                ANY_LOG_DIR if place == UNKNOWN else path[place]
                for place, broker in zip(named, target, strict=True)
                if broker != UNKNOWN
            ]
        found.append(entry)
    return found


def shortened(name: str, ending: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """A name with this ending, and of the limit's length at most."""
    return name[: limit - len(ending)].rstrip("-.") + ending


def _hash(content: object) -> str:
    return hashed(content).removeprefix("sha256:")[:HASH_CHARACTERS]


def _json_bytes(text: str) -> int:
    """Of a text in a list."""
    return len(json.dumps(text, ensure_ascii=False).encode()) + 1
