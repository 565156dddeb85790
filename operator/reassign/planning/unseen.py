"""What an observation of a cluster did not show, and the sentences about it. No arrays: the watch of plans has none.

Metadata leaves out topics that the Kafka user may not describe, without a word. So that a broker is empty is known only
where each of its logs has metadata, and where it has reported all of its log directories, none of them offline.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from reassign.text import amount, counted, listed, named_brokers

UNREAD = "topics that could not be read"
GRANT = "grant the Kafka user DESCRIBE and DESCRIBE_CONFIGS on these topics"
NOT_SAID = "the snapshot does not say it, because an earlier version took it; take it again"
NOT_REPORTED = "log directories are offline, or were not reported"


class UnseenLogs(NamedTuple):
    """The logs of a topic on one broker that metadata does not show, or whose configuration could not be read."""

    broker: int
    """The broker's id."""
    topic: str
    logs: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Unseen:
    """What an observation did not show."""

    logs: tuple[UnseenLogs, ...] = ()
    unread: frozenset[str] = frozenset()
    """Topics that are there, and could not be read, or not their configurations. Their logs are among `logs`."""
    silent: frozenset[int] = frozenset()
    """The ids of brokers that did not report their log directories, or have offline ones."""

    @property
    def topics(self) -> frozenset[str]:
        return self.unread | {one.topic for one in self.logs}


ALL_SEEN = Unseen()


def on_drained(unseen: Unseen | None, drained: Set[int], included: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Yield what stays, or may stay, on brokers to be emptied, each with the nearest to that; None is not known."""
    if unseen is None:
        if drained:
            yield _not_known(drained), NOT_SAID
        return
    if logs := [one for one in unseen.logs if one.broker in drained and included(one.topic)]:
        yield logs_named(logs, ", to be emptied,"), f"they stay; {GRANT}, and plan again"
    if silent := drained & unseen.silent:
        yield (
            _not_known(silent),
            f"{NOT_REPORTED}; once all are reported online, or the brokers are unregistered (Kafka 4.0), it is known",
        )


def left_out(logs: Collection[UnseenLogs], unread: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield what a goal does not count, if anything: these logs and topics, with the nearest to that."""
    if logs or unread:
        yield logs_named(logs, "", unread), f"they do not count, and stay as they are; {GRANT}, and plan again"


def unseen_notes(unseen: Unseen | None) -> Iterator[str]:
    """Yield what an observation did not show, a sentence each; None is not known."""
    if unseen is None:
        yield f"what could not be seen is not known: {NOT_SAID}"
        return
    for what, _ in left_out(unseen.logs, unseen.unread):
        yield f"left out: {what}; {GRANT}"
    if unseen.silent:
        yield f"{_not_known(unseen.silent)}: {NOT_REPORTED}"


def logs_named(logs: Collection[UnseenLogs], which: str = "", unread: Collection[str] = ()) -> str:
    """Return the number and bytes of logs, their brokers, and their topics with those that are `unread`."""
    topics = f"{UNREAD}: {listed(sorted({*unread, *(one.topic for one in logs)}))}"
    if not logs:
        return topics
    number, size = sum(one.logs for one in logs), sum(one.bytes for one in logs)
    brokers = named_brokers({one.broker for one in logs})
    return f"{counted(number, 'log')} ({amount(size)}) on {brokers}{which} of {topics}"


def _not_known(brokers: Set[int]) -> str:
    return f"it is not known what {named_brokers(brokers, 'has')} of {UNREAD}"
