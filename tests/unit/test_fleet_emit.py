"""The tree of manifests: what is in a file, what is written anew, what is removed, and what is left alone."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reassign.api.partition_reassignment import PartitionReassignmentSpec
from reassign.errors import PlanningError, Reason
from reassign.files.whole import put
from reassign.fleet.emit import Emitted, emit, rendered
from reassign.fleet.policy import Terms, parse
from reassign.manifests.objects import without_entries
from reassign.manifests.text import load

ABOUT = {"snapshots": "sha256:1", "policy": "sha256:2", "version": "0"}


def row(cluster: str, wave: int, topic: str, partition: int, to: list[int]) -> dict[str, Any]:
    entry = {"topic": topic, "partition": partition, "replicas": to, "expectedReplicas": [9]}
    return {"cluster": cluster, "wave": wave, "topic": topic, "partition": partition, "entry": json.dumps(entry)}


ROWS = [
    row("b", 2, "x", 0, [1]),
    row("a", 1, "true", 10, [1, 2]),
    row("b", 1, "x", 1, [1]),
    row("a", 1, "true", 2, [3]),
]


def files_of(cluster: str, rows: list[dict[str, Any]], terms: Terms) -> dict[str, str]:
    """What is planned for a cluster, as the planner renders it."""
    mine = sorted(
        (each for each in rows if each["cluster"] == cluster), key=lambda row: (row["topic"], row["partition"])
    )
    numbers = sorted({each["wave"] for each in mine})
    waves = [[str(each["entry"]) for each in mine if each["wave"] == number] for number in numbers]
    manifests = terms.manifests(cluster, [[json.loads(entry) for entry in wave] for wave in waves])
    return rendered([without_entries(manifest) for manifest in manifests], waves)


def write(
    folder: Path, rows: list[dict[str, Any]], *, left_out: tuple[str, ...] = (), terms: Terms | None = None
) -> Emitted:
    names = {each["cluster"] for each in rows}
    states = {name: {"state": "Planned"} for name in names} | {name: {"state": "Quarantined"} for name in left_out}
    files = ((name, *file) for name in names for file in files_of(name, rows, terms or Terms()).items())
    return emit(folder, files, ABOUT, states)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_file_for_each_wave_and_a_line_for_each_partition(tmp_path: Path) -> None:
    terms = parse("defaults: {namespace: kafka, template: {throttle: {interBroker: 5Mi}}}", "").defaults
    assert write(tmp_path, ROWS, terms=terms) == Emitted(written=3, unchanged=0, removed=0)
    assert sorted(tree(tmp_path)) == [
        "clusters/a/wave-1.yaml",
        "clusters/b/wave-1.yaml",
        "clusters/b/wave-2.yaml",
        "run.json",
    ]
    text = (tmp_path / "clusters/a/wave-1.yaml").read_text()
    assert '  - {"topic": "true", "partition": 2, "replicas": [3], "expectedReplicas": [9]}\n' in text
    manifest = yaml.safe_load(text)
    assert [entry["partition"] for entry in manifest["spec"]["partitions"]] == [2, 10]
    assert manifest["metadata"]["namespace"] == "kafka"
    assert manifest["spec"]["clusterRef"] == {"name": "a"}
    assert manifest["spec"]["throttle"] == {"interBroker": "5Mi"}
    spec = PartitionReassignmentSpec.model_validate_json(json.dumps(manifest["spec"]), strict=True, extra="forbid")
    assert not spec.suspend
    last = yaml.safe_load((tmp_path / "clusters/b/wave-2.yaml").read_text())
    assert last["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-wave": "2",
        "argocd.argoproj.io/sync-options": "Prune=confirm,Delete=confirm",
    }


def test_names_that_look_like_numbers_are_text_in_a_file(tmp_path: Path) -> None:
    terms = parse("defaults: {namespace: '1e3', clusterRef: {name: '0x1f'}}", "").defaults
    write(tmp_path, [row("0o17", 1, "1_000", 0, [1])], terms=terms)
    (manifest,) = load((tmp_path / "clusters/0o17/wave-1.yaml").read_text())
    assert manifest["metadata"]["namespace"] == "1e3"
    assert manifest["spec"]["clusterRef"] == {"name": "0x1f"}
    assert [entry["topic"] for entry in manifest["spec"]["partitions"]] == ["1_000"]


def test_the_same_plan_is_the_same_bytes_and_nothing_is_written_anew(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    before = tree(tmp_path)
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.yaml")}
    assert write(tmp_path, ROWS[::-1]) == Emitted(written=0, unchanged=3, removed=0)
    assert tree(tmp_path) == before
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.yaml")} == times


def test_only_what_changed_is_written_and_what_is_no_longer_planned_goes(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    (tmp_path / "clusters/b/README.md").write_text("mine")
    before = tree(tmp_path)
    assert write(tmp_path, [row("b", 1, "x", 1, [2]), ROWS[1], ROWS[3]]) == Emitted(written=1, unchanged=1, removed=1)
    after = tree(tmp_path)
    assert before["clusters/a/wave-1.yaml"] == after["clusters/a/wave-1.yaml"]
    assert before["clusters/b/wave-1.yaml"] != after["clusters/b/wave-1.yaml"]
    assert before.keys() - after.keys() == {"clusters/b/wave-2.yaml"}
    write(tmp_path, [ROWS[1]])
    assert sorted(tree(tmp_path)) == ["clusters/a/wave-1.yaml", "clusters/b/README.md", "run.json"]


def test_files_are_written_as_they_come_and_the_run_manifest_last(tmp_path: Path) -> None:
    def manifests() -> Iterator[tuple[str, str, str]]:
        yield "a", "wave-1.yaml", "one"
        assert sorted(tree(tmp_path)) == ["clusters/a/wave-1.yaml"]
        yield "a", "wave-2.yaml", "two"

    emit(tmp_path, manifests(), ABOUT, {"a": {"state": "Planned"}})
    assert sorted(tree(tmp_path)) == ["clusters/a/wave-1.yaml", "clusters/a/wave-2.yaml", "run.json"]


def test_of_a_cluster_in_balance_no_manifest_stays(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    assert emit(tmp_path, [], ABOUT, {"a": {"state": "Unchanged"}, "b": {"state": "NotPlanned"}}).removed == 1
    left = ["clusters/a/README.md", "clusters/b/wave-1.yaml", "clusters/b/wave-2.yaml", "run.json"]
    assert sorted(tree(tmp_path)) == left


def test_a_folder_whose_last_manifest_is_removed_stays_in_git(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    write(tmp_path, [row("c", 1, "x", 1, [2])])
    kept = [name for name in tree(tmp_path) if name.startswith("clusters/a/")]
    assert kept == ["clusters/a/README.md"]
    before = tree(tmp_path)
    write(tmp_path, [row("c", 1, "x", 1, [2])])
    assert tree(tmp_path) == before


def test_the_files_of_a_cluster_that_is_left_out_stay(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    before = tree(tmp_path)
    said = json.loads(before["run.json"])["clusters"]
    write(tmp_path, [each for each in ROWS if each["cluster"] == "a"], left_out=("b",))
    after = tree(tmp_path)
    assert before.keys() == after.keys()
    assert all(before[name] == after[name] for name in before if name != "run.json")
    assert json.loads(after["run.json"])["clusters"] == {
        "a": said["a"],
        "b": {**said["b"], "state": "Quarantined"},
    }


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    before = tree(tmp_path)
    (tmp_path / "clusters/a/.wave-7.yaml.unfinished").write_text("half")
    write(tmp_path, ROWS)
    assert tree(tmp_path) == before


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "clusters").write_text("a file")
    with pytest.raises(PlanningError, match="cannot be written") as error:
        write(tmp_path, ROWS)
    assert error.value.reason is Reason.CANNOT_BE_WRITTEN


def test_nothing_goes_while_a_folder_of_snapshots_is_misnamed(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    others = [each for each in ROWS if each["cluster"] == "a"]
    kept = write(tmp_path, others, left_out=("date=2026-01-31/Cluster=b/",))
    assert kept == Emitted(written=0, unchanged=1, removed=0)
    assert write(tmp_path, others) == Emitted(written=0, unchanged=1, removed=2, dropped=("b",))


def test_nothing_goes_while_clusters_may_be_hidden(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    files = files_of("a", ROWS, Terms()).items()
    kept = emit(tmp_path, (("a", *file) for file in files), ABOUT, {"a": {"state": "Planned"}}, hidden=True)
    assert kept == Emitted(written=0, unchanged=1, removed=0)


def test_a_link_for_a_clusters_folder_is_refused_before_any_write(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tree" / "clusters").mkdir(parents=True)
    (tmp_path / "tree" / "clusters" / ROWS[-1]["cluster"]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlanningError, match="is a symbolic link: replace it by a folder") as error:
        write(tmp_path / "tree", ROWS)
    assert error.value.reason is Reason.CANNOT_BE_WRITTEN
    assert not [*tmp_path.rglob("wave-*.yaml")]


def test_what_cannot_be_written_whole_leaves_no_half_a_file(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(PlanningError, match=f"{tmp_path} cannot be written: File too large"):
            write(tmp_path, ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_what_is_interrupted_stays_as_it_was(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    file = tmp_path / "report.html"
    put(file, [b"o", b"ld"])
    with pytest.raises(KeyboardInterrupt):
        put(file, parts())
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("report.html", b"old")]


def test_what_a_link_leads_to_is_not_of_the_tree(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "wave-mine.yaml").write_text("kept")
    (tmp_path / "tree" / "clusters").mkdir(parents=True)
    (tmp_path / "tree" / "clusters" / "linked").symlink_to(elsewhere)
    assert write(tmp_path / "tree", ROWS).removed == 0
    assert (elsewhere / "wave-mine.yaml").read_text() == "kept"
