"""The operator's records on a real API server: written in parts, believed as they are read, held back from deletion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from reassign.controller.objects.store import Store
from reassign.controller.writing.records import Records
from reassign.core.model.record import Entry
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.kube.client import Kind, KubeClient
from tests.api.client import with_client
from tests.api.kubectl import Kubectl, RefusedError, entry, reassignment

T = TypeVar("T")
KINDS = Kind.PARTITION_REASSIGNMENT, Kind.REASSIGNMENT_RECORD
SUBMITTING = Entry("id", (1, 2, 3), (4, 2, 3), State.SUBMITTING, log_dirs=((4, "/data"),))
RECORD = {TopicPartition("orders", number): SUBMITTING for number in range(250)}


@pytest.fixture
def move(sandbox: Kubectl, kubeconfig: object) -> Kubectl:
    """A PartitionReassignment of 250 partitions."""
    sandbox.apply(reassignment(partitions=[entry(partition=tp.partition) for tp in RECORD], deletionPolicy="Orphan"))
    return sandbox


def do(move: Kubectl, use: Callable[[Records, Resource], Awaitable[T]]) -> T:
    """What a process does that knows nothing but what the API server has."""

    async def run(kube: KubeClient) -> T:
        return await use(Records(kube, (store := await _read(move, kube))), _resource(store))

    return with_client(run)


async def _read(move: Kubectl, kube: KubeClient) -> Store:
    store = Store()
    for kind in KINDS:
        store.take_over(await kube.list(kind, move.namespace), {})
    return store


def _resource(store: Store) -> Resource:
    [uid] = [uid for uid in store.uids() if (obj := store.get(uid)) and obj["kind"] == Kind.PARTITION_REASSIGNMENT]
    found = store.resource(uid)
    assert found
    return found


def recorded(move: Kubectl) -> Resource:
    async def same(_: Records, resource: Resource) -> Resource:
        return resource

    return do(move, same)


def versions(move: Kubectl) -> list[str]:
    items = move.json("get", "reassignmentrecords")["items"]
    return [part["metadata"]["resourceVersion"] for part in sorted(items, key=lambda part: int(part["spec"]["part"]))]


def test_a_record_is_written_in_parts_and_read_back(move: Kubectl) -> None:
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    assert recorded(move).record == RECORD
    before = versions(move)
    assert len(before) == 3
    after = {**RECORD, TopicPartition("orders", 150): SUBMITTING.to(State.IN_FLIGHT)}
    do(move, lambda records, resource: records.write(resource, after, held=True))
    assert recorded(move).record == after
    assert [number for number, (one, two) in enumerate(zip(before, versions(move), strict=True)) if one != two] == [1]


def test_a_record_that_is_written_as_it_is_costs_no_write(move: Kubectl) -> None:
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    before = versions(move)
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    assert versions(move) == before


def test_a_deleted_record_can_be_written_until_it_is_released(move: Kubectl) -> None:
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    move("delete", "reassignmentrecords", "--all", "--wait=false")
    cancelled = dict.fromkeys(RECORD, SUBMITTING.to(State.CANCELLED))
    do(move, lambda records, resource: records.write(resource, cancelled, held=True))
    assert recorded(move).record == cancelled
    do(move, lambda records, resource: records.release(resource.uid))
    assert recorded(move).record == {}


def test_a_resource_that_is_gone_is_left_in_its_record(move: Kubectl) -> None:
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    move("delete", "partitionreassignment", "move")

    async def left(kube: KubeClient) -> list[Resource]:
        store = await _read(move, kube)
        [owner] = store.unowned((move.namespace, "main"))
        assert await kube.get(owner.kind, owner.namespace, owner.name) is None
        store.is_gone(owner, datetime.now(UTC))
        return store.resources((move.namespace, "main"))

    [resource] = with_client(left)
    assert resource.owner_gone
    assert resource.spec.deletion_policy == "Orphan"
    assert resource.record == RECORD


def test_a_record_outside_the_schema_is_refused(move: Kubectl) -> None:
    do(move, lambda records, resource: records.write(resource, RECORD, held=True))
    [name, *_] = [part["metadata"]["name"] for part in move.json("get", "reassignmentrecords")["items"]]
    with pytest.raises(RefusedError):
        move("patch", "reassignmentrecord", name, "--type=merge", "-p", '{"spec": {"part": -1}}')
