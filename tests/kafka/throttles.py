"""Moves that are throttled on real brokers."""

from __future__ import annotations

from collections.abc import Sequence

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter
from reassign.core.model.verdict import Verdict
from tests.kafka.harness import Kafka, eventually
from tests.unit.throttling import Operator


def tick(operator: Operator, kafka: Kafka, *verdicts: Verdict) -> bool:
    topics = [tp.topic for verdict in verdicts for tp in verdict.record]
    return operator.tick(kafka.observe(*topics, doubts=operator.doubts), verdicts)


def begin(operator: Operator, kafka: Kafka, name: str, old: Sequence[int], new: Sequence[int], rate: str) -> Verdict:
    """Tick until the move may be altered, and alter it."""
    tp, uid = TopicPartition(name, 0), name.replace("_", "-")
    operator.know(kafka.observe(name))

    def ready() -> bool:
        verdict = operator.verdict(uid, {tp: (old, new)}, rate)
        tick(operator, kafka, verdict)
        return bool(operator.after(verdict).steps)

    eventually(ready)
    [outcome] = kafka.perform(Alter(tp, tuple(new)))
    assert outcome == APPLIED
    return operator.verdict(uid, {tp: (old, new)}, rate, begun=True)
