"""The command `decommission`: makes a BrokerDecommission, or writes its manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from reassign.api.broker_decommission import BrokerDecommission, BrokerDecommissionSpec, UnregisterWish
from reassign.api.common import API_VERSION
from reassign.api.limits import MAX_BROKERS, MAX_DECOMMISSION_NAME_CHARACTERS
from reassign.api.made_plan import OwnClusterRef
from reassign.cli import output as out
from reassign.cli.changing import MANAGER
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item
from reassign.cli.options import ManifestOutput, checked
from reassign.cli.refs import Kube
from reassign.errors import ConflictError, Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import named_brokers


def run(
    kube: Kube,
    brokers: Collection[int],
    cluster: str,
    name: str | None,
    unregister: bool,
    output: ManifestOutput | None,
    dry_run: bool,
) -> None:
    """Make a BrokerDecommission; with an output, write its manifest and make nothing."""
    ids = sorted(brokers)
    checked("BROKER...", BrokerDecommissionSpec, cluster_ref=OwnClusterRef(name=cluster), brokers=tuple(ids))
    obj: Object = {
        "apiVersion": API_VERSION,
        "kind": BrokerDecommission.KIND,
        "metadata": {"name": name or default_name(ids), "namespace": namespace_of(kube)},
        "spec": {
            "clusterRef": {"name": cluster},
            "brokers": ids,
            **({"unregister": UnregisterWish.WHEN_DOWN.value} if unregister else {}),
        },
    }
    if output:
        out.write_objects([obj], output)
    else:
        asyncio.run(_make(kube, obj, dry_run))


def default_name(brokers: Collection[int]) -> str:
    """Return a name with the brokers' ids, as many as it has room for."""
    name = "decommission"
    for broker in brokers:
        if len(longer := f"{name}-{broker}") > MAX_DECOMMISSION_NAME_CHARACTERS:
            break
        name = longer
    return name


async def _make(kube: Kube, obj: Object, dry_run: bool) -> None:
    item = Item(obj)
    async with live.api_server(kube.login) as server:
        unlisted = _unlisted(item, await _cluster_of(server, item))
        try:
            await server.create(obj, MANAGER, dry_run=dry_run)
        except ConflictError:
            message = f"there is {item} already: see `watch {item}`, or give this one another name with --name"
            raise ConflictError(message) from None
    brokers = named_brokers(item.spec["brokers"])
    out.write_line(f"{item} is made: {brokers} of the KafkaCluster {item.cluster[1]}{' (dry run)' if dry_run else ''}")
    if unlisted:
        what = f"{named_brokers(unlisted, 'is')} not among the brokers of {item.cluster[1]}"
        out.say(f"note: {what}: check the ids, unless they are gone and have replicas left")
    if not dry_run:
        approve = f"kubectl kafka-reassign approve {item} -n {item.namespace}"
        out.write_line(f"its plan is worked out now; nothing is cordoned or moved before you approve it: {approve}")


async def _cluster_of(server: KubeClient, item: Item) -> Object | None:
    """Return the KafkaCluster, unless the user may not read it; raises ReassignError where there is none."""
    namespace, name = item.cluster
    try:
        found = await server.get(Kind.KAFKA_CLUSTER, namespace, name)
    except ReassignError as error:
        if error.reason is Reason.NOT_AUTHORIZED:
            return None
        raise
    if found is None:
        raise await live.missing(server, namespace, name, [Kind.KAFKA_CLUSTER], Reason.CLUSTER_NOT_FOUND)
    return found


def _unlisted(item: Item, cluster: Object | None) -> set[int]:
    """Return the brokers that the status of a KafkaCluster does not list, where it lists all that there are."""
    listed = {broker["id"] for broker in (cluster or {}).get("status", {}).get("brokers", ())}
    return set(item.spec["brokers"]) - listed if 0 < len(listed) < MAX_BROKERS else set()
