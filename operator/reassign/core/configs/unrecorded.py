"""Throttles that are set and in no record: ours of a time whose record is lost, or another client's.

These cannot be told apart, so they are only named. A broker may have had the rate that a resource asks for all along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.desired import ThrottledMove
from reassign.core.configs.diff import from_record
from reassign.core.model.configs import ConfigKey, Observed, items
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from reassign.text import listed


def unrecorded(
    moves: Sequence[ThrottledMove],
    in_flight: Collection[TopicPartition],
    status: RecordedConfigs | None,
    seen: Observed,
) -> Problem | None:
    """Say which items of lists moves in flight need and have, and no record names.

    A process asks once, when it has started.
    """
    record = from_record(status)
    unknown: dict[ConfigKey, frozenset[str]] = {}
    for move in moves:
        for key, those in move.items().items() if move.tp in in_flight else ():
            there = items((seen.get(key.resource) or {}).get(key.config))
            ours = items(record[key].value) if key in record else ()
            if extra := those.intersection(there).difference(ours):
                unknown[key] = unknown.get(key, frozenset()) | extra
    if not unknown:
        return None
    named = listed(
        (f"{key} has {listed(sorted(extra), separator=',')}" for key, extra in sorted(unknown.items())), separator="; "
    )
    return Problem(
        Reason.THROTTLE_RECORD_LOST,
        f"moves in flight are throttled, and the KafkaCluster's ReassignmentRecord does not say so: {named}. "
        "Another client did that, or the record is lost: then these, and the rates of their brokers, stay when the "
        "moves are over. "
        "Check them then, and delete by hand what is not needed (docs/concepts/throttles.md)",
    )
