"""What a run over a fleet says on a terminal, whatever is not known of a cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reassign.cli import fleet_run
from reassign.cli import output as out
from reassign.files import checks, rules
from reassign.fleet import choose
from reassign.fleet.choose import Verdict
from reassign.fleet.stages import Result, problems
from tests.unit.cli import error_of, run

LOAD: dict[str, Any] = {
    "cluster": "main",
    "brokers": 3,
    "partitions": 12,
    "bytes": 2**30,
    "skew_bytes": 1.5,
    "violations": 2,
    "bytes_bound": 2**20,
}
UNKNOWN = LOAD | {"cluster": "other", "bytes": None, "skew_bytes": None, "violations": None, "bytes_bound": None}


def shown(result: Result, capsys: pytest.CaptureFixture[str]) -> str:
    out.write_picture(fleet_run._parts(result, "work", Path("manifests"), Path("fleet.html")))
    return capsys.readouterr().out


def test_unknown_numbers_of_a_cluster_are_shown_as_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(Result(2, {}, {}, (), [UNKNOWN, LOAD], {}, None), capsys)
    main, other = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("main", "other"))
    assert "150 % of the mean" in main
    assert other.split()[-3:] == ["unknown"] * 3
    assert text.index(main) < text.index(other)


def test_the_longest_name_of_a_cluster_takes_no_number_away(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(Result(1, {}, {}, (), [LOAD | {"cluster": "c" * 253}], {}, None), capsys)
    assert "150 % of the mean" in text
    assert text.count("c" * 20) >= 253 // fleet_run.NAME_WIDTH
    assert "…" not in text


def test_what_is_wrong_is_counted_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = [Verdict(name, "2026-01-31", "brokers", "BrokerTwice", 2, "broker 1", True) for name in "ab"]
    found = problems(verdicts)
    assert found["a"]["message"] == (
        "the snapshot of 2026-01-31 cannot be trusted: brokers: broker 1 and 1 more; take it again"
    )
    text = shown(Result(2, found, {}, tuple(verdicts), [], {}, None), capsys)
    [line] = [line for line in text.splitlines() if line.startswith("BrokerTwice")]
    assert line.split()[:4] == ["BrokerTwice", "2", "4", "yes"]


def test_a_message_and_the_page_of_checks_name_the_same_remedy() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fleets" / "checks.md").read_text()
    faults = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page.partition("A **note**")[0], re.MULTILINE)
    notes = {choose.Kind.NEW_ID, choose.Kind.NO_PARTITIONS, choose.Kind.OLD}
    assert {kind for kind, _ in faults} == {*checks.Kind, *choose.Kind, *rules.FAULTS} - notes
    for kind, remedy in faults:
        found = problems([Verdict("a", "2026-01-31", "brokers", kind, 1, "broker 1", True)])
        assert found["a"]["message"].endswith((f"; {remedy}", f": {remedy}")), kind


def test_a_policy_of_standard_input_is_named_as_such() -> None:
    ran = run("fleet", "plan", "--snapshots", "s", "--work", "w", "--policy", "-", stdin="{}}")
    assert error_of(ran, 2).startswith("error: standard input is no policy: ")


@pytest.mark.parametrize("option", ["--snapshots", "--work", "--manifests", "--report", "--policy", "--master"])
def test_a_place_that_is_empty_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"--snapshots": "s", "--work": "w", "--manifests": "m", "--report": "r.html", option: ""}
    ran = run("fleet", "run", *(word for each in places.items() for word in each))
    assert (ran.code, ran.out) == (2, "")
    assert f"'{option}': it is empty" in " ".join(ran.err.split())
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("verb", ["emit", "run", "report"])
@pytest.mark.parametrize("place", ["file", "file/below", "/proc/below/it"])
def test_an_output_that_cannot_be_written_is_noticed_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, place: str
) -> None:
    monkeypatch.setattr(fleet_run, "_imported", never)
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    report, manifests = (["--report", f"{place}/r.html"], ["--manifests", place])
    options = {"emit": manifests, "report": report, "run": ["--report", "r.html", *manifests]}
    ran = run("fleet", verb, "--snapshots", "s", "--work", "w", *options[verb])
    assert (ran.code, ran.out, ran.err.count("\n")) == (4, "", 1), ran.err
    assert "cannot be written" in ran.err
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "mine")]


@pytest.mark.parametrize("place", ["m/clusters", "m/run.json"])
def test_a_tree_that_cannot_be_written_is_noticed_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(fleet_run, "_imported", never)
    monkeypatch.chdir(tmp_path)
    Path("m").mkdir()
    if place == "m/run.json":
        Path(place).mkdir()
    else:
        Path(place).write_text("mine")
    ran = run("fleet", "emit", "--snapshots", "s", "--work", "w", "--manifests", "m")
    assert (ran.code, ran.out, ran.err.count("\n"), place in ran.err) == (4, "", 1, True), ran.err


@pytest.mark.parametrize(
    ("snapshots", "configured", "told"),
    [
        ("s", "", True),
        ("file:/no/such", "", True),
        ("file:///no/such", "SPARK_CONF_DIR", True),
        ("s", "SPARK_CONF_DIR", False),
        ("s", "PYSPARK_GATEWAY_PORT", False),
        ("s3a://bucket/s", "", False),
        ("there", "", False),
        ("file:/", "", False),
    ],
)
def test_a_folder_that_is_not_there_is_noticed_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshots: str, configured: str, told: bool
) -> None:
    for name in fleet_run.FILE_SYSTEM_FROM:
        monkeypatch.delenv(name, raising=False)
    if configured:
        monkeypatch.setenv(configured, "1")
    monkeypatch.setattr(fleet_run, "_imported", never)
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    command = ("fleet", "assess", "--snapshots", snapshots, "--work", "w")
    if told:
        assert f"there is no {snapshots}: name the folder that has the snapshots, or take one" in error_of(
            run(*command), 2
        )
    else:
        with pytest.raises(AssertionError, match="was loaded"):
            run(*command)


def never(module: str) -> None:
    raise AssertionError(f"{module} was loaded")
