"""The commands `approve`, `suspend`, `resume` and `brake`: each writes one field of a spec, as the user.

What is to be written is decided by pure functions on the object as the API server has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer

from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_plan import Approval, ReassignmentPlanStatus
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item, change, find, find_each, plan_of
from reassign.cli.options import Brake, Cancels
from reassign.cli.refs import Kube, Ref
from reassign.core.model.progress import duration
from reassign.errors import MissingReferenceError, Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import amount, counted

MANAGER = "kubectl-kafka-reassign"
"""Who owns what is written, in managedFields."""

Change = dict[str, Any]
"""Fields of a spec; empty where it has them already."""


def note_argo_cd(item: Item) -> None:
    if item.tracked:
        out.say(f"note: Argo CD sets {item} to what Git has; commit the change too")


# --- approve ---


def approve(kube: Kube, name: Ref, digest: str | None, yes: bool, dry_run: bool) -> None:
    """Approve a plan by its digest: the one that is given, or the one of the plan that is shown."""
    asyncio.run(_approve(kube, name, digest, yes, dry_run))


async def _approve(kube: Kube, name: Ref, digest: str | None, yes: bool, dry_run: bool) -> None:
    async with live.api_server(kube.login) as server:
        item = await find(server, namespace_of(kube), name)
        if approval(item, digest) and digest is None:
            for line in shown(item):
                out.write_line(line)
            out.confirm(f"Approve {item}?", yes or dry_run)
        seen = digest or digest_of(item)
        required = item.spec.get("approval") != Approval.NOT_REQUIRED
        already = "is approved already" if required else "needs no approval: spec.approval is NotRequired"
        await _write(server, item, lambda item: approval(item, seen), f"approved, {seen}", already, dry_run)


def digest_of(item: Item) -> str | None:
    return item.status.digest if isinstance(item.status, ReassignmentPlanStatus) else None


def approval(item: Item, digest: str | None) -> Change:
    """Return what approves a plan; raises ReassignError where there is no plan, or another one than `digest` names."""
    if not isinstance(item.status, ReassignmentPlanStatus):
        whole = f"approve krp/{item.plan[0]}, the plan that it is a wave of" if item.plan else f"resume {item}"
        raise ReassignError(Reason.NOTHING_SELECTED, f"{item} has no approval of its own; {whole}")
    if item.spec.get("approval") == Approval.NOT_REQUIRED:
        return {}
    given = item.spec.get("approvedDigest")
    made, message = item.status.digest, item.ready.message if item.ready else "the operator has not seen it"
    if made is None or (not item.up_to_date and given != made):
        raise ReassignError(Reason.PLANNING, f"{item} has no plan for its spec yet: {message}; try again later")
    if digest not in (None, made):
        raise ReassignError(
            Reason.APPROVED_DIGEST_MISMATCH,
            f"the plan of {item} is {made}, not {digest}; read it, and approve that",
        )
    if item.status.stale_digest == made:
        raise ReassignError(Reason.PLAN_STALE, f"{item} is stale: {message}")
    return {} if given == made else {"approvedDigest": made}


def shown(item: Item) -> Iterator[str]:
    """Yield the lines of what a plan does."""
    status = item.status
    assert isinstance(status, ReassignmentPlanStatus)
    partitions = sum(wave.partitions for wave in status.waves)
    line = f"{item}: {counted(len(status.waves), 'wave')}, {counted(partitions, 'partition')}"
    if moves := status.moves:
        line += f", {counted(moves.replicas, 'new replica')}, {amount(moves.bytes)}"
        line += f", about {duration(moves.seconds)}" if moves.seconds else ""
    yield line
    for wave in status.waves:
        yield f"  {wave.name}: {counted(wave.partitions, 'partition')}, {amount(wave.bytes)}"
    when = "not reached, as observed" if status.goal_observed_time else "not reached by this plan"
    yield from (f"  {when}: {part.what}; the nearest: {part.nearest}" for part in status.unmet)
    yield f"  {status.digest}"


# --- suspend and resume ---


def suspend(kube: Kube, names: Sequence[Ref], suspended: bool, dry_run: bool) -> None:
    """Suspend or resume each of these."""
    asyncio.run(_suspend(kube, names, suspended, dry_run))


async def _suspend(kube: Kube, names: Sequence[Ref], suspended: bool, dry_run: bool) -> None:
    done, state = ("suspended; moves in flight continue", "suspended") if suspended else ("resumed", "not suspended")
    async with live.api_server(kube.login) as server:
        items = await find_each(server, namespace_of(kube), names)
        for item in items:
            if plan := await plan_of(server, item):
                what = "suspend" if suspended else "resume"
                raise ReassignError(
                    Reason.NOTHING_SELECTED, f"{item} is a wave, which {plan} suspends and resumes; {what} {plan}"
                )
        for item in items:
            await _write(server, item, lambda item: suspension(item, suspended), done, f"is {state} already", dry_run)
            if item.ended:
                out.say(f"note: {item} has ended, and moves nothing until its spec is changed")


def suspension(item: Item, suspended: bool) -> Change:
    """Return what suspends or resumes a resource."""
    return {} if item.spec.get("suspend", False) is suspended else {"suspend": suspended}


async def _write(
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
        await _write(server, item, lambda item: braked(item, wanted), f"set to {does}", f"is {does}", dry_run)


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
