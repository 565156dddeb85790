"""Lists all objects, one watched namespace after another: one that cannot be read holds up no other.

What is known of it stays, since an object that cannot be read is not gone. It is asked for again, ever less often.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence

import structlog

from reassign.controller.objects.reading import packed
from reassign.controller.objects.scope import RETRY_SECONDS, Scope
from reassign.controller.objects.store import Store
from reassign.controller.objects.watches import Watches
from reassign.core.model.permission import ALL_NAMESPACES
from reassign.core.model.problem import Problem
from reassign.errors import ReassignError
from reassign.kube.client import Kind, KubeClient, Object

log = structlog.get_logger()

RELIST_SECONDS = 300.0
"""How often all objects are listed: a watch that starts anew does not say what vanished meanwhile."""
MAX_RETRY_SECONDS = 60.0


class Listing:
    """All watched namespaces, each with what listing it met last."""

    def __init__(
        self, store: Store, kube: KubeClient, namespaces: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scopes = {namespace: Scope(namespace) for namespace in namespaces or (ALL_NAMESPACES,)}
        self._store, self._kube, self._clock = store, kube, clock
        store.unlisted.update(namespaces)

    def watches(self, namespace: str) -> bool:
        return ALL_NAMESPACES in self.scopes or namespace in self.scopes

    def waiting(self) -> bool:
        """Whether the API server has yet to list or to refuse one of them, or refuses all."""
        scopes = self.scopes.values()
        return any(scope.due == 0 or (scope.problem and not scope.refused) for scope in scopes) or all(
            scope.refused for scope in scopes
        )

    def missing(self, watches: Watches) -> list[str]:
        """Return why the operator is not ready. One namespace that it may not read is no reason, all of them are."""
        scopes = self.scopes.values()
        listed = [scope for scope in scopes if scope.listed]
        unlisted = [_sentence(scope) for scope in scopes if not scope.listed and not (scope.refused and listed)]
        return unlisted + watches.missing([scope.namespace for scope in listed if not scope.refused])

    def expire(self) -> None:
        """Have everything listed anew."""
        for scope in self.scopes.values():
            scope.due = 0.0

    def seconds(self, most: float) -> float:
        """Return in how many seconds the next namespace is due."""
        return max(min(most, *(scope.due - self._clock() for scope in self.scopes.values())), 0.0)

    async def take_over(self) -> AsyncIterator[list[Object]]:
        """List the namespaces that are due into the store; yield the objects of each one that could be read."""
        for scope in self.scopes.values():
            if self._clock() < scope.due:
                continue
            try:
                objects = await self._list(scope.namespace)
            except ReassignError as error:
                self._failed(scope, error)
            else:
                self._succeeded(scope)
                yield objects

    async def _list(self, namespace: str) -> list[Object]:
        known = self._store.versions(namespace)
        objects = [obj for kind in Kind for obj in await self._kube.list(kind, namespace or None, self._packed)]
        for uid in known.keys() - {obj["metadata"]["uid"] for obj in objects}:
            if (obj := self._store.get(uid)) and not await self.gone(obj):
                del known[uid]
        self._store.take_over(objects, known)
        return objects

    def _packed(self, obj: Object) -> Object:
        return packed(obj, self._store.get(obj["metadata"]["uid"]))

    async def gone(self, obj: Object) -> bool:
        """Whether a GET says that an object is gone; a list and a watch can be wrong."""
        meta = obj["metadata"]
        found = await self._kube.get(Kind(obj["kind"]), meta["namespace"], meta["name"])
        return found is None or found["metadata"]["uid"] != meta["uid"]

    def _failed(self, scope: Scope, error: ReassignError) -> None:
        problem = Problem(error.reason, error.message)
        if scope.problem is None or scope.problem.reason is not problem.reason:
            log.error("namespace cannot be read", namespace=scope.name, reason=error.reason, error=error.message)
        scope.problem, scope.due = problem, self._clock() + scope.retry
        scope.retry = min(2 * scope.retry, MAX_RETRY_SECONDS)
        if scope.refused and scope.namespace not in self._store.unreadable_namespaces:
            self._store.unreadable_namespaces.add(scope.namespace)

    def _succeeded(self, scope: Scope) -> None:
        if scope.problem:
            log.info("namespace can be read again", namespace=scope.name)
        scope.listed, scope.problem = True, None
        scope.due, scope.retry = self._clock() + RELIST_SECONDS, RETRY_SECONDS
        if scope.namespace in self._store.unreadable_namespaces:
            self._store.unreadable_namespaces.remove(scope.namespace)
        self._store.unlisted.discard(scope.namespace)


def _sentence(scope: Scope) -> str:
    where = f"namespace {scope.namespace}" if scope.namespace else "all namespaces"
    return f"{where} is not listed" + (f": {scope.problem.message}" if scope.problem else " yet")
