"""Report: what the conditions of a ReassignmentPlan say."""

from __future__ import annotations

from collections.abc import Sequence

from reassign.api.reassignment_plan import PLAN_LABEL, ReassignmentPlanStatus, Wave, WaveState
from reassign.core.model.problem import Problem
from reassign.core.model.progress import amount
from reassign.core.model.resource import Resource
from reassign.core.plans.model import Plan, Seen, Unread, stall_of
from reassign.core.report.conditions import ConditionState
from reassign.errors import Reason


def aspects_of(
    plan: Plan,
    current: Resource | None,
    seen: Seen,
    spoilt: Problem | None,
    differs: Sequence[str],
    ahead: Sequence[Resource],
) -> list[ConditionState]:
    told = f"; what has begun goes on: {names(ahead)}" if ahead else ""
    if isinstance(seen, Problem):
        return stalled(seen.reason, f"{seen.message}{told}")
    if spoilt:
        return stalled(spoilt.reason, f"{spoilt.message}{told}")
    if plan.spec.suspend:
        message = "spec.suspend is true: no wave begins, and the one that has begun starts no new moves"
        return waits(Reason.SUSPENDED, f"{message}; {plan.status.summary}")
    if differs or plan.status.stale_digest:
        message = f"{_stale(plan, differs)}{told}"
        return [*stalled(Reason.PLAN_STALE, message), ConditionState("PlanStale", True, Reason.PLAN_STALE, message)]
    if not plan.approved:
        return _unapproved(plan, told)
    if current and not current.spec.suspend and (stall := stall_of(current)):
        reason, message = stall
        return [*waits(reason, f"{current.name}: {message}"), ConditionState("Stalled", True, reason, message)]
    turn = f"{current.name} is {'next' if current.spec.suspend else 'under way'}" if current else ""
    return waits("WaveInFlight", f"{plan.status.summary}; {turn}{told}")


def _stale(plan: Plan, differs: Sequence[str]) -> str:
    what = "; ".join(differs) if differs else "the cluster is as the plan expects it again"
    anew = "or have it planned anew: delete the plan and apply it again, or change its goal"
    if plan.status.stale_digest is None:
        return f"the cluster is not as the next wave expects it: {what}. Bring it back to that, {anew}"
    return (
        f"the cluster was not as the next wave expects it, so nothing begins until the plan is approved again: {what}. "
        f"Once it is as expected, remove spec.approvedDigest, wait for ApprovalRequired, and set it again; {anew}"
    )


def _unapproved(plan: Plan, told: str) -> list[ConditionState]:
    digest, given = plan.status.digest, plan.spec.approved_digest
    if given:
        return stalled(
            Reason.APPROVED_DIGEST_MISMATCH,
            f"spec.approvedDigest is {given}, and the plan is {digest}: read it, and copy status.digest there{told}",
        )
    message = (
        f"{_said(plan.status)}; read the suspended PartitionReassignments (label {PLAN_LABEL}={plan.name}), then copy "
        f"status.digest, {digest}, to spec.approvedDigest{told}"
    )
    return _unready(Reason.APPROVAL_REQUIRED, message)


def _said(status: ReassignmentPlanStatus) -> str:
    moves = status.moves
    waves = f"{len(status.waves)} waves" if len(status.waves) > 1 else "1 wave"
    partitions = sum(wave.partitions for wave in status.waves)  # some only lose replicas, or change leaders
    what = f"{waves}: {partitions} partitions"
    if moves:
        what += f", {moves.replicas} new replicas, {amount(moves.bytes)}"
    return what + _unmet(status)


def done_aspects(status: ReassignmentPlanStatus, approved: bool) -> list[ConditionState]:
    reason = "GoalPartlyMet" if status.unmet else "Completed"
    message = f"all done in {_said(status)}" if status.waves else f"nothing has to move{_unmet(status)}"
    if status.waves and not approved:
        message += "; it was not approved: somebody let its waves go by hand"
    return [ConditionState("Ready", True, reason, message), ConditionState("Succeeded", True, reason, message)]


def _unmet(status: ReassignmentPlanStatus) -> str:
    parts = "; ".join(f"{part.what} (nearest: {part.nearest})" for part in status.unmet[:3])
    more = f"; and {len(status.unmet) - 3} more, see status.unmet" if len(status.unmet) > 3 else ""
    return f"; not met: {parts}{more}" if parts else ""


def summary_of(waves: Sequence[Wave]) -> str:
    done = [wave for wave in waves if wave.state is WaveState.SUCCEEDED]
    partitions = sum(wave.partitions for wave in waves)
    return f"{len(done)}/{len(waves)} waves, {sum(wave.partitions for wave in done)}/{partitions} partitions"


def planning(message: str) -> list[ConditionState]:
    return waits(Reason.PLANNING, message)


def _unready(reason: str, message: str) -> list[ConditionState]:
    return [ConditionState("Ready", False, reason, message), ConditionState("Succeeded", False, reason, message)]


def waits(reason: str, message: str) -> list[ConditionState]:
    return [*_unready(reason, message), ConditionState("Reconciling", True, reason, message)]


def stalled(reason: str, message: str) -> list[ConditionState]:
    return [*_unready(reason, message), ConditionState("Stalled", True, reason, message)]


def stalls(waves: Sequence[Resource]) -> str:
    stall = next(filter(None, map(stall_of, waves)), None)
    return f"; {stall[1]}" if stall else ""


def names(waves: Sequence[Resource | Unread]) -> str:
    names = [wave.name for wave in waves]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
