"""What Argo CD says of our resources, and does with them, by the scripts that it is given."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaError

from localplatform.argocd_config import CUSTOMIZATIONS, FOLDER, documents, settings
from tests.unit.argocd import health, script
from tests.unit.argocd_testdata import files
from tests.unit.kstatus import helm_wait
from tests.unit.kstatus_table import STATES

KINDS = ("BrokerDecommission", "KafkaCluster", "PartitionReassignment", "ReassignmentPlan", "ReassignmentPolicy")
CASES = [
    (kind, case["inputPath"], case["healthStatus"])
    for kind in KINDS
    for case in yaml.safe_load((CUSTOMIZATIONS / kind / "health_test.yaml").read_text())["tests"]
]


def judged(
    true: dict[str, str], *, ready: str = "InProgress", observed: int | None = 2, kind: str = "PartitionReassignment"
) -> tuple[str, str]:
    """Of one whose conditions `true` have these reasons; `ready` is the reason of Ready where that is False."""
    known = [{"type": type, "status": "True", "reason": reason, "message": "why"} for type, reason in true.items()]
    if "Ready" not in true:
        known.append({"type": "Ready", "status": "False", "reason": ready, "message": "how to go on"})
    status: dict[str, Any] = {"conditions": known, "summary": "1 of 2"}
    if observed is not None:
        status["observedGeneration"] = observed
    return health(kind, {"metadata": {"generation": 2}, "spec": {}, "status": status})


def discovered(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """The actions of an object, with their options."""
    return {str(name): options for name, options in script(kind, "actions/discovery.lua", obj).items()}


def actions(kind: str, spec: dict[str, Any], **status: Any) -> set[str]:
    """The actions that can be taken."""
    found = discovered(kind, {"metadata": {}, "spec": spec, "status": status})
    return {name for name, options in found.items() if not options["disabled"]}


def after(kind: str, action: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    """The spec after an action."""
    obj = {"metadata": {}, "spec": spec, "status": status}
    return dict(script(kind, f"actions/{action}/action.lua", obj)["spec"])


@pytest.mark.parametrize(("kind", "path", "expected"), CASES, ids=[f"{kind}-{path[9:-5]}" for kind, path, _ in CASES])
def test_health_of_a_state_is_as_expected(kind: str, path: str, expected: dict[str, str]) -> None:
    obj = yaml.safe_load((CUSTOMIZATIONS / kind / path).read_text())
    assert health(kind, obj) == (expected["status"], expected["message"])


@pytest.mark.parametrize(
    ("true", "options", "expected"),
    [
        ({"Ready": "Completed", "Succeeded": "Completed"}, {}, ("Healthy", "1 of 2")),
        ({"Ready": "Completed", "Drifted": "MovedAfterwards"}, {}, ("Healthy", "MovedAfterwards: why")),
        ({"Ready": "ChecksPassed", "Checked": "ChecksPassed"}, {}, ("Healthy", "1 of 2")),
        ({"Reconciling": "InFlight"}, {}, ("Progressing", "InProgress: 1 of 2")),
        ({"Reconciling": "InFlight", "Stalled": "MoveStalled"}, {}, ("Degraded", "MoveStalled: why")),
        (
            {"Reconciling": "InFlightElsewhere"},
            {"ready": "InFlightElsewhere"},
            ("Progressing", "InFlightElsewhere: 1 of 2"),
        ),
        (
            {"Failed": "CancelledExternally", "Stalled": "CancelledExternally"},
            {},
            ("Degraded", "CancelledExternally: why"),
        ),
        ({}, {"ready": "Suspended"}, ("Suspended", "Suspended: how to go on")),
        ({}, {"ready": "AwaitingApproval"}, ("Suspended", "AwaitingApproval: how to go on")),
        ({}, {"ready": "OutsideWindow"}, ("Suspended", "OutsideWindow: how to go on")),
        ({"Reconciling": "Suspended"}, {"ready": "Suspended"}, ("Progressing", "Suspended: 1 of 2")),
        ({"Ready": "Completed"}, {"observed": 1}, ("Progressing", "waits for the operator to see the change")),
        ({}, {"observed": -1}, ("Progressing", "waits for the operator to see the change")),
        ({}, {"observed": None}, ("Progressing", "waits for the operator to see the change")),
    ],
)
def test_a_wave_is_healthy_when_it_is_ready_and_not_before(
    true: dict[str, str], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert judged(true, **options) == expected


@pytest.mark.parametrize(
    ("true", "ready", "expected"),
    [
        ({"Stalled": "PlanFailed", "Cordoned": "Cordoned"}, "PlanFailed", ("Degraded", "PlanFailed: why")),
        ({"Reconciling": "Suspended"}, "Suspended", ("Progressing", "Suspended: how to go on")),
        ({"Ready": "QuorumVoter", "Empty": "Empty"}, "", ("Healthy", "QuorumVoter: why")),
    ],
)
def test_a_decommission_is_healthy_once_its_brokers_are_empty(
    true: dict[str, str], ready: str, expected: tuple[str, str]
) -> None:
    assert judged(true, ready=ready, kind="BrokerDecommission") == expected


@pytest.mark.parametrize(
    ("true", "ready", "expected"),
    [
        ({"Ready": "Idle"}, "", ("Healthy", "Idle: why")),
        ({"Ready": "PlanInProgress"}, "", ("Healthy", "PlanInProgress: why")),
        (
            {"Ready": "AwaitingApproval", "ApprovalNeeded": "AwaitingApproval"},
            "",
            ("Healthy", "AwaitingApproval: why"),
        ),
        ({"ApprovalNeeded": "AwaitingApproval"}, "Suspended", ("Suspended", "Suspended: how to go on")),
        (
            {"Stalled": "RackLost", "ApprovalNeeded": "AwaitingApproval"},
            "RackLost",
            ("Degraded", "RackLost: why"),
        ),
        ({"Reconciling": "Connecting"}, "Connecting", ("Progressing", "Connecting: how to go on")),
    ],
)
def test_a_policy_is_healthy_while_it_is_in_force(true: dict[str, str], ready: str, expected: tuple[str, str]) -> None:
    assert judged(true, ready=ready, kind="ReassignmentPolicy") == expected


def test_no_sync_and_no_helm_wait_for_what_a_policy_waits_for() -> None:
    found = dict(STATES["ReassignmentPolicy"]())
    in_force = {
        "no trigger is true",
        "a trigger waits, until a broker has been down for long enough",
        "a trigger is held, until the next plan is due",
        "a plan waits for approval",
        "the same, and `approvedDigest` is another one",
        "a plan is under way",
        "the same, and none of its windows is open",
    }
    healthy = {state for state, obj in found.items() if health("ReassignmentPolicy", obj)[0] == "Healthy"}
    assert healthy == in_force
    assert {state for state, obj in found.items() if helm_wait(obj) == "returns"} == in_force


def test_a_retired_plan_is_over_and_neither_failed_nor_in_progress() -> None:
    assert judged({}, ready="Retired", kind="ReassignmentPlan") == ("Healthy", "Retired: how to go on")


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_the_operator_has_not_seen_yet_is_progressing(kind: str) -> None:
    assert health(kind, {"metadata": {"generation": 1}, "spec": {}})[0] == "Progressing"


@pytest.mark.parametrize(
    "kind", ["BrokerDecommission", "PartitionReassignment", "ReassignmentPlan", "ReassignmentPolicy"]
)
def test_what_is_suspended_can_be_resumed_and_the_reverse(kind: str) -> None:
    assert actions(kind, {}) == {"suspend"}
    assert after(kind, "suspend", {}) == {"suspend": True}
    assert actions(kind, {"suspend": True}) == {"resume"}
    assert after(kind, "resume", {"suspend": True}) == {"suspend": False}


def test_the_brake_of_a_cluster_is_suspend_and_resume() -> None:
    assert actions("KafkaCluster", {}) == {"suspend"}
    assert after("KafkaCluster", "suspend", {}) == {"execution": "Pause"}
    assert actions("KafkaCluster", {"execution": "CancelAll"}) == {"resume"}
    assert after("KafkaCluster", "resume", {"execution": "CancelAll"}) == {"execution": "Run"}


@pytest.mark.parametrize("kind", ["BrokerDecommission", "ReassignmentPlan", "ReassignmentPolicy"])
def test_a_plan_can_be_approved_once_it_has_a_digest(kind: str) -> None:
    assert "approve" not in actions(kind, {})
    assert "approve" in actions(kind, {}, digest="sha256:1")
    assert after(kind, "approve", {}, digest="sha256:1") == {"approvedDigest": "sha256:1"}
    assert "approve" not in actions(kind, {"approvedDigest": "sha256:1"}, digest="sha256:1")


@pytest.mark.parametrize("spec", [{}, {"suspend": True}])
@pytest.mark.parametrize("owner", ["BrokerDecommission", "ReassignmentPolicy"])
def test_a_plan_of_an_owner_is_left_to_that(owner: str, spec: dict[str, Any]) -> None:
    metadata = {"ownerReferences": [{"kind": owner, "name": "main", "controller": True}]}
    obj = {"metadata": metadata, "spec": spec, "status": {"digest": "sha256:1"}}
    found = discovered("ReassignmentPlan", obj)
    assert all(options["disabled"] for options in found.values())
    assert {options["displayName"] for options in found.values()} == {
        f"{action} the {owner} main instead" for action in ("approve", "resume", "suspend")
    }
    with pytest.raises(LuaError, match=f"approve the {owner} main"):
        script("ReassignmentPlan", "actions/approve/action.lua", obj)


def test_another_owner_leaves_a_plan_its_actions() -> None:
    metadata = {"ownerReferences": [{"kind": "Application", "name": "fleet", "controller": True}]}
    obj = {"metadata": metadata, "spec": {}, "status": {"digest": "sha256:1"}}
    assert not discovered("ReassignmentPlan", obj)["approve"]["disabled"]
    assert script("ReassignmentPlan", "actions/approve/action.lua", obj)["spec"]["approvedDigest"] == "sha256:1"


def test_the_states_that_are_judged_are_those_of_the_operator_of_today() -> None:
    assert {path: path.read_text() for path, _ in files()} == dict(files())


def test_config_map_and_helm_values_are_made_from_the_scripts() -> None:
    assert {path: path.read_text() for path in documents()} == documents()
    names = [
        f"resource.customizations.{what}.kafka.reassign.dev_{kind}" for kind in KINDS for what in ("health", "actions")
    ]
    assert [*settings()] == names


def test_an_application_prunes_and_retries_after_a_stalled_wave() -> None:
    policy = yaml.safe_load((FOLDER / "applicationset.yaml").read_text())["spec"]["template"]["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": True, "allowEmpty": True}
    assert policy["syncOptions"] == ["ServerSideApply=true"]
    assert policy["retry"]["limit"] < 0  # for ever
    assert policy["retry"]["refresh"] is True
    assert policy["retry"]["backoff"]["maxDuration"] == "5m"


def test_a_confirmation_of_deletion_is_kept() -> None:
    spec = yaml.safe_load((FOLDER / "applicationset.yaml").read_text())["spec"]
    assert spec["preservedFields"] == {"annotations": ["argocd.argoproj.io/deletion-approved"]}
