"""YAML or JSON that a user has written, for manifests and policies alike: no text ends the process."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 50
MAX_ALIASED = 1_000_000
"""Values that aliases may stand for, in all."""


def load(text: str) -> list[Any]:
    """Return the documents of a text, but for empty ones. Raises ValueError with what is wrong, and the line."""
    try:
        excess = _excess(text)
        documents = [] if excess else list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        what = error.problem if isinstance(error, _RepeatedFieldError) else "it is neither JSON nor YAML"
        raise ValueError(f"{what}{_line(error)}") from None
    except yaml.YAMLError:
        raise ValueError("it is neither JSON nor YAML") from None
    except (ValueError, LookupError, AttributeError) as error:  # of a value that is not what it seems, as 2026-02-30
        raise ValueError(f"it has a malformed value ({error})") from None
    if excess:
        raise ValueError(excess)
    return [document for document in documents if document is not None]


class _RepeatedFieldError(yaml.constructor.ConstructorError):
    pass


class _Loader(yaml.CSafeLoader):
    """A loader that refuses a map with a repeated field."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _RepeatedFieldError(None, None, f"{key.value} is repeated", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


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


def _line(error: yaml.MarkedYAMLError) -> str:
    return f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
