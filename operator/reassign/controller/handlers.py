"""kopf's part: watches feed the store and wake the loops, nothing else.

No delete handlers, daemons or timers: they miss quick deletions, write the spec into an annotation, and end with
the object that they serve.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import kopf
import structlog

from reassign.api.common import GROUP, VERSION
from reassign.controller.attempts import Attempts
from reassign.controller.expiry import Expiry
from reassign.controller.loop import ClusterLoop
from reassign.controller.plans import PlanInputs, Plans
from reassign.controller.reporter import Reporter
from reassign.controller.store import Store
from reassign.core.model.permission import not_allowed
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.errors import ApiServerError, Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key

log = structlog.get_logger()

SWEEP_SECONDS = 10.0
PAUSE_SECONDS = 0.5
FIRST_LIST_SECONDS = 60
RELIST_SECONDS = 300.0
"""How often all objects are listed: a watch that starts anew does not say what vanished meanwhile."""


class Supervisor:
    """Runs one loop for each KafkaCluster, and answers for resources whose KafkaCluster does not exist."""

    def __init__(
        self,
        store: Store,
        kube: KubeClient,
        reporter: Reporter,
        plans: Plans,
        namespaces: Sequence[str],
        make_loop: Callable[[ClusterKey], ClusterLoop],
    ) -> None:
        self._namespaces = namespaces
        self._listed_at = 0.0
        self._stopping = False
        self._store = store
        self._kube = kube
        self._reporter = reporter
        self._plans = plans
        self._make_loop = make_loop
        self._loops: dict[ClusterKey, tuple[ClusterLoop, asyncio.Task[None]]] = {}
        self._stray = asyncio.Event()
        self._expiry = Expiry(store, kube, reporter)

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Add the watches to kopf's registry."""
        for kind in Kind:
            kopf.on.event(GROUP, VERSION, kind.plural, registry=registry)(self._on_event)

    async def _on_event(self, event: Any, **_: Any) -> None:
        obj = dict(event["object"])
        if event["type"] == "DELETED":
            if await self._gone(obj):
                self._store.drop(obj["metadata"]["uid"])
        elif not self._store.put(obj):
            return
        self._wake(cluster_key(obj))

    async def _gone(self, obj: Object) -> bool:
        """A GET decides whether an object is gone; a watch can be wrong."""
        meta = obj["metadata"]
        found = await self._kube.get(Kind(obj["kind"]), meta["namespace"], meta["name"])
        return found is None or found["metadata"]["uid"] != meta["uid"]

    def _wake(self, key: ClusterKey) -> None:
        loop, task = self._loops.get(key, (None, None))
        if loop and task and not task.done():
            loop.wake.set()
        elif self._store.cluster(key):
            loop = self._make_loop(key)
            task = asyncio.create_task(loop.run(), name=f"cluster {key[0]}/{key[1]}")
            task.add_done_callback(lambda ended: self._start_again(key, ended))
            self._loops[key] = (loop, task)
        else:
            self._stray.set()

    def _start_again(self, key: ClusterKey, ended: asyncio.Task[None]) -> None:
        """A KafkaCluster that was made again while the loop of the one before was ending."""
        if self._stopping:
            return
        if self._loops[key][1] is ended:
            del self._loops[key]
        obj = self._store.cluster(key)
        if obj and not obj["metadata"].get("deletionTimestamp"):
            self._wake(key)

    async def stop(self) -> None:
        """End all loops, each with its connection closed."""
        self._stopping = True
        tasks = [task for _, task in self._loops.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def list_all(self) -> None:
        """Take over all objects that there are, and wake the loops: at the start, and now and then after."""
        known = self._store.versions()
        clusters = await self._list(Kind.KAFKA_CLUSTER)
        others = [await self._list(kind) for kind in Kind if kind is not Kind.KAFKA_CLUSTER]
        self._store.take_over([*clusters, *chain(*others)], known)
        for obj in clusters:
            self._wake(cluster_key(obj))
        self._listed_at = time.monotonic()

    async def list_all_at_first(self) -> None:
        """The same, patiently: right after an installation the API server may not serve our kinds yet."""
        for _ in range(FIRST_LIST_SECONDS):
            try:
                return await self.list_all()
            except ApiServerError as error:
                log.warning("cannot list yet", error=error.message)
                await asyncio.sleep(1)
        return await self.list_all()

    async def _list(self, kind: Kind) -> list[Object]:
        return [obj for namespace in self._namespaces or (None,) for obj in await self._kube.list(kind, namespace)]

    async def sweep(self) -> None:
        """For ever: say on resources whose KafkaCluster does not exist that it does not; delete what has expired."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._stray.wait()
            except TimeoutError:
                pass
            self._stray.clear()
            await self._sweep_once()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _sweep_once(self) -> None:
        try:
            if time.monotonic() - self._listed_at >= RELIST_SECONDS:
                await self.list_all()
            for namespace, name in self._store.referred():
                if self._store.cluster((namespace, name)) is None:
                    await self._answer_for_missing(namespace, name)
            await self._expiry.sweep()
        except ReassignError as error:
            log.warning("sweep failed", reason=error.reason, error=error.message)
        except Exception:
            log.exception("sweep failed unexpectedly")

    async def _answer_for_missing(self, namespace: str, name: str) -> None:
        watched = not self._namespaces or namespace in self._namespaces
        if watched and (found := await self._kube.get(Kind.KAFKA_CLUSTER, namespace, name)):
            self._store.put(found)
            self._wake((namespace, name))
            return
        await self._reporter.answer_for_unreadable((namespace, name))
        attempts = Attempts(self._reporter)
        for resource in self._store.resources((namespace, name)):
            async with attempts.at(resource):
                await self._answer(resource, namespace, name)
        sight = PlanInputs(lambda plan, _: _missing(plan.namespace, namespace, name))
        if await self._plans.serve((namespace, name), sight) or attempts.conflict:
            self._stray.set()

    async def _answer(self, resource: Resource, namespace: str, name: str) -> None:
        now = self._kube.now()
        problem = _missing(resource.namespace, namespace, name)
        if resource.namespace == namespace or active(resource.record):
            await self._reporter.stand_still(resource, problem, now)
        else:
            await self._reporter.refuse(resource, problem, now)


def _missing(theirs: str, namespace: str, name: str) -> Problem:
    """To other namespaces a missing cluster is as one that does not allow them."""
    if theirs != namespace:
        return not_allowed(theirs)
    return Problem(
        Reason.CLUSTER_NOT_FOUND,
        f"there is no KafkaCluster {namespace}/{name}; create it, or refer to another from a new resource",
    )
