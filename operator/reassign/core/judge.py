"""Judge: decide for all resources, or where a mistake of this program meets one of them, for the others."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime

from reassign.core.model.memory import Recent
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.verdict import Verdict
from reassign.core.tick import decide
from reassign.errors import Reason

Mistake = tuple[Resource, Exception]
"""A resource that could not be judged, and what was raised."""


def judge(
    resources: Sequence[Resource], snapshot: Snapshot, policy: Policy, recent: Recent, now: datetime
) -> tuple[list[Verdict], list[Mistake]]:
    """The verdicts, and the resources that cannot be judged; raises what no single one of them explains.

    What such a resource has in flight is known to no verdict: so that nothing is built upon it, nothing new starts.
    """
    try:
        return decide(resources, snapshot, policy, recent, now), []
    except Exception:
        mistakes = [(r, e) for r in resources if (e := _mistake(r, snapshot, policy, recent, now))]
        if not mistakes:
            raise
    unjudged = {resource.uid: resource for resource, _ in mistakes}
    holding = [f"{r.namespace}/{r.name}" for r in unjudged.values() if r.status_lost or active(r.record)]
    if holding:
        policy = replace(policy, hold=policy.hold or _wait_for(holding[0]))
    return decide([r for r in resources if r.uid not in unjudged], snapshot, policy, recent, now), mistakes


def _mistake(resource: Resource, snapshot: Snapshot, policy: Policy, recent: Recent, now: datetime) -> Exception | None:
    try:
        decide([resource], snapshot, policy, deepcopy(recent), now)
    except Exception as error:
        return error
    return None


def _wait_for(name: str) -> Problem:
    return Problem(
        Reason.INTERNAL_ERROR,
        f"by a mistake of the operator the PartitionReassignment {name} cannot be judged, and it may have moves in "
        "flight: nothing new starts until it is gone; see its status",
    )
