"""What the API server answers, in our words, and the names of events."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException

from reassign.errors import ApiServerError, Reason, ReassignError
from reassign.kube.client import LISTS, PAGE_OBJECTS, Kind, KubeClient
from reassign.kube.events import EventRecorder

OBJECT = {
    "apiVersion": "kafka.reassign.dev/v1alpha1",
    "kind": "PartitionReassignment",
    "metadata": {"name": "move", "namespace": "going", "uid": "uid", "resourceVersion": "1"},
}
GOING = 'events "move.0" is forbidden: unable to create new content in namespace going because it is being terminated'
DENIED = 'events is forbidden: User "operator" cannot create resource "events" in the namespace "going"'


def answering(status: int, message: str) -> KubeClient:
    """A client whose API server refuses everything."""

    async def refuse(*_: object) -> Any:
        error = ApiException(status=status)  # type: ignore[no-untyped-call]
        error.body = json.dumps({"message": message})
        raise error

    kube = KubeClient()
    kube._send = refuse  # type: ignore[method-assign]
    return kube


def serving(content_type: str, body: bytes) -> KubeClient:
    """A client that is always answered this, with 200."""

    async def answer(*_: object, **__: object) -> Any:
        return SimpleNamespace(status=200, headers={"content-type": content_type}, data=body)

    kube = KubeClient()
    kube._send = answer  # type: ignore[method-assign]
    kube._api = ApiClient(type.__call__(Configuration))  # type: ignore[no-untyped-call]
    return kube


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>Please log in</html>"),
        ("application/json", b'{"kind": "Parti'),
        ("application/json", b"[]"),
        ("application/octet-stream", b"\0"),
        ("application/json", b"\xff"),
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda kube: kube.list(Kind.PARTITION_REASSIGNMENT),
        lambda kube: kube.metadata(Kind.KAFKA_CLUSTER, "kafka", "main"),
    ],
    ids=["list", "get"],
)
def test_what_is_not_json_is_no_bug(
    content_type: str, body: bytes, read: Callable[[KubeClient], Coroutine[Any, Any, object]]
) -> None:
    kube = serving(content_type, body)
    with pytest.raises(ApiServerError, match=r"GET .* was not answered in JSON"):
        asyncio.run(read(kube))


def refusal(kube: KubeClient, path: str = "/path") -> ReassignError:
    with pytest.raises(ReassignError) as caught:
        asyncio.run(kube.request("POST", path))
    return caught.value


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "404 page not found",
            "does not serve kafka.reassign.dev/v1alpha1: 404 page not found; install the chart's CRDs",
        ),
        ('namespaces "x" not found', 'refused POST /apis/kafka.reassign.dev/v1alpha1/x: namespaces "x" not found'),
    ],
)
def test_unserved_kinds_are_told_from_a_missing_namespace(message: str, told: str) -> None:
    error = refusal(answering(404, message), "/apis/kafka.reassign.dev/v1alpha1/x")
    assert (error.reason, error.message) == (Reason.REQUEST_FAILED, f"the API server {told}")


def test_that_a_namespace_is_going_is_no_matter_of_rights() -> None:
    error = refusal(answering(403, GOING))
    assert error.reason is Reason.REQUEST_FAILED
    assert "Role" not in error.message
    assert "because it is being terminated" in error.message


def test_a_right_that_is_missing_says_which_and_who_grants_it() -> None:
    error = refusal(answering(403, DENIED))
    assert error.reason is Reason.NOT_AUTHORIZED
    assert error.message.endswith(
        f"{DENIED}; an administrator of the cluster can grant it, to the operator by the chart's Roles"
    )


@pytest.mark.parametrize("name", ["a" * 199 + ".b", "a" * 198 + ".-b", "a" * 253, "short"])
def test_an_events_name_is_one_that_the_api_server_takes(name: str) -> None:
    made: list[str] = []

    class Kube:
        async def request(self, verb: str, path: str, body: Any) -> None:
            made.append(body["metadata"]["name"])

    kube: Any = Kube()
    obj = {**OBJECT, "metadata": {**OBJECT["metadata"], "name": name}}  # type: ignore[dict-item]
    asyncio.run(EventRecorder(kube, "pod").record(obj, "Normal", "Reason", "note", "Action"))
    label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    assert len(made) == 1
    assert re.fullmatch(rf"{label}(\.{label})*", made[0])
    assert len(made[0]) <= 253


Page = tuple[int, Mapping[str, Any]]
NAMED = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "PartitionReassignment"}
GONE: Page = (410, {"kind": "Status", "message": "The provided continue parameter is too old"})


def page(*names: str, token: str = "") -> Page:
    return 200, {"metadata": {"continue": token}, "items": [{"metadata": {"name": name}} for name in names]}


class Listed(KubeClient):
    """A client whose API server has these pages, and forgets those before a continue token so many times."""

    def __init__(self, pages: Mapping[str, Page], expires: int = 0) -> None:
        super().__init__()
        self.asked: list[dict[str, str]] = []
        self._pages, self._expires = pages, expires

    async def _send(self, verb: str, path: str, *_: object, query: Sequence[tuple[str, str]] = ()) -> Any:
        self.asked.append(dict(query))
        token = self.asked[-1].get("continue", "")
        status, body = self._pages[token]
        if token and self._expires:
            self._expires -= 1
            status, body = GONE
        return SimpleNamespace(status=status, data=json.dumps(body).encode(), reason="", headers={})

    def _deserialized(self, response: Any) -> Any:
        error = ApiException(status=response.status)  # type: ignore[no-untyped-call]
        error.body = response.data.decode()
        raise error

    def names(self) -> list[str]:
        found = asyncio.run(self.list(Kind.PARTITION_REASSIGNMENT))
        assert all({key: obj[key] for key in NAMED} == NAMED for obj in found)
        return [obj["metadata"]["name"] for obj in found]


PAGES = {"": page("a", "b", token="2"), "2": page("c", token="3"), "3": page("d")}


def test_a_list_is_read_page_by_page() -> None:
    kube = Listed(PAGES)
    assert kube.names() == ["a", "b", "c", "d"]
    limit = {"limit": str(PAGE_OBJECTS)}
    assert kube.asked == [limit, limit | {"continue": "2"}, limit | {"continue": "3"}]


def test_a_list_without_objects_is_empty() -> None:
    assert Listed({"": (200, {"metadata": {}, "items": None})}).names() == []


def test_a_list_whose_continue_token_expires_begins_anew() -> None:
    kube = Listed(PAGES, expires=2)
    assert kube.names() == ["a", "b", "c", "d"], "each once"
    assert [query.get("continue") for query in kube.asked] == [None, "2", None, "2", None, "2", "3"]


def test_a_list_that_expires_each_time_is_tried_again_later() -> None:
    kube = Listed(PAGES, expires=99)
    with pytest.raises(ApiServerError, match="forgets the list of partitionreassignments"):
        kube.names()
    assert len(kube.asked) == 2 * LISTS


@pytest.mark.parametrize(
    ("status", "reason"),
    [(500, Reason.API_SERVER_UNAVAILABLE), (403, Reason.NOT_AUTHORIZED), (429, Reason.API_SERVER_UNAVAILABLE)],
)
def test_a_page_that_fails_fails_the_list(status: int, reason: Reason) -> None:
    kube = Listed(PAGES | {"3": (status, {"message": "no"})})
    with pytest.raises(ReassignError) as caught:
        kube.names()
    assert caught.value.reason is reason


def test_objects_of_a_list_are_taken_beside_the_event_loop() -> None:
    threads: set[int] = set()

    def take(obj: dict[str, Any]) -> dict[str, Any]:
        threads.add(threading.get_ident())
        return {"taken": obj["metadata"]["name"]}

    found = asyncio.run(Listed(PAGES).list(Kind.PARTITION_REASSIGNMENT, None, take))
    assert found == [{"taken": name} for name in "abcd"]
    assert threading.get_ident() not in threads


def test_all_events_about_an_object_are_asked_for_without_a_limit() -> None:
    asked: list[object] = []

    async def request(*_: object, query: Sequence[tuple[str, str]]) -> Any:
        asked.extend(query)
        return {"items": [{"reason": "Noted"}]}

    kube = KubeClient()
    kube.request = request  # type: ignore[method-assign,assignment]
    assert asyncio.run(kube.events(OBJECT)) == [{"reason": "Noted"}]
    assert asked == [("fieldSelector", "involvedObject.uid=uid")]
