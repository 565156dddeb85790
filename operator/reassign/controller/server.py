"""Probes that mean something, and metrics, over HTTP.

/livez fails when a loop has not ticked for too long: a process whose loop is stuck is of no use, and a restart
is safe at any moment. /readyz fails until all that was named at the start has come. An unreachable Kafka makes
neither fail: loops tick then too, and a restart would not help.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from reassign.controller.metrics import Metrics

__all__ = ["Health", "serving"]


class Health:
    """What the probes ask.

    `awaited` names what has to come before the operator is ready, each with a function that says whether it has.
    """

    def __init__(
        self,
        liveness_seconds: float,
        awaited: Iterable[tuple[str, Callable[[], bool]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bound, self._awaited, self._clock = liveness_seconds, tuple(awaited), clock
        self._ticks: dict[str, float] = {}

    def tick(self, loop: str) -> None:
        """A loop is alive now; from its first tick on it has to go on."""
        self._ticks[loop] = self._clock()

    def forget(self, loop: str) -> None:
        """A loop has ended, as it should."""
        self._ticks.pop(loop, None)

    def stuck(self) -> list[str]:
        """The loops that have not ticked for too long, a sentence each."""
        now = self._clock()
        return [
            f"{loop} has not ticked for {now - tick:.0f} s"
            for loop, tick in sorted(self._ticks.items())
            if now - tick > self._bound
        ]

    def missing(self) -> list[str]:
        """What has not come yet."""
        return [f"waiting for {name}" for name, has_come in self._awaited if not has_come()]


@asynccontextmanager
async def serving(health: Health, metrics: Metrics, port: int) -> AsyncIterator[int]:
    """Serve /livez, /readyz and /metrics; yields the port (a free one for 0)."""

    async def livez(_: web.Request) -> web.Response:
        return _probe(health.stuck())

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
