"""Folders of this machine, which a run lists itself: what it meets there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.files import snapshots
from reassign.files.schema import SCHEMAS
from reassign.fleet import choose, inventory, stages
from reassign.fleet.choose import Folder
from reassign.fleet.job import Job
from reassign.fleet.policy import FleetPolicy
from tests.fleet import broken


def faults(spark: SparkSession, root: Path) -> list[tuple[str | None, str, str | None]]:
    files = inventory.take(spark, str(root)).files
    return [(file.cluster, file.table, file.problem) for file in files if file.problem]


def test_a_clusters_folder_that_cannot_be_read_is_its_fault(spark: SparkSession, tmp_path: Path) -> None:
    day = broken.good(tmp_path, "main").parent
    for name, target in {"gone": "nothing", "circle": "cluster=circle", "day": ".", "file": "file"}.items():
        (day / f"cluster={name}").symlink_to(day / target)
    for name, target in {"a": "b", "b": "a"}.items():
        (day / f"cluster={name}").mkdir()
        (day / f"cluster={name}" / "to").symlink_to(day / f"cluster={target}")
    for other in ("file", "cluster=main.tar.gz"):
        (day / other).write_text("")
    (day / "circle").symlink_to(day / "circle")
    why = {
        "gone": "No such file or directory",
        "circle": "Too many levels of symbolic links",
        "day": "it is a link to a folder around it",
        "file": "Not a directory",
    }
    expected = [
        (name, table, f"its folder cannot be read ({reason})") for name, reason in why.items() for table in SCHEMAS
    ]
    expected += [(name, "brokers", "its folder has no table") for name in "ab"]
    assert sorted(faults(spark, tmp_path)) == sorted(expected)


def test_a_clusters_folder_that_goes_meanwhile_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = broken.good(tmp_path, "main"), os.scandir

    def replacing(path: str) -> Any:
        if path == str(folder):
            raise FileNotFoundError(2, "No such file or directory")
        return real(path)

    monkeypatch.setattr(os, "scandir", replacing)
    with pytest.raises(PlanningError) as error:
        inventory.take(spark, str(tmp_path))
    assert error.value.reason is Reason.SPARK_FAILED


def test_a_clusters_newest_folder_without_a_table_leaves_it_out(spark: SparkSession, tmp_path: Path) -> None:
    broken.good(tmp_path, "main", days_ago=1)
    folder = tmp_path / f"date={broken.DAY}" / "cluster=main"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("")
    result = stages.run(spark, Job(str(tmp_path), FleetPolicy(), str(tmp_path / "work")), lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {"main": "MissingTable"}


def test_a_snapshot_that_was_about_to_be_replaced_leaves_its_cluster_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.good(tmp_path, "main.eu", days_ago=1)
    folder, rename = broken.good(tmp_path, "main.eu"), Path.rename
    monkeypatch.setattr(Path, "rename", lambda file, to: rename(file, to) if file == folder else killed())
    with pytest.raises(KeyboardInterrupt):
        snapshots.write(folder, snapshots.read(folder), replace=True)
    assert faults(spark, tmp_path) == [("main.eu", "brokers", "it was about to be replaced")]
    monkeypatch.undo()
    broken.good(tmp_path, "main.eu")
    assert faults(spark, tmp_path) == []


def killed() -> Path:
    raise KeyboardInterrupt


def test_a_day_that_is_a_link_to_nothing_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    broken.good(tmp_path, "main", days_ago=1)
    (tmp_path / f"date={broken.DAY}").symlink_to(tmp_path / "nothing")
    with pytest.raises(PlanningError, match=f"date={broken.DAY} cannot be read") as error:
        inventory.take(spark, str(tmp_path))
    assert error.value.reason is Reason.CANNOT_BE_READ


def test_a_file_that_is_a_link_to_nothing_is_a_fault_of_its_cluster(spark: SparkSession, tmp_path: Path) -> None:
    file = broken.good(tmp_path, "main") / "configs.parquet"
    file.unlink()
    file.symlink_to(tmp_path / "nothing")
    assert faults(spark, tmp_path) == [("main", "configs", "it cannot be read (No such file or directory)")]


def test_a_day_that_cannot_be_read_is_refused_and_no_other_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, real = broken.good(tmp_path, "main").parent, os.scandir

    def refusing(path: str) -> Any:
        if path in (str(day), str(tmp_path / "lost+found")):
            raise PermissionError(13, "Permission denied")
        return real(path)

    (tmp_path / "lost+found").mkdir()
    monkeypatch.setattr(os, "scandir", refusing)  # root may read all
    with pytest.raises(PlanningError, match=r"cannot be read \(Permission denied\): check its storage") as error:
        inventory.take(spark, str(tmp_path))
    assert str(day) in error.value.message


def test_links_are_followed_but_not_in_circles(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    elsewhere = broken.good(tmp_path / "elsewhere", "linked")
    folder = broken.good(root, "main")
    (folder.parent / "cluster=linked").symlink_to(elsewhere)
    (folder / "self").symlink_to(root)
    found = {file.path for file in inventory.take(spark, str(root)).files}
    assert found == {
        f"date={broken.DAY}/cluster={name}/{table}.parquet" for name in ("linked", "main") for table in SCHEMAS
    }


def test_a_name_that_is_no_text_is_a_fault_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    shutil.copytree(folder, os.fsdecode(os.fsencode(folder.parent) + b"/cluster=\xff"))
    Path(os.fsdecode(os.fsencode(folder.parent) + b"/cluster=\xfe\xff")).symlink_to("nothing")
    files = inventory.take(spark, str(tmp_path)).files
    assert {file.cluster for file in files} == {"main", *("\N{REPLACEMENT CHARACTER}" * length for length in (1, 2))}
    assert [*choose.wanted(files)] == [Folder(broken.DAY, "main")]
