"""A policy through random histories: two plans never move at once, and in the end it does what it is for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import Execution
from tests.unit.automation_sim import FENCED, GONE, UNREACHABLE, UP, orders
from tests.unit.examples import examples
from tests.unit.policy_sim import Policies

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1), (1, 0))
TRIGGERS = [
    {"name": "lost", "brokerLost": {"afterSeconds": 300}},
    {"name": "in", "brokersCordoned": {"afterSeconds": 60}},
    {"name": "out", "brokersAdded": {"afterSeconds": 120}},
    {"name": "often", "schedule": {"cron": "*/20 * * * *", "startingDeadlineSeconds": 600}},
]
WAIT = st.tuples(st.just("wait"), st.integers(1, 60), st.just(0))
BROKER = st.tuples(st.sampled_from(["fence", "start", "cordon", "uncordon"]), st.integers(1, 20), st.integers(2, 5))
OTHER = st.tuples(
    st.sampled_from(["add", "outage", "suspend", "brake", "approve", "decommission", "crash", "stale", "delete"]),
    st.integers(1, 20),
    st.integers(0, 6),
)
Step = tuple[str, int, int]


def happen(run: Policies, what: str, number: int) -> None:
    match what:
        case "fence":
            run.brokers[number] = FENCED
        case "start":
            run.brokers[number] = UP
        case "cordon":
            run.others = {number}
        case "uncordon":
            run.others = set()
        case "add":
            run.brokers[6 + number % 2] = UP
        case _:
            of_users(run, what, number)


def of_users(run: Policies, what: str, number: int) -> None:
    it = run.policies["main"]
    match what:
        case "outage":
            run.problem = None if run.problem else UNREACHABLE
        case "suspend":
            it.edit(suspend=not it.spec.suspend)
        case "brake":
            run.execution = Execution.PAUSE if run.execution is Execution.RUN else Execution.RUN
        case "approve" if it.status.digest:
            it.approve()
        case "decommission" if "old" not in run.objects:
            run.apply(brokers=(4,), approval="NotRequired")
        case "crash":
            run.crash_after = number
        case "stale":
            for plan in run.plans.values():
                plan.stale = True
        case "delete":
            for plan in run.plans.values():
                plan.deleted = True


@examples(60, deadline=None)
@given(st.lists(WAIT | BROKER | OTHER, max_size=25), st.sampled_from(["Required", "NotRequired"]), st.booleans())
def test_two_plans_never_move_at_once_and_a_lost_broker_is_replaced(
    steps: list[Step], approval: str, gone: bool
) -> None:
    run = Policies(ROWS)
    it = run.policy(*TRIGGERS, approval=approval, settleSeconds=60, cooldownSeconds=300)
    for what, ticks, number in steps:
        happen(run, what, number)
        run.tick(ticks)
        assert len(run.created) == len(set(run.created))
    run.problem, run.execution, run.others = None, Execution.RUN, set()
    it.edit(suspend=False, approval="NotRequired")
    for broker in run.brokers:
        run.brokers[broker] = UP
    run.tick(60)
    run.brokers[1] = GONE if gone else FENCED
    run.wait(lambda: run.on(1) == [], most=6000)
