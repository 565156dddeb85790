"""Decide: what is to be done about one ReassignmentPlan, and what its status says.

One wave at a time, and none without approval. A plan is made anew only when what it was made from changes, and only
after what is in flight of it has come to its end. Of a plan that automation made only its owner's order counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from reassign.api.common import Condition, ConditionStatus
from reassign.api.goal import GoalPart
from reassign.api.limits import MAX_WAVES
from reassign.api.reassignment_plan import Approval, BalanceStatus, ReassignmentPlanStatus, WaveState
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.plans import staleness
from reassign.core.plans.conditions import done, names, obstacles, refusal, states_of, status_of
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
    PlanOrder,
    PlanResource,
    PlanStep,
    RemoveFinalizer,
    StartWave,
    SuspendWave,
    Unread,
    begun,
    plan_digest,
    unended,
)
from reassign.core.plans.progress import WRITES, WaveProgress, as_succeeded, running, unreadable_problem, wave_progress
from reassign.core.plans.retire import is_over, over, retire
from reassign.core.plans.windows import WindowState, windows_at
from reassign.core.report.conditions import ConditionState, unsettled
from reassign.errors import Reason
from reassign.text import cut, listed, named_brokers, plural

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
    order: PlanOrder | None = None,
) -> PlanDecision:
    """Decide what to do about a plan, given the PartitionReassignments that are labelled as its waves.

    `made` is what planning came to for the spec and the KafkaCluster as they are, if it has been tried; `unread` are
    waves that cannot be read; `goal` is what was observed of the goal since all waves are done, or why nothing was. A
    wave waits, and is not compared with the cluster, where a partition of it is not settled. `order` is what the owner
    of a plan has decided, None for a plan that users made.
    """
    if plan.deleted:
        return _take_down(plan, waves, unread, now)
    if is_over(plan, waves, unread, order):
        return over(plan, waves, now)
    if order and order.retired and not (plan.planned and wave_progress(plan, waves, unread, held=True).done):
        return retire(plan, waves, unread, order.lost, now)
    if order:
        plan = _ordered(plan, order)
    windows = windows_at(plan.spec.windows, now)
    if plan.planned:
        decision = _carry_out(plan, waves, unread, seen, now, goal, is_settled, windows, order)
    else:
        decision = _plan_anew(plan, waves, unread, seen, made, now, is_settled, windows, order)
    return _with_windows(plan, decision, windows)


def _ordered(plan: PlanResource, order: PlanOrder) -> PlanResource:
    """Return a plan as its owner approves, suspends and times it."""
    approval = Approval.NOT_REQUIRED if order.waves and order.starts else Approval.REQUIRED
    own = {"approval": approval, "approved_digest": None, "suspend": False, "windows": ()}
    return replace(plan, spec=plan.spec.model_copy(update=own))


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
    return status_of(plan, status, states, now)


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
    states = unsettled("Deleting", f"{message}: {names(waited)}{obstacles(left)}")
    return PlanDecision(_deletes(waited), status_of(plan, status, states, now))


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
    order: PlanOrder | None,
) -> PlanDecision:
    nothing = ReassignmentPlanStatus(conditions=plan.status.conditions)

    def so_far(steps: Sequence[PlanStep], states: Sequence[ConditionState]) -> PlanDecision:
        return PlanDecision(steps, status_of(plan, nothing, states, now))

    if not plan.has_finalizer:
        return so_far([AddFinalizer()], planning("the plan is about to be made"))
    left = unended(waves)
    if moving := [wave for wave in left if active(wave.record) or not wave.spec.suspend]:
        holds = [SuspendWave(wave) for wave in running(moving)]
        message = "what is in flight of the plan before comes to its end first"
        return so_far(holds, planning(f"{message}: {names(moving)}{obstacles(moving)}"))
    if lost := [wave for wave in unread if not wave.ended]:
        problem = unreadable_problem(lost[0])
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
    planned = replace(plan, status=written)
    return replace(_carry_out(planned, waves, [], seen, now, None, is_settled, windows, order), steps=[])


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
    order: PlanOrder | None,
) -> PlanDecision:
    """Start the next wave when it may, suspend what another client started, and say how things stand."""
    held = plan.spec.suspend or not windows.is_open
    progress = wave_progress(plan, waves, unread, held)
    if progress.done:
        return _carried_out(plan, progress.status, seen, now, goal, approved=plan.approved or order is not None)
    progress = replace(progress, status=_forecast(progress.status))
    if not plan.has_finalizer:
        states = unsettled("WaveDue", "a wave is not done any more")
        return PlanDecision([AddFinalizer()], status_of(plan, progress.status, states, now))
    gone = _gone(progress, seen) if order else frozenset[TopicPartition]()
    if progress.current and gone and staleness.nothing_else_left(progress.current, gone):
        return _only_gone(plan, progress, progress.current, sorted(tp for tp in gone if not is_settled(tp)), now)
    stop = _why_no_wave_may_start(plan, progress, seen, is_settled, gone)
    beyond = _beyond(progress, order.waves) if order else frozenset[str]()
    to_suspend = [w for w in progress.running if w.name in beyond or w in _started_by_others(progress, stop, held)]
    steps: list[PlanStep] = [SuspendWave(wave) for wave in to_suspend]
    due = progress.due if progress.due and progress.due.name not in beyond else None
    if due and not (stop or progress.running) and isinstance(seen, Snapshot):
        steps.append(StartWave(due))
    ahead = [w for w in progress.running if w not in to_suspend and not (w is progress.current and plan.approved)]
    status = progress.status.model_copy(update={"stale_digest": stop.stale_digest})
    was_stale = any(c.type == "PlanStale" for c in plan.status.conditions)
    if was_stale and stop.unsettled and not (stop.differences or stop.unapproved):
        # whether it fits again is not known yet
        states = _said(c for c in plan.status.conditions if c.type != "GoalMet")
    else:
        now_so = replace(plan, status=status)
        states = states_of(
            now_so,
            progress.current,
            seen,
            stop.spoilt,
            stop.differences,
            stop.unsettled,
            stop.fenced,
            ahead,
            windows,
            owned=order is not None,
        )
    return PlanDecision(steps, status_of(plan, status, states, now))


def _said(before: Iterable[Condition]) -> list[ConditionState]:
    """Return conditions as they are in a status."""
    return [ConditionState(c.type, c.status is ConditionStatus.TRUE, c.reason, c.message) for c in before]


def _gone(progress: WaveProgress, seen: ObservedCluster) -> frozenset[TopicPartition]:
    """Return the partitions of the current wave that are not there any more; others were not observed."""
    if progress.current is None or progress.spoilt or not isinstance(seen, Snapshot):
        return frozenset()
    return staleness.gone(progress.current, seen)


def _only_gone(
    plan: PlanResource, progress: WaveProgress, wave: Resource, awaited: Sequence[TopicPartition], now: datetime
) -> PlanDecision:
    """Count a wave as done of which only topics are left that are gone, and delete it once status says so.

    Metadata has to show of the `awaited` partitions that they are gone. The wave after it is not observed yet.
    """
    status, known = progress.status, plan.status.waves
    steps: list[PlanStep] = []
    if not awaited:
        status = as_succeeded(status, wave.name)
        if any(w.name == wave.name and w.state is WaveState.SUCCEEDED for w in known):
            steps = [DeleteWave(wave)]
    what = f"{wave.name} waits until metadata shows what became of {listed(awaited)}"
    if not awaited:
        what = f"of {wave.name} only partitions are left whose topics are gone, and it counts as done"
    states = unsettled("WaveInFlight", f"{status.summary}; {what}")
    return PlanDecision(steps, status_of(plan, status, states, now))


def _beyond(progress: WaveProgress, waves: int) -> frozenset[str]:
    """Return the names of the waves that may not run yet."""
    return frozenset(wave.name for wave in progress.status.waves[waves:])


def _why_no_wave_may_start(
    plan: PlanResource,
    progress: WaveProgress,
    seen: ObservedCluster,
    is_settled: IsSettled,
    gone: Collection[TopicPartition],
) -> WaveStop:
    differs, waits, fenced = list[str](), list[TopicPartition](), None
    if progress.due and isinstance(seen, Snapshot):
        differs = staleness.differences(progress.due, seen, is_settled, gone)
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
    *,
    approved: bool,
) -> PlanDecision:
    """Say that all is done, and what came of the goal; once status says so, the finalizer goes."""
    true = [c for c in plan.status.conditions if c.status is ConditionStatus.TRUE]
    if not any(condition.type == "Succeeded" for condition in true):
        return PlanDecision([], status_of(plan, _forecast(status), done(status, approved), now))
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
    return PlanDecision(steps, status_of(plan, status, as_before, now, unseen))


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


def _stale_digest(plan: PlanResource, differs: bool) -> str | None:
    """Return the digest of an approved plan that is stale: it stays so until it is approved once more."""
    if plan.spec.approval is Approval.NOT_REQUIRED or not plan.approved:
        return None
    return plan.digest if differs else plan.status.stale_digest


def _with_windows(plan: PlanResource, decision: PlanDecision, windows: WindowState) -> PlanDecision:
    """Return a decision with what its status says of the windows: nothing once the plan is carried out."""
    ended = any(c.type == "Succeeded" and c.status is ConditionStatus.TRUE for c in decision.status.conditions)
    is_open, opens, changes = (
        (None, None, None) if ended or not plan.spec.windows else (windows.is_open, windows.opens, windows.changes)
    )
    status = decision.status.model_copy(update={"window_open": is_open, "next_window_time": opens})
    return PlanDecision(decision.steps, status, changes)
