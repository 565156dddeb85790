"""The CustomResourceDefinitions: what is checked in is what the models say, and their shape is what we promise."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reassign.api.crd import definitions, render

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("directory", ["crds", "charts/kafka-reassign-operator/files/crds"])
def test_the_files_are_what_the_models_say(directory: str) -> None:
    files = {path.name: path.read_text() for path in (ROOT / directory).iterdir()}
    assert files == render(), "run `make crds`"


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field of a schema by its path, from the top down."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


FIELDS = [
    (path, field)
    for definition in definitions().values()
    for path, field in nodes(
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], definition["spec"]["names"]["kind"]
    )
    if path.count(".")
]


def test_the_schemas_are_structural() -> None:
    """What Kubernetes asks for: a type at each node, no references, and options only for int or string."""
    for path, field in FIELDS:
        if field.get("x-kubernetes-int-or-string"):
            assert field["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
            assert "type" not in field, path
        else:
            assert field["type"] in ("object", "array", "string", "integer", "boolean"), path
            assert field.keys().isdisjoint({"anyOf", "allOf", "oneOf", "not"}), path
        assert field.keys().isdisjoint({"$ref", "$defs", "title", "const", "prefixItems", "exclusiveMinimum"}), path
        assert ("items" in field) == (field.get("type") == "array"), path


def test_every_field_is_described() -> None:
    described_by_parent = ("metadata",)
    bare = [
        path
        for path, field in FIELDS
        if not path.endswith(("[]", *described_by_parent)) and not field.get("description")
    ]
    assert bare == []


def test_every_list_has_a_bound_and_a_type() -> None:
    unbounded = [
        path
        for path, field in FIELDS
        if field.get("type") == "array" and not {"maxItems", "x-kubernetes-list-type"} <= field.keys()
    ]
    assert unbounded == []


def test_every_string_of_a_spec_has_a_bound() -> None:
    unbounded = [
        path
        for path, field in FIELDS
        if ".spec" in path and field.get("type") == "string" and not {"maxLength", "enum"} & field.keys()
    ]
    assert unbounded == []


def test_lists_of_brokers_are_never_merged() -> None:
    merged = [
        path
        for path, field in FIELDS
        if path.lower().endswith(("replicas", "brokers"))
        and field["type"] == "array"
        and field["x-kubernetes-list-type"] != "atomic"
    ]
    assert merged == []


def test_there_are_no_floats() -> None:
    assert [path for path, field in FIELDS if field.get("type") == "number"] == []
