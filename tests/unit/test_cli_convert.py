"""The commands `convert` and `rollback`: the stock tool's JSON and manifests, both ways, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.names import TOPIC_NAME
from reassign.manifests.text import load
from tests.unit.cli import Live, entry, error_of, manifest, moved, run, sim
from tests.unit.examples import examples
from tests.unit.scalars import SCALARS

HERE = ("--cluster", "main", "-n", "kafka")
STOCK = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 0, "replicas": [2, 3], "log_dirs": ["any", "/data/b"]},
        {"topic": "orders", "partition": 1, "replicas": [0, 3]},
    ],
}


def convert(value: object, *arguments: object) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return run("convert", "-f", "-", *arguments, stdin=text)


def test_the_stock_tools_json_becomes_a_manifest_for_the_named_cluster() -> None:
    ran = convert(STOCK, *HERE, "--name", "first", "--throttle", "10Mi")
    assert (ran.code, ran.err) == (0, "")
    assert yaml.safe_load(ran.out) == {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": "first", "namespace": "kafka"},
        "spec": {
            "clusterRef": {"name": "main"},
            "throttle": {"interBroker": "10Mi"},
            "partitions": [
                {"topic": "orders", "partition": 0, "replicas": [2, 3], "logDirs": ["any", "/data/b"]},
                {"topic": "orders", "partition": 1, "replicas": [0, 3]},
            ],
        },
    }


def test_a_long_file_becomes_several_manifests() -> None:
    ran = convert(STOCK, *HERE, "--max-partitions", 1)
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(ran.out)] == ["move-1", "move-2"]


def test_manifests_become_one_file_of_the_stock_tool() -> None:
    manifests = [manifest(entry(0, 2, 3, logDirs=["any", "/data/b"])), manifest(entry(1, 0, 3), name="second")]
    ran = convert(yaml.safe_dump_all(manifests))
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == STOCK
    assert json.loads(convert({"kind": "List", "items": manifests}).out) == STOCK


@pytest.mark.parametrize("between", ["\n", "", "\n\n"])
def test_a_stream_of_json_objects_is_read_as_kubectl_reads_it(between: str) -> None:
    manifests = [manifest(entry(0, 2, 3, logDirs=["any", "/data/b"])), manifest(entry(1, 0, 3), name="second")]
    stream = between.join(json.dumps(each, indent=2) for each in manifests)
    assert json.loads(convert(stream).out) == STOCK
    wrong = stream.replace('"second"', '"second", "name": "third"')
    line = wrong[: wrong.index('"third"')].count("\n") + 1
    assert f"name is repeated at line {line + (not between)}, column" in error_of(convert(wrong), 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_byte_order_mark_says_how_a_file_is_encoded(encoding: str, tmp_path: Path) -> None:
    marked = encoding.removesuffix("-sig") in ("utf-8", "utf-16", "utf-32")
    (tmp_path / "f").write_bytes((("" if marked else "\ufeff") + json.dumps(STOCK)).encode(encoding))
    assert convert(STOCK, *HERE).out == run("convert", "-f", tmp_path / "f", *HERE).out
    if encoding.startswith("utf-16"):
        unmarked = json.dumps(STOCK).encode("utf-16-le")
        (tmp_path / "f").write_bytes(unmarked)
        said = error_of(run("convert", "-f", tmp_path / "f", *HERE), 2)
        assert "it is not text in UTF-8, or in UTF-16 with a byte order mark; save it" in said


def test_what_the_stock_tools_json_has_no_place_for_is_noted() -> None:
    manifests = [
        manifest(entry(0, 2, 3), suspend=True),
        manifest(entry(1, 0, 3, expectedReplicas=[0, 1]), name="second", throttle={"interBroker": "1Mi"}),
    ]
    ran = convert(yaml.safe_dump_all(manifests))
    assert (ran.code, len(json.loads(ran.out)["partitions"])) == (0, 2)
    assert ran.err == (
        "note: the stock tool's JSON has no place for these fields: suspend, throttle, expectedReplicas\n"
    )


def test_what_is_wrong_with_the_manifests_names_their_file(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text(yaml.safe_dump_all([manifest(entry(0, 1)), manifest(entry(0, 2))]))
    ran = run("convert", "-f", tmp_path / "twice.yaml")
    assert f"error: {tmp_path}/twice.yaml: partitions[1]: orders-0 is there already" in error_of(ran, 2)


@pytest.mark.parametrize(
    "option", [("--cluster", "main"), ("--name", "x"), ("--max-partitions", 5), ("--throttle", "1Mi")]
)
def test_an_option_of_manifests_is_refused_on_the_way_back(option: tuple[object, ...]) -> None:
    ran = convert(manifest(entry(0, 2, 3)), *option)
    assert (ran.code, ran.out) == (2, "")
    assert f"Invalid value for '{option[0]}': it has no effect on the stock tool's JSON, which standard" in ran.err


NAMES = [name for name in SCALARS if TOPIC_NAME.fullmatch(name)]


def test_names_that_look_like_numbers_are_written_as_text() -> None:
    partitions = [{"topic": name, "partition": 0, "replicas": [1, 2]} for name in NAMES]
    ran = convert(
        {"partitions": partitions}, "--cluster", "0x1f", "-n", "72225e2", "--name", "1e3", "--throttle", "2e6"
    )
    for (made,) in (load(ran.out), [*yaml.safe_load_all(ran.out)]):
        assert made["metadata"] == {"name": "1e3", "namespace": "72225e2"}
        assert made["spec"]["clusterRef"] == {"name": "0x1f"}
        assert made["spec"]["throttle"] == {"interBroker": "2e6"}
        assert [each["topic"] for each in made["spec"]["partitions"]] == NAMES
    assert json.loads(convert(ran.out).out)["partitions"] == partitions


@pytest.mark.parametrize(
    ("written", "number"), [("0o17", 15), ("010", 8), ("1e1", 10), ("1_0", 10), ("2.0", 2), ("+3", 3)]
)
def test_numbers_of_manifests_are_read_as_kubectl_reads_them(written: str, number: int) -> None:
    text = yaml.safe_dump(manifest(entry(4711, 1, 2))).replace("4711", written)
    assert json.loads(convert(text).out)["partitions"][0]["partition"] == number


@pytest.mark.parametrize("written", ["1e3", "y", "on", "0x1F", "1.5", "~"])
def test_a_topic_that_kubectl_takes_for_no_text_is_refused(written: str) -> None:
    text = yaml.safe_dump(manifest(entry(0, 1, 2))).replace("orders", written)
    assert "spec.partitions.0.topic: it is no text" in error_of(convert(text), 2)
    text = yaml.safe_dump(manifest(entry(0, 1, 2), name="any-name")).replace("any-name", written)
    assert "metadata.name" in error_of(convert(text), 2)


brokers = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=16, unique=True)


@st.composite
def stock_files(draw: st.DrawFn) -> dict[str, Any]:
    keys = st.tuples(
        st.text("abc.-_0", min_size=1, max_size=6).filter(lambda t: t not in (".", "..")), st.integers(0, 9)
    )
    partitions = []
    for topic, number in draw(st.lists(keys, min_size=1, max_size=6, unique=True)):
        replicas = draw(brokers)
        one: dict[str, Any] = {"topic": topic, "partition": number, "replicas": replicas}
        if draw(st.booleans()):
            one["log_dirs"] = [draw(st.sampled_from(["any", "/d", "/d: #'\"ü"])) for _ in replicas]
        partitions.append(one)
    return {"version": 1, "partitions": partitions}


@given(stock_files(), st.integers(1, 3))
@examples(30)
def test_there_and_back_nothing_is_lost(stock: dict[str, Any], size: int) -> None:
    there = convert(stock, *HERE, "--max-partitions", size)
    back = convert(there.out)
    assert (there.code, back.code) == (0, 0), (there, back)
    assert json.loads(back.out) == stock


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "[" * 100_000,
        "{}",
        '{"version": 2, "partitions": []}',
        '{"version": 1, "partitions": [{"topic": "t"}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}',
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}',
        "kind: ConfigMap",
        "items: 5",
        "items:",
        "a: 2026-02-30",
        "a: !!float b",
        "a: !!bool b",
        "a: !!timestamp b",
        f"a: {'9' * 5000}",
    ],
)
def test_what_is_neither_is_refused(text: str) -> None:
    error_of(convert(text, *HERE), 2)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"version":1,\n "partitions":[\n  {"topic":"t","partition":0,"replicas":[1]},\n ]}', " at line 4, column 2;"),
        ("// reassign.json\n{}", "is not JSON: Expecting value at line 1, column 1;"),
        ("kind: PartitionReassignment\nspec: [", "it is neither JSON nor YAML at line 3, column 1;"),
        ("{kind: PartitionReassignment}", "standard input is of None, not kafka.reassign.dev/v1alpha1"),
    ],
)
def test_what_was_meant_decides_what_is_said(text: str, what: str) -> None:
    assert what in error_of(convert(text, *HERE), 2)


def test_what_the_stock_tool_does_not_read_is_noted() -> None:
    ran = convert(json.dumps({"partitions": STOCK["partitions"], "owner": "me"}) + "\n{}", *HERE)
    assert ran.code == 0
    assert [line.split(":")[0] for line in ran.err.splitlines()] == ["note", "note"]
    assert ran.out == convert(STOCK, *HERE).out


def test_manifests_need_the_name_of_a_kafka_cluster() -> None:
    ran = convert(STOCK)
    assert (ran.code, ran.out) == (2, "")
    assert "manifests refer to a KafkaCluster: name it with --cluster" in ran.err


# --- rollback ---


def test_a_live_reassignment_is_turned_round(monkeypatch: pytest.MonkeyPatch) -> None:
    Live(sim(), moved()).serve(monkeypatch)
    ran = run("rollback", "move", "-n", "kafka")
    assert (ran.code, ran.err) == (0, "")
    back = yaml.safe_load(ran.out)
    assert back["spec"]["partitions"] == [
        {"topic": "orders", "partition": 0, "replicas": [0, 1], "expectedReplicas": [2, 3]}
    ]
    assert back["spec"]["throttle"] == {"interBroker": "1Mi"}
    assert back["metadata"]["namespace"] == "kafka"
    assert "status" not in back


def test_one_in_a_file_is_turned_round(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(yaml.safe_dump(moved()))
    assert "replicas: [0, 1]\n" in run("rollback", "-f", tmp_path / "f").out


def test_waves_of_a_file_that_moved_nothing_are_left_out(tmp_path: Path) -> None:
    waiting = manifest(entry(1, 2, 3), namespace="kafka")
    waiting["metadata"]["name"] = "waits"
    (tmp_path / "f").write_text(yaml.safe_dump_all([moved(), waiting]))
    ran = run("rollback", "-f", tmp_path / "f", "-n", "kafka")
    assert (ran.code, len(list(yaml.safe_load_all(ran.out)))) == (0, 1)
    assert "note: waits has nothing to roll back" in ran.err
    (tmp_path / "f").write_text(yaml.safe_dump_all([waiting, waiting]))
    assert "waits has nothing to roll back" in error_of(run("rollback", "-f", tmp_path / "f", "-n", "kafka"), 2)


def test_a_partition_whose_original_replicas_cannot_be_is_named(tmp_path: Path) -> None:
    twice = moved()
    rows = twice["status"]["partitions"]
    rows[1] |= {"originalReplicas": [3, 3], "targetReplicas": [1, 0]}
    rows.append(rows[0] | {"partition": 2, "originalReplicas": [*range(17)]})
    (tmp_path / "f").write_text(yaml.safe_dump(twice))
    ran = run("rollback", "-f", tmp_path / "f")
    assert [each["partition"] for each in yaml.safe_load(ran.out)["spec"]["partitions"]] == [0]
    assert (ran.code, ran.err) == (
        0,
        "note: partition 1 of orders is left out of the rollback of move, whose status has originalReplicas [3, 3] "
        "that name a broker twice; move it back by hand\n"
        "note: partition 2 of orders is left out of the rollback of move, whose status has originalReplicas of 17 "
        "brokers, more than 16; move it back by hand\n",
    )
    del rows[0]
    (tmp_path / "f").write_text(yaml.safe_dump(twice))
    said = error_of(run("rollback", "-f", tmp_path / "f"), 2)
    assert said.startswith("error: move cannot be rolled back: partition 1 of orders is left out")


def test_what_cannot_be_turned_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Live(sim(), manifest(entry(0, 2, 3), namespace="kafka")).serve(monkeypatch)
    assert "nothing to roll back" in error_of(run("rollback", "move", "-n", "kafka"), 2)
    said = error_of(run("rollback", "other", "-n", "kafka"), 2)
    assert "there is no PartitionReassignment other in namespace kafka; there are: move" in said
    Live(sim(), moved() | {"spec": {}}).serve(monkeypatch)
    assert "kafka/move, move: spec.clusterRef: " in error_of(run("rollback", "move", "-n", "kafka"), 2)
    ran = run("rollback")
    assert (ran.code, "name a PartitionReassignment, or a file" in ran.err) == (2, True)
    stock = '{"version": 1, "partitions": []}'
    said = error_of(run("rollback", "-f", "-", stdin=stock), 2)
    assert "is the stock tool's JSON; convert it first: kubectl kafka-reassign convert -f - --cluster NAME" in said
