"""Writes the CustomResourceDefinitions of the models: `python -m reassign.api.crd DIRECTORY...`.

pydantic's JSON schema becomes a structural schema: references are inlined, null and titles go, integers get
their format, and lists without another list type are atomic.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.common import GROUP, INT32_MAX, NEVER_WRITTEN, VALIDATIONS, VERSION, CustomResource, Model
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import ReassignmentPlan
from reassign.api.reassignment_policy import ReassignmentPolicy
from reassign.api.reassignment_record import ReassignmentRecord

Json = dict[str, Any]
Kinds = Sequence[tuple[type[CustomResource], list[Json]]]
HEADER = "# Made by `make crds` from the models in operator/reassign/api; changes belong there.\n"


def definitions() -> dict[str, Json]:
    """Return each CustomResourceDefinition, by the name of its file."""
    return {f"{GROUP}_{resource.PLURAL}.yaml": _definition(resource, columns) for resource, columns in SERVED}


def render() -> dict[str, str]:
    """Return the text of each file, by its name."""
    return {
        name: HEADER + yaml.safe_dump(definition, sort_keys=False, allow_unicode=True, width=110)
        for name, definition in definitions().items()
    }


def schema(model: type[Model]) -> Json:
    """Return the structural schema of a model, as Kubernetes wants it."""
    raw = model.model_json_schema(by_alias=True)
    return _structural(raw, raw.get("$defs", {}))


def _structural(node: Json, types: Mapping[str, Json]) -> Json:
    node = _inlined(node, types)
    result: Json = {}
    if description := node.pop("description", None):
        default = node.get("default")
        suffix = f" Default: {default}." if default and isinstance(default, str | int) else ""
        result["description"] = " ".join(description.split()) + suffix  # kubectl explain shows no defaults
    for key, value in node.items():
        match key:
            case "title" | "$defs":
                pass
            case "default" if value in (None, []):
                pass
            case "default" if isinstance(value, dict):
                result["default"] = {}  # the defaults of its own fields fill it in
            case "properties":
                result["properties"] = {name: _structural(field, types) for name, field in value.items()}
            case "items":
                result["items"] = _structural(value, types)
            case _:
                result[key] = value
    if result.get("type") == "integer":
        result["format"] = "int32" if result.get("maximum", INT32_MAX + 1) <= INT32_MAX else "int64"
    if result.get("type") == "array":
        result.setdefault("x-kubernetes-list-type", "atomic")
    return result


def _inlined(node: Json, types: Mapping[str, Json]) -> Json:
    """Return a node merged with the node that it refers to: its own keywords win, and the rules of both hold."""
    rest = dict(node)
    options = [option for option in rest.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del rest["anyOf"]
        base = _inlined(options[0], types)
    elif "$ref" in rest:
        base = _inlined(types[rest.pop("$ref").removeprefix("#/$defs/")], types)
    else:
        return rest
    rules = [*base.get(VALIDATIONS, []), *rest.get(VALIDATIONS, [])]
    return base | rest | ({VALIDATIONS: rules} if rules else {})


def _definition(resource: type[CustomResource], columns: list[Json]) -> Json:
    whole = schema(resource)
    properties = whole["properties"]
    whole["required"] = ["spec"]
    whole["properties"] = {
        "apiVersion": {"type": "string", "description": "Group and version of this resource's schema."},
        "kind": {"type": "string", "description": "Kind of the resource."},
        "metadata": {"type": "object"},
        "spec": properties["spec"],
    }
    if status := properties.get("status"):
        status["default"] = {"observedGeneration": NEVER_WRITTEN}
        whole["properties"]["status"] = status
    names = {"shortNames": [*resource.SHORT_NAMES], "categories": ["kafka-reassign"]} if resource.SHORT_NAMES else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": resource.KIND,
                "listKind": f"{resource.KIND}List",
                "plural": resource.PLURAL,
                "singular": resource.KIND.lower(),
                **names,
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    **({"subresources": {"status": {}}} if status else {}),
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def _column(name: str, path: str, type_: str = "string", wide: bool = False) -> Json:
    column: Json = {"name": name, "type": type_, "jsonPath": path}
    return column | {"priority": 1} if wide else column


_READY = '.status.conditions[?(@.type=="Ready")]'
_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_CLUSTER_COLUMNS = [
    _column("Ready", f"{_READY}.status"),
    _column("Reason", f"{_READY}.reason"),
    _column("Execution", ".spec.execution"),
    _column("InFlight", ".status.inFlight", "integer"),
    _AGE,
    _column("Foreign", ".status.foreignInFlight.count", "integer", wide=True),
    _column("Cluster-ID", ".status.clusterId", wide=True),
    _column("Bootstrap", ".spec.bootstrapServers", wide=True),
    _column("Message", f"{_READY}.message", wide=True),
]
_REASSIGNMENT_COLUMNS = [
    _column("Ready", f"{_READY}.status"),
    _column("Reason", f"{_READY}.reason"),
    _column("Progress", ".status.summary"),
    _AGE,
    _column("Cluster", ".spec.clusterRef.name", wide=True),
    _column("InFlight", ".status.progress.partitionsInFlight", "integer", wide=True),
    _column("Blocked", ".status.progress.partitionsBlocked", "integer", wide=True),
    _column("Adding", ".status.adding", "integer", wide=True),
    _column("Removing", ".status.removing", "integer", wide=True),
    _column("Message", f"{_READY}.message", wide=True),
]
_PLAN_COLUMNS = [
    _column("Ready", f"{_READY}.status"),
    _column("Reason", f"{_READY}.reason"),
    _column("Progress", ".status.summary"),
    _AGE,
    _column("Cluster", ".spec.clusterRef.name", wide=True),
    _column("Replicas", ".status.moves.replicas", "integer", wide=True),
    _column("Bytes", ".status.moves.bytes", "integer", wide=True),
    _column("Least-Bytes", ".status.lowerBound.bytes", "integer", wide=True),
    _column("Digest", ".status.digest", wide=True),
    _column("Message", f"{_READY}.message", wide=True),
]
_RECORD_COLUMNS = [
    _column("Owner", ".metadata.ownerReferences[0].name"),
    _column("Part", ".spec.part", "integer"),
    _AGE,
    _column("Kind", ".metadata.ownerReferences[0].kind", wide=True),
    _column("Cluster", ".spec.clusterRef.name", wide=True),
]
_DECOMMISSION_COLUMNS = [
    _column("Ready", f"{_READY}.status"),
    _column("Reason", f"{_READY}.reason"),
    _column("Brokers", ".spec.brokers"),
    _column("Left", ".status.replicasLeft", "integer"),
    _column("Empty", '.status.conditions[?(@.type=="Empty")].status'),
    _AGE,
    _column("Cordoned", '.status.conditions[?(@.type=="Cordoned")].status', wide=True),
    _column("Cluster", ".spec.clusterRef.name", wide=True),
    _column("Message", f"{_READY}.message", wide=True),
]
_POLICY_COLUMNS = [
    _column("Ready", f"{_READY}.status"),
    _column("Reason", f"{_READY}.reason"),
    _column("Plan", ".status.plan.name"),
    _column("Next", ".status.nextScheduleTime"),  # as a date, kubectl shows a time to come as invalid
    _AGE,
    _column("Cluster", ".spec.clusterRef.name", wide=True),
    _column("Trigger", ".status.plan.trigger", wide=True),
    _column("Message", f"{_READY}.message", wide=True),
]

SERVED: Kinds = (
    (KafkaCluster, _CLUSTER_COLUMNS),
    (PartitionReassignment, _REASSIGNMENT_COLUMNS),
    (ReassignmentPlan, _PLAN_COLUMNS),
    (BrokerDecommission, _DECOMMISSION_COLUMNS),
    (ReassignmentPolicy, _POLICY_COLUMNS),
    (ReassignmentRecord, _RECORD_COLUMNS),
)
"""The kinds that the operator serves, each with its columns."""


if __name__ == "__main__":
    for directory in map(Path, sys.argv[1:]):
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in render().items():
            (directory / name).write_text(text)
