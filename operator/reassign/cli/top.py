"""The command `top`: the load that moves put on clusters, brokers and resources, from the statuses alone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from pydantic import ValidationError
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionDetail, PartitionReassignmentStatus, PartitionState
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item, of_cluster
from reassign.cli.options import Output
from reassign.cli.refs import Kube
from reassign.core.model.progress import duration
from reassign.errors import Reason
from reassign.inspect import cluster as live
from reassign.kube.client import ClusterKey, Kind, Object
from reassign.text import amount, counted


@dataclass
class BrokerLoad:
    """Replicas that are being added to a broker and removed from it, and the bytes of the added ones."""

    broker: int
    rack: str | None = None
    fenced: bool = False
    adding: int = 0
    removing: int = 0
    others: int = 0
    """Replicas that moves of other clients add or remove there."""
    bytes_copied: int = 0
    bytes_total: int = 0


@dataclass
class ResourceLoad:
    """What one PartitionReassignment has in flight; bytes and rate are None where they are not known."""

    namespace: str
    name: str
    partitions_in_flight: int
    partitions_total: int
    bytes_copied: int | None
    bytes_total: int | None
    bytes_per_second: int | None
    seconds_left: int | None


@dataclass
class LeftOut:
    """Partitions in flight that the brokers' rows leave out."""

    undescribed: int
    """Those that the statuses of their resources do not describe."""
    undescribed_bytes: int | None
    """Bytes that their replicas have to copy, at most; None where that is not known."""
    uncounted: int
    """Those that no status here counts as moving: of resources in other namespaces, or being cancelled."""
    others: int
    """Those of other clients that the KafkaCluster's status does not name."""


@dataclass
class ClusterLoad:
    """What is in flight on one KafkaCluster."""

    namespace: str
    name: str
    execution: str
    in_flight: int
    limit: int
    others: int
    throttle: int | None
    left_out: LeftOut
    brokers: list[BrokerLoad] = field(default_factory=list)
    resources: list[ResourceLoad] = field(default_factory=list)


def run(kube: Kube, all_namespaces: bool, cluster: str | None, output: Output) -> None:
    """Write the load of the KafkaClusters of a namespace or of all, or of one of them."""
    loads = asyncio.run(_read(kube, None if all_namespaces else namespace_of(kube), cluster))
    if not out.write_value({"clusters": [asdict(load) for load in loads]}, output):
        out.write_tables(parts(loads, output is Output.WIDE))


async def _read(kube: Kube, namespace: str | None, cluster: str | None) -> list[ClusterLoad]:
    async with live.api_server(kube.login) as server:
        clusters = await server.list(Kind.KAFKA_CLUSTER, namespace)
        chosen = [obj for obj in clusters if cluster in (None, obj["metadata"]["name"])]
        if not chosen:
            where = f"in namespace {namespace}" if namespace else "in any namespace"
            names = [obj["metadata"]["name"] for obj in clusters]
            raise live.not_there("KafkaCluster", cluster, where, names, Reason.CLUSTER_NOT_FOUND)
        items = [Item(obj) for obj in await server.list(Kind.PARTITION_REASSIGNMENT, namespace)]
        return list(loads_of(chosen, items, server.now()))


def loads_of(clusters: Iterable[Object], items: Sequence[Item], now: datetime) -> Iterator[ClusterLoad]:
    """Yield the load of each KafkaCluster that can be read, with the resources that have something in flight."""
    by_cluster: dict[ClusterKey, list[Item]] = defaultdict(list)
    for item in of_cluster(items, None):
        by_cluster[item.cluster].append(item)
    for obj in clusters:
        try:
            cluster = KafkaCluster.parse(obj)
        except ValidationError:
            continue
        yield load_of(cluster, by_cluster[cluster.metadata.namespace, cluster.metadata.name], now)


def load_of(cluster: KafkaCluster, items: Sequence[Item], now: datetime) -> ClusterLoad:
    """Return the load of one KafkaCluster from its status and those of its PartitionReassignments."""
    spec, status = cluster.spec, cluster.status
    moving = [(item, _described(item)) for item in items if item.progress.partitions_in_flight]
    brokers = {each.id: BrokerLoad(each.id, each.rack, each.fenced) for each in status.brokers}
    for _, described in moving:
        for detail in described:
            _add(brokers, detail)
    foreign = status.foreign_in_flight
    for partition in foreign.partitions if foreign else ():
        for broker in (*partition.adding_replicas, *partition.removing_replicas):
            brokers.setdefault(broker, BrokerLoad(broker)).others += 1
    pacing = status.pacing.partitions_in_flight if status.pacing else None
    return ClusterLoad(
        namespace=cluster.metadata.namespace,
        name=cluster.metadata.name,
        execution=spec.execution.value,
        in_flight=status.in_flight or 0,
        limit=pacing or spec.limits.partitions_in_flight,
        others=foreign.count if foreign else 0,
        throttle=status.throttle.inter_broker if status.throttle else None,
        left_out=_left_out(cluster, moving),
        brokers=[brokers[id] for id in sorted(brokers)],
        resources=[_resource(item, now) for item, _ in moving],
    )


def _described(item: Item) -> list[PartitionDetail]:
    """Return the partitions in flight that the status of a PartitionReassignment describes."""
    assert isinstance(item.status, PartitionReassignmentStatus)
    return [detail for detail in item.status.partitions if detail.state is PartitionState.IN_FLIGHT]


def _left_out(cluster: KafkaCluster, moving: Sequence[tuple[Item, Sequence[PartitionDetail]]]) -> LeftOut:
    """Return what is in flight and counts on no broker."""
    foreign, counted = cluster.status.foreign_in_flight, sum(item.progress.partitions_in_flight for item, _ in moving)
    undescribed, rest = 0, list[int | None]()
    for item, described in moving:
        progress = item.progress
        if (missing := progress.partitions_in_flight - len(described)) > 0:
            undescribed += missing
            total = progress.bytes_total
            rest.append(None if total is None else total - sum(detail.bytes_total or 0 for detail in described))
    known = [max(size, 0) for size in rest if size is not None]
    return LeftOut(
        undescribed=undescribed,
        undescribed_bytes=sum(known) if len(known) == len(rest) else None,
        uncounted=max((cluster.status.in_flight or 0) - counted, 0),
        others=foreign.count - len(foreign.partitions) if foreign else 0,
    )


def _add(brokers: dict[int, BrokerLoad], detail: PartitionDetail) -> None:
    """Count one partition in flight; its bytes are shared equally by the replicas that are being added."""
    adding = detail.adding_replicas or ()
    for broker in adding:
        load = brokers.setdefault(broker, BrokerLoad(broker))
        load.adding += 1
        load.bytes_copied += (detail.bytes_copied or 0) // len(adding)
        load.bytes_total += (detail.bytes_total or 0) // len(adding)
    for broker in detail.removing_replicas or ():
        brokers.setdefault(broker, BrokerLoad(broker)).removing += 1


def _resource(item: Item, now: datetime) -> ResourceLoad:
    progress = item.progress
    end = progress.estimated_completion_time
    return ResourceLoad(
        namespace=item.namespace,
        name=item.name,
        partitions_in_flight=progress.partitions_in_flight,
        partitions_total=progress.partitions_total,
        bytes_copied=progress.bytes_copied,
        bytes_total=progress.bytes_total,
        bytes_per_second=progress.bytes_per_second,
        seconds_left=max(int((end - now).total_seconds()), 0) if end else None,
    )


def parts(loads: Iterable[ClusterLoad], wide: bool = False) -> Iterator[RenderableType]:
    """Yield a line, the brokers and the resources of each cluster; idle brokers only where `wide`."""
    for load in loads:
        yield Text("\n".join(_lines(load)))
        busy = [b for b in load.brokers if wide or b.adding or b.removing or b.others]
        if busy:
            yield brokers_table(busy)
        if load.resources:
            yield resources_table(load.resources)


def _lines(load: ClusterLoad) -> Iterator[str]:
    line = f"{load.namespace}/{load.name}: {load.execution}, {load.in_flight} of {load.limit} partitions in flight"
    line += f", {load.others} of other clients" if load.others else ""
    yield line + (f", throttle {amount(load.throttle)}/s" if load.throttle else "")
    if left_out := [*_left_out_of_brokers(load)]:
        yield f"left out of the brokers: {'; '.join(left_out)}"


def _left_out_of_brokers(load: ClusterLoad) -> Iterator[str]:
    left = load.left_out
    if left.undescribed:
        size = "unknown bytes" if left.undescribed_bytes is None else f"at most {amount(left.undescribed_bytes)}"
        yield f"{counted(left.undescribed, 'partition')} in flight ({size}), since a status describes 100 at most"
    if left.uncounted:
        yield f"{counted(left.uncounted, 'partition')} in flight (unknown bytes) that no status here counts as moving"
    if left.others:
        yield f"{counted(left.others, 'partition')} of other clients, since a status names 100 at most"
    if load.others:
        yield f"the bytes of {counted(load.others, 'partition')} of other clients"


def brokers_table(brokers: Iterable[BrokerLoad]) -> Table:
    numbers = ("ADDING", "REMOVING", "OTHERS", "COPIED", "OF")
    table = out.table("BROKER", "RACK", *numbers, "%", numbers=(*numbers, "%"))
    for each in brokers:
        name = f"{each.broker} (fenced)" if each.fenced else str(each.broker)
        counts = (str(number) if number else "-" for number in (each.adding, each.removing, each.others))
        table.add_row(name, each.rack or "", *counts, *_bytes(each.bytes_copied, each.bytes_total))
    return table


def resources_table(resources: Iterable[ResourceLoad]) -> Table:
    numbers = ("IN FLIGHT", "COPIED", "OF", "%", "RATE", "LEFT")
    table = out.table("RESOURCE", *numbers, numbers=numbers)
    for each in resources:
        rate = f"{amount(each.bytes_per_second)}/s" if each.bytes_per_second else "-"
        left = duration(each.seconds_left) if each.seconds_left is not None else "-"
        in_flight = f"{each.partitions_in_flight}/{each.partitions_total}"
        table.add_row(
            f"{each.namespace}/{each.name}", in_flight, *_bytes(each.bytes_copied, each.bytes_total), rate, left
        )
    return table


def _bytes(copied: int | None, total: int | None) -> tuple[str, str, str]:
    """Return what is copied, of how much, and that in percent."""
    if not total:
        return "-", "-", "-"
    return amount(copied or 0), amount(total), str(int((copied or 0) * 100 / total))
