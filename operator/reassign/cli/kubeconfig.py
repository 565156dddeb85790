"""What the kubeconfig says: its contexts, and the namespace of a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer
from kubernetes.aio.config import list_kube_config_contexts

from reassign.api.names import NAMESPACE_NAME
from reassign.cli.refs import Kube
from reassign.kube.login import Login
from reassign.text import listed

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def namespace_of(kube: Kube) -> str:
    """Return the namespace that is named, else that of the kubeconfig's context, as kubectl does, else the pod's."""
    if kube.namespace:
        return kube.namespace
    chosen = context_of(kube.login)
    if chosen is None:
        return POD_NAMESPACE.read_text() if POD_NAMESPACE.is_file() else "default"
    namespace = str(chosen["context"].get("namespace") or "default")
    if not NAMESPACE_NAME.fullmatch(namespace):
        raise typer.BadParameter(
            f"{namespace!r}, of the kubeconfig's context, cannot be a namespace; name one", param_hint="'--namespace'"
        )
    return namespace


def context_of(login: Login) -> dict[str, Any] | None:
    """Return the context that is named, or the current one; None where the kubeconfig cannot be read.

    Raises a usage error for a context that is not in the kubeconfig.
    """
    try:
        contexts, current = contexts_of(login)
        by_name = {each["name"]: each for each in contexts}
    except Exception:  # the library raises anything; a command that needs the API server reports it
        return None
    if login.context is None:
        return current
    if login.context not in by_name:
        raise typer.BadParameter(
            f"{login.context!r} is not in the kubeconfig; there are: {listed(sorted(by_name)) or 'none'}",
            param_hint="'--context'",
        )
    return by_name[login.context]


def contexts_of(login: Login) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return all contexts of the kubeconfig, and its current one; raises anything for what is no kubeconfig."""
    kubeconfig = login.kubeconfig or os.environ.get("KUBECONFIG")
    contexts, current = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    return contexts, current
