"""What the API server makes of the default of status: observedGeneration -1 until the operator writes one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localplatform.controlplane import ApiServer
from reassign.api.common import NEVER_WRITTEN, CustomResource
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import ReassignmentPlan
from tests.api.helm import Helm
from tests.api.kubectl import Kubectl, RefusedError, by, cluster, plan, reassignment

Object = dict[str, Any]
NEVER = {"observedGeneration": -1}
WRITTEN: Object = {"observedGeneration": 1, "summary": "0/1 partitions"}
READY = {
    "type": "Ready",
    "status": "True",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "Succeeded",
    "message": "",
}
KINDS = pytest.mark.parametrize(
    ("manifest", "kind", "model"),
    [
        (reassignment(), "kpr", PartitionReassignment),
        (cluster(), "kcl", KafkaCluster),
        (plan(), "krp", ReassignmentPlan),
    ],
    ids=["PartitionReassignment", "KafkaCluster", "ReassignmentPlan"],
)


@KINDS
def test_a_new_object_was_observed_at_generation_minus_one(
    sandbox: Kubectl, manifest: Object, kind: str, model: type[CustomResource]
) -> None:
    created = sandbox.apply(manifest)
    assert created["status"] == NEVER
    name = manifest["metadata"]["name"]
    read = sandbox.read(kind, name)
    assert read["status"] == NEVER
    parsed: Any = model.parse(read)
    assert parsed.status.observed_generation is None


@KINDS
def test_a_status_in_an_applied_manifest_is_ignored(
    sandbox: Kubectl, manifest: Object, kind: str, model: type[CustomResource]
) -> None:
    name = manifest["metadata"]["name"]
    assert sandbox.apply({**manifest, "status": {"observedGeneration": 7}})["status"] == NEVER
    sandbox.write_status(kind, name, {"observedGeneration": 1})
    sandbox.apply({**manifest, "status": {"observedGeneration": 9}, "metadata": {"name": name, "labels": {"a": "b"}}})
    assert sandbox.read(kind, name)["status"] == {"observedGeneration": 1}


def test_applying_and_replacing_a_manifest_keep_the_status(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.write_status("kpr", "move", WRITTEN)
    sandbox.apply(reassignment(suspend=True))
    sandbox.apply(reassignment(suspend=False), *by("kubectl"), "--force-conflicts")
    current = sandbox.read("kpr", "move")
    current.pop("status")
    replaced = sandbox.json("replace", "-f", "-", input=json.dumps(current))
    assert replaced["status"] == WRITTEN


def wipe_by_patch(kubectl: Kubectl) -> None:
    kubectl.write_status("kpr", "move", {})


def wipe_by_merge(kubectl: Kubectl) -> None:
    kubectl("patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", '{"status": null}')


def wipe_by_replace(kubectl: Kubectl) -> None:
    current = kubectl.read("kpr", "move")
    current.pop("status")
    kubectl("replace", "--subresource=status", "-f", "-", input=json.dumps(current))


def remove_the_generation(kubectl: Kubectl) -> None:
    change = '{"status": {"observedGeneration": null}}'
    kubectl("patch", "kpr", "move", "--subresource=status", "--type=merge", "-p", change)


WIPES = pytest.mark.parametrize("wipe", [wipe_by_patch, wipe_by_merge, wipe_by_replace, remove_the_generation])


@WIPES
def test_a_wiped_status_gets_the_default_again(sandbox: Kubectl, wipe: Callable[[Kubectl], None]) -> None:
    sandbox.apply(reassignment())
    sandbox.write_status("kpr", "move", WRITTEN)
    wipe(sandbox)
    assert sandbox.read("kpr", "move")["status"]["observedGeneration"] == NEVER_WRITTEN


def test_a_status_without_a_generation_reads_as_never_written(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    written = sandbox.write_status("kpr", "move", {"summary": "is rebuilt"})
    assert written["status"] == {"summary": "is rebuilt"} | NEVER


def test_helm_waits_until_the_operator_reports_ready(api: ApiServer, sandbox: Kubectl, tmp_path: Path) -> None:
    """helm reads statuses as kstatus does."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: moves\nversion: 0.1.0\n")
    (chart / "templates" / "move.yaml").write_text(json.dumps(reassignment()))
    helm = Helm(tmp_path, api.kubeconfig)
    install = ("upgrade", "--install", "moves", str(chart), f"--namespace={sandbox.namespace}", "--wait")
    with pytest.raises(RefusedError, match="InProgress"):
        helm(*install, "--timeout=3s")
    sandbox.write_status("kpr", "move", {"observedGeneration": 1, "conditions": [READY]})
    helm(*install, "--timeout=10s")
