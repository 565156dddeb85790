"""What a shell completes an argument with: names of objects, namespaces and contexts, as the user may read them.

A completion that fails, or takes long, is none: nothing is said. No client is imported before a name is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from reassign.cli.refs import SHORT, TYPES, Kube
from reassign.kube.login import Login

if TYPE_CHECKING:
    from reassign.kube.client import KubeClient

SECONDS = 3.0
"""How long a user waits for a completion at most."""


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete NAME or TYPE/NAME of an object of a kind with verbs."""
    type, slash, _ = incomplete.rpartition("/")
    kinds = [TYPES.get(type, "")] if slash else list(SHORT.values())
    return _matching([f"{type}{slash}{name}" for kind in kinds for name in _objects(ctx, kind)], incomplete)


def reassignments(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a PartitionReassignment."""
    return _matching(_objects(ctx, "PartitionReassignment"), incomplete)


def approvable(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of what is approved."""
    kinds = ("ReassignmentPlan", "BrokerDecommission", "ReassignmentPolicy")
    return _matching([name for kind in kinds for name in _objects(ctx, kind)], incomplete)


def policies(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a ReassignmentPolicy."""
    return _matching(_objects(ctx, "ReassignmentPolicy"), incomplete)


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a KafkaCluster."""
    return _matching(_objects(ctx, "KafkaCluster"), incomplete)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a namespace, for those who may list them."""
    return _matching(_asked(ctx, lambda kube: kube.namespaces()), incomplete)


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a context of the kubeconfig."""
    from reassign.cli.kubeconfig import contexts_of

    with suppress(Exception):
        return _matching([each["name"] for each in contexts_of(_login(ctx))[0]], incomplete)
    return []


def _objects(ctx: typer.Context, kind: str) -> list[str]:
    from reassign.cli.kubeconfig import namespace_of
    from reassign.kube.client import Kind

    async def names(kube: KubeClient) -> list[str]:
        return await kube.names(Kind(kind), namespace_of(Kube(ctx.params.get("namespace"), _login(ctx))))

    return _asked(ctx, names)


def _asked(ctx: typer.Context, ask: Callable[[KubeClient], Awaitable[list[str]]]) -> list[str]:
    from reassign.kube.client import KubeClient

    async def answer() -> list[str]:
        async with asyncio.timeout(SECONDS), KubeClient(login=_login(ctx)) as kube:
            return await ask(kube)

    with suppress(Exception):
        return asyncio.run(answer())
    return []


def _login(ctx: typer.Context) -> Login:
    kubeconfig = ctx.params.get("kubeconfig")
    return Login(str(kubeconfig) if kubeconfig else None, ctx.params.get("context"))


def _matching(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
