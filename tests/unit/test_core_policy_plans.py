"""What a policy says of its plans by their names, and which plans of users are at work."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus, Wave, WaveState
from reassign.api.reassignment_record import RecordedPolicy, RecordedPolicyApproval, RecordedPolicyPlan
from reassign.core.automation.model import PlanSeen
from reassign.core.automation.policy_case import PolicyResource
from reassign.core.figures import begun_bytes
from reassign.core.model.resource import Settled
from reassign.core.plans.model import PlanResource
from tests.unit.policy_sim import Policies
from tests.unit.sim import START

DIGEST = f"sha256:{'a' * 64}"
WINDOW = {"cron": "0 22 * * *", "durationSeconds": 3600}


def recorded(
    name: str, number: int, trigger: str = "lost", kind: str = "brokerLost", **more: object
) -> RecordedPolicyPlan:
    fields = {"name": name, "number": number, "trigger": trigger, "kind": kind, "specDigest": DIGEST}
    return RecordedPolicyPlan.parse({**fields, **more})


def policy(**record: object) -> PolicyResource:
    run = Policies({})
    it = run.policy({"name": "lost", "brokerLost": {}}, {"name": "in", "brokersCordoned": {}}, windows=[WINDOW])
    return replace(it.resource, record=RecordedPolicy().model_copy(update=record))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("main-lost-1", True),
        ("main-gone-2", True),  # of a trigger that the spec does not have any more
        ("main-lost-3", False),  # what the record says of that one counts
        ("main-lost-4", False),
        ("main-lost-0", False),
        ("main-lost-01", False),
        ("main-lost", False),
        ("main-1", False),
        ("other-lost-1", False),
        ("main-lost-²", False),
    ],
)
def test_a_policy_knows_the_names_of_the_plans_that_it_has_made(name: str, made: bool) -> None:
    it = policy(number=3, plan=recorded("main-lost-3", 3))
    assert it.has_made(name) is made


def test_each_plan_has_the_windows_of_its_trigger() -> None:
    it = policy(number=2, plan=recorded("main-lost-1", 1), waiting=recorded("main-in-2", 2, "in", "brokersCordoned"))
    assert (len(it.windows_of("main-lost-1")), len(it.windows_of("main-in-2"))) == (0, 1)
    assert (it.needs_all_of("main-lost-1"), it.needs_all_of("main-in-2")) == (False, True)


def test_replicas_are_counted_often_for_approved_plans_that_empty_brokers() -> None:
    waiting = recorded("main-lost-1", 1)
    running = recorded("main-lost-1", 1, approved=True)
    retired = recorded("main-lost-1", 1, approved=True, retired=True)
    balance = recorded("main-out-1", 1, "out", "brokersAdded", approved=True)
    found = [policy(waiting=waiting), policy(plan=running), policy(plan=retired), policy(plan=balance)]
    assert [it.evacuates for it in found] == [False, True, False, False]


def test_bytes_count_when_a_wave_begins_and_once() -> None:
    approval = RecordedPolicyApproval(bytes=300, begun_bytes=100, trigger="lost")
    plan = recorded("main-lost-1", 1, approved=True, begunWaves=1)
    before = RecordedPolicy(number=1, plan=plan, approval=approval)
    more = approval.model_copy(update={"begun_bytes": 250})
    after = before.model_copy(update={"plan": plan.model_copy(update={"begun_waves": 2}), "approval": more})
    assert (begun_bytes(before, after), begun_bytes(after, after), begun_bytes(RecordedPolicy(), before)) == (150, 0, 0)
    another = after.model_copy(update={"plan": recorded("main-lost-2", 2, begunWaves=3)})
    assert begun_bytes(after, another) == 0


@pytest.mark.parametrize(
    ("states", "minutes", "works"),
    [
        (("Succeeded", "Pending"), 5, True),
        (("Succeeded", "Pending"), 15, False),  # it is stale, say, and nothing goes on
        (("Succeeded", "Pending"), -525_600, False),  # a clock was a year ahead
        (("Pending", "Pending"), 5, False),
        (("Succeeded", "Succeeded"), 5, False),
    ],
)
def test_a_users_plan_is_at_work_while_it_advances(states: tuple[str, ...], minutes: int, works: bool) -> None:
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}})
    waves = [
        Wave(name=f"w-{number}", partitions=1, bytes=1, state=WaveState(state), digest=DIGEST)
        for number, state in enumerate(states)
    ]
    status = ReassignmentPlanStatus(waves=tuple(waves))
    plan = PlanResource("uid-mine", 1, "kafka", "mine", 1, spec, status, True)
    done = [
        Settled(f"uid-{wave.name}", 1, "kafka", wave.name, (START, ""), DIGEST, 1, True, START, None, True)
        for wave in waves
        if wave.state is WaveState.SUCCEEDED
    ]
    assert PlanSeen(plan, None, done).is_at_work(START + timedelta(minutes=minutes)) is works
