"""The verbs of the command line against a real API server: what they write, what they refuse, and what they say."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from localplatform.controlplane import ApiServer
from localplatform.processes import wait_until
from reassign.api.common import FINALIZER, TRACKED_BY_ARGO_CD
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL
from reassign.cli import watching
from reassign.errors import ApiServerError
from reassign.kube.client import KubeClient
from tests.api.kubectl import Kubectl, Object, cluster, decommission, entry, plan, policy, reassignment
from tests.api.statuses import (
    CLUSTER_STATUS,
    DECOMMISSION_STATUS,
    DIGEST,
    PLAN_STATUS,
    POLICY_STATUS,
    READY,
    REASSIGNMENT_STATUS,
)
from tests.unit.cli import Ran, error_of, run

OPERATOR = Path(__file__).parents[2] / "operator"
OTHER_DIGEST = f"sha256:{'0b' * 32}"
Verb = Callable[..., Ran]


@pytest.fixture
def verb(api: ApiServer, sandbox: Kubectl, monkeypatch: pytest.MonkeyPatch) -> Verb:
    """A command in the namespace of the test."""
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))

    def run_verb(*arguments: object, stdin: str | None = None) -> Ran:
        return run(*arguments, "-n", sandbox.namespace, stdin=stdin)

    return run_verb


def condition(type: str, status: str = "True", reason: str = "Completed", message: str = "done") -> Object:
    return READY | {"type": type, "status": status, "reason": reason, "message": message}


ENDED: Object = REASSIGNMENT_STATUS | {
    "conditions": [condition("Ready"), condition("Succeeded")],
    "summary": "1/1 partitions, 100 %",
}


def moving(sandbox: Kubectl, name: str = "move", **spec: Any) -> Object:
    """A PartitionReassignment that moves, held by the operator's finalizer."""
    sandbox.apply(reassignment(name, **spec) | {"metadata": {"name": name, "finalizers": [FINALIZER]}})
    return sandbox.write_status("kpr", name, REASSIGNMENT_STATUS)


def planned(sandbox: Kubectl, name: str = "drain", **status: Any) -> Object:
    """A ReassignmentPlan that awaits its approval."""
    sandbox.apply(plan(name))
    return sandbox.write_status("krp", name, PLAN_STATUS | {"staleDigest": OTHER_DIGEST} | status)


def wave(sandbox: Kubectl, of: Object, name: str = "drain-1") -> None:
    labels = {PLAN_LABEL: of["metadata"]["name"], PLAN_UID_LABEL: of["metadata"]["uid"]}
    sandbox.apply(reassignment(name, suspend=True) | {"metadata": {"name": name, "labels": labels}})


def retiring(sandbox: Kubectl, name: str = "retire-5", **status: Any) -> Object:
    """A BrokerDecommission whose plan awaits its approval."""
    sandbox.apply(decommission(name))
    return sandbox.write_status("kbd", name, DECOMMISSION_STATUS | status)


def standing(sandbox: Kubectl, name: str = "standing", **status: Any) -> Object:
    """A ReassignmentPolicy whose plan awaits its approval."""
    sandbox.apply(policy(name))
    return sandbox.write_status("krpol", name, POLICY_STATUS | status)


def made_for(sandbox: Kubectl, owner: Object, name: str) -> None:
    """A plan that was made for a BrokerDecommission or a ReassignmentPolicy, and waits."""
    ref = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    ref |= {key: owner["metadata"][key] for key in ("name", "uid")}
    sandbox.apply(plan(name) | {"metadata": {"name": name, "ownerReferences": [ref]}})
    sandbox.write_status("krp", name, PLAN_STATUS | {"staleDigest": OTHER_DIGEST})


def spec_of(sandbox: Kubectl, kind: str, name: str) -> Object:
    spec: Object = sandbox.read(kind, name)["spec"]
    return spec


# --- list ---


def test_list_shows_reassignments_of_a_namespace_and_of_one_cluster(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox)
    sandbox.apply(reassignment("other", clusterRef={"name": "second"}))
    rows = [line.split() for line in verb("list").out.splitlines()]
    assert [row[:2] for row in rows] == [["NAME", "CLUSTER"], ["move", "main"], ["other", "second"]]
    assert verb("list", "--cluster", "second").out.splitlines()[1].split()[0] == "other"
    wide = verb("list", "-o", "wide", "--cluster", "main").out
    assert all(text in wide for text in ("MESSAGE", "8.0 GiB/s", "1 partition in flight"))
    everywhere = run("list", "-A").out.splitlines()
    assert [sandbox.namespace, "move", "main"] in [line.split()[:3] for line in everywhere]


def test_list_writes_the_objects_as_kubectl_has_them(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox)
    items = sandbox.json("get", "kpr")["items"]
    assert json.loads(verb("list", "-o", "json").out)["items"] == items
    assert yaml.safe_load(verb("list", "-o", "yaml").out)["items"] == items


def test_list_says_that_there_is_nothing_and_where(sandbox: Kubectl, verb: Verb) -> None:
    none = "there are no PartitionReassignments, BrokerDecommissions or ReassignmentPolicies"
    assert verb("list") == (0, "", f"{none} in namespace {sandbox.namespace}\n")


def test_list_shows_decommissions_in_a_table_of_their_own(sandbox: Kubectl, verb: Verb) -> None:
    retiring(sandbox)
    moving(sandbox)
    moves, brokers = verb("list").out.split("\n\n")
    assert "retire-5" not in moves
    assert brokers.splitlines()[1].split()[:6] == ["retire-5", "main", "False", "WaveInFlight", "5", "312"]
    kinds = [item["kind"] for item in json.loads(verb("list", "-o", "json").out)["items"]]
    assert sorted(kinds) == ["BrokerDecommission", "PartitionReassignment"]


def test_list_shows_policies_in_a_table_of_their_own(sandbox: Kubectl, verb: Verb) -> None:
    standing(sandbox)
    moving(sandbox)
    moves, policies = verb("list").out.split("\n\n")
    assert "standing" not in moves
    row = ["standing", "main", "True", "AwaitingApproval", "standing-lost-1"]
    assert policies.splitlines()[1].split()[:5] == row
    assert verb("list", "--cluster", "second").out == ""
    items = json.loads(verb("list", "-o", "json").out)["items"]
    assert [item for item in items if item["kind"] == "ReassignmentPolicy"] == sandbox.json("get", "krpol")["items"]


# --- explain ---


def test_a_policy_is_explained_as_the_api_server_has_it(sandbox: Kubectl, verb: Verb) -> None:
    standing(sandbox)
    for name in ("standing", "krpol/standing"):
        ran = verb("explain", name)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("krpol/standing of the KafkaCluster main; its status was written ")
        assert "lost (brokerLost): Active" in ran.out
    known = json.loads(verb("explain", "standing", "-o", "json").out)
    assert known["approve"] == f"kubectl kafka-reassign approve krpol/standing -n {sandbox.namespace}"
    sandbox.apply(policy("new"))
    assert "the operator has not seen it" in verb("explain", "new").out
    said = error_of(verb("explain", "stand"), 2)
    assert f"there is no ReassignmentPolicy stand in namespace {sandbox.namespace}; there are: new, standing" in said


# --- decommission ---


def test_a_decommission_is_made_once_and_checked_by_the_api_server(sandbox: Kubectl, verb: Verb) -> None:
    make = ("decommission", 6, 5, "--cluster", "main")
    assert "there is no KafkaCluster main in namespace" in error_of(verb(*make), 2)
    sandbox.apply(cluster())
    assert verb(*make, "--dry-run").out.endswith("(dry run)\n")
    assert sandbox("get", "kbd", "-o", "name") == ""
    ran = verb(*make, "--unregister")
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "kbd/decommission-5-6 is made: brokers 5 and 6 of the KafkaCluster main",
    )
    stored = sandbox.read("kbd", "decommission-5-6")
    assert (stored["spec"]["brokers"], stored["spec"]["unregister"]) == ([5, 6], "WhenDown")
    assert {m["manager"] for m in stored["metadata"]["managedFields"]} == {"kubectl-kafka-reassign"}
    for again in (make, (*make, "--dry-run")):
        assert "there is kbd/decommission-5-6 already" in error_of(verb(*again), 1)


def test_a_decommission_written_as_a_manifest_can_be_applied(sandbox: Kubectl, verb: Verb) -> None:
    ran = verb("decommission", 5, "--cluster", "main", "-o", "yaml")
    sandbox("apply", "-f", "-", input=ran.out)
    assert spec_of(sandbox, "kbd", "decommission-5")["brokers"] == [5]


# --- approve ---


def test_a_decommission_is_approved_suspended_and_cancelled(sandbox: Kubectl, verb: Verb) -> None:
    retiring(sandbox)
    ran = verb("approve", "retire-5", "--yes")
    assert ran.out.splitlines()[0] == "kbd/retire-5: broker 5, with 312 replicas"
    assert ran.out.endswith(f"kbd/retire-5 approved, {DIGEST}\n")
    assert spec_of(sandbox, "kbd", "retire-5")["approvedDigest"] == DIGEST
    assert verb("approve", "retire-5").out == "kbd/retire-5 is approved already\n"
    assert verb("suspend", "kbd/retire-5").code == 0
    assert spec_of(sandbox, "kbd", "retire-5")["suspend"] is True
    assert verb("resume", "retire-5").code == 0
    assert verb("cancel", "retire-5", "--yes").out.endswith("kbd/retire-5 is cancelled\n")
    assert sandbox("get", "kbd", "-o", "name") == ""


def test_a_plan_of_a_decommission_is_left_to_it(sandbox: Kubectl, verb: Verb) -> None:
    made_for(sandbox, retiring(sandbox), "retire-5-1")
    assert "approve the BrokerDecommission retire-5" in error_of(verb("approve", "retire-5-1"), 2)
    assert "suspend kbd/retire-5" in error_of(verb("suspend", "retire-5-1"), 2)
    assert "cancel kbd/retire-5" in error_of(verb("cancel", "retire-5-1", "--yes"), 2)
    assert "approvedDigest" not in spec_of(sandbox, "krp", "retire-5-1")


def test_a_policy_is_approved_with_its_plan_shown(sandbox: Kubectl, verb: Verb) -> None:
    made_for(sandbox, standing(sandbox), "standing-lost-1")
    ran = verb("approve", "standing", stdin="n\n")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "krpol/standing: the trigger lost, for broker 5")
    assert "approvedDigest" not in spec_of(sandbox, "krpol", "standing")
    assert f"is {DIGEST}, not {OTHER_DIGEST}" in error_of(verb("approve", "standing", "--digest", OTHER_DIGEST), 1)
    assert verb("approve", "standing", "--yes", "--dry-run").out.endswith("(dry run)\n")
    assert "approvedDigest" not in spec_of(sandbox, "krpol", "standing")
    assert verb("approve", "krpol/standing", "--yes").out.endswith(f"krpol/standing approved, {DIGEST}\n")
    stored = sandbox.read("krpol", "standing")
    assert stored["spec"]["approvedDigest"] == DIGEST
    (mine,) = [m for m in stored["metadata"]["managedFields"] if m["manager"] == "kubectl-kafka-reassign"]
    assert mine["fieldsV1"] == {"f:spec": {"f:approvedDigest": {}}}


def test_a_policy_without_a_plan_that_waits_is_not_approved(sandbox: Kubectl, verb: Verb) -> None:
    sandbox.apply(policy("new"))
    assert "nothing of krpol/new waits for approval" in error_of(verb("approve", "new"), 1)
    standing(sandbox)
    sandbox.patch("krpol", "standing", {"spec": {"settleSeconds": 900}})
    said = error_of(verb("approve", "standing"), 1)
    assert "the status of krpol/standing is about an earlier spec" in said
    assert "approvedDigest" not in spec_of(sandbox, "krpol", "standing")


def test_a_plan_of_a_policy_is_left_to_it(sandbox: Kubectl, verb: Verb) -> None:
    made_for(sandbox, standing(sandbox), "standing-lost-1")
    assert "approve the ReassignmentPolicy standing" in error_of(verb("approve", "standing-lost-1"), 2)
    assert "suspend krpol/standing" in error_of(verb("suspend", "standing-lost-1"), 2)
    assert "resume krpol/standing" in error_of(verb("resume", "standing-lost-1"), 2)
    assert "approvedDigest" not in spec_of(sandbox, "krp", "standing-lost-1")


def test_an_approval_in_a_file_leaves_the_api_server_alone(sandbox: Kubectl, verb: Verb, tmp_path: Path) -> None:
    planned(sandbox)
    before = sandbox.read("krp", "drain")["metadata"]["resourceVersion"]
    file = tmp_path / "drain.yaml"
    file.write_text(f"# drains\n{yaml.safe_dump(plan())}")
    assert verb("approve", "drain", "--file", file, "--yes").code == 0
    assert sandbox.read("krp", "drain")["metadata"]["resourceVersion"] == before
    sandbox("apply", "-f", str(file))
    assert spec_of(sandbox, "krp", "drain")["approvedDigest"] == DIGEST


def test_approve_shows_the_plan_and_writes_its_digest_when_confirmed(sandbox: Kubectl, verb: Verb) -> None:
    planned(sandbox)
    ran = verb("approve", "drain", stdin="n\n")
    assert (ran.code, "nothing was changed" in ran.err) == (1, True)
    assert "approvedDigest" not in spec_of(sandbox, "krp", "drain")
    ran = verb("approve", "drain", stdin="y\n")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "krp/drain: 1 wave, 200 partitions, 210 new replicas, 1.0 PiB"
    assert "not reached, as observed: broker 5 keeps 1 replica; the nearest: all but that one are moved" in ran.out
    assert ran.out.endswith(f"krp/drain approved, {DIGEST}\n")
    stored = sandbox.read("krp", "drain")
    assert stored["spec"]["approvedDigest"] == DIGEST
    (mine,) = [m for m in stored["metadata"]["managedFields"] if m["manager"] == "kubectl-kafka-reassign"]
    assert mine["fieldsV1"] == {"f:spec": {"f:approvedDigest": {}}}
    assert verb("approve", "drain").out == "krp/drain is approved already\n"


def test_approve_refuses_a_digest_that_is_not_the_plans(sandbox: Kubectl, verb: Verb) -> None:
    planned(sandbox)
    said = error_of(verb("approve", "drain", "--digest", OTHER_DIGEST), 1)
    assert f"is {DIGEST}, not {OTHER_DIGEST}" in said
    assert "approvedDigest" not in spec_of(sandbox, "krp", "drain")
    assert verb("approve", "drain", "--digest", DIGEST).code == 0
    assert spec_of(sandbox, "krp", "drain")["approvedDigest"] == DIGEST


def test_a_plan_made_anew_while_it_was_read_is_not_approved(
    sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(sandbox)
    anew = {"digest": OTHER_DIGEST, "staleDigest": DIGEST}
    monkeypatch.setattr("reassign.cli.output.confirm", lambda *_: planned(sandbox, **anew))
    ran = verb("approve", "drain")
    assert ran.code == 1
    assert f"is {OTHER_DIGEST}, not {DIGEST}" in ran.err
    assert "approvedDigest" not in spec_of(sandbox, "krp", "drain")


def test_a_status_written_while_a_plan_was_read_does_no_harm(
    sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(sandbox)
    monkeypatch.setattr("reassign.cli.output.confirm", lambda *_: planned(sandbox, summary="another"))
    assert verb("approve", "drain").code == 0
    assert spec_of(sandbox, "krp", "drain")["approvedDigest"] == DIGEST


def test_what_cannot_be_approved_says_why(sandbox: Kubectl, verb: Verb) -> None:
    sandbox.apply(plan("new"))
    assert "has no plan for its spec yet" in error_of(verb("approve", "new"), 1)
    planned(sandbox, staleDigest=DIGEST)
    assert "krp/drain is stale: copy the digest" in error_of(verb("approve", "drain"), 1)
    made = sandbox.read("krp", "drain")
    wave(sandbox, made)
    assert "approve krp/drain, the plan" in error_of(verb("approve", "drain-1"), 2)
    sandbox.apply(reassignment("single", suspend=True))
    assert "kpr/single has no approval of its own; resume kpr/single" in error_of(verb("approve", "single"), 2)
    sandbox.apply(plan("free", approval="NotRequired"))
    assert verb("approve", "free").out == "krp/free needs no approval: spec.approval is NotRequired\n"


def test_a_dry_run_is_checked_by_the_api_server_and_stores_nothing(sandbox: Kubectl, verb: Verb) -> None:
    planned(sandbox)
    moving(sandbox)
    sandbox.apply(cluster())
    commands = {
        ("approve", "drain"): f"krp/drain approved, {DIGEST} (dry run)",
        ("suspend", "move"): "kpr/move suspended; moves in flight continue (dry run)",
        ("brake", "on", "main"): "kcl/main set to Pause: nothing new starts; moves in flight continue (dry run)",
        ("cancel", "move"): "kpr/move is cancelled (dry run)",
    }
    objects = (("krp", "drain"), ("kpr", "move"), ("kcl", "main"))
    before = [sandbox.read(*each)["metadata"]["resourceVersion"] for each in objects]
    for command, said in commands.items():
        ran = verb(*command, "--dry-run")
        assert (ran.code, ran.out.splitlines()[-1]) == (0, said)
    assert [sandbox.read(*each)["metadata"]["resourceVersion"] for each in objects] == before


# --- suspend and resume ---


def test_several_are_suspended_and_resumed_by_name(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox)
    planned(sandbox)
    assert verb("suspend", "move", "krp/drain").out == (
        "kpr/move suspended; moves in flight continue\nkrp/drain suspended; moves in flight continue\n"
    )
    assert all(spec_of(sandbox, kind, name)["suspend"] for kind, name in (("kpr", "move"), ("krp", "drain")))
    assert verb("suspend", "move").out == "kpr/move is suspended already\n"
    assert verb("resume", "move", "drain").out == "kpr/move resumed\nkrp/drain resumed\n"
    assert not any(spec_of(sandbox, kind, name)["suspend"] for kind, name in (("kpr", "move"), ("krp", "drain")))


def test_a_policy_is_suspended_and_resumed_and_not_cancelled(sandbox: Kubectl, verb: Verb) -> None:
    made_for(sandbox, standing(sandbox), "standing-lost-1")
    assert verb("suspend", "standing").out == "krpol/standing suspended; moves in flight continue\n"
    assert spec_of(sandbox, "krpol", "standing")["suspend"] is True
    assert verb("suspend", "krpol/standing").out == "krpol/standing is suspended already\n"
    assert verb("resume", "standing").out == "krpol/standing resumed\n"
    assert spec_of(sandbox, "krpol", "standing")["suspend"] is False
    said = error_of(verb("cancel", "standing", "--yes"), 2)
    assert "stays in force until you suspend or delete it; suspend krpol/standing" in said
    assert sandbox("get", "krpol", "-o", "name").splitlines() == ["reassignmentpolicy.kafka.reassign.dev/standing"]
    assert verb("cancel", "standing-lost-1", "--yes").out.endswith("krp/standing-lost-1 is cancelled\n")
    assert sandbox("get", "krp", "-o", "name") == ""


def test_a_wave_is_held_by_its_plan_and_not_by_hand(sandbox: Kubectl, verb: Verb) -> None:
    made = planned(sandbox)
    wave(sandbox, made)
    assert "kpr/drain-1 is a wave of krp/drain; resume krp/drain" in error_of(verb("resume", "drain-1"), 2)
    assert spec_of(sandbox, "kpr", "drain-1")["suspend"] is True
    sandbox.delete("krp", "drain")
    assert verb("resume", "drain-1").code == 0


def test_one_name_for_two_objects_needs_its_type(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox, "same")
    planned(sandbox, "same")
    assert "there are kpr/same and krp/same; name one of them" in error_of(verb("suspend", "same"), 2)
    assert verb("suspend", "krp/same").code == 0
    assert "suspend" not in spec_of(sandbox, "kpr", "same") or not spec_of(sandbox, "kpr", "same")["suspend"]


def test_a_name_that_is_not_there_names_those_that_are(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox)
    planned(sandbox)
    said = error_of(verb("suspend", "mov"), 2)
    assert (
        "there is no PartitionReassignment, ReassignmentPlan, BrokerDecommission or ReassignmentPolicy mov in namespace"
        in said
    )
    assert "there are: move, drain" in said
    assert "there is no ReassignmentPlan move" in error_of(verb("resume", "krp/move"), 2)
    sandbox.apply(cluster())
    assert "there are: main" in error_of(verb("brake", "on", "man"), 2)
    assert "there are: main" in error_of(verb("top", "--cluster", "man"), 2)


def test_a_type_without_verbs_is_a_usage_error(verb: Verb) -> None:
    ran = verb("suspend", "pods/x")
    assert (ran.code, "'pods' is no type" in ran.err) == (2, True)


def test_argo_cd_is_named_where_it_would_set_a_change_back(sandbox: Kubectl, verb: Verb) -> None:
    sandbox.apply(reassignment() | {"metadata": {"name": "move", "annotations": {TRACKED_BY_ARGO_CD: "app:x"}}})
    assert verb("suspend", "move").err == "note: Argo CD sets kpr/move to what Git has; commit the change too\n"


# --- brake ---


def test_the_brake_is_set_harder_and_taken_off(sandbox: Kubectl, verb: Verb) -> None:
    sandbox.apply(cluster())
    sandbox.write_status("kcl", "main", CLUSTER_STATUS)

    def execution() -> str:
        return str(spec_of(sandbox, "kcl", "main")["execution"])

    assert verb("brake", "on", "main").out == "kcl/main set to Pause: nothing new starts; moves in flight continue\n"
    assert execution() == "Pause"
    ran = verb("brake", "on", "main", "--cancel", "all", stdin="n\n")
    assert (ran.code, execution()) == (1, "Pause")
    assert "in flight: 4 partitions, and 9 of other clients" in ran.out
    assert verb("brake", "on", "main", "--cancel", "ours", "--yes").code == 0
    assert execution() == "CancelOurs"
    assert "kcl/main is CancelOurs" in verb("brake", "on", "main").out
    assert execution() == "CancelOurs"
    assert verb("brake", "off", "main").out == "kcl/main set to Run: what is declared starts again\n"
    assert execution() == "Run"
    assert verb("brake", "off", "main", "--cancel", "ours").code == 2


# --- cancel ---


def test_cancel_says_what_it_does_asks_and_deletes(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox)
    ran = verb("cancel", "move", stdin="")
    assert (ran.code, ran.out) == (1, "kpr/move: of 1 partition, 1 in flight go back, 0 completed stay\n")
    assert "deletionTimestamp" not in sandbox.read("kpr", "move")["metadata"]
    assert verb("cancel", "move", stdin="y\n").out.endswith("kpr/move is cancelled\n")
    assert "deletionTimestamp" in sandbox.read("kpr", "move")["metadata"]
    assert verb("cancel", "move", "--yes") == (1, "kpr/move is being cancelled already\n", "")


def test_cancel_by_topic_leaves_other_topics_and_what_has_ended(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox, "both", partitions=[entry(), entry("other")])
    moving(sandbox, "alone", partitions=[entry("other")])
    moving(sandbox, "ended")
    sandbox.write_status("kpr", "ended", ENDED)
    ran = verb("cancel", "--topic", "orders", "--yes")
    assert ran.out.splitlines() == [
        "kpr/both: of 2 partitions, 1 in flight go back, 0 completed stay; also of 1 other topic",
        "kpr/both is cancelled",
    ]
    assert verb("cancel", "ended", "--yes") == (1, "kpr/ended has ended: nothing of it is in flight\n", "")
    assert verb("cancel", "--topic", "orders", "--yes") == (0, "there is nothing to cancel\n", "")


def test_cancel_by_cluster_takes_plans_in_place_of_their_waves(sandbox: Kubectl, verb: Verb) -> None:
    made = planned(sandbox)
    wave(sandbox, made)
    moving(sandbox, "elsewhere", clusterRef={"name": "second"})
    moving(sandbox)
    ran = verb("cancel", "--cluster", "main", "--yes")
    assert ran.out.splitlines()[-2:] == ["krp/drain is cancelled", "kpr/move is cancelled"]
    assert "krp/drain, with 1 wave not at an end: of 1 partition, 0 in flight go back, 0 completed stay" in ran.out
    assert sandbox("get", "krp", "-o", "name") == ""
    assert "deletionTimestamp" not in sandbox.read("kpr", "elsewhere")["metadata"]
    assert "deletionTimestamp" not in sandbox.read("kpr", "drain-1")["metadata"]  # that is the operator's to do


def test_cancel_refuses_what_would_cancel_nothing_or_break_a_plan(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox, deletionPolicy="Orphan")
    assert "leaves moves in flight as they are; set it to Cancel first" in error_of(verb("cancel", "move", "--yes"), 2)
    wave(sandbox, planned(sandbox))
    assert "kpr/drain-1 is a wave of krp/drain; cancel krp/drain" in error_of(verb("cancel", "drain-1", "--yes"), 2)
    for arguments in ((), ("move", "--topic", "orders"), ("move", "-A")):
        assert verb("cancel", *arguments).code == 2


def test_cancel_in_all_namespaces_refuses_a_name_of_several_clusters(sandbox: Kubectl, verb: Verb) -> None:
    moving(sandbox, clusterRef={"name": "ambiguous"})
    moving(sandbox, "two", clusterRef={"name": "ambiguous", "namespace": "elsewhere"})
    said = error_of(run("cancel", "-A", "--cluster", "ambiguous", "--yes"), 2)
    assert f"ambiguous stands for elsewhere/ambiguous, {sandbox.namespace}/ambiguous; cancel" in said


def test_a_spec_edited_while_it_was_read_is_not_cancelled(
    sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving(sandbox)
    edit = {"spec": {"deletionPolicy": "Orphan"}}
    monkeypatch.setattr("reassign.cli.output.confirm", lambda *_: sandbox.patch("kpr", "move", edit))
    ran = verb("cancel", "move")
    assert (ran.code, "was edited meanwhile" in ran.err) == (1, True)
    assert "deletionTimestamp" not in sandbox.read("kpr", "move")["metadata"]
    monkeypatch.setattr("reassign.cli.output.confirm", lambda *_: sandbox.write_status("kpr", "move", ENDED))
    sandbox.patch("kpr", "move", {"spec": {"deletionPolicy": "Cancel"}})
    assert verb("cancel", "move").code == 0


# --- top and watch ---


def test_top_reads_the_statuses(sandbox: Kubectl, verb: Verb) -> None:
    sandbox.apply(cluster())
    sandbox.write_status("kcl", "main", CLUSTER_STATUS)
    moving(sandbox)
    (load,) = json.loads(verb("top", "-o", "json").out)["clusters"]
    assert (load["in_flight"], load["others"], load["throttle"]) == (4, 9, 1024)
    assert load in json.loads(run("top", "-A", "-o", "json").out)["clusters"]
    assert {each["broker"]: (each["adding"], each["removing"], each["others"]) for each in load["brokers"]} == {
        0: (0, 1, 0),
        1: (0, 0, 1),
        3: (1, 0, 0),
    }
    said = verb("top").out
    first = "/main: Run, 4 of 200 partitions in flight, 9 of other clients, throttle 1.0 KiB/s\n"
    assert said.startswith(sandbox.namespace + first)
    assert f"\n{sandbox.namespace}/move  " in said


def test_watch_writes_a_line_for_each_change_and_ends_with_the_resource(
    sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.05)
    moving(sandbox)
    seen: list[str] = []
    line = watching.line

    def note(view: watching.View) -> str:
        seen.append(line(view))
        return seen[-1]

    monkeypatch.setattr(watching, "line", note)

    def go_on() -> None:
        assert wait_until(lambda: bool(seen))
        sandbox.write_status("kpr", "move", ENDED)

    other = threading.Thread(target=go_on)
    other.start()
    ran = verb("watch", "move")
    other.join()
    assert ran.code == 0
    lines = [line.split(" ", 1)[1] for line in ran.out.splitlines()]
    assert lines == [
        "0/1 partitions, 31 %, 8.0 GiB/s (Moving: 1 partition in flight)",
        "1/1 partitions, 100 %, 8.0 GiB/s (Completed: done)",
        "done",
    ]


def test_watch_redraws_in_place_on_a_terminal(api: ApiServer, sandbox: Kubectl) -> None:
    moving(sandbox)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig), "TERM": "xterm", "PYTHONPATH": str(OPERATOR)}
    command = (sys.executable, "-m", "reassign.cli", "watch", "move", "-n", sandbox.namespace)
    with subprocess.Popen(command, env=environment, stdout=follower, stderr=follower) as program:
        os.close(follower)
        seen = b""
        with os.fdopen(leader, "rb", buffering=0) as screen, suppress(OSError):  # as the other end is closed
            while data := screen.read(4096):
                if b"broker 3" not in seen and b"broker 3" in seen + data:
                    sandbox.write_status("kpr", "move", ENDED)
                seen += data
    assert program.returncode == 0
    first, *others = seen.decode().split("\x1b[2K")  # each frame erases the lines of the one before
    assert "orders-0" in first
    assert "0/1 partitions, 31 %" in first
    assert "1/1 partitions, 100 %" in others[-1]
    assert seen.decode().rstrip().endswith("Completed: done")


@pytest.mark.parametrize(
    ("kind", "conditions", "code"),
    [
        ("kpr", [condition("Ready"), condition("Succeeded")], 0),
        ("kpr", [condition("Ready", "False", "DeadlineExceeded"), condition("Failed", reason="DeadlineExceeded")], 1),
        ("kpr", [condition("Ready"), condition("Checked")], 0),
        ("kpr", [condition("Ready", "False", "UnknownBroker"), condition("Checked", "False", "UnknownBroker")], 1),
        ("krp", [condition("Ready"), condition("Succeeded")], 0),
        ("kbd", [condition("Ready", reason="Empty"), condition("Empty")], 0),
        ("kbd", [condition("Ready", "False", "UnknownBroker"), condition("Stalled", reason="UnknownBroker")], 1),
        ("krp", [condition("Ready", "False", "WaveFailed"), condition("Stalled", reason="WaveFailed")], 1),
    ],
)
def test_watch_ends_by_the_outcome(
    kind: str, conditions: list[Object], code: int, sandbox: Kubectl, verb: Verb
) -> None:
    sandbox.apply({"kpr": reassignment, "krp": plan, "kbd": decommission}[kind]("it"))
    sandbox.write_status(kind, "it", {"observedGeneration": 1, "conditions": conditions})
    assert verb("watch", "it").code == code


def test_watch_of_a_resource_that_is_deleted_is_no(
    sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.05)
    sandbox.apply(reassignment())
    get = KubeClient.get

    async def get_and_delete(self: KubeClient, *arguments: Any) -> Object | None:
        obj = await get(self, *arguments)
        if obj:
            await self.delete(obj)
        return obj

    monkeypatch.setattr(KubeClient, "get", get_and_delete)
    ran = verb("watch", "kpr/move")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "it was deleted")


@pytest.mark.parametrize(("failures", "code"), [(watching.PATIENCE - 1, 0), (watching.PATIENCE, 3)])
def test_watch_waits_for_an_api_server_that_does_not_answer(
    failures: int, code: int, sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.0)
    moving(sandbox)
    get = KubeClient.get
    answers = iter([True, *[False] * failures])

    async def get_or_fail(self: KubeClient, *arguments: Any) -> Object | None:
        if next(answers, True):
            return await get(self, *arguments)
        raise ApiServerError("the API server did not answer")

    def show(view: watching.View) -> str:
        sandbox.write_status("kpr", "move", ENDED)
        return line(view)

    line = watching.line
    monkeypatch.setattr(watching, "line", show)
    monkeypatch.setattr(KubeClient, "get", get_or_fail)
    assert verb("watch", "kpr/move").code == code


# --- rights, and completion ---


def test_a_missing_right_names_its_verb_and_resource(
    api: ApiServer, sandbox: Kubectl, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving(sandbox)
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig_of("system:kube-proxy")))
    said = error_of(verb("suspend", "kpr/move"), 3)
    assert 'cannot get resource "partitionreassignments"' in said
    assert 'cannot list resource "partitionreassignments"' in error_of(verb("list"), 3)


def test_names_are_completed_from_the_api_server(
    api: ApiServer, sandbox: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving(sandbox)
    planned(sandbox)
    retiring(sandbox)
    sandbox.apply(cluster())
    here = ("--kubeconfig", str(api.kubeconfig), "-n", sandbox.namespace)

    def completed(*words: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr("os.environ", {"PATH": "", "HOME": str(tmp_path)})
            from reassign.cli.completion import completions

            return completions(words)

    assert completed("suspend", *here, "") == ["move", "drain", "retire-5"]
    assert completed("suspend", *here, "krp/") == ["krp/drain"]
    assert completed("watch", *here, "m") == ["move"]
    assert completed("approve", *here, "") == ["drain", "retire-5"]
    assert completed("watch", *here, "kbd/") == ["kbd/retire-5"]
    standing(sandbox)
    assert completed("explain", *here, "") == ["standing"]
    assert completed("suspend", *here, "krpol/") == ["krpol/standing"]
    assert completed("decommission", *here, "5", "--cluster", "") == ["main"]
    assert completed("rollback", *here, "") == ["move"]
    assert completed("brake", "on", *here, "") == ["main"]
    assert completed("list", *here, "--cluster", "") == ["main"]
    assert completed("list", *here[:2], "--context", "") == ["local"]
    assert sandbox.namespace in completed("list", *here[:2], "-n", "test-")
    assert completed("suspend", "--kubeconfig", str(tmp_path / "none"), "") == []
