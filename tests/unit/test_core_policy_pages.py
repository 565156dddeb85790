"""The page on automation and its drawing have what the code has: kinds, holds, states and reasons, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reassign.api.reassignment_policy import TriggerKind, TriggerState
from reassign.core.automation.arbiter import EVACUATING, HOLDS, RANKS, HoldReason, Rank
from reassign.core.automation.policy_view import STAYS
from reassign.errors import Reason

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "concepts/automation.md").read_text()
SVG = "{http://www.w3.org/2000/svg}"
KINDS = {rank: str(kind) for kind, rank in RANKS.items()} | {Rank.DECOMMISSION: "BrokerDecommission"}


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table of the page whose head begins so."""
    body = PAGE.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in body.splitlines()[2:]]


def names(head: str) -> list[str]:
    return [name for row in rows(head) for name in re.findall(r"`(\w+)`", row[0])]


def test_the_page_has_the_triggers_in_their_order() -> None:
    assert names("trigger") == [str(kind) for kind in TriggerKind]
    order = [(int(number), re.findall(r"\w+", plans)[0], retires == "yes") for number, plans, retires in rows("order")]
    of = [(rank + 1, KINDS[rank].removesuffix("s"), rank in EVACUATING) for rank in Rank]
    assert [(number, kind.removesuffix("s"), retires) for number, kind, retires in order] == of


def test_the_page_has_the_holds_in_their_order() -> None:
    holds = [row[0].strip("`") for row in rows("reason | holds while")]
    assert holds == [str(reason) for reason in HOLDS]


def test_the_page_explains_each_state_of_a_trigger() -> None:
    found = rows("state")
    assert [state.strip("`") for state, _ in found] == [str(state) for state in TriggerState]
    [idle] = [meaning for state, meaning in found if state == "`Idle`"]
    assert set(re.findall(r"`(\w+)`", idle)) == STAYS


def test_the_page_explains_each_reason_of_its_own() -> None:
    own = {Reason.DUPLICATE_POLICY, Reason.TOO_MANY_BROKERS_LOST, Reason.RACK_LOST}
    shared = {Reason.SUSPENDED, Reason.INVALID_SCHEDULE, Reason.PLAN_FAILED, Reason.NOT_OBSERVED}
    assert set(names("reason | what it means")) == own | shared


def test_the_drawing_has_each_kind_of_plan_with_what_holds_it() -> None:
    texts = drawn()
    starts = [texts.index(KINDS[rank]) for rank in Rank]
    assert starts == sorted(starts)
    assert [text for text in texts if text in "12345"] == [str(rank + 1) for rank in Rank]


@pytest.mark.parametrize("rank", Rank)
def test_the_drawing_says_what_holds_a_kind_alone(rank: Rank) -> None:
    beside = " ".join(at(list(Rank).index(rank)))
    for reason in (HoldReason.TOO_MANY_BROKERS_LOST, HoldReason.RACK_LOST):
        assert (reason in beside) is (rank is Rank.BROKER_LOST)
    for reason in (HoldReason.CLUSTER_UNSETTLED, HoldReason.FOREIGN_IN_FLIGHT):
        assert (reason in beside) is (rank not in (Rank.BROKER_LOST, Rank.DECOMMISSION))
    assert (HoldReason.COOLDOWN in beside) is (rank not in EVACUATING)
    assert ("plans of users" in beside) is (rank not in (Rank.BROKER_LOST, Rank.BROKERS_CORDONED))


def drawn() -> list[str]:
    root = ElementTree.fromstring((DOCS / "pictures/automation.svg").read_text())
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def at(row: int) -> list[str]:
    """Return the texts beside the box of a row."""
    root = ElementTree.fromstring((DOCS / "pictures/automation.svg").read_text())
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("x") == "62"]
    top = int(boxes[row].get("y", ""))
    beside = (text for text in root.iter(f"{SVG}text") if text.get("x") == "272")
    return [text.text or "" for text in beside if top <= int(text.get("y", "")) <= top + 48]


def test_the_page_on_security_has_rows_for_each_trigger() -> None:
    page = (DOCS / "security/policies.md").read_text()
    firsts = {kind for line in page.splitlines() for kind in re.findall(r"^\| `(\w+)`", line)}
    assert firsts == {str(kind) for kind in TriggerKind}
