"""The stock tool takes what manifests are converted to, and `convert` takes what the stock tool takes."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localplatform.console import PlatformError
from reassign.core.model.snapshot import TopicPartition
from reassign.manifests.stock import manifests, read, write
from tests.kafka.harness import Kafka, eventually
from tests.unit.cli import run

MOVE = '{"topic":"orders","partition":0,"replicas":[0,1]}'
"""Where `orders` is; a test has its own topic of that place."""
LONG = "[" * 500 + "]" * 500
TAKEN = [
    f'{{"version":1,"partitions":[{MOVE}]}}',
    f'\n\t {{"partitions":[{MOVE}]}}\n',
    f'{{"version":1,"partitions":[{MOVE}],"owner":{{"name":null}},"rate":1.5e3}}',
    f'{{"version":1,"partitions":[{MOVE[:-1]},"log_dir":["any"],"rack":"a"}}]}}',
    f'{{"version":1,"partitions":[{MOVE[:-1]},"log_dirs":["any","any"]}}]}}',
    f'{{"version":1,"partitions":[{MOVE}]}} and what was done',
    f'{{"version":1,"partitions":[{MOVE}]}}}}',
    f'{{"version":1,"partitions":[{MOVE}]}}\n{{"version":2}}',
    f'{{"version":2,"version":1,"partitions":[],"partitions":[{MOVE}]}}',
    f'{{"version":1,"partitions":[{MOVE.replace(":0", ":-0")}]}}',
    f'{{"version":1,"partitions":[{MOVE}],"deep":{LONG}}}',
]
REFUSED = [
    "",
    " \n",
    "5",
    "[]",
    "{}",
    '{"version":1}',
    '{"version":1,"partitions":null}',
    '{"version":1,"partitions":{}}',
    '{"version":1,"partitions":[]}',
    '{"version":1,"partitions":[5]}',
    *(f'{{"version":{version},"partitions":[{MOVE}]}}' for version in ("2", '"1"', "null", "1.0", "true")),
    f'{{"version":1,"partitions":[{MOVE}]',
    f'{{"version":1,"partitions":[{MOVE},]}}',
    f"{{'version':1,'partitions':[{MOVE}]}}",
    f'// moves\n{{"version":1,"partitions":[{MOVE}]}}',
    f'# moves\n{{"version":1,"partitions":[{MOVE}]}}',
    f'{{"version":1,"partitions":[{MOVE}],"rate":NaN}}',
    f'{{"version":01,"partitions":[{MOVE}]}}',
    f'{{"version":1,"partitions":[{MOVE.replace(":0", ":0.0")}]}}',
    f'{{"version":1,"partitions":[{MOVE},{MOVE}]}}',
    *(
        f'{{"version":1,"partitions":[{MOVE.replace(old, new)}]}}'
        for old, new in [
            ('"replicas"', '\u201creplicas"'),
            ('"orders"', '["orders"]'),
            ('"orders"', '"no such topic"'),
            ('"topic"', '"name"'),
            (":0", ':"0"'),
            (":0", ":-1"),
            (":0", ":2147483648"),
            ("[0,1]", "[]"),
            ("[0,1]", '"0,1"'),
            ("[0,1]", '["0","1"]'),
            ("[0,1]", "[0,0]"),
            ("[0,1]", "[0,-1]"),
            ("[0,1]", '[0,1],"log_dirs":["any"]'),
            ("[0,1]", '[0,1],"log_dirs":null'),
            ("[0,1]", '[0,1],"log_dirs":[1,2]'),
        ]
    ),
]


def takes(kafka: Kafka, file: Path) -> bool:
    """Whether the stock tool begins the moves of a file."""
    try:
        kafka.brokers.tool("reassign-partitions", "--execute", "--additional", "--reassignment-json-file", str(file))
    except PlatformError:
        return False
    return True


def converts(file: Path) -> bool:
    """Whether `convert` makes a manifest of a file; else its error is one line that ends with its reason."""
    ran = run("convert", "-f", file, "--cluster", "main", "-n", "kafka")
    assert ran.code == 0 or (ran.code == 2 and re.fullmatch(r"error: .* \(InvalidGoal\)\n", ran.err)), ran
    return ran.code == 0


def test_the_stock_tool_accepts_what_manifests_are_converted_to(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([0, 1], [1, 2], [2, 0])
    partitions = [
        {"topic": name, "partition": 2, "replicas": [3, 0], "log_dirs": ["any", "any"]},
        {"topic": name, "partition": 0, "replicas": [1, 0]},
        {"topic": name, "partition": 1, "replicas": [1, 2, 3]},
    ]
    moves = read(json.dumps({"version": 1, "partitions": partitions})).partitions
    made = manifests(moves, name="m", namespace="kafka", cluster_ref={"name": "main"}, template={}, max_partitions=2)
    file = tmp_path / "moves.json"
    file.write_text(write(made))

    kafka.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(file))

    for entry in partitions:
        tp = TopicPartition(name, int(str(entry["partition"])))
        eventually(lambda tp=tp, entry=entry: kafka.stock_tool_says(tp) == tuple(entry["replicas"]))
    says = kafka.brokers.tool("reassign-partitions", "--verify", "--reassignment-json-file", str(file))
    assert says.count("is completed") == len(partitions)


@pytest.mark.parametrize(("texts", "verdict"), [(TAKEN, True), (REFUSED, False)], ids=["taken", "refused"])
def test_convert_takes_the_files_that_the_stock_tool_takes(
    kafka: Kafka, tmp_path: Path, texts: list[str], verdict: bool
) -> None:
    topic = kafka.topic([0, 1])
    files = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text.replace('"orders"', f'"{topic}"'))
    with ThreadPoolExecutor(2) as pool:
        stock = dict(zip(texts, pool.map(lambda file: takes(kafka, file), files), strict=True))
    assert stock == dict.fromkeys(texts, verdict)
    assert dict(zip(texts, map(converts, files), strict=True)) == stock


def test_the_lines_that_the_stock_tool_printed_are_named(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic([0, 1])
    topics, file = tmp_path / "topics.json", tmp_path / "printed"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    moves = ("--topics-to-move-json-file", str(topics), "--broker-list", "0,1")
    printed = kafka.brokers.tool("reassign-partitions", "--generate", *moves)
    file.write_text(printed)
    assert not takes(kafka, file)
    said = run("convert", "-f", file, "--cluster", "main", "-n", "kafka").err
    proposed, current = (int(number) for number in re.findall(r"line (\d+) is", said))
    for line in (current, proposed):
        file.write_text(printed.splitlines()[line - 1])
        assert takes(kafka, file)
        assert converts(file)

    printed = kafka.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(file))
    file.write_text(printed)
    said = run("convert", "-f", file, "--cluster", "main", "-n", "kafka").err
    (before,) = (int(number) for number in re.findall(r"line (\d+) is", said))
    file.write_text(printed.splitlines()[before - 1])
    assert converts(file)
