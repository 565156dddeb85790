"""The commands `suspend`, `resume` and `brake`: each writes one field of a spec, as the user.

What is to be written is decided by pure functions on the object as the API server has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import typer

from reassign.api.kafka_cluster import Execution
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item, change, check_whole, find_each
from reassign.cli.options import Brake, Cancels
from reassign.cli.refs import Kube, Ref
from reassign.errors import MissingReferenceError, Reason
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import counted

MANAGER = "kubectl-kafka-reassign"
"""Who owns what is written, in managedFields."""

Change = dict[str, Any]
"""Fields of a spec; empty where it has them already."""


def note_argo_cd(item: Item) -> None:
    if item.tracked:
        out.say(f"note: Argo CD sets {item} to what Git has; commit the change too")


# --- suspend and resume ---


def suspend(kube: Kube, names: Sequence[Ref], suspended: bool, dry_run: bool) -> None:
    """Suspend or resume each of these."""
    asyncio.run(_suspend(kube, names, suspended, dry_run))


async def _suspend(kube: Kube, names: Sequence[Ref], suspended: bool, dry_run: bool) -> None:
    done, state = ("suspended; moves in flight continue", "suspended") if suspended else ("resumed", "not suspended")
    async with live.api_server(kube.login) as server:
        items = await find_each(server, namespace_of(kube), names)
        for item in items:
            await check_whole(server, item, "suspend" if suspended else "resume")
        for item in items:
            await write_change(
                server, item, lambda item: suspension(item, suspended), done, f"is {state} already", dry_run
            )
            if item.ended:
                again = "" if item.is_decommission else " until its spec is changed"
                out.say(f"note: {item} has ended, and moves nothing{again}")


def suspension(item: Item, suspended: bool) -> Change:
    """Return what suspends or resumes a resource."""
    return {} if item.spec.get("suspend", False) is suspended else {"suspend": suspended}


async def write_change(
    server: KubeClient, item: Item, decide: Callable[[Item], Change], done: str, already: str, dry_run: bool
) -> None:
    """Write what is decided, and say what was done."""
    changed = True

    async def write(item: Item) -> Object | None:
        nonlocal changed
        changes = decide(item)
        changed = bool(changes)
        return await server.write_spec(item.obj, changes, MANAGER, dry_run=dry_run) if changes else item.obj

    if await change(server, item, write) is None:
        raise MissingReferenceError(Reason.NOTHING_SELECTED, f"{item} was deleted meanwhile; nothing was changed")
    out.write_line(f"{item} {done if changed else already}{' (dry run)' if dry_run else ''}")
    if changed:
        note_argo_cd(item)


# --- brake ---

HARDER = tuple(Execution)
"""The brake's positions, each one stops more than the one before."""
DOES = {
    Execution.RUN: "what is declared starts again",
    Execution.PAUSE: "nothing new starts; moves in flight continue",
    Execution.CANCEL_OURS: "nothing new starts; moves of PartitionReassignments go back to their original replicas",
    Execution.CANCEL_ALL: "nothing new starts; all moves are cancelled, those of other clients too",
}


def brake(kube: Kube, position: Brake, cluster: str, cancels: Cancels | None, yes: bool, dry_run: bool) -> None:
    """Set the brake of a KafkaCluster."""
    asyncio.run(_brake(kube, execution_of(position, cancels), cluster, yes, dry_run))


def execution_of(position: Brake, cancels: Cancels | None) -> Execution:
    """Return what these words ask for; raises a usage error for a brake that is off and cancels."""
    if position is Brake.OFF:
        if cancels:
            raise typer.BadParameter("a brake that is off cancels nothing", param_hint="'--cancel'")
        return Execution.RUN
    return {None: Execution.PAUSE, Cancels.OURS: Execution.CANCEL_OURS, Cancels.ALL: Execution.CANCEL_ALL}[cancels]


async def _brake(kube: Kube, wanted: Execution, name: str, yes: bool, dry_run: bool) -> None:
    namespace = namespace_of(kube)
    async with live.api_server(kube.login) as server:
        obj = await server.get(Kind.KAFKA_CLUSTER, namespace, name)
        if obj is None:
            raise await live.missing(server, namespace, name, [Kind.KAFKA_CLUSTER], Reason.CLUSTER_NOT_FOUND)
        item = Item(obj)
        changes = braked(item, wanted)
        if changes and wanted in (Execution.CANCEL_OURS, Execution.CANCEL_ALL):
            out.write_line(f"{item}: {DOES[wanted]} ({in_flight(obj)})")
            out.confirm(f"Set the brake of {item}?", yes or dry_run)
        now = Execution(changes.get("execution", item.spec.get("execution", Execution.RUN)))
        does = f"{now.value}: {DOES[now]}"
        await write_change(server, item, lambda item: braked(item, wanted), f"set to {does}", f"is {does}", dry_run)


def braked(item: Item, wanted: Execution) -> Change:
    """Return what sets the brake. One that stops more already stays as it is, until it is set to off."""
    now = Execution(item.spec.get("execution", Execution.RUN))
    if now is wanted or (wanted is not Execution.RUN and HARDER.index(now) > HARDER.index(wanted)):
        return {}
    return {"execution": wanted.value}


def in_flight(obj: Object) -> str:
    """Return what a KafkaCluster says is in flight."""
    status = obj.get("status", {})
    others = status.get("foreignInFlight", {}).get("count", 0)
    return f"in flight: {counted(status.get('inFlight', 0), 'partition')}, and {others} of other clients"
