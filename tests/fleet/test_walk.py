"""Folders of this machine, which a run lists itself: what it meets there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError
from reassign.files.schema import SCHEMAS
from reassign.fleet import choose, inventory
from reassign.fleet.choose import Folder
from tests.fleet import broken


def faults(spark: SparkSession, root: Path) -> list[tuple[str | None, str, str | None]]:
    files = inventory.take(spark, str(root)).files
    return [(file.cluster, file.table, file.problem) for file in files if file.problem]


def test_a_clusters_folder_that_cannot_be_read_is_its_fault(spark: SparkSession, tmp_path: Path) -> None:
    day = broken.good(tmp_path, "main").parent
    (day / "cluster=gone").symlink_to(tmp_path / "nothing")
    (day / "cluster=file").write_text("")
    (day / "cluster=circle").symlink_to(day / "cluster=circle")
    (day / "circle").symlink_to(day / "circle")
    expected = (
        {("circle", name, "its folder cannot be read (Too many levels of symbolic links)") for name in SCHEMAS}
        | {("gone", name, "its folder cannot be read (No such file or directory)") for name in SCHEMAS}
        | {("file", name, "its folder cannot be read (Not a directory)") for name in SCHEMAS}
    )
    assert set(faults(spark, tmp_path)) == expected


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
    files = inventory.take(spark, str(tmp_path)).files
    assert {file.cluster for file in files} == {"main", "\N{REPLACEMENT CHARACTER}"}
    assert [*choose.wanted(files)] == [Folder(broken.DAY, "main")]
