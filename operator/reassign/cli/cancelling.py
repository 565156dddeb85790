"""The command `cancel`: deletes PartitionReassignments, plans and BrokerDecommissions, which cancels their moves.

What is deleted, and what that does, is decided by pure functions. A wave is cancelled with its plan, and a plan with
the BrokerDecommission that has made it. A ReassignmentPolicy stays in force, and its plan is cancelled alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reassign.api.partition_reassignment import DeletionPolicy, Mode
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.cli import output as out
from reassign.cli.changing import note_argo_cd
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import WITH_VERBS, Item, Owner, change, check_whole, find_each, list_each, of_cluster
from reassign.cli.refs import Kube, Ref
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import counted, listed


class Selection(NamedTuple):
    """What is to be cancelled: by name, or all of a topic, of a KafkaCluster or of both."""

    names: tuple[Ref, ...]
    topic: str | None
    cluster: str | None
    all_namespaces: bool


def run(kube: Kube, selection: Selection, yes: bool, dry_run: bool) -> bool:
    """Cancel; return whether there was something to cancel of each that is named."""
    return asyncio.run(_cancel(kube, selection, yes, dry_run))


async def _cancel(kube: Kube, selection: Selection, yes: bool, dry_run: bool) -> bool:
    namespace = namespace_of(kube)
    async with live.api_server(kube.login) as server:
        everything = await list_each(server, WITH_VERBS, None if selection.all_namespaces else namespace)
        if selection.names:
            items = await find_each(server, namespace, selection.names)
            for item in items:
                check_standing(item)
                await check_whole(server, item, "cancel")
        else:
            items = selected(everything, selection.topic, selection.cluster)
        to_cancel = [item for item in items if nothing_to_cancel(item) is None]
        for item in items:
            if selection.names and (why := nothing_to_cancel(item)):
                out.write_line(f"{item} {why}")
        if not to_cancel:
            out.write("" if selection.names else "there is nothing to cancel\n")
            return not selection.names
        for item in to_cancel:
            check_policy(item)
        for item in to_cancel:
            out.write_line(consequence(item, everything, selection.topic))
        out.confirm(f"Cancel {counted(len(to_cancel), 'resource')}?", yes or dry_run)
        for item in to_cancel:
            await _delete(server, item, dry_run)
    return len(to_cancel) == len(items)


def selected(items: Sequence[Item], topic: str | None, cluster: str | None) -> list[Item]:
    """Return what has something to cancel; a wave gives way to its plan, and a plan to what has made it.

    A BrokerDecommission whose brokers are empty is left out: its deletion would cancel nothing, and lift its cordons.

    Raises ReassignError where the name of the KafkaCluster stands for several.
    """
    items = [item for item in items if not item.is_policy]
    chosen = of_cluster(items, cluster)
    if cluster and len(keys := sorted({item.cluster for item in chosen})) > 1:
        named = listed(f"{namespace}/{name}" for namespace, name in keys)
        raise ReassignError(Reason.NOTHING_SELECTED, f"{cluster} stands for {named}; cancel one namespace, or by names")
    wholes = {item.obj["metadata"]["uid"]: item for item in items if not item.is_reassignment and not item.succeeded}
    result: dict[str, Item] = {}
    for item in chosen:
        if nothing_to_cancel(item) or (topic is not None and topic not in _topics(item)):
            continue
        whole = item
        while (of := whole.plan or whole.owner) and of[1] in wholes:
            whole = wholes[of[1]]
        result[whole.obj["metadata"]["uid"]] = whole
    return [item for item in result.values() if nothing_to_cancel(item) is None and not item.says("Empty")]


def nothing_to_cancel(item: Item) -> str | None:
    """Return why a resource has nothing to cancel."""
    if item.deleted:
        return "is being cancelled already"
    if item.ended:
        return "has ended: nothing of it is in flight"
    if item.is_reassignment and item.spec.get("mode") == Mode.DRY_RUN:
        return "is a dry run: nothing of it is in flight"
    return None


def check_standing(item: Item) -> None:
    """Raise ReassignError for a ReassignmentPolicy, which would make another plan: its user has to suspend it."""
    if not isinstance(item.status, ReassignmentPolicyStatus):
        return
    plan = f", then cancel krp/{item.status.plan.name}" if item.status.plan else ""
    raise ReassignError(
        Reason.NOTHING_SELECTED,
        f"{item} stays in force until you suspend or delete it; suspend {item}{plan}; or kubectl delete {item} "
        f"-n {item.namespace}, which cancels the moves of its plan too",
    )


def check_policy(item: Item) -> None:
    """Raise ReassignError where a deletion leaves moves in flight."""
    options = item.spec if item.is_reassignment else item.spec.get("template", {})
    if options.get("deletionPolicy") == DeletionPolicy.ORPHAN:
        where = "deletionPolicy" if item.is_reassignment else "template.deletionPolicy"
        raise ReassignError(
            Reason.NOTHING_SELECTED,
            f"{item} has {where} Orphan: its deletion leaves moves in flight as they are; set it to Cancel first",
        )


def _topics(item: Item) -> set[str]:
    return {entry["topic"] for entry in item.spec.get("partitions", ())}


def consequence(item: Item, items: Iterable[Item], topic: str | None = None) -> str:
    """Return the line of what the deletion of a resource does."""
    items = [*items]
    uids = {item.obj["metadata"]["uid"]}
    uids |= {each.obj["metadata"]["uid"] for each in items if each.owner and each.owner[1] in uids}
    moved = [item] if item.is_reassignment else [w for w in items if w.plan and w.plan[1] in uids and not w.ended]
    progress = [each.progress for each in moved]
    going_back = sum(each.partitions_in_flight for each in progress)
    done = sum(each.partitions_completed for each in progress)
    total = sum(len(each.spec.get("partitions", ())) for each in moved)
    line = f"{item}" if item.is_reassignment else f"{item}, with {counted(len(moved), 'wave')} not at an end"
    line += f": of {counted(total, 'partition')}, {going_back} in flight go back, {done} completed stay"
    if item.is_decommission:
        line += "; its cordons are lifted"
    if (owner := item.owner) and owner.kind is Kind.REASSIGNMENT_POLICY and not _is_suspended(owner, items):
        line += f"; {owner} makes another plan later: suspend it before you answer, if that is not wanted"
    others = {name for each in moved for name in _topics(each)} - {topic}
    return line + (f"; also of {counted(len(others), 'other topic')}" if topic is not None and others else "")


def _is_suspended(owner: Owner, items: Iterable[Item]) -> bool:
    """Whether an owner is seen to be suspended."""
    return any(each.obj["metadata"]["uid"] == owner.uid and each.spec.get("suspend") for each in items)


async def _delete(server: KubeClient, item: Item, dry_run: bool) -> None:
    """Delete a resource as it was shown: a spec that was edited meanwhile may do something else."""
    shown = item.obj["metadata"]["generation"]

    async def delete(item: Item) -> Object | None:
        if item.obj["metadata"]["generation"] != shown and not item.deleted:
            raise ReassignError(Reason.CONFLICT, f"{item} was edited meanwhile; see what it does now, and cancel again")
        return await server.delete(item.obj, dry_run=dry_run)

    await change(server, item, delete)
    out.write_line(f"{item} is cancelled{' (dry run)' if dry_run else ''}")
    note_argo_cd(item)
