"""What of a plan's goal is not reached, as the cluster is: of a drain and of a replication factor.

A drain is a statement about whole brokers. Metadata leaves out, without a word, the topics that the Kafka user may not
describe; the brokers' logs show them. So what is not known is said as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reassign.api.goal import GoalPart
from reassign.api.limits import MAX_UNMET
from reassign.api.names import matches
from reassign.api.reassignment_plan import Goal, ReassignmentPlanSpec, Unmet
from reassign.core.model.layout import Layout
from reassign.core.plans.model import PlanResource
from reassign.planning.unseen import left_out, on_drained
from reassign.text import counted, listed, named_brokers


def drained(goal: Goal, layout: Layout) -> frozenset[int]:
    """Return the brokers that hold nothing in the end."""
    others = layout.ids - set(goal.brokers) if goal.brokers is not None else frozenset[int]()
    return frozenset(goal.drain_brokers or ()) | others


def cut_short(unmet: Sequence[Unmet]) -> tuple[Unmet, ...]:
    """Return as many parts as a status has room for; of more, the last one counts the others."""
    if len(unmet) <= MAX_UNMET:
        return tuple(unmet)
    first, others = unmet[: MAX_UNMET - 1], unmet[MAX_UNMET - 1 :]
    drains = any(one.part is GoalPart.DRAIN for one in others)
    nearest = "a status has no room for them; `kubectl kafka-reassign plan` with this goal names all"
    more = Unmet(what=f"{len(others)} more parts of the goal", nearest=nearest, part=GoalPart.DRAIN if drains else None)
    return (*first, more)


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
    return tuple(_not_known(plan, layout, _Topics(plan.spec, allowed)))


def _not_known(plan: PlanResource, layout: Layout, topics: _Topics) -> Iterator[Unmet]:
    drained, goal = frozenset(_to_empty(plan, layout)), plan.spec.goal
    unseen = layout.unseen(drained)
    for what, nearest in on_drained(unseen, drained, topics.included):
        yield Unmet(what=what, nearest=nearest, part=GoalPart.DRAIN)
    lying = {(broker, topic) for broker in drained for topic in layout.replicas.get(broker, ())}
    lying |= {(one.broker, one.topic) for one in unseen.logs if one.broker in drained}
    if others := {broker for broker, topic in lying if topics.of_others(topic)}:
        yield Unmet(
            what=f"{named_brokers(others, 'has')} replicas that this namespace may not move",
            nearest="they stay; a plan in the KafkaCluster's namespace can move them",
            part=GoalPart.DRAIN,
        )
    if goal.balance or goal.replication_factor is not None:
        # by name alone: a watch does not ask all brokers for their logs
        unread = [topic for topic in unseen.unread if topics.included(topic) and not topics.spared(topic)]
        for what, nearest in left_out((), unread):
            yield Unmet(what=what, nearest=nearest)


def _to_empty(plan: PlanResource, layout: Layout) -> list[int]:
    """Return the drained brokers that are watched, ascending."""
    return sorted(drained(plan.spec.goal, layout) - set(plan.status.unregistered_brokers))


def _on_drained(plan: PlanResource, layout: Layout, allowed: Sequence[str]) -> Iterator[Unmet]:
    """Yield what metadata shows on brokers that are to be empty."""
    topics = _Topics(plan.spec, allowed)
    leaving, kept = list[tuple[int, str, int]](), list[tuple[int, str, int]]()
    for broker in _to_empty(plan, layout):
        for topic, number in layout.replicas.get(broker, {}).items():
            if topics.included(topic):
                (kept if topics.kept(topic) else leaving).append((broker, topic, number))
    for replicas, of, nearest in (
        (leaving, "", "they stay; another plan moves them"),
        (kept, " of excluded topics", "they stay; to move them too, exclude no topic"),
    ):
        if replicas:
            brokers, names, numbers = zip(*replicas, strict=True)
            yield Unmet(
                what=f"{counted(sum(numbers), 'replica')}{of} on {named_brokers({*brokers})}, to be emptied "
                f"(topics: {listed(sorted({*names}))})",
                nearest=nearest,
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


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics of a goal, for a namespace that may move the `allowed` ones."""

    spec: ReassignmentPlanSpec
    allowed: Sequence[str]

    def included(self, topic: str) -> bool:
        return matches(topic, self.spec.topics.include) and matches(topic, self.allowed)

    def of_others(self, topic: str) -> bool:
        """Whether its name is not for this namespace, not even by whether a pattern of the plan matches it."""
        return not matches(topic, self.allowed)

    def spared(self, topic: str) -> bool:
        """Whether it keeps its replication factor."""
        return matches(topic, self.spec.topics.excluded)

    def kept(self, topic: str) -> bool:
        """Whether it stays on drained brokers: the topics that are excluded by default leave them."""
        return matches(topic, self.spec.topics.exclude or ())
