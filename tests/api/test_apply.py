"""How manifests arrive: by client-side and server-side apply, from two managers, in large sizes."""

import json

import pytest

from reassign.api.limits import MAX_DETAILS, MAX_PARTITIONS
from reassign.api.partition_reassignment import (
    PartitionDetail,
    PartitionReassignmentStatus,
    PartitionState,
)
from tests.api.kubectl import Kubectl, Object, RefusedError, by, entry, reassignment

ETCD_LIMIT = 1_572_864  # bytes of one object


def partitions(kubectl: Kubectl) -> list[Object]:
    found: list[Object] = kubectl.read("kpr", "move")["spec"]["partitions"]
    return found


def test_a_client_side_apply_adds_removes_and_changes_entries(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(partitions=[entry(), entry(partition=1), entry(partition=2)]))
    wanted = [entry(replicas=[4, 5]), entry(partition=2), entry(partition=3)]
    sandbox.apply(reassignment(partitions=wanted))
    assert partitions(sandbox) == wanted


def test_a_server_side_apply_adds_removes_and_changes_entries(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(partitions=[entry(), entry(partition=1), entry(partition=2)]), *by("argocd"))
    wanted = [entry(replicas=[4, 5]), entry(partition=2), entry(partition=3)]
    sandbox.apply(reassignment(partitions=wanted), *by("argocd"))
    assert partitions(sandbox) == wanted


def test_a_second_manager_adds_an_entry_and_the_first_keeps_its_own(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(partitions=[entry()]), *by("first"))
    sandbox.apply(reassignment(partitions=[entry(partition=1)]), *by("second"))
    assert partitions(sandbox) == [entry(), entry(partition=1)]
    sandbox.apply(reassignment(partitions=[entry(replicas=[7, 8, 9])]), *by("first"))
    assert partitions(sandbox) == [entry(replicas=[7, 8, 9]), entry(partition=1)]


def test_two_managers_with_different_replicas_conflict(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(partitions=[entry(replicas=[4, 5, 6])]), *by("first"))
    with pytest.raises(RefusedError, match="conflict"):
        sandbox.apply(reassignment(partitions=[entry(replicas=[9, 8, 7])]), *by("second"))
    assert partitions(sandbox) == [entry(replicas=[4, 5, 6])]


def test_forced_replicas_replace_the_first_ones_and_are_not_merged(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(partitions=[entry(replicas=[4, 5, 6])]), *by("first"))
    sandbox.apply(reassignment(partitions=[entry(replicas=[9, 8, 7])]), *by("second"), "--force-conflicts")
    assert partitions(sandbox) == [entry(replicas=[9, 8, 7])]


def test_spec_and_status_are_written_only_through_their_own_endpoint(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment() | {"status": {"summary": "forged"}})
    assert sandbox.read("kpr", "move")["status"] == {"observedGeneration": -1}
    sandbox("patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    assert sandbox.read("kpr", "move")["spec"]["suspend"] is False


def test_a_status_leaves_the_generation_alone_and_a_spec_does_not(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.write_status("kpr", "move", {"observedGeneration": 1, "summary": "0/1 partitions"})
    assert sandbox.read("kpr", "move")["metadata"]["generation"] == 1
    changed = sandbox.apply(reassignment(suspend=True))
    assert changed["metadata"]["generation"] == 2
    assert changed["status"]["summary"] == "0/1 partitions"


@pytest.mark.parametrize(("characters", "flags"), [(79, by("argocd")), (40, ())], ids=["server side", "client side"])
def test_two_thousand_entries_fit(sandbox: Kubectl, characters: int, flags: tuple[str, ...]) -> None:
    many = [entry(topic=f"{number:0{characters}}") for number in range(MAX_PARTITIONS)]
    sandbox.apply(reassignment(partitions=many), *flags)
    assert partitions(sandbox) == many


def full_status(topics: list[str]) -> Object:
    """A status with as many details as there may be."""
    original, target = (1, 2, 3), (101, 102, 103)
    return PartitionReassignmentStatus(
        observed_generation=1,
        partitions=tuple(
            PartitionDetail(
                topic=topic,
                partition=0,
                state=PartitionState.IN_FLIGHT,
                original_replicas=original,
                current_replicas=original + target,
                target_replicas=target,
                adding_replicas=target,
                removing_replicas=original,
                bytes_copied=10**12,
                bytes_total=10**12,
                reason="Moving",
                message="m" * 200,
            )
            for topic in topics[:MAX_DETAILS]
        ),
    ).wire()


def test_the_largest_resource_with_a_full_status_still_obeys_an_edit(sandbox: Kubectl) -> None:
    """Beyond the API server's limit it drops managedFields in silence, and an entry can no longer be removed."""
    topics = [f"{number:079}" for number in range(MAX_PARTITIONS)]
    sandbox.apply(reassignment(partitions=[entry(topic=topic) for topic in topics]), *by("argocd"))
    sandbox.write_status("kpr", "move", full_status(topics))
    sandbox.apply(reassignment(partitions=[entry(topic=topic) for topic in topics[1:]]), *by("argocd"))
    stored = sandbox.read("kpr", "move")
    assert [item["topic"] for item in stored["spec"]["partitions"]] == topics[1:]
    assert len(stored["status"]["partitions"]) == MAX_DETAILS
    assert stored["metadata"]["managedFields"]
    assert len(json.dumps(stored, separators=(",", ":"))) < ETCD_LIMIT
