"""Takes over, once, what the version before this one recorded in statuses. It goes with the next version."""

from __future__ import annotations

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.logs import named_as
from reassign.controller.records import Records
from reassign.controller.store import Store
from reassign.core.model.record import read_record
from reassign.errors import ApiServerError, ConflictError, ReassignError
from reassign.kube.client import ClusterKey, Kind

log = structlog.get_logger()


async def take_over_statuses(key: ClusterKey, cluster: KafkaCluster, store: Store, records: Records) -> None:
    """Write the records of the resources of a KafkaCluster, unless it is marked.

    A status counts only where the version before has served the KafkaCluster: anyone who may write one could forge it.
    """
    if store.has_record(cluster.metadata.uid) or not _served_before(cluster):
        return
    for resource in store.resources(key):
        if not resource.status.record:
            continue
        record = {**read_record(resource.status.record), **resource.record}
        try:
            await records.write(resource, record, held=resource.has_finalizer)
        except (ApiServerError, ConflictError):
            raise
        except ReassignError as error:  # nothing can be made in a namespace that is being deleted
            log.warning("cannot record", **named_as(Kind.PARTITION_REASSIGNMENT, resource), error=error.message)


async def mark_served(key: ClusterKey, cluster: KafkaCluster, store: Store, records: Records) -> None:
    """Give a KafkaCluster a record of its own, with its throttles: then this version has served it.

    Not while there is something that cannot be read, and may have a record in its status. One that is being deleted may
    be in a namespace where nothing can be made.
    """
    meta, throttle = cluster.metadata, cluster.status.throttle
    before = _served_before(cluster)
    waits = before and (store.unreadable(key) or store.unlisted)
    if store.has_record(meta.uid) or meta.deletion_timestamp or waits:
        return
    await records.mark(cluster, throttle if before and throttle and (throttle.brokers or throttle.topics) else None)


def _served_before(cluster: KafkaCluster) -> bool:
    return cluster.status.cluster_id is not None
