"""A problem: why something cannot be done now, and what to do about it, for each who may read it.

A sentence names resources, topics, brokers and addresses that not everyone may know. So a problem keeps them apart from
its words, each name with who may read it, and is rendered where it enters a status: `render` is the only way there.
What follows from a resource's own spec, or from a partition that it may move, is plain words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reassign.api.names import matches
from reassign.errors import Reason, ReassignError
from reassign.text import MAX_NAMED, listed


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and who may read it: the users of these namespaces, and those who may move its topic.

    The KafkaCluster's own namespace reads every name but those of other KafkaClusters.
    """

    text: str
    topic: str | None = None
    namespaces: frozenset[str] = frozenset()
    elsewhere: bool = False
    """Whether it is the name of another KafkaCluster."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names in a sentence."""

    names: tuple[Name, ...]
    hidden: str
    """Stands in the sentence where the reader may read none of the names."""
    most: int = 5
    """How many names the sentence has at most."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Those who read a status: the users of a namespace, and the patterns of the topics that they may move."""

    namespace: str
    topics: tuple[str, ...] = ()
    owner: bool = False
    """Whether it is the KafkaCluster's own namespace."""

    def reads(self, name: Name) -> bool:
        """Whether the audience may read a name."""
        if (self.owner and not name.elsewhere) or self.namespace in name.namespaces:
            return True
        return name.topic is not None and matches(name.topic, self.topics)


@dataclass(frozen=True, slots=True, init=False)
class Problem:
    """Why a partition cannot be moved now, with a sentence that says what to do."""

    reason: Reason
    parts: tuple[str | Names, ...]

    def __init__(self, reason: Reason, *parts: str | Names) -> None:
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "parts", parts)

    @property
    def message(self) -> str:
        """The sentence with all names: for logs, and once it is rendered."""
        return "".join(_spoken(part, None) for part in self.parts)


def render(problem: Problem, audience: Audience | None) -> Problem:
    """Return the problem as this audience may read it; all of it where there is no bound on who may."""
    return Problem(problem.reason, "".join(_spoken(part, audience) for part in problem.parts))


def _spoken(part: str | Names, audience: Audience | None) -> str:
    if isinstance(part, str):
        return part
    read = [name.text for name in part.names if audience is None or audience.reads(name)]
    return listed(read, len(part.names), most=part.most) if read else part.hidden


def private(text: str, hidden: str) -> Names:
    """Return words for the KafkaCluster's own namespace alone; all others read `hidden`."""
    return Names((Name(text),), hidden)


PLANNED = frozenset(
    {
        Reason.INVALID_RACKS,
        Reason.INVALID_GOAL,
        Reason.NOT_ENOUGH_BROKERS,
        Reason.NOTHING_SELECTED,
        Reason.PLAN_TOO_LARGE,
        Reason.PLANNING_FAILED,
        Reason.INSUFFICIENT_MEMORY,
    }
)
"""Reasons whose messages speak of the plan alone."""


def error_problem(error: ReassignError) -> Problem:
    """Return the problem of an error in using the cluster; it may name addresses, Secrets and what others have."""
    if error.reason in PLANNED:
        return Problem(error.reason, error.message)
    hidden = "the Kafka cluster cannot be used for this now; the users of the KafkaCluster's namespace can see why"
    return Problem(error.reason, private(error.message, hidden))


def bug_problem(error: Exception, keeps: str) -> Problem:
    """Return the problem of an unforeseen error; `keeps` says what it keeps from happening."""
    return Problem(
        Reason.INTERNAL_ERROR,
        f"a bug of the operator ({type(error).__name__}) keeps {keeps}; its log has the details: report it",
    )


def unwritten_problem(error: ReassignError, namespace: str) -> Problem:
    """Return the problem of a resource in this namespace whose record, finalizer or status could not be written."""
    why = Name(error.message, namespaces=frozenset({namespace}))
    return Problem(
        error.reason, "its record or status cannot be written: ", Names((why,), "the operator's log has the reason")
    )


def ids(brokers: Iterable[int]) -> str:
    """Return broker ids for a sentence; of a large cluster some, and how many more there are."""
    return listed(sorted(brokers), most=MAX_NAMED)
