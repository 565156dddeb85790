"""Asserts after each stage of a decision that every partition took one of the TRANSITIONS, or kept its state.

A step that is withheld is no transition, so the stages that withhold are not looked at: throttles, gate, records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reassign.core import tick
from reassign.core.model.record import Record
from reassign.core.model.states import TRANSITIONS, State
from reassign.core.model.verdict import Verdict

Pair = tuple[State | None, State | None]
SEEN: Counter[Pair] = Counter()
"""How often each transition was taken."""


def watch() -> None:
    """Have each stage of `core.tick` assert what it did, from now on."""
    for name in ("undo", "follow", "admit", "settle_steps"):
        setattr(tick, name, _of_verdicts(name, getattr(tick, name)))
    tick.with_adopted = _of_records(tick.with_adopted)  # type: ignore[attr-defined]


def assert_taken(stage: str, before: Mapping[Any, State | None], after: Mapping[Any, State | None]) -> None:
    """Count the transitions of a stage; raises AssertionError for one that is none."""
    for partition in before.keys() | after.keys():
        was, now = before.get(partition), after.get(partition)
        if was is not now:
            assert now in TRANSITIONS[was], f"{stage}: {partition} from {was} to {now}"
            SEEN[was, now] += 1


def _of_verdicts(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def watched(verdicts: Verdict | Iterable[Verdict], *rest: Any, **named: Any) -> Any:
        one = isinstance(verdicts, Verdict)
        found = function(verdicts, *rest, **named)
        after = found[0] if isinstance(found, tuple) else found
        recorded = stage == "settle_steps"
        assert_taken(
            stage, _states([verdicts] if one else verdicts), _states([after] if one else after, recorded=recorded)
        )
        return found

    return watched


def _of_records(function: Callable[..., Record]) -> Callable[..., Record]:
    def watched(resource: Any, *rest: Any) -> Record:
        record = function(resource, *rest)
        before, after = ({tp: entry.state for tp, entry in r.items()} for r in (resource.record, record))
        assert_taken("adopt", before, after)
        return record

    return watched


def _states(verdicts: Iterable[Verdict], *, recorded: bool = False) -> dict[Any, State | None]:
    """Return the states of all rows; what still restores after its steps is Cancelling, as it is recorded."""
    rows = {(v.resource.uid, tp): row for v in verdicts for tp, row in v.rows.items()}
    return {tp: row.entry.state if recorded and row.entry else row.state for tp, row in rows.items()}
