"""Broken clusters are told apart from the others, each by the kind of what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reassign.files import checks
from reassign.fleet import choose, inventory, quality, rules
from reassign.fleet.quality import REJECTED, Checked
from tests.fleet import broken

GOOD = ("a", "m", "z")
MISNAMED = {"FolderName": "foldername_Old"}


def checked(spark: SparkSession, root: Path) -> Checked:
    chosen = choose.choose(inventory.take(spark, str(root)))
    return quality.checked(chosen, quality.check(spark, str(root), chosen)["verdicts"])


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
    name = MISNAMED.get(kind, "duplicatesnapshot-copy" if kind == "DuplicateSnapshot" else kind.lower())
    assert kinds_of(found, name) == {kind} | ({"IsrOutsideReplicas"} if kind == "LeaderOutsideReplicas" else set())
    assert all(one.rows >= 1 and one.example for one in found.quarantine)


def test_every_fault_has_a_cluster_that_has_it() -> None:
    faults = {*checks.Kind, *choose.Kind, *rules.FAULTS} - {choose.Kind.NEW_ID, choose.Kind.NO_PARTITIONS}
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
    assert {one.folder.cluster for one in found.newest} == {*GOOD, "duplicatesnapshot"}
    assert [one for one in found.notes if one.cluster in GOOD] == []


def test_the_same_snapshots_have_the_same_verdicts(spark: SparkSession, fleet: Path, found: Checked) -> None:
    again = checked(spark, fleet)
    assert again[:4] == found[:4]


def test_rejected_rows_are_kept_with_all_that_they_say(spark: SparkSession, fleet: Path) -> None:
    chosen = choose.choose(inventory.take(spark, str(fleet)))
    rows = quality.check(spark, str(fleet), chosen)["rejected"].toArrow().to_pylist()
    assert ", ".join(f"{name} string" for name in rows[0]) == REJECTED
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
