"""A PartitionReassignment as an object: its name, spec and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from reassign.api.common import API_VERSION, Model
from reassign.api.digest import hashed
from reassign.api.limits import MAX_LABEL_CHARACTERS, MAX_NAME_CHARACTERS, MAX_TOPIC_CHARACTERS
from reassign.api.partition_reassignment import PartitionReassignment, PartitionReassignmentSpec
from reassign.errors import PlanningError, Reason
from reassign.text import first_error

HASH_CHARACTERS = 8

Manifest = dict[str, Any]
M = TypeVar("M", bound=Model)


def manifest(name: str, namespace: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Manifest:
    metadata = {"name": name, "namespace": namespace} | ({"labels": dict(labels)} if labels else {})
    return {"apiVersion": API_VERSION, "kind": PartitionReassignment.KIND, "metadata": metadata, "spec": dict(spec)}


def spec_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return these fields of a spec, without defaults, as on the wire; raises PlanningError for invalid ones."""
    spec = parsed(PartitionReassignmentSpec, fields)
    return spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def parsed(model: type[M], fields: Mapping[str, Any]) -> M:
    try:
        return model.parse(fields)
    except ValidationError as error:
        raise PlanningError(
            Reason.INVALID_GOAL, f"no PartitionReassignment can have this {first_error(error)}; change it"
        ) from error


def check_limits(what: str, entries: Sequence[Mapping[str, Any]], max_partitions: int) -> None:
    """Raise PlanningError for entries or topic names that one object cannot hold."""
    if len(entries) > max_partitions:
        raise PlanningError(
            Reason.INVALID_GOAL,
            f"{what} has {len(entries)} partitions of at most {max_partitions}: lower the waves' maxPartitions",
        )
    characters = sum(len(entry["topic"]) for entry in entries)
    if characters >= MAX_TOPIC_CHARACTERS:
        raise PlanningError(
            Reason.INVALID_GOAL,
            f"the topic names of {what} have {characters} characters, and must have less than {MAX_TOPIC_CHARACTERS}: "
            "lower the waves' maxPartitions",
        )


def without_entries(manifest: Manifest) -> Manifest:
    """Return the manifest without its entries."""
    return {**manifest, "spec": {key: value for key, value in manifest["spec"].items() if key != "partitions"}}


def plan_label(name: str) -> str:
    """Return the value of PLAN_LABEL for a plan: its name, or, where that is too long, its start and a hash."""
    return name if len(name) <= MAX_LABEL_CHARACTERS else shortened(name, f"-{short_hash(name)}", MAX_LABEL_CHARACTERS)


def shortened(name: str, ending: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """Return the name with this ending, cut to the limit."""
    return name[: limit - len(ending)].rstrip("-.") + ending


def short_hash(content: object) -> str:
    return hashed(content).removeprefix("sha256:")[:HASH_CHARACTERS]
