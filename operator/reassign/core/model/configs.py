"""Configurations of brokers and topics, and changes to them, as the controller carries them out.

`None` is a configuration that is not set at the broker or topic itself; an explicit empty value is another thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class ConfigResourceType(StrEnum):
    BROKER = "broker"
    TOPIC = "topic"


class ConfigResource(NamedTuple):
    """A broker, named by its id, or a topic."""

    type: ConfigResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class ConfigKey(NamedTuple):
    """One configuration of one resource."""

    resource: ConfigResource
    config: str

    def __str__(self) -> str:
        return f"{self.config} of {self.resource}"


Configs = Mapping[str, str]
"""The configurations that are set at a resource itself: no defaults, static or of the whole cluster."""

Observed = Mapping[ConfigResource, Configs | None]
"""What was read; None for a topic that is gone. A resource that could not be read is not in it."""


class Op(StrEnum):
    """What IncrementalAlterConfigs can do (KIP-339)."""

    SET = "Set"
    DELETE = "Delete"
    APPEND = "Append"
    SUBTRACT = "Subtract"


ALL = ("*",)
"""A list of replicas that has all of its topic."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one configuration."""

    key: ConfigKey
    op: Op
    value: str = ""
    """A text for SET, and items between commas for APPEND and SUBTRACT."""

    def __str__(self) -> str:
        return f"{self.op} {self.key} {self.value[:200]}".rstrip()

    def of(self, text: str | None) -> str | None:
        """Return the text that the controller makes of one: APPEND adds missing items, SUBTRACT may leave it empty.

        To `*` nothing can be added.
        """
        if self.op is Op.SET:
            return self.value
        if self.op is Op.DELETE:
            return None
        if items(text) == ALL and self.op is Op.APPEND:
            return text
        parts, left = _parts(text), Counter(self.value.split(","))
        if self.op is Op.APPEND:
            there = set(parts)
            return ",".join([*parts, *(item for item in left if item not in there)])
        kept = []
        for part in parts:  # of items that are there twice, one goes
            if left[part]:
                left[part] -= 1
            else:
                kept.append(part)
        return ",".join(kept)


def _parts(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


def items(text: str | None) -> tuple[str, ...]:
    """Return the items of a list in its order."""
    return tuple(part.strip() for part in _parts(text) if part.strip())


def put(configs: dict[str, str], change: Change) -> None:
    """Carry a change out on the configurations of its resource."""
    text = change.of(configs.get(change.key.config))
    if text is None:
        configs.pop(change.key.config, None)
    else:
        configs[change.key.config] = text
