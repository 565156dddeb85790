"""Takes over, once, what the version before this one recorded in statuses. It goes with the next version."""

from __future__ import annotations

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.records import Records
from reassign.controller.store import Store
from reassign.core.model.record import read_record
from reassign.errors import ApiServerError, ConflictError, ReassignError

log = structlog.get_logger()


async def take_over_statuses(cluster: KafkaCluster, store: Store, records: Records) -> None:
    """Write the records of a KafkaCluster and its resources, unless it has one: then this version has served it.

    A status counts only where the version before has served the KafkaCluster: whoever may write one could make it up.
    """
    meta, status = cluster.metadata, cluster.status
    if store.parts(meta.uid):
        return
    served = status.cluster_id is not None
    for resource in store.resources((meta.namespace, meta.name)) if served else ():
        if not resource.status.record or store.parts(resource.uid):
            continue
        try:
            await records.write(resource, read_record(resource.status.record), held=resource.has_finalizer)
        except (ApiServerError, ConflictError):
            raise
        except ReassignError as error:  # nothing can be made in a namespace that is being deleted
            log.warning("cannot record", resource=f"{resource.namespace}/{resource.name}", error=error.message)
    await records.write_throttle(cluster, status.throttle if served else None)
