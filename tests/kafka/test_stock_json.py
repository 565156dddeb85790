"""What is converted to the stock tool's JSON is what the stock tool takes."""

from __future__ import annotations

import json
from pathlib import Path

from reassign.core.model.snapshot import TopicPartition
from reassign.manifests.stock import read, write
from tests.kafka.harness import Kafka, eventually


def test_the_stock_tool_accepts_what_manifests_are_converted_to(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([0, 1], [1, 2], [2, 0])
    partitions = [
        {"topic": name, "partition": 2, "replicas": [3, 0], "log_dirs": ["any", "any"]},
        {"topic": name, "partition": 0, "replicas": [1, 0]},
        {"topic": name, "partition": 1, "replicas": [1, 2, 3]},
    ]
    document = json.dumps({"version": 1, "partitions": partitions})
    manifests = read(document, name="m", namespace="kafka", cluster_ref={"name": "main"}, template={}, max_partitions=2)
    file = tmp_path / "moves.json"
    file.write_text(write(manifests))

    kafka.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(file))

    for entry in partitions:
        tp = TopicPartition(name, int(str(entry["partition"])))
        eventually(lambda tp=tp, entry=entry: kafka.stock_tool_says(tp) == tuple(entry["replicas"]))
    says = kafka.brokers.tool("reassign-partitions", "--verify", "--reassignment-json-file", str(file))
    assert says.count("is completed") == len(partitions)
