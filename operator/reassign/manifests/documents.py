"""Manifests of PartitionReassignments, checked as the API server's schema checks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reassign.api.common import API_VERSION
from reassign.api.names import NAMESPACE_NAME, OBJECT_NAME
from reassign.api.partition_reassignment import PartitionReassignment, PartitionReassignmentSpec
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import Manifest
from reassign.manifests.text import load
from reassign.text import first_error, source

SHOWN = 50
"""Characters of a name that a message repeats."""


def read(text: str, file: Path) -> list[Manifest]:
    """Return the PartitionReassignments of a text; raises PlanningError for anything else, and for none at all."""
    name = source(file)
    try:
        manifests = [item for document in load(text) for item in _items(document)]
    except ValueError as error:
        raise _refusal(f"{name} cannot be read: {error}; correct it") from None
    if not manifests:
        raise _refusal(f"{name} has no PartitionReassignment; name a file that has one")
    for manifest in manifests:
        if isinstance(manifest, dict) and "kind" not in manifest and "partitions" in manifest:
            convert = f"kubectl kafka-reassign convert -f {file} --cluster NAME"
            raise _refusal(f"{name} is the stock tool's JSON; convert it first: {convert}")
        check(manifest, name)
        _check_written(manifest, name)
    return manifests


def _items(document: Any) -> list[Any]:
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) else [document]


def check(manifest: Any, file: str) -> None:
    """Raise PlanningError for an object that is no PartitionReassignment of this version; `file` is its source."""
    if not isinstance(manifest, dict) or manifest.get("kind") != PartitionReassignment.KIND:
        raise _refusal(f"{file} has {_called(manifest)}, not only PartitionReassignments; take that out")
    if manifest.get("apiVersion") != API_VERSION:
        raise _refusal(f"{file} is of {manifest.get('apiVersion')}, not {API_VERSION}; convert it")
    name = manifest["metadata"].get("name") if isinstance(manifest.get("metadata"), dict) else None
    if name is None:
        raise _refusal(f"a PartitionReassignment in {file} has no metadata.name; add it")
    if not isinstance(name, str):
        raise _refusal(f"{file}: metadata.name is {str(name)[:SHOWN]}, which is no text to YAML; put it in quotes")
    for what, pattern in (("name", OBJECT_NAME), ("namespace", NAMESPACE_NAME)):
        text = manifest["metadata"].get(what)
        if isinstance(text, str) and not pattern.fullmatch(text):
            raise _refusal(f"{file}: no object can have the {what} {text[:SHOWN]!r}; correct metadata.{what}")
    try:
        parsed = PartitionReassignment.parse({**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}})
    except ValidationError as error:
        raise _refusal(f"{file}, {name}: {first_error(error)}; correct it") from None
    seen: set[tuple[str, int]] = set()
    for entry in parsed.spec.partitions:
        what = f"{file}, {name}: partition {entry.partition} of {entry.topic}"
        if (entry.topic, entry.partition) in seen:
            raise _refusal(f"{what} is there twice; keep one")
        seen.add((entry.topic, entry.partition))
        if len(set(entry.replicas)) < len(entry.replicas):
            raise _refusal(f"{what} names a broker more than once; name each once")
        if entry.log_dirs is not None and len(entry.log_dirs) != len(entry.replicas):
            raise _refusal(f"{what} has {len(entry.log_dirs)} logDirs for {len(entry.replicas)} replicas; name as many")


def _called(document: Any) -> str:
    """Return what a document is, in words."""
    if isinstance(document, dict):
        return f"a {str(document.get('kind', 'map without a kind'))[:SHOWN]}"
    if isinstance(document, bool):
        return "a boolean"
    words = {str: "a text", list: "a list", int: "a number", float: "a number"}
    return words.get(type(document), "an empty document")


def _check_written(manifest: Manifest, file: str) -> None:
    """Raise PlanningError for what the API server would refuse as written: unknown fields, `true` for 1."""
    try:
        text = json.dumps(manifest["spec"], default=str)
        PartitionReassignmentSpec.model_validate_json(text, strict=True, extra="forbid", by_alias=True, by_name=False)
    except ValidationError as error:
        raise _refusal(f"{file}, {manifest['metadata']['name']}: spec.{first_error(error)}; correct it") from None
    except (TypeError, ValueError, RecursionError):
        raise _refusal(
            f"{file}, {manifest['metadata']['name']}: spec is nothing that JSON can hold; correct it"
        ) from None


def _refusal(message: str) -> PlanningError:
    return PlanningError(Reason.CANNOT_BE_READ, message)
