"""The claim: the older one wins, and whatever keeps it from being seen stops nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.core.claim import (
    MAX_CLAIM_BYTES,
    PATIENCE_SECONDS,
    SESSION_SECONDS,
    Claim,
    ClaimState,
    own_since,
    preceding,
    unreadable,
)
from reassign.core.model.problem import Problem
from reassign.errors import Reason

START = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = Problem(Reason.NOT_AUTHORIZED, "grant it")

claims = st.builds(
    Claim, st.sampled_from("abcd"), st.integers(0, 3).map(lambda days: START + timedelta(days=days)), st.just("")
)


@given(st.lists(claims, min_size=1))
def test_exactly_one_installation_has_no_claim_before_its_own(members: list[Claim]) -> None:
    first = {uid for uid in {claim.installation for claim in members} if preceding(members, uid) is None}
    assert len(first) == 1
    oldest = min(claim.since for claim in members)
    assert first <= {claim.installation for claim in members if claim.since == oldest}


def test_one_that_has_no_claim_comes_after_all_that_have() -> None:
    [only] = [Claim("a", START)]
    assert preceding([only], "b") == only
    assert preceding([], "b") is None


@given(claims)
def test_a_claim_reads_back_from_its_metadata(claim: Claim) -> None:
    assert Claim.read(claim.metadata, "10.0.0.1") == claim


def written(installation: object, since: object = "2026-01-01T00:00:00Z") -> bytes:
    return json.dumps({"installation": installation, "since": since}).encode()


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00\x01",
        b"[]",
        b"{}",
        b"[" * 200_000,
        b"[" * MAX_CLAIM_BYTES,
        written("a", 5),
        written("a", "0001-01-01T00:00:00+23:59"),
        written(5),
        written(""),
        written("a" * 65),
        written("a\nb"),
        written("\ud800"),
        written("a") + b" " * MAX_CLAIM_BYTES,
    ],
    ids=range(14),
)
def test_metadata_of_others_is_no_claim(metadata: bytes) -> None:
    assert Claim.read(metadata, "") is None


def test_what_is_said_of_another_claim_is_bounded_and_in_utc() -> None:
    other = Claim.read(written("a", "2026-01-01T02:00:00+02:00"), "/10.0.0.1\n" + "x" * 40_000)
    assert other
    said = ClaimState(0).read(other, 0).holder
    assert "at 10.0.0.1?xxx" in said
    assert "since 2026-01-01 00:00:00 UTC" in said
    assert len(said) < 500
    problem = unreadable("group", ["/10.0.0.2", *["\t" * 40_000] * 40_000])
    assert problem
    assert "at 10.0.0.2, ???" in problem.message
    assert len(problem.message) < 1024


def test_metadata_of_a_later_version_and_without_a_zone_is_read() -> None:
    metadata = b'{"installation": "a", "since": "2026-01-01T00:00:00", "new": 1}'
    assert Claim.read(metadata, "") == Claim("a", START)


def test_a_process_keeps_the_claim_of_the_one_before() -> None:
    later = START + timedelta(days=1)
    assert own_since([Claim("b", START - timedelta(days=1)), Claim("a", START)], "a", later) == START
    assert own_since([Claim("b", START)], "a", later) == later


def test_nothing_starts_before_the_first_answer_but_not_for_ever() -> None:
    state = ClaimState(100)
    waiting = state.by(100 + PATIENCE_SECONDS - 1).undecided
    assert waiting
    assert waiting.reason is Reason.CONNECTING
    assert state.by(100 + PATIENCE_SECONDS).undecided is None
    assert state.read(None, 101).undecided is None


def test_a_missing_right_is_a_warning_at_once_and_holds_nothing() -> None:
    state = ClaimState(100).failed(REFUSED, 101, lasts=True)
    assert (state.undecided, state.claimed) == (None, None)
    assert state.unclaimed
    assert "no other installation of the operator on this Kafka is noticed" in state.unclaimed.message
    assert state.read(None, 102).unclaimed is None


def test_a_lost_answer_is_no_warning_before_it_lasts() -> None:
    state = ClaimState(100).read(None, 100).failed(REFUSED, 110, lasts=False)
    assert state.failed(REFUSED, 110 + PATIENCE_SECONDS - 1, lasts=False).problem is None
    assert state.failed(REFUSED, 110 + PATIENCE_SECONDS, lasts=False).problem == REFUSED
    later = 110 + 10 * PATIENCE_SECONDS  # after an outage
    assert state.connected().failed(REFUSED, later, lasts=False).problem is None
    assert state.read(None, later).failed(REFUSED, later, lasts=False).problem is None


def test_a_claim_that_is_no_longer_seen_counts_until_it_would_have_ended() -> None:
    state = ClaimState(100).read(Claim("b", START, "10.0.0.1"), 100).failed(REFUSED, 101, lasts=False)
    for lasts in (True, False):
        assert state.failed(REFUSED, 100 + SESSION_SECONDS - 1, lasts=lasts).claimed
        after = state.failed(REFUSED, 100 + SESSION_SECONDS, lasts=lasts)
        assert after.claimed is None
        assert after.unclaimed
