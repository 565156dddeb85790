"""What an approval names and covers, and what keeps it from being taken up.

It names what the waves do, without the names of objects: a plan that is worked out has none yet. It is judged by the
waves that are there, since they are carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from reassign.api.common import ConditionStatus
from reassign.api.digest import hashed
from reassign.api.limits import MAX_WAVES
from reassign.api.reassignment_plan import Approval, Wave, WaveState
from reassign.api.reassignment_record import RecordedApproval, RecordedPlan, RecordedWaves
from reassign.core.automation.case import DecommissionCase
from reassign.core.automation.conditions import Standing
from reassign.core.automation.model import BrokersSeen, DecommissionResource, PlanSeen, plan_spec_digest
from reassign.core.automation.scope import beyond, otherwise
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.plans.model import Manifest, Planned, unended
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import counted, named_brokers

A = TypeVar("A", bound=RecordedApproval)

PLAN_IN_PROGRESS = "PlanInProgress"
OF_THE_CLUSTER = frozenset(
    {
        Reason.CANNOT_BE_READ,
        Reason.CONNECTING,
        Reason.CLUSTER_CLAIMED,
        Reason.CLUSTER_DELETED,
        Reason.CLUSTER_ID_CHANGED,
        Reason.CLUSTER_NOT_FOUND,
        Reason.CLUSTER_NOT_SUPPORTED,
        Reason.CLUSTER_UNREACHABLE,
        Reason.DUPLICATE_CLUSTER,
        Reason.AUTHENTICATION_FAILED,
        Reason.TOKEN_ENDPOINT_UNREACHABLE,
        Reason.TOKEN_REFUSED,
        Reason.INVALID_TOKEN_RESPONSE,
        Reason.SECRET_NOT_FOUND,
        Reason.SECRET_KEY_NOT_FOUND,
        Reason.INVALID_SECRET,
        Reason.API_SERVER_UNAVAILABLE,
    }
)
"""Why a plan was stalled while its cluster was not served: over by now, though its status still says so."""


def shown_digest(waves: Sequence[str], brokers: frozenset[int], further: str | None = None) -> str:
    """Return what an approval names: what all waves do, by the digests of their specs in order, and the brokers.

    Of a plan after one that was approved it names the plan, too: `further`. So no approval serves twice.
    """
    return hashed([[*waves], sorted(brokers), *([further] if further else [])])


def digest_of_nothing(it: DecommissionResource) -> str:
    """Return what an approval names where nothing would move."""
    return hashed([it.uid, sorted(it.brokers)])


def at_work(case: DecommissionCase) -> bool:
    """Whether it is this one's turn, until its plan has ended: no other may begin.

    One that is suspended, or whose approval was taken away, has it for as long as something is in flight.
    """
    it, plan = case.it, case.it.record.plan
    if plan is None or not plan.approved or it.finished:
        return False
    held = it.spec.suspend or not it.approved
    return is_moving(case) or not (plan.retired or it.deleted or held)


def is_moving(case: DecommissionCase) -> bool:
    """Whether its plan has anything in flight."""
    return case.plan is not None and case.plan.moving


def may_begin(case: DecommissionCase) -> bool:
    """Whether only another one's turn keeps an approval from being taken up."""
    it, plan, found = case.it, case.it.record.plan, case.plan
    if plan is None or plan.approved or plan.retired or found is None or it.deleted or isinstance(case.seen, Problem):
        return False
    fits = found.plan.planned and not found.done and plan.spec_digest == plan_spec_digest(case.spec)
    trouble = trouble_of(found, plan, content_of(it, found), case.avoid)
    held = unreadable_window(case) or held_by(case) or trouble or too_few(case, case.seen)
    return fits and not held and given(case, found)


def digest_of(it: DecommissionResource, found: PlanSeen) -> str:
    """Return what an approval of a plan that is there names."""
    further = found.plan.name if it.record.approval else None
    return shown_digest([wave.digest for wave in found.plan.status.waves], it.brokers, further)


def content_of(it: DecommissionResource, found: PlanSeen) -> str:
    """Return the digest of what a plan that is there does, whatever approves it."""
    return shown_digest([wave.digest for wave in found.plan.status.waves], it.brokers)


def approving_digest(it: DecommissionResource, found: PlanSeen) -> str:
    """Return the digest that approved a plan; where none had to, the one that an approval would name."""
    content, approval = content_of(it, found), it.record.approval
    return content if approval and approval.digest == content else digest_of(it, found)


def recorded_waves(planned: Planned) -> RecordedWaves:
    """Return what a record says of the waves of a plan that was worked out; one with more than MAX_WAVES never runs."""
    return RecordedWaves(digest=_done_by(planned.waves), bytes=tuple(wave.bytes for wave in planned.waves[:MAX_WAVES]))


def known_bytes(plan: RecordedPlan, found: PlanSeen) -> tuple[int, ...]:
    """Return how many bytes each wave of a plan copies, by the record: what its status says can be forged.

    Nothing is known where its waves are not those that were worked out for it before it was created.
    """
    known = plan.waves
    return known.bytes if known and known.digest == _done_by(found.plan.status.waves) else ()


def begin_due(approval: A | None, plan: RecordedPlan, found: PlanSeen) -> tuple[int, A | None]:
    """Return how many waves of a plan, from the first, may have begun, and its approval with the bytes of all these."""
    waves, copied = found.states, known_bytes(plan, found)
    due = next((n for n, wave in enumerate(waves, 1) if wave.state is not WaveState.SUCCEEDED), len(waves))
    if approval and due > plan.begun_waves:
        begun = approval.begun_bytes + sum(copied[plan.begun_waves : due])
        if not copied:  # what they copy is not known: they use up what was approved
            begun = max(begun, approval.bytes)
        approval = approval.model_copy(update={"begun_bytes": begun})
    return due, approval


def _done_by(waves: Sequence[Wave]) -> str:
    return hashed([wave.digest for wave in waves])


def given(case: DecommissionCase, found: PlanSeen) -> bool:
    """Whether a plan is approved, or needs no approval of its own: then it merely evacuates the brokers."""
    it = case.it
    if it.spec.approved_digest == digest_of(it, found):
        return True
    if it.spec.approval is Approval.NOT_REQUIRED:
        return not otherwise(manifests_of(found), it.brokers)
    return covered(case, found)


def covered(case: DecommissionCase, found: PlanSeen) -> bool:
    """Whether an earlier approval covers a further plan."""
    it, plan, approval = case.it, case.it.record.plan, case.it.record.approval
    if plan is None or approval is None or not it.approved:
        return False
    return merely_evacuates(found, it.brokers, approval, known_bytes(plan, found))


def merely_evacuates(
    found: PlanSeen, brokers: frozenset[int], approval: RecordedApproval, copied: Sequence[int]
) -> bool:
    """Whether a plan that has not begun merely evacuates these brokers, within the approved bytes."""
    unbegun = all(isinstance(wave, Resource) for wave in found.waves)
    return unbegun and not beyond(manifests_of(found), brokers, approval, copied)


def manifests_of(found: PlanSeen) -> list[Manifest]:
    """Return the manifests of the waves that are there, since they are what is carried out."""
    waves = {wave.name: wave for wave in found.waves if isinstance(wave, Resource)}
    names = [wave.name for wave in found.plan.status.waves]
    return [{"spec": waves[name].spec.wire()} for name in names if name in waves]


def filled(found: PlanSeen) -> set[int]:
    """Return the brokers that get replicas by waves that have not ended."""
    entries = (entry for wave in unended(found.waves) for entry in wave.spec.partitions)
    return {broker for entry in entries for broker in {*entry.replicas} - {*(entry.expected_replicas or ())}}


def why_not(case: DecommissionCase, found: PlanSeen) -> list[str]:
    """Say why a plan that is not approved is covered by nothing else."""
    it, manifests, plan, approval = case.it, manifests_of(found), case.it.record.plan, case.it.record.approval
    if it.spec.approval is Approval.NOT_REQUIRED:
        return otherwise(manifests, it.brokers)
    if plan is None or approval is None or not it.approved:
        return []
    return beyond(manifests, it.brokers, approval, known_bytes(plan, found))


def awaiting(case: DecommissionCase, digest: str, what: str, reasons: Sequence[str] = ()) -> Standing:
    """Say that a plan waits for its approval; `reasons` are why an earlier one does not cover it."""
    approval = case.it.record.approval
    return awaited(case.it.spec.approved_digest, approval.digest if approval else None, digest, what, reasons)


def awaited(named: str | None, approved: str | None, digest: str, what: str, reasons: Sequence[str] = ()) -> Standing:
    """Say that a plan waits for its approval, where spec names one digest, and another one was approved before."""
    because = f"; no approval covers it: {'; '.join(reasons)}" if reasons else ""
    if named and named not in (digest, approved):
        message = f"spec.approvedDigest is {named}, and the plan is {digest}: read it, and copy status.digest there"
        return Standing(Reason.APPROVED_DIGEST_MISMATCH, f"{message}{because}", digest=digest)
    message = f"{what}{because}; copy status.digest, {digest}, to spec.approvedDigest"
    return Standing(Reason.AWAITING_APPROVAL, message, digest=digest)


def another_first(case: DecommissionCase) -> Standing:
    """Say whose turn it is."""
    return Standing(PLAN_IN_PROGRESS, f"{case.first} goes first")


def unreadable_window(case: DecommissionCase) -> Standing | None:
    """Say that a window cannot be read, or never opens."""
    problem = windows_at(case.it.spec.windows, case.now.time).problem
    return Standing(problem.reason, problem.message) if problem else None


def held_by(case: DecommissionCase) -> Standing | None:
    """Say what a user has asked to wait for, if anything."""
    if case.it.spec.suspend:
        return Standing(Reason.SUSPENDED, "spec.suspend is true: no plan and no wave starts")
    if case.braked:
        return Standing(Reason.SUSPENDED, f"execution of the KafkaCluster is {case.cluster.execution}")
    return None


def too_few(case: DecommissionCase, seen: BrokersSeen) -> Standing | None:
    """Say that too few brokers would remain."""
    others = seen.brokers.keys() - case.it.brokers - case.avoid
    remain = {broker for broker in others if seen.brokers[broker].up and not seen.brokers[broker].cordoned}
    if len(remain) >= seen.factor:
        return None
    message = (
        f"{counted(len(remain), 'broker')} would remain that are up and not cordoned, and {seen.factor} replicas of a "
        "partition need as many: add brokers, or name fewer"
    )
    return Standing(Reason.NOT_ENOUGH_BROKERS, message)


def trouble_of(found: PlanSeen, recorded: RecordedPlan, content: str, avoid: frozenset[int]) -> str | None:
    """Say why a plan that is there cannot go on; `content` is the digest of what it does.

    `avoid` are brokers that BrokerDecommissions empty, other than its owner.
    """
    plan = found.plan
    if found.spec_digest != recorded.spec_digest:
        return f"the spec of {plan.name} is not as it was created"
    if recorded.approved and recorded.digest != content:
        return f"{plan.name} is not as it was approved"
    if recorded.approved and not avoid <= set(plan.spec.goal.avoid_brokers or ()) and (taken := avoid & filled(found)):
        return f"{plan.name} would fill {named_brokers(taken)}, which another BrokerDecommission empties"
    said = plan.status.conditions if plan.status.observed_generation == plan.generation else ()
    true = {c.type: c for c in said if c.status is ConditionStatus.TRUE}
    if stale := true.get("PlanStale"):
        return f"{plan.name} does not fit the cluster any more: {stale.message}"
    if plan.planned and found.spoilt:
        return f"{plan.name}: {found.spoilt.message}"
    stalled = true.get("Stalled")
    if stalled and stalled.reason not in OF_THE_CLUSTER and not found.advancing:
        return f"{plan.name} does not go on: {stalled.message}"
    return None
