"""Folders of this machine, which a run lists itself: what it meets there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.files import snapshots
from reassign.files.schema import SCHEMAS
from reassign.fleet import choose, inventory, stages
from reassign.fleet.choose import Folder
from reassign.fleet.job import Job
from reassign.fleet.policy import FleetPolicy, parse
from reassign.spark.storage import Storage
from reassign.spark.stored import Stored
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


def refusing(patch: pytest.MonkeyPatch, error: OSError, *folders: Path) -> None:
    """Let these folders not be listed; root may list all."""
    real = os.scandir

    def scandir(path: str) -> Any:
        if Path(path) in folders:
            raise error
        return real(path)

    patch.setattr(os, "scandir", scandir)


def test_a_clusters_folder_that_goes_meanwhile_is_its_fault(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = broken.good(tmp_path, "main")
    broken.good(tmp_path, "other")
    refusing(monkeypatch, FileNotFoundError(2, "No such file or directory"), folder)
    why = "its folder cannot be read (No such file or directory)"
    assert sorted(faults(spark, tmp_path)) == [("main", table, why) for table in sorted(SCHEMAS)]


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


def test_a_day_that_cannot_be_read_leaves_out_what_may_be_in_it(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "snapshots"
    broken.good(root, "before", days_ago=2)
    broken.good(root, "after")
    (root / "date=2026-01-30").symlink_to("nothing")
    policy = parse("overrides: [{clusters: [hidden], waves: {maxPartitions: 1}}]", "")  # it may be in that folder
    (tmp_path / "manifests" / "clusters" / "hidden").mkdir(parents=True)
    wave = tmp_path / "manifests" / "clusters" / "hidden" / "wave-1.yaml"
    wave.write_text("")
    result = stages.run(spark, Job(str(root), policy, str(tmp_path / "work"), tmp_path / "manifests"), lambda: None)
    left_out = {name: problem["reason"] for name, problem in (result.left_out | result.days).items()}
    assert left_out == {"before": "FileNotRead", "date=2026-01-30/": "FileNotRead"}
    assert (result.clusters, result.left_out.keys()) == (2, {"before"})
    assert "a newer one may be in date=2026-01-30: it cannot be read" in result.left_out["before"]["message"]
    assert result.summaries.keys() == {"after"}
    assert wave.exists()


def test_where_no_day_can_be_read_the_run_ends(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / f"date={broken.DAY}").symlink_to("nothing")
    with pytest.raises(PlanningError, match=f"date={broken.DAY}: it cannot be read") as error:
        inventory.take(spark, str(tmp_path))
    assert error.value.reason is Reason.CANNOT_BE_READ


@pytest.mark.parametrize("closed", [f"date={broken.DAY}", f"date={broken.DAY}/cluster=main"])
def test_a_folder_that_spark_cannot_list_is_told_from_the_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    monkeypatch.setattr(inventory, "LOCAL", "nowhere:")
    broken.good(tmp_path, "main")
    other = broken.good(tmp_path, "other", days_ago=1)
    find, names = inventory.find, Storage.names

    def refusing(storage: Storage, folder: str) -> list[str]:
        return names(storage, f"{folder}/nothing" if folder.endswith(closed) else folder)

    def find_readable(spark: SparkSession, base: str, ending: str, folders: Any = None) -> Any:
        if folders is None or any(folder.startswith(closed) for folder in folders):
            Storage(spark).names(f"{base}/nothing")
        return find(spark, base, ending, folders)

    monkeypatch.setattr(Storage, "names", refusing)
    monkeypatch.setattr(inventory, "find", find_readable)
    files = inventory.take(spark, str(tmp_path)).files
    unread = {file.path for file in files if file.kind == choose.Kind.NOT_READ}
    tables = {f"{closed}/{table}.parquet" for table in SCHEMAS}
    assert unread == (tables if "cluster" in closed else {closed})
    assert {file.path for file in files} - unread == {str(file.relative_to(tmp_path)) for file in other.iterdir()}


def test_a_file_whose_length_spark_cannot_tell_is_a_fault_of_its_cluster(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "LOCAL", "nowhere:")
    file = broken.good(tmp_path, "main") / "configs.parquet"
    file.unlink()
    file.symlink_to("/sys/class/net/lo/speed")  # which can be opened, and not read
    listed = Stored.listed

    def refusing(stored: Stored, base: str) -> Any:
        if any(path.endswith("configs.parquet") for path in stored.urls):
            raise PySparkException("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file")
        return listed(stored, base)

    monkeypatch.setattr(Stored, "listed", refusing)
    assert faults(spark, tmp_path) == [("main", "configs", "it cannot be read (Invalid argument)")]


def test_a_link_for_a_clusters_folder_is_noticed_before_the_pass(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.good(tmp_path / "snapshots", "main")
    (tmp_path / "manifests" / "clusters").mkdir(parents=True)
    (tmp_path / "manifests" / "clusters" / "main").symlink_to(tmp_path)
    monkeypatch.delattr(stages, "one_pass")
    job = Job(str(tmp_path / "snapshots"), FleetPolicy(), str(tmp_path / "work"), tmp_path / "manifests")
    with pytest.raises(PlanningError, match="main is a symbolic link: replace it by a folder"):
        stages.run(spark, job, lambda: None)


def test_a_file_that_is_a_link_to_nothing_is_a_fault_of_its_cluster(spark: SparkSession, tmp_path: Path) -> None:
    file = broken.good(tmp_path, "main") / "configs.parquet"
    file.unlink()
    file.symlink_to(tmp_path / "nothing")
    assert faults(spark, tmp_path) == [("main", "configs", "it cannot be read (No such file or directory)")]


def test_a_folder_that_has_no_snapshots_may_be_unreadable(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.good(tmp_path, "main")
    (tmp_path / "lost+found").mkdir()
    refusing(monkeypatch, PermissionError(13, "Permission denied"), tmp_path / "lost+found")
    assert faults(spark, tmp_path) == []


def test_a_root_that_cannot_be_read_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.good(tmp_path, "main")
    refusing(monkeypatch, PermissionError(13, "Permission denied"), tmp_path)
    with pytest.raises(PlanningError, match=r"cannot be read \(Permission denied\): check its storage") as error:
        inventory.take(spark, str(tmp_path))
    assert error.value.reason is Reason.CANNOT_BE_READ


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
