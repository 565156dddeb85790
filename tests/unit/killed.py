"""Journeys in which each write fails in turn: the process is killed, it is refused, or its answer is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from reassign.errors import ApiServerError
from tests.unit.decommission_world import Decommissioning
from tests.unit.world import KilledError

ALL = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
FAILURES: dict[str, tuple[Callable[[], BaseException], bool, int]] = {
    "killed": (KilledError, True, 2),
    "refused": (partial(ApiServerError, "500: failed calling webhook"), False, 7),
    "lost": (partial(ApiServerError, "the answer was lost"), True, 7),
}
"""What a write fails with, whether it has landed all the same, and of how many writes one fails in turn; `make explore`
tries all."""
failures = pytest.mark.parametrize("failure", FAILURES)
W = TypeVar("W", bound=Decommissioning)


def tried(
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[pytest.MonkeyPatch], W],
    journey: Callable[[W], None],
    failure: str,
) -> int:
    """Go through this with a failure of each write in turn, as far as there are some; return how many there are."""
    fails, lands, step = FAILURES[failure]
    for number in range(1, 1000, 1 if ALL else step):
        with monkeypatch.context() as patch:
            world = begin(patch)
            world.kube.at, world.kube.fails, world.kube.lands = number, fails, lands
            try:
                journey(world)
            except AssertionError as error:
                raise AssertionError(f"write {number}, after {world.kube.writes[:number][-2:]}") from error
            if not world.kube.failed:
                return number
    raise AssertionError("it writes for ever")
