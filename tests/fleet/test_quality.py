"""Broken clusters are told apart from the others, each by the kind of what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reassign.files import checks, rules
from reassign.fleet import choose
from reassign.fleet.choose import Checked, Folder
from reassign.fleet.outcomes import of_kind
from reassign.fleet.policy import parse
from reassign.planning.unseen import Unseen, UnseenLogs
from tests.fleet import broken
from tests.fleet.judged import Judged, ask, judged
from tests.snapshots import as_of_version_2

DOCS = Path(__file__).parents[2] / "docs" / "fleets" / "checks.md"
GOOD = ("a", "m", "z")
ORDER = [("cluster", "ascending"), ("date", "ascending")]
MISNAMED = {"FolderName": "foldername_Old"}
RULES = [rule for group in rules.GROUPS for rule in group.rules]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three good clusters, and one with each kind of fault; it is named as that in lower case."""
    root = tmp_path_factory.mktemp("fleet")
    for name in GOOD:
        broken.good(root, name)
        broken.good(root, name, days_ago=1)
    for kind, maker in broken.BROKEN.items():
        maker(root, kind.lower())
    return root


@pytest.fixture(scope="module")
def said(fleet: Path) -> Judged:
    return judged(fleet)


@pytest.fixture(scope="module")
def found(said: Judged) -> Checked:
    return said.checked


def kinds_of(found: Checked, cluster: str) -> set[str]:
    return {one.kind for one in found.quarantine if one.cluster == cluster}


@pytest.mark.parametrize("kind", sorted(broken.BROKEN))
def test_a_broken_cluster_is_quarantined_for_what_is_wrong_with_it(found: Checked, kind: str) -> None:
    name = MISNAMED.get(kind, kind.lower())
    assert kinds_of(found, name) == {kind} | ({"IsrOutsideReplicas"} if kind == "LeaderOutsideReplicas" else set())
    assert all(one.rows >= 1 and one.example for one in found.quarantine)


def test_every_fault_has_a_cluster_that_has_it() -> None:
    faults = {*checks.Kind, *choose.Kind, *rules.FAULTS} - broken.NOTES - {choose.Kind.LOST, choose.Kind.NOT_READ}
    assert broken.BROKEN.keys() == faults
    assert len(faults) > 30


def test_the_others_are_the_same_as_without_broken_ones(tmp_path: Path, said: Judged, found: Checked) -> None:
    for name in GOOD:
        broken.good(tmp_path, name)
        broken.good(tmp_path, name, days_ago=1)
    rows, alone = judged(tmp_path)
    of_good = pc.is_in(said.rows["cluster"], pa.array(GOOD))
    assert said.rows.filter(of_good).sort_by(ORDER).equals(rows.sort_by(ORDER))
    assert alone.quarantine == alone.notes == ()
    assert [one for one in found.newest if one.folder.cluster in GOOD] == list(alone.newest)
    assert [one for one in found.history if one.folder.cluster in GOOD] == list(alone.history)
    assert {one.folder.cluster for one in found.newest} == {*GOOD}
    assert [one for one in found.notes if one.cluster in GOOD] == []


def test_the_same_snapshots_have_the_same_outcomes(fleet: Path, said: Judged) -> None:
    again = judged(fleet)
    assert again.rows.equals(said.rows)
    assert again.checked == said.checked


def test_rejected_rows_are_kept_with_all_that_they_say(said: Judged) -> None:
    rows = of_kind(said.rows, "rejected").to_pylist()
    assert {row["kind"] for row in rows} == rules.FAULTS
    [row] = [row for row in rows if row["cluster"] == "unknownbroker"]
    assert (row["date"], row["table"], row["example"]) == (
        broken.DAY,
        "partitions",
        "payments-5: replicas [4, 9, 2]",
    )
    assert json.loads(row["row"]) == {
        "cluster_id": "id-of-unknownbroker",
        "taken_at": "2026-01-31T12:00:00.000Z",
        "topic": "payments",
        "partition": 5,
        "replicas": [4, 9, 2],
        "log_dirs": ["/d1", "/d1", "/d1"],
        "size_bytes": 11 * 10**9,
        "in_flight": False,
        "leader": 4,
        "isr": [2, 4],
    }


def test_of_many_rejected_rows_the_first_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_REJECTED", 3)
    monkeypatch.setattr(rules, "CHUNK", 5)
    folder = broken.good(tmp_path, "main")
    broken.edited(folder, "partitions", lambda rows: [row | {"replicas": [9], "log_dirs": ["/d1"]} for row in rows])
    rows = ask(tmp_path, Folder(broken.DAY, "main"))
    kept = [row["example"] for row in of_kind(rows, "rejected").to_pylist() if row["kind"] == "UnknownBroker"]
    assert kept == [f"orders-{number}: replicas [9]" for number in range(3)]
    [verdict] = [row for row in of_kind(rows, "verdicts").to_pylist() if row["kind"] == "UnknownBroker"]
    assert verdict["rows"] == 12


def test_every_kind_is_explained() -> None:
    said = set(re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", DOCS.read_text(), re.MULTILINE))
    assert said >= {*checks.Kind, *choose.Kind, *(rule.kind for rule in RULES)}


def test_what_is_only_not_well_is_noted_and_stops_nothing(tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    broken.edited(folder, "brokers", lambda rows: [rows[0] | {"alive": False, "rack": "plain"}, *rows[1:]])
    broken.edited(folder, "brokers", lambda rows: [*rows[:-1], rows[-1] | {"rack": "/b//2"}])
    broken.edited(folder, "log_dirs", lambda rows: [rows[0] | {"online": False}, *rows[1:]])
    broken.edited(folder, "log_dirs", lambda rows: [*rows[:-1], rows[-1] | {"total_bytes": None}])
    nothing_known = {"size_bytes": None, "leader": None, "isr": []}
    broken.edited(folder, "partitions", lambda rows: [*rows[:-2], *(row | nothing_known for row in rows[-2:])])
    broken.good(tmp_path, "main", days_ago=1, id="before")
    found = judged(tmp_path).checked
    assert (len(found.newest), found.history, found.quarantine) == (1, (), ())
    assert {(one.kind, one.rows, one.example) for one in found.notes} == {
        ("NewClusterId", 1, "it was id-of-before on 2026-01-30, and is id-of-main now"),
        ("BrokerDown", 1, "broker 1"),
        ("MixedRacks", 3, "broker 2 is in /a/2"),
        ("UnreadableRack", 1, "broker 4 is in /b//2"),
        ("DirectoryOffline", 1, "broker 1 /d1"),
        ("CapacityUnknown", 1, "broker 4 /d2: 900000000000 of unknown bytes are usable"),
        ("SizeUnknown", 2, "payments-4: unknown bytes"),
        ("NoLeader", 2, "payments-4: replicas [3, 4, 1], in sync []"),
        ("OutOfSync", 2, "payments-4: replicas [3, 4, 1], in sync []"),
    }


def test_brokers_without_a_rack_beside_others_are_noted(tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    broken.edited(folder, "brokers", lambda rows: [*rows[:-1], rows[-1] | {"rack": None}])
    broken.edited(folder, "brokers", lambda rows: [rows[0] | {"rack": None, "alive": False}, *rows[1:]])
    found = judged(tmp_path).checked
    assert [(one.kind, one.rows, one.example) for one in found.notes if one.kind != "BrokerDown"] == [
        ("MissingRack", 1, "broker 4")
    ]


def test_a_cluster_that_was_not_seen_whole_is_noted_with_count_and_bytes(tmp_path: Path) -> None:
    unseen = Unseen(
        (UnseenLogs(1, "a", 2, 3 * 2**30), UnseenLogs(4, "b", 1, 2**30)), frozenset({"b", "c"}), frozenset({2, 3})
    )
    broken.good(tmp_path, "main", unseen=unseen)
    found = judged(tmp_path, parse("defaults: {goal: {drainBrokers: [4]}}", ""))
    assert found.checked.quarantine == ()
    assert {(one.kind, one.rows, one.example) for one in found.checked.notes} == {
        ("TopicUnseen", 4, "3 logs (4.0 GiB) on brokers 1 and 4 of topics that could not be read: a, b, c"),
        ("BrokerSilent", 2, "broker 2"),
    }
    [plan] = of_kind(found.rows, "plans").to_pylist()
    assert plan["waves"]
    assert [unmet["what"] for unmet in plan["unmet"]] == [
        "1 log (1.0 GiB) on broker 4, to be emptied, of topics that could not be read: b"
    ]


def test_of_an_earlier_version_it_is_noted_that_nothing_is_known(tmp_path: Path) -> None:
    for days_ago in (0, 1):
        as_of_version_2(broken.good(tmp_path, "main", days_ago=days_ago))
    found = judged(tmp_path, parse("defaults: {goal: {drainBrokers: [4]}}", ""))
    assert (len(found.checked.newest), len(found.checked.history), found.checked.quarantine) == (1, 1, ())
    [note] = found.checked.notes
    assert (note.kind, note.rows) == ("UnseenNotKnown", 1)
    assert "what could not be seen is not known" in note.example
    [plan] = of_kind(found.rows, "plans").to_pylist()
    assert plan["waves"]
    [unmet] = plan["unmet"]
    assert unmet["what"] == "it is not known what broker 4 has of topics that could not be read"
    assert of_kind(found.rows, "sizes").num_rows == 2 * (2 + 8), "history reads it too"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"broker": 1, "topic": "a"}, "MissingValue"),
        ({}, "MissingValue"),
        ({"topic": "a", "logs": 1, "bytes": 1}, "MissingValue"),
        ({"broker": 1, "topic": "a", "logs": 1}, "MissingValue"),
        ({"broker": 1, "topic": "a", "logs": 1, "bytes": -1}, "NegativeNumber"),
        ({"broker": 9, "topic": "a", "logs": 1, "bytes": 1}, "UnknownBroker"),
        ({"broker": 9}, "UnknownBroker"),
        ({"topic": "no/topic"}, "TopicName"),
        ({"broker": 1, "topic": "", "logs": 1, "bytes": 1}, "TopicName"),
    ],
)
def test_rows_of_what_was_not_seen_are_checked(tmp_path: Path, row: dict[str, Any], kind: str) -> None:
    folder = broken.good(tmp_path, "main")
    identity = {"cluster_id": "id-of-main", "taken_at": broken.TAKEN}
    broken.edited(folder, "unseen", lambda _: [identity | row])
    assert kinds_of(judged(tmp_path).checked, "main") == {kind}


@pytest.mark.parametrize("row", [{"broker": 1, "topic": "a", "logs": 1, "bytes": 1}, {"topic": "a"}, {"broker": 1}])
def test_what_was_not_seen_is_said_once(tmp_path: Path, row: dict[str, Any]) -> None:
    folder = broken.good(tmp_path, "main")
    other = {"broker": 2, "topic": "a", "logs": 1, "bytes": 1}
    identity = {"cluster_id": "id-of-main", "taken_at": broken.TAKEN}
    broken.edited(folder, "unseen", lambda _: [identity | row, identity | other])
    assert kinds_of(judged(tmp_path).checked, "main") == set()
    broken.edited(folder, "unseen", lambda rows: [*rows, identity | row])
    [found] = judged(tmp_path).checked.quarantine
    assert (found.kind, found.rows) == ("UnseenTwice", 2)


def test_unknown_sizes_are_not_too_many_bytes(tmp_path: Path) -> None:
    unknown = [{"partition": number, "size_bytes": None} for number in range(400)]  # of three replicas
    broken.edited(broken.good(tmp_path, "main"), "partitions", lambda rows: [rows[0] | each for each in unknown])
    found = judged(tmp_path).checked
    assert ([one.kind for one in found.notes], found.quarantine) == (["SizeUnknown"], ())


def test_every_rule_looks_at_tables_without_rows(tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    for table in ("log_dirs", "partitions", "configs"):
        broken.edited(folder, table, lambda rows: [])
    rows = ask(tmp_path, Folder(broken.DAY, "main"))
    assert of_kind(rows, "verdicts").num_rows == 0
    [plan] = of_kind(rows, "plans").to_pylist()
    assert plan["problem"]["reason"] == "NothingSelected"


def test_rules_say_what_they_said_of_nulls_and_of_several_faults_at_once(tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    odd = [
        {"replicas": [9, None, 8], "log_dirs": ["/d1", "/d1", "/d9"], "isr": [7, None], "leader": 4, "in_flight": True},
        {"replicas": [1, 2], "log_dirs": ["/d1"], "isr": [1, None], "leader": 2},
        {"replicas": [1], "log_dirs": ["/d1", None], "isr": [1, 3, 3], "leader": 1},
    ]
    broken.edited(
        folder, "partitions", lambda rows: [*(row | each for row, each in zip(rows, odd, strict=False)), *rows[3:]]
    )
    rows = of_kind(ask(tmp_path, Folder(broken.DAY, "main")), "verdicts").to_pylist()
    assert {(row["kind"], row["rows"], row["example"]) for row in rows if row["quarantines"]} == {
        ("DirectoryCount", 2, "orders-1: replicas [1, 2]"),
        ("IsrOutsideReplicas", 2, "orders-1: replicas [1, 2], in sync [1, null]"),
        ("MissingValue", 2, "orders-0: replicas [9, null, 8]"),
        ("UnknownBroker", 2, "orders-0: replicas [9, null, 8]"),
        ("UnknownIsrBroker", 1, "orders-0: replicas [9, null, 8], in sync [7, null]"),
    }
