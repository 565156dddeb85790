"""Configurations of brokers and topics, and changes to them, as the controller carries them out.

`None` is a configuration that is not set at the broker or topic itself; an explicit empty value is another thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reassign.core.follow import LANDING_SECONDS, SETTLE_SECONDS


class Kind(StrEnum):
    BROKER = "broker"
    TOPIC = "topic"


class Place(NamedTuple):
    """A broker, named by its id, or a topic."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Spot(NamedTuple):
    """One configuration of one place."""

    place: Place
    config: str

    def __str__(self) -> str:
        return f"{self.config} of {self.place}"


Configs = Mapping[str, str]
"""The configurations that are set at a place itself: no defaults, static or of the whole cluster."""

Observed = Mapping[Place, Configs | None]
"""What was read; None for a topic that is gone. A place that could not be read is not in it."""


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
    """Change one configuration; `value` is a text for SET, and items between commas for APPEND and SUBTRACT."""

    spot: Spot
    op: Op
    value: str = ""

    def __str__(self) -> str:
        return f"{self.op} {self.spot} {self.value[:200]}".rstrip()

    def of(self, text: str | None) -> str | None:
        """What the controller makes of a text: APPEND adds what is not there, SUBTRACT leaves at least an empty one.

        To `*` nothing can be added.
        """
        if self.op is Op.SET:
            return self.value
        if self.op is Op.DELETE:
            return None
        if items(text) == ALL and self.op is Op.APPEND:
            return text
        parts = _parts(text)
        for item in self.value.split(","):
            if self.op is Op.SUBTRACT and item in parts:
                parts.remove(item)
            elif self.op is Op.APPEND and item not in parts:
                parts.append(item)
        return ",".join(parts)


def _parts(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


def items(text: str | None) -> tuple[str, ...]:
    """The items of a list in its order."""
    return tuple(part.strip() for part in _parts(text) if part.strip())


@dataclass(slots=True)
class Lately:
    """What this process wrote in its last seconds: reads can be older than that. By a monotonic clock.

    `now` is when the last read began.
    """

    started: float
    now: float = 0.0
    _sent: list[tuple[float, Change, bool]] = field(default_factory=list)

    def observe(self, began: float) -> None:
        """Take note of a read that began then."""
        self.now = began
        self._sent = [sent for sent in self._sent if began - sent[0] < SETTLE_SECONDS]

    def touch(self, change: Change, at: float, *, answered: bool) -> None:
        """It was sent; without an answer it may not have been carried out, or may be later."""
        self._sent.append((at if answered else at + LANDING_SECONDS, change, answered))

    def settled(self, spot: Spot) -> bool:
        """Whether a read shows the configuration as it is.

        An earlier process may have changed it just before it ended, so a new one waits as long first.
        """
        old = self.now - self.started >= SETTLE_SECONDS
        return old and all(change.spot != spot for _, change, _ in self._sent)

    def over(self, observed: Observed) -> Observed:
        """A read with what was written since laid over it."""
        shown = {place: None if configs is None else dict(configs) for place, configs in observed.items()}
        for _, change, answered in self._sent:
            configs = shown.get(change.spot.place)
            if answered and configs is not None:
                put(configs, change)
        return shown


def put(configs: dict[str, str], change: Change) -> None:
    """Carry a change out on the configurations of its place."""
    text = change.of(configs.get(change.spot.config))
    if text is None:
        configs.pop(change.spot.config, None)
    else:
        configs[change.spot.config] = text
