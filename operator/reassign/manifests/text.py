"""YAML and JSON as the API server's programs read and write them, for manifests and policies alike.

kubectl, Argo CD and Helm read YAML with Go's reader. What it takes for a number, a boolean or nothing is taken for that
here, and nothing else is. What is written is read back as the same text by any reader, of whatever version of YAML.
No text ends the process.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import yaml

MAX_DEPTH = 50
MAX_ALIASED = 1_000_000
"""Values that aliases may stand for, in all."""

Scalar = str | int | float | None

_SPELLED: dict[bool | None, str] = {True: "y yes true on", False: "n no false off", None: "null"}
_CONSTANTS = {
    spelling: value
    for value, words in _SPELLED.items()
    for word in words.split()
    for spelling in (word, word.capitalize(), word.upper())
} | {"": None, "~": None}
_INTEGERS = {
    16: re.compile(r"[-+]?0[xX][0-9a-fA-F]+"),
    8: re.compile(r"[-+]?0[oO]?[0-7]+|[-+]?0"),
    2: re.compile(r"[-+]?0[bB][01]+"),
    10: re.compile(r"[-+]?[1-9][0-9]{0,19}"),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WHOLE = 1e21
"""Go writes floats below this without an exponent: JSON has no other difference between 1.0 and 1."""
_WORDS = re.compile(r"[A-Za-z_/]([A-Za-z0-9 ._/-]*[A-Za-z0-9._/-])?")
"""What needs no quotes, unless it is a constant: no reader takes it for anything but text."""


def plain(text: str) -> Scalar:
    """Return what a scalar without quotes stands for. Raises ValueError for one that JSON cannot hold, as `.inf`."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INFINITE.fullmatch(text):
        raise ValueError(f"{text} is no number that JSON can hold")
    if text[0] not in "+-.0123456789":
        return text
    digits = re.sub("(?<=[0-9])_(?=[0-9])", "", text) if text[0] == "." else text.replace("_", "")
    for base, pattern in _INTEGERS.items():
        if pattern.fullmatch(digits):
            number = int(digits, base)
            if -(2**63) <= number < 2**63 or (digits[0] != "+" and 0 <= number < 2**64):
                return number
    value = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    if math.isinf(value):
        return text
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


# --- read ---

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def load(text: str) -> list[Any]:
    """Return the documents of a text, but for empty ones. Raises ValueError with what is wrong, and where.

    JSON objects one after the other are documents too, as they are to kubectl.
    """
    text = _separated(text)
    try:
        excess = _excess(text)
        documents = [] if excess else list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        what = error.problem if isinstance(error, _RefusedError) else "it is neither JSON nor YAML"
        raise ValueError(f"{what}{_place(error)}") from None
    except yaml.YAMLError:
        raise ValueError("it is neither JSON nor YAML") from None
    if excess:
        raise ValueError(excess)
    return [document for document in documents if document is not None]


def compose(text: str) -> list[yaml.Node]:
    """Return the documents that `load` returns, and that it has read before, with the place of each part of them."""
    nodes = yaml.compose_all(text, Loader=_Loader)
    return [node for node in nodes if not (node.tag == _PLAIN and plain(node.value) is None)]


def _separated(text: str) -> str:
    """Return a stream of JSON objects, as jq writes it, with YAML's mark between them; any other text as it is."""
    pieces = list[str]()
    at = _blanks(text, 0)
    if not text.startswith("{", at):
        return text
    try:
        while at < len(text):
            _, end = _DECODER.raw_decode(text, at)
            after = _blanks(text, end)
            mark = "" if after == len(text) else "--- " if "\n" in text[end:after] else "\n--- "
            pieces.append(text[at:after] + mark)
            at = after
    except (ValueError, RecursionError):
        return text
    return text[: _blanks(text, 0)] + "".join(pieces)


def _blanks(text: str, at: int) -> int:
    """Return where the blanks end that begin there."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


class _RefusedError(yaml.constructor.ConstructorError):
    """What is YAML, and is refused all the same."""

    def __init__(self, problem: str, node: yaml.Node) -> None:
        super().__init__(None, None, problem, node.start_mark)


_PLAIN, _MERGE = "!plain", "tag:yaml.org,2002:merge"


class _Loader(yaml.CSafeLoader):
    """A loader of scalars by Go's rules, which refuses a map with a repeated field, and tags."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (_named(key) for key, _ in node.value):
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _RefusedError(f"{key.value} is repeated", key)
                seen.add(key.value)
        self.flatten_mapping(node)
        node.value = [(_named(key), value) for key, value in node.value]
        return super().construct_mapping(node, deep)


def _named(key: yaml.Node) -> yaml.Node:
    """Return the name of a field as text, as JSON has it."""
    if key.tag != _PLAIN:
        return key
    name = plain(key.value)
    if name is None:
        raise _RefusedError("a field has no name", key)
    text = str(name).lower() if isinstance(name, bool) else str(name)
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, key.start_mark, key.end_mark)


def _scalar(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> Scalar:
    try:
        return plain(node.value)
    except ValueError as error:
        raise _RefusedError(str(error), node) from None


def _tagged(loader: yaml.CSafeLoader, node: yaml.Node) -> None:
    raise _RefusedError("a value has a tag, which nothing here needs", node)


_Loader.yaml_implicit_resolvers = {"<": [(_MERGE, re.compile("<<$"))], None: [(_PLAIN, re.compile(""))]}
_Loader.yaml_constructors = {
    _PLAIN: _scalar,
    _MERGE: yaml.CSafeLoader.construct_yaml_str,  # as a value it is text
    None: _tagged,
    **{
        tag: construct
        for tag, construct in yaml.CSafeLoader.yaml_constructors.items()
        if tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
    },
}


def _excess(text: str) -> str | None:
    """Return what might end the process: lists and maps nested too deeply, or aliases of too many values."""
    begun = list[tuple[str | None, int]]()  # of each list or map around: its anchor, and the values before it
    sizes = dict[str | None, int]()  # values of each anchor
    values = aliased = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            begun.append((event.anchor, values))
            if len(begun) > MAX_DEPTH:
                return "it is nested too deeply"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = begun.pop()
            sizes[anchor] = values - before
        elif isinstance(event, yaml.AliasEvent):
            aliased += sizes.get(event.anchor, 0)
            if aliased > MAX_ALIASED:
                return "its aliases stand for too many values"
            values += sizes.get(event.anchor, 0)
        values += 1
    return None


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""


# --- write ---


def dump(documents: Iterable[Any], *, explicit_start: bool = False) -> str:
    """Return values of plain types as YAML documents, with lists of numbers in one line."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, explicit_start=explicit_start, width=120, allow_unicode=True
    )


class _Dumper(yaml.CSafeDumper):
    """A dumper of text that is read as text, and of lists of numbers in one line, as people write replicas."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, data: str) -> yaml.Node:
    words = _WORDS.fullmatch(data) and data not in _CONSTANTS
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if words else "'")


def _list(dumper: yaml.CSafeDumper, data: Sequence[Any]) -> yaml.Node:
    flat = all(isinstance(item, int | str) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(tuple, _list)
