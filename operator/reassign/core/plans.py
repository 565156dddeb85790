"""Decide: what is to be done about one ReassignmentPlan, and what its status says.

One wave at a time, and none without approval. A plan is made anew only when what it was made from changes, and only
after what is in flight of it has come to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from reassign.api.common import ConditionStatus
from reassign.api.reassignment_plan import MAX_WAVES, PLAN_LABEL, Approval, ReassignmentPlanStatus, Wave, WaveState
from reassign.core.model import Problem, Snapshot
from reassign.core.plan import (
    Create,
    Decision,
    Delete,
    Hold,
    Keep,
    LetGo,
    Make,
    Plan,
    Planned,
    Release,
    Step,
    begun,
    ended,
    stall_of,
    state_of,
    wave_digest,
)
from reassign.core.plan_fit import differences
from reassign.core.progress import amount
from reassign.core.report import Aspect, conditions
from reassign.core.resource import Resource, active
from reassign.errors import Reason

Seen = Snapshot | Problem
"""The cluster, with the topics of all waves; or why nothing may be begun on it."""


def decide(
    plan: Plan, waves: Sequence[Resource], seen: Seen, made: Planned | Problem | None, now: datetime
) -> Decision:
    """What to do about a plan, given the PartitionReassignments that are labelled as its waves.

    `made` is what planning came to for the spec as it is, if it has been tried.
    """
    if plan.deleted:
        return _take_down(plan, waves, now)
    if plan.planned:
        return _carry_out(plan, waves, seen, now)
    return _plan_anew(plan, waves, seen, made, now)


def _take_down(plan: Plan, waves: Sequence[Resource], now: datetime) -> Decision:
    """Delete the waves that are not done; those that are stay, with their records."""
    left = [wave for wave in waves if not ended(wave)]
    if not left:
        return Decision([LetGo()], plan.status)
    message = "being deleted: it goes when these waves are gone, with what they have in flight taken back"
    aspects = _waits("Deleting", f"{message}: {_names(left)}{_stalls(left)}")
    return Decision([Delete(wave) for wave in left if not wave.deleted], _status(plan, plan.status, aspects, now))


# --- Making it ---


def _plan_anew(
    plan: Plan, waves: Sequence[Resource], seen: Seen, made: Planned | Problem | None, now: datetime
) -> Decision:
    nothing = ReassignmentPlanStatus(conditions=plan.status.conditions)

    def so_far(steps: Sequence[Step], aspects: Sequence[Aspect]) -> Decision:
        return Decision(steps, _status(plan, nothing, aspects, now))

    if not plan.has_finalizer:
        return so_far([Keep()], _planning("the plan is about to be made"))
    left = [wave for wave in waves if not ended(wave)]
    if moving := [wave for wave in left if active(wave.record) or not wave.spec.suspend]:
        holds = [Hold(wave) for wave in moving if not wave.spec.suspend and not wave.deleted]
        message = "what is in flight of the plan before comes to its end first"
        return so_far(holds, _planning(f"{message}: {_names(moving)}{_stalls(moving)}"))
    wanted = _wanted(made) if isinstance(made, Planned) else {}
    if obsolete := [wave for wave in left if wave.deleted or wanted.get(wave.name) != wave_digest(wave.spec)]:
        deletes = [Delete(wave) for wave in obsolete if not wave.deleted]
        return so_far(deletes, _planning(f"waves that nobody will need are being deleted: {_names(obsolete)}"))
    if isinstance(seen, Problem):
        return so_far([], _stalled(seen.reason, seen.message))
    if made is None:
        return so_far([Make()], _planning("the plan is being worked out"))
    if isinstance(made, Planned) and len(made.waves) > MAX_WAVES:
        made = _too_many(made)
    if isinstance(made, Problem):
        return so_far([Make()], _stalled(made.reason, made.message))
    there = {wave.name for wave in waves}
    if missing := [manifest for manifest in made.manifests if manifest["metadata"]["name"] not in there]:
        creates = [Create(manifest) for manifest in missing]
        return so_far(creates, _planning(f"waves that are being written: {len(missing)} of {len(made.waves)}"))
    written = nothing.model_copy(
        update={
            "digest": made.digest,
            "planned_input_hash": made.input_hash,
            "moves": made.moves,
            "lower_bound": made.lower_bound,
            "balance": made.balance,
            "unmet": made.unmet,
            "waves": made.waves,
        }
    )
    # nothing is let go before status says of what
    return replace(_carry_out(replace(plan, status=written), waves, seen, now), steps=[])


def _too_many(made: Planned) -> Problem:
    message = (
        f"the plan has {len(made.waves)} waves, and a ReassignmentPlan has {MAX_WAVES} at most: raise "
        "waves.maxPartitions or waves.maxBytes, or select fewer topics"
    )
    return Problem(Reason.PLAN_TOO_LARGE, message)


def _wanted(made: Planned) -> Mapping[str, str]:
    """The digest of each wave that was planned."""
    return {wave.name: wave.digest for wave in made.waves}


# --- Carrying it out ---


def _carry_out(plan: Plan, waves: Sequence[Resource], seen: Seen, now: datetime) -> Decision:
    """Let go the next wave when it may, put back what somebody else let go, and say how things stand."""
    there = {wave.name: wave for wave in waves}
    planned = tuple(_looked_at(wave, there.get(wave.name)) for wave in plan.status.waves)
    status = plan.status.model_copy(update={"waves": planned, "summary": _summary(planned)})
    first = next((wave for wave in planned if wave.state is not WaveState.SUCCEEDED), None)
    spoilt = _spoilt(planned, there)
    if first is None and spoilt is None:
        done = any(c.type == "Succeeded" and c.status is ConditionStatus.TRUE for c in plan.status.conditions)
        steps: list[Step] = [LetGo()] if done and plan.has_finalizer else []
        return Decision(steps, _status(plan, status, _done(status), now))
    if not plan.has_finalizer:
        return Decision([Keep()], _status(plan, status, _waits("WaveDue", "a wave is not done any more"), now))
    current = there.get(first.name) if first else None
    due = current is not None and current.spec.suspend and not plan.spec.suspend and spoilt is None
    differs = differences(current, seen) if current and due and isinstance(seen, Snapshot) else []
    status = status.model_copy(update={"stale_digest": _stale_digest(plan, bool(differs))})
    stale = bool(differs) or status.stale_digest is not None
    free = plan.approved and spoilt is None and not stale
    let_go = [wave for wave in waves if not ended(wave) and not wave.spec.suspend and not wave.deleted]
    back = [w for w in let_go if plan.spec.suspend or (not begun(w) and not (free and w is current))]
    ahead = [w for w in let_go if w not in back and (w is not current or not plan.approved)]
    holds: list[Step] = [Hold(wave) for wave in back]
    aspects = _aspects(replace(plan, status=status), current, seen, spoilt, differs, ahead)
    release = due and free and not let_go and isinstance(seen, Snapshot)
    if release and current:
        return Decision([*holds, Release(current)], _status(plan, status, aspects, now))
    return Decision(holds, _status(plan, status, aspects, now))


def _looked_at(wave: Wave, found: Resource | None) -> Wave:
    """One that was done stays done when somebody clears it away."""
    gone = found is None or found.deleted
    if gone and wave.state is WaveState.SUCCEEDED:
        return wave
    return wave.model_copy(update={"state": WaveState.MISSING if found is None else state_of(found)})


def _spoilt(planned: Sequence[Wave], there: Mapping[str, Resource]) -> Problem | None:
    """What has become of a wave that keeps the others from being let go."""
    for wave in planned:
        found = there.get(wave.name)
        if found and not found.deleted and wave_digest(found.spec) != wave.digest:
            return Problem(
                Reason.WAVE_EDITED,
                f"the PartitionReassignment {wave.name} is not as it was planned any more: nothing further is let go "
                "until its spec is; or have it planned anew by a change of goal, topics, racks, waves or template",
            )
    for wave in planned:
        if wave.state is WaveState.FAILED:
            return Problem(
                Reason.WAVE_FAILED,
                f"the PartitionReassignment {wave.name} failed, and its status says why: the plan goes on when it has "
                "succeeded after all; or have it planned anew by a change of goal, topics, racks, waves or template",
            )
        if wave.state is WaveState.MISSING:
            return Problem(
                Reason.WAVE_FAILED,
                f"somebody deleted the PartitionReassignment {wave.name}: have it planned anew by a change of goal, "
                "topics, racks, waves or template, or delete the plan and apply it again",
            )
    return None


def _stale_digest(plan: Plan, differs: bool) -> str | None:
    """An approved plan that did not fit stays so until its approval is taken back and given again."""
    if plan.spec.approval is Approval.NOT_REQUIRED or not plan.approved:
        return None
    return plan.status.digest if differs else plan.status.stale_digest


# --- What is said ---


def _aspects(
    plan: Plan,
    current: Resource | None,
    seen: Seen,
    spoilt: Problem | None,
    differs: Sequence[str],
    ahead: Sequence[Resource],
) -> list[Aspect]:
    told = f"; what has begun goes on: {_names(ahead)}" if ahead else ""
    if isinstance(seen, Problem):
        return _stalled(seen.reason, f"{seen.message}{told}")
    if spoilt:
        return _stalled(spoilt.reason, f"{spoilt.message}{told}")
    if plan.spec.suspend:
        message = "spec.suspend is true: no wave begins, and the one that has begun starts no new moves"
        return _waits(Reason.SUSPENDED, f"{message}; {plan.status.summary}")
    if differs or plan.status.stale_digest:
        message = f"{_stale(plan, differs)}{told}"
        return [*_stalled(Reason.PLAN_STALE, message), Aspect("PlanStale", True, Reason.PLAN_STALE, message)]
    if not plan.approved:
        return _unapproved(plan, told)
    if current and not current.spec.suspend and (stall := stall_of(current)):
        reason, message = stall
        return [*_waits(reason, f"{current.name}: {message}"), Aspect("Stalled", True, reason, message)]
    turn = f"{current.name} is {'next' if current.spec.suspend else 'under way'}" if current else ""
    return _waits("WaveInFlight", f"{plan.status.summary}; {turn}{told}")


def _stale(plan: Plan, differs: Sequence[str]) -> str:
    what = "; ".join(differs) if differs else "the cluster is as the plan expects it again"
    anew = "or have it planned anew: delete the plan and apply it again, or change its goal"
    if plan.status.stale_digest is None:
        return f"the cluster is not as the next wave expects it: {what}. Bring it back to that, {anew}"
    return (
        f"the cluster was not as the next wave expects it, so nothing begins until the plan is approved again: {what}. "
        f"Once it is as expected, remove spec.approvedDigest, wait for ApprovalRequired, and set it again; {anew}"
    )


def _unapproved(plan: Plan, told: str) -> list[Aspect]:
    digest, given = plan.status.digest, plan.spec.approved_digest
    if given:
        return _stalled(
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
    what = f"{waves}: {moves.replicas} replicas, {amount(moves.bytes)}" if moves else waves
    return what + _unmet(status)


def _done(status: ReassignmentPlanStatus) -> list[Aspect]:
    reason = "GoalPartlyMet" if status.unmet else "Completed"
    message = f"all done in {_said(status)}" if status.waves else f"nothing has to move{_unmet(status)}"
    return [Aspect("Ready", True, reason, message), Aspect("Succeeded", True, reason, message)]


def _unmet(status: ReassignmentPlanStatus) -> str:
    parts = "; ".join(f"{part.what} (nearest: {part.nearest})" for part in status.unmet[:3])
    more = f"; and {len(status.unmet) - 3} more, see status.unmet" if len(status.unmet) > 3 else ""
    return f"; not met: {parts}{more}" if parts else ""


def _summary(waves: Sequence[Wave]) -> str:
    done = [wave for wave in waves if wave.state is WaveState.SUCCEEDED]
    partitions = sum(wave.partitions for wave in waves)
    return f"{len(done)}/{len(waves)} waves, {sum(wave.partitions for wave in done)}/{partitions} partitions"


def _status(
    plan: Plan, status: ReassignmentPlanStatus, aspects: Sequence[Aspect], now: datetime
) -> ReassignmentPlanStatus:
    said = conditions(plan.status.conditions, aspects, plan.generation, now)
    return status.model_copy(update={"observed_generation": plan.generation, "conditions": said})


def _planning(message: str) -> list[Aspect]:
    return _waits(Reason.PLANNING, message)


def _unready(reason: str, message: str) -> list[Aspect]:
    return [Aspect("Ready", False, reason, message), Aspect("Succeeded", False, reason, message)]


def _waits(reason: str, message: str) -> list[Aspect]:
    return [*_unready(reason, message), Aspect("Reconciling", True, reason, message)]


def _stalled(reason: str, message: str) -> list[Aspect]:
    return [*_unready(reason, message), Aspect("Stalled", True, reason, message)]


def _stalls(waves: Sequence[Resource]) -> str:
    stall = next(filter(None, map(stall_of, waves)), None)
    return f"; {stall[1]}" if stall else ""


def _names(waves: Sequence[Resource]) -> str:
    names = [wave.name for wave in waves]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
