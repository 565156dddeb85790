"""YAML or JSON that a user has written, for manifests and policies alike: no text ends the process."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 50


def load(text: str) -> list[Any]:
    """Return the documents of a text, but for empty ones. Raises ValueError with what is wrong, and the line."""
    try:
        deep = _is_deep(text)
        documents = [] if deep else list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        what = error.problem if isinstance(error, _RepeatedFieldError) else "it is neither JSON nor YAML"
        raise ValueError(f"{what}{_line(error)}") from None
    except yaml.YAMLError:
        raise ValueError("it is neither JSON nor YAML") from None
    except (ValueError, LookupError, AttributeError) as error:  # of a value that is not what it seems, as 2026-02-30
        raise ValueError(f"it has a malformed value ({error})") from None
    if deep:
        raise ValueError("it is nested too deeply")
    return [document for document in documents if document is not None]


class _RepeatedFieldError(yaml.constructor.ConstructorError):
    pass


class _Loader(yaml.CSafeLoader):
    """Refuses a map that has a field twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _RepeatedFieldError(None, None, f"{key.value} is repeated", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _is_deep(text: str) -> bool:
    """Whether lists and maps are nested so deeply that libyaml's loader might end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            return True
    return False


def _line(error: yaml.MarkedYAMLError) -> str:
    return f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
