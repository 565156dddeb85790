"""The command `verify`: the operator's checks before a move. It writes neither to Kafka nor to the API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterSpec
from reassign.api.partition_reassignment import Mode, PartitionState
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.options import Output
from reassign.cli.source import Where, plain
from reassign.core.cluster import ClusterHold, check_identity, permission_of, rules_of
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules, ConfigRules
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.parse import parse
from reassign.core.tick import Memory, decide
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.inspect.connect import connection_of
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key
from reassign.manifests import documents


class Finding(NamedTuple):
    """The result for one entry; without a partition, for the whole manifest."""

    manifest: str
    tp: TopicPartition | None
    state: PartitionState
    problem: Problem | None

    def __str__(self) -> str:
        """Return a line: the entry, its result, and why."""
        where = f"{self.manifest} {self.tp}" if self.tp else self.manifest
        if self.state is PartitionState.COMPLETED:
            return f"{where}: is at its target"
        if self.problem is None or self.state is not PartitionState.BLOCKED:
            return f"{where}: {self.problem.message if self.problem else self.state}"
        return f"{where}: blocked, {self.problem.reason}: {self.problem.message}"

    def wire(self) -> dict[str, Any]:
        """Return the result for programs."""
        return {
            "manifest": self.manifest,
            "topic": self.tp and self.tp.topic,
            "partition": self.tp and self.tp.partition,
            "state": self.state,
            "reason": self.problem and self.problem.reason,
            "message": self.problem and self.problem.message,
        }


class Served(NamedTuple):
    """A cluster with the rules of its KafkaCluster."""

    connection: Connection
    spec: KafkaClusterSpec
    rules: ClusterRules
    cluster: KafkaCluster | None = None
    others: Sequence[Resource] = ()
    """The resources that it has already."""


def run(file: Path, where: Where, output: Output) -> bool:
    """Verify the manifests in a file and write the results; return whether nothing would be blocked."""
    read = documents.read(out.read(file), file)
    with out.progress("checking"):
        results = asyncio.run(verify(read, where))
    passed = all(finding.state is not PartitionState.BLOCKED for finding in results)
    if not out.write_value({"passed": passed, "entries": [finding.wire() for finding in results]}, output):
        for finding in results:
            out.write_line(str(finding))
    return passed


async def verify(objects: Sequence[Object], where: Where) -> list[Finding]:
    """Judge manifests against the live cluster that they refer to, or `where` says."""
    default = namespace_of(where.kube)
    objects = [_placed(obj, default) for obj in objects]
    served = await _served(objects, where)
    async with live.read_only(served.connection) as client:
        resources = [parse(obj) for obj in objects]
        began = time.monotonic()
        snapshot = await _observe(client, [*resources, *served.others])
    if served.cluster:
        check_identity(served.cluster.status.cluster_id, snapshot.cluster_id)
    memory = Memory.begin(began)
    recent = memory.recent.observe(began, time.monotonic(), snapshot.reassignments.keys(), snapshot.log_dirs.keys())
    return findings(resources, served.others, snapshot, served.rules, replace(memory, recent=recent))


def findings(
    resources: Sequence[Resource], others: Sequence[Resource], snapshot: Snapshot, rules: ClusterRules, memory: Memory
) -> list[Finding]:
    """Judge these dry runs as the operator would, beside the other resources of their cluster."""
    decision = decide([*others, *resources], snapshot, ConfigRead(), memory, rules, datetime.now(UTC))
    for _, error in decision.errors:
        raise error
    verdicts = {verdict.resource.uid: verdict for verdict in decision.verdicts}
    results: list[Finding] = []
    for resource in (verdicts[resource.uid].resource for resource in resources):
        name = f"{resource.namespace}/{resource.name}"
        if resource.unsupported:
            results.append(Finding(name, None, PartitionState.BLOCKED, resource.unsupported))
        rows = verdicts[resource.uid].rows
        results += [Finding(name, tp, *rows[tp].shown()) for tp in sorted(rows) if rows[tp].waits]
    return results


async def _served(objects: Sequence[Object], where: Where) -> Served:
    if where.bootstrap_servers is not None:
        spec = plain(where.bootstrap_servers)
        return Served(
            Connection(spec.bootstrap_servers), spec, ClusterRules(spec.limits, throttle=ConfigRules.of(spec))
        )
    keys = {_key(obj, where) for obj in objects}
    if len(keys) > 1:
        named = " and ".join(f"{namespace}/{name}" for namespace, name in sorted(keys))
        raise ReassignError(Reason.CLUSTER_NOT_FOUND, f"the manifests are for {named}; verify those of one at a time")
    key = keys.pop()
    async with live.api_server(where.kube.login) as kube:
        cluster = await live.kafka_cluster(kube, *key)
        permission = permission_of(cluster)
        for obj in objects:
            if problem := permission.of_namespace(obj["metadata"]["namespace"]):
                raise ReassignError(problem.reason, problem.message)
        connection = await connection_of(cluster, kube)
        others = await _others(kube, objects, key)
    return Served(connection, cluster.spec, rules_of(cluster, ClusterHold()), cluster, others)


def _key(obj: Object, where: Where) -> ClusterKey:
    return (namespace_of(where.kube), where.cluster) if where.cluster else cluster_key(obj)


async def _others(kube: KubeClient, objects: Sequence[Object], key: ClusterKey) -> list[Resource]:
    """Return the PartitionReassignments of the cluster that are not settled, without these where they are applied."""
    ours = {(m["metadata"]["namespace"], m["metadata"]["name"]) for m in objects}
    resources: list[Resource] = []
    for obj in await kube.list(Kind.PARTITION_REASSIGNMENT):
        if cluster_key(obj) == key and (obj["metadata"]["namespace"], obj["metadata"]["name"]) not in ours:
            try:
                resources.append(parse(obj))
            except ValidationError:
                continue  # the operator leaves it alone, too
    return [resource for resource in resources if not resource.settled]


async def _observe(client: KafkaClient, resources: Sequence[Resource]) -> Snapshot:
    asked = {tp for resource in resources for tp in resource.named}
    destinations = {b for resource in resources for replicas in resource.wanted.values() for b in replicas}
    return await client.observe({tp.topic for tp in asked}, asked, destinations)


def _placed(obj: Object, namespace: str) -> Object:
    """Return an object as if it were applied now as a dry run; its namespace defaults to this one."""
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", namespace)
    uid = str(uuid5(NAMESPACE_URL, f"{namespace}/{name}"))  # of a length that the API server gives
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "0"}
    metadata["creationTimestamp"] = datetime.now(UTC).isoformat()
    return {"kind": obj["kind"], "metadata": metadata, "spec": obj["spec"] | {"mode": Mode.DRY_RUN}}
