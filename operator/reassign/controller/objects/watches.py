"""kopf's part: its watches feed the store and wake the loops, nothing else.

No delete handlers, daemons or timers: they miss quick deletions, write the spec into an annotation, and end with the
object that they serve. kopf has a thread and an event loop of its own: it would take our signals, and end our tasks.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import aiohttp
import kopf
import structlog

from reassign.api.common import GROUP, VERSION
from reassign.core.model.permission import ALL_NAMESPACES
from reassign.kube.client import PAGE_OBJECTS, Kind, Object

log = structlog.get_logger()

PAUSE_SECONDS = 5.0
IDLE_SECONDS = 0.1
"""How long kopf keeps an object in memory after an event about it."""
Receive = Callable[[str, Object], Awaitable[None]]


class Backoffs:
    """Seconds between one attempt and the next, without end: kopf ends all watches when it gives up on one."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 4.0, 8.0), repeat(15.0))


class NoStorage(kopf.DiffBaseStorage):
    """Compares no object with what it was: kopf would make a deep copy of it at each event."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        pass


class Watches:
    """One watch for each kind in each watched namespace, or in all; what they bring is received on the own loop."""

    def __init__(self, namespaces: Sequence[str], receive: Receive) -> None:
        self._namespaces, self._receive = namespaces, receive
        self._awaited = {(namespace, kind.plural) for namespace in namespaces or (ALL_NAMESPACES,) for kind in Kind}
        self._streaming: set[tuple[str, str]] = set()
        self._login_at = 0.0
        self._own = asyncio.get_running_loop()

    def start(self) -> None:
        threading.Thread(target=self._run, name="watches", daemon=True).start()

    def missing(self, namespaces: Sequence[str]) -> list[str]:
        """Return the watches in these namespaces that have not listed what there is."""
        waiting = sorted(key for key in self._awaited - self._streaming if key[0] in namespaces)
        return [f"the watch of {plural} in {namespace or 'all namespaces'}" for namespace, plural in waiting]

    def _run(self) -> None:
        while True:
            try:
                asyncio.run(self._watch())
            except Exception:
                log.exception("the watches have ended; they start again")
            self._streaming.clear()
            time.sleep(PAUSE_SECONDS)

    async def _watch(self) -> None:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        for kind in Kind:
            kopf.on.event(GROUP, VERSION, kind.plural, registry=registry)(self._on_event)
        await kopf.operator(
            registry=registry,
            settings=_kopf_settings(),
            namespaces=self._namespaces,
            clusterwide=not self._namespaces,
            standalone=True,
        )

    async def _on_event(self, event: Any, **_: Any) -> None:
        receiving = self._receive(event["type"], dict(event["object"]))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(receiving, self._own))  # type: ignore[arg-type]

    async def _login(self, **kwargs: Any) -> kopf.AiohttpSession | None:
        """Log in, since a registry of our own cannot by itself. The session tells what kopf does not: who streams.

        In a pod the address comes from the environment, as with other clients: a name would need the cluster's DNS.
        """
        await asyncio.sleep(self._login_at - time.monotonic())  # a token that is refused is not tried at once
        self._login_at = time.monotonic() + PAUSE_SECONDS
        if server := kopf.login_with_service_account(**kwargs):
            host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
            server = dataclasses.replace(server, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")
        elif (server := kopf.login_with_kubeconfig(**kwargs)) is None:
            return None
        tracing = aiohttp.TraceConfig()
        tracing.on_request_end.append(self._answered)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=server.as_ssl_context()),
            headers=server.as_http_headers(),
            trace_configs=[tracing],
        )
        return kopf.AiohttpSession(server=server.server, aiohttp_session=session)

    async def _answered(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, end: aiohttp.TraceRequestEndParams
    ) -> None:
        """Note that a watch was answered, and so has listed: a watch begins where its list ends."""
        if "watch" in end.url.query and end.response.status == 200:
            *_rest, before, namespace, plural = end.url.path.split("/")
            self._streaming.add((namespace if before == "namespaces" else ALL_NAMESPACES, plural))


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.networking.error_backoffs = Backoffs()
    settings.watching.chunk_size = PAGE_OBJECTS
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.persistence.diffbase_storage = NoStorage()
    return settings
