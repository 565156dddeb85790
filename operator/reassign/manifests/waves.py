"""A plan as PartitionReassignments, one per wave, which a person reads and approves by their digest.

They are suspended, and start only from the replicas that the plan was made from (`expectedReplicas`). Their names have
the plan, a hash of its content and the wave: the same plan has the same names, and another plan has others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reassign.api.limits import MAX_PARTITIONS, MAX_PLAN_PARTITIONS, MAX_WAVE_PARTITIONS
from reassign.api.partition_reassignment import ANY_LOG_DIR, ReplicationFactorChange
from reassign.api.reassignment_plan import PLAN_LABEL
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import (
    Manifest,
    check_limits,
    manifest,
    plan_label,
    short_hash,
    shortened,
    spec_of,
)
from reassign.planning.problem.model import UNKNOWN, Cluster, Ints, Plan


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
    """Return the waves of a plan in their order, with the plan's name and the options of a spec in `template`.

    `template` and `cluster_ref` are as on the wire.

    Raises PlanningError where a wave has more than `max_partitions`, or than one object can hold.
    """
    waves = [entries(cluster, plan, those) for those in waves_of(plan)]
    own = {"clusterRef": cluster_ref, "suspend": True}
    return manifests_of(
        waves, name=name, namespace=namespace, template={**template, **own}, max_partitions=max_partitions
    )


def waves_of(plan: Plan) -> list[Ints]:
    """Return the partitions that each wave changes, in the cluster's order."""
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
    """Return a PartitionReassignment for the entries of each wave, with the fields of a spec in `template`."""
    specs = []
    for number, entries in enumerate(waves, 1):
        check_limits(f"wave {number}", entries, min(max_partitions, MAX_PARTITIONS))
        changes = any(len(each["replicas"]) != len(each["expectedReplicas"]) for each in entries)
        change = ReplicationFactorChange.ALLOW if changes else ReplicationFactorChange.FORBID
        specs.append(spec_of({**template, "partitions": entries, "replicationFactorChange": change.value}))
    content = short_hash([name, specs])
    width = len(str(len(specs)))
    labels = {PLAN_LABEL: plan_label(name)}
    return [
        manifest(shortened(name, f"-{content}-{number:0{width}}"), namespace, spec, labels)
        for number, spec in enumerate(specs, 1)
    ]


def entries(cluster: Cluster, plan: Plan, those: Ints) -> list[Manifest]:
    """Return these partitions of a plan as entries of a spec."""
    columns = cluster.topic, cluster.partition, plan.target, cluster.replicas, plan.target_directory
    ids, path, made = cluster.brokers.tolist(), cluster.directories.path, []
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
        made.append(entry)
    return made


def check_stored(plan: Plan) -> None:
    """Raise PlanningError for a plan that is too large for the API server."""
    changed = int((plan.wave != UNKNOWN).sum())
    if changed > MAX_PLAN_PARTITIONS:
        raise PlanningError(
            Reason.PLAN_TOO_LARGE,
            f"the plan changes {changed} partitions, of which the operator keeps at most {MAX_PLAN_PARTITIONS}: "
            "select fewer topics, or write its reassignments to Git with kubectl kafka-reassign plan, "
            "or with the fleet pipeline, and apply them from there",
        )
