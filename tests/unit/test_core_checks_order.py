"""The order of the checks, that none is left out of it, and what a violation comes to."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from typing import Any, get_type_hints

import pytest

from reassign.api.partition_reassignment import PartitionReassignmentStatus, PartitionState
from reassign.core import checks
from reassign.core.checks.brokers import fenced_broker, unknown_broker
from reassign.core.checks.budget import budget
from reassign.core.checks.chain import ADMISSION, DRY_RUN, WAITS, Check, Violation, fails, first_violation, waits
from reassign.core.checks.deadline import deadline, deadline_passed
from reassign.core.checks.disk import disk, silence
from reassign.core.checks.existence import existence
from reassign.core.checks.hold import hold, idle, served, settled
from reassign.core.checks.in_flight import claim, copied_elsewhere, in_flight_elsewhere, refusal
from reassign.core.checks.in_sync import min_in_sync_replicas
from reassign.core.checks.input import Input
from reassign.core.checks.log_dirs import log_directory
from reassign.core.checks.permission import permission
from reassign.core.checks.replicas import expected_replicas, replication_factor
from reassign.core.model.log_dir_reports import FRESH_SECONDS
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Name, Problem
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.errors import Reason
from tests.unit.inputs import NOW, TARGET, TP, an_input, kafka, refused, used, with_dirs
from tests.unit.sim import START, resource

NOWHERE = TopicPartition("nowhere", 0)
NOT_ALLOWED: dict[str, tuple[str, ...]] = {"kafka": ("payments",)}
CORDONED = LogDir(cordoned=True)
FULL = LogDir(total=1000, usable=0)
COPIED = {"b1_a": LogDir(logs={TP: 1}), "b1_b": LogDir(futures={TP: 0})}
KEPT_IN_A = ("any", "/a", "any")
DELETED = Problem(Reason.CLUSTER_DELETED, "the KafkaCluster is being deleted")

BOTH: Mapping[tuple[Check, Check], Input] = {
    (permission, deadline): an_input(allowed=NOT_ALLOWED, expired=True),
    (permission, existence): an_input(allowed=NOT_ALLOWED, tp=NOWHERE),
    (deadline, existence): an_input(expired=True, tp=NOWHERE),
    (existence, served): an_input(tp=NOWHERE, cluster_hold=DELETED),
    (served, unknown_broker): an_input(target=(99, 1), cluster_hold=DELETED),
    (existence, unknown_broker): an_input(tp=NOWHERE, target=(99, 1)),
    (unknown_broker, fenced_broker): an_input(kafka(fenced={5}), (99, 5, 1)),
    (fenced_broker, log_directory): an_input(
        kafka(fenced={3}), known={"log_dirs": {3: {"/a": LogDir(online=False)}}}, answered=()
    ),
    (log_directory, expected_replicas): an_input(kafka(log_dirs=with_dirs(a=CORDONED)), expected=(0, 1, 5)),
    (expected_replicas, replication_factor): an_input(target=(3, 1), expected=(0, 1, 5)),
    (replication_factor, min_in_sync_replicas): an_input(kafka(min_insync=2), (3,)),
    (min_in_sync_replicas, claim): an_input(
        kafka(min_insync=2), (3,), replicationFactorChange="Allow", claimed_by=Name("kafka/b")
    ),
    (claim, in_flight_elsewhere): an_input(kafka(moving_to=(4, 1, 2)), claimed_by=Name("kafka/b")),
    (in_flight_elsewhere, copied_elsewhere): an_input(
        kafka(moving_to=(4, 1, 2), log_dirs=with_dirs(**COPIED, b4_a=LogDir())), log_dirs=KEPT_IN_A
    ),
    (copied_elsewhere, refusal): an_input(
        kafka(log_dirs=with_dirs(**COPIED)), log_dirs=KEPT_IN_A, recent=refused(TARGET)
    ),
    (copied_elsewhere, silence): an_input(kafka(log_dirs=with_dirs(**COPIED)), log_dirs=KEPT_IN_A, answered=()),
    (refusal, hold): an_input(recent=refused(TARGET), suspend=True),
    (hold, idle): an_input(suspend=True, admission="WhenIdle", budget=used()),
    (idle, settled): an_input(admission="WhenIdle", budget=used(), recent=Recent(now=0.0)),
    (settled, silence): an_input(recent=Recent(now=0.0), answered=()),
    (silence, disk): an_input(kafka(log_dirs=with_dirs(a=FULL)), answered=()),
    (disk, budget): an_input(kafka(log_dirs=with_dirs(a=FULL)), budget=used(1, max_partitions=1)),
}
"""An input that violates both checks, for each two that are neighbours in a chain."""


def problems_found_by_checks() -> set[Check]:
    """Every function under core/checks that takes an Input and returns a Problem or None."""
    modules = [import_module(f"{checks.__name__}.{module.name}") for module in pkgutil.iter_modules(checks.__path__)]
    functions = [f for module in modules for _, f in inspect.getmembers(module, inspect.isfunction)]
    ours = [f for f in functions if f.__module__.startswith(checks.__name__)]
    return {f for f in ours if list(get_type_hints(f).values()) == [Input, Problem | None]}


def test_every_check_is_in_the_chain_once() -> None:
    assert problems_found_by_checks() == set(ADMISSION)
    assert len(ADMISSION) == len(set(ADMISSION))


def test_a_dry_run_has_the_checks_of_the_admission_in_their_order() -> None:
    assert [check for check in ADMISSION if check in DRY_RUN] == list(DRY_RUN)


def test_a_dry_run_leaves_out_what_else_goes_on() -> None:
    assert set(ADMISSION) - set(DRY_RUN) == {deadline, served, refusal, hold, idle, settled, budget}


@pytest.mark.parametrize(
    ("chain", "earlier", "later"),
    [
        pytest.param(chain, *pair, id=f"{name}: {pair[0].__name__} before {pair[1].__name__}")
        for name, chain in (("admission", ADMISSION), ("dry run", DRY_RUN))
        for pair in pairwise(chain)
    ],
)
def test_of_two_violations_the_earlier_check_counts(chain: tuple[Check, ...], earlier: Check, later: Check) -> None:
    i = BOTH[earlier, later]
    assert later(i)
    problem = earlier(i)
    assert problem
    assert first_violation(chain, i) == Violation(earlier, problem)


@pytest.mark.parametrize("chain", [ADMISSION, DRY_RUN])
def test_an_input_that_passes_every_check_has_no_violation(chain: tuple[Check, ...]) -> None:
    assert first_violation(chain, an_input()) is None


SAID = Problem(Reason.REQUEST_FAILED, "it is said")


@pytest.mark.parametrize("check", [check for check in ADMISSION if check not in {*WAITS, silence}])
def test_a_violated_check_blocks_the_partition(check: Check) -> None:
    assert waits(an_input(), Violation(check, SAID)).shown() == (PartitionState.BLOCKED, SAID)


@pytest.mark.parametrize("check", [served, hold, idle, budget])
def test_a_partition_that_waits_for_its_turn_is_pending(check: Check) -> None:
    assert waits(an_input(), Violation(check, SAID)).shown() == (PartitionState.PENDING, SAID)


def test_a_partition_waits_for_metadata_without_a_problem() -> None:
    assert waits(an_input(), Violation(settled, SAID)).shown() == (PartitionState.PENDING, None)


@pytest.mark.parametrize(
    ("silent_for", "state"),
    [
        pytest.param(None, PartitionState.PENDING, id="it has just begun to wait"),
        pytest.param(FRESH_SECONDS - 0.1, PartitionState.PENDING, id="it has waited for a moment"),
        pytest.param(FRESH_SECONDS, PartitionState.BLOCKED, id="it has waited for long"),
    ],
)
def test_silent_brokers_block_the_partition_only_when_it_lasts(silent_for: float | None, state: PartitionState) -> None:
    since = {} if silent_for is None else {TP: NOW - silent_for}
    i = an_input(recent=Recent(now=NOW, silence=since))
    assert waits(i, Violation(silence, SAID)).shown() == (state, SAID)


UNSETTLED = Recent(now=0.0)
COPY = kafka(log_dirs=with_dirs(**COPIED))
MOVE = kafka(moving_to=(4, 1, 2))
LOST = {"record_lost": True}


@pytest.mark.parametrize(
    ("i", "check", "expected"),
    [
        pytest.param(an_input(expired=True), deadline, True, id="its deadline has passed"),
        pytest.param(an_input(expired=True, suspend=True), deadline, True, id="so it is while it is suspended"),
        pytest.param(an_input(MOVE, whenInFlight="Wait"), in_flight_elsewhere, False, id="it waits for a move"),
        pytest.param(an_input(MOVE, whenInFlight="Fail"), in_flight_elsewhere, True, id="a move makes it fail"),
        pytest.param(
            an_input(COPY, log_dirs=KEPT_IN_A, whenInFlight="Fail"), copied_elsewhere, True, id="so does a copy"
        ),
        pytest.param(
            an_input(MOVE, whenInFlight="Fail", suspend=True),
            in_flight_elsewhere,
            False,
            id="a suspended resource does not fail",
        ),
        pytest.param(
            an_input(MOVE, whenInFlight="Fail", admission="WhenIdle", budget=used()),
            in_flight_elsewhere,
            False,
            id="a resource that waits for an idle cluster does not fail",
        ),
        pytest.param(
            an_input(COPY, log_dirs=KEPT_IN_A, whenInFlight="Fail", recent=UNSETTLED),
            copied_elsewhere,
            False,
            id="nothing fails while metadata may be stale",
        ),
        pytest.param(
            an_input(MOVE, whenInFlight="Fail", resource_is=LOST),
            in_flight_elsewhere,
            False,
            id="nothing fails while the status is lost",
        ),
        pytest.param(
            an_input(whenInFlight="Fail", claimed_by=Name("kafka/b")), claim, False, id="another resource goes first"
        ),
        pytest.param(
            an_input(kafka(fenced={3}), whenInFlight="Fail"), fenced_broker, False, id="a broker may come back"
        ),
    ],
)
def test_a_deadline_or_the_wish_to_fail_ends_a_partition(i: Input, check: Check, expected: bool) -> None:
    violation = first_violation(ADMISSION, i)
    assert violation
    assert violation.check is check
    assert fails(i, violation) is expected


@pytest.mark.parametrize(
    ("after", "fields", "passed"),
    [
        (29.999, {"deadlineSeconds": 30}, False),
        (30.0, {"deadlineSeconds": 30}, True),
        (30.0, {"deadlineSeconds": 30, "suspend": True}, False),
        (10**9, {}, False),
    ],
)
def test_a_deadline_has_passed_once_its_seconds_have(after: float, fields: dict[str, Any], passed: bool) -> None:
    status = PartitionReassignmentStatus(observed_generation=1, start_time=START)
    asked = replace(resource({TP: TARGET}, **fields), status=status)
    assert deadline_passed(asked, START + timedelta(seconds=after)) is passed
