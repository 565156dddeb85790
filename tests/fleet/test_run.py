"""Whole runs: the same input gives the same bytes, whatever happened in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from localplatform.processes import wait_until
from reassign.files import rules
from reassign.files.whole import alone_in
from reassign.fleet import stages
from reassign.fleet.kept import FOLDER, MARKER
from reassign.fleet.outcomes import DETAILS, in_order, of_kind
from reassign.fleet.policy import parse
from tests.benchmarks import fleet_loop
from tests.benchmarks.fleets import write_fleet
from tests.fleet import broken
from tests.fleet.program import Place, program
from tests.unit import cli
from tests.unit.cli import Ran

CLUSTERS = 3
THROTTLE = "leader.replication.throttled.rate"
POLICY = """
defaults: {namespace: kafka, waves: {maxPartitions: 40}, template: {throttle: {interBroker: 50Mi}}}
"""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    write_fleet(root / "snapshots", CLUSTERS, days=2)
    (root / "policy.yaml").write_text(POLICY)
    return root / "snapshots"


def policy_of(place: Place) -> tuple[str, Path]:
    return "--policy", place.snapshots.parent / "policy.yaml"


def run(place: Place, *options: str) -> Ran:
    return place.run(*policy_of(place), *options)


@pytest.fixture(scope="module")
def whole(snapshots: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """What one run makes, in a process and with a JVM of its own."""
    place = Place(snapshots, tmp_path_factory.mktemp("whole"))
    with place.begun(*policy_of(place)) as process:
        _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return place


def test_a_repeat_says_that_nothing_changed(program: None, whole: Place) -> None:
    before = whole.output()
    assert sorted(before)[-2:] == ["manifests/run.json", "report.html"]
    assert len(json.loads(before["manifests/run.json"])["clusters"]) == CLUSTERS
    ran = run(whole)
    assert (ran.code, ran.err) == (0, "")
    assert "as the run before left it" in " ".join(ran.out.split())
    assert f"0 files written, {len(before) - 2} unchanged, 0 removed" in ran.out
    assert whole.output() == before


def test_a_loop_without_spark_writes_the_same_manifests(whole: Place, tmp_path: Path) -> None:
    fleet_loop.main(whole.snapshots, tmp_path, parse(POLICY, "policy.yaml"))
    written = {str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.glob("clusters/*/*")}
    assert written
    assert written == {
        name.removeprefix("manifests/"): content
        for name, content in whole.output().items()
        if name.startswith("manifests/clusters/")
    }


def test_no_byte_depends_on_the_time_zone_of_sparks_session(program: None, spark: SparkSession, tmp_path: Path) -> None:
    for days_ago in range(3):
        folder = broken.good(tmp_path / "snapshots", "main", days_ago=days_ago)
        broken.edited(
            folder, "configs", lambda rows: [row | {"key": THROTTLE} for row in rows if row["kind"] == "broker"]
        )
    made = {}
    for zone in ("UTC", "Asia/Tokyo", "-11:30"):
        place = Place(tmp_path / "snapshots", tmp_path / zone.replace(":", ""))
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            assert place.run().code == 0
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert THROTTLE in place.report.read_text()
        tables = {
            str(file.relative_to(place.work)): file.read_bytes()
            for file in place.work.glob("*/*.parquet")
            if file.is_file()
        }
        made[zone] = place.output() | tables
    assert made["UTC"] == made["Asia/Tokyo"] == made["-11:30"]


@pytest.mark.parametrize("kind", DETAILS)
def test_the_lists_of_what_executors_keep_are_tables_in_sql(spark: SparkSession, whole: Place, kind: str) -> None:
    details = whole.work / FOLDER / "details"
    found = spark.read.parquet(str(details)).selectExpr("cluster", "date", f"inline({kind})").toArrow()
    assert in_order(found).equals(of_kind(pq.read_table(details), kind))
    assert found.num_rows


def test_manifests_are_written_by_the_executors_and_no_result_of_a_task(
    program: None, spark: SparkSession, whole: Place, tmp_path: Path
) -> None:
    place = Place(whole.snapshots, tmp_path)
    manifests = [len(content) for name, content in whole.output().items() if name.endswith(".yaml")]
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", str(sum(manifests) * 2 // 3))
    try:
        ran = run(place)
    finally:
        settings.remove("spark.driver.maxResultSize")
    assert (ran.code, ran.err) == (0, "")
    assert place.output() == whole.output()


def test_broken_clusters_are_named_and_change_no_manifest_of_others(program: None, tmp_path: Path) -> None:
    alone, beside = (Place(tmp_path / name / "snapshots", tmp_path / name) for name in ("alone", "beside"))
    for place in (alone, beside):
        for name in ("a", "z"):
            broken.good(place.snapshots, name)
            older = broken.good(place.snapshots, name, days_ago=1)
    (older / "partitions.parquet").write_bytes(b"PAR1 cut short")  # history is no reason to leave a cluster out
    for kind, maker in broken.BROKEN.items():
        maker(beside.snapshots, kind.lower())
    (tmp_path / "policy.yaml").write_text("defaults: {goal: {drainBrokers: [4]}}")
    assert alone.run("--policy", tmp_path / "policy.yaml").code == 0
    ran = beside.run("--policy", tmp_path / "policy.yaml")
    assert ran.code == 1
    assert {line.partition(":")[0] for line in ran.err.splitlines()} == {"left out"}
    assert ran.err.count("\n") >= len(broken.BROKEN)
    assert [kind for kind in broken.BROKEN if kind not in ran.out] == []
    expected, found = alone.output(), beside.output()
    good = [name for name in expected if name.startswith("manifests/clusters/")]
    assert good
    assert {name: found[name] for name in good} == {name: expected[name] for name in good}
    rejected = pq.read_table(beside.work / FOLDER / "rejected")
    assert {*rejected["kind"].to_pylist()} == rules.FAULTS
    none = pq.read_table(alone.work / FOLDER / "rejected.parquet")
    assert (none.num_rows, none.column_names) == (0, rejected.column_names)
    states = json.loads(found["manifests/run.json"])["clusters"]
    assert states["a"] == json.loads(expected["manifests/run.json"])["clusters"]["a"]
    assert len([name for name in states if states[name]["state"] == "Quarantined"]) >= 20


def test_a_cluster_that_cannot_be_assessed_is_named(program: None, tmp_path: Path) -> None:
    broken.good(tmp_path, "a")
    broken.edited(broken.good(tmp_path, "z"), "partitions", lambda rows: rows[::-1])
    words = ("--snapshots", str(tmp_path), "--work", str(tmp_path / "work"), "--master", "local[1]")
    ran = cli.run("fleet", "assess", *words)
    assert (ran.code, ran.err) == (
        1,
        "left out: z: it is no snapshot that can be used: its partitions are not each there once, in order; "
        "take it again (InvalidSnapshot)\n",
    )


def test_of_what_is_left_out_manifests_stay_and_of_what_is_gone_they_go(program: None, tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)  # its own files lie below the snapshots
    left_out, empty, hollow, gone = (broken.good(tmp_path, name) for name in ("a", "m", "n", "z"))
    (tmp_path / "policy.yaml").write_text("defaults: {goal: {drainBrokers: [4]}}")
    assert place.run("--policy", tmp_path / "policy.yaml").code == 0
    before = {file: file.read_bytes() for file in place.manifests.glob("clusters/[amn]/*")}
    assert {file.parent.name for file in before} == {"a", "m", "n"}
    shutil.rmtree(gone)
    broken.edited(empty, "partitions", lambda rows: [])
    (left_out / "brokers.parquet").unlink()
    for file in hollow.iterdir():
        file.write_bytes(b"")
    ran = place.run("--policy", tmp_path / "policy.yaml")
    assert ran.code == 1
    told = [["left out", " a"], ["left out", " m"], ["left out", " n"], ["removed", " z"]]
    assert [line.split(":")[:2] for line in ran.err.splitlines()] == told
    assert {file: file.read_bytes() for file in place.manifests.glob("clusters/*/*.yaml")} == before
    assert [file.name for file in place.manifests.glob("clusters/z/*")] == ["README.md"]
    states = json.loads((place.manifests / "run.json").read_text())["clusters"]
    assert {name: state["state"] for name, state in states.items()} == {
        "a": "Quarantined",
        "m": "NotPlanned",
        "n": "Quarantined",
    }


KILLS = {
    "check": ("reassign.spark.storage", "Storage.write", f"{FOLDER}/verdicts"),
    "assess": ("reassign.spark.storage", "Storage.write", f"{FOLDER}/topic_growth"),
    "plan": ("reassign.spark.storage", "Storage.write", MARKER),
    "emit": ("pathlib", "Path.replace", "2.yaml"),
    "report": ("pathlib", "Path.replace", "report.html"),
}
"""Of each stage a call in the middle of it, by what it writes."""


def test_a_run_killed_in_each_stage_goes_on_to_the_same_bytes(program: None, whole: Place, tmp_path: Path) -> None:
    place = Place(whole.snapshots, tmp_path)
    marker, made = place.work / FOLDER / MARKER, 0
    for stage, moment in KILLS.items():
        assert place.killed(*policy_of(place), at=moment).code == -signal.SIGKILL
        assert marker.exists() == (stage in ("emit", "report"))
        assert made in (0, made := marker.stat().st_mtime_ns if marker.exists() else 0)
        assert bool([*place.manifests.rglob("*.yaml")]) == (stage in ("emit", "report"))
        assert (place.manifests / "run.json").exists() == (stage == "report")
    ran = run(place)
    assert (ran.code, ran.err) == (0, "")
    assert place.output() == whole.output()
    assert marker.stat().st_mtime_ns == made


def test_a_folder_below_the_snapshots_is_no_reason_to_begin_again(program: None, tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    broken.good(tmp_path, "main")
    assert place.run().code == 0
    marker = place.work / FOLDER / MARKER
    made = marker.stat().st_mtime_ns
    assert place.run().code == 0
    assert marker.stat().st_mtime_ns == made


def test_another_policy_or_program_makes_the_pass_anew(
    program: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "snapshots", tmp_path)
    broken.good(place.snapshots, "main")
    (tmp_path / "policy.yaml").write_text("defaults: {goal: {drainBrokers: [4]}}")
    options = ((), ("--policy", tmp_path / "policy.yaml"), ())
    reused = ["as the run before left it" in place.run(*each).out for each in options]
    monkeypatch.setattr(stages, "program", lambda: "another one")
    reused += ["as the run before left it" in place.run().out for _ in range(2)]
    assert reused == [False, False, False, False, True]


def flipped(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "details/*.parquet": flipped,
    "manifests/*.parquet": flipped,
    MARKER: lambda content: b"\n".join(content.splitlines()[:3]),
    "verdicts.parquet": lambda _: None,
}
"""What is in a file of the work folder instead, None where it is gone."""


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_damaged_is_made_again_and_other_files_stay(
    program: None, whole: Place, tmp_path: Path, name: str
) -> None:
    place = Place(whole.snapshots, tmp_path)
    shutil.copytree(whole.folder, tmp_path, dirs_exist_ok=True)
    file, *_ = (place.work / FOLDER).glob(name)
    content = DAMAGE[name](file.read_bytes())
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    (place.work / FOLDER / "notes.md").write_text("mine")
    shutil.rmtree(place.manifests)
    ran = run(place)
    assert (ran.code, ran.err) == (0, "")
    assert place.output() == whole.output()
    assert (place.work / FOLDER / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("until", [None, "verdicts.parquet"], ids=["at its start", "in the middle"])
def test_a_ctrl_c_ends_a_run_and_its_jvm_without_a_word(whole: Place, tmp_path: Path, until: str | None) -> None:
    place = Place(whole.snapshots, tmp_path)
    with place.begun() as process:
        jvm = its_jvm(process)
        if until:
            assert wait_until((place.work / FOLDER / until).exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")
    assert wait_until(lambda: not is_running(jvm))


FINALIZER = """
import signal
from reassign.spark.session import started

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

try:
    with started("local[1]") as spark:
        Dropped()
        spark.range(1).count()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_ctrl_c_in_a_finalizer_interrupts_a_run_without_a_word() -> None:
    assert program("-c", FINALIZER) == (0, "interrupted\n", "")


def test_a_killed_jvm_is_reported_in_a_line(whole: Place, tmp_path: Path) -> None:
    place = Place(whole.snapshots, tmp_path)
    with place.begun() as process:
        jvm = its_jvm(process)
        assert wait_until((place.work / FOLDER / "verdicts.parquet").exists)
        os.kill(jvm, signal.SIGKILL)
        out, err = process.communicate()
    assert (process.returncode, out, err.count("\n")) == (3, "", 1), err
    assert "run it again" in err


FAILS = {
    "spark.sql('select 9223372036854775807L + id from range(1, 2)').head()": "Spark has failed: [ARITHMETIC_OVERFLOW]",
    "[][0]": "this program has failed (IndexError: list index out of range); please report it",
}


@pytest.mark.parametrize("fails", FAILS)
def test_a_failure_in_a_run_is_reported_in_a_line(
    program: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(stages, "run", lambda spark, *_: eval(fails, {"spark": spark}))
    ran = Place(tmp_path, tmp_path).run()
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1), ran.err
    assert FAILS[fails] in ran.err


def its_jvm(process: subprocess.Popen[str]) -> int:
    assert wait_until(lambda: bool(jvms_of(process)))
    [jvm] = jvms_of(process)
    return jvm


def jvms_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if Path(f"/proc/{child}/comm").read_text() == "java\n"]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_spark_does_not_know_is_one_sentence(program: None, whole: Place) -> None:
    ran = run(whole, "--work", "nowhere://x")
    assert (ran.code, ran.err.count("\n"), "work folder nowhere://x cannot be used" in ran.err) == (4, 1, True), ran.err


def test_a_report_with_an_impossible_name_is_one_sentence(whole: Place) -> None:
    ran = run(whole, "--report", "a" * 300)
    assert (ran.code, ran.err.count("\n"), "File name too long" in ran.err) == (4, 1, True), ran.err


def test_a_report_at_a_link_that_leads_nowhere_is_one_sentence(whole: Place, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    ran = run(whole, "--report", str(tmp_path / "loop"))
    assert (ran.code, ran.err.count("\n"), "Too many levels of symbolic links" in ran.err) == (4, 1, True), ran.err


@pytest.mark.parametrize(("make", "what"), [(Path.mkdir, "folder"), (os.mkfifo, "device or a pipe")])
def test_only_a_file_is_replaced_by_a_report(
    whole: Place, tmp_path: Path, make: Callable[[Path], None], what: str
) -> None:
    make(tmp_path / "x")
    ran = run(whole, "--report", str(tmp_path / "x"))
    assert (ran.code, ran.err.count("\n"), f"x is a {what}: name another file" in ran.err) == (4, 1, True), ran.err


@pytest.mark.parametrize("folder", ["work", "manifests"])
def test_a_folder_that_another_run_uses_is_refused(program: None, whole: Place, tmp_path: Path, folder: str) -> None:
    place = Place(whole.snapshots, tmp_path)
    with alone_in(tmp_path / folder):
        ran = place.run()
    said = f"another run uses {tmp_path / folder}: wait until that has ended"
    assert (ran.code, ran.err.count("\n"), said in ran.err) == (4, 1, True), ran.err
    assert place.run().code == 0


def test_a_report_replaces_no_other_file(whole: Place, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("defaults: {}")
    ran = run(whole, "--report", str(tmp_path / "policy.yaml"))
    assert (ran.code, ran.err.count("\n"), "is there, and is no report: name" in ran.err) == (4, 1, True), ran.err
    assert (tmp_path / "policy.yaml").read_text() == "defaults: {}"


def test_the_report_is_written_where_a_link_leads_to(program: None, whole: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "report.html")
    assert run(whole, "--report", str(tmp_path / "link")).code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "report.html").read_bytes() == whole.report.read_bytes()


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_letters_of_a_path_do_not_depend_on_the_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    place = Place(tmp_path / "snäpshots", tmp_path / "wörk")
    broken.good(place.snapshots, "main")
    with place.begun() as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, ""), err
    assert "1 cluster, 0 of them left out" in out


def test_a_master_that_spark_does_not_know_is_one_sentence(tmp_path: Path) -> None:
    with Place(tmp_path, tmp_path).begun("--master", "local[x]") as process:
        _, err = process.communicate()
    assert (process.returncode, err.count("\n"), "does not start" in err) == (3, 1, True), err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_reported_and_with_more_room_the_run_goes_on(
    program: None, whole: Place, small_disk: Path
) -> None:
    place = Place(whole.snapshots, small_disk)
    ran = run(place)
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert "No space left on device" in ran.err
    subprocess.run(["mount", "-o", "remount,size=100m", small_disk], check=True)
    ran = run(place)
    assert (ran.code, ran.err) == (0, "")
    assert place.output() == whole.output()
