"""Report: what the conditions of a ReassignmentPlan say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reassign.api.common import Condition
from reassign.api.goal import GoalPart
from reassign.api.partition_reassignment import STALL_TIMEOUT_SECONDS
from reassign.api.reassignment_plan import PLAN_LABEL, ReassignmentPlanStatus, Unmet, Wave, WaveState
from reassign.core.model.problem import Problem
from reassign.core.model.progress import duration
from reassign.core.model.read_back import PlanStatusReadBack
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.waits import PASSES
from reassign.core.plans.model import (
    AddFinalizer,
    CancelEntries,
    CreateWave,
    DeleteWave,
    GoalUnseen,
    ObservedCluster,
    PlanResource,
    PlanStep,
    StartWave,
    SuspendWave,
    Unread,
    held_of,
    obstacle_of,
    says,
)
from reassign.core.plans.windows import WindowState
from reassign.core.report.conditions import ConditionState, conditions, unsettled
from reassign.errors import Reason
from reassign.text import amount, counted, listed

OWNER = "the object that owns the plan"
OWNER_DECIDES = f"{OWNER} decides when it runs, so approve or resume that one"


def states_of(
    plan: PlanResource,
    current: Resource | None,
    seen: ObservedCluster,
    spoilt: Problem | None,
    differs: Sequence[str],
    awaited: Sequence[TopicPartition],
    fenced: Problem | None,
    ahead: Sequence[Resource],
    windows: WindowState,
    *,
    owned: bool,
) -> list[ConditionState]:
    """Return the conditions of a plan that is made and not carried out yet.

    The next wave waits for metadata to show what became of the `awaited` partitions, and for `fenced` brokers. Of a
    plan that is `owned` its owner decides.
    """
    in_flight = [current] if current and current not in ahead and active(current.record) else []
    moving = bool(in_flight) or any(active(wave.record) for wave in ahead)
    goes_on = _goes_on([*in_flight, *ahead])
    wished = plan.spec.suspend or not windows.is_open or not (plan.approved or plan.spec.approved_digest)
    if isinstance(seen, Problem) and not (seen.reason in PASSES and wished and not moving):
        return unsettled(seen.reason, f"{seen.message}{goes_on}")
    if problem := spoilt or windows.problem:
        return unsettled(problem.reason, f"{problem.message}{goes_on}")
    if plan.spec.suspend:
        return _held(plan, moving, Reason.SUSPENDED, "spec.suspend is true")
    if differs or plan.status.stale_digest:
        message = f"{_stale(plan, differs, owned=owned)}{goes_on}"
        return [*unsettled(Reason.PLAN_STALE, message), ConditionState("PlanStale", True, Reason.PLAN_STALE, message)]
    if not plan.approved and owned:
        return _held(plan, moving, Reason.AWAITING_APPROVAL, OWNER_DECIDES)
    if not plan.approved:
        return _unapproved(plan, goes_on)
    if not windows.is_open:
        return _held(plan, moving, Reason.OUTSIDE_WINDOW, f"no window is open until {windows.opens_text}")
    if current and not current.spec.suspend and (held := held_of(current)):
        return _as_its_wave(current, held)
    if fenced:
        return unsettled(fenced.reason, f"{summary_of(plan.status.waves)}; {fenced.message}{_goes_on(ahead)}")
    turn = _turn(current, awaited) if current else ""
    return unsettled("WaveInFlight", f"{summary_of(plan.status.waves)}; {turn}{_goes_on(ahead)}")


def _held(plan: PlanResource, moving: bool, reason: Reason, why: str) -> list[ConditionState]:
    """Return the conditions of a plan that waits because a user wishes so."""
    message = f"{why}: no wave begins, and the one that has begun starts no new moves; {summary_of(plan.status.waves)}"
    states = unsettled(reason, message)
    return [*states, ConditionState("Reconciling", True, reason, message)] if moving else states


def _turn(wave: Resource, awaited: Sequence[TopicPartition]) -> str:
    if awaited:
        return f"{wave.name} waits until metadata shows what became of {listed(awaited)}"
    return f"{wave.name} is {'next' if wave.spec.suspend else 'under way'}{obstacles([wave])}"


def _goes_on(waves: Sequence[Resource]) -> str:
    return f"; what has begun goes on: {names(waves)}" if waves else ""


def _as_its_wave(wave: Resource, held: Condition) -> list[ConditionState]:
    """Return the conditions of a plan whose wave is stalled, or suspended by the brake."""
    reason, message = held.reason, f"{wave.name}: {held.message}"
    ready = ConditionState("Ready", False, reason, message)
    true = [kind for kind in ("Stalled", "Reconciling") if says(wave, kind)]
    return [ready, ready._replace(type="Succeeded"), *(ConditionState(kind, True, reason, message) for kind in true)]


def goal_met(status: ReassignmentPlanStatus, unseen: GoalUnseen | None = None) -> list[ConditionState]:
    """Return GoalMet: whether the goal is reached, by the plan until it is carried out, and from then on as observed.

    The reason is DrainIncomplete whenever a drained broker keeps replicas, or may keep some. Where the cluster is
    `unseen`, an earlier observation counts, and a forecast that the goal is reached does not.
    """
    if status.digest is None:
        return []
    found = _goal_met(status)
    if unseen is None:
        return [found]
    problem, seconds = unseen.problem, unseen.retry_seconds
    retry = "" if seconds is None else f"; the next try follows {duration(seconds)} later"
    if status.goal_observed_time:
        said = f"{found.message}; it could not be observed again: {problem.message}{retry}"
        return [found._replace(message=said)]
    found = found._replace(message=f"not observed after the last wave: {problem.message}{retry}; {found.message}")
    return [found._replace(status=None, reason=problem.reason) if found.status else found]


def _goal_met(status: ReassignmentPlanStatus) -> ConditionState:
    said = "as observed" if status.goal_observed_time else "by the plan, once it is carried out"
    if not status.unmet:
        return ConditionState("GoalMet", True, "GoalMet", f"all that the goal asks for is reached, {said}")
    kept = [part for part in status.unmet if part.part is GoalPart.DRAIN]
    reason = "DrainIncomplete" if kept else "GoalPartlyMet"
    parts = [*kept, *(part for part in status.unmet if part not in kept)]
    return ConditionState("GoalMet", False, reason, f"{said}{_unmet(parts)}")


def _stale(plan: PlanResource, differs: Sequence[str], *, owned: bool) -> str:
    what = "; ".join(differs) if differs else "the cluster is as the plan expects it again"
    if owned:
        return f"the cluster is not as the next wave expects it: {what}. {OWNER} has another plan made"
    anew = "or have it planned anew: delete the plan and apply it again, or change its goal"
    if plan.status.stale_digest is None:
        return f"the cluster is not as the next wave expects it: {what}. Bring it back to that, {anew}"
    return (
        f"the cluster was not as the next wave expects it, so nothing begins until the plan is approved again: {what}. "
        f"Once it is as expected, remove spec.approvedDigest, wait for AwaitingApproval, and set it again; {anew}"
    )


def _unapproved(plan: PlanResource, goes_on: str) -> list[ConditionState]:
    digest, given = plan.digest, plan.spec.approved_digest
    if given:
        return unsettled(
            Reason.APPROVED_DIGEST_MISMATCH,
            f"spec.approvedDigest is {given}, and the plan is {digest}: read it, and copy status.digest there{goes_on}",
        )
    message = (
        f"{_said(plan.status)}{_unmet(plan.status.unmet)}; read the suspended PartitionReassignments (label "
        f"{PLAN_LABEL}={plan.name}), then copy status.digest, {digest}, to spec.approvedDigest{goes_on}"
    )
    return unsettled(Reason.AWAITING_APPROVAL, message)


def _said(status: PlanStatusReadBack) -> str:
    moves = status.moves
    waves = counted(len(status.waves), "wave")
    partitions = sum(wave.partitions for wave in status.waves)  # some only lose replicas, or change leaders
    what = f"{waves}: {counted(partitions, 'partition')}"
    if moves:
        what += f", {counted(moves.replicas, 'new replica')}, {amount(moves.bytes)}"
    return what


def done(status: ReassignmentPlanStatus, approved: bool) -> list[ConditionState]:
    """Return the conditions of a plan that was carried out."""
    message = f"all done in {_said(status)}" if status.waves else "nothing has to move"
    if status.waves and not approved:
        message += "; it was not approved: its waves were started by hand, or others made its moves"
    return [ConditionState(kind, True, "Completed", message) for kind in ("Ready", "Succeeded")]


def refusal(step: PlanStep) -> str:
    """Return what cannot be done, where the API server refuses a step."""
    match step:
        case CreateWave(manifest):
            return f"the PartitionReassignment {manifest['metadata']['name']} cannot be made"
        case StartWave(wave):
            return f"the PartitionReassignment {wave.name} cannot be started (spec.suspend: false)"
        case SuspendWave(wave):
            return f"the PartitionReassignment {wave.name} cannot be suspended"
        case DeleteWave(wave):
            return f"the PartitionReassignment {wave.name} cannot be deleted"
        case CancelEntries(wave):
            return f"partitions cannot be taken out of the PartitionReassignment {wave.name}"
        case AddFinalizer():
            return "the finalizer of the plan cannot be set"
    return "the finalizer of the plan cannot be removed"


def _unmet(unmet: Sequence[Unmet]) -> str:
    parts = [f"{part.what} (nearest: {part.nearest})" for part in unmet]
    return f"; not met (status.unmet): {listed(parts, most=3, separator='; ')}" if parts else ""


def summary_of(waves: Sequence[Wave]) -> str:
    done = [wave for wave in waves if wave.state is WaveState.SUCCEEDED]
    partitions = sum(wave.partitions for wave in waves)
    return f"{len(done)}/{len(waves)} waves, {sum(wave.partitions for wave in done)}/{partitions} partitions"


def obstacles(waves: Sequence[Resource]) -> str:
    """Say why the first of these that is stalled, or that waits, does not go on."""
    obstacle = next(filter(None, map(obstacle_of, waves)), None)
    return f"; {obstacle.message}" if obstacle else ""


def names(waves: Sequence[Resource | Unread]) -> str:
    return listed(wave.name for wave in waves)


def status_of(
    plan: PlanResource,
    status: ReassignmentPlanStatus,
    states: Sequence[ConditionState],
    now: datetime,
    unseen: GoalUnseen | None = None,
) -> ReassignmentPlanStatus:
    """Return a status with these conditions, for the plan's generation."""
    timeout = plan.spec.template.stall_timeout_seconds or STALL_TIMEOUT_SECONDS
    goal = () if any(state.type == "GoalMet" for state in states) else goal_met(status, unseen)
    after = conditions(plan.status.conditions, [*states, *goal], plan.generation, now, timeout)
    return status.model_copy(update={"observed_generation": plan.generation, "conditions": after})
