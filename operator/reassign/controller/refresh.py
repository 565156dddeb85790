"""Asks the API server for one object, where what is known of it may be old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reassign.kube.client import Kind, KubeClient

if TYPE_CHECKING:
    from reassign.controller.store import Store


async def refresh(kube: KubeClient, store: Store, kind: Kind, namespace: str, name: str, uid: str) -> bool:
    """Take over the object of that uid as it is now; whether it is there. Another one of its name is another object."""
    known = store.version_of(uid)
    found = await kube.get(kind, namespace, name)
    if found is None or found["metadata"]["uid"] != uid:
        store.drop(uid)
        return False
    store.read(found, known)
    return True
