"""What begins nothing, and touches nothing of others, while its throttle cannot be set."""

from __future__ import annotations

import pytest

from reassign.core.model import Alter, AlterLogDirs
from reassign.errors import Reason
from tests.unit.configs import topic
from tests.unit.sim import partitions
from tests.unit.test_controller_throttling import NEW, OLD, Client, snapshot
from tests.unit.throttling import Operator

P0, P1 = partitions(2)


@pytest.fixture
def client() -> Client:
    """Topics may be read, and not changed."""
    return Client(denied={topic()})


@pytest.fixture
def operator(client: Client) -> Operator:
    """One whose process is not new any more."""
    found = Operator(client)
    found.throttling._lately.started -= 100
    return found


def test_no_log_directory_is_asked_for_while_its_move_is_held_back_and_the_others_go_on(operator: Operator) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW), P1: (OLD, (1, 0))}, "5Ki")
    verdict.steps.insert(0, AlterLogDirs(P0, ((2, "/b"),)))
    operator.tick(snapshot(), [verdict])
    assert verdict.steps == [Alter(P1, (1, 0))]
    assert verdict.must_record
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED
