"""One writer: who holds the Lease may write, and stops in time when it is not renewed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from localplatform.controlplane import ApiServer
from localplatform.processes import wait_until
from reassign.kube import lease as module
from reassign.kube.client import KubeClient
from reassign.kube.lease import Lease, LeaseLost
from tests.api.kubectl import Kubectl

New = Callable[..., Lease]


@pytest.fixture(autouse=True)
def kubeconfig(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))


@pytest.fixture
def new(sandbox: Kubectl) -> New:
    """Makes a Lease for an identity."""
    return lambda identity, on_lost=unexpected: Lease(sandbox.namespace, "writer", identity, on_lost)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds short enough to see a Lease run out."""
    monkeypatch.setattr(module, "DURATION_SECONDS", 2)
    monkeypatch.setattr(module, "DEADLINE_SECONDS", 1.2)
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.3)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)


def unexpected() -> None:
    pytest.fail("the lease was lost")


async def nothing(_: object) -> None:
    pass


@asynccontextmanager
async def holding(lease: Lease) -> AsyncIterator[Lease]:
    await lease.acquire()
    try:
        yield lease
    finally:
        await lease.release()


def holder(sandbox: Kubectl) -> str:
    return str(sandbox.read("lease", "writer")["spec"]["holderIdentity"])


def test_the_first_one_has_it_and_gives_it_up(new: New, sandbox: Kubectl) -> None:
    async def run() -> None:
        async with holding(new("pod-1")) as lease:
            lease.check()
            assert holder(sandbox) == "pod-1"
        with pytest.raises(LeaseLost):
            lease.check()
        async with asyncio.timeout(5):  # much less than the Lease lasts
            async with holding(new("pod-2")):
                assert holder(sandbox) == "pod-2"

    asyncio.run(run())


def test_all_pods_of_an_installation_have_the_uid_of_the_lease(new: New, sandbox: Kubectl) -> None:
    async def run() -> list[str]:
        uids = []
        for pod in ("pod-1", "pod-2"):
            async with holding(new(pod)) as lease:
                uids.append(lease.uid)
        return uids

    assert asyncio.run(run()) == [sandbox.read("lease", "writer")["metadata"]["uid"]] * 2


def test_a_write_is_refused_before_the_lease_is_held(new: New) -> None:
    with pytest.raises(LeaseLost):
        new("pod-1").check()


def test_a_container_started_again_in_the_same_pod_has_it_at_once(new: New, sandbox: Kubectl) -> None:
    async def run() -> None:
        async with holding(new("pod-1")) as before:
            before._give_up = nothing  # type: ignore[method-assign]  # killed
            await before.release()
            assert holder(sandbox) == "pod-1"
            async with asyncio.timeout(5):
                async with holding(new("pod-1")) as after:
                    after.check()

    asyncio.run(run())


@pytest.mark.usefixtures("short")
def test_another_process_waits_until_the_lease_was_not_renewed(new: New, sandbox: Kubectl) -> None:
    sandbox.apply(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "writer"},
            # A clock that is years ahead: only what is seen from here counts.
            "spec": {
                "holderIdentity": "dead",
                "leaseDurationSeconds": 2,
                "renewTime": "2099-01-01T00:00:00.000000Z",
            },
        }
    )

    async def run() -> None:
        async with asyncio.timeout(10), holding(new("pod-2")) as lease:
            lease.check()
            assert sandbox.read("lease", "writer")["spec"]["leaseTransitions"] == 1

    asyncio.run(run())


@pytest.mark.usefixtures("short")
def test_a_holder_that_renews_is_not_followed_by_another(new: New) -> None:
    async def run() -> None:
        async with holding(new("pod-1")) as first:
            second = new("pod-2")
            waiting = asyncio.create_task(second.acquire())
            done, _ = await asyncio.wait({waiting}, timeout=5)  # more than twice what the Lease lasts
            assert not done
            first.check()
            assert not second.held
        await waiting
        await second.release()

    asyncio.run(run())


@pytest.mark.usefixtures("short")
def test_after_the_lease_was_deleted_one_process_writes_after_the_other(new: New, sandbox: Kubectl) -> None:
    lost = threading.Event()

    async def run() -> None:
        async with holding(new("pod-1", lost.set)) as first:
            second = new("pod-2")
            waiting = asyncio.create_task(second.acquire())
            assert await asyncio.to_thread(wait_until, lambda: second._seen is not None, 10)
            sandbox.delete("lease", "writer")
            while not waiting.done():
                assert not (first.held and second.held)
                await asyncio.sleep(0.01)
            second.check()
            assert lost.is_set()
            assert holder(sandbox) == "pod-2"
            await second.release()

    asyncio.run(run())


@pytest.mark.usefixtures("short")
def test_a_lease_deleted_just_before_its_renewal_is_lost(
    new: New, sandbox: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = threading.Event()
    request = KubeClient.request

    async def too_late(kube: KubeClient, verb: str, *arguments: Any, **options: Any) -> Any:
        if verb == "PUT":
            sandbox.delete("lease", "writer")
        return await request(kube, verb, *arguments, **options)

    monkeypatch.setattr(KubeClient, "request", too_late)

    async def run() -> None:
        async with holding(new("pod-1", lost.set)):
            assert await asyncio.to_thread(lost.wait, 10)

    asyncio.run(run())
    assert "writer" not in sandbox("get", "lease", "-o", "name")


@pytest.mark.usefixtures("short")
def test_a_process_that_cannot_renew_may_not_write_and_is_notified(new: New, sandbox: Kubectl) -> None:
    lost = threading.Event()

    async def run() -> None:
        async with holding(new("pod-1", lost.set)) as lease:
            taken = {"spec": {"holderIdentity": "pod-2", "leaseDurationSeconds": 3600}}
            sandbox.patch("lease", "writer", taken)
            assert await asyncio.to_thread(lost.wait, 10)
            with pytest.raises(LeaseLost):
                lease.check()

    asyncio.run(run())
    assert holder(sandbox) == "pod-2"


@pytest.mark.usefixtures("short")
def test_a_lease_whose_deadline_has_passed_is_not_renewed(new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after SIGSTOP, or a suspend: another process may have held the Lease and ended in between."""
    lost = threading.Event()
    ahead = 0.0
    clock = module._clock
    monkeypatch.setattr(module, "_clock", lambda: clock() + ahead)

    async def run() -> None:
        nonlocal ahead
        async with holding(new("pod-1", lost.set)) as lease:
            lease.check()
            ahead = 1.5
            with pytest.raises(LeaseLost):
                lease.check()
            assert await asyncio.to_thread(lost.wait, 10)
            with pytest.raises(LeaseLost):
                lease.check()

    asyncio.run(run())
