"""What Spark's workers say of clusters is what the one function says, whatever cluster is beside them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession

from localplatform.processes import wait_until
from reassign.errors import PlanningError, Reason
from reassign.files import snapshots
from reassign.fleet import handout, inventory, one_pass
from reassign.fleet.choose import Folder
from reassign.fleet.handout import LARGE, outcomes
from reassign.fleet.job import Job
from reassign.fleet.kept import FOLDER, MARKER, Kept
from reassign.fleet.outcomes import KINDS, Row, of_kind
from reassign.fleet.policy import FleetPolicy, parse
from reassign.fleet.stages import run, summaries_of
from reassign.planning.unseen import ALL_SEEN, Unseen, UnseenLogs
from reassign.spark import session
from reassign.spark.executors import has_crashed
from reassign.spark.storage import failure
from tests.benchmarks.instances import Made, cluster
from tests.fleet import broken
from tests.fleet.judged import ask
from tests.fleet.program import Place
from tests.snapshots import as_of_version_2, in_sync

LOST = "its process has ended"
TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
POLICY = """
overrides:
- {clusters: [c1], goal: {drainBrokers: [2]}, template: {throttle: {interBroker: 1Mi}}, waves: {maxBytes: 100Gi}}
- {clusters: [c2], goal: {replicationFactor: 2}}
- {clusters: [c3], goal: {drainBrokers: [77]}}
"""
CLUSTERS = {
    f"c{seed}": replace(cluster(Made(300 + 300 * seed, 6, seed=seed, racks=(3,))), id=f"id-{seed}") for seed in range(4)
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    for name, made in CLUSTERS.items():
        unseen = Unseen((UnseenLogs(2, "hidden", 3, 2**30),)) if name == "c1" else ALL_SEEN
        snapshots.write(snapshots.place(root, name, TAKEN), in_sync(replace(made, unseen=unseen), TAKEN))
    as_of_version_2(snapshots.place(root, "c0", TAKEN))
    return root


@pytest.fixture(scope="module")
def brought(spark: SparkSession, root: Path) -> pa.Table:
    """What is said where Spark brings the files' content."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inventory, "LOCAL", "nowhere:")
        return asked(spark, root, LARGE).toArrow()


@pytest.fixture(scope="module")
def said(spark: SparkSession, root: Path) -> pa.Table:
    return asked(spark, root, LARGE).toArrow()


def asked(spark: SparkSession, root: Path, own_process_from: int) -> DataFrame:
    listing = inventory.take(spark, str(root))
    folders = one_pass.wanted(listing.files)
    return outcomes(listing, folders, folders.keys(), parse(POLICY, ""), own_process_from)


def of(rows: pa.Table, name: str, kind: str) -> pa.Table:
    return of_kind(rows, kind).filter(pc.equal(of_kind(rows, kind)["cluster"], name))


@pytest.mark.parametrize("name", CLUSTERS)
def test_each_cluster_has_the_planners_plan_under_its_own_policy(root: Path, said: pa.Table, name: str) -> None:
    alone = ask(root, Folder("2026-01-31", name), policy=parse(POLICY, ""))
    for kind in (
        "files",
        "verdicts",
        "broker_load",
        "rack_load",
        "directory_load",
        "cluster_load",
        "plans",
        "planned_load",
        "manifests",
    ):
        assert of(said, name, kind).equals(of(alone, name, kind)), kind


def test_a_run_reads_snapshots_of_an_earlier_version_beside_others(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "snapshots"
    broken.good(root, "new")
    for days_ago in (0, 1):
        as_of_version_2(broken.good(root, "old", days_ago=days_ago))
    job = Job(str(root), parse("defaults: {goal: {drainBrokers: [4]}}", ""), str(tmp_path / "work"))
    result = run(spark, job, lambda: None)
    assert result.left_out == {}
    assert [(one.cluster, one.kind) for one in result.verdicts] == [("old", "UnseenNotKnown")]
    assert {name: row["unmet"] for name, row in result.summaries.items()} == {"new": 0, "old": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_whoever_reads_the_files(said: pa.Table, brought: pa.Table, kind: str) -> None:
    assert of_kind(brought, kind).equals(of_kind(said, kind))


def test_a_file_that_a_worker_may_not_read_is_a_fault_of_its_cluster(
    spark: SparkSession, root: Path, said: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handout.content_at

    def refusing(path: str) -> pa.Buffer:
        if path.endswith("cluster=c1/brokers.parquet"):  # root may read all
            raise PermissionError(13, "Permission denied")
        return real(path)

    job = Job(str(root), FleetPolicy(), str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(handout, "content_at", refusing)
        result = run(spark, job, lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {"c1": "FileNotRead"}
    assert (
        "brokers: it cannot be read (Permission denied); let this program read it" in result.left_out["c1"]["message"]
    )
    assert run(spark, job, lambda: None).left_out == {}  # the pass is not kept


def doubled(file: Path) -> None:
    file.write_bytes(file.read_bytes() * 2)


def gone(file: Path) -> None:
    file.unlink()


def failing(file: Path) -> None:
    file.unlink()
    file.symlink_to("/sys/class/net/lo/speed")  # which can be opened, and not read


WRONG = {
    "file:": {doubled: "it has changed or gone", gone: "it has changed or gone", failing: "Invalid argument"},
    "nowhere:": {doubled: "it has changed or gone", gone: "does not exist", failing: "Invalid argument"},
}
"""What is said of a file, by the storage that workers read themselves, all there is here or none."""


def broken_before_it_is_read(patch: pytest.MonkeyPatch, *files: Path, breaks: Callable[[Path], None]) -> None:
    """Break files when all are listed and none is read."""
    wanted, left = one_pass.wanted, [*files]

    def breaking(*about: Any) -> Any:
        while left:
            breaks(left.pop())
        return wanted(*about)

    patch.setattr(one_pass, "wanted", breaking)


@pytest.mark.parametrize(("local", "breaks"), [(local, breaks) for local in WRONG for breaks in WRONG[local]])
def test_a_file_that_cannot_be_read_leaves_out_its_cluster_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: str, breaks: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(inventory, "LOCAL", local)
    folder = broken.good(tmp_path / "snapshots", "bad")
    broken.good(tmp_path / "snapshots", "other")
    broken_before_it_is_read(monkeypatch, folder / "configs.parquet", breaks=breaks)
    result = run(spark, Job(str(tmp_path / "snapshots"), FleetPolicy(), str(tmp_path / "work")), lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {"bad": "FileNotRead"}
    assert WRONG[local][breaks] in result.left_out["bad"]["message"]
    assert result.summaries.keys() == {"other"}
    assert not (tmp_path / "work" / FOLDER / MARKER).exists()  # another run may find it otherwise


@pytest.mark.parametrize("local", WRONG)
def test_where_no_file_can_be_read_the_run_ends(
    program: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    monkeypatch.setattr(inventory, "LOCAL", local)
    folder = broken.good(tmp_path / "snapshots", "main")
    broken_before_it_is_read(monkeypatch, *folder.iterdir(), breaks=gone)
    ran = Place(tmp_path / "snapshots", tmp_path).run()
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1), ran.err  # so a Job begins again
    assert "have changed or gone meanwhile, or are not where executors look" in ran.err


def test_an_unplannable_cluster_reports_why_and_affects_no_other(said: pa.Table) -> None:
    plans = {row["cluster"]: row["problem"] for row in of_kind(said, "plans").to_pylist()}
    assert plans == dict.fromkeys(CLUSTERS) | {
        "c3": {"reason": "InvalidGoal", "message": "broker 77 is not in the cluster: name brokers that are"}
    }
    assert {row["cluster"] for row in of_kind(said, "manifests").to_pylist()} == {"c0", "c1", "c2"}


def test_where_the_newest_folder_is_a_copy_the_snapshot_itself_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    folder = broken.good(tmp_path / "snapshots", "main", days_ago=1)
    copy = tmp_path / "snapshots" / f"date={broken.DAY}" / "cluster=main"
    copy.parent.mkdir()
    folder.rename(copy)
    broken.good(tmp_path / "snapshots", "main", days_ago=1)
    job = Job(str(tmp_path / "snapshots"), FleetPolicy(), str(tmp_path / "work"))
    result = run(spark, job, lambda: None)
    assert [(one.date, one.kind) for one in result.verdicts] == [(broken.DAY, "DuplicateSnapshot")]
    assert (result.left_out, result.summaries["main"]["problem"], len(result.loads)) == ({}, None, 1)


@pytest.mark.parametrize("own_process_from", [LARGE, 1], ids=["its worker", "its own"])
def test_clusters_that_kill_a_process_are_left_out_without_others(
    spark: SparkSession,
    root: Path,
    said: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own_process_from: int,
) -> None:
    real = handout.outcome_of

    def dying(folder: Folder, *about: Any) -> Row:
        if folder.cluster == "c2":
            os.kill(os.getpid(), signal.SIGKILL)
        if folder.cluster == "c1":
            raise MemoryError
        return real(folder, *about)

    monkeypatch.setattr(handout, "outcome_of", dying)
    monkeypatch.setattr(one_pass, "LARGE", own_process_from)
    job = Job(str(root), parse(POLICY, ""), str(tmp_path / "work"))
    result = run(spark, job, lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {
        "c1": "WorkerLost",
        "c2": "WorkerLost",
        "c3": "InvalidGoal",
    }
    assert "has ended, for want of memory: give" in result.left_out["c1"]["message"]
    assert "has ended, by signal 9 (Killed): give" in result.left_out["c2"]["message"]
    expected = summaries_of(of_kind(said, "plans"))
    assert result.summaries == {name: expected[name] for name in ("c0", "c3")}
    assert not (tmp_path / "work" / FOLDER / MARKER).exists()  # another run may find it otherwise


def test_a_cluster_that_is_lost_is_asked_again_by_the_next_run(
    spark: SparkSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handout.outcome_of

    def dying(folder: Folder, *about: Any) -> Row:
        if folder.cluster == "c2":
            raise MemoryError
        return real(folder, *about)

    job = Job(str(root), FleetPolicy(), str(tmp_path / "work"))
    with monkeypatch.context() as patch:
        patch.setattr(handout, "outcome_of", dying)
        lost = run(spark, job, lambda: None)
    assert {name: problem["reason"] for name, problem in lost.left_out.items()} == {"c2": "WorkerLost"}
    again = run(spark, job, lambda: None)
    assert again.left_out == {}


def test_one_shuffle_brings_the_files_of_a_snapshot_together(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark.range(1)), "localCheckpoint", lambda rows, **_: rows)
    plan = asked(spark, root, own_process_from=LARGE)._jdf.queryExecution().executedPlan().toString()
    assert re.findall(r"\bExchange \w+", plan) == ["Exchange shufflepartitionidpassthrough"], plan


def test_large_snapshots_have_processes_that_end_for_themselves(
    spark: SparkSession, root: Path, said: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, in_own_process = handout.outcome_of, handout.in_own_process

    def noting(folder: Folder, *about: Any) -> Row:
        (tmp_path / folder.cluster).write_text(str(os.getppid()))
        if folder.cluster == "c2":
            os.kill(os.getpid(), signal.SIGKILL)
        if folder.cluster == "c3":
            raise IndexError("a bug")
        return real(folder, *about)

    def noting_sharers(ask: Any, seconds: int, sharers: int) -> pa.Table:
        (tmp_path / "sharers").write_text(str(sharers))
        return in_own_process(ask, seconds, sharers)

    monkeypatch.setattr(handout, "outcome_of", noting)
    monkeypatch.setattr(handout, "in_own_process", noting_sharers)
    monkeypatch.setattr(handout, "slots", lambda _: 3)
    sizes = {name: sum(row["length"] for row in of(said, name, "files").to_pylist()) for name in CLUSTERS}
    assert sizes["c0"] < sizes["c1"] < sizes["c2"] < sizes["c3"]
    rows = asked(spark, root, own_process_from=sizes["c2"]).toArrow()
    assert all(
        of(rows, name, kind).equals(of(said, name, kind)) for name in ("c0", "c1") for kind in ("files", "plans")
    )
    why = {name: {row["problem"] for row in of(rows, name, "files").to_pylist()} for name in ("c2", "c3")}
    assert why == {
        "c2": {f"{LOST}, by signal 9 (Killed)"},
        "c3": {f"{LOST}, by an error (IndexError: a bug), of which Spark's log has the traceback"},
    }
    assert wait_until(lambda: b"IndexError: a bug" in session.LOG.read_bytes())
    parents = {name: (tmp_path / name).read_text() for name in CLUSTERS}
    assert parents["c0"] == parents["c1"] not in (parents["c2"], parents["c3"])  # the first two are of workers
    assert (tmp_path / "sharers").read_text() == "2"  # and not 3: no others have one


def test_a_snapshot_that_hangs_is_left_out(
    spark: SparkSession, root: Path, said: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handout.outcome_of

    def hanging(folder: Folder, *about: Any) -> Row:
        if folder.cluster == "c2":
            (tmp_path / str(os.getpid())).write_text(str(signal.alarm(1)))  # what it may take is too long for a test
            signal.pause()
        return real(folder, *about)

    monkeypatch.setattr(handout, "outcome_of", hanging)
    result = run(spark, Job(str(root), parse(POLICY, ""), str(tmp_path / "work")), lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {
        "c2": "WorkerLost",
        "c3": "InvalidGoal",
    }
    assert "has ended, since it took longer than 600 s" in result.left_out["c2"]["message"]
    alarms = [int(file.read_text()) for file in tmp_path.glob("[0-9]*")]
    assert len(alarms) == 2, alarms  # of a worker, and then of its own process
    assert min(alarms) > 500


def test_where_the_newest_snapshot_is_of_the_future_one_before_counts(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "snapshots"
    future = datetime.now(UTC) + timedelta(days=2)
    for name in ("clock", "folder"):
        broken.good(root, name)
    for name in ("clock", "only"):
        snapshots.write(root / f"date={broken.DAY}" / "x", in_sync(broken.whole(name), future))
        place = snapshots.place(root, name, future)
        place.parent.mkdir(exist_ok=True)
        (root / f"date={broken.DAY}" / "x").rename(place)
    broken.good(root, "folder", days_ago=1).rename(root / f"date={future.date()}" / "cluster=folder")
    job = Job(str(root), FleetPolicy(), str(tmp_path / "work"))
    result = run(spark, job, lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == {"only": "FutureSnapshot"}
    assert {(one.cluster, one.kind) for one in result.verdicts} == {
        (name, "FutureSnapshot") for name in ("clock", "folder", "only")
    }
    assert result.summaries.keys() == {"clock", "folder"}
    assert run(spark, job, lambda: None).reused  # until its day comes


def test_a_file_that_is_too_large_leaves_out_its_cluster_alone(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("large", "larger", "whole"):
        broken.good(tmp_path / "snapshots", name)
    folder = tmp_path / "snapshots" / f"date={broken.DAY}"
    os.truncate(folder / "cluster=larger" / "partitions.parquet", 1 << 31)  # a hole, which takes no room
    for file in (folder / "cluster=large").iterdir():
        os.truncate(file, inventory.LARGEST + 1)
    job = Job(str(tmp_path / "snapshots"), FleetPolicy(), str(tmp_path / "work"))
    result = run(spark, job, lambda: None)
    assert {name: problem["reason"] for name, problem in result.left_out.items()} == dict.fromkeys(
        ("large", "larger"), "UnreadableFile"
    )
    assert "it has 2,147,483,648 bytes, and up to 268,435,456 are read" in result.left_out["larger"]["message"]
    assert result.summaries.keys() == {"whole"}


def test_more_than_the_driver_takes_is_one_sentence(spark: SparkSession, root: Path) -> None:
    listing = inventory.take(spark, str(root))
    folders = one_pass.wanted(listing.files)
    found = outcomes(listing, folders, folders.keys(), FleetPolicy())
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", "1k")
    try:
        with pytest.raises((PySparkException, Py4JError)) as error:
            found.select("broker_load").toArrow()
    finally:
        settings.remove("spark.driver.maxResultSize")
    told = failure(error.value)
    assert told
    assert "too large for Spark's driver: raise spark.driver.maxResultSize, and" in told.message
    assert (told.reason, "\n" in told.message) == (Reason.SPARK_FAILED, False)


def test_each_snapshot_is_asked_once_whatever_becomes_of_sparks_caches(
    spark: SparkSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, collected = handout.outcome_of, one_pass._collected

    def noting(folder: Folder, *about: Any) -> Row:
        with (tmp_path / folder.cluster).open("a") as file:
            file.write("x")
        return real(folder, *about)

    def forgetting(*about: Any) -> Any:
        for rdd in spark.sparkContext._jsc.getPersistentRDDs().values():  # as where an executor is lost
            rdd.rdd().unpersist(True)
        spark.catalog.clearCache()
        return collected(*about)

    monkeypatch.setattr(handout, "outcome_of", noting)
    monkeypatch.setattr(one_pass, "_collected", forgetting)
    job = Job(str(root), parse(POLICY, ""), str(tmp_path / "work"))
    with pytest.raises((PySparkException, Py4JError)) as error:
        run(spark, job, lambda: None)
    told = failure(error.value)
    assert told
    assert "a worker of Spark's has ended" in told.message
    assert {(tmp_path / name).read_text() for name in CLUSTERS} == {"x"}


def test_of_missing_manifests_none_is_removed_and_the_next_run_makes_them(
    spark: SparkSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = tmp_path / "manifests"
    job = Job(str(root), parse(POLICY, ""), str(tmp_path / "work"), manifests)
    run(spark, job, lambda: None)
    before = {file: file.read_bytes() for file in manifests.rglob("wave-*.yaml")}
    assert before
    with monkeypatch.context() as patch:
        parts = Kept.parts
        patch.setattr(Kept, "parts", lambda *about: (part.slice(1) for part in parts(*about)))
        with pytest.raises(PlanningError, match="manifests are missing") as error:
            run(spark, job, lambda: None)
    assert error.value.reason is Reason.SPARK_FAILED
    assert {file: file.read_bytes() for file in before} == before
    assert not run(spark, job, lambda: None).reused


def test_what_a_worker_died_of_is_told_from_what_cannot_be_read() -> None:
    assert has_crashed(PythonException("MemoryError"))
    assert has_crashed(PySparkException("Job aborted: Python worker exited unexpectedly (crashed)"))
    assert has_crashed(PySparkException("Job aborted: ExecutorLostFailure (executor 1 exited, exit code 137)"))
    assert not has_crashed(PySparkException("[FAILED_READ_FILE.FILE_NOT_EXIST]"))
