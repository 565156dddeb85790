"""Probes that mean something, and metrics, over HTTP.

A loop that has not ticked for too long is started anew by itself. /livez fails when that did not help, and no other
loop ticks either: a restart harms no healthy one then, and is safe at any moment. /readyz fails until all that was
named at the start has come. An unreachable Kafka makes neither fail: loops tick then too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from reassign.controller.metrics import Metrics

__all__ = ["Health", "serving"]


class Health:
    """What the probes ask.

    Each of `awaited` names what has to come before the operator is ready.
    """

    def __init__(
        self,
        liveness_seconds: float,
        awaited: Iterable[Callable[[], Sequence[str]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bound, self._awaited, self._clock = liveness_seconds, tuple(awaited), clock
        self._ticks: dict[str, float] = {}

    def tick(self, loop: str) -> None:
        """Note that a loop is alive now; from its first tick on it has to go on."""
        self._ticks[loop] = self._clock()

    def forget(self, loop: str) -> None:
        """Forget a loop that has ended, as it should."""
        self._ticks.pop(loop, None)

    def stuck(self, bounds: int = 1) -> list[str]:
        """Return the loops that have not ticked for more than so many times the bound."""
        now = self._clock()
        return [loop for loop, tick in sorted(self._ticks.items()) if now - tick > bounds * self._bound]

    def dead(self) -> list[str]:
        """Return a sentence for each loop when there are some and none of them ticks, nor could be started anew."""
        stuck = self.stuck(bounds=2)
        return [f"{loop} has stopped" for loop in stuck] if len(stuck) == len(self._ticks) else []

    def missing(self) -> list[str]:
        """Return what is waited for at the start."""
        return [f"waiting for {name}" for missing in self._awaited for name in missing()]


@asynccontextmanager
async def serving(health: Health, metrics: Metrics, port: int) -> AsyncIterator[int]:
    """Serve /livez, /readyz and /metrics; yields the port (a free one for 0)."""

    async def livez(_: web.Request) -> web.Response:
        return _probe(health.dead())

    async def readyz(_: web.Request) -> web.Response:
        return _probe(health.missing())

    async def prometheus(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", prometheus)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        # a free port is another one for IPv6
        yield next(int(address[1]) for address in runner.addresses if len(address) == 2)
    finally:
        await runner.cleanup()


def _probe(problems: list[str]) -> web.Response:
    if problems:
        return web.Response(status=503, text="\n".join(problems) + "\n")
    return web.Response(text="ok\n")
