"""The command `approve`: writes the digest of what is shown to the spec of the resource, or to its manifest in a file.

What is to be written is decided by pure functions on the object as the API server has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path

from reassign.api.broker_decommission import BrokerDecommissionStatus, CordonWish, UnregisterWish
from reassign.api.made_plan import PlanOutcome
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import Approval, ReassignmentPlanStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.cli import output as out
from reassign.cli.changing import Change, write_change
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import OWNERS, Item, find
from reassign.cli.refs import Kube, Ref
from reassign.core.automation.approval import shown_digest
from reassign.core.model.progress import duration
from reassign.errors import Reason, ReassignError
from reassign.files.whole import put, writing
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient
from reassign.manifests.approval import Named, Written, write_approval
from reassign.text import amount, counted, named_brokers


def approve(kube: Kube, name: Ref, digest: str | None, file: Path | None, yes: bool, dry_run: bool) -> None:
    """Approve by the digest that is given, or by that of what is shown; with a file, in its manifest alone."""
    asyncio.run(_approve(kube, name, digest, file, yes, dry_run))


async def _approve(kube: Kube, name: Ref, digest: str | None, file: Path | None, yes: bool, dry_run: bool) -> None:
    namespace = namespace_of(kube)
    async with live.api_server(kube.login) as server:
        item = await find(server, namespace, name)
        changes = approval(item, digest)
        if not needs_approval(item):
            out.write_line(f"{item} needs no approval: spec.approval is NotRequired")
            return
        seen = str((item.spec | changes)["approvedDigest"])
        if digest is None and (in_file(file, item, seen) if file else changes):
            for line in shown(item, await _plan_of(server, item)):
                out.write_line(line)
            out.confirm(f"Approve {item}{f' in {file}' if file else ''}?", yes or dry_run)
        if file:
            approval(await find(server, namespace, name), seen)
            write_file(file, item, seen, dry_run)
            return
        done, already = f"approved, {seen}", "is approved already"
        await write_change(server, item, lambda item: approval(item, seen), done, already, dry_run)


def approval(item: Item, digest: str | None) -> Change:
    """Return what approves; raises ReassignError where nothing waits for that, or another digest than this one."""
    status = item.status
    if isinstance(status, PartitionReassignmentStatus):
        whole = f"approve krp/{item.plan[0]}, the plan that it is a wave of" if item.plan else f"resume {item}"
        raise ReassignError(Reason.NOTHING_SELECTED, f"{item} has no approval of its own; {whole}")
    if owner := item.owner:
        raise ReassignError(
            Reason.NOTHING_SELECTED,
            f"{item} has no approval of its own; approve the {owner.kind} {owner.name}, which has made it: "
            f"kubectl kafka-reassign approve {owner} -n {item.namespace}",
        )
    if not needs_approval(item):
        return {}
    given, made = item.spec.get("approvedDigest"), status.digest
    if made is None and given in _approved(item):
        made = given
    message = item.ready.message if item.ready else "the operator has not seen it"
    if made is None or (not item.up_to_date and given != made):
        none = f"{item} has no plan for its spec yet: {message}; try again later"
        if item.kind in OWNERS:
            none = f"nothing of {item} waits for approval: {message}"
            if item.ready and not item.up_to_date:
                none = f"the status of {item} is about an earlier spec; try again later"
        raise ReassignError(Reason.PLANNING, none)
    if digest not in (None, made):
        raise ReassignError(
            Reason.APPROVED_DIGEST_MISMATCH,
            f"the plan of {item} is {made}, not {digest}; read it, and approve that",
        )
    if isinstance(status, ReassignmentPlanStatus) and status.stale_digest == made:
        raise ReassignError(Reason.PLAN_STALE, f"{item} is stale: {message}")
    return {} if given == made else {"approvedDigest": made}


def needs_approval(item: Item) -> bool:
    """Whether a resource asks for approval. Of a policy each trigger can ask for itself, so only its digest says it."""
    return item.is_policy or item.spec.get("approval") != Approval.NOT_REQUIRED


def _approved(item: Item) -> Collection[str]:
    """Return the digests of plans whose approval is taken up; of a policy, which outlives them, of those that run."""
    match item.status:
        case BrokerDecommissionStatus(plans=plans):
            return {plan.digest for plan in plans}
        case ReassignmentPolicyStatus(plans=plans):
            return {plan.digest for plan in plans if plan.outcome is PlanOutcome.RUNNING}
    return ()


# --- what is shown ---


async def _plan_of(server: KubeClient, item: Item) -> Item | None:
    """Return the plan that a digest names: the plan itself, or the one that was made for the resource."""
    if item.kind not in OWNERS:
        return item
    plans = map(Item, await server.list(Kind.REASSIGNMENT_PLAN, item.namespace))
    return next((plan for plan in plans if is_meant(plan, item)), None)


def is_meant(plan: Item, owner: Item) -> bool:
    """Whether the digest of what has made a plan is that of the plan's waves, and of the brokers to be emptied."""
    if plan.owner is None or plan.owner.uid != owner.obj["metadata"]["uid"]:
        return False
    assert isinstance(plan.status, ReassignmentPlanStatus)
    waves = [wave.digest for wave in plan.status.waves]
    of = owner.spec["brokers"] if owner.is_decommission else plan.spec["goal"].get("drainBrokers") or ()
    brokers = frozenset(of)
    return _digest(owner) in (shown_digest(waves, brokers), shown_digest(waves, brokers, plan.name))


def shown(item: Item, plan: Item | None) -> Iterator[str]:
    """Yield the lines of what an approval of this plan, or of this resource with the plan made for it, lets happen."""
    yield from _brokers(item)
    yield from _trigger(item)
    if plan:
        yield from (f"{'  ' if item.kind in OWNERS else ''}{line}" for line in _waves(plan))
    elif item.ready:
        yield f"  {item.ready.message}"
    yield f"  {_digest(item)}"


def _digest(item: Item) -> str | None:
    """Return the digest that waits for approval."""
    assert not isinstance(item.status, PartitionReassignmentStatus)
    return item.status.digest


def _trigger(item: Item) -> Iterator[str]:
    """Yield which trigger of a policy a plan was made for, and the brokers that it is about."""
    if not isinstance(item.status, ReassignmentPolicyStatus):
        return
    current, triggers = item.status.plan, {trigger.name: trigger for trigger in item.status.triggers}
    trigger = triggers.get(current.trigger) if current else None
    about = f", for {named_brokers(trigger.brokers)}" if trigger and trigger.brokers else ""
    yield f"{item}: the trigger {current.trigger}{about}" if current else f"{item}"


def _brokers(item: Item) -> Iterator[str]:
    """Yield what becomes of the brokers of a BrokerDecommission, beside its moves."""
    if not isinstance(item.status, BrokerDecommissionStatus):
        return
    brokers, left = item.spec["brokers"], item.status.replicas_left
    yield f"{item}: {named_brokers(brokers)}" + ("" if left is None else f", with {counted(left, 'replica')}")
    cordoned = item.spec.get("cordon") != CordonWish.NEVER
    unregistered = item.spec.get("unregister") == UnregisterWish.WHEN_DOWN
    becomes = [
        *(["cordoned at once, where Kafka can do that"] if cordoned else []),
        *(["unregistered once empty and down"] if unregistered else []),
    ]
    if becomes:
        yield f"  {named_brokers(brokers, 'is')} {', and '.join(becomes)}"


def _waves(plan: Item) -> Iterator[str]:
    status = plan.status
    assert isinstance(status, ReassignmentPlanStatus)
    partitions = sum(wave.partitions for wave in status.waves)
    line = f"{plan}: {counted(len(status.waves), 'wave')}, {counted(partitions, 'partition')}"
    if moves := status.moves:
        line += f", {counted(moves.replicas, 'new replica')}, {amount(moves.bytes)}"
        line += f", about {duration(moves.seconds)}" if moves.seconds else ""
    yield line
    for wave in status.waves:
        yield f"  {wave.name}: {counted(wave.partitions, 'partition')}, {amount(wave.bytes)}"
    when = "not reached, as observed" if status.goal_observed_time else "not reached by this plan"
    yield from (f"  {when}: {part.what}; the nearest: {part.nearest}" for part in status.unmet)


# --- in a file ---


def in_file(file: Path, item: Item, digest: str) -> Written | None:
    """Return the text of a file with the approval in it; None where it has that already."""
    if file.exists() and not file.is_file():
        raise ReassignError(Reason.CANNOT_BE_READ, f"{file} is no file; name the file that has the manifest")
    content = file.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ReassignError(Reason.CANNOT_BE_READ, f"{file} is not text in UTF-8; save it as UTF-8") from None
    written = write_approval(text, file, Named(item.kind, item.namespace, item.name), digest)
    return None if written.before == digest else written


def write_file(file: Path, item: Item, digest: str, dry_run: bool) -> None:
    """Write the approval to a file, and say what has changed."""
    written = in_file(file, item, digest)
    if written is None:
        out.write_line(f"{file} approves {item} already, {digest}")
        return
    if not dry_run:
        with writing(file):
            put(file.resolve(), [written.text.encode()])  # a link stays one
    change = f"{written.before or 'none'} → {digest}{' (dry run)' if dry_run else ''}"
    out.write_line(f"{file}, line {written.line}: approvedDigest of {item}: {change}")
    out.write_line("commit the file: nothing was written to the API server")
