"""What of a drain and a replication factor is not reached, and what cannot be known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import GoalPart
from reassign.api.limits import MAX_UNMET
from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus, Unmet
from reassign.core.model.layout import Layout, layout_of, layout_seen
from reassign.core.model.snapshot import Broker, LogDir, Reassignment, TopicPartition
from reassign.core.plans.goal import cut_short, not_known, not_reached
from reassign.core.plans.model import PlanResource
from tests.unit.sim import SimKafka

GIB = 2**30
HIDDEN = {TopicPartition("hidden", number): 7 * GIB for number in range(4)}


def plan(topics: Mapping[str, Any] | None = None, **goal: Any) -> PlanResource:
    spec = {"clusterRef": {"name": "main"}, "topics": topics or {}, "goal": goal or {"drainBrokers": [5]}}
    return PlanResource(
        "uid", 1, "kafka", "drain", 1, ReassignmentPlanSpec.parse(spec), ReassignmentPlanStatus(), False
    )


def layout(
    replicas: Mapping[str, tuple[int, ...]],
    logs: Mapping[TopicPartition, int] | None = None,
    silent: bool = False,
    moves: Mapping[TopicPartition, Reassignment] | None = None,
) -> Layout:
    """One partition of each topic; broker 5 reports these logs beside those of its replicas."""
    rows = [(TopicPartition(topic, 0), row) for topic, row in replicas.items()]
    found = layout_of({broker: Broker(broker) for broker in range(1, 6)}, rows, moves or {})
    own = {tp: GIB for tp, row in rows if 5 in row}
    log_dirs = {} if silent else {5: {"/data": LogDir(logs={**own, **(logs or {})})}}
    return Layout(found.brokers, found.replicas, found.factors, log_dirs)


def said(parts: tuple[Unmet, ...]) -> list[str]:
    assert all(part.part is GoalPart.DRAIN for part in parts)
    return [part.what for part in parts]


def test_a_broker_without_replicas_and_logs_is_drained() -> None:
    assert not_reached(plan(), layout({"orders": (1, 2)}), ["*"]) == ()


def test_logs_that_metadata_does_not_show_are_not_drained() -> None:
    seen = layout({"orders": (1, 2)}, HIDDEN)
    [what] = said(not_reached(plan(), seen, ["*"]))
    assert what == ("4 logs (28 GiB) on broker 5, to be emptied, of topics that could not be read: hidden")
    assert said(not_known(plan(), seen, ["*"])) == [what]


@pytest.mark.parametrize(("goal", "part"), [({"drainBrokers": [5]}, GoalPart.DRAIN), ({"replicationFactor": 2}, None)])
def test_topics_that_could_not_be_read_are_said_to_stay(goal: dict[str, Any], part: GoalPart | None) -> None:
    seen = replace(layout({"orders": (1, 2)}, HIDDEN), unread=frozenset({"hidden"}))
    [found] = not_reached(plan(**goal), seen, ["*"])
    assert (found.what.rpartition(": ")[2], found.part) == ("hidden", part)
    assert "DESCRIBE_CONFIGS" in found.nearest
    assert not_known(plan({"include": ["orders"]}, **goal), seen, ["*"]) == ()


def test_a_log_that_is_being_deleted_of_a_topic_that_is_seen_is_none() -> None:
    assert not_reached(plan(), layout({"orders": (1, 2)}, {TopicPartition("orders", 0): GIB}), ["*"]) == ()


def test_a_broker_that_does_not_report_is_not_known_to_be_empty() -> None:
    [what] = said(not_reached(plan(), layout({}, silent=True), ["*"]))
    assert what.startswith("it is not known what broker 5 has")


def test_what_lies_in_an_offline_log_directory_is_not_known() -> None:
    seen = layout({"orders": (1, 2)})
    half = replace(seen, log_dirs={5: {**seen.log_dirs[5], "/failed": LogDir(online=False)}})
    [what] = said(not_reached(plan(), half, ["*"]))
    assert what == "it is not known what broker 5 has of topics that could not be read"


@pytest.mark.parametrize("lists_fenced", [False, True])
def test_a_drained_broker_that_is_not_listed_may_be_down(lists_fenced: bool) -> None:
    seen = layout({"orders": (1, 2)}, silent=True)
    left = {broker: found for broker, found in seen.brokers.items() if broker != 5}
    found = not_reached(plan(), replace(seen, brokers=left, lists_fenced=lists_fenced), ["*"])
    down = ["it is not known what broker 5 has of topics that could not be read"]
    assert said(found) == ([] if lists_fenced else down), "where fenced ones are listed it is not registered"


@pytest.mark.parametrize("lists_fenced", [False, True])
def test_a_layout_knows_whether_its_snapshot_lists_fenced_brokers(lists_fenced: bool) -> None:
    seen = replace(SimKafka({}).snapshot(), lists_fenced=lists_fenced)
    assert layout_seen(seen).lists_fenced is lists_fenced


@pytest.mark.parametrize("logs", [{}, HIDDEN])
def test_another_namespace_learns_that_there_is_more_and_nothing_else(logs: Mapping[TopicPartition, int]) -> None:
    seen = layout({"orders": (1, 2)} if logs else {"secret": (5, 1), "orders": (1, 2)}, logs)
    for include in (["*"], ["orders"], ["orders", "secret"], ["orders", "hidden"]):
        [what] = said(not_reached(plan({"include": include}), seen, ["orders"]))
        assert what == "broker 5 has replicas that this namespace may not move", "whatever topics the plan names"


def test_topics_that_the_goal_excludes_keep_the_drain_incomplete() -> None:
    seen = layout({"audit": (5, 1), "__offsets": (5, 2), "other": (5, 3)})
    kept = said(not_reached(plan({"include": ["audit", "__*"], "exclude": ["audit"]}), seen, ["*"]))
    assert kept == [
        "1 replica on broker 5, to be emptied (topics: __offsets)",
        "1 replica of excluded topics on broker 5, to be emptied (topics: audit)",
    ]


def test_brokers_that_a_goal_leaves_out_are_drained_too() -> None:
    seen = layout({"orders": (5, 1)})
    assert said(not_reached(plan(brokers=[1, 2, 3, 4]), seen, ["*"])) == [
        "1 replica on broker 5, to be emptied (topics: orders)"
    ]


def test_a_replica_in_flight_is_there_and_its_factor_is_the_targets() -> None:
    tp = TopicPartition("orders", 0)
    seen = layout({"orders": (1, 2, 5)}, moves={tp: Reassignment((1, 2, 5), adding=(1,), removing=(5,))})
    goal = plan(drainBrokers=[5], replicationFactor=2)
    assert said(not_reached(goal, seen, ["*"])) == ["1 replica on broker 5, to be emptied (topics: orders)"]
    [part] = not_reached(plan(replicationFactor=3), seen, ["*"])
    assert part.what == "1 partition without the replication factor 3 (topics: orders)"


TOPICS = ("a", "b", "hidden")
PATTERNS = st.sampled_from([("*",), ("a",), ("a", "b"), ("z*",)])


@given(
    rows=st.dictionaries(st.sampled_from(["a", "b"]), st.sets(st.integers(1, 5), min_size=1).map(tuple)),
    logs=st.sets(st.sampled_from(TOPICS)),
    include=PATTERNS,
    allowed=PATTERNS,
)
def test_a_drain_is_met_when_nothing_included_or_of_others_lies_there(
    rows: dict[str, tuple[int, ...]], logs: set[str], include: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    seen = layout(rows, {TopicPartition(topic, 0): 1 for topic in logs})
    there = {topic for topic, row in rows.items() if 5 in row} | {topic for topic in logs if topic not in rows}
    own = {topic for topic in there if "*" in allowed or topic in allowed}
    wanted = {topic for topic in own if "*" in include or topic in include}
    found = not_reached(plan({"include": list(include)}), seen, allowed)
    assert bool(found) == bool(wanted | (there - own))
    named = {topic for part in found for topic in TOPICS if f": {topic}" in part.what or f", {topic}" in part.what}
    assert named == wanted


def test_parts_that_a_status_has_no_room_for_are_counted() -> None:
    parts = [Unmet(what=f"part {number}", nearest="none") for number in range(MAX_UNMET)]
    assert cut_short(parts) == tuple(parts)
    drained = Unmet(what="3 replicas of a on broker 1", nearest="none", part=GoalPart.DRAIN)
    *first, more = cut_short([*parts, drained])
    assert first == parts[:-1]
    assert (more.what, more.part) == ("2 more parts of the goal", GoalPart.DRAIN)
