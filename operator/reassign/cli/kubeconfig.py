"""What the kubeconfig says: its contexts, and the namespace of a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer
from kubernetes.aio.config import list_kube_config_contexts

from reassign.cli.options import Kube
from reassign.kube.login import Login
from reassign.text import listed

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def namespace_of(kube: Kube) -> str:
    """Return the namespace that is named, else that of the kubeconfig's context, as kubectl does, else the pod's.

    Raises a usage error for a context that is not in the kubeconfig.
    """
    if kube.namespace:
        return kube.namespace
    name = kube.login.context
    try:
        contexts, current = contexts_of(kube.login)
        chosen = {each["name"]: each for each in contexts}.get(name) if name else current
    except Exception:  # the library raises anything; a command that needs the API server reports it
        return POD_NAMESPACE.read_text() if POD_NAMESPACE.is_file() else "default"
    if chosen is None:
        known = listed(sorted(each["name"] for each in contexts)) or "none"
        raise typer.BadParameter(f"{name!r} is not in the kubeconfig; there are: {known}", param_hint="'--context'")
    return str(chosen["context"].get("namespace") or "default")


def contexts_of(login: Login) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return all contexts of the kubeconfig, and its current one; raises anything for what is no kubeconfig."""
    kubeconfig = login.kubeconfig or os.environ.get("KUBECONFIG")
    contexts, current = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    return contexts, current
