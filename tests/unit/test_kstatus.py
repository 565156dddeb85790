"""What tools say of a status: the rules themselves, and the page that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.kstatus import check, helm_wait, kstatus, kubectl_wait
from tests.unit.kstatus_table import STATES, lines

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "conditions.md").read_text()


def obj(*conditions: str, observed: int | None = 2, ready: str | None = None, deleted: bool = False) -> Any:
    """Of generation 2, with these conditions True; `ready` is the status of Ready."""
    status: dict[str, Any] = {} if observed is None else {"observedGeneration": observed}
    known = [{"type": kind, "status": "True", "reason": "InProgress"} for kind in conditions]
    if ready:
        known.append({"type": "Ready", "status": ready, "reason": "InProgress"})
    metadata = {"generation": 2} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    return {"metadata": metadata, "status": status | {"conditions": known}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (obj("Stalled", deleted=True), "Terminating"),
        (obj(ready="True", observed=1), "InProgress"),
        (obj(ready="True", observed=-1), "InProgress"),
        (obj("Reconciling", "Stalled", ready="True"), "InProgress"),
        (obj("Stalled", "Reconciling", ready="True"), "Failed"),
        (obj(ready="False"), "InProgress"),
        (obj(ready="Unknown"), "InProgress"),
        (obj(ready="True"), "Current"),
        (obj(observed=None), "Current"),
        (obj(), "Current"),
    ],
)
def test_kstatus_agrees_with_its_source(found: Any, expected: str) -> None:
    assert kstatus(found) == expected


def test_kubectl_waits_for_the_generation_too() -> None:
    assert kubectl_wait(obj(ready="True")) == "returns"
    assert kubectl_wait(obj(ready="True", observed=1)) == "waits"
    assert kubectl_wait(obj(ready="False")) == "waits"
    assert kubectl_wait(obj("Succeeded"), "Succeeded") == "returns"


def test_helm_gives_up_on_what_has_failed() -> None:
    assert [helm_wait(found) for found in (obj(ready="True"), obj("Stalled"), obj(ready="False"))] == [
        "returns",
        "fails",
        "waits",
    ]


@pytest.mark.parametrize(
    "misleading",
    [
        obj("Failed", ready="False"),
        obj("Succeeded", ready="False"),
        obj("Reconciling", "Stalled", ready="False"),
        obj("Reconciling", ready="True"),
        obj(ready="False"),
    ],
)
def test_a_status_that_misleads_is_found(misleading: Any) -> None:
    with pytest.raises(AssertionError):
        check(misleading)


@pytest.mark.parametrize("kind", STATES)
def test_the_page_shows_what_is_computed(kind: str) -> None:
    assert "\n".join(lines(kind)) in PAGE
