"""The adapter to the API server, used for one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from reassign.kube.client import KubeClient

T = TypeVar("T")


def with_client(use: Callable[[KubeClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with KubeClient() as kube:
            return await use(kube)

    return asyncio.run(run())
