"""The command `verify`: the operator's checks before a move. It writes neither to Kafka nor to the API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
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
from reassign.manifests.rollback import lists_all, under_way
from reassign.text import listed


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


Targets = Mapping[tuple[str, TopicPartition], tuple[int, ...]]
"""Where the PartitionReassignments that are applied already move partitions to, by their names."""


class Served(NamedTuple):
    """A cluster with the rules of its KafkaCluster."""

    connection: Connection
    spec: KafkaClusterSpec
    rules: ClusterRules
    cluster: KafkaCluster | None = None
    others: Sequence[Resource] = ()
    """The resources that it has already."""
    moving: Targets = MappingProxyType({})
    """What those of the file have in flight already."""


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
    begins = [not obj["spec"].get("suspend") and obj["spec"].get("mode") != Mode.DRY_RUN for obj in objects]
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
    judged = findings(resources, served.others, snapshot, served.rules, replace(memory, recent=recent))
    asked = {(_name(r), tp): target for r in resources for tp, target in r.wanted.items()}
    starting = {_name(resource) for resource, starts in zip(resources, begins, strict=True) if starts}
    return _contested([_as_moving(each, asked, served.moving, snapshot) for each in judged], asked, starting)


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
        name = _name(resource)
        if resource.unsupported:
            results.append(Finding(name, None, PartitionState.BLOCKED, resource.unsupported))
        rows = verdicts[resource.uid].rows
        results += [Finding(name, tp, *rows[tp].shown()) for tp in sorted(rows) if rows[tp].waits]
    return results


def _name(resource: Resource) -> str:
    return f"{resource.namespace}/{resource.name}"


def _as_moving(finding: Finding, asked: Targets, moving: Targets, snapshot: Snapshot) -> Finding:
    """Return a finding; of a partition that its manifest moves already, as it is applied, that it does."""
    if finding.tp is None or (target := moving.get((finding.manifest, finding.tp))) is None:
        return finding
    elsewhere = finding.problem is not None and finding.problem.reason is Reason.IN_FLIGHT_ELSEWHERE
    if not elsewhere and finding.tp not in snapshot.reassignments:
        return finding
    message = "is in flight already"
    if target != asked[finding.manifest, finding.tp]:
        message += f", to {listed(target, separator=' ')} as it is applied now: that move goes back first"
    return finding._replace(state=PartitionState.IN_FLIGHT, problem=Problem(Reason.WOULD_MOVE, message))


def _contested(judged: Sequence[Finding], asked: Targets, starting: Collection[str]) -> list[Finding]:
    """Return the findings; of two manifests that move a partition to different brokers, the first one claims it."""
    first: dict[TopicPartition, str] = {}
    results: list[Finding] = []
    for finding in judged:
        if finding.tp and finding.manifest in starting and finding.state is not PartitionState.BLOCKED:
            other = first.setdefault(finding.tp, finding.manifest)
            if asked[other, finding.tp] != asked[finding.manifest, finding.tp]:
                message = f"{other} beside it moves this partition to other brokers; keep one, or suspend one"
                finding = finding._replace(
                    state=PartitionState.BLOCKED, problem=Problem(Reason.PARTITION_CLAIMED, message)
                )
        results.append(finding)
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
        others, moving = await _applied(kube, objects, key)
    return Served(connection, cluster.spec, rules_of(cluster, ClusterHold()), cluster, others, moving)


def _key(obj: Object, where: Where) -> ClusterKey:
    return (namespace_of(where.kube), where.cluster) if where.cluster else cluster_key(obj)


async def _applied(kube: KubeClient, objects: Sequence[Object], key: ClusterKey) -> tuple[list[Resource], Targets]:
    """Return the other PartitionReassignments of the cluster that are not settled, and what these have in flight."""
    named = {(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in objects}
    others, moving = list[Resource](), dict[tuple[str, TopicPartition], tuple[int, ...]]()
    for obj in await kube.list(Kind.PARTITION_REASSIGNMENT):
        if cluster_key(obj) != key:
            continue
        try:
            resource = parse(obj)
        except ValidationError:
            continue  # the operator leaves it alone, too
        if resource.settled:
            continue
        if (resource.namespace, resource.name) in named:
            records = [] if lists_all(obj) else await kube.list(Kind.REASSIGNMENT_RECORD, resource.namespace)
            moves = under_way(obj, records)
            moving |= {(_name(resource), TopicPartition(*tp)): target for tp, (_, target) in moves.items()}
        else:
            others.append(resource)
    return others, moving


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
