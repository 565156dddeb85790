"""What one function says of one cluster, without Spark: whatever is wrong with it is a row, and no exception."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reassign.errors import PlanningError
from reassign.files import snapshots
from reassign.fleet import cluster as of_cluster
from reassign.fleet import outcomes
from reassign.fleet.choose import File, Folder
from reassign.fleet.outcomes import HISTORY, KINDS, OUTCOMES, batch_of, of_kind
from reassign.fleet.policy import FleetPolicy, parse
from reassign.manifests.waves import entries, waves_of
from reassign.planning.plan import make
from reassign.planning.problem.model import Cluster
from tests.benchmarks.instances import Made, cluster
from tests.snapshots import in_sync

TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
FOLDER = Folder("2026-01-31", "main")
POLICY = "defaults: {goal: {drainBrokers: [2]}, template: {throttle: {interBroker: 1Mi}}, waves: {maxBytes: 100Gi}}"


def ask(root: Path, made: Cluster, policy: FleetPolicy | None = None, newest: bool = True) -> pa.Table:
    place = root / f"date={FOLDER.date}" / f"cluster={FOLDER.cluster}"
    snapshots.write(place, in_sync(made, TAKEN))
    outcome = of_cluster.outcome_of(FOLDER, contents_of(root), policy or FleetPolicy(), newest)
    return pa.Table.from_batches([batch_of([outcome])])


def contents_of(root: Path) -> dict[str, pa.Buffer]:
    return {str(file.relative_to(root)): pa.py_buffer(file.read_bytes()) for file in root.rglob("*.parquet")}


def one(rows: pa.Table, kind: str) -> dict[str, Any]:
    [row] = of_kind(rows, kind).to_pylist()
    return dict(row)


def test_a_cluster_has_the_planners_plan_in_typed_rows(tmp_path: Path) -> None:
    made, policy = cluster(Made(330, 6, racks=(3,))), parse(POLICY, "")
    rows = ask(tmp_path, made, policy)
    terms = policy.terms("main")
    expected = make(made, terms.planner_goal(), terms.waves.max_partitions, terms.max_bytes, terms.rate)
    found = one(rows, "plans")
    assert found["problem"] is None
    assert (found["bytes"], found["moves_bound"]) == (expected.certificate.bytes, expected.certificate.moves_bound)
    assert sum(wave["bytes"] for wave in found["waves"]) == found["bytes"]
    assert sum(wave["seconds"] for wave in found["waves"]) == pytest.approx(found["makespan"])
    brokers = of_kind(rows, "broker_load").to_pylist()
    after = one(rows, "planned_load")["after"]["Replicas"]
    assert (sum(after), after[1]) == (sum(broker["replicas"] for broker in brokers), 0)
    texts = [row["text"] for row in of_kind(rows, "manifests").to_pylist()]
    waves = [entries(made, expected, wave) for wave in waves_of(expected)]
    assert [text.count("\n  - {") for text in texts] == [len(wave) for wave in waves]
    said = [line.removeprefix("  - ") for text in texts for line in text.splitlines() if line.startswith("  - {")]
    assert said == [of_cluster.ENTRY.encode(entry) for wave in waves for entry in wave]
    assert one(rows, "cluster_load")["bytes_bound"] == expected.certificate.bytes_bound


@pytest.mark.parametrize("awareness", ["Tree", "Flat"])
def test_each_rack_has_what_lies_in_it_now_and_after_the_plan(tmp_path: Path, awareness: str) -> None:
    made = cluster(Made(330, 6, racks=(2, 3)))
    alone = replace(made, racks=("/alone", *made.racks[1:]))
    rows = ask(tmp_path, alone, parse(f"defaults: {{racks: {{awareness: {awareness}}}}}", ""))
    now, then = of_kind(rows, "rack_load").to_pylist(), one(rows, "planned_load")["racks"]
    assert {(rack["level"], rack["path"]): rack["brokers"] for rack in then} == {
        (rack["level"], rack["path"]): rack["brokers"] for rack in now
    }
    after = one(rows, "planned_load")["after"]
    assert sum(rack["replicas"] for rack in then if rack["level"] == 1) == sum(after["Replicas"])


def said(rows: pa.Table) -> set[str]:
    """The kinds of which there are rows."""
    return {kind for kind in KINDS if of_kind(rows, kind).num_rows}


def test_a_snapshot_is_one_row_with_a_list_of_each_kind(tmp_path: Path) -> None:
    rows = ask(tmp_path, cluster(Made(90, 6)))
    assert (rows.schema, rows.num_rows) == (OUTCOMES, 1)
    assert said(rows) == KINDS.keys() - {"verdicts", "rejected", "begun"}


def test_of_an_older_snapshot_only_what_history_needs_is_said(tmp_path: Path) -> None:
    assert said(ask(tmp_path, cluster(Made(90, 6)), newest=False)) == {"files", *HISTORY} - {"begun"}


@pytest.mark.parametrize(("column", "kinds"), {"isr": {None}, "size_bytes": {None, "DamagedPage"}}.items())
@pytest.mark.parametrize("newest", [False, True])
def test_of_an_older_snapshot_no_column_is_read_that_history_does_without(
    tmp_path: Path, column: str, kinds: set[str | None], newest: bool
) -> None:
    ask(tmp_path, cluster(Made(90, 6)))
    file = tmp_path / f"date={FOLDER.date}" / f"cluster={FOLDER.cluster}" / "partitions.parquet"
    group = pq.ParquetFile(file).metadata.row_group(0)
    [chunk] = [one for one in map(group.column, range(group.num_columns)) if one.path_in_schema.split(".")[0] == column]
    content = bytearray(file.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin + chunk.total_compressed_size - 1] ^= 0xFF
    file.write_bytes(content)
    outcome = of_cluster.outcome_of(FOLDER, contents_of(tmp_path), FleetPolicy(), newest)
    found = {row["kind"] for row in outcome["files"]}
    assert found == ({None, "DamagedPage"} if newest else kinds)


def test_manifests_are_split_over_rows_that_say_the_same_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = parse(POLICY, "")
    whole = ask(tmp_path, cluster(Made(330, 6)), policy)
    texts = [row["text"] for row in of_kind(whole, "manifests").to_pylist()]
    monkeypatch.setattr(outcomes, "ROW_BYTES", max(map(len, texts)))
    rows = [*outcomes.split(of_cluster.outcome_of(FOLDER, contents_of(tmp_path), policy, True))]
    assert len(rows) > 1
    assert all(len(row["manifests"]) <= 2 for row in rows)
    parts = pa.Table.from_batches([batch_of([row]) for row in rows])
    for kind in KINDS:
        assert of_kind(parts, kind).equals(of_kind(whole, kind)), kind


@pytest.mark.parametrize("include", ["topic-*, '*'", "topic-*, orders"])
def test_the_patterns_that_match_a_topic_are_kept(tmp_path: Path, include: str) -> None:
    policy = parse(f"defaults: {{topics: {{include: [{include}], exclude: [none-*]}}}}", "")
    made = cluster(Made(90, 6))
    made = replace(made, topics=tuple(f"topic-{number}" for number in range(len(made.topics))))
    assert one(ask(tmp_path, made, policy), "cluster_load")["matched"] == [
        pattern for pattern in policy.terms("main").topics.include if pattern != "orders"
    ]


def test_what_cannot_be_planned_says_why_and_how_load_lies_all_the_same(tmp_path: Path) -> None:
    rows = ask(tmp_path, cluster(Made(90, 6)), parse("defaults: {goal: {drainBrokers: [77]}}", ""))
    assert one(rows, "plans")["problem"] == {
        "reason": "InvalidGoal",
        "message": "broker 77 is not in the cluster: name brokers that are",
    }
    load = one(rows, "cluster_load")
    assert (load["replicas"], load["bytes_bound"], load["violations"]) == (90, None, None)
    assert said(rows) >= {"broker_load", "rack_load", "directory_load", "cluster_load"}


def test_a_cluster_where_some_brokers_have_no_rack_is_not_planned(tmp_path: Path) -> None:
    made = cluster(Made(90, 6, racks=(3,)))
    problem = one(ask(tmp_path, replace(made, racks=("", *made.racks[1:]))), "plans")["problem"]
    assert problem["reason"] == "InvalidRacks"
    assert "broker 1 has no rack" in problem["message"]


def test_a_plan_that_no_object_can_hold_leaves_out_its_cluster(tmp_path: Path) -> None:
    policy = parse("defaults: {goal: {drainBrokers: [18]}}", "")
    problem = one(ask(tmp_path, cluster(Made(17 * 30, 18, racks=(), replication_factor=17)), policy), "plans")[
        "problem"
    ]
    assert problem["reason"] == "InvalidGoal"
    assert "partitions.0" in problem["message"]


def test_a_bug_of_the_planner_is_reported_for_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise IndexError(f"7 of 3\n{'x' * 10_000}")

    monkeypatch.setattr(of_cluster, "make_of", fail)
    rows = ask(tmp_path, cluster(Made(90, 6)))
    problem = one(rows, "plans")["problem"]
    assert problem["reason"] == "PlanningFailed"
    assert problem["message"].startswith("please report this: IndexError in the planner: 7 of 3?xxx")
    assert len(problem["message"]) == 500
    assert "in fail" in capsys.readouterr().err  # which is Spark's log
    load = one(rows, "cluster_load")
    assert (load["replicas"], load["violations"], load["bytes_bound"]) == (90, 0, None)


def test_rows_that_contradict_each_other_unforeseen_are_not_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PlanningError(of_cluster.Reason.INVALID_SNAPSHOT, "its brokers are not in order; take it again")

    monkeypatch.setattr(of_cluster, "cluster_of", refuse)
    made = cluster(Made(90, 6))
    rows = ask(tmp_path, replace(made, alive=made.brokers != 2))
    assert one(rows, "plans")["problem"]["reason"] == "InvalidSnapshot"
    assert one(rows, "verdicts")["kind"] == "BrokerDown"  # what was said before stays


def test_files_come_back_as_they_were(tmp_path: Path) -> None:
    rows = of_kind(ask(tmp_path, cluster(Made(90, 6))), "files").to_pylist()
    files = [of_cluster.file_of(row) for row in rows]
    assert [of_cluster.row_of(file) for file in files] == [
        {name: row[name] for name in of_cluster.row_of(file)} for file, row in zip(files, rows, strict=True)
    ]
    assert {file.metadata.cluster_id for file in files if file.metadata} == {"made-0"}
    broken = File("date=2026-01-31/cluster=main/brokers.parquet", 0, "0f", None, "UnreadableFile", "it is empty")
    assert of_cluster.file_of({**dict.fromkeys(KINDS["files"]), **of_cluster.row_of(broken)}) == broken


def test_want_of_memory_is_no_damage_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pa.parquet.ParquetFile, "read", fail)
    with pytest.raises(MemoryError):
        ask(tmp_path, cluster(Made(90, 6)))


@pytest.mark.parametrize("newest", [False, True])
def test_a_name_that_is_no_text_is_a_fault_of_its_file(tmp_path: Path, newest: bool) -> None:
    ask(tmp_path, cluster(Made(90, 6)))
    file = tmp_path / f"date={FOLDER.date}" / f"cluster={FOLDER.cluster}" / "partitions.parquet"
    rows = pq.ParquetFile(file).read()
    at = rows.schema.get_field_index("topic")
    names = pa.array([b"\xff\xfe", *rows["topic"].cast(pa.binary()).to_pylist()[1:]], pa.binary())
    no_text = pa.StringArray.from_buffers(len(names), *names.buffers()[1:])
    pq.write_table(rows.set_column(at, rows.schema.field(at), no_text), file, write_page_checksum=True)
    found = of_cluster.outcome_of(FOLDER, contents_of(tmp_path), FleetPolicy(), newest)
    assert {row["path"].rpartition("/")[2]: row["kind"] for row in found["files"] if row["kind"]} == {
        "partitions.parquet": "DamagedPage"
    }
    assert not found.get("plans")


def test_an_older_unreadable_snapshot_is_a_fault_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr(of_cluster, "history_rows", fail)
    rows = ask(tmp_path, cluster(Made(90, 6)), newest=False)
    assert {row["kind"] for row in of_kind(rows, "files").to_pylist()} == {"DamagedPage"}
    assert said(rows) == {"files"}
