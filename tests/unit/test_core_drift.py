"""Another client changes throttles again and again: the waits grow, and the cluster is protected no worse for it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reassign.api.config_keys import FOLLOWER_RATE
from reassign.core.configs.drift import repeated_drift
from reassign.core.model.configs import Change, ConfigKey, Op
from reassign.core.model.recent_changes import LONGEST_LOOSER_SECONDS, LONGEST_STRICTER_SECONDS, RecentChanges
from reassign.errors import Reason
from tests.unit.configs import FOLLOWERS, SETTLED, Throttler, broker, move, rates, store

RATE = ConfigKey(broker(2), FOLLOWER_RATE)
LONG = 1200


@pytest.fixture
def throttler() -> Throttler:
    """Throttles one move at 5000 B/s."""
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move()])
    return throttler


def fight(throttler: Throttler, change: Change, seconds: int = LONG) -> list[float]:
    """When we change that configuration again, while another client does so every second."""
    times = []
    for _ in range(seconds):
        throttler.another_client(change)
        planned = throttler.tick([move()])
        times += [throttler.now for own in planned.changes if own.key == change.key]
    return times


LIFTED = [Change(RATE, Op.DELETE), Change(RATE, Op.SET, "9000"), Change(FOLLOWERS, Op.SET, "")]


@pytest.mark.parametrize("change", LIFTED, ids=str)
def test_a_throttle_that_is_lifted_repeatedly_is_set_every_half_minute(throttler: Throttler, change: Change) -> None:
    times = fight(throttler, change)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[0] < waits[1] < waits[2]
    assert set(waits[5:]) == {LONGEST_LOOSER_SECONDS}


def test_a_lower_rate_may_stay_for_minutes(throttler: Throttler) -> None:
    times = fight(throttler, Change(RATE, Op.SET, "100"))
    assert times[-1] - times[-2] == LONGEST_STRICTER_SECONDS
    throttler.ticks(int(LONGEST_STRICTER_SECONDS), [move()])
    assert rates(throttler)[2] == "5000"


@pytest.mark.parametrize("change", LIFTED, ids=str)
def test_a_throttle_that_has_stood_for_long_is_set_again_at_once(throttler: Throttler, change: Change) -> None:
    for _ in range(10):
        throttler.ticks(120, [move()])
        throttler.another_client(change)
        planned = throttler.tick([move()])
        assert change.key in {own.key for own in planned.changes}


def test_new_items_are_listed_while_lost_ones_wait(throttler: Throttler) -> None:
    fight(throttler, Change(FOLLOWERS, Op.SET, ""), seconds=60)
    throttler.another_client(Change(FOLLOWERS, Op.SET, ""))
    throttler.ticks(2, [move(), move(1)])
    assert throttler.at(FOLLOWERS) == "1:2"
    throttler.ticks(int(LONGEST_LOOSER_SECONDS), [move(), move(1)])
    assert throttler.at(FOLLOWERS) == "1:2,0:2"


@pytest.mark.parametrize("prior", [None, "70", "9000"])
@pytest.mark.parametrize("seconds", range(1, 2 * SETTLED))
def test_what_was_restored_a_moment_ago_is_no_other_clients_change(prior: str | None, seconds: int) -> None:
    throttler = Throttler(store())
    if prior:
        throttler.another_client(Change(RATE, Op.SET, prior))
    throttler.ticks(SETTLED, [move()])
    throttler.ticks(seconds)
    assert [throttler.tick([move()]).drift for _ in range(SETTLED)] == [None] * SETTLED
    assert rates(throttler)[2] == "5000"
    throttler.another_client(Change(RATE, Op.DELETE))
    assert throttler.tick([move()]).drift
    throttler.ticks(2 * SETTLED)
    assert throttler.status is None


def test_what_a_long_list_lost_is_found_in_one_pass(throttler: Throttler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client may strip thousands of lists at once, and each tick looks what of it was ours."""
    moves = [move(number) for number in range(50)]
    throttler.ticks(SETTLED, moves)
    throttler.another_client(Change(FOLLOWERS, Op.SET, ""))
    recent = throttler.lately.observe(throttler.now)
    items = [f"{number}:2" for number in range(50)]
    carried_out: list[ConfigKey] = []
    of = Change.of

    def counted(change: Change, text: str | None) -> str | None:
        carried_out.append(change.key)
        return of(change, text)

    monkeypatch.setattr(Change, "of", counted)
    assert recent.took(FOLLOWERS, items) == frozenset()
    assert set(carried_out) == {FOLLOWERS}
    assert 0 < len(carried_out) < len(items)


def test_two_operators_without_a_claim_come_to_the_lower_rate() -> None:
    fast = Throttler(store())
    slow = Throttler(fast.store)
    changes: list[tuple[float, str]] = []
    for second in range(LONG):
        for throttler, rate in ((fast, 5000), (slow, 1000)):
            planned = throttler.tick([move(rate=rate)])
            changes += [(second, own.value) for own in planned.changes if own.key == RATE]
    late = [value for second, value in changes if second > LONG / 2]
    assert len(late) <= LONG / LONGEST_STRICTER_SECONDS + 2
    assert rates(fast)[2] == "1000"


@pytest.mark.parametrize("change", [*LIFTED, Change(RATE, Op.SET, "100")], ids=str)
def test_what_another_client_has_set_last_stays_after_the_move(throttler: Throttler, change: Change) -> None:
    fight(throttler, change, seconds=200)
    throttler.another_client(change)
    throttler.ticks(2 * SETTLED)
    assert (throttler.at(change.key) or None) == (change.value or None)
    assert throttler.status is None


def test_repeated_drift_is_named_until_it_is_forgotten(throttler: Throttler) -> None:
    def named() -> str:
        problem = repeated_drift(throttler.lately)
        assert problem is None or problem.reason is Reason.THROTTLE_DRIFT
        return problem.message if problem else ""

    fight(throttler, Change(RATE, Op.DELETE), seconds=2)
    assert named() == ""
    fight(throttler, Change(RATE, Op.DELETE), seconds=30)
    assert "follower.replication.throttled.rate of broker 2 (3 times)" in named()
    throttler.ticks(300, [move()])
    assert named()
    throttler.ticks(330, [move()])
    assert named() == ""


def test_a_process_that_has_just_started_knows_of_no_drift() -> None:
    assert repeated_drift(RecentChanges(started=0.0)) is None
