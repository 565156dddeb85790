"""Whether the resource's namespace may move the topic."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem


def permission(i: Input) -> Problem | None:
    return i.rules.forbids(i.resource, i.tp)
