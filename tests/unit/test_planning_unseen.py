"""What an observation did not show is said of the goal: no plan reaches it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import By, GoalPart
from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus, Unmet
from reassign.core.model.layout import Layout
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.plans.conditions import goal_met
from reassign.core.plans.goal import not_known
from reassign.core.plans.model import PlanResource
from reassign.core.survey import survey
from reassign.planning.problem.model import Cluster, PlacementGoal, UnmetGoal
from reassign.planning.problem.problem import pose
from reassign.planning.problem.unseen import unseen_goals
from reassign.planning.unseen import Unseen, UnseenLogs, unseen_notes
from tests.unit.sim import SimKafka, partitions

DRAIN = PlacementGoal(drain=frozenset({5}))
BALANCE = frozenset({By.DISK})
HIDDEN = UnseenLogs(5, "hidden", 4, 28 * 2**30)
ELSEWHERE = UnseenLogs(2, "hidden", 1, 2**30)


def cluster(*logs: UnseenLogs, silent: frozenset[int] = frozenset(), unread: frozenset[str] = frozenset()) -> Cluster:
    tps = partitions(3)
    found = survey(SimKafka(dict.fromkeys(tps, (5, 1, 2)), sizes={tp: {5: 1, 1: 1, 2: 1} for tp in tps}).snapshot())
    return replace(found, unseen=Unseen(logs, unread, silent))


def test_a_drain_is_incomplete_where_logs_have_no_metadata() -> None:
    [unmet] = pose(cluster(HIDDEN, ELSEWHERE), DRAIN).unmet
    assert unmet.what == "4 logs (28 GiB) on broker 5, to be emptied, of topics that could not be read: hidden"
    assert condition(unmet) == (False, "DrainIncomplete")


def test_a_drain_is_incomplete_where_its_broker_does_not_report() -> None:
    [unmet] = unseen_goals(cluster(silent=frozenset({4, 5})), DRAIN)
    assert unmet.what == "it is not known what broker 5 has of topics that could not be read"
    assert unmet.nearest.startswith("log directories are offline, or were not reported")
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
    assert unmet.what == "5 logs (29 GiB) on brokers 2 and 5 of topics that could not be read: hidden"
    assert condition(unmet) == (False, "GoalPartlyMet")


def test_only_topics_that_the_goal_is_for_count() -> None:
    assert said(cluster(HIDDEN), replace(DRAIN, include=("orders",))) == []
    assert len(said(cluster(HIDDEN), replace(DRAIN, include=("hid*",)))) == 1
    spared = PlacementGoal(balance=BALANCE, exclude=("hidden",))
    assert said(cluster(HIDDEN, unread=frozenset({"hidden"})), spared) == []


def test_a_topic_that_could_not_be_read_is_named_though_no_log_shows_it() -> None:
    found = cluster(unread=frozenset({"withheld"}))
    assert said(found, PlacementGoal(balance=BALANCE)) == ["topics that could not be read: withheld"]
    assert said(found, DRAIN) == [], "its logs would show on the drained broker"


def test_nothing_is_said_where_all_is_seen() -> None:
    assert said(cluster(), replace(DRAIN, balance=BALANCE)) == []
    assert [*unseen_notes(cluster().unseen)] == []


def test_a_drain_is_incomplete_where_it_is_not_known_what_was_seen() -> None:
    old = replace(cluster(), unseen=None)
    [unmet] = pose(old, DRAIN).unmet
    assert unmet.what == "it is not known what broker 5 has of topics that could not be read"
    assert unmet.nearest.endswith("take it again")
    assert condition(unmet) == (False, "DrainIncomplete")
    assert said(old, PlacementGoal(balance=BALANCE)) == []
    [note] = unseen_notes(None)
    assert note.endswith("take it again")


def test_a_note_says_what_is_left_out() -> None:
    assert [*unseen_notes(Unseen((HIDDEN,), frozenset({"withheld"}), frozenset({3})))] == [
        "left out: 4 logs (28 GiB) on broker 5 of topics that could not be read: hidden, withheld; grant the Kafka "
        "user DESCRIBE and DESCRIBE_CONFIGS on these topics",
        "it is not known what broker 3 has of topics that could not be read: log directories are offline, or "
        "were not reported",
    ]


@given(logs=st.lists(st.builds(UnseenLogs, st.integers(1, 5), st.sampled_from("ab"), st.just(1), st.just(7))))
def test_a_plan_and_its_watch_say_the_same_of_a_drained_broker(logs: list[UnseenLogs]) -> None:
    once = {one[:2]: one for one in logs}.values()
    log_dirs = {
        broker: {"/d": LogDir(logs={TopicPartition(one.topic, 0): 7 for one in once if one.broker == broker})}
        for broker in (1, 2, 5)
    }
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [5]}})
    plan = PlanResource("uid", 1, "kafka", "drain", 1, spec, ReassignmentPlanStatus(), False)
    watched = not_known(plan, Layout({5: Broker(5)}, {}, {}, log_dirs), ["*"])
    assert said(cluster(*sorted(once)), DRAIN) == [part.what for part in watched]


def said(found: Cluster, goal: PlacementGoal) -> list[str]:
    return [unmet.what for unmet in unseen_goals(found, goal)]


def condition(unmet: UnmetGoal) -> tuple[bool, str]:
    parts = (Unmet(what=unmet.what, nearest=unmet.nearest, part=unmet.part),)
    [said] = goal_met(ReassignmentPlanStatus(digest=f"sha256:{0:064}", unmet=parts))
    return said.status, said.reason
