"""Decide: what is to be done about one ReassignmentPlan, and what its status says.

One wave at a time, and none without approval. A plan is made anew only when what it was made from changes, and only
after what is in flight of it has come to its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from reassign.api.common import Condition, ConditionStatus
from reassign.api.goal import GoalPart
from reassign.api.limits import MAX_WAVES
from reassign.api.partition_reassignment import STALL_TIMEOUT_SECONDS
from reassign.api.reassignment_plan import Approval, BalanceStatus, ReassignmentPlanStatus, Wave, WaveState
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.plans import staleness
from reassign.core.plans.conditions import done, goal_met, names, refusal, stalls, states_of, summary_of
from reassign.core.plans.goal import cut_short
from reassign.core.plans.model import (
    AddFinalizer,
    CreateWave,
    DeleteWave,
    GoalSeen,
    GoalUnseen,
    IsSettled,
    MakePlan,
    ObservedCluster,
    ObserveGoal,
    PlanDecision,
    Planned,
    PlanResource,
    PlanStep,
    RemoveFinalizer,
    StartWave,
    SuspendWave,
    Unread,
    begun,
    plan_digest,
    state_of,
    unended,
)
from reassign.core.plans.windows import WindowState, windows_at
from reassign.core.report.conditions import ConditionState, conditions, unsettled
from reassign.errors import Reason
from reassign.text import cut, named_brokers, plural

WRITES = 50
"""Waves that are made, or deleted, in one reconciliation of a plan: the moves of its cluster wait meanwhile."""

OBSERVED_ONCE = (GoalPart.RACKS, GoalPart.BALANCE)
"""Observed after the last wave, and not again: they drift with traffic."""

planning = partial(unsettled, Reason.PLANNING)


def decide_plan(
    plan: PlanResource,
    waves: Sequence[Resource | Settled],
    seen: ObservedCluster,
    made: Planned | Problem | None,
    now: datetime,
    unread: Sequence[Unread] = (),
    goal: GoalSeen | GoalUnseen | None = None,
    is_settled: IsSettled = lambda _: True,
) -> PlanDecision:
    """Decide what to do about a plan, given the PartitionReassignments that are labelled as its waves.

    `made` is what planning came to for the spec and the KafkaCluster as they are, if it has been tried; `unread` are
    waves that cannot be read; `goal` is what was observed of the goal since all waves are done, or why nothing was. A
    wave waits, and is not compared with the cluster, where a partition of it is not settled.
    """
    if plan.deleted:
        return _take_down(plan, waves, unread, now)
    windows = windows_at(plan.spec.windows, now)
    if plan.planned:
        decision = _carry_out(plan, waves, unread, seen, now, goal, is_settled, windows)
    else:
        decision = _plan_anew(plan, waves, unread, seen, made, now, is_settled, windows)
    return _with_windows(plan, decision, windows)


def refused(
    plan: PlanResource, decision: PlanDecision, step: PlanStep, problem: Problem, now: datetime
) -> ReassignmentPlanStatus:
    """Return the status of a plan whose step the API server has refused: the next reconciliation tries it again.

    What is carried out stays so, and its summary says what was refused. What is in flight stays Reconciling.
    """
    status, message = decision.status, f"{refusal(step)}: {problem.message}; it is tried again"
    if any(c.type == "Succeeded" and c.status is ConditionStatus.TRUE for c in status.conditions) and not plan.deleted:
        return status.model_copy(update={"summary": cut(f"{status.summary}; {message}")})
    states = unsettled(problem.reason, message)
    moving = isinstance(step, SuspendWave) or any(wave.state is WaveState.RUNNING for wave in status.waves)
    kept = ({"PlanStale", "Reconciling"} if moving else {"PlanStale"}) - {state.type for state in states}
    states += _said(c for c in status.conditions if c.type in kept)
    return _status(plan, status, states, now)


def _take_down(
    plan: PlanResource, waves: Sequence[Resource | Settled], unread: Sequence[Unread], now: datetime
) -> PlanDecision:
    """Delete the waves that are not done; waves that are done stay, with their records.

    A wave that cannot be read is deleted, and not waited for: its own finalizer keeps it until it is safe.
    """
    left = unended(waves)
    status = plan.status.model_copy(update={"window_open": None, "next_window_time": None})
    waited: list[Resource | Unread] = [*left, *(wave for wave in unread if not (wave.ended or wave.deleted))]
    if not waited:
        return PlanDecision([RemoveFinalizer()], status)
    message = "being deleted: it goes when these waves are gone, with what they have in flight taken back"
    states = unsettled("Deleting", f"{message}: {names(waited)}{stalls(left)}")
    return PlanDecision(_deletes(waited), _status(plan, status, states, now))


def _deletes(waves: Sequence[Resource | Unread]) -> list[DeleteWave]:
    return [DeleteWave(wave) for wave in waves if not wave.deleted][:WRITES]


# --- Making it ---


def _plan_anew(
    plan: PlanResource,
    waves: Sequence[Resource | Settled],
    unread: Sequence[Unread],
    seen: ObservedCluster,
    made: Planned | Problem | None,
    now: datetime,
    is_settled: IsSettled,
    windows: WindowState,
) -> PlanDecision:
    nothing = ReassignmentPlanStatus(conditions=plan.status.conditions)

    def so_far(steps: Sequence[PlanStep], states: Sequence[ConditionState]) -> PlanDecision:
        return PlanDecision(steps, _status(plan, nothing, states, now))

    if not plan.has_finalizer:
        return so_far([AddFinalizer()], planning("the plan is about to be made"))
    left = unended(waves)
    if moving := [wave for wave in left if active(wave.record) or not wave.spec.suspend]:
        holds = [SuspendWave(wave) for wave in _running(moving)]
        message = "what is in flight of the plan before comes to its end first"
        return so_far(holds, planning(f"{message}: {names(moving)}{stalls(moving)}"))
    if lost := [wave for wave in unread if not wave.ended]:
        problem = _unreadable(lost[0])
        return so_far([], unsettled(problem.reason, problem.message))
    wanted = _wanted(made) if isinstance(made, Planned) else {}
    if obsolete := [wave for wave in left if wave.deleted or wanted.get(wave.name) != wave.digest]:
        return so_far(_deletes(obsolete), planning(f"waves that are not needed are being deleted: {names(obsolete)}"))
    if isinstance(seen, Problem):
        return so_far([], unsettled(seen.reason, seen.message))
    if made is None:
        return so_far([MakePlan()], planning("the plan is being worked out"))
    if isinstance(made, Planned) and len(made.waves) > MAX_WAVES:
        made = _too_many(made)
    if isinstance(made, Problem):
        return so_far([MakePlan()], unsettled(made.reason, made.message))
    there = {wave.name for wave in waves}
    if missing := [manifest for manifest in made.manifests if manifest["metadata"]["name"] not in there]:
        creates = [CreateWave(manifest) for manifest in missing[:WRITES]]
        return so_far(creates, planning(f"waves that are being written: {len(missing)} of {len(made.waves)}"))
    written = nothing.model_copy(
        update={
            "digest": plan_digest(made.waves),
            "planned_input_hash": made.input_hash,
            "moves": made.moves,
            "lower_bound": made.lower_bound,
            "balance": made.balance,
            "unmet": made.unmet,
            "waves": made.waves,
        }
    )
    # no wave starts before status says of what
    return replace(_carry_out(replace(plan, status=written), waves, [], seen, now, None, is_settled, windows), steps=[])


def _too_many(made: Planned) -> Problem:
    message = (
        f"the plan has {len(made.waves)} waves, and a ReassignmentPlan has {MAX_WAVES} at most: raise "
        "waves.maxPartitions or waves.maxBytes, or select fewer topics"
    )
    return Problem(Reason.PLAN_TOO_LARGE, message)


def _wanted(made: Planned) -> Mapping[str, str]:
    """Return the digest of each planned wave by its name."""
    return {wave.name: wave.digest for wave in made.waves}


# --- Carrying it out ---


@dataclass(frozen=True, slots=True)
class WaveProgress:
    """How far the waves of a plan are."""

    status: ReassignmentPlanStatus
    """The plan's status, with the waves as they are now."""
    current: Resource | None
    """The first wave that is not done, where it is there and can be read."""
    due: Resource | None
    """The current wave, where it is the next to start: it is suspended, the plan is not held, and no wave is spoilt."""
    running: Sequence[Resource]
    """Waves that have not ended, and are neither suspended nor being deleted."""
    spoilt: Problem | None
    """What has become of a wave that keeps the others from starting."""
    done: bool


@dataclass(frozen=True, slots=True)
class WaveStop:
    """Why no wave may start, whether or not the plan is held."""

    spoilt: Problem | None
    differences: Sequence[str]
    """How the cluster differs from what the next wave expects."""
    unsettled: Sequence[TopicPartition]
    """Partitions in the next wave of which metadata may show the past."""
    fenced: Problem | None
    """Which brokers that the next wave copies to are fenced."""
    stale_digest: str | None
    """The plan that was approved before the cluster differed."""
    unapproved: bool

    def __bool__(self) -> bool:
        differs = self.differences or self.unsettled or self.stale_digest is not None
        return bool(self.spoilt or differs or self.fenced or self.unapproved)


def _carry_out(
    plan: PlanResource,
    waves: Sequence[Resource | Settled],
    unread: Sequence[Unread],
    seen: ObservedCluster,
    now: datetime,
    goal: GoalSeen | GoalUnseen | None,
    is_settled: IsSettled,
    windows: WindowState,
) -> PlanDecision:
    """Start the next wave when it may, suspend what another client started, and say how things stand."""
    held = plan.spec.suspend or not windows.is_open
    progress = wave_progress(plan, waves, unread, held)
    if progress.done:
        return _carried_out(plan, progress.status, seen, now, goal)
    progress = replace(progress, status=_forecast(progress.status))
    if not plan.has_finalizer:
        states = unsettled("WaveDue", "a wave is not done any more")
        return PlanDecision([AddFinalizer()], _status(plan, progress.status, states, now))
    stop = _why_no_wave_may_start(plan, progress, seen, is_settled)
    to_suspend = _started_by_others(progress, stop, held)
    steps: list[PlanStep] = [SuspendWave(wave) for wave in to_suspend]
    if progress.due and not (stop or progress.running) and isinstance(seen, Snapshot):
        steps.append(StartWave(progress.due))
    ahead = [w for w in progress.running if w not in to_suspend and not (w is progress.current and plan.approved)]
    status = progress.status.model_copy(update={"stale_digest": stop.stale_digest})
    was_stale = any(c.type == "PlanStale" for c in plan.status.conditions)
    if was_stale and stop.unsettled and not (stop.differences or stop.unapproved):
        # whether it fits again is not known yet
        states = _said(c for c in plan.status.conditions if c.type != "GoalMet")
    else:
        now_so = replace(plan, status=status)
        states = states_of(
            now_so, progress.current, seen, stop.spoilt, stop.differences, stop.unsettled, stop.fenced, ahead, windows
        )
    return PlanDecision(steps, _status(plan, status, states, now))


def _said(before: Iterable[Condition]) -> list[ConditionState]:
    """Return conditions as they are in a status."""
    return [ConditionState(c.type, c.status is ConditionStatus.TRUE, c.reason, c.message) for c in before]


def wave_progress(
    plan: PlanResource, waves: Sequence[Resource | Settled], unread: Sequence[Unread], held: bool
) -> WaveProgress:
    """Return how far the waves of a plan are; a plan that is held starts none."""
    there, lost = {wave.name: wave for wave in waves}, {wave.name: wave for wave in unread}
    planned = _states_now(plan, there, lost)
    first = _first(planned)
    unreadable = next((lost[wave.name] for wave in planned if wave.name in lost), None)
    spoilt = _unreadable(unreadable) if first and unreadable else _spoilt(planned, there)
    found = there.get(first.name) if first else None
    current = found if isinstance(found, Resource) else None
    due = current and current.spec.suspend and not held and spoilt is None
    return WaveProgress(
        plan.status.model_copy(update={"digest": plan.digest, "waves": planned, "summary": summary_of(planned)}),
        current,
        current if due else None,
        _running(unended(waves)),
        spoilt,
        done=first is None and spoilt is None,
    )


def _why_no_wave_may_start(
    plan: PlanResource, progress: WaveProgress, seen: ObservedCluster, is_settled: IsSettled
) -> WaveStop:
    differs, waits, fenced = list[str](), list[TopicPartition](), None
    if progress.due and isinstance(seen, Snapshot):
        differs = staleness.differences(progress.due, seen, is_settled)
        waits = staleness.unsettled(progress.due, seen, is_settled)
        fenced = _fenced(progress.due, staleness.fenced_destinations(progress.due, seen))
    return WaveStop(progress.spoilt, differs, waits, fenced, _stale_digest(plan, bool(differs)), not plan.approved)


def _fenced(wave: Resource, brokers: Collection[int]) -> Problem | None:
    if not brokers:
        return None
    down = f"{named_brokers(brokers, 'is')} fenced (down or still starting)"
    start = plural(brokers, "start it", "start them")
    message = f"{wave.name} waits, since {down} and would get replicas; {start}, or have it planned anew"
    return Problem(Reason.BROKER_FENCED, f"{message} by a change of goal")


def _started_by_others(progress: WaveProgress, stop: WaveStop, held: bool) -> list[Resource]:
    """Return the waves to suspend: all of a plan that is held, else the waves that were started before their turn."""
    may_run = None if stop else progress.current
    return [w for w in progress.running if held or not (begun(w) or w is may_run)]


def _carried_out(
    plan: PlanResource,
    status: ReassignmentPlanStatus,
    seen: ObservedCluster,
    now: datetime,
    goal: GoalSeen | GoalUnseen | None,
) -> PlanDecision:
    """Say that all is done, and what came of the goal; once status says so, the finalizer goes."""
    true = [c for c in plan.status.conditions if c.status is ConditionStatus.TRUE]
    if not any(condition.type == "Succeeded" for condition in true):
        return PlanDecision([], _status(plan, _forecast(status), done(status, plan.approved), now))
    as_before = _said(c for c in true if c.type != "GoalMet")
    steps: list[PlanStep] = [RemoveFinalizer()] if plan.has_finalizer else []
    if isinstance(goal, GoalSeen):
        status = _as_seen(status, goal, now)
    unseen = goal if isinstance(goal, GoalUnseen) else None
    if status.goal_observed_time is None:
        if isinstance(seen, Snapshot):
            steps.append(ObserveGoal())
        else:
            unseen = GoalUnseen(seen)
    return PlanDecision(steps, _status(plan, status, as_before, now, unseen))


def _forecast(status: ReassignmentPlanStatus) -> ReassignmentPlanStatus:
    """Return the status of a plan that is not carried out: what was observed before may be so no more."""
    return status.model_copy(update={"goal_observed_time": None})


def _as_seen(status: ReassignmentPlanStatus, goal: GoalSeen, now: datetime) -> ReassignmentPlanStatus:
    """Return the status with what was observed; its time is that of the first observation which was the same."""
    unmet, balance = goal.unmet, status.balance
    if goal.after is None:
        unmet = (*unmet, *(part for part in status.unmet if part.part in OBSERVED_ONCE))
    else:
        balance = BalanceStatus(before=balance.before if balance else (), after=goal.after)
    found = status.model_copy(
        update={"unmet": cut_short(unmet), "balance": balance, "unregistered_brokers": goal.unregistered}
    )
    if found == status and status.goal_observed_time:
        return status
    return found.model_copy(update={"goal_observed_time": now})


def next_wave(plan: PlanResource, waves: Sequence[Resource | Settled]) -> Resource | Settled | None:
    """Return the wave that is under way or starts next: an observation has to include it."""
    there = {wave.name: wave for wave in waves}
    first = _first(_states_now(plan, there)) if plan.planned else None
    return there.get(first.name) if first else None


def _running(waves: Sequence[Resource]) -> list[Resource]:
    return [wave for wave in waves if not wave.spec.suspend and not wave.deleted]


def _first(planned: Sequence[Wave]) -> Wave | None:
    return next((wave for wave in planned if wave.state is not WaveState.SUCCEEDED), None)


def _states_now(
    plan: PlanResource, there: Mapping[str, Resource | Settled], unread: Collection[str] = ()
) -> tuple[Wave, ...]:
    """Return the waves with their states now; a wave that cannot be read keeps its state."""
    return tuple(w if w.name in unread else _as_observed(w, there.get(w.name)) for w in plan.status.waves)


def _as_observed(wave: Wave, resource: Resource | Settled | None) -> Wave:
    """Return a wave with its state now; a wave that was done stays done when a user deletes it."""
    gone = resource is None or resource.deleted
    if gone and wave.state is WaveState.SUCCEEDED:
        return wave
    state = WaveState.MISSING if resource is None else state_of(resource)
    return wave if state is wave.state else wave.model_copy(update={"state": state})


def _unreadable(wave: Unread) -> Problem:
    return Problem(wave.problem.reason, f"the PartitionReassignment {wave.name}: {wave.problem.message}")


def _spoilt(planned: Sequence[Wave], there: Mapping[str, Resource | Settled]) -> Problem | None:
    """Return why no other wave may start: one was edited, failed, or was deleted."""
    for wave in planned:
        resource = there.get(wave.name)
        if resource and not resource.deleted and resource.digest != wave.digest:
            return Problem(
                Reason.WAVE_EDITED,
                f"the PartitionReassignment {wave.name} is not as it was planned any more: no further wave starts "
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
                f"a user deleted the PartitionReassignment {wave.name}: have it planned anew by a change of goal, "
                "topics, racks, waves or template, or delete the plan and apply it again",
            )
    return None


def _stale_digest(plan: PlanResource, differs: bool) -> str | None:
    """Return the digest of an approved plan that is stale: it stays so until it is approved once more."""
    if plan.spec.approval is Approval.NOT_REQUIRED or not plan.approved:
        return None
    return plan.digest if differs else plan.status.stale_digest


def _with_windows(plan: PlanResource, decision: PlanDecision, windows: WindowState) -> PlanDecision:
    """Return a decision with what its status says of the windows: nothing once the plan is carried out."""
    over = any(c.type == "Succeeded" and c.status is ConditionStatus.TRUE for c in decision.status.conditions)
    is_open, opens, changes = (
        (None, None, None) if over or not plan.spec.windows else (windows.is_open, windows.opens, windows.changes)
    )
    status = decision.status.model_copy(update={"window_open": is_open, "next_window_time": opens})
    return PlanDecision(decision.steps, status, changes)


def _status(
    plan: PlanResource,
    status: ReassignmentPlanStatus,
    states: Sequence[ConditionState],
    now: datetime,
    unseen: GoalUnseen | None = None,
) -> ReassignmentPlanStatus:
    timeout = plan.spec.template.stall_timeout_seconds or STALL_TIMEOUT_SECONDS
    after = conditions(plan.status.conditions, [*states, *goal_met(status, unseen)], plan.generation, now, timeout)
    return status.model_copy(update={"observed_generation": plan.generation, "conditions": after})
