"""What Argo CD says of the health of our resources, by the script that it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lupa.lua51 as lua  # as in Argo CD's interpreter
import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "argocd"
SCRIPTS = yaml.safe_load((FOLDER / "argocd-cm.yaml").read_text())["data"]
SCRIPT = SCRIPTS["resource.customizations.health.kafka.reassign.dev_PartitionReassignment"]


def verdict(obj: Any) -> tuple[str, str]:
    """Status and message of an object."""
    runtime = lua.LuaRuntime()
    runtime.globals().obj = runtime.table_from(obj, recursive=True)
    found = runtime.execute(SCRIPT)
    return str(found["status"]), str(found["message"])


def health(true: dict[str, str], *, ready: str = "InProgress", observed: int | None = 2) -> tuple[str, str]:
    """Of one whose conditions `true` have these reasons; `ready` is the reason of Ready where that is False."""
    known = [{"type": kind, "status": "True", "reason": reason, "message": "why"} for kind, reason in true.items()]
    if "Ready" not in true:
        known.append({"type": "Ready", "status": "False", "reason": ready, "message": "how to go on"})
    status: dict[str, Any] = {"conditions": known, "summary": "1 of 2"}
    if observed is not None:
        status["observedGeneration"] = observed
    return verdict({"metadata": {"generation": 2}, "spec": {}, "status": status})


def test_it_is_for_our_kinds() -> None:
    kinds = ("PartitionReassignment", "ReassignmentPlan", "KafkaCluster")
    assert [*SCRIPTS] == [f"resource.customizations.health.kafka.reassign.dev_{kind}" for kind in kinds]
    assert set(SCRIPTS.values()) == {SCRIPT}


@pytest.mark.parametrize(
    ("true", "options", "expected"),
    [
        ({"Ready": "Completed", "Succeeded": "Completed"}, {}, ("Healthy", "1 of 2")),
        ({"Ready": "ChecksPassed", "Checked": "ChecksPassed"}, {}, ("Healthy", "1 of 2")),
        ({"Reconciling": "InFlight"}, {}, ("Progressing", "1 of 2")),
        ({"Reconciling": "InFlight", "Stalled": "MoveStalled"}, {}, ("Degraded", "MoveStalled: why")),
        ({"Reconciling": "InFlightElsewhere"}, {"ready": "InFlightElsewhere"}, ("Progressing", "1 of 2")),
        (
            {"Failed": "CancelledExternally", "Stalled": "CancelledExternally"},
            {},
            ("Degraded", "CancelledExternally: why"),
        ),
        ({}, {"ready": "Suspended"}, ("Suspended", "how to go on")),
        ({}, {"ready": "AwaitingApproval"}, ("Suspended", "how to go on")),
        ({"Reconciling": "Suspended"}, {"ready": "Suspended"}, ("Progressing", "1 of 2")),
        ({"Ready": "Completed"}, {"observed": 1}, ("Progressing", "waits for the operator to see the change")),
        ({}, {"observed": -1}, ("Progressing", "waits for the operator to see the change")),
        ({}, {"observed": None}, ("Progressing", "waits for the operator to see the change")),
    ],
)
def test_a_wave_is_healthy_when_it_is_ready_and_not_before(
    true: dict[str, str], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert health(true, **options) == expected


def test_an_object_that_the_operator_has_not_seen_yet_is_progressing() -> None:
    assert verdict({"metadata": {"generation": 1}, "spec": {}})[0] == "Progressing"


def test_an_application_prunes_and_retries_after_a_stalled_wave() -> None:
    policy = yaml.safe_load((FOLDER / "applicationset.yaml").read_text())["spec"]["template"]["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": True}
    assert policy["syncOptions"] == ["ServerSideApply=true"]
    assert policy["retry"]["limit"] < 0  # for ever
