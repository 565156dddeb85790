"""The metrics that the documentation names, and those of a world."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.world import World

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(kafka_reassign_\w+)` \| (\w+) \| (.*?) ?\| .+ \|$", re.MULTILINE)


def documented() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric in the table."""
    rows = ROW.findall(PAGE.read_text())
    return {name: (type_, frozenset(re.findall(r"`(\w+)`", labels))) for name, type_, labels in rows}


def series(world: World) -> dict[str, float]:
    """The samples of the only cluster by their name and further labels, such as `partitions{state=InFlight}`."""
    found = {}
    for family in text_string_to_metric_families(world.metrics.text().decode()):
        for name, labels, value, *_ in family.samples:
            if labels.pop("kafka_cluster", "") == "kafka/main":
                further = ",".join(f"{label}={labels[label]}" for label in sorted(labels))
                found[name.removeprefix("kafka_reassign_") + (f"{{{further}}}" if further else "")] = value
    return found
