"""The alerts and the dashboard of the chart, and what they ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from localplatform.chart_readme import CHART

ALERTS, DASHBOARD = CHART / "files" / "alerts.yaml", CHART / "files" / "dashboard.json"


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return list(group["rules"])


def queries() -> Iterator[str]:
    """The queries of the dashboard, with a value for each of its variables."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$kafka_cluster", ".*").replace("$__rate_interval", "5m")


def metrics(query: str) -> set[str]:
    """The metrics of ours that a query names, a histogram by its own name."""
    named = re.findall(r"\bkafka_reassign_\w+", query)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
