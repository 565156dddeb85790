"""What a BrokerDecommission says in each of its states: the contract's table, as kstatus and Argo CD read it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reassign.api.broker_decommission import DecommissionState
from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_record import RecordedApproval, RecordedBroker
from reassign.core.automation.conditions import broker_state, cordoned_state, refused
from reassign.core.automation.emptiness import ABSENT, BrokerJudged, Emptiness
from reassign.core.automation.model import BrokerSeen
from reassign.core.configs.cordons import CordonReason, CordonState
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from tests.unit.automation_sim import FENCED, GONE, UNREACHABLE, Decommissions, SimDecommission, orders
from tests.unit.sim import START

DOCS = Path(__file__).parents[2] / "docs"
ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2))
WINDOW = {"cron": "0 22 * * *", "durationSeconds": 3600}


def approved(run: Decommissions) -> SimDecommission:
    run.until("AwaitingApproval").approve()
    run.tick()
    return run.objects["old"]


def emptied(run: Decommissions) -> SimDecommission:
    approved(run)
    return run.until("Empty")


def suspended(run: Decommissions) -> None:
    approved(run).edit(suspend=True)


def braked(run: Decommissions) -> None:
    approved(run)
    run.execution = Execution.PAUSE


def outside(run: Decommissions) -> None:
    approved(run).edit(windows=[WINDOW])


def mismatched(run: Decommissions) -> None:
    run.until("AwaitingApproval").edit(approvedDigest=f"sha256:{'f' * 64}")


def second(run: Decommissions) -> None:
    run.replicas |= {TopicPartition("many", number): (4, 1) for number in range(6)}
    run.apply("another", [4], approval="NotRequired")
    run.until("WaveInFlight", "another")
    run.objects["old"].edit(approval="NotRequired")


def landed(run: Decommissions) -> None:
    emptied(run)
    run.replicas[TopicPartition("late", 0)] = (5, 1)


def failed(run: Decommissions) -> None:
    it = run.objects["old"]
    it.edit(approval="NotRequired")
    for _ in range(3):
        while not ((plan := it.record.plan) and plan.approved and not plan.retired):
            run.tick()
        run.plans[plan.name].deleted = True
        run.tick()


def down(run: Decommissions) -> SimDecommission:
    it = emptied(run)
    it.edit(unregister="WhenDown")
    run.brokers[5] = FENCED
    return it


def unregistered(run: Decommissions) -> None:
    down(run)
    run.tick(6)


def voter(run: Decommissions) -> None:
    down(run)
    run.voters = frozenset({5})


def old_kafka(run: Decommissions) -> None:
    down(run)
    run.lists_fenced = False


def gone(run: Decommissions) -> None:
    emptied(run)
    run.brokers[5] = GONE


def waits(run: Decommissions, seconds: int) -> None:
    for _ in range(seconds // 15):
        run.tick()


def hidden(run: Decommissions) -> None:
    emptied(run)
    run.replicas[TopicPartition("secret", 0)] = (5, 1)
    run.withheld.add("secret")


def silent(run: Decommissions) -> None:
    emptied(run)
    run.silent.add(5)
    run.tick()


def deleted(run: Decommissions) -> None:
    approved(run)
    run.tick(4)
    run.delete()


READY, RECONCILING, STALLED = {"Ready", "Empty"}, {"Reconciling"}, {"Stalled"}


@dataclass
class Row:
    """A state of the table: how it comes about, and what it says."""

    change: Callable[[Decommissions], object]
    reason: str
    true: set[str]
    after: int = 15
    """Seconds until it is looked at."""


TABLE = [
    Row(lambda run: run.tick(), "Planning", RECONCILING),
    Row(lambda run: run.brokers.update({1: FENCED}), "DrainIncomplete", RECONCILING, 60),
    Row(lambda run: run.brokers.update({1: FENCED}), "DrainIncomplete", RECONCILING | STALLED, 900),
    Row(lambda run: run.apply(brokers=[99]), "UnknownBroker", STALLED, 60),
    Row(lambda run: setattr(run, "factor", 6), "NotEnoughBrokers", STALLED, 60),
    Row(lambda run: run.apply(windows=[{**WINDOW, "timeZone": "Nowhere/There"}]), "InvalidSchedule", STALLED, 60),
    Row(lambda run: None, "AwaitingApproval", set(), 90),
    Row(lambda run: None, "AwaitingApproval", set(), 9000),
    Row(mismatched, "ApprovedDigestMismatch", set()),
    Row(second, "PlanInProgress", RECONCILING, 45),
    Row(approved, "WaveInFlight", RECONCILING),
    Row(outside, "OutsideWindow", set()),
    Row(outside, "OutsideWindow", set(), 9000),
    Row(suspended, "Suspended", set()),
    Row(suspended, "Suspended", set(), 9000),
    Row(braked, "Suspended", set()),
    Row(lambda run: setattr(run, "problem", UNREACHABLE), "ClusterUnreachable", RECONCILING, 30),
    Row(lambda run: setattr(run, "problem", UNREACHABLE), "ClusterUnreachable", RECONCILING | STALLED, 900),
    Row(deleted, "Deleting", RECONCILING),
    Row(landed, "BrokerNotEmpty", RECONCILING),
    Row(silent, "NotObserved", RECONCILING),
    Row(hidden, "NotAuthorized", STALLED),
    Row(failed, "PlanFailed", STALLED),
    Row(emptied, "Empty", READY),
    Row(voter, "QuorumVoter", READY),
    Row(old_kafka, "NotSupported", READY),
    Row(gone, "Gone", READY | {"Succeeded"}, 30),
    Row(unregistered, "Unregistered", READY | {"Succeeded"}),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.reason} {row.after}")
def test_each_state_of_the_table_says_what_the_contract_says(row: Row) -> None:
    run = Decommissions(ROWS)
    run.apply()
    row.change(run)
    waits(run, row.after)
    it = run.objects["old"]
    assert (it.reason, it.true - {"Cordoned"}) == (row.reason, row.true)
    assert {c.type for c in it.status.conditions} >= {"Ready", "Empty", "Succeeded"}
    assert it.status.observed_generation == it.generation


def test_before_it_was_seen_it_says_nothing() -> None:
    it = Decommissions(ROWS).apply()
    assert (it.status.observed_generation, it.status.conditions) == (None, ())


def named_in(page: str, head: str) -> list[set[str]]:
    """Return what the first columns of the page's tables with this head name, table by table."""
    tables = re.findall(rf"^\| {head} \|.*\n((?:\|.*\n)+)", (DOCS / page).read_text(), re.MULTILINE)
    return [set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) for rows in tables]


def test_the_recipe_explains_each_reason_of_ready() -> None:
    waits, ready = named_in("recipes/decommission.md", "reason")
    of_the_cluster = {UNREACHABLE.reason}
    assert {row.reason for row in TABLE if "Ready" not in row.true} - of_the_cluster <= waits
    assert {row.reason for row in TABLE if "Ready" in row.true} <= ready


def test_the_page_explains_each_state_of_a_broker_and_of_a_cordon() -> None:
    page = "concepts/decommissions.md"
    assert named_in(page, "state") == [{str(state) for state in DecommissionState}]
    cordons = {str(reason) for reason in CordonReason if reason is not CordonReason.IN_FORCE}
    assert named_in(page, "reason of `Cordoned`") == [cordons | {"Cordoned", "CordonNever"}]


# --- Cordoned ---


def judged(seen: BrokerSeen) -> BrokerJudged:
    return BrokerJudged(seen, Emptiness(), 0, None, None)


def cordon(reason: CordonReason) -> CordonState:
    return CordonState(reason, f"broker 5: {reason}")


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        (BrokerSeen(cordoned=True), True, "Cordoned"),
        (BrokerSeen(cordoned=True, cordon=cordon(CordonReason.CORDON_DRIFT)), True, "Cordoned"),
        (BrokerSeen(cordoned=False), False, "NotYet"),
        (BrokerSeen(cordoned=None, cordon=cordon(CordonReason.IN_FORCE)), False, "NotYet"),
        *[
            (BrokerSeen(cordoned=False, cordon=cordon(reason)), False, reason)
            for reason in CordonReason
            if reason is not CordonReason.IN_FORCE
        ],
        (BrokerSeen(fenced=True, cordoned=True), False, "BrokerFenced"),
        (ABSENT, False, "BrokerFenced"),
    ],
)
def test_cordoned_says_what_the_brokers_that_are_up_report(seen: BrokerSeen, status: bool, reason: str) -> None:
    it = Decommissions(ROWS).apply().resource
    found = cordoned_state(it, {5: judged(seen), 4: judged(BrokerSeen(fenced=True))})
    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize(("bare", "reason"), [(True, "CordonNever"), (False, "Cordoned")])
def test_a_cordon_that_nobody_asked_for_counts(bare: bool, reason: str) -> None:
    it = Decommissions(ROWS).apply(cordon="Never").resource
    assert cordoned_state(it, {5: judged(BrokerSeen(cordoned=not bare))}).reason == reason


# --- One broker ---

NOT_EMPTY = Emptiness("BrokerNotEmpty", "1 replica left")


@pytest.mark.parametrize(
    ("seen", "emptiness", "record", "state"),
    [
        (BrokerSeen(), NOT_EMPTY, RecordedBroker(id=5), "Draining"),
        (BrokerSeen(fenced=True), NOT_EMPTY, RecordedBroker(id=5), "Draining"),
        (BrokerSeen(), Emptiness(), RecordedBroker(id=5), "Empty"),
        (BrokerSeen(fenced=True), Emptiness(), RecordedBroker(id=5), "Down"),
        (ABSENT, Emptiness(), RecordedBroker(id=5, seen_unregistered=True), "Gone"),
        (ABSENT, Emptiness(), RecordedBroker(id=5, seen_unregistered=True, unregister_sent_at=START), "Unregistered"),
    ],
)
def test_each_broker_has_its_own_state(
    seen: BrokerSeen, emptiness: Emptiness, record: RecordedBroker, state: str
) -> None:
    it = Decommissions(ROWS).apply()
    it.record = it.record.model_copy(update={"approval": RecordedApproval(bytes=0)})
    assert broker_state(it.resource, BrokerJudged(seen, emptiness, 0, record, None)) == state


def test_before_the_approval_a_broker_serves() -> None:
    run = Decommissions(ROWS)
    it = run.apply()
    run.until("AwaitingApproval")
    assert [(b.id, b.state, b.replicas) for b in it.status.brokers] == [(5, "Serving", 3)]
    assert it.status.replicas_left == 3
    assert it.status.summary == "3 replicas left on broker 5; 0/2 waves, 0/3 partitions"


def test_excluded_topics_may_stay_and_do_not_count() -> None:
    run = Decommissions({**ROWS, TopicPartition("__canary", 0): (5,)})
    it = run.apply(excludeTopics=["__canary*"], approval="NotRequired")
    assert it.resource.counts("orders")
    run.tick()
    run.replicas = {tp: row for tp, row in run.replicas.items() if tp.topic == "__canary" or 5 not in row}
    run.until("Empty")
    assert it.status.replicas_left == 0


@pytest.mark.parametrize(("gone", "reason"), [(False, "Empty"), (True, "Gone")])
def test_a_step_that_is_refused_takes_nothing_back(gone: bool, reason: str) -> None:
    run = Decommissions(ROWS)
    run.apply()
    it = emptied(run)
    if gone:
        run.brokers[5] = GONE
        run.until("Gone")
    refusal = Problem(Reason.REQUEST_REFUSED, "the API server refuses it")
    said = refused(it.resource, it.status, refusal, run.now.time)
    assert [c.reason for c in said.conditions if c.type == "Ready"] == [reason]
    assert said.conditions == it.status.conditions


def test_a_step_that_is_refused_is_said() -> None:
    run = Decommissions(ROWS)
    run.apply()
    it = approved(run)
    said = refused(it.resource, it.status, Problem(Reason.REQUEST_REFUSED, "too large"), run.now.time)
    assert [(c.reason, c.message) for c in said.conditions if c.type == "Ready"] == [
        ("RequestRefused", "too large; it is tried again")
    ]
    assert {"Cordoned", "Succeeded", "Empty"} <= {c.type for c in said.conditions}
