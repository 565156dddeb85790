"""A BrokerDecommission that cannot be read: a policy counts it as approved, with a plan that may be under way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.policy_sim import Policies, SimPolicy

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 600}, "approval": "NotRequired"}
OFTEN = {"name": "often", "schedule": {"cron": "*/30 * * * *"}, "approval": "NotRequired"}


def unread(*brokers: int, triggers: tuple[dict[str, Any], ...]) -> tuple[Policies, SimPolicy]:
    """A world with a decommission of these brokers that cannot be read."""
    run = Policies(ROWS)
    run.unread = {"old": frozenset(brokers)}
    it = run.policy(*triggers, cooldownSeconds=0)
    run.rest(900)
    return run, it


@pytest.mark.parametrize(("name", "trigger"), [("in", CORDONED), ("out", ADDED), ("often", OFTEN)])
def test_no_other_plan_begins_beside_one_that_cannot_be_read(name: str, trigger: dict[str, Any]) -> None:
    run, it = unread(4, triggers=(trigger,))
    run.others, run.brokers[6] = {5}, UP
    run.rest(3600)
    assert (it.says(name), run.created) == (("Held", "PlanInProgress"), [])
    assert "the BrokerDecommission old cannot be read, and may have a plan" in it.trigger(name).message
    run.unread = {}
    run.wait(lambda: it.outcomes == [(f"main-{name}-1", "Succeeded")])


@pytest.mark.parametrize("trigger", [CORDONED, ADDED, LOST])
def test_brokers_of_one_that_cannot_be_read_count_in_no_trigger(trigger: dict[str, Any]) -> None:
    run, it = unread(4, 5, 6, triggers=(trigger,))
    run.others, run.brokers[6] = {5}, UP
    run.brokers[4] = FENCED
    run.rest(3600)
    assert (it.says(trigger["name"]), run.created) == (("Idle", None), [])


def test_a_lost_broker_is_replaced_beside_one_that_cannot_be_read() -> None:
    run, it = unread(4, 0, triggers=(LOST,))
    before = run.on(0), run.on(4)
    run.brokers[5] = FENCED
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    assert (run.on(5), run.on(0), run.on(4)) == ([], *before)
