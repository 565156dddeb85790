"""The page about a PartitionReassignment from a real API server: what it reads, with which rights, and its errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

from localplatform.controlplane import ApiServer
from reassign.kube.client import KubeClient
from reassign.kube.events import EventRecorder
from tests.api.kubectl import Kubectl, Object, cluster, reassignment
from tests.unit.cli import Ran, error_of, run
from tests.unit.reports import UID, made

Report = Callable[..., Ran]
MARKUP = "<b>broker 4</b> is fenced"


@pytest.fixture
def report(api: ApiServer, sandbox: Kubectl, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    return lambda *words: run("report", *words, "-n", sandbox.namespace)


@pytest.fixture
def march(api: ApiServer, sandbox: Kubectl, report: Report) -> Object:
    """A PartitionReassignment of 300 partitions with its records, its events, and those of its KafkaCluster."""
    sources = made(300)
    named = {"apiVersion": "kafka.reassign.dev/v1alpha1", "metadata": {"name": "march"}}
    sandbox.apply({"kind": "PartitionReassignment", "spec": sources.obj["spec"]} | named, "--server-side")
    stored = sandbox.write_status("kpr", "march", sources.obj["status"])
    uid = stored["metadata"]["uid"]
    for record in json.loads(json.dumps(sources.records).replace(UID, uid)):
        meta = {key: record["metadata"][key] for key in ("name", "ownerReferences")}
        sandbox.apply(
            {"apiVersion": named["apiVersion"], "kind": record["kind"], "metadata": meta, "spec": record["spec"]}
        )
    main = sandbox.apply(cluster())
    asyncio.run(_record([(stored, MARKUP), (stored, MARKUP), (main, "no broker answers")]))
    return stored


async def _record(notes: list[tuple[Object, str]]) -> None:
    async with KubeClient() as kube:
        recorder = EventRecorder(kube, "pod-1")
        for obj, note in notes:
            await recorder.record(obj, "Warning", "Noted", note, "Reconcile")


def as_user(api: ApiServer, sandbox: Kubectl, folder: Path, *resources: str) -> Path:
    """The kubeconfig of a ServiceAccount that may read these resources in the namespace."""
    sandbox("create", "serviceaccount", "reader")
    sandbox("create", "role", "reader", "--verb=get,list", *(f"--resource={resource}" for resource in resources))
    sandbox("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={sandbox.namespace}:reader")
    config = json.loads(api.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": sandbox("create", "token", "reader").strip()}
    file = folder / "reader.kubeconfig"
    file.write_text(json.dumps(config))
    return file


def test_the_page_has_the_partitions_events_and_throttle_of_the_objects(march: Object, report: Report) -> None:
    ran = report("kpr/march")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("<!doctype html>")
    assert ran.out.count('<rect class="Completed"') == 300
    assert ran.out.count(escape(MARKUP)) == 1
    assert MARKUP not in ran.out
    assert "no broker answers" in ran.out
    assert "<dt>Asked for by this resource</dt><dd>20.0\u00a0MiB/s between brokers</dd>" in ran.out


def test_a_wait_is_known_where_nothing_was_edited_after_the_start(
    sandbox: Kubectl, march: Object, report: Report
) -> None:
    assert "How long partitions waited is not known" in report("march").out
    sandbox.write_status("kpr", "march", march["status"] | {"startTime": "2999-01-01T00:00:00Z"})
    assert "How long partitions waited is not known" not in report("march").out


def test_what_the_user_may_not_read_is_named_and_the_rest_is_shown(
    api: ApiServer, sandbox: Kubectl, march: Object, report: Report, tmp_path: Path
) -> None:
    reader = as_user(api, sandbox, tmp_path, "partitionreassignments.kafka.reassign.dev")
    ran = report("march", "--kubeconfig", reader)
    assert ran.code == 0
    notes = [
        "times of partitions that the status does not describe are not shown: you may not read them",
        "events are not shown: you may not read them",
        "limits and throttle of the KafkaCluster are not shown: you may not read them",
        "the times of 200 partitions are not recorded",
    ]
    assert ran.err == "".join(f"note: {note}\n" for note in notes)
    assert all(f"<li>{note}</li>" in ran.out for note in notes)
    assert ran.out.count('<rect class="Completed"') == 100


def test_the_role_view_has_events(kubectl: Kubectl) -> None:
    rules = kubectl.json("get", "clusterrole", "system:aggregate-to-view")["rules"]
    assert any("events" in rule["resources"] and "" in rule["apiGroups"] for rule in rules)


def test_a_name_that_is_not_there_names_those_that_are(sandbox: Kubectl, report: Report) -> None:
    sandbox.apply(reassignment("march"))
    said = error_of(report("april"), 2)
    assert "there is no PartitionReassignment april" in said
    assert "there are: march" in said


def test_without_rights_on_the_resource_there_is_no_page(
    api: ApiServer, sandbox: Kubectl, report: Report, tmp_path: Path
) -> None:
    reader = as_user(api, sandbox, tmp_path, "configmaps")
    assert 'cannot get resource "partitionreassignments"' in error_of(report("march", "--kubeconfig", reader), 3)
