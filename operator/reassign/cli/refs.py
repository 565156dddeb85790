"""What the words of a command refer to: objects by kubectl's names of their types, and the API server that has them."""

from __future__ import annotations

from typing import NamedTuple

from reassign.kube.login import Login

SHORT = {
    "kpr": "PartitionReassignment",
    "krp": "ReassignmentPlan",
    "kbd": "BrokerDecommission",
    "krpol": "ReassignmentPolicy",
}
"""Short names of the kinds with verbs."""


def several(kind: str) -> str:
    """Return what several objects of a kind are called."""
    return f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"


TYPES = {
    name: kind
    for short, kind in SHORT.items()
    for name in (short, kind.lower(), several(kind.lower()), f"{several(kind.lower())}.kafka.reassign.dev")
}
"""The kinds by the names that kubectl has for them."""


class Ref(NamedTuple):
    """An object as kubectl names it: NAME, or TYPE/NAME."""

    kind: str | None
    """None where the name alone is given."""
    name: str


class Kube(NamedTuple):
    """Where the objects of a command are: an API server, and a namespace or the default one."""

    namespace: str | None
    login: Login
