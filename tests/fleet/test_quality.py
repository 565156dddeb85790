"""Broken clusters are told apart from the others, each by the kind of what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.fleet import choose, inventory, quality, rules
from reassign.fleet.choose import Verdict
from reassign.fleet.quality import REJECTED, Checked
from reassign.fleet.tables import read
from tests.fleet import broken

DOCS = Path(__file__).parents[2] / "docs" / "fleets" / "checks.md"
GOOD = ("a", "m", "z")
MISNAMED = {"FolderName": "foldername_Old"}


def checked(spark: SparkSession, root: Path) -> Checked:
    chosen = choose.choose(inventory.take(spark, str(root)))
    return quality.checked(chosen, check(spark, root, chosen)["verdicts"])


def check(spark: SparkSession, root: Path, chosen: choose.Chosen) -> dict[str, pa.Table]:
    return quality.check(str(root), read(spark, str(root), [one.folder for one in chosen.newest]), chosen)


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
def found(spark: SparkSession, fleet: Path) -> Checked:
    return checked(spark, fleet)


def kinds_of(found: Checked, cluster: str) -> set[str]:
    return {one.kind for one in found.quarantine if one.cluster == cluster}


@pytest.mark.parametrize("kind", sorted(broken.BROKEN))
def test_a_broken_cluster_is_quarantined_for_what_is_wrong_with_it(found: Checked, kind: str) -> None:
    name = MISNAMED.get(kind, kind.lower())
    assert kinds_of(found, name) == {kind} | ({"IsrOutsideReplicas"} if kind == "LeaderOutsideReplicas" else set())
    assert all(one.rows >= 1 and one.example for one in found.quarantine)


def test_every_fault_has_a_cluster_that_has_it() -> None:
    faults = {*checks.Kind, *choose.Kind, *rules.FAULTS} - broken.NOTES
    assert broken.BROKEN.keys() == faults
    assert len(faults) > 30


def test_the_others_are_the_same_as_without_broken_ones(
    spark: SparkSession, tmp_path: Path, fleet: Path, found: Checked
) -> None:
    for name in GOOD:
        broken.good(tmp_path, name)
        broken.good(tmp_path, name, days_ago=1)
    alone = checked(spark, tmp_path)
    assert alone.quarantine == alone.notes == ()
    assert [one for one in found.newest if one.folder.cluster in GOOD] == list(alone.newest)
    assert [one for one in found.history if one.folder.cluster in GOOD] == list(alone.history)
    assert {one.folder.cluster for one in found.newest} == {*GOOD}
    assert [one for one in found.notes if one.cluster in GOOD] == []


def test_names_from_a_snapshot_cannot_steer_a_terminal() -> None:
    verdict = Verdict("a", "2026-01-31", "brokers", "UnreadableRack", 1, "broker 1 is in /a\x1b[2J\n/b", False)
    verdicts = pa.Table.from_pylist([verdict._asdict()], quality.VERDICTS)
    [note] = quality.checked(choose.choose([]), verdicts).notes
    assert note.example == "broker 1 is in /a?[2J?/b"


def test_the_same_snapshots_have_the_same_verdicts(spark: SparkSession, fleet: Path, found: Checked) -> None:
    again = checked(spark, fleet)
    assert again[:4] == found[:4]


def test_rejected_rows_are_kept_with_all_that_they_say(spark: SparkSession, fleet: Path) -> None:
    chosen = choose.choose(inventory.take(spark, str(fleet)))
    rows = check(spark, fleet, chosen)["rejected"].to_pylist()
    assert [*rows[0]] == REJECTED.names
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


def test_every_kind_is_explained() -> None:
    said = set(re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", DOCS.read_text(), re.MULTILINE))
    told = {
        rule.kind
        for some in (rules.BROKERS, rules.LOG_DIRS, rules.PARTITIONS, rules.REPLICAS, rules.ELSEWHERE, rules.TOPICS)
        for rule in some
    }
    assert said >= {*checks.Kind, *choose.Kind, *rules.FAULTS, *told}


def test_what_is_only_not_well_is_noted_and_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    broken.edited(folder, "brokers", lambda rows: [rows[0] | {"alive": False, "rack": "plain"}, *rows[1:]])
    broken.edited(folder, "brokers", lambda rows: [*rows[:-1], rows[-1] | {"rack": "/b//2"}])
    broken.edited(folder, "log_dirs", lambda rows: [rows[0] | {"online": False}, *rows[1:]])
    broken.edited(folder, "log_dirs", lambda rows: [*rows[:-1], rows[-1] | {"total_bytes": None}])
    nothing_known = {"size_bytes": None, "leader": None, "isr": []}
    broken.edited(folder, "partitions", lambda rows: [*rows[:-2], *(row | nothing_known for row in rows[-2:])])
    broken.good(tmp_path, "main", days_ago=1, id="before")
    found = checked(spark, tmp_path)
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


def test_unknown_sizes_are_not_too_many_bytes(spark: SparkSession, tmp_path: Path) -> None:
    unknown = [{"partition": number, "size_bytes": None} for number in range(400)]  # of three replicas
    broken.edited(broken.good(tmp_path, "main"), "partitions", lambda rows: [rows[0] | each for each in unknown])
    found = checked(spark, tmp_path)
    assert ([one.kind for one in found.notes], found.quarantine) == (["SizeUnknown"], ())


def test_a_file_that_goes_meanwhile_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    chosen = choose.choose(inventory.take(spark, str(tmp_path)))
    tables = read(spark, str(tmp_path), [one.folder for one in chosen.newest])
    (folder / "partitions.parquet").unlink()
    with pytest.raises(PlanningError, match="cannot be read") as error:
        quality.check(str(tmp_path), tables, chosen)
    assert (error.value.reason, "\n" in error.value.message) == (Reason.SPARK_FAILED, False)  # so a Job begins again
    with pytest.raises(PlanningError, match="cannot be read") as error:
        read(spark, str(tmp_path), [one.folder for one in chosen.newest])
    assert "\n" not in error.value.message
