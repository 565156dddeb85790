"""How an API server is reached, as a value that imports no client."""

from __future__ import annotations

from typing import NamedTuple


class Login(NamedTuple):
    """A kubeconfig and a context in it; by default KUBECONFIG, else ~/.kube/config, and its current context."""

    kubeconfig: str | None = None
    context: str | None = None


DEFAULT_LOGIN = Login()
