"""Writes what comes from the code: the pages of docs/reference, and the drawing of the states. `make crds`."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from docs.state_drawing import drawing
from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase
from typer.testing import CliRunner

from localplatform.chart_readme import table
from reassign.api.crd import definitions
from reassign.cli.app import app
from reassign.controller.metrics import Metrics
from reassign.core.model import waits
from reassign.core.model.states import TRANSITIONS
from reassign.core.report.events import Happened
from reassign.errors import Reason

FOLDER = Path(__file__).parent
KINDS = ("KafkaCluster", "PartitionReassignment", "ReassignmentPlan", "BrokerDecommission", "ReassignmentPolicy")

RESOURCES_HEAD = """\
# Resources

This page lists every field of the five resources. `kubectl explain kpr.spec` shows the same. The API is
`kafka.reassign.dev/v1alpha1`. ReassignmentRecords are an internal kind ([Records](../built/records.md)).

Everything in `status` is written by the operator.
"""

VALUES_HEAD = """\
# Values of the chart

This page lists the values of the chart, as its README does. A value that is not listed here is refused.

"""

METRICS_HEAD = """\
# Metrics

This page describes each metric of the operator.

The label `kafka_cluster` is `NAMESPACE/NAME` of a KafkaCluster. No metric has a label for topics, partitions or
resources. The series of a KafkaCluster end when it is deleted. Only the pod that holds the Lease has series with this
label. While Kafka is unreachable, the figures of the last observation stay.

The metrics of the process itself begin with `process_`.

| metric | type | labels | what it says |
| --- | --- | --- | --- |
"""

EVENTS_HEAD = """\
# Events

This page lists the events that the operator records on its resources: `kubectl events --for kpr/NAME -n NAMESPACE`.

A resource that begins to wait, or that stalls, has a warning with the [reason](reasons.md) of that. A KafkaCluster has
an event with the reason of each pause. `ThrottleDrift` and `ThrottleRecordLost` are events too. Beside these are:

| event | what has happened, and what to do |
| --- | --- |
"""

REASONS_HEAD = """\
# Reasons

This page lists each reason of a condition, an event or a partition, and what to do.

| waits for | what that means |
| --- | --- |
| nothing | the operator is at work |
| time | the wait ends by itself. The resource is `Reconciling`, and `Stalled` too after `stallTimeoutSeconds` |
| you | the resource is `Stalled` at once |
| your wish | you asked for the wait. It never times out |

[Conditions](conditions.md) shows what your tools make of each state.
"""

OPTIONS_HEAD = """\
# Options of the command line

This page shows the help of each command. [The command line](command-line.md) describes them by example.
"""

WAITS = (
    (waits.GOES_ON, "nothing"),
    (waits.PASSES, "time"),
    (waits.NEEDS_USER, "you"),
    (waits.WISHED, "your wish"),
)


def pages() -> dict[str, str]:
    """Return the text of each page and drawing, by the path of its file below docs/."""
    return {
        "reference/resources.md": RESOURCES_HEAD + "".join(_resources()),
        "reference/values.md": VALUES_HEAD + table(),
        "reference/metrics.md": METRICS_HEAD + "".join(sorted(_metrics())),
        "reference/events.md": EVENTS_HEAD + _rows((f"`{name}`", text) for name, text, _ in _documented(Happened)),
        "reference/reasons.md": REASONS_HEAD + "".join(_reasons()),
        "reference/options.md": OPTIONS_HEAD + "".join(_help()),
        "pictures/states.svg": drawing(TRANSITIONS),
    }


def _rows(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in rows)


def _resources() -> Iterator[str]:
    schemas = {
        definition["spec"]["names"]["kind"]: definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for definition in definitions().values()
    }
    for kind in KINDS:
        yield f"\n## {kind}\n\n{schemas[kind]['description']}\n"
        for part in ("spec", "status"):
            yield f"\n### {kind}: {part}\n\n| field | type | default | meaning |\n| --- | --- | --- | --- |\n"
            yield _rows(_fields(schemas[kind]["properties"][part], ""))


def _fields(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    """A row for each field below a schema, from the top down."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path, inner = f"{prefix}{name}", field
        while inner.get("type") == "array":
            path, inner = f"{path}[]", inner["items"]
        default = f"`{json.dumps(field['default'])}`" if field.get("default") not in (None, {}) else ""
        given = "required" if name in required else default
        yield f"`{path}`", _type(inner), given, field["description"].partition(" Default: ")[0]
        yield from _fields(inner, f"{path}.")


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    least, most = schema.get("minimum"), schema.get("maximum")
    return f"{schema['type']} from {least} to {most}" if None not in (least, most) else str(schema["type"])


def _metrics() -> Iterator[str]:
    metrics = Metrics()
    for metric in metrics.registry._collector_to_names:
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            yield _metric(family, metric._labelnames)
    for family in metrics.collect():
        yield _metric(family, family._labelnames)


def _metric(family: Metric, labels: Iterable[str]) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return _rows([(f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation)])


def _documented(names: type[StrEnum]) -> Iterator[tuple[str, str, str]]:
    """Each value, the text below it in the source, and the comment above its group."""
    source = inspect.getsource(names)
    lines = source.splitlines()
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    group = ""
    for value, text in zip(body.body[1::2], body.body[2::2], strict=True):
        assert isinstance(value, ast.Assign)
        assert isinstance(text, ast.Expr)
        if (above := lines[value.lineno - 2].strip()).startswith("# "):
            group = above.removeprefix("# ")
        yield ast.literal_eval(value.value), " ".join(ast.literal_eval(text.value).split()), group


def _reasons() -> Iterator[str]:
    groups: dict[str, list[tuple[str, ...]]] = {}
    for name, text, group in _documented(Reason):
        (waits_for,) = [word for reasons, word in WAITS if Reason(name) in reasons]
        groups.setdefault(group, []).append((f"`{name}`", waits_for, text))
    for group, rows in groups.items():
        yield f"\n## {group[0].upper()}{group[1:]}\n\n| reason | waits for | what it means, and what to do |\n"
        yield "| --- | --- | --- |\n" + _rows(rows)


def _help() -> Iterator[str]:
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"})
    for words in _commands():
        text = runner.invoke(app, [*words, "--help"], prog_name="kubectl kafka-reassign").stdout
        yield f"\n## {' '.join(words)}\n\n```text\n{text.strip()}\n```\n"


def _commands() -> list[tuple[str, ...]]:
    own = [(name,) for name in _names(app)]
    (fleet,) = [group for group in app.registered_groups if group.name == "fleet"]
    assert fleet.typer_instance is not None
    return [*own, *(("fleet", name) for name in _names(fleet.typer_instance))]


def _names(commands: Any) -> list[str]:
    """Of an app's own commands, and of those that it has taken in without a name of their own."""
    found = [command.name or command.callback.__name__ for command in commands.registered_commands]
    taken_in = [group.typer_instance for group in commands.registered_groups if not group.name]
    return found + [name for group in taken_in for name in _names(group)]


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
