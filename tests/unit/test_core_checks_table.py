"""A table for each check: what passes it, what violates it with its reason and message, and the edges."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from reassign.core.checks.brokers import fenced_broker, unknown_broker
from reassign.core.checks.budget import budget
from reassign.core.checks.chain import ADMISSION, Check
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
from reassign.core.model.awaited import Awaited
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Name, Problem
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.errors import Reason
from tests.unit.inputs import NOW, TARGET, TP, an_input, hanging, kafka, refused, used, with_dirs

NOWHERE = TopicPartition("nowhere", 0)
LONG = TopicPartition("t" * 214, 0)
PAUSED = Problem(Reason.CLUSTER_UNDER_MIN_ISR, "nothing new starts")
DELETED = Problem(Reason.CLUSTER_DELETED, "the KafkaCluster is being deleted")
UNSUPPORTED = Problem(Reason.RESOURCE_TOO_LARGE, "it cannot be done")
OPEN, CORDONED, OFFLINE = LogDir(), LogDir(cordoned=True), LogDir(online=False)
HELD = LogDir(logs={TP: 1})
COPIED = kafka(log_dirs=with_dirs(b1_a=HELD, b1_b=LogDir(futures={TP: 0})))
"""Another client is copying the replica on broker 1 from /a to /b."""
TO_FOUR = {"cluster": kafka(moving_to=(4, 1, 2))}
OUT_OF_SYNC = {"cluster": kafka(moving_to=(4, 1, 2), isr={4, 1}, min_insync=2)}
STALE = Recent(now=NOW, busy={TP: Awaited(NOW - 2.9)})
SUPERSEDE, FAIL = {"whenInFlight": "Supersede"}, {"whenInFlight": "Fail"}


def sized(size: int, **directories: LogDir) -> dict[str, object]:
    """The leader has so many bytes, and broker 3 these directories."""
    return {"cluster": kafka(sizes={TP: dict.fromkeys((0, 1, 2), size)}, log_dirs=with_dirs(**directories))}


class Case(NamedTuple):
    """What a check says of an input: nothing, or a problem with this reason and these words."""

    name: str
    input: Input
    reason: Reason | None = None
    says: str = ""


def case(name: str, *violation: Reason | str, **changes: object) -> Case:
    return Case(name, an_input(**changes), *violation)  # type: ignore[arg-type]


TABLES: dict[Check, list[Case]] = {
    permission: [
        case("every namespace may move every topic where none is listed"),
        case("a namespace may move the topics that its patterns match", allowed={"kafka": ("payments", "ord*")}),
        case(
            "a namespace that is not listed may move nothing",
            Reason.NAMESPACE_NOT_ALLOWED,
            "does not allow the namespace kafka",
            allowed={"other": ("*",)},
        ),
        case(
            "a namespace may not move other topics",
            Reason.NAMESPACE_NOT_ALLOWED,
            "may move payments-*, a, not orders",
            allowed={"kafka": ("payments-*", "a")},
        ),
        case(
            "the case of a topic's name counts",
            Reason.NAMESPACE_NOT_ALLOWED,
            "may move Or*",
            allowed={"kafka": ("Or*",)},
        ),
    ],
    deadline: [
        case("it lies ahead", deadlineSeconds=30),
        case("it has passed", Reason.DEADLINE_EXCEEDED, "deadlineSeconds expired before", expired=True),
    ],
    existence: [
        case("the partition is there"),
        case("the topic is not there", Reason.UNKNOWN_TOPIC_OR_PARTITION, "no topic nowhere; create it", tp=NOWHERE),
        case(
            "the topic has fewer partitions",
            Reason.UNKNOWN_TOPIC_OR_PARTITION,
            "the topic orders has no partition 1, only 0 to 0",
            tp=TopicPartition("orders", 1),
        ),
        case(
            "a topic that cannot be read is not called missing",
            Reason.NOT_AUTHORIZED,
            "grant DESCRIBE",
            tp=NOWHERE,
            known={"unread_topics": {"nowhere": Problem(Reason.NOT_AUTHORIZED, "grant DESCRIBE")}},
        ),
    ],
    unknown_broker: [
        case("every broker of the target is registered"),
        case("a fenced broker is registered", cluster=kafka(fenced={3})),
        case("a broker that loses its replica may be gone", cluster=kafka((6, 1, 2))),
        case(
            "brokers of the target are not registered",
            Reason.UNKNOWN_BROKER,
            "brokers 98 and 99 are not registered in the cluster; choose from 0, 1, 2, 3, 4, 5",
            target=(99, 1, 98),
        ),
    ],
    fenced_broker: [
        case("every broker of the target is up"),
        case("a broker that loses its replica may be down", cluster=kafka(fenced={0})),
        case("a broker that is not registered is not called fenced", target=(99, 1, 2)),
        case("a broker that gets a replica is down", Reason.BROKER_FENCED, "broker 3 is", cluster=kafka(fenced={3, 0})),
        case(
            "two brokers are down",
            Reason.BROKER_FENCED,
            "brokers 1 and 3 are fenced (down or still starting); start them, or choose others",
            cluster=kafka(fenced={1, 3}),
        ),
        case("a broker that keeps its replica is down", Reason.BROKER_FENCED, "broker 1 is", cluster=kafka(fenced={1})),
    ],
    log_directory: [
        case("the named directory is open", cluster=kafka(log_dirs=with_dirs(a=OPEN)), log_dirs=("/a", "any", "any")),
        case("one directory is left open", cluster=kafka(log_dirs=with_dirs(a=OFFLINE, b=CORDONED, c=OPEN))),
        case("the broker has not reported", cluster=kafka(silent={3}), log_dirs=("/z", "any", "any")),
        case("no directory is open where a replica stays", cluster=kafka(log_dirs=with_dirs(b1_a=CORDONED))),
        case(
            "a replica stays in the cordoned directory that the entry names",
            cluster=kafka(log_dirs=with_dirs(b1_a=replace(HELD, cordoned=True))),
            log_dirs=("any", "/a", "any"),
        ),
        case(
            "the broker chooses, whatever the length of the name",
            tp=LONG,
            cluster=kafka(tp=LONG, log_dirs=with_dirs(a=OPEN)),
        ),
        case(
            "a directory is named for a topic with too long a name",
            Reason.TOPIC_NAME_TOO_LONG,
            "broker 3 takes no named log directory for a topic with so long a name: name and partition have 215",
            tp=LONG,
            cluster=kafka(tp=LONG, log_dirs=with_dirs(a=OPEN)),
            log_dirs=("/a", "any", "any"),
        ),
        case(
            "the named directory is not there",
            Reason.UNKNOWN_LOG_DIR,
            "broker 3 has no log directory /z, only /a, /b",
            cluster=kafka(log_dirs=with_dirs(b=OPEN, a=OPEN)),
            log_dirs=("/z", "any", "any"),
        ),
        case(
            "the named directory is offline",
            Reason.LOG_DIR_OFFLINE,
            "/a of broker 3 is offline; repair the disk",
            cluster=kafka(log_dirs=with_dirs(a=OFFLINE, b=OPEN)),
            log_dirs=("/a", "any", "any"),
        ),
        case(
            "every directory is offline",
            Reason.LOG_DIR_OFFLINE,
            "every log directory of broker 3 is offline",
            cluster=kafka(log_dirs=with_dirs(a=OFFLINE, b=replace(OFFLINE, cordoned=True))),
        ),
        case(
            "the named directory is cordoned",
            Reason.LOG_DIR_CORDONED,
            "/a of broker 3 is cordoned; remove it from cordoned.log.dirs",
            cluster=kafka(log_dirs=with_dirs(a=CORDONED, b=OPEN)),
            log_dirs=("/a", "any", "any"),
        ),
        case(
            "every directory that is online is cordoned",
            Reason.LOG_DIR_CORDONED,
            "every log directory of broker 3 is cordoned",
            cluster=kafka(log_dirs=with_dirs(a=CORDONED, b=OFFLINE)),
        ),
        case(
            "a replica that stays is to be copied to a cordoned directory",
            Reason.LOG_DIR_CORDONED,
            "/b of broker 1 is cordoned",
            cluster=kafka(log_dirs=with_dirs(b1_a=HELD, b1_b=CORDONED)),
            log_dirs=("any", "/b", "any"),
        ),
    ],
    expected_replicas: [
        case("none are expected"),
        case("they are a set, in any order", expected=(2, 0, 1)),
        case("it may have had others a moment ago", expected=(0, 1, 4), recent=STALE),
        case("those being added are not counted", **TO_FOUR, expected=(0, 1, 2)),
        case(
            "it has others",
            Reason.EXPECTED_REPLICAS_MISMATCH,
            "expected replicas [0, 1, 4], but it has [0, 1, 2]",
            expected=(0, 1, 4),
        ),
        case("it has more", Reason.EXPECTED_REPLICAS_MISMATCH, "expected replicas [0, 1]", expected=(0, 1)),
        case(
            "what is being added is expected",
            Reason.EXPECTED_REPLICAS_MISMATCH,
            "but it has [1, 2, 0]",
            **TO_FOUR,
            expected=(4, 1, 2),
        ),
    ],
    replication_factor: [
        case("it stays"),
        case("it may change", target=(3, 1), replicationFactorChange="Allow"),
        case("it may have had another a moment ago", target=(3, 1), recent=STALE),
        case("another client's move has changed it to the same", target=(3, 1), cluster=kafka(moving_to=(4, 1))),
        case("it would fall", Reason.REPLICATION_FACTOR_CHANGE, "from 3 to 2; set replication", target=(3, 1)),
        case("it would rise", Reason.REPLICATION_FACTOR_CHANGE, "from 3 to 4", target=(3, 1, 2, 0)),
        case(
            "another client's move in flight changes it",
            Reason.REPLICATION_FACTOR_CHANGE,
            "from 2 to 3",
            cluster=kafka(moving_to=(4, 1)),
        ),
        case(
            "superseding goes back to the replicas before that move",
            Reason.REPLICATION_FACTOR_CHANGE,
            "from 3 to 2",
            target=(3, 1),
            cluster=kafka(moving_to=(4, 1)),
            **SUPERSEDE,
        ),
    ],
    min_in_sync_replicas: [
        case("the target has as many replicas as are required", target=(3, 1), cluster=kafka(min_insync=2)),
        case("the target has fewer, and not fewer than now", cluster=kafka(min_insync=4)),
        case("it may have had fewer a moment ago", target=(3,), recent=STALE, cluster=kafka(min_insync=2)),
        case("the target has fewer, and more than now", target=(3, 1), cluster=kafka((0,), min_insync=3)),
        case(
            "the target has fewer, and fewer than now",
            Reason.BELOW_MIN_IN_SYNC_REPLICAS,
            "1 replica would be fewer than min.insync.replicas=2",
            target=(3,),
            cluster=kafka(min_insync=2),
        ),
        case(
            "replicas being added do not count as there now",
            target=(3, 1),
            cluster=kafka((0, 1), moving_to=(4, 1, 2), min_insync=3),
        ),
    ],
    claim: [
        case("no other resource has it"),
        case("another resource has it", Reason.PARTITION_CLAIMED, "kafka/b has it; wait", claimed_by=Name("kafka/b")),
    ],
    in_flight_elsewhere: [
        case("nothing is in flight"),
        case("it supersedes a move that can go back", **TO_FOUR, **SUPERSEDE),
        case("it supersedes a move that hangs", cluster=hanging(), **SUPERSEDE),
        case(
            "it takes over a move to the same end, safe to cancel or not", target=(4, 1, 2), **OUT_OF_SYNC, **SUPERSEDE
        ),
        case("it waits for a move", Reason.IN_FLIGHT_ELSEWHERE, "(adding 4, removing 0); it starts after", **TO_FOUR),
        case(
            "it waits for a move to the same end", Reason.IN_FLIGHT_ELSEWHERE, "adding 4", target=(4, 1, 2), **TO_FOUR
        ),
        case(
            "it fails because of a move", Reason.IN_FLIGHT_ELSEWHERE, "another client is moving it", **TO_FOUR, **FAIL
        ),
        case(
            "a move that removes replicas only",
            Reason.IN_FLIGHT_ELSEWHERE,
            "adding none, removing 2",
            cluster=kafka(moving_to=(0, 1)),
        ),
        case(
            "a move that adds replicas only",
            Reason.IN_FLIGHT_ELSEWHERE,
            "adding 4, removing none",
            target=(3, 1, 2, 0),
            cluster=kafka(moving_to=(0, 1, 2, 4)),
        ),
        case(
            "a move that hangs is not taken over, to the same end or not",
            Reason.CANCEL_UNSAFE,
            "until brokers 0 and 1 are alive",
            target=(0, 1, 2),
            cluster=hanging(isr={2}, min_insync=2),
            **SUPERSEDE,
        ),
        case(
            "it supersedes a move whose original replicas are down, and another one stays until then",
            Reason.CANCEL_UNSAFE,
            "until brokers 0 and 1 are alive and in sync again; until then broker 4 must stay",
            cluster=kafka(moving_to=(4, 1, 2), isr={0, 2, 4}, fenced={0}, min_insync=2),
            **SUPERSEDE,
        ),
        case(
            "as many original replicas are in sync as are required",
            cluster=kafka(moving_to=(4, 1, 2), isr={1, 2}, min_insync=2),
            **SUPERSEDE,
        ),
        case("it waits for a move that hangs", Reason.IN_FLIGHT_ELSEWHERE, "that move hangs", cluster=hanging()),
        case(
            "it supersedes a move that cannot go back safely",
            Reason.CANCEL_UNSAFE,
            "going back to [1, 2, 0] would leave 1 of at least 2 in-sync replicas",
            **OUT_OF_SYNC,
            **SUPERSEDE,
        ),
    ],
    copied_elsewhere: [
        case("the entry names no directory there", cluster=COPIED),
        case("the copy goes to the named directory", cluster=COPIED, log_dirs=("any", "/b", "any")),
        case("it supersedes the copy", cluster=COPIED, log_dirs=("any", "/a", "any"), **SUPERSEDE),
        case(
            "another client copies it to another directory",
            Reason.IN_FLIGHT_ELSEWHERE,
            "the replica on broker 1 from /a to /b; it starts after that copy",
            cluster=COPIED,
            log_dirs=("any", "/a", "any"),
        ),
    ],
    refusal: [
        case("brokers refused nothing"),
        case("brokers refused another target", recent=refused((4, 1, 2))),
        case("it is time to ask again", recent=refused(TARGET, until=NOW)),
        case("brokers refused a cancel, and nothing is in flight", recent=refused(()), **SUPERSEDE),
        case("brokers refused a cancel that is not wanted", recent=refused(()), **TO_FOUR),
        case("brokers refused it", Reason.INVALID_REPLICA_ASSIGNMENT, "refused it", recent=refused(TARGET)),
        case(
            "brokers refused to cancel the move that it supersedes",
            Reason.INVALID_REPLICA_ASSIGNMENT,
            "refused it",
            recent=refused(()),
            **TO_FOUR,
            **SUPERSEDE,
        ),
        case(
            "another client repeats the move that it supersedes",
            Reason.INVALID_REPLICA_ASSIGNMENT,
            "refused it",
            recent=refused(frozenset({4, 1, 2})),
            **TO_FOUR,
            **SUPERSEDE,
        ),
    ],
    served: [
        case("the cluster is served"),
        case("a user has to act at the cluster", DELETED.reason, DELETED.message, cluster_hold=DELETED),
        case("the cluster starts nothing for a while", cluster_hold=PAUSED),
        case("its own wish comes before the cluster's", suspend=True, cluster_hold=DELETED),
    ],
    hold: [
        case("it may start"),
        case("the resource is suspended", Reason.SUSPENDED, "spec.suspend is true; set it to false", suspend=True),
        case(
            "the wave of a plan is suspended",
            Reason.SUSPENDED,
            "the ReassignmentPlan drain starts it in its turn",
            suspend=True,
            resource_is={"plan": "drain"},
        ),
        case("the cluster starts nothing new", PAUSED.reason, PAUSED.message, cluster_hold=PAUSED),
        case("its own wish comes before the cluster's", Reason.SUSPENDED, suspend=True, cluster_hold=PAUSED),
        case(
            "what cannot be done comes first",
            UNSUPPORTED.reason,
            UNSUPPORTED.message,
            resource_is={"unsupported": UNSUPPORTED},
            suspend=True,
        ),
    ],
    idle: [
        case("it starts on a busy cluster", budget=used(3)),
        case("the cluster is idle", admission="WhenIdle"),
        case("the resource itself is moving partitions", admission="WhenIdle", budget=used(3), moving=True),
        case(
            "the cluster is busy", Reason.WAITING_FOR_IDLE, "it starts when none", admission="WhenIdle", budget=used()
        ),
    ],
    settled: [
        case("nothing was in flight for long enough", recent=Recent(now=3.0)),
        case("what is in flight is never stale", recent=Recent(now=0.0), **TO_FOUR),
        case("the process is new", Reason.CONNECTING, "metadata may still show", recent=Recent(now=2.9)),
        case("it was in flight a moment ago", Reason.CONNECTING, recent=STALE),
        case("our finalizer is not there yet", Reason.CONNECTING, resource_is={"has_finalizer": False}),
        case(
            "the resource has lost its record",
            Reason.CONNECTING,
            resource_is={"record_lost": True},
            **TO_FOUR,
        ),
    ],
    silence: [
        case("every broker that gets a replica has reported", answered={3}),
        case("no replica is copied", target=(2, 1, 0), cluster=kafka(sizes={}), answered=()),
        case("sizes were not read", cluster=kafka(sizes=None)),
        case("the leader is not known", cluster=kafka(sizes={}, leader={TP: None})),
        case("a broker that gets a replica is silent", Reason.REQUEST_FAILED, "broker 3 has not", answered={0, 1, 2}),
        case("the leader's size is not known", Reason.REQUEST_FAILED, "broker 0 has not", cluster=kafka(sizes={})),
        case(
            "both are silent", Reason.REQUEST_FAILED, "brokers 0 and 3 have not", cluster=kafka(sizes={}), answered=()
        ),
        case(
            "a broker with a named directory has never reported",
            Reason.REQUEST_FAILED,
            "broker 1 has not",
            cluster=kafka(silent={1}),
            log_dirs=("any", "/a", "any"),
        ),
        case(
            "a broker that copies between its directories is silent",
            Reason.REQUEST_FAILED,
            "broker 1 has not",
            target=(0, 1, 2),
            cluster=kafka(log_dirs=with_dirs(b1_a=HELD, b1_b=OPEN)),
            log_dirs=("any", "/b", "any"),
            answered=(),
        ),
    ],
    disk: [
        case("volumes of unknown size have room", **sized(10**12, a=OPEN)),
        case("as much as is required stays free", **sized(100, a=LogDir(total=1000, usable=200))),
        case("no replica is copied to the full broker", **sized(101, b1_a=LogDir(total=1000, usable=0))),
        case(
            "another volume has room", **sized(101, a=LogDir(total=1000, usable=0), b=LogDir(total=9000, usable=9000))
        ),
        case(
            "less than is required would stay free",
            Reason.INSUFFICIENT_DISK,
            "broker 3 has no room for 100 B more, with all that is on its way there: less than 10 % would stay free",
            **sized(101, a=LogDir(total=1000, usable=200)),
        ),
        case(
            "the named directory is full",
            Reason.INSUFFICIENT_DISK,
            "broker 3",
            log_dirs=("/a", "any", "any"),
            **sized(101, a=LogDir(total=1000, usable=0), b=LogDir(total=9000, usable=9000)),
        ),
        case(
            "without a leader the largest replica counts",
            Reason.INSUFFICIENT_DISK,
            "no room for 100 B more",
            cluster=kafka(
                sizes={TP: {0: 10, 1: 101}}, leader={TP: None}, log_dirs=with_dirs(a=LogDir(total=1000, usable=200))
            ),
        ),
        case(
            "the other directory of a broker that keeps its replica is full",
            Reason.INSUFFICIENT_DISK,
            "broker 1 has no room",
            target=(0, 1, 2),
            log_dirs=("any", "/b", "any"),
            **sized(101, b1_a=HELD, b1_b=LogDir(total=1000, usable=200)),
        ),
    ],
    budget: [
        case("nothing is bounded", budget=used(9, added={3}), own=used(9, added={3})),
        case("the last place is free", budget=used(1, max_partitions=2), own=used(1, max_partitions=2)),
        case("the last move of a broker is free", budget=used(1, moves_per_broker=2, added={3}, source=0)),
        case("what needs more than there is runs alone", target=(3, 4, 5), budget=used(0, moves_per_broker=2)),
        case("no replica is copied", target=(2, 1, 0), budget=used(9, moves_per_broker=1, added={1}, source=0)),
        case("the superseded move frees its place", budget=used(1, max_partitions=1), **TO_FOUR, **SUPERSEDE),
        case(
            "what is taken over has its place",
            target=(4, 1, 2),
            budget=used(2, max_partitions=1),
            **TO_FOUR,
            **SUPERSEDE,
        ),
        case(
            "all places of the cluster are taken",
            Reason.WAITING_FOR_BUDGET,
            "2 places for partitions in flight, and none is free; it starts when one of them is done",
            budget=used(2, max_partitions=2),
        ),
        case(
            "all places of the resource are taken",
            Reason.WAITING_FOR_BUDGET,
            "1 place for partitions",
            own=used(1, max_partitions=1),
            budget=used(2, max_partitions=2),
        ),
        case(
            "what is taken over needs a place of the resource",
            Reason.WAITING_FOR_BUDGET,
            "1 place for partitions",
            target=(4, 1, 2),
            own=used(1, max_partitions=1),
            **TO_FOUR,
            **SUPERSEDE,
        ),
        case(
            "a broker receives as many as it may",
            Reason.WAITING_FOR_BUDGET,
            "broker 3 receives 2 replicas already",
            budget=used(2, moves_per_broker=2, added={3}),
        ),
        case(
            "the leader sends as many as it may",
            Reason.WAITING_FOR_BUDGET,
            "broker 0 sends 2 replicas already",
            budget=used(2, moves_per_broker=2, added={4}, source=0),
        ),
        case(
            "a leader that is not known sends nothing",
            cluster=kafka(leader={TP: None}),
            budget=used(2, moves_per_broker=2, added={4}, source=0),
        ),
    ],
}


@pytest.mark.parametrize(
    ("check", "case"),
    [
        pytest.param(check, case, id=f"{check.__name__}: {case.name}")
        for check, cases in TABLES.items()
        for case in cases
    ],
)
def test_a_check_passes_or_finds_its_problem(check: Check, case: Case) -> None:
    problem = check(case.input)
    assert (problem and problem.reason) == case.reason
    assert case.says in (problem.message if problem else "")


@pytest.mark.parametrize("check", ADMISSION)
def test_every_check_has_a_case_that_passes_and_one_that_does_not(check: Check) -> None:
    assert {case.reason is None for case in TABLES[check]} == {True, False}


def test_the_input_that_the_cases_change_passes_every_check() -> None:
    assert [check(an_input()) for check in ADMISSION] == [None] * len(ADMISSION)
