"""What a claim asks of the brokers: one request in ten seconds, and nothing that this process may not send."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors

from reassign.core.claim import Claim
from reassign.errors import Reason
from reassign.kafka.claim import HEARTBEAT_SECONDS, PROTOCOL_TYPE, REFUSED_SECONDS, RETRY_SECONDS, Membership
from reassign.kube.lease import LeaseLost

OTHER = Claim("other", datetime(2026, 1, 1, tzinfo=UTC))


@dataclass
class Group:
    """A wire to a coordinator with one group."""

    members: dict[str, Claim] = field(default_factory=dict)
    strange: dict[str, bytes] = field(default_factory=dict)
    """The metadata of members that are no installations of this version, by their hosts."""
    protocol_type: str = PROTOCOL_TYPE
    asked: Counter[str] = field(default_factory=Counter)
    fails: type[errors.KafkaError] | None = None

    def coordinator(self, group: str) -> str:
        self.asked["FindCoordinatorRequest"] += 1
        if self.fails:
            raise self.fails
        return "coordinator-1"

    def read_from(self, node: object, request: Any, seconds: float) -> Any:
        name = type(request).__name__
        self.asked[name] += 1
        if name == "DescribeGroupsRequest":
            members = [
                SimpleNamespace(member_metadata=claim.metadata, client_host="/10.0.0.1")
                for claim in self.members.values()
            ]
            members += [SimpleNamespace(member_metadata=m, client_host=host) for host, m in self.strange.items()]
            state = "Stable" if members else "Empty"
            group = SimpleNamespace(error_code=0, members=members, protocol_type=self.protocol_type, group_state=state)
            return SimpleNamespace(groups=[group])
        if name == "JoinGroupRequest":
            claim = Claim.read(request.protocols[0].metadata, "")
            assert claim
            self.members[claim.installation] = claim
            return SimpleNamespace(error_code=0, member_id="id", generation_id=1)
        return SimpleNamespace(error_code=0)


@pytest.fixture
def group() -> Group:
    return Group()


def rounds(membership: Membership, group: Group, count: int) -> list[float]:
    """The pauses between so many rounds, the last of which counts its requests."""
    wire: Any = group
    membership._wire = wire
    pauses = []
    for _ in range(count):
        group.asked.clear()
        pauses.append(membership._safe_round(wire))
    return pauses


def new(before_write: Any = lambda: None) -> Membership:
    return Membership("ours", "uid", "id", before_write)


def test_the_one_with_the_claim_sends_one_heartbeat_in_ten_seconds(group: Group) -> None:
    membership = new()
    assert rounds(membership, group, 5) == [HEARTBEAT_SECONDS] * 5
    assert group.asked == {"HeartbeatRequest": 1}
    assert membership.state.decided
    assert membership.state.other is None


def test_another_installation_asks_once_in_ten_seconds_and_does_not_join(group: Group) -> None:
    group.members["other"] = OTHER
    membership = new()
    assert rounds(membership, group, 5) == [HEARTBEAT_SECONDS] * 5
    assert group.asked == {"DescribeGroupsRequest": 1}
    assert membership.state.other == OTHER
    assert set(group.members) == {"other"}


def test_a_missing_right_is_asked_for_once_a_minute(group: Group) -> None:
    group.fails = errors.GroupAuthorizationFailedError
    assert rounds(new(), group, 3) == [REFUSED_SECONDS] * 3
    assert group.asked == {"FindCoordinatorRequest": 1}


def test_a_coordinator_that_is_away_is_asked_again_soon(group: Group) -> None:
    group.fails = errors.CoordinatorNotAvailableError
    membership = new()
    assert rounds(membership, group, 3) == [RETRY_SECONDS] * 3
    assert membership.state.problem is None


def test_a_process_without_the_lease_neither_joins_nor_keeps_a_claim(group: Group) -> None:
    held = [True]

    def before_write() -> None:
        if not held[0]:
            raise LeaseLost("the Lease was lost")

    membership = new(before_write)
    held[0] = False
    rounds(membership, group, 2)
    assert group.members == {}
    held[0] = True
    rounds(membership, group, 2)
    held[0] = False
    rounds(membership, group, 2)
    assert group.asked == {}


def test_a_claim_that_was_given_up_is_not_made_again(group: Group) -> None:
    membership = new()
    membership.stop()
    rounds(membership, group, 2)
    assert group.members == {}


def test_the_claim_of_an_earlier_process_keeps_its_age(group: Group) -> None:
    group.members["ours"] = Claim("ours", datetime(2025, 1, 1, tzinfo=UTC))
    rounds(new(), group, 1)
    assert group.members["ours"].since == datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("metadata", [b"[" * 200_000, b'{"version": 2}'])
def test_a_claim_that_cannot_be_read_is_said_and_ours_is_kept(group: Group, metadata: bytes) -> None:
    group.strange["/10.0.0.9"] = metadata
    membership = new()
    assert rounds(membership, group, 5) == [HEARTBEAT_SECONDS] * 5
    assert group.asked == {"HeartbeatRequest": 1}
    assert set(group.members) == {"ours"}
    said = membership.state.unclaimed
    assert said
    assert said.reason is Reason.CANNOT_BE_READ
    assert "at 10.0.0.9." in said.message
    group.strange.clear()
    membership._looked = False  # the group is another one, so it is looked at again
    rounds(membership, group, 1)
    assert membership.state.unclaimed is None


def test_beside_a_claim_that_cannot_be_read_another_counts(group: Group) -> None:
    group.strange["/10.0.0.9"] = b"[" * 200_000
    group.members["other"] = OTHER
    membership = new()
    rounds(membership, group, 2)
    assert membership.state.claimed
    assert membership.state.unclaimed


def test_a_bug_in_keeping_the_claim_is_said(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*args: object) -> Any:
        raise ValueError("wrong")

    membership = new()
    with monkeypatch.context() as patch:
        patch.setattr(group, "read_from", wrong)
        rounds(membership, group, 1)
    said = membership.state.unclaimed
    assert said
    assert said.reason is Reason.INTERNAL_ERROR
    rounds(membership, group, 1)
    assert membership.state.unclaimed is None


def test_what_fails_over_a_line_that_was_replaced_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    membership, group = new(), Group()

    def fails_when_replaced(*args: object) -> Any:
        membership._wire = Group()  # type: ignore[assignment]
        raise ValueError("closed")

    monkeypatch.setattr(group, "read_from", fails_when_replaced)
    rounds(membership, group, 1)
    assert membership.state.unclaimed is None


def test_what_a_strange_group_is_called_is_bounded(group: Group) -> None:
    group.strange["/10.0.0.9"] = b""
    group.protocol_type = "consumer\n" + "x" * 30_000
    membership = new()
    rounds(membership, group, 1)
    membership.state = replace(membership.state, failing=float("-inf"))  # it lasts
    rounds(membership, group, 1)
    said = membership.state.unclaimed
    assert said
    assert "of the type consumer?xxx" in said.message
    assert len(said.message) < 1024


def test_a_claim_that_could_not_be_looked_at_is_looked_at_again() -> None:
    group, claimed = Group(), new()
    read, described = group.read_from, []

    def times_out_once(node: Any, request: Any, seconds: float) -> Any:
        if type(request).__name__ == "DescribeGroupsRequest":
            described.append(request)
            if len(described) == 2:
                group.members["other"] = OTHER  # joined at once, and is older
                raise errors.RequestTimedOutError("slow coordinator")
        return read(node, request, seconds)

    group.read_from = times_out_once  # type: ignore[method-assign]
    rounds(claimed, group, 20)
    assert claimed.state.other is not None
