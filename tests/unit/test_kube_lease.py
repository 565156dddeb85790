"""Who may write, attempt by attempt, by a clock of the test: never two, whatever is done to the Lease."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from reassign.errors import ConflictError
from reassign.kube import lease as module
from reassign.kube.lease import DEADLINE_SECONDS, DURATION_SECONDS, RENEW_SECONDS, RETRY_SECONDS, Lease

HTML = "<html>Sorry, back soon</html>"


class ApiServer:
    """One Lease, which may be deleted, and a clock; each request takes `seconds`."""

    def __init__(self) -> None:
        self.now, self.seconds = 1000.0, 0.0
        self.lease: dict[str, Any] | None = None
        self.answers: dict[str, Any] = {}
        """What comes back instead, by verb, or is raised."""
        self._version = 0

    async def __aenter__(self) -> ApiServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def request(self, verb: str, path: str, body: Any = None, *, missing_ok: bool = False) -> Any:
        self.now += self.seconds
        if isinstance(answer := self.answers.get(verb), Exception):
            raise answer
        if answer is not None:
            return answer
        if verb != "GET":
            self._write(verb, deepcopy(body))
        return deepcopy(self.lease)

    def _write(self, verb: str, lease: dict[str, Any]) -> None:
        meta, known = lease["metadata"], self.lease["metadata"] if self.lease else {}
        if [known.get(key) for key in ("uid", "resourceVersion")] != [meta.get("uid"), meta.get("resourceVersion")]:
            raise ConflictError(f"{verb} of another version")
        self._version += 1
        meta |= {"uid": meta.get("uid", f"uid-{self._version}"), "resourceVersion": str(self._version)}
        self.lease = lease

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


class Process:
    """One that asks for the Lease, and ends when it is lost."""

    def __init__(self, api: Any, name: str) -> None:
        self._api = api
        self.lost = 0
        self.lease = Lease("operator", "writer", name, self._lose)

    def _lose(self) -> None:
        self.lost += 1

    def attempt(self) -> float | None:
        return None if self.lost else asyncio.run(self.lease._attempt(self._api))

    @property
    def held(self) -> bool:
        return self.lease.held


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    api = ApiServer()
    monkeypatch.setattr(module, "_clock", lambda: api.now)
    return api


@pytest.fixture
def holder(api: ApiServer) -> Process:
    holder = Process(api, "holder")
    assert holder.attempt() == RENEW_SECONDS
    assert holder.held
    return holder


@pytest.fixture
def standby(api: ApiServer, holder: Process) -> Process:
    """One that has seen the holder."""
    standby = Process(api, "standby")
    assert standby.attempt() == RETRY_SECONDS
    return standby


def test_a_waiting_process_lets_the_holder_of_a_deleted_lease_end(
    api: ApiServer, holder: Process, standby: Process
) -> None:
    api.lease = None
    standby.attempt()
    assert holder.held, "it does not know yet"
    assert not standby.held
    api.now += DURATION_SECONDS - 0.1
    standby.attempt()
    assert api.lease is None
    api.now += 0.1
    standby.attempt()
    assert standby.held
    assert not holder.held


def test_renewals_that_a_waiting_process_did_not_see_count(api: ApiServer, holder: Process, standby: Process) -> None:
    api.now += DEADLINE_SECONDS - 0.1
    holder.attempt()
    api.now += DURATION_SECONDS - DEADLINE_SECONDS + 0.2
    api.lease = None
    standby.attempt()
    assert holder.held
    assert not standby.held


def test_the_holder_of_a_deleted_lease_stops_writing_at_its_next_renewal(api: ApiServer, holder: Process) -> None:
    api.lease = None
    holder.attempt()
    assert (holder.held, holder.lost, api.lease) == (False, 1, None)


def test_a_lease_that_was_made_again_is_another_one(api: ApiServer, holder: Process) -> None:
    assert api.lease
    api.lease["metadata"]["uid"] = "restored from a backup, with its holder"
    holder.attempt()
    assert (holder.held, holder.lost) == (False, 1)


def test_the_deadline_counts_from_before_the_renewal_was_sent(api: ApiServer, holder: Process) -> None:
    sent, api.seconds = api.now, 1.0
    holder.attempt()
    api.now = sent + DEADLINE_SECONDS
    assert not holder.held


def test_a_process_that_has_seen_no_holder_makes_the_lease_at_once(api: ApiServer) -> None:
    first = Process(api, "first")
    first.attempt()
    assert first.held
    assert first.lease.uid == "uid-1"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("attempt"), st.sampled_from(range(3)), st.sampled_from([0.0, 0.4, 9.0])),
            st.tuples(st.just("pass"), st.sampled_from([0.5, 3.0, 7.9, 11.9, 12.0])),
            st.tuples(st.just("delete")),
        ),
        max_size=30,
    )
)
def test_no_two_processes_may_write_whenever_the_lease_is_deleted(actions: list[tuple[Any, ...]]) -> None:
    """However late each one of three comes to renew it, or to see that it is gone."""
    api = ApiServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_clock", lambda: api.now)
        processes = [Process(api, f"pod-{number}") for number in range(3)]
        for process in processes:
            process.attempt()
        for action in actions:
            match action:
                case "attempt", which, api.seconds:
                    processes[which].attempt()
                case "pass", seconds:
                    api.now += seconds
                case _:
                    api.lease = None
            assert sum(process.held for process in processes) <= 1


@pytest.mark.parametrize(
    ("answer", "type"), [(HTML, "TypeError"), (ValueError("truncated"), "ValueError"), ({}, "KeyError")]
)
@pytest.mark.parametrize("verb", ["GET", "PUT"])
def test_an_answer_that_is_no_lease_is_no_renewal(
    api: ApiServer, holder: Process, verb: str, answer: Any, type: str
) -> None:
    api.answers[verb] = answer
    api.now += RENEW_SECONDS
    with capture_logs() as logs:
        assert holder.attempt() == RETRY_SECONDS
    assert [(log["event"], log["type"]) for log in logs] == [("lease not renewed", type)]
    assert holder.held
    api.now += DEADLINE_SECONDS - RENEW_SECONDS
    assert not holder.held, "nothing was renewed"


def test_after_answers_that_are_no_lease_it_is_renewed(api: ApiServer, holder: Process) -> None:
    api.answers["GET"] = HTML
    holder.attempt()
    api.answers.clear()
    api.now += DEADLINE_SECONDS - 0.1
    assert holder.attempt() == RENEW_SECONDS
    api.now += DEADLINE_SECONDS - 0.1
    assert holder.held


def test_a_lease_is_released_whatever_comes_back(api: ApiServer, holder: Process) -> None:
    kube: Any = api
    api.answers["GET"] = HTML
    with capture_logs() as logs:
        asyncio.run(holder.lease._give_up(kube))
    assert [(log["event"], log["type"]) for log in logs] == [("lease not released", "TypeError")]
    api.answers.clear()
    asyncio.run(holder.lease._give_up(kube))
    assert api.holder == ""


def test_a_thread_that_fails_loses_the_lease(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(api, "pod")
    monkeypatch.setattr(module, "KubeClient", lambda **_: api)

    async def fail(_: float) -> None:
        raise OSError("no file descriptors")

    process.lease._pause = fail  # type: ignore[method-assign]
    with capture_logs() as logs:
        asyncio.run(process.lease.acquire())
        assert process.lease._thread
        process.lease._thread.join()
    assert (process.held, process.lost) == (False, 1)
    assert "the lease failed unexpectedly" in [log["event"] for log in logs]
