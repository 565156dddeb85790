"""Drift: what another client changed of a throttle in use, when it is set again, and what is said of it.

Setting it again and again would be a fight without an end, so the waits grow. A rate below ours slows the moves and
protects the cluster better, so it may stay for minutes. A throttle that was lifted protects nothing, so it is set again
soon, and no throttled move begins before it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from reassign.core.model.problem import Problem
from reassign.core.model.recent_changes import LONGEST_LOOSER_SECONDS, LONGEST_STRICTER_SECONDS, RecentChanges
from reassign.errors import Reason
from reassign.text import listed


def longest_wait(text: str | None, rate: str | None) -> float:
    """Return for how many seconds a value may stay instead of our rate."""
    stricter = text is not None and rate is not None and text.isdigit() and int(text) < int(rate)
    return LONGEST_STRICTER_SECONDS if stricter else LONGEST_LOOSER_SECONDS


def drift_problem(drifts: Sequence[str]) -> Problem | None:
    """Say what another client has changed since the last reconciliation."""
    if not drifts:
        return None
    return Problem(
        Reason.THROTTLE_DRIFT,
        f"another client changed a throttle: {listed(drifts, separator='; ')}; it is set again, "
        "and what they set is restored afterwards",
    )


def repeated_drift(recent: RecentChanges) -> Problem | None:
    """Say what another client changes again and again."""
    if not recent.repeated:
        return None
    those = listed((f"{key} ({drift.times} times)" for key, drift in recent.repeated), most=3, separator="; ")
    return Problem(
        Reason.THROTTLE_DRIFT,
        f"another client changes throttles again and again: {those}. Each is set again after a longer wait, at most "
        f"{LONGEST_LOOSER_SECONDS:.0f} s, or {LONGEST_STRICTER_SECONDS / 60:.0f} min while theirs is the lower rate. "
        "No throttled move begins before its throttle stands; what is in flight goes on. Find that client",
    )
