"""The states of a partition that a PartitionReassignment names, and what moves it from each to each.

A state is what the record says of the partition, except Restoring. Without an entry in the record there is none: the
partition waits for its turn (Pending), for a check to pass (Blocked), or is no longer asked for. A step that is taken
back before it is sent is no transition. The tests assert TRANSITIONS after each stage of a decision; the running
operator never stops at one, since that would cost a resource its undo.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """What has become of a partition. `LIFE` in `core.partition.life` has a function for each state that does not go
    back; `core.partition.undo` takes those back that do."""

    SUPERSEDING = "Superseding"
    """Another client's move is being cancelled to make way; no move of its own has begun."""
    SUBMITTING = "Submitting"
    """The alter is about to be sent, or was sent, and may or may not have reached the brokers, and this topic."""
    IN_FLIGHT = "InFlight"
    """The brokers have accepted the move of this topic, and not completed it."""
    SETTLING = "Settling"
    """Its replicas are at the target, and Kafka was asked for no move: it waits to be in sync, or for its leader."""
    CANCELLING = "Cancelling"
    """It goes back: its move is being cancelled, or copies between its log directories are being ended."""
    RESTORING = "Restoring"
    """Its cancel is confirmed, and its original order is being restored. The record goes on to say Cancelling: another
    process does not know of the confirmation, and waits for metadata to settle."""
    COMPLETED = "Completed"
    """It is at its target, in order, in sync, and in the log directories that are named."""
    CANCELLED = "Cancelled"
    """It was brought back, or another client cancelled or changed its move."""
    FAILED = "Failed"
    """It is not moved: its deadline passed, or another client was moving it and whenInFlight is Fail."""


TRANSITIONS: Mapping[State | None, frozenset[State | None]] = {
    None: frozenset(State) - {State.CANCELLING, State.RESTORING},
    State.SUPERSEDING: frozenset({None}),
    State.SUBMITTING: frozenset(State) - {State.SUPERSEDING, State.SUBMITTING, State.FAILED} | {None},
    State.IN_FLIGHT: frozenset(
        {State.SETTLING, State.COMPLETED, State.CANCELLING, State.RESTORING, State.CANCELLED, None}
    ),
    State.SETTLING: frozenset({State.COMPLETED, None}),
    State.CANCELLING: frozenset({State.RESTORING, State.COMPLETED, State.CANCELLED, None}),
    State.RESTORING: frozenset({State.CANCELLING, State.CANCELLED, None}),
    State.COMPLETED: frozenset({None}),
    State.CANCELLED: frozenset({State.COMPLETED, None}),
    State.FAILED: frozenset({State.COMPLETED, None}),
}
"""The states that a partition can come to from each; None: it has no entry. docs/built/moves.md says when."""

ENDED = frozenset({State.COMPLETED, State.CANCELLED, State.FAILED})
"""Nothing of it is in flight."""

ACTIVE = frozenset(State) - ENDED
"""Something of it is, or may be, in flight: the finalizer stays."""

HOLDING = ACTIVE - {State.SETTLING}
"""No other resource may move the partition."""

MAY_LAND = frozenset({State.SUPERSEDING, State.SUBMITTING, State.CANCELLING, State.RESTORING})
"""A request may be under way, or is to come, of which nothing is listed in flight yet."""
