"""What the API server's managedFields tell of our writes and those of others, and what the store makes of that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.store import Store
from reassign.core.model.resource import Resource
from reassign.kube.client import Kind, KubeClient
from reassign.kube.managed import field_manager, finalizer_is_ours, record_is_foreign
from tests.api.kubectl import Kubectl, reassignment
from tests.api.test_kube_client import kubeconfig as kubeconfig
from tests.api.test_kube_client import with_client

Object = dict[str, Any]


def recorded(state: str) -> Object:
    """A status as we write it, with one move."""
    partition = {"partition": 0, "originalReplicas": [3, 2, 1], "targetReplicas": [1, 2, 3], "state": state}
    record = [{"topic": "orders", "topicId": "id", "partitions": [partition]}]
    return {"observedGeneration": 1, "summary": state, "record": record}


def read(kubectl: Kubectl) -> Object:
    return kubectl.read("kpr", "move")


def write(kubectl: Kubectl, status: Object) -> Object:
    """Write a status as the operator does."""
    obj = read(kubectl)
    written = with_client(lambda kube: kube.write_status(obj, status))
    assert written
    return written


@pytest.fixture
def in_flight(sandbox: Kubectl, kubeconfig: object) -> Kubectl:
    """A namespace with a resource that the operator has in flight."""

    async def begin(kube: KubeClient) -> None:
        move = await kube.get(Kind.PARTITION_REASSIGNMENT, sandbox.namespace, "move")
        assert move
        first = await kube.write_status(move, {"observedGeneration": 1, "record": []})
        assert first
        held = await kube.add_finalizer(first)
        assert held
        await kube.write_status(held, recorded("InFlight"))

    sandbox.apply(reassignment())
    with_client(begin)
    return sandbox


def as_a_new_process_sees(obj: Object) -> Resource:
    store = Store()
    store.put(obj)
    found = store.resource(obj["metadata"]["uid"])
    assert found
    return found


def overwritten(before: Object, after: Object) -> bool:
    """Whether a process that knows an object takes its next version for somebody else's."""
    store = Store()
    store.put(before)
    store.put(after)
    return bool(store.overwritten((before["metadata"]["namespace"], "main")))


def wipe_by_merge(kubectl: Kubectl) -> None:
    kubectl("patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", '{"status": null}')


def wipe_by_replacing(kubectl: Kubectl) -> None:
    obj = read(kubectl)
    del obj["status"]
    kubectl("replace", "--subresource=status", "-f", "-", input=json.dumps(obj))


def wipe_all_but_conditions(kubectl: Kubectl) -> None:
    kubectl.write_status("kpr", "move", {"conditions": []})


def test_what_we_wrote_is_ours(in_flight: Kubectl) -> None:
    obj = read(in_flight)
    assert finalizer_is_ours(obj)
    assert not record_is_foreign(obj)
    managers = {(entry["manager"], entry.get("subresource")) for entry in obj["metadata"]["managedFields"]}
    ours = field_manager(obj["metadata"]["uid"])
    assert {(ours, None), (ours, "status")} < managers
    assert not as_a_new_process_sees(obj).status_lost
    assert not overwritten(obj, write(in_flight, recorded("Completed")))


@pytest.mark.parametrize("wipe", [wipe_by_merge, wipe_by_replacing, wipe_all_but_conditions])
def test_a_status_that_is_wiped_is_known_to_be_lost(in_flight: Kubectl, wipe: Any) -> None:
    before = read(in_flight)
    wipe(in_flight)
    wiped = read(in_flight)
    assert "record" not in wiped.get("status", {})
    assert as_a_new_process_sees(wiped).status_lost
    assert overwritten(before, wiped)


def test_a_record_that_another_client_wrote_is_known_until_we_write(in_flight: Kubectl) -> None:
    before = read(in_flight)
    in_flight.write_status("kpr", "move", recorded("Cancelling"))
    edited = read(in_flight)
    assert record_is_foreign(edited)
    assert overwritten(before, edited)
    assert as_a_new_process_sees(edited).status_lost
    assert not record_is_foreign(write(in_flight, recorded("InFlight")))


def test_a_label_or_condition_of_another_client_changes_nothing(in_flight: Kubectl) -> None:
    before = read(in_flight)
    in_flight("label", "kpr", "move", "team=a")
    in_flight("patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", '{"status": {"summary": "mine"}}')
    after = read(in_flight)
    assert not overwritten(before, after)
    assert finalizer_is_ours(after)
    assert as_a_new_process_sees(after).record


def made_again(kubectl: Kubectl, *removed: str) -> Object:
    """Kept with all that it has, deleted, and made again from that: `kubectl get -o yaml`, `delete`, `create`."""
    kept = read(kubectl)
    kubectl("patch", "kpr", "move", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    kubectl("delete", "kpr", "move")
    for field in ("uid", "resourceVersion", *removed):
        kept["metadata"].pop(field)
    kubectl("create", "-f", "-", input=json.dumps(kept))
    return kept


@pytest.mark.parametrize("removed", [(), ("managedFields",)], ids=["with managedFields", "without"])
def test_what_is_made_from_a_copy_has_lost_nothing(in_flight: Kubectl, removed: tuple[str, ...]) -> None:
    made_again(in_flight, *removed)
    copy = read(in_flight)
    assert copy["metadata"]["finalizers"] == [FINALIZER]
    assert "record" not in copy.get("status", {})
    assert not as_a_new_process_sees(copy).status_lost


def test_a_status_restored_from_a_backup_is_not_believed(in_flight: Kubectl) -> None:
    kept = made_again(in_flight)
    fields = {"metadata": {"managedFields": kept["metadata"]["managedFields"]}}
    in_flight(
        "patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", json.dumps({"status": kept["status"]})
    )
    in_flight("patch", "kpr", "move", "--type=merge", "-p", json.dumps(fields))
    copy = read(in_flight)
    assert copy["status"]["record"] == kept["status"]["record"]
    seen = as_a_new_process_sees(copy)
    assert not seen.record
    assert not seen.status_lost


def test_cleared_managed_fields_leave_the_record_believed(in_flight: Kubectl) -> None:
    in_flight("patch", "kpr", "move", "--type=merge", "-p", '{"metadata": {"managedFields": [{}]}}')
    cleared = read(in_flight)
    assert "managedFields" not in cleared["metadata"]
    assert as_a_new_process_sees(cleared).record
    wipe_by_merge(in_flight)
    wiped = read(in_flight)
    assert not as_a_new_process_sees(wiped).status_lost
    assert overwritten(cleared, wiped)


def test_merged_writers_are_not_another_client(in_flight: Kubectl) -> None:
    for number in range(12):
        in_flight("label", "kpr", "move", f"label-{number}=x", f"--field-manager=writer-{number}")
    obj = read(in_flight)
    managers = {entry["manager"] for entry in obj["metadata"]["managedFields"]}
    assert "ancient-changes" in managers
    assert field_manager(obj["metadata"]["uid"]) not in managers
    assert as_a_new_process_sees(obj).record
    wipe_by_merge(in_flight)
    assert not as_a_new_process_sees(read(in_flight)).status_lost


def test_our_finalizer_in_a_manifest_that_is_applied_again_stays_ours(in_flight: Kubectl) -> None:
    held = reassignment()
    held["metadata"]["finalizers"] = [FINALIZER]
    in_flight.apply(held)
    assert finalizer_is_ours(read(in_flight))


def test_a_finalizer_that_was_removed_and_added_again_is_not_ours(in_flight: Kubectl) -> None:
    in_flight.patch("kpr", "move", {"metadata": {"finalizers": None}})
    in_flight.patch("kpr", "move", {"metadata": {"finalizers": [FINALIZER]}})
    assert not finalizer_is_ours(read(in_flight))
