"""A round of work for one resource after another, in which an error with one keeps no other waiting."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from reassign.controller.store import Unreadable
from reassign.core.model.resource import Resource
from reassign.errors import ApiServerError, ConflictError, ReassignError

if TYPE_CHECKING:
    from reassign.controller.reporter import Reporter

log = structlog.get_logger()

API_SECONDS = 10.0
"""After waiting as long in one round for what then failed, the API server itself is taken to be down."""


class Attempts:
    """A round of work for one resource after another: what goes wrong with one keeps no other waiting."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._waited = 0.0
        self.conflict = False

    @asynccontextmanager
    async def at(self, resource: Resource | Unreadable) -> AsyncIterator[None]:
        """Leaves an error to the next reconciliation; raises only when the API server itself seems to be down."""
        began = time.monotonic()
        try:
            try:
                yield
            except ReassignError:
                raise
            except Exception as error:
                await self._reporter.report_bug(resource, error)
        except ConflictError:
            self.conflict = True
            await self._reporter.refresh(resource)
        except ReassignError as error:
            name = f"{resource.namespace}/{resource.name}"
            log.warning("not written", resource=name, reason=error.reason, error=error.message)
            if isinstance(error, ApiServerError):
                self._waited += time.monotonic() - began
                if self._waited >= API_SECONDS:
                    raise
