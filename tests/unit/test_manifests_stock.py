"""The stock tool's JSON becomes PartitionReassignments and comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.partition_reassignment import PartitionReassignment
from reassign.errors import PlanningError, Reason
from reassign.manifests import documents
from reassign.manifests.objects import Manifest
from reassign.manifests.stock import manifests, read, write
from reassign.manifests.text import dump
from tests.unit.examples import examples

topics = st.text("aZ9._-", min_size=1, max_size=9).filter(lambda name: name not in (".", "..")) | st.just("t" * 249)
ids = st.integers(0, 5) | st.integers(0, 2**31 - 1)
directories = st.just("any") | st.text(
    st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=9
).map(lambda path: "/" + path)


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    replicas = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    made = {"topic": draw(st.sampled_from(["a", "b"]) | topics), "partition": draw(ids), "replicas": replicas}
    if draw(st.booleans()):
        made["log_dirs"] = draw(st.lists(directories, min_size=len(replicas), max_size=len(replicas)))
    return made


files = st.lists(entries(), min_size=1, max_size=5, unique_by=lambda e: (e["topic"], e["partition"])).map(
    lambda partitions: {"version": 1, "partitions": partitions}
)


def converted(document: object, **options: Any) -> list[Manifest]:
    template = options.pop("template", {})
    moves = read(document if isinstance(document, str) else json.dumps(document))
    named = {"name": "moves", "namespace": "kafka", "cluster_ref": {"name": "main"}}
    return manifests(moves.partitions, template=template, **named, **options)  # type: ignore[arg-type]


@examples(400)
@given(files, st.integers(1, 4))
def test_files_and_manifests_come_back_as_they_were(document: dict[str, Any], max_partitions: int) -> None:
    options: dict[str, Any] = {"max_partitions": max_partitions, "template": {"preferredLeader": "Keep"}}
    made = converted(document, **options)
    text = dump(made)
    file = write(documents.read(text, Path("moves.yaml")))
    assert json.loads(file) == document
    assert converted(file, **options) == made
    assert all(len(manifest["spec"]["partitions"]) <= max_partitions for manifest in made)


@given(files)
def test_the_manifests_are_what_the_resource_reads(document: dict[str, Any]) -> None:
    for manifest in converted(document):
        entries = PartitionReassignment.parse(json.loads(json.dumps(manifest))).spec.partitions
        assert [e.topic for e in entries] == [e["topic"] for e in document["partitions"]]
        assert [e.log_dirs and list(e.log_dirs) for e in entries] == [e.get("log_dirs") for e in document["partitions"]]


def move(**fields: Any) -> dict[str, Any]:
    return {"topic": "orders", "partition": 0, "replicas": [1, 2]} | fields


def test_a_file_is_one_manifest_with_the_options_of_the_template() -> None:
    options = {"replicationFactorChange": "Allow", "throttle": {"interBroker": "5Mi"}}
    [manifest] = converted({"version": 1, "partitions": [move(log_dirs=["any", "/data/b"])]}, template=options)
    assert manifest["metadata"] == {"name": "moves", "namespace": "kafka"}
    assert manifest["spec"] == {
        "clusterRef": {"name": "main"},
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "logDirs": ["any", "/data/b"]}],
        **options,
    }


def test_a_large_file_is_split_and_the_names_sort_in_its_order() -> None:
    made = converted({"version": 1, "partitions": [move(partition=n) for n in range(5001)]})
    names = [manifest["metadata"]["name"] for manifest in made]
    assert names == sorted(names) == [f"moves-{n:02}" for n in range(1, 12)]
    assert [len(manifest["spec"]["partitions"]) for manifest in made] == [500] * 10 + [1]


def test_long_topic_names_split_a_file_too() -> None:
    partitions = [move(topic=f"{n:03}" + "t" * 246) for n in range(700)]
    made = converted({"version": 1, "partitions": partitions}, max_partitions=2000)
    assert [len(manifest["spec"]["partitions"]) for manifest in made] == [642, 58]


def test_what_a_file_cannot_express_is_left_out() -> None:
    manifest = {"spec": {"suspend": True, "partitions": [move(expectedReplicas=[3, 4])]}}
    assert json.loads(write([manifest])) == {"version": 1, "partitions": [move()]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (
            '{"version":1,\n"partitions":[{},]}',
            "not JSON: (Expecting value|Illegal trailing comma.*) at line 2, column",
        ),
        ("{'version': 1}", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ('# move orders\n{"version": 1}', "not JSON: Expecting value at line 1, column 1"),
        ("", "not JSON: it is empty"),
        (" \n", "not JSON: it is empty"),
        ("[" * 100_000, "not JSON: it is nested too deeply"),
        ('{"partitions": [], "a": NaN}', "not JSON: it has NaN"),
        (f'{{"partitions": {"9" * 5000}}}', "not JSON: it has .* a number that is too long"),
        ([], "no list named partitions"),
        ({"version": 1}, "no list named partitions"),
        ({"version": 1, "partitions": {}}, "no list named partitions"),
        ({"version": None, "partitions": [move()]}, "version is null, not 1"),
        ({"version": 1.0, "partitions": [move()]}, "version is 1.0, not 1"),
        ({"version": 2, "partitions": [move()]}, "version is 2, not 1"),
        ({"version": "1", "partitions": [move()]}, 'version is "1", not 1'),
        ({"version": True, "partitions": [move()]}, "version is true, not 1"),
        ({"version": 1, "partitions": []}, "no partitions"),
    ],
)
def test_what_is_no_such_file_is_refused(document: object, message: str) -> None:
    with pytest.raises(PlanningError, match=message) as refusal:
        converted(document)
    assert refusal.value.reason is Reason.INVALID_GOAL
    assert "kafka-reassign-partitions" in refusal.value.message


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in move().items() if name != key}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (5, "it is 5, not an object"),
        (without("topic"), "no topic"),
        (without("partition"), "no partition"),
        (without("replicas"), "no replicas"),
        (move(topic=""), 'no topic can be named ""'),
        (move(topic=".."), r'no topic can be named "\.\."'),
        (move(topic="a b"), 'no topic can be named "a b"'),
        (move(topic="a\n"), "no topic can be named"),
        (move(topic="ö"), 'no topic can be named "ö"'),
        (move(topic="t" * 250), "no topic can be named"),
        (move(topic="a " * 999), 'no topic can be named "a a a[ a]{1,50}…;'),
        (move(replicas=[[[[[[[[[[1]]]]]]]]]]), "replicas has a list, not a whole number"),
        (move(topic=5), "topic is 5, not a string"),
        (move(topic=["orders"]), "topic is a list, not a string"),
        (move(partition=-1), "no partition has the number -1"),
        (move(partition="0"), 'partition is "0", not a whole number'),
        (move(partition=True), "partition is true, not a whole number"),
        (move(partition=2**31), "partition is 2147483648, not a whole number of 32 bits"),
        (move(replicas=[]), "replicas is an empty list, not a list of brokers"),
        (move(replicas=list(range(17))), "replicas has 17 brokers, more than 16"),
        (move(replicas="1,2"), 'replicas is "1,2", not a list of brokers'),
        (move(replicas=[1, -2]), "no broker has the id -2"),
        (move(replicas=[1, 2.5]), "replicas has 2.5, not a whole number"),
        (move(replicas=[1, 2, 1]), "more than once"),
        (move(log_dirs=["any"]), "as many items as replicas"),
        (move(log_dirs=None), "as many items as replicas"),
        (move(log_dirs=["any", "data"]), '"data", which is neither any nor an absolute path'),
        (move(log_dirs=["any", "/a\n"]), "neither any nor"),
        (move(log_dirs=["any", "/" * 1025]), "neither any nor"),
        (move(log_dirs=["any", "/\ud800"]), "neither any nor"),
        (move(log_dirs=["any", 5]), "log_dirs has 5, not a string"),
        (move(topic="payments"), "payments-0 is there already"),
    ],
)
def test_an_entry_that_is_wrong_is_named(entry: object, message: str) -> None:
    document = {"version": 1, "partitions": [move(topic="payments"), entry]}
    with pytest.raises(PlanningError, match=rf"^partitions\[1\]: .*{message}"):
        converted(document)


def test_manifests_that_name_a_partition_twice_make_no_file() -> None:
    manifest = {"spec": {"partitions": [move()]}}
    with pytest.raises(PlanningError, match="orders-0 is there already"):
        write([manifest, manifest])


def test_a_file_without_a_version_is_of_the_first() -> None:
    assert converted({"partitions": [move()]}) == converted({"version": 1, "partitions": [move()]})


def test_what_the_stock_tool_does_not_read_is_left_out_and_said() -> None:
    moves = read(
        json.dumps({"owner": "me", "partitions": [move(), move(partition=1, log_dir="any")]}) + "\n\nSave this"
    )
    assert moves.partitions == [move(), move(partition=1)]
    fields, rest = moves.notes
    assert fields.endswith("not read them: 'owner', partitions[1].'log_dir'")
    assert rest.startswith("what follows the JSON document, at line 3, is not read")


GENERATED = """Current partition replica assignment
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1],"log_dirs":["any"]}]}

Proposed partition reassignment configuration
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[2],"log_dirs":["any"]}]}
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (GENERATED, "line 5 is the proposed assignment and line 2 is the assignment before it, to go back to"),
        (GENERATED.split("\n", 1)[1], "line 4 is the proposed assignment"),
        (GENERATED.replace("assignment\n", "assignment\n\n").split("\n\nP")[0], "line 3 is the assignment before it"),
        ("WARN something\n" + GENERATED, "line 6 is the proposed assignment and line 3 is"),
        (GENERATED.split("{")[0], "it is cut short"),
    ],
)
def test_what_the_stock_tool_printed_is_named_by_its_lines(text: str, lines: str) -> None:
    with pytest.raises(PlanningError, match=f"kafka-reassign-partitions has printed: {lines}"):
        read(text)
