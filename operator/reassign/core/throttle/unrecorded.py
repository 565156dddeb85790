"""Throttles that are set and in no record: ours of a time whose record is lost, or somebody else's.

Nobody can tell which, so they are only named. A broker may have had the very rate that a resource asks for all along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reassign.api.kafka_cluster import ThrottleStatus
from reassign.core.model.configs import ConfigKey, Observed, items
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.throttle.desired import ThrottledMove
from reassign.core.throttle.diff import read_record
from reassign.errors import Reason

MAX_NAMED = 5


def unrecorded(
    moves: Sequence[ThrottledMove], in_flight: Collection[TopicPartition], status: ThrottleStatus | None, seen: Observed
) -> Problem | None:
    """What a process that has just started says of items that its moves in flight need, and that it did not record."""
    record = read_record(status)
    found: dict[ConfigKey, frozenset[str]] = {}
    for move in moves:
        for key, those in move.items().items() if move.tp in in_flight else ():
            there = items((seen.get(key.resource) or {}).get(key.config))
            ours = items(record[key].value) if key in record else ()
            if extra := those.intersection(there).difference(ours):
                found[key] = found.get(key, frozenset()) | extra
    if not found:
        return None
    named = "; ".join(f"{key} has {_some(found[key])}" for key in sorted(found)[:MAX_NAMED])
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return Problem(
        Reason.THROTTLE_RECORD_LOST,
        f"moves in flight are throttled, and status.throttle does not say so: {named}{more}. Somebody else did that, "
        "or the record is lost: then these, and the rates of their brokers, stay when the moves are over. "
        "Look at them then, and delete by hand what nobody needs (docs/operating.md, Throttles)",
    )


def _some(those: Collection[str]) -> str:
    some = sorted(those)[:MAX_NAMED]
    return ",".join(some) + (",..." if len(those) > len(some) else "")
