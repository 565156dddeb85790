"""The parts of one tick, each an attempt of its own: one that fails keeps no other from being made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from reassign.controller.writing.writer import Writer
from reassign.core.model.problem import Problem, bug_problem, error_problem
from reassign.errors import ConflictError, ReassignError
from reassign.kube.client import ClusterKey
from reassign.kube.lease import LeaseLost

log = structlog.get_logger()

KEEPS = "it from serving the cluster"

T = TypeVar("T")


@dataclass(slots=True)
class Parts:
    """What the parts of one tick of a loop meet. Only a lost Lease ends the tick at once."""

    key: ClusterKey
    writer: Writer
    _errors: list[Exception] = field(default_factory=list)

    @contextmanager
    def tick(self) -> Iterator[None]:
        """End a tick with the first error that a part of it has left to the end."""
        self._errors = []
        yield
        for error in self._errors[1:]:
            log.error("failed as well", exc_info=error)
        for error in self._errors:
            raise error

    async def write(self, write: Awaitable[None], unwritten: list[Problem]) -> bool:
        """Write to our own objects; return whether that succeeded, and collect what it met where it did not.

        After a failure nothing begins, and what is to be undone goes on.
        """
        try:
            await write
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)
            if isinstance(error, ConflictError):
                with suppress(ReassignError):
                    await self.writer.refresh_cluster(self.key)
            unwritten.append(error_problem(error))
            return False
        except LeaseLost:
            raise
        except Exception as error:
            unwritten.append(self.failed(error))
            return False
        return True

    async def attempt(self, work: Awaitable[T], otherwise: Callable[[Problem], T]) -> T:
        """Return what the work returns; after an error, which is left to the end of the tick, something else."""
        try:
            return await work
        except LeaseLost:
            raise
        except Exception as error:
            return otherwise(self.failed(error))

    def failed(self, error: Exception) -> Problem:
        """Leave an error to the end of the tick, and return it as a problem."""
        self._errors.append(error)
        return error_problem(error) if isinstance(error, ReassignError) else bug_problem(error, KEEPS)
