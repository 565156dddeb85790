"""What of a plan's goal is not reached, as the cluster is: of a drain and of a replication factor.

A drain is a statement about whole brokers. Metadata leaves out, without a word, the topics that the Kafka user may not
describe; the brokers' logs show them. So what is not known is said as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reassign.api.goal import GoalPart
from reassign.api.names import matches
from reassign.api.reassignment_plan import Goal, ReassignmentPlanSpec, Unmet
from reassign.core.model.layout import Layout
from reassign.core.plans.model import PlanResource
from reassign.text import amount, counted, listed, named_brokers


def drained(goal: Goal, layout: Layout) -> frozenset[int]:
    """Return the brokers that hold nothing in the end."""
    left_out = layout.ids - set(goal.brokers) if goal.brokers is not None else frozenset[int]()
    return frozenset(goal.drain_brokers or ()) | left_out


def is_watched(plan: PlanResource) -> bool:
    """Whether a plan's goal was observed after its last wave, and names what can be watched at little cost."""
    goal = plan.spec.goal
    asks = goal.drains or goal.replication_factor is not None
    return asks and plan.planned and not plan.deleted and plan.status.goal_observed_time is not None


def unregistered(plan: PlanResource, layout: Layout) -> tuple[int, ...]:
    """Return the drained brokers that are gone, empty: their ids may be given to others."""
    known, named = set(plan.status.unregistered_brokers), plan.spec.goal.drain_brokers or ()
    gone = set(named) - layout.ids if layout.lists_fenced else set[int]()
    return tuple(sorted(known | gone))


def not_reached(plan: PlanResource, layout: Layout, allowed: Sequence[str]) -> tuple[Unmet, ...]:
    """Return what the replicas in this layout are short of; `allowed` are the topics that its namespace may move."""
    return (*_on_drained(plan, layout, allowed), *not_known(plan, layout, allowed), *_of_factor(plan, layout, allowed))


def not_known(plan: PlanResource, layout: Layout, allowed: Sequence[str]) -> tuple[Unmet, ...]:
    """Return what no plan of this namespace can move: on drained brokers, and topics that were left out of the plan."""
    topics = _Topics(plan.spec, allowed)
    others, unread, hidden, silent = set[int](), _Logs(), _Logs(), set[int]()
    for broker in _to_empty(plan, layout):
        if broker in layout.brokers and broker not in layout.log_dirs:
            silent.add(broker)
        if any(topics.of_others(topic) for topic in layout.replicas.get(broker, ())):
            others.add(broker)
        for topic, sizes in _hidden(layout, broker).items():
            if topics.of_others(topic):
                others.add(broker)
            elif topics.included(topic):
                (unread if topic in layout.unread else hidden).add(broker, topic, sizes)
    for topic in layout.unread:
        if topics.included(topic):
            unread.topics[topic] += 0
    return tuple(_said_of_unknown(others, unread, hidden, silent))


def _to_empty(plan: PlanResource, layout: Layout) -> list[int]:
    """Return the drained brokers that are watched, ascending."""
    return sorted(drained(plan.spec.goal, layout) - set(plan.status.unregistered_brokers))


def _said_of_unknown(others: set[int], unread: _Logs, hidden: _Logs, silent: set[int]) -> Iterator[Unmet]:
    if unread.topics:
        yield Unmet(
            what=f"topics that could not be read, or not their configurations: {listed(sorted(unread.topics))}",
            nearest="they stay as they are; grant DESCRIBE and DESCRIBE_CONFIGS on them, and plan again",
            part=GoalPart.DRAIN if unread.brokers else None,
        )
    if hidden.brokers:
        yield Unmet(
            what=f"{counted(hidden.number, 'log')} ({amount(hidden.bytes)}) on {named_brokers(hidden.brokers)}, to be "
            f"emptied, of topics that the Kafka user may not describe: {listed(sorted(hidden.topics))}",
            nearest="they stay; grant DESCRIBE on these topics, and plan again",
            part=GoalPart.DRAIN,
        )
    if others:
        yield Unmet(
            what=f"{named_brokers(others, 'has')} replicas that this namespace may not move",
            nearest="they stay; a plan in the KafkaCluster's namespace can move them",
            part=GoalPart.DRAIN,
        )
    if silent:
        yield Unmet(
            what=f"it is not known what {named_brokers(silent, 'has')} of topics that the Kafka user may not describe",
            nearest="their log directories were not reported; once they are, or the brokers are unregistered, it is",
            part=GoalPart.DRAIN,
        )


def _on_drained(plan: PlanResource, layout: Layout, allowed: Sequence[str]) -> Iterator[Unmet]:
    """Yield what metadata shows on brokers that are to be empty."""
    topics = _Topics(plan.spec, allowed)
    leaving, kept = _Logs(), _Logs()
    for broker in _to_empty(plan, layout):
        for topic, number in layout.replicas.get(broker, {}).items():
            if topics.included(topic):
                (kept if topics.kept(topic) else leaving).add(broker, topic, [0] * number)
    if leaving.brokers:
        yield Unmet(
            what=f"{counted(leaving.number, 'replica')} on {named_brokers(leaving.brokers)}, to be emptied "
            f"(topics: {listed(sorted(leaving.topics))})",
            nearest="they stay; another plan moves them",
            part=GoalPart.DRAIN,
        )
    if kept.brokers:
        yield Unmet(
            what=f"{counted(kept.number, 'replica')} of excluded topics on {named_brokers(kept.brokers)}, to be "
            f"emptied (topics: {listed(sorted(kept.topics))})",
            nearest="they stay; to move them too, exclude no topic",
            part=GoalPart.DRAIN,
        )


def _of_factor(plan: PlanResource, layout: Layout, allowed: Sequence[str]) -> Iterator[Unmet]:
    wanted = plan.spec.goal.replication_factor
    if wanted is None:
        return
    topics, others = _Topics(plan.spec, allowed), dict[str, Mapping[int, int]]()
    for topic, factors in layout.factors.items():
        if factors.keys() != {wanted} and topics.included(topic) and not topics.spared(topic):
            others[topic] = {factor: number for factor, number in factors.items() if factor != wanted}
    if others:
        number = sum(sum(factors.values()) for factors in others.values())
        found = {factor for factors in others.values() for factor in factors}
        yield Unmet(
            what=f"{counted(number, 'partition')} without the replication factor {wanted} "
            f"(topics: {listed(sorted(others))})",
            nearest=f"they have {listed(sorted(found))}; another plan changes that",
            part=GoalPart.REPLICATION_FACTOR,
        )


def _hidden(layout: Layout, broker: int) -> dict[str, list[int]]:
    """Return the bytes of each log of topics that metadata does not have, by topic."""
    found: dict[str, list[int]] = {}
    for directory in layout.log_dirs.get(broker, {}).values():
        for tp, size in directory.logs.items():
            if tp.topic not in layout.factors:
                found.setdefault(tp.topic, []).append(size)
    return found


@dataclass(slots=True)
class _Logs:
    """Logs, or replicas, on some brokers."""

    brokers: set[int] = field(default_factory=set)
    topics: Counter[str] = field(default_factory=Counter)
    bytes: int = 0

    @property
    def number(self) -> int:
        return self.topics.total()

    def add(self, broker: int, topic: str, sizes: Sequence[int]) -> None:
        self.brokers.add(broker)
        self.topics[topic] += len(sizes)
        self.bytes += sum(sizes)


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics of a goal, for a namespace that may move the `allowed` ones."""

    spec: ReassignmentPlanSpec
    allowed: Sequence[str]

    def included(self, topic: str) -> bool:
        return self._wanted(topic) and matches(topic, self.allowed)

    def of_others(self, topic: str) -> bool:
        return self._wanted(topic) and not matches(topic, self.allowed)

    def spared(self, topic: str) -> bool:
        """Whether it keeps its replication factor."""
        return matches(topic, self.spec.topics.excluded)

    def kept(self, topic: str) -> bool:
        """Whether it stays on drained brokers: the topics that are excluded by default leave them."""
        return matches(topic, self.spec.topics.exclude or ())

    def _wanted(self, topic: str) -> bool:
        return matches(topic, self.spec.topics.include)
