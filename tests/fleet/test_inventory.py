"""Snapshots as Spark lists them: each file once, and none that is half-written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError
from reassign.files.schema import SCHEMAS
from reassign.fleet import choose, inventory
from reassign.fleet.choose import Folder
from tests.fleet import broken


@pytest.fixture(autouse=True, params=["here", "elsewhere"])
def _storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are listed without a job, or by one as on another storage."""
    if request.param == "elsewhere":
        monkeypatch.setattr(inventory, "LOCAL", "nowhere:")


def folders(spark: SparkSession, root: Path | str) -> list[Folder]:
    return [*choose.wanted(inventory.take(spark, str(root)).files)]


def test_files_are_listed_and_any_change_of_one_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    broken.good(tmp_path, "main", days_ago=1)
    listing = inventory.take(spark, str(tmp_path))
    assert [file.path for file in listing.files] == sorted(str(f.relative_to(tmp_path)) for f in tmp_path.glob("*/*/*"))
    assert all(file.length == (tmp_path / file.path).stat().st_size for file in listing.files)
    assert inventory.take(spark, str(tmp_path)).digest == listing.digest
    written = (folder / "brokers.parquet").stat().st_mtime
    os.utime(folder / "brokers.parquet", (written + 1, written + 1))
    assert inventory.take(spark, str(tmp_path)).digest != listing.digest


def test_what_is_half_written_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    for name in (".main.x1", "_temporary", "_delta=1"):
        shutil.copytree(folder, folder.parent / name)
        shutil.copytree(folder, tmp_path / name / "date=2026-01-31" / "cluster=main")
    shutil.copy(folder / "brokers.parquet", folder / "_brokers.parquet")
    files = inventory.take(spark, str(tmp_path)).files
    assert len([file for file in files if file.table in SCHEMAS]) == len(SCHEMAS)
    assert [*choose.wanted(files)] == [Folder("2026-01-31", "main")]


def test_a_root_may_have_almost_any_name(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "a b+%20,(x)'é"
    broken.good(root, "main")
    for given in (str(root), f"{root}/", f"file://{tmp_path}/x/../{root.name}"):
        assert folders(spark, given) == [Folder("2026-01-31", "main")], given


def test_a_clusters_folder_without_a_table_is_a_fault_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    day = broken.good(tmp_path, "main").parent
    for name in ("cluster=empty", "cluster=notes", ".cluster=half.x1", "_temporary"):
        (day / name).mkdir()
    (day / "cluster=notes" / "notes.parquet").write_text("")
    (day / "cluster=main.tar.gz").mkdir()
    files = inventory.take(spark, str(tmp_path)).files
    assert {(file.cluster, file.table, file.problem) for file in files if file.problem} == {
        (name, "brokers", "its folder has no table") for name in ("empty", "main.tar.gz", "notes")
    }


def test_an_empty_file_is_there(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "a b+%20,(x)'é"
    folder = broken.good(root, "main")
    lengths = {file.path: file.length for file in inventory.take(spark, str(root)).files}
    (folder / "brokers.parquet").write_bytes(b"")
    there = {file.path: file.length for file in inventory.take(spark, str(root)).files}
    assert there == lengths | {str(folder.relative_to(root) / "brokers.parquet"): 0}


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_only_files_that_are_asked_for_are_opened(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    monkeypatch.setattr(inventory, "LOCAL", "nowhere:")
    root = tmp_path / "a b+%20,(x)'é"
    broken.good(root, "main")
    listing = inventory.take(spark, str(root))
    asked, others = listing.files[:wanted], listing.files[wanted:]
    for file in others:
        (root / file.path).unlink()
    assert listing.stored
    found = listing.stored.content_of({f"{listing.base}/{file.path}" for file in asked}).toArrow()
    assert sorted(map(len, found["content"].to_pylist())) == sorted(file.length for file in asked)


def refusal(spark: SparkSession, root: str) -> str:
    with pytest.raises(PlanningError) as error:
        inventory.take(spark, root)
    assert "\n" not in error.value.message
    return error.value.message


def test_a_root_without_snapshots_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    assert "there is no" in refusal(spark, str(tmp_path / "none"))
    assert "has no snapshot: take one with" in refusal(spark, str(tmp_path))
    broken.good(tmp_path, "main")
    assert "name the folder above them" in refusal(spark, str(tmp_path / "date=2026-01-31"))


def test_storage_that_spark_cannot_use_is_one_sentence(spark: SparkSession) -> None:
    assert "nosuch" in refusal(spark, "nosuch://bucket/snapshots")
    assert "cannot be read" in refusal(spark, "s3a://bucket/snapshots")


def test_names_that_spark_reads_as_patterns_are_no_patterns_here(spark: SparkSession, tmp_path: Path) -> None:
    broken.good(tmp_path / "[a]", "main")
    if inventory.LOCAL == "file:":
        assert folders(spark, tmp_path / "[a]") == [Folder(broken.DAY, "main")]
    else:
        assert "reads as a pattern: give the folder another name" in refusal(spark, f"{tmp_path}/[a]")
