"""The arbiter over random objects: one plan at a time, in the order of precedence, and an end to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, UP
from tests.unit.examples import examples
from tests.unit.policy_histories import BROKERS, ArbitratedPolicies, brokers, worlds

STEP_SECONDS = 110.0
"""Between observations, such that timers go on."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fence", "start", "cordon", "uncordon", "suspend", "approve", "user", "crash", "delete"]),
        brokers,
        st.integers(1, 12),
    ),
    max_size=8,
)


def happen(run: ArbitratedPolicies, what: str, number: int) -> None:
    match what:
        case "fence" | "start" if number > 1:
            run.brokers[number] = FENCED if what == "fence" else UP
        case "cordon" | "uncordon":
            run.others = {number} if what == "cordon" else set()
        case "user":
            run.users = [] if run.users else ["rebalance"]
        case "crash":
            run.crash_after = number
        case "delete":
            for plan in run.plans.values():
                plan.deleted = True
        case "suspend" | "approve":
            for it in run.policies.values():
                if what == "suspend":
                    it.edit(suspend=not it.spec.suspend)
                elif it.status.digest:
                    it.approve()


@examples(40)
@given(worlds(), STEPS)
def test_of_random_objects_one_plan_at_a_time_in_the_order(
    run: ArbitratedPolicies, steps: list[tuple[str, int, int]]
) -> None:
    for what, number, ticks in steps:
        happen(run, what, number)
        for _ in range(ticks):
            run.tick()
            assert len(run.working) <= 1
            assert len(run.created) == len(set(run.created))


@examples(40)
@given(worlds(), STEPS)
def test_of_random_objects_what_is_decided_comes_to_rest(
    run: ArbitratedPolicies, steps: list[tuple[str, int, int]]
) -> None:
    for what, number, ticks in steps:
        happen(run, what, number)
        run.tick(ticks)
        run.comes_to_rest()


@examples(12)
@given(worlds(), STEPS, st.booleans())
def test_a_cluster_that_does_not_change_gets_no_endless_row_of_plans(
    run: ArbitratedPolicies, steps: list[tuple[str, int, int]], single: bool
) -> None:
    if single:  # no plan can move that
        run.brokers[BROKERS - 1] = FENCED
        run.replicas[TopicPartition("single", 0)] = (BROKERS - 1,)
    for what, number, ticks in steps:
        happen(run, what, number)
        run.tick(ticks)
    run.calm()
    run.tick(120, STEP_SECONDS)
    before = made(run), len(run.begun)
    run.tick(120, STEP_SECONDS)
    assert (made(run), len(run.begun)) == before


def made(run: ArbitratedPolicies) -> list[str]:
    """The plans so far, without those of a schedule that a user is to approve: each time of it has another one."""
    asked = tuple(f"{it.name}-often-" for it in run.policies.values() if it.resource.needs_approval("often"))
    return [name for name in run.created if not (asked and name.startswith(asked))]
