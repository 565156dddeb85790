"""How far the waves of a plan are, as they are observed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from reassign.api.reassignment_plan import ReassignmentPlanStatus, Wave, WaveState
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.conditions import summary_of
from reassign.core.plans.model import PlanResource, Unread, state_of, unended
from reassign.errors import Reason

WRITES = 50
"""Waves that are made, or deleted, in one reconciliation of a plan: the moves of its cluster wait meanwhile."""


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


def wave_progress(
    plan: PlanResource, waves: Sequence[Resource | Settled], unread: Sequence[Unread], held: bool
) -> WaveProgress:
    """Return how far the waves of a plan are; a plan that is held starts none."""
    there, lost = {wave.name: wave for wave in waves}, {wave.name: wave for wave in unread}
    planned = states_now(plan, there, lost)
    first = _first(planned)
    unreadable = next((lost[wave.name] for wave in planned if wave.name in lost), None)
    spoilt = unreadable_problem(unreadable) if first and unreadable else _spoilt(planned, there)
    found = there.get(first.name) if first else None
    current = found if isinstance(found, Resource) else None
    due = current and current.spec.suspend and not held and spoilt is None
    return WaveProgress(
        plan.status.model_copy(update={"digest": plan.digest, "waves": planned, "summary": summary_of(planned)}),
        current,
        current if due else None,
        running(unended(waves)),
        spoilt,
        done=first is None and spoilt is None,
    )


def next_wave(plan: PlanResource, waves: Sequence[Resource | Settled]) -> Resource | Settled | None:
    """Return the wave that is under way or starts next: an observation has to include it."""
    there = {wave.name: wave for wave in waves}
    first = _first(states_now(plan, there)) if plan.planned else None
    return there.get(first.name) if first else None


def as_succeeded(status: ReassignmentPlanStatus, name: str) -> ReassignmentPlanStatus:
    """Return a plan's status with one of its waves done."""
    done = {"state": WaveState.SUCCEEDED}
    waves = tuple(wave.model_copy(update=done) if wave.name == name else wave for wave in status.waves)
    return status.model_copy(update={"waves": waves, "summary": summary_of(waves)})


def running(waves: Sequence[Resource]) -> list[Resource]:
    """Return the waves that are neither suspended nor being deleted."""
    return [wave for wave in waves if not wave.spec.suspend and not wave.deleted]


def _first(planned: Sequence[Wave]) -> Wave | None:
    return next((wave for wave in planned if wave.state is not WaveState.SUCCEEDED), None)


def states_now(
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


def unreadable_problem(wave: Unread) -> Problem:
    """Return why a wave cannot be read."""
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
