"""Whether a partition may be moved now: ordered checks, the first violation counts.

A check is a function of the `Input` to the problem that it finds, or None; the problem's sentence says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from reassign.api.partition_reassignment import WhenInFlight
from reassign.core.checks.brokers import fenced_broker, unknown_broker
from reassign.core.checks.budget import budget
from reassign.core.checks.deadline import deadline
from reassign.core.checks.disk import disk, silence
from reassign.core.checks.existence import existence
from reassign.core.checks.hold import hold, idle, served, settled
from reassign.core.checks.in_flight import claim, copied_elsewhere, in_flight_elsewhere, refusal
from reassign.core.checks.in_sync import min_in_sync_replicas
from reassign.core.checks.input import Input
from reassign.core.checks.log_dirs import log_directory
from reassign.core.checks.permission import permission
from reassign.core.checks.replicas import expected_replicas, replication_factor
from reassign.core.model.problem import Problem
from reassign.core.model.row import BLOCKED, PENDING, Row, waiting
from reassign.core.model.waits import NEEDS_USER
from reassign.errors import Reason

Check = Callable[[Input], Problem | None]

TARGET: tuple[Check, ...] = (
    unknown_broker,
    fenced_broker,
    log_directory,
    expected_replicas,
    replication_factor,
    min_in_sync_replicas,
    claim,
    in_flight_elsewhere,
    copied_elsewhere,
)
"""Whether the target makes sense now, on its own."""

ADMISSION: tuple[Check, ...] = (
    permission,
    deadline,
    existence,
    served,
    *TARGET,
    refusal,
    hold,
    idle,
    settled,
    silence,
    disk,
    budget,
)
"""Before a move begins."""

DRY_RUN: tuple[Check, ...] = (permission, existence, *TARGET, silence, disk)
"""As if every entry were to begin now, whatever else goes on."""

WAITS: frozenset[Check] = frozenset({served, hold, idle, settled, budget})
"""Checks whose violation is a turn to wait for: the partition is Pending. With any other one it is Blocked."""


class Violation(NamedTuple):
    """The first check that is violated, and the problem that it finds."""

    check: Check
    problem: Problem


def first_violation(chain: Sequence[Check], i: Input) -> Violation | None:
    """Return the first violated check of a chain, or None when the partition passes."""
    return next((Violation(check, problem) for check in chain if (problem := check(i))), None)


def fails(i: Input, violation: Violation) -> bool:
    """Whether the partition is not moved any more: its deadline has passed, or whenInFlight is Fail."""
    if violation.check is deadline:
        return True
    elsewhere = violation.problem.reason is Reason.IN_FLIGHT_ELSEWHERE
    return (
        elsewhere
        and i.resource.spec.when_in_flight is WhenInFlight.FAIL
        and first_violation((hold, idle, settled), i) is None
    )


def needs_user(i: Input, violation: Violation) -> bool:
    """Whether the partition cannot start before a user acts, by this violation or by one of a later check."""
    if unknown := existence(i):  # the later checks are of partitions that exist
        return violation.problem.reason in NEEDS_USER or unknown.reason in NEEDS_USER
    later = ADMISSION[ADMISSION.index(violation.check) + 1 :]
    problems = (violation.problem, *(problem for check in later if (problem := check(i))))
    return any(problem.reason in NEEDS_USER for problem in problems)


def waits(i: Input, violation: Violation) -> Row:
    """Return what to say of a partition that a check holds back; while metadata settles, there is nothing to say."""
    if violation.check is settled:
        return waiting(PENDING)
    pending = violation.check in WAITS or (violation.check is silence and not i.silence_lasts)
    return waiting(PENDING if pending else BLOCKED, violation.problem)
