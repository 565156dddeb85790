"""A round of work for many resources, in which an error with one keeps no other waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import asynccontextmanager, suppress

import structlog
from structlog.contextvars import bound_contextvars

from reassign.controller.logs import named_as
from reassign.controller.objects.reading import Unreadable
from reassign.core.model.problem import Problem, unwritten_problem
from reassign.core.model.resource import Resource
from reassign.core.model.verdict import Verdict
from reassign.errors import ApiServerError, ConflictError, ReassignError
from reassign.kube.client import Kind
from reassign.kube.lease import LeaseLost

log = structlog.get_logger()

AT_ONCE = 8
"""Resources that are worked for at once: each waits for the API server much longer than it works."""
API_SECONDS = 10.0
"""After waiting as long in one round for what then failed, the API server itself is taken to be down."""


class Attempts:
    """A round of work for many resources: what goes wrong with one keeps no other waiting.

    After a conflict `refresh` asks for the resource; `report_bug` reports an unforeseen error. `alive` is called before
    each resource: a long round is not a stuck one. A refusal in an `unreadable` namespace is not logged.
    """

    def __init__(
        self,
        refresh: Callable[[Resource | Unreadable], Awaitable[None]],
        report_bug: Callable[[Resource | Unreadable, Exception], Awaitable[None]],
        unreadable: Container[str] = (),
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        self._refresh, self._report_bug, self._unreadable, self._alive = refresh, report_bug, unreadable, alive
        self._waited = 0.0
        self.conflict = False
        self.refused: dict[str, Problem] = {}
        """What the API server refused, by the uid of the resource."""

    async def each(self, verdicts: Sequence[Verdict], work: Callable[[Verdict], Awaitable[None]]) -> None:
        """Work for the resource of each verdict `at` its turn, a few at a time; return when all have ended."""
        left = iter(verdicts)

        async def worker() -> None:
            for verdict in left:
                async with self.at(verdict.resource):
                    await work(verdict)

        workers = [worker() for _ in range(min(AT_ONCE, len(verdicts)))]
        ended = await asyncio.gather(*workers, return_exceptions=True)
        for error in (e for e in ended if e is not None):
            raise error

    @asynccontextmanager
    async def at(self, resource: Resource | Unreadable) -> AsyncIterator[None]:
        """Leave an error to the next reconciliation; raise only when the API server itself seems to be down."""
        began = time.monotonic()
        self._alive()
        with bound_contextvars(**named_as(Kind.PARTITION_REASSIGNMENT, resource)):
            async with self._at(resource, began):
                yield

    @asynccontextmanager
    async def _at(self, resource: Resource | Unreadable, began: float) -> AsyncIterator[None]:
        try:
            try:
                yield
            except (ReassignError, LeaseLost):
                raise
            except Exception as error:
                await self._report_bug(resource, error)
        except ConflictError:
            self.conflict = True
            with suppress(ReassignError):
                await self._refresh(resource)
        except ReassignError as error:
            if resource.namespace not in self._unreadable:  # of those it is said once
                log.warning("not written", reason=error.reason, error=error.message)
            self.refused[resource.uid] = unwritten_problem(error, resource.namespace)
            if isinstance(error, ApiServerError):
                self._waited += time.monotonic() - began
                if self._waited >= API_SECONDS:
                    raise
