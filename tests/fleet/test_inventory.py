"""Snapshots as Spark finds them: each file once, and what is wrong with it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError
from reassign.files import checks
from reassign.fleet import choose, inventory
from reassign.fleet.choose import Folder
from tests.fleet import broken

FILES = {*checks.Kind, *choose.Kind} - broken.NOTES
"""Those that quarantine."""


def test_each_file_is_listed_with_its_metadata(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    broken.good(tmp_path, "main", days_ago=1)
    found = {file.path: file for file in inventory.take(spark, str(tmp_path))}
    assert len(found) == 8
    file = found["date=2026-01-31/cluster=main/partitions.parquet"]
    content = (folder / "partitions.parquet").read_bytes()
    assert (file.length, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert file.metadata
    assert (file.metadata.cluster_id, file.metadata.taken_at) == ("id-of-main", broken.TAKEN)
    assert file.metadata.rows == {"brokers": 4, "log_dirs": 8, "partitions": 12, "configs": 2}
    assert all(each.sha256 and each.kind is None for each in found.values())


def test_faults_of_files_and_folders_are_named_and_the_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "z"):
        broken.good(tmp_path, name)
    alone = choose.choose(inventory.take(spark, str(tmp_path)))
    for kind in sorted(FILES):
        broken.BROKEN[kind](tmp_path, kind.lower())
    found = choose.choose(inventory.take(spark, str(tmp_path)))
    assert {one.kind for one in found.verdicts if one.quarantines} == FILES
    sound = {one.folder.cluster: one for one in found.newest}
    assert sound.keys() == {"a", "z"}
    assert tuple(sound[name] for name in ("a", "z")) == alone.newest
    assert all("\n" not in one.example for one in found.verdicts)


@pytest.mark.parametrize("name", [".main.x1", "_temporary", "_delta=1"])
def test_what_is_half_written_does_not_count(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = broken.good(tmp_path, "main")
    shutil.copytree(folder, folder.parent / name)
    shutil.copytree(folder.parent, tmp_path / name / "date=2026-01-31")
    shutil.copy(folder / "brokers.parquet", folder / "_brokers.parquet")
    found = choose.choose(inventory.take(spark, str(tmp_path)))
    assert [one.folder for one in found.newest] == [Folder("2026-01-31", "main")]
    assert found.verdicts == ()


def test_a_root_may_have_almost_any_name(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "a b+%20,(x)'é"
    broken.good(root, "main")
    for given in (str(root), f"{root}/", f"file://{tmp_path}/x/../{root.name}"):
        assert len(choose.choose(inventory.take(spark, given)).newest) == 1, given


def refusal(spark: SparkSession, root: str) -> str:
    with pytest.raises(PlanningError) as error:
        inventory.take(spark, root)
    assert "\n" not in error.value.message
    return error.value.message


def test_a_root_without_snapshots_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    assert "there is no" in refusal(spark, str(tmp_path / "none"))
    assert "has no snapshot: take one with" in refusal(spark, str(tmp_path))
    assert "reads as a pattern" in refusal(spark, f"{tmp_path}/*")
    broken.good(tmp_path, "main")
    assert "name the folder above them" in refusal(spark, str(tmp_path / "date=2026-01-31"))


def test_storage_that_spark_cannot_use_is_one_sentence(spark: SparkSession) -> None:
    assert "nosuch" in refusal(spark, "nosuch://bucket/snapshots")
    assert "cannot be read" in refusal(spark, "s3a://bucket/snapshots")
