"""The watches: how kopf logs in, and how its session tells which of them have listed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import kopf
import pytest
from yarl import URL

from reassign.controller.objects.watches import Watches, _kopf_settings
from reassign.kube.client import PAGE_OBJECTS, Kind

API = "https://api:6443/apis/kafka.reassign.dev/v1alpha1"


async def unused(kind: str, obj: Any) -> None:
    raise AssertionError("nothing is watched")


def answer(watches: Watches, url: str, status: int = 200) -> Any:
    answered: Any = watches._answered
    return answered(None, None, SimpleNamespace(url=URL(url), response=SimpleNamespace(status=status)))


def test_in_a_pod_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    in_pod = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="secret")
    monkeypatch.setattr(kopf, "login_with_service_account", lambda **_: in_pod)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    async def run() -> None:
        session = await Watches((), unused)._login()
        assert session is not None
        assert session.server == "https://[fd00::1]:443"
        assert session.aiohttp_session.headers["Authorization"] == "Bearer secret"
        await session.aiohttp_session.close()

    asyncio.run(run())


def test_a_watch_has_listed_when_it_is_answered() -> None:
    async def run() -> None:
        watches = Watches(("a", "b"), unused)
        for kind in Kind:
            await answer(watches, f"{API}/namespaces/a/{kind.plural}")
        assert len(watches.missing(["a"])) == len(Kind), "they have only begun to list"
        await answer(watches, f"{API}/namespaces/a/kafkaclusters?watch=true", 403)
        for kind in Kind:
            await answer(watches, f"{API}/namespaces/a/{kind.plural}?watch=true&timeoutSeconds=300")
        assert watches.missing(["a"]) == []
        assert "the watch of kafkaclusters in b" in watches.missing(["a", "b"])

    asyncio.run(run())


def test_a_watch_of_all_namespaces_is_known_by_its_path() -> None:
    async def run() -> None:
        watches = Watches((), unused)
        for kind in Kind:
            await answer(watches, f"https://proxy/k8s/clusters/c-1{URL(API).path}/{kind.plural}?watch=true")
        assert watches.missing([""]) == []

    asyncio.run(run())


def test_kopf_lists_in_pages_and_copies_no_object() -> None:
    settings = _kopf_settings()
    assert settings.watching.chunk_size == PAGE_OBJECTS
    body = kopf.Body({"metadata": {"name": "move"}, "spec": {"partitions": [{"topic": "orders"}]}})
    assert settings.persistence.diffbase_storage.build(body=body) == {}
    assert settings.persistence.diffbase_storage.fetch(body=body) is None
