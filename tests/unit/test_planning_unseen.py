"""What an observation did not show is said of the goal: no plan reaches it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.api.goal import By, GoalPart
from reassign.api.reassignment_plan import ReassignmentPlanStatus, Unmet
from reassign.core.plans.conditions import goal_met
from reassign.core.survey import survey
from reassign.planning.problem.model import Cluster, PlacementGoal, UnmetGoal, Unseen, UnseenLogs
from reassign.planning.problem.problem import pose
from reassign.planning.problem.unseen import unseen_goals, unseen_notes
from tests.unit.sim import SimKafka, partitions

DRAIN = PlacementGoal(drain=frozenset({5}))
HIDDEN = UnseenLogs(5, "hidden", 4, 28 * 2**30)
ELSEWHERE = UnseenLogs(2, "hidden", 1, 2**30)


def cluster(*logs: UnseenLogs, silent: frozenset[int] = frozenset()) -> Cluster:
    tps = partitions(3)
    found = survey(SimKafka(dict.fromkeys(tps, (5, 1, 2)), sizes={tp: {5: 1, 1: 1, 2: 1} for tp in tps}).snapshot())
    return replace(found, unseen=Unseen(logs, silent))


def test_a_drain_is_incomplete_where_logs_have_no_metadata() -> None:
    [unmet] = pose(cluster(HIDDEN, ELSEWHERE), DRAIN).unmet
    assert unmet.what == "4 replicas (28 GiB) of topics that may not be seen on brokers to be emptied: 5"
    assert condition(unmet) == (False, "DrainIncomplete")


def test_a_drain_is_incomplete_where_its_broker_does_not_report() -> None:
    [unmet] = unseen_goals(cluster(silent=frozenset({4, 5})), DRAIN)
    assert unmet.what == "log directories that brokers to be emptied do not report: 5"
    assert condition(unmet) == (False, "DrainIncomplete")


def test_brokers_that_a_goal_leaves_out_are_drained_too() -> None:
    goal = PlacementGoal(brokers=frozenset({0, 1, 2, 3}))
    assert [one.part for one in unseen_goals(cluster(HIDDEN, ELSEWHERE), goal)] == [GoalPart.DRAIN]


@pytest.mark.parametrize(
    "goal",
    [PlacementGoal(balance=frozenset({By.DISK})), PlacementGoal(replication_factor=2)],
    ids=["balance", "factor"],
)
def test_another_goal_is_partly_met_where_logs_have_no_metadata(goal: PlacementGoal) -> None:
    [unmet] = unseen_goals(cluster(HIDDEN, ELSEWHERE), goal)
    assert unmet.what == "5 replicas (29 GiB) of topics that may not be seen on brokers 2, 5"
    assert condition(unmet) == (False, "GoalPartlyMet")


def test_only_topics_that_the_goal_is_for_count() -> None:
    assert unseen_goals(cluster(HIDDEN), replace(DRAIN, include=("orders",))) == []
    assert len(unseen_goals(cluster(HIDDEN), replace(DRAIN, include=("hid*",)))) == 1
    spared = PlacementGoal(balance=frozenset({By.DISK}), exclude=("hidden",))
    assert unseen_goals(cluster(HIDDEN), spared) == []


def test_nothing_is_said_where_all_is_seen_or_it_is_not_known() -> None:
    for found in (cluster(), replace(cluster(), unseen=None)):
        assert unseen_goals(found, DRAIN) == []
        assert unseen_notes(found) == []


def test_a_note_says_what_is_left_out() -> None:
    assert unseen_notes(cluster(HIDDEN, silent=frozenset({3}))) == [
        "4 replicas (28 GiB) of topics that may not be seen are left out, on brokers 5: grant DESCRIBE and "
        "DESCRIBE_CONFIGS on all topics",
        "what only log directories show is left out of brokers that do not report them: 3",
    ]


def condition(unmet: UnmetGoal) -> tuple[bool, str]:
    parts = (Unmet(what=unmet.what, nearest=unmet.nearest, part=unmet.part),)
    [said] = goal_met(ReassignmentPlanStatus(digest=f"sha256:{0:064}", unmet=parts))
    return said.status, said.reason
