"""What the API server answers, in our words, and the names of events."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from kubernetes.aio.client.exceptions import ApiException

from reassign.errors import Reason, ReassignError
from reassign.kube.client import KubeClient
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
    kube._request = refuse  # type: ignore[method-assign]
    return kube


def refusal(kube: KubeClient) -> ReassignError:
    with pytest.raises(ReassignError) as caught:
        asyncio.run(kube.request("POST", "/path"))
    return caught.value


def test_that_a_namespace_is_going_is_no_matter_of_rights() -> None:
    error = refusal(answering(403, GOING))
    assert error.reason is Reason.REQUEST_FAILED
    assert "Role" not in error.message
    assert "because it is being terminated" in error.message


def test_a_right_that_is_missing_is_one_of_the_chart() -> None:
    error = refusal(answering(403, DENIED))
    assert error.reason is Reason.NOT_AUTHORIZED
    assert "see the chart's Role" in error.message


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
