"""The adapter to the API server: what it reads and writes, and what it says when it may not or cannot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localplatform.controlplane import ApiServer
from reassign.api.common import FINALIZER
from reassign.api.reassignment_plan import PLAN_LABEL
from reassign.controller.objects.reading import wish
from reassign.core.brake import documents
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.model import manifest_digest
from reassign.errors import ApiServerError, ConflictError, MissingReferenceError, Reason, ReassignError
from reassign.kube.access import missing_rights
from reassign.kube.client import PAGE_OBJECTS, Kind, KubeClient
from reassign.kube.clock import ServerClock
from tests.api.client import with_client
from tests.api.kubectl import Kubectl, RefusedError, entry, plan, reassignment

Object = dict[str, Any]


@pytest.fixture
def namespace(sandbox: Kubectl) -> str:
    return sandbox.namespace


@pytest.fixture
def move(sandbox: Kubectl, kubeconfig: object) -> Object:
    """A PartitionReassignment."""
    return sandbox.apply(reassignment())


def get(obj: Object) -> Object | None:
    meta = obj["metadata"]
    return with_client(lambda kube: kube.get(Kind(obj["kind"]), meta["namespace"], meta["name"]))


def test_an_object_that_is_not_there_is_none(kubeconfig: object) -> None:
    assert with_client(lambda kube: kube.get(Kind.KAFKA_CLUSTER, "default", "missing")) is None


def test_metadata_is_read_without_the_rest(move: Object, namespace: str) -> None:
    name = move["metadata"]["name"]
    found = with_client(lambda kube: kube.metadata(Kind.PARTITION_REASSIGNMENT, namespace, name))
    assert found is not None
    assert found.keys() == {"apiVersion", "kind", "metadata"}
    assert wish(found) == wish(get(move) or {})
    assert with_client(lambda kube: kube.metadata(Kind.PARTITION_REASSIGNMENT, namespace, "missing")) is None


def test_the_time_is_the_api_servers_whatever_our_own_clock_says(kubeconfig: object) -> None:
    ahead = timedelta(minutes=10)

    async def ask(kube: KubeClient) -> timedelta:
        kube._clock = ServerClock(lambda: datetime.now(UTC) + ahead)
        await kube.get(Kind.KAFKA_CLUSTER, "default", "missing")
        return kube.now() - datetime.now(UTC)

    assert abs(with_client(ask)) < timedelta(seconds=30)


def test_objects_are_listed_in_one_namespace_and_in_all(move: Object, namespace: str) -> None:
    def names(where: str | None) -> list[tuple[str, str]]:
        found = with_client(lambda kube: kube.list(Kind.PARTITION_REASSIGNMENT, where))
        return [(obj["kind"], obj["metadata"]["uid"]) for obj in found]

    this = ("PartitionReassignment", move["metadata"]["uid"])
    assert names(namespace) == [this]
    assert this in names(None)
    assert names("elsewhere") == []


def test_a_list_of_several_pages_has_each_object_once(kubeconfig: object, namespace: str) -> None:
    names = [f"move-{number:02}" for number in range(2 * PAGE_OBJECTS + 1)]

    async def make_and_list(kube: KubeClient) -> list[Object]:
        for name in names:
            made = reassignment(name)
            await kube.create(made | {"metadata": made["metadata"] | {"namespace": namespace}})
        return await kube.list(Kind.PARTITION_REASSIGNMENT, namespace)

    assert [obj["metadata"]["name"] for obj in with_client(make_and_list)] == names


def test_our_finalizer_comes_and_goes_and_others_stay(move: Object, sandbox: Kubectl) -> None:
    other = {"metadata": {"finalizers": ["example.com/other"]}}
    move = sandbox.patch("kpr", "move", other)
    held = with_client(lambda kube: kube.add_finalizer(move))
    assert held is not None
    assert held["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    released = with_client(lambda kube: kube.remove_finalizer(held))
    assert released is not None
    assert released["metadata"]["finalizers"] == ["example.com/other"]


def test_a_finalizer_that_is_there_already_is_not_written_again(move: Object) -> None:
    held = with_client(lambda kube: kube.add_finalizer(move))
    assert held is not None
    again = with_client(lambda kube: kube.add_finalizer(held))
    assert again == held == get(move)


def test_taking_the_last_finalizer_of_a_deleted_object_lets_it_go(move: Object, sandbox: Kubectl) -> None:
    with_client(lambda kube: kube.add_finalizer(move))
    sandbox("delete", "kpr", "move", "--wait=false")
    deleted = get(move)
    assert deleted is not None
    with_client(lambda kube: kube.remove_finalizer(deleted))
    assert get(move) is None
    assert with_client(lambda kube: kube.remove_finalizer(deleted)) is None
    assert with_client(lambda kube: kube.write_status(deleted, {"summary": "too late"})) is None


def test_a_status_is_replaced_as_a_whole(move: Object) -> None:
    first = with_client(lambda kube: kube.write_status(move, {"summary": "one", "adding": 3}))
    assert first is not None
    assert first["status"]["adding"] == 3
    second = with_client(lambda kube: kube.write_status(first, {"summary": "two"}))
    assert second is not None
    assert second["status"]["summary"] == "two"
    assert "adding" not in second["status"]
    assert second["metadata"]["generation"] == move["metadata"]["generation"]


def test_a_status_judged_on_an_older_version_is_a_conflict(move: Object, sandbox: Kubectl) -> None:
    sandbox.patch("kpr", "move", {"spec": {"suspend": True}})
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.write_status(move, {"summary": "stale"}))
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.add_finalizer(move))
    now = get(move)
    assert now is not None
    assert "summary" not in now.get("status", {})
    assert "finalizers" not in now["metadata"]


def test_a_status_is_not_written_to_a_recreated_object(move: Object, sandbox: Kubectl) -> None:
    sandbox("delete", "kpr", "move")
    sandbox.apply(reassignment())
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.write_status(move, {"summary": "of another"}))


def conditions(character: str) -> list[dict[str, str]]:
    """As many as a status may have, with the longest message; outside of ASCII a request has six bytes for each."""
    same = {"status": "True", "reason": "R", "message": character * 32000, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return [{"type": f"C{n}", **same} for n in range(32)]


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_a_status_beyond_the_storages_limit_is_too_large(kubeconfig: object, sandbox: Kubectl) -> None:
    large = sandbox.apply(reassignment(partitions=[entry(topic=f"{n:079}") for n in range(1700)]))
    details = [{"topic": f"{n:0249}", "partition": 0, "state": "Pending", "message": "m" * 1024} for n in range(100)]
    assert_too_large(large, {"conditions": conditions("m"), "partitions": details})


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_a_status_beyond_the_limit_of_a_request_is_too_large(move: Object) -> None:
    assert_too_large(move, {"conditions": conditions("é")})


def assert_too_large(obj: Object, status: Object) -> None:
    with pytest.raises(ReassignError) as caught:
        with_client(lambda kube: kube.write_status(obj, status))
    assert caught.value.reason == Reason.RESOURCE_TOO_LARGE, caught.value.message


def test_a_status_outside_the_schema_is_refused_with_the_field_named(move: Object) -> None:
    with pytest.raises(ReassignError, match=r"status\.summary") as caught:
        with_client(lambda kube: kube.write_status(move, {"summary": 3}))
    assert caught.value.reason == Reason.REQUEST_FAILED


def test_a_secret_is_read_decoded(kubeconfig: object, sandbox: Kubectl, namespace: str) -> None:
    sandbox("create", "secret", "generic", "user", "--from-literal=password=s e c")
    assert with_client(lambda kube: kube.secret(namespace, "user")) == {"password": b"s e c"}


def test_a_missing_secret_is_named(kubeconfig: object) -> None:
    with pytest.raises(MissingReferenceError, match="no Secret missing in namespace default") as caught:
        with_client(lambda kube: kube.secret("default", "missing"))
    assert caught.value.reason == Reason.SECRET_NOT_FOUND


def test_a_config_map_is_made_once_and_for_good(kubeconfig: object, sandbox: Kubectl, namespace: str) -> None:
    def make(text: str) -> None:
        with_client(lambda kube: kube.create_config_map(namespace, "kept", {"a.json": text}, {"of": "main"}))

    make("{}")
    found = sandbox.json("get", "configmap", "kept")
    assert (found["data"], found["metadata"]["labels"]) == ({"a.json": "{}"}, {"of": "main"})
    with pytest.raises(ConflictError):
        make("[]")
    with pytest.raises(RefusedError, match="immutable"):
        sandbox.patch("configmap", "kept", {"data": {"a.json": "[]"}})


def test_the_largest_part_of_what_the_brake_keeps_fits_into_a_config_map(kubeconfig: object, namespace: str) -> None:
    moves = {TopicPartition("t" * 249, number): (1, 2, 3) for number in range(5000)}
    largest = max(documents(moves), key=len)
    assert len(largest) > 990_000
    with_client(lambda kube: kube.create_config_map(namespace, "large", {"reassignment.json": largest}, {}))


def test_what_is_not_allowed_names_verb_and_resource(kubeconfig: Callable[[str], None]) -> None:
    kubeconfig("system:kube-scheduler")
    with pytest.raises(ReassignError, match=r"to GET .*secrets/user is not allowed") as caught:
        with_client(lambda kube: kube.secret("default", "user"))
    assert caught.value.reason == Reason.NOT_AUTHORIZED


def test_an_api_server_that_is_not_there_is_unavailable(
    kubeconfig: object, api: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(api.kubeconfig.read_text().replace(api.url, "https://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", str(elsewhere))
    with pytest.raises(ApiServerError) as caught:
        with_client(lambda kube: kube.secret("default", "user"))
    assert caught.value.reason == Reason.API_SERVER_UNAVAILABLE


def test_the_administrator_misses_no_right(kubeconfig: object) -> None:
    assert with_client(lambda kube: missing_rights(kube, (), ("kafka", "operator"))) == []


def test_each_missing_right_is_a_sentence(kubeconfig: Callable[[str], None]) -> None:
    kubeconfig("system:kube-proxy")
    missing = with_client(lambda kube: missing_rights(kube, ("team-a",), ("kafka", "operator")))
    assert "the operator may not patch partitionreassignments/status.kafka.reassign.dev in namespace team-a" in missing
    assert "the operator may not get secrets in namespace team-a" in missing
    assert "the operator may not create configmaps in namespace team-a" in missing
    assert "the operator may not update leases.coordination.k8s.io in namespace kafka" in missing
    assert with_client(lambda kube: missing_rights(kube, ("team-a",), None)) == [m for m in missing if "lease" not in m]


def wave(namespace: str, **spec: Any) -> Object:
    """A PartitionReassignment as a plan makes it."""
    made = reassignment(**{"suspend": True} | spec)
    return made | {"metadata": made["metadata"] | {"namespace": namespace, "labels": {PLAN_LABEL: "drain"}}}


def test_an_object_is_made_once(namespace: str, kubeconfig: object) -> None:
    made = with_client(lambda kube: kube.create(wave(namespace)))
    assert made == get(made)
    assert made["metadata"]["labels"] == {PLAN_LABEL: "drain"}
    with pytest.raises(ConflictError, match="already exists"):
        with_client(lambda kube: kube.create(wave(namespace)))


def test_a_wave_is_resumed_and_suspended_and_nothing_else_changes(namespace: str, kubeconfig: object) -> None:
    made = with_client(lambda kube: kube.create(wave(namespace)))
    released = with_client(lambda kube: kube.suspend(made, False))
    assert released is not None
    assert released["spec"] == made["spec"] | {"suspend": False}
    held = with_client(lambda kube: kube.suspend(released, True))
    assert held is not None
    assert held["spec"] == made["spec"]
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.suspend(made, False))


def test_partitions_are_taken_out_of_a_wave_and_nothing_else_changes(namespace: str, kubeconfig: object) -> None:
    three = [entry(partition=number) for number in range(3)]
    made = with_client(lambda kube: kube.create(wave(namespace, partitions=three)))
    left = with_client(lambda kube: kube.remove_entries(made, {("orders", 1)}))
    assert left is not None
    kept = [made["spec"]["partitions"][number] for number in (0, 2)]
    assert left["spec"] == made["spec"] | {"partitions": kept}
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.remove_entries(made, {("orders", 0)}))


def test_a_wave_keeps_its_digest_when_defaults_are_filled_in(namespace: str, kubeconfig: object) -> None:
    planned = wave(namespace, throttle={"interBroker": "50Mi"}, partitions=[entry(expectedReplicas=[0, 1, 2])])
    made = with_client(lambda kube: kube.create(planned))
    assert made["spec"] != planned["spec"]
    assert manifest_digest(made) == manifest_digest(planned)
    released = with_client(lambda kube: kube.suspend(made, False))
    assert released is not None
    assert manifest_digest(released) == manifest_digest(planned)


def test_what_is_deleted_is_gone_or_waits_for_its_finalizers(namespace: str, kubeconfig: object) -> None:
    made = with_client(lambda kube: kube.create(wave(namespace)))
    held = with_client(lambda kube: kube.add_finalizer(made))
    assert held is not None
    with pytest.raises(ConflictError):
        with_client(lambda kube: kube.delete(made))
    deleted = with_client(lambda kube: kube.delete(held))
    assert deleted is not None
    assert deleted["metadata"]["deletionTimestamp"]
    assert with_client(lambda kube: kube.remove_finalizer(deleted)) is not None
    assert get(made) is None
    made = with_client(lambda kube: kube.create(wave(namespace)))
    assert with_client(lambda kube: kube.delete(made)) is None
    assert get(made) is None
    assert with_client(lambda kube: kube.delete(made)) is None


def test_plans_are_read_and_get_a_finalizer_and_a_status(sandbox: Kubectl, namespace: str, kubeconfig: object) -> None:
    applied = sandbox.apply(plan())
    (found,) = with_client(lambda kube: kube.list(Kind.REASSIGNMENT_PLAN, namespace))
    assert found["metadata"]["uid"] == applied["metadata"]["uid"]
    held = with_client(lambda kube: kube.add_finalizer(found))
    assert held is not None
    written = with_client(lambda kube: kube.write_status(held, {"observedGeneration": 1, "summary": "0/2 waves"}))
    assert written is not None
    assert written["status"] == {"observedGeneration": 1, "summary": "0/2 waves"}
