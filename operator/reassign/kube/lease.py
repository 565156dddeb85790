"""One writer: a coordination.k8s.io Lease, renewed in a thread of its own, and a deadline to check before a write.

The deadline is counted from before the renewal was sent, and ends earlier than the Lease does for others: a process
that checks it right before a write does not write when another may have started. Its clock goes on while the process is
stopped, and while the machine is suspended. Kafka has no fencing token, so a request that was sent in time can still
land late.

A Lease whose deadline has passed is lost, even if it was not taken: another process may have held it and ended.

So is one that was deleted, which its holder learns when it is to be renewed. A process that has waited for another
treats its deletion as its last renewal, and makes another Lease when that one would have ended.

The library's leader election is not used: it has no deadline to check, counts on the wall clock, and an
unreachable API server ends it with an exception of the HTTP client.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog

from reassign.errors import ConflictError
from reassign.kube.client import KubeClient, Object

__all__ = ["Lease", "LeaseLost"]

DURATION_SECONDS = 12
"""What others wait, after the last renewal that they saw, before they take the Lease."""
DEADLINE_SECONDS = 8.0
"""What the holder writes for, after it sent its last successful renewal."""
RENEW_SECONDS = 2.0
RETRY_SECONDS = 1.0
ATTEMPT_SECONDS = 2.0

log = structlog.get_logger(__name__)


def _clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseLost(RuntimeError):  # noqa: N818 - it is no error of a resource; the process ends
    """This process may not write any more."""


class Lease:
    """A Lease that this process holds or waits for.

    `identity` is the pod's name: a container that is started again in the same pod has it at once, since
    the one before has ended by then. `on_lost` is called in the lease's thread, once, when the Lease is lost or
    that thread fails; it ends the process.
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        identity: str,
        on_lost: Callable[[], None],
        written: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name, self._identity, self._on_lost = namespace, name, identity, on_lost
        self._written = written
        self._deadline = 0.0
        self._held = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: tuple[str, float] | None = None
        """The version that another process held last, empty once it was deleted, and when it was first seen."""
        self._unanswered = False
        """Whether the last attempt met an error, which one that waits says once."""
        self.uid = ""
        """Of the object in the API server: all pods of one installation share it, and it outlives them."""
        self.transitions = math.nan
        """How often it has changed its holder, by the object in the API server; NaN until that was read."""
        self.renewed_at = 0.0
        """When this process last renewed it, in seconds since 1970; 0 for never."""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self._namespace}/{self._name}"

    @property
    def held(self) -> bool:
        """Whether this process may write now."""
        return _clock() < self._deadline

    def check(self) -> None:
        """Raise `LeaseLost` unless this process may write now; to be called right before a write."""
        if not self.held:
            raise LeaseLost(f"the Lease {self.full_name} was not renewed in time")

    async def acquire(self) -> None:
        """Wait until the Lease is ours; it is renewed from then on."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._hold()), name="lease", daemon=True)
        self._thread.start()
        while not self._held.is_set():
            if not self._thread.is_alive():
                raise LeaseLost(f"the Lease {self.full_name} could not be asked for")
            await asyncio.sleep(0.05)

    async def release(self) -> None:
        """Give the Lease up, so that another need not wait; nothing may be written after."""
        self._deadline = 0.0
        self._stop.set()
        if self._thread:
            await asyncio.to_thread(self._thread.join)

    async def _hold(self) -> None:
        try:
            async with KubeClient(written=self._written) as kube:
                while not self._stop.is_set():
                    await self._pause(await self._attempt(kube))
                await self._give_up(kube)
        except Exception:
            log.exception("the lease failed unexpectedly", lease=self._name)
        finally:
            self._deadline = 0.0
            self._end_if_lost()

    async def _attempt(self, kube: KubeClient) -> float:
        """Take or renew the Lease; return in how many seconds to do so again."""
        sent = _clock()
        renewed = await self._renew(kube)
        self._end_if_lost()
        if not renewed:
            return RETRY_SECONDS
        if not self._stop.is_set():
            self._deadline, self.renewed_at = sent + DEADLINE_SECONDS, time.time()
        if not self._held.is_set():
            self._held.set()
            log.info("lease acquired", lease=self._name, identity=self._identity)
        return RENEW_SECONDS

    async def _pause(self, seconds: float) -> None:
        """Wait, but end the process as soon as the deadline of a Lease that was ours has passed."""
        end = time.monotonic() + seconds
        while not self._stop.is_set() and time.monotonic() < end:
            self._end_if_lost()
            await asyncio.sleep(0.1)

    def _end_if_lost(self) -> None:
        if self._held.is_set() and not self._stop.is_set() and not self.held:
            log.error("lease lost", lease=self._name, identity=self._identity)
            self._stop.set()
            self._on_lost()

    async def _renew(self, kube: KubeClient) -> bool:
        """Take or renew the Lease; return False when another holds it or the API server does not say."""
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                renewed = await self._renewed(kube)
            self._unanswered = False
            return renewed
        except ConflictError:
            return False  # another process was faster; the next read shows which
        except Exception as error:  # anything can come back through a proxy, and this thread has to go on
            if not self._unanswered or self._held.is_set():
                log.warning("lease not renewed", lease=self._name, type=type(error).__name__, error=str(error))
            self._unanswered = True
            return False

    async def _renewed(self, kube: KubeClient) -> bool:
        path = f"{self._path}/{self._name}"
        lease = await kube.request("GET", path, missing_ok=True)
        deleted = self._held.is_set() and (lease is None or lease["metadata"]["uid"] != self.uid)
        self.transitions = ((lease or {}).get("spec") or {}).get("leaseTransitions", 0)
        if deleted or self._held_by_another(lease):
            self._deadline = 0.0
            return False
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            written = await kube.request("POST", self._path, made)
        else:
            before = lease.get("spec") or {}
            if before.get("holderIdentity") == self._identity:
                spec |= {key: before[key] for key in ("acquireTime", "leaseTransitions") if key in before}
            else:
                spec["leaseTransitions"] = before.get("leaseTransitions", 0) + 1
            written = await kube.request("PUT", path, lease | {"spec": spec})
        assert written is not None
        self.uid, self.transitions = written["metadata"]["uid"], spec["leaseTransitions"]
        return True

    def _held_by_another(self, lease: Object | None) -> bool:
        """Whether another process may still write: clocks differ, so what counts is how long we saw no renewal."""
        if lease is None and self._seen is None:
            return False
        spec = (lease or {}).get("spec") or {}
        if lease and spec.get("holderIdentity") in (None, "", self._identity):
            return False
        version = lease["metadata"]["resourceVersion"] if lease else ""
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, _clock())
        return _clock() - self._seen[1] < int(spec.get("leaseDurationSeconds", DURATION_SECONDS))

    async def _give_up(self, kube: KubeClient) -> None:
        try:
            lease = await kube.request("GET", f"{self._path}/{self._name}", missing_ok=True)
            if lease and lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                await kube.request("PUT", f"{self._path}/{self._name}", lease)
        except Exception as error:
            log.warning("lease not released", lease=self._name, type=type(error).__name__, error=str(error))
