"""What the watches bring goes into the store and wakes the loops, one for each KafkaCluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.cluster.unserved import Unserved
from reassign.controller.expiry import Expiry
from reassign.controller.objects.listing import Listing
from reassign.controller.objects.store import Store
from reassign.controller.plans.plans import PlanInputs, Plans
from reassign.controller.writing.records import UNDO_WAITS_SECONDS
from reassign.controller.writing.writer import Writer
from reassign.core.automation.model import OwnedCluster
from reassign.core.model.permission import not_allowed, not_readable
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.errors import Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key
from reassign.kube.lease import LeaseLost

log = structlog.get_logger()

SWEEP_SECONDS = 10.0
WATCHDOG_SECONDS = 5.0
PAUSE_SECONDS = 0.5


class Supervisor:
    """Runs one loop for each KafkaCluster, and answers for resources whose KafkaCluster does not exist."""

    def __init__(
        self,
        store: Store,
        kube: KubeClient,
        writer: Writer,
        plans: Plans,
        namespaces: Sequence[str],
        make_loop: Callable[[ClusterKey], ClusterLoop],
    ) -> None:
        self.listing = Listing(store, kube, namespaces)
        self._lists = asyncio.Lock()
        """One listing at a time: one that began before this process became the writer does not count as newer."""
        self._serving = False
        self._store = store
        self._kube = kube
        self._writer = writer
        self._plans = plans
        self._make_loop = make_loop
        self._loops: dict[ClusterKey, tuple[ClusterLoop, asyncio.Task[None]]] = {}
        self._stray = asyncio.Event()
        self._expiry = Expiry(store, kube, writer)
        self._early: dict[str, tuple[str, Object]] = {}
        self._missing: dict[ClusterKey, float] = {}
        """Since when a GET finds no KafkaCluster of that name."""

    async def receive(self, kind: str, obj: Object) -> None:
        """Take over what a watch brought; it waits where not all kinds were listed: a resource without its record."""
        if obj["metadata"]["namespace"] in self._store.unlisted:
            self._early[obj["metadata"]["uid"]] = kind, obj
        elif kind == "DELETED":
            if await self.listing.gone(obj):
                self._store.drop(obj["metadata"]["uid"])
            self._wake(cluster_key(obj))
        elif self._store.put(obj):
            self._wake(cluster_key(obj))

    def _wake(self, key: ClusterKey) -> None:
        loop, task = self._loops.get(key, (None, None))
        if loop and task and not task.done():
            loop.wake.set()
        elif not self._serving:
            pass  # another process writes, or none
        elif self._store.cluster(key):
            loop = self._make_loop(key)
            task = asyncio.create_task(loop.run(), name=f"cluster {key[0]}/{key[1]}")
            task.add_done_callback(lambda ended: self._start_again(key, ended))
            self._loops[key] = (loop, task)
        else:
            self._stray.set()

    def _start_again(self, key: ClusterKey, ended: asyncio.Task[None]) -> None:
        """Start a loop again that was stuck, or whose KafkaCluster was made again while it was ending."""
        if not self._serving:
            return
        if self._loops[key][1] is ended:
            del self._loops[key]
        obj = self._store.cluster(key)
        if ended.cancelled() or (obj and not obj["metadata"].get("deletionTimestamp")):
            self._wake(key)

    async def restart_stuck(self) -> None:
        """Start loops anew that do not tick any more, each alone; for ever."""
        while True:
            await asyncio.sleep(WATCHDOG_SECONDS)
            for loop, task in [*self._loops.values()]:
                if not (task.done() or task.cancelling()) and loop.name in loop.health.stuck():
                    log.error("loop is stuck and is started anew", kafka_cluster=loop.name, waits_in=_calls(task))
                    loop.metrics.loops_restarted.inc()
                    task.cancel()

    async def stop(self) -> None:
        """End all loops, each with its connection closed."""
        self._serving = False
        tasks = [task for _, task in self._loops.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def list_at_first(self) -> None:
        """Wait until each watched namespace was listed or refused: the API server may come after us."""
        await self._try(self._list_due())
        while self.listing.waiting():
            await asyncio.sleep(PAUSE_SECONDS)
            await self._try(self._list_due())

    async def serve(self) -> None:
        """Start the loops, on what the API server has now: the watches may lag behind the writer before us."""
        async with self._lists:
            self.listing.expire()
        await self.list_at_first()
        self._serving = True
        for obj in self._store.clusters():
            self._wake(cluster_key(obj))
        self._stray.set()

    async def _list_due(self) -> None:
        async with self._lists:
            async for objects in self.listing.take_over():
                for key in {cluster_key(obj) for obj in objects}:
                    self._wake(key)
                early, self._early = self._early, {}
                for kind, obj in early.values():
                    await self.receive(kind, obj)

    async def sweep(self) -> None:
        """List what is due, answer for resources without a KafkaCluster, delete what has expired; for ever."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.listing.seconds(SWEEP_SECONDS)):
                    await self._stray.wait()
            self._stray.clear()
            await self._sweep_once()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _sweep_once(self) -> None:
        await self._try(self._list_due())
        if not self._serving:
            return
        stray = [key for key in self._store.referred() if self._store.cluster(key) is None]
        self._missing = {key: since for key, since in self._missing.items() if key in stray}
        for key in stray:
            with bound_contextvars(kafka_cluster="/".join(key)):
                await self._try(self._answer_for_missing(*key))
        await self._try(self._expiry.sweep())

    async def _try(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this work; log what it fails with, so that nothing else waits."""
        try:
            await work
        except ReassignError as error:
            log.warning("sweep failed", reason=error.reason, error=error.message)
        except LeaseLost as error:
            log.warning("nothing is written any more", error=str(error))
        except Exception:
            log.exception("sweep failed unexpectedly")

    async def _answer_for_missing(self, namespace: str, name: str) -> None:
        readable = self.listing.watches(namespace) and namespace not in self._store.unreadable_namespaces
        if readable and (found := await self._kube.get(Kind.KAFKA_CLUSTER, namespace, name)):
            self._store.put(found)
            self._wake((namespace, name))
            return
        if readable:
            self._missing.setdefault((namespace, name), time.monotonic())
        else:
            self._missing.pop((namespace, name), None)
        await self._writer.records.look_for_owners((namespace, name), self._kube.now())
        unserved = Unserved((namespace, name), self._store, self._writer, self._writer.metrics, self._plans)
        await unserved.answer_for_unreadable()
        attempts = unserved.attempts()
        for resource in self._store.resources((namespace, name)):
            async with attempts.at(resource):
                await self._answer(resource, namespace, name)
        own = OwnedCluster(name, wants_cordons=False)
        await self._plans.automation.have_wait((namespace, name), own, self._problem(namespace, namespace, name))
        inputs = PlanInputs(lambda plan, _: self._problem(plan.namespace, namespace, name))
        if await self._plans.serve((namespace, name), inputs) or attempts.conflict:
            self._stray.set()

    async def _answer(self, resource: Resource, namespace: str, name: str) -> None:
        now, elapsed = self._kube.now(), time.monotonic()
        problem = self._problem(resource.namespace, namespace, name)
        own = resource.namespace == namespace
        missing = elapsed - self._missing.get((namespace, name), elapsed)
        if resource.owner_gone and missing >= UNDO_WAITS_SECONDS:
            await self._writer.give_up(resource)
        elif own or active(resource.record) or problem.reason is Reason.NOT_AUTHORIZED:
            await self._writer.stand_still(resource, problem, now)
        else:
            await self._writer.refuse(resource, problem, now)

    def _problem(self, theirs: str, namespace: str, name: str) -> Problem:
        """Return why a cluster does not serve. To other namespaces a missing one is as one that does not allow them."""
        if namespace in self._store.unreadable_namespaces:
            return not_readable(namespace)
        if theirs != namespace:
            return not_allowed(theirs)
        return Problem(
            Reason.CLUSTER_NOT_FOUND,
            f"there is no KafkaCluster {namespace}/{name}; create it, or refer to another from a new resource",
        )


def _calls(task: asyncio.Task[None]) -> list[str]:
    """Return where a task waits, the innermost call last."""
    calls: list[str] = []
    inner: object = task.get_coro()
    while frame := getattr(inner, "cr_frame", None):
        calls.append(f"{frame.f_code.co_qualname} line {frame.f_lineno}")
        inner = getattr(inner, "cr_await", None)
    return calls
