"""A watched namespace, with what listing it met last."""

from __future__ import annotations

from dataclasses import dataclass

from reassign.core.model.problem import Problem
from reassign.errors import Reason

RETRY_SECONDS = 1.0
"""How long after it could not be listed at first it is tried again."""


@dataclass(slots=True)
class Scope:
    """A watched namespace, or all of them."""

    namespace: str
    listed: bool = False
    """Whether this process has listed it at least once."""
    problem: Problem | None = None
    """Why it cannot be read now."""
    due: float = 0.0
    retry: float = RETRY_SECONDS

    @property
    def name(self) -> str:
        return self.namespace or "*"

    @property
    def readable(self) -> bool:
        return self.listed and self.problem is None

    @property
    def refused(self) -> bool:
        """Whether the API server answers that the operator may not read it."""
        return self.problem is not None and self.problem.reason is Reason.NOT_AUTHORIZED
