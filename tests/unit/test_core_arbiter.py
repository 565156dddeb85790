"""Holds and precedence: each row of the table, for each kind of plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest

from reassign.core.automation.arbiter import OF_PLANS_TO_COME, Hold, PlanCase, Rank, Running, hold_of, retires
from reassign.core.automation.timers import Timer

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
LOST, DECOMMISSION, CORDONED, ADDED, SCHEDULE = Rank
ALL = frozenset(Rank)


def plan_case(rank: Rank, **changes: Any) -> PlanCase:
    calm = PlanCase(rank, frozenset({5}), "policy", settled=Timer(600, NOW, 0), settle_seconds=600)
    return replace(calm, **changes)


def held(rank: Rank, **changes: Any) -> str | None:
    found = hold_of(plan_case(rank, **changes))
    return found and found.reason


HOLDS: Mapping[str, tuple[dict[str, Any], str, frozenset[Rank]]] = {
    "suspended": ({"suspended": "spec.suspend is true"}, "Suspended", ALL),
    "too many are down": ({"too_many": "brokers 1 and 2 are down"}, "TooManyBrokersLost", frozenset({LOST})),
    "a rack is down": ({"rack_lost": "brokers 1 and 2 are down, all of rack a"}, "RackLost", frozenset({LOST})),
    "a broker came or went": ({"settled": Timer(599, NOW, 0)}, "ClusterUnsettled", ALL - {LOST}),
    "it was never settled": ({"settled": None}, "ClusterUnsettled", ALL - {LOST}),
    "a broker is fenced": ({"fenced": frozenset({4})}, "ClusterUnsettled", ALL - {LOST}),
    "its own broker is fenced": ({"fenced": frozenset({5})}, "ClusterUnsettled", frozenset()),
    "a user's plan": ({"users": ["rebalance"]}, "PlanInProgress", ALL - {LOST, CORDONED}),
    "a decommission cannot be read": ({"unread": ["old"]}, "PlanInProgress", ALL - {LOST}),
    "others move its replicas away": (
        {"foreign": frozenset({5, 6}), "foreign_from": frozenset({5})},
        "ForeignInFlight",
        ALL - {LOST},
    ),
    "others move other replicas": (
        {"foreign": frozenset({5, 6}), "foreign_from": frozenset({6})},
        "ForeignInFlight",
        ALL - {LOST, CORDONED},
    ),
    "a cooldown": ({"cooldown": Hold("Cooldown", "a plan has ended", LATER)}, "Cooldown", frozenset({ADDED, SCHEDULE})),
    "the last plan failed": ({"backoff": Hold("Backoff", "a wave failed", LATER)}, "Backoff", ALL),
    "nothing was gained": ({"gain": Hold("GainTooSmall", "all is as it was", None)}, "GainTooSmall", ALL - {SCHEDULE}),
}


@pytest.mark.parametrize(("changes", "reason", "ranks"), HOLDS.values(), ids=HOLDS.keys())
def test_a_hold_holds_the_kinds_that_the_table_names(
    changes: dict[str, Any], reason: str, ranks: frozenset[Rank]
) -> None:
    found = {rank: held(rank, **changes) for rank in Rank}
    assert found == {rank: reason if rank in ranks else None for rank in Rank}


@pytest.mark.parametrize("pair", [*combinations([name for name in HOLDS if HOLDS[name][2]], 2)])
def test_of_two_holds_the_first_in_the_table_is_said(pair: tuple[str, str]) -> None:
    first, second = (HOLDS[name] for name in pair)
    for rank in first[2] & second[2] if not first[0].keys() & second[0].keys() else ():
        assert held(rank, **{**second[0], **first[0]}) == first[1]


def test_a_plan_that_is_there_is_begun_in_spite_of_what_holds_new_ones() -> None:
    for name in ("a cooldown", "the last plan failed", "nothing was gained"):
        assert hold_of(plan_case(ADDED, **HOLDS[name][0]), but=OF_PLANS_TO_COME) is None
    assert hold_of(plan_case(ADDED, suspended="yes"), but=OF_PLANS_TO_COME)


def test_a_message_names_what_holds() -> None:
    said = {name: hold_of(plan_case(LOST, **HOLDS[name][0])) for name in ("a rack is down", "the last plan failed")}
    assert said["a rack is down"] == Hold(
        "RackLost", "brokers 1 and 2 are down, all of rack a: a user decides what becomes of it"
    )
    assert said["the last plan failed"] == Hold("Backoff", "a wave failed", LATER)


# --- Precedence ---


def test_only_the_first_three_retire_and_only_what_comes_after() -> None:
    pairs = {(rank, running) for rank in Rank for running in Rank if retires(rank, running)}
    assert pairs == {
        (LOST, DECOMMISSION),
        (LOST, CORDONED),
        (LOST, ADDED),
        (LOST, SCHEDULE),
        (DECOMMISSION, CORDONED),
        (DECOMMISSION, ADDED),
        (DECOMMISSION, SCHEDULE),
        (CORDONED, ADDED),
        (CORDONED, SCHEDULE),
    }


@pytest.mark.parametrize("rank", Rank)
@pytest.mark.parametrize("running", Rank)
def test_a_plan_that_runs_holds_what_may_not_retire_it(rank: Rank, running: Rank) -> None:
    other = Running("old-1", running, "decommission")
    assert held(rank, running=[other]) == (None if retires(rank, running) else "PlanInProgress")


@pytest.mark.parametrize(("owner", "reason"), [("policy", "PlanInProgress"), ("decommission", None)])
def test_a_plan_that_waits_holds_only_the_policy_that_it_is_of(owner: str, reason: str | None) -> None:
    assert held(ADDED, running=[Running("main-t-1", ADDED, owner, approved=False)]) == reason
    assert held(LOST, running=[Running("main-t-1", ADDED, owner, approved=False)]) is None
