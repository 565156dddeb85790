"""What an approval covers: a further plan that merely evacuates the same brokers, within the approved bytes.

It is judged by the plan's manifests, since they are what is carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from reassign.api.partition_reassignment import PartitionEntry, PartitionReassignmentSpec
from reassign.api.reassignment_record import RecordedApproval
from reassign.core.plans.model import Manifest
from reassign.text import amount, counted, named_brokers

COVERED_PERCENT = 110
"""How many bytes all plans under one approval may copy, in percent of those that were approved."""
MAX_REASONS = 5
NOT_KNOWN = "it is not as it was worked out before it was created, so what it copies is not known"


def beyond(
    manifests: Sequence[Manifest], brokers: frozenset[int], approval: RecordedApproval, copied: Sequence[int]
) -> list[str]:
    """Say why an approval to evacuate these brokers does not cover a further plan, the first few reasons.

    It covers the plan where there are none. `copied` are the bytes of each wave, none where they are not known.
    """
    return [*islice(_beyond(manifests, brokers, approval, copied), MAX_REASONS)]


def _beyond(
    manifests: Sequence[Manifest], brokers: frozenset[int], approval: RecordedApproval, known: Sequence[int]
) -> Iterator[str]:
    copied = approval.begun_bytes + sum(known)
    if not known:
        yield NOT_KNOWN
    elif copied * 100 > approval.bytes * COVERED_PERCENT:
        approved = amount(approval.bytes)
        yield f"with it {amount(copied)} are copied, more than {COVERED_PERCENT} % of the {approved} that were approved"
    yield from _otherwise(manifests, brokers)


def otherwise(manifests: Sequence[Manifest], brokers: frozenset[int]) -> list[str]:
    """Say what a plan does beside evacuating these brokers, the first few things."""
    return [*islice(_otherwise(manifests, brokers), MAX_REASONS)]


def _otherwise(manifests: Sequence[Manifest], brokers: frozenset[int]) -> Iterator[str]:
    for manifest in manifests:
        for entry in PartitionReassignmentSpec.parse(manifest["spec"]).partitions:
            if why := _not_evacuated(entry, brokers):
                yield f"{entry.topic}-{entry.partition} {why}"


def _not_evacuated(entry: PartitionEntry, brokers: frozenset[int]) -> str | None:
    """Say what an entry does beside replacing a partition's replicas on these brokers, each in its place."""
    before, after = entry.expected_replicas, entry.replicas
    if before is None:
        return "does not say where its replicas are"
    if brokers.isdisjoint(before):
        return f"has no replica on {named_brokers(brokers)}"
    if landing := brokers.intersection(after):
        return f"is to be on {named_brokers(landing)}"
    if not len(set(after)) == len(after) == len(before):
        return f"has {counted(len(before), 'replica')}, and is to have {len(set(after))}"
    if leaving := set(before) - set(after) - brokers:
        return f"is to leave {named_brokers(leaving)}"
    if any(old not in brokers and old != new for old, new in zip(before, after, strict=True)):
        return f"is on {list(before)}, and is to be on {list(after)}: replicas that stay change their places"
    if any(broker in before for broker, _ in entry.named):
        return "is to change the log directory of a replica that stays"
    return None
