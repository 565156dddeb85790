"""What Argo CD says of a PartitionReassignment's health, by the script that it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lupa.lua51 as lua  # as in Argo CD's interpreter
import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "argocd"
[(KEY, SCRIPT)] = yaml.safe_load((FOLDER / "argocd-cm.yaml").read_text())["data"].items()


def health(conditions: dict[str, str], *, observed: int | None = 2, suspend: bool = False) -> tuple[str, str]:
    """Status and message; `conditions` are those that are True, with their reasons."""
    runtime = lua.LuaRuntime()
    known = [
        {"type": kind, "status": "True", "reason": reason, "message": "why"} for kind, reason in conditions.items()
    ]
    known.append({"type": "Ready", "status": "False", "reason": "InProgress", "message": "other"})
    status: dict[str, Any] = {"conditions": known, "summary": "1 of 2"}
    if observed is not None:
        status["observedGeneration"] = observed
    runtime.globals().obj = runtime.table_from(
        {"metadata": {"generation": 2}, "spec": {"suspend": suspend}, "status": status}, recursive=True
    )
    found = runtime.execute(SCRIPT)
    return str(found["status"]), str(found["message"])


def test_it_is_for_our_kind() -> None:
    assert KEY == "resource.customizations.health.kafka.reassign.dev_PartitionReassignment"


@pytest.mark.parametrize(
    ("conditions", "options", "expected"),
    [
        ({"Succeeded": "AllInSync"}, {}, ("Healthy", "1 of 2")),
        ({"Reconciling": "InFlight"}, {}, ("Progressing", "1 of 2")),
        ({"Reconciling": "InFlight", "Stalled": "MoveStalled"}, {}, ("Degraded", "MoveStalled: why")),
        ({"Failed": "CancelledExternally"}, {}, ("Degraded", "CancelledExternally: why")),
        ({}, {"suspend": True}, ("Suspended", "1 of 2")),
        ({"Succeeded": "AllInSync"}, {"suspend": True}, ("Healthy", "1 of 2")),
        ({"Succeeded": "AllInSync"}, {"observed": 1}, ("Progressing", "waits for the operator to see the change")),
        ({}, {"observed": None}, ("Progressing", "waits for the operator to see the change")),
    ],
)
def test_a_wave_is_healthy_when_it_has_succeeded_and_not_before(
    conditions: dict[str, str], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert health(conditions, **options) == expected


def test_an_object_that_the_operator_has_not_seen_yet_is_progressing() -> None:
    runtime = lua.LuaRuntime()
    runtime.globals().obj = runtime.table_from({"metadata": {"generation": 1}, "spec": {}}, recursive=True)
    assert runtime.execute(SCRIPT)["status"] == "Progressing"


def test_an_application_prunes_and_retries_after_a_stalled_wave() -> None:
    policy = yaml.safe_load((FOLDER / "applicationset.yaml").read_text())["spec"]["template"]["spec"]["syncPolicy"]
    assert policy["automated"] == {"prune": True}
    assert policy["syncOptions"] == ["ServerSideApply=true"]
    assert policy["retry"]["limit"] < 0  # for ever
