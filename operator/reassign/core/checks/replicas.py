"""Whether the target's replicas are the ones that the writer had in mind, compared with metadata that is not stale."""

from __future__ import annotations

from reassign.api.partition_reassignment import ReplicationFactorChange
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.errors import Reason


def expected_replicas(i: Input) -> Problem | None:
    expected = i.wanted.expected_replicas
    if expected is None or set(expected) == set(i.current) or i.stale:
        return None
    return Problem(
        Reason.EXPECTED_REPLICAS_MISMATCH,
        f"expected replicas {list(expected)}, but it has {list(i.current)}; correct the entry",
    )


def replication_factor(i: Input) -> Problem | None:
    """Refuse a change of the replication factor that is not allowed; brokers judge again where they can (KIP-860).

    In flight the size of the target must not change. If that move is cancelled first, the size that the partition goes
    back to must not change either.
    """
    before = [len(i.in_flight.target)] if i.in_flight else [len(i.current)]
    if i.supersedes:
        before.append(len(i.current))
    changed = next((size for size in before if size != len(i.target)), None)
    if i.resource.spec.replication_factor_change is ReplicationFactorChange.ALLOW or changed is None or i.stale:
        return None
    return Problem(
        Reason.REPLICATION_FACTOR_CHANGE,
        f"the replication factor would change from {changed} to {len(i.target)}; "
        "set replicationFactorChange: Allow if that is meant",
    )
