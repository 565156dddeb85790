"""A policy in the loop through random troubles: one plan moves at a time, and in the end it does its part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.examples import examples
from tests.unit.policy_world import ADDED, CORDONED, LOST, Policing

OFTEN = {"name": "often", "schedule": {"cron": "*/20 * * * *", "startingDeadlineSeconds": 600}}
KINDS = ["fence", "start", "cordon", "uncordon", "restart", "suspend", "brake", "approve", "decommission", "delete"]
Event = tuple[str, int, int]
"""What happens, to which broker, and how many ticks follow."""


def happen(world: Policing, what: str, number: int) -> None:
    match what:
        case "fence":
            world.down(number)
        case "start":
            world.up(number)
        case "cordon":
            world.cordon(number)
        case "uncordon":
            world.cordon(number, None)
        case "restart":
            world.restart()
        case "suspend":
            spec = world.kube.objects["uid-policy-main"]["spec"]
            world.edit_policy(suspend=not spec.get("suspend"))
        case "brake":
            world.pull("Pause" if number % 2 else "CancelOurs")
        case "approve" if world.policy().get("digest"):
            world.approve_policy()
        case "decommission" if not world.obj("BrokerDecommission", "old"):
            world.apply(brokers=(number,), approval="NotRequired")
        case "delete" if world.plans():
            world.delete(world.plans()[-1], "ReassignmentPlan")
        case _:
            world.pull("Run")


@examples(5, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 5), st.integers(1, 12)), max_size=8),
    st.sampled_from(["Required", "NotRequired"]),
)
def test_one_plan_moves_at_a_time_and_a_lost_broker_is_replaced(events: list[Event], approval: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        triggers = [LOST, CORDONED, ADDED, OFTEN]
        world = Policing(patch, triggers=triggers, approval=approval, cooldownSeconds=60)
        world.copies = False
        for what, number, ticks in events:
            happen(world, what, number)
            for tick in range(ticks):
                go_on(world, copies=tick % 2 == 0)
        world.copies = True
        recover(world)
        world.tick(until=lambda: world.ready_of() == "Idle" and not world.kafka.reassignments, seconds=60)
        world.down(1)
        world.tick(until=lambda: not world.on(1), seconds=60)
        world.up(1)
        world.tick(30, seconds=20)
        world.tick(until=lambda: world.ready_of() == "Idle" and not world.kafka.reassignments, seconds=60)
        world.tick(3)
        world.assert_nothing_left()


def go_on(world: Policing, *, copies: bool) -> None:
    world.tick(safely=True)
    assert len({wave["metadata"]["labels"]["kafka.reassign.dev/plan"] for wave in world.active_waves()}) <= 1
    for tp in [*world.kafka.reassignments] if copies else ():
        world.kafka.copy(tp)


def recover(world: Policing) -> None:
    """All is as it should be again, and nothing has to be approved."""
    world.pull("Run")
    if world.obj("BrokerDecommission", "old"):
        world.delete()
    for number in range(6):
        world.up(number)
        if number not in world.recorded_cordons():
            world.cordon(number, None)
    world.edit_policy(suspend=False, approval="NotRequired", triggers=[LOST, CORDONED, ADDED])
    world.tick(until=lambda: not (world.obj("BrokerDecommission", "old") or world.cordons()), seconds=60)
