"""The approval in a manifest: one line of a file is changed, and all else stays as it is, byte by byte."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from reassign.api.common import GROUP
from reassign.errors import PlanningError, Reason
from reassign.manifests.text import compose, load
from reassign.text import listed

FIELD = "approvedDigest"
_TEMPLATE = "{{"
_MARK = "\ufeff"
"""The byte order mark that may begin a text."""


class Named(NamedTuple):
    """The object whose approval it is."""

    kind: str
    namespace: str
    """A manifest may leave it out."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Written(NamedTuple):
    """A text with the approval in it."""

    text: str
    line: int
    """Of the approval, from 1."""
    before: str | None
    """The digest that it had."""


def write_approval(text: str, file: Path, named: Named, digest: str) -> Written:
    """Return the text of a file with this spec.approvedDigest of an object.

    Raises PlanningError where the text does not have the object once, or where a change of one line is not all.
    """
    by_hand = f"set spec.{FIELD} by hand"
    if _TEMPLATE in text:
        raise _refusal(f"{file} is a template ({_TEMPLATE}), and no manifest: {by_hand}, where its values come from")
    body = text.removeprefix(_MARK)
    if body.lstrip()[:1] in ("{", "["):
        raise _refusal(f"{file} is JSON, and only YAML is changed: {by_hand}")
    try:
        documents = load(body)
    except ValueError as error:
        raise _refusal(f"{file} cannot be read: {error}; correct it") from None
    number = _number_of(documents, file, named)
    spec = documents[number].get("spec")
    try:
        before = spec.get(FIELD) if isinstance(spec, dict) else None
        changed, line = _changed(body, compose(body)[number], digest, merged=before is not None)
        expected = deepcopy(documents)
        expected[number]["spec"][FIELD] = digest
        if load(changed) != expected:
            raise ValueError("more than that would change")
    except ValueError as error:
        raise _refusal(f"{named} in {file}: {error}; {by_hand}") from None
    return Written(text[: len(text) - len(body)] + changed, line, None if before is None else str(before))


def _number_of(documents: list[Any], file: Path, named: Named) -> int:
    """Return which document is the object."""
    same = {n: _namespace(document) for n, document in enumerate(documents) if _is(document, named)}
    found = [n for n, namespace in same.items() if namespace in (None, named.namespace)]
    if len(found) > 1:
        raise _refusal(f"{file} has the {named} more than once; keep one")
    if not found:
        others = f"; it has one of namespace {listed(same.values())}" if same else ""
        message = f"{file} has no {named} of namespace {named.namespace}{others}; name the file that has it"
        raise PlanningError(Reason.NOTHING_SELECTED, message)
    return found[0]


def _is(document: Any, named: Named) -> bool:
    if not isinstance(document, dict) or document.get("kind") != named.kind:
        return False
    metadata = document.get("metadata")
    ours = str(document.get("apiVersion")).startswith(f"{GROUP}/")
    return ours and isinstance(metadata, dict) and metadata.get("name") == named.name


def _namespace(document: Any) -> Any:
    return document["metadata"].get("namespace")


def _changed(text: str, root: yaml.Node, digest: str, *, merged: bool) -> tuple[str, int]:
    """Return the text with the digest, and the number of its line; raises ValueError where that is not one line."""
    if (of_spec := _field(text, root, "spec")) is None:
        raise ValueError("it has no spec")
    key, spec = of_spec
    if not isinstance(spec, yaml.MappingNode) or not spec.value:
        raise ValueError("its spec has no fields")
    if spec.flow_style:
        raise ValueError("it is written with braces, and not a field a line")
    if (of_digest := _field(text, spec, FIELD)) is None:
        if merged:
            raise ValueError(f"{FIELD} comes from an anchor")
        return _inserted(text, key, spec.value[0][0], digest)
    key, value = of_digest
    begin, end = value.start_mark.index, value.end_mark.index
    if not isinstance(value, yaml.ScalarNode) or key.start_mark.line != value.end_mark.line:
        raise ValueError(f"{FIELD} is not one text in one line")
    quote = text[begin] if begin < end and text[begin] in "'\"" else ""
    space = "" if text[begin - 1] in " \t" else " "  # of `approvedDigest:` alone
    return f"{text[:begin]}{space}{quote}{digest}{quote}{text[end:]}", key.start_mark.line + 1


def _field(text: str, node: yaml.Node, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return key and value of a field; raises ValueError for an anchor, an alias or a tag there."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    for key, value in pairs:
        if isinstance(key, yaml.ScalarNode) and key.value == name:
            begin = value.start_mark.index
            if begin < key.end_mark.index or text[begin : begin + 1] in ("&", "!") or text[key.start_mark.index] == "&":
                raise ValueError(f"{name} has an anchor, an alias or a tag")
            return key, value
    return None


def _inserted(text: str, spec: yaml.Node, first: yaml.Node, digest: str) -> tuple[str, int]:
    """Return the text with a line below `spec:`, indented as the first field there."""
    begin, end = spec.end_mark.index, first.start_mark.index
    lines = text[begin:end].splitlines(keepends=True)
    ending = next((ending for ending in ("\r\n", "\n", "\r") if lines[0].endswith(ending)), None)
    if ending is None or lines[-1].strip(" "):
        raise ValueError("its spec does not have a field a line")
    at = begin + len(lines[0])
    line = f"{' ' * first.start_mark.column}{FIELD}: {digest}{ending}"
    return text[:at] + line + text[at:], spec.start_mark.line + 2


def _refusal(message: str) -> PlanningError:
    return PlanningError(Reason.CANNOT_BE_READ, message)
