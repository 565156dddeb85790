"""The configuration changes of the last seconds, which a read may not show yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from reassign.core.model.configs import Change, ConfigKey, Observed, put
from reassign.core.model.memory import LANDING_SECONDS, SETTLE_SECONDS
from reassign.core.model.steps import Outcome, Result


class SentChange(NamedTuple):
    """A change, as late as when it landed, and whether the broker has confirmed it."""

    at: float
    change: Change
    answered: bool


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """The configuration changes of this process's last seconds, by a monotonic clock.

    `now` is when the last read began.
    """

    started: float
    now: float = 0.0
    sent: tuple[SentChange, ...] = ()

    def observe(self, began: float) -> RecentChanges:
        """After a read that began then."""
        sent = tuple(sent for sent in self.sent if began - sent.at < SETTLE_SECONDS)
        return replace(self, now=began, sent=sent)

    def remember(self, outcomes: Mapping[Change, Outcome], at: float) -> RecentChanges:
        """After these changes; one without an answer may not have been carried out, or may be later."""
        new = [
            SentChange(at if answered else at + LANDING_SECONDS, change, answered)
            for change, outcome in outcomes.items()
            if outcome.result is not Result.REFUSED
            for answered in [outcome.result is Result.APPLIED]
        ]
        return replace(self, sent=(*self.sent, *new))

    def settled(self, keys: Collection[ConfigKey]) -> Set[ConfigKey]:
        """The configurations that a read shows as they are.

        An earlier process may have changed them just before it ended, so a new one waits as long first.
        """
        old = self.now - self.started >= SETTLE_SECONDS
        return set(keys) - {sent.change.key for sent in self.sent} if old else set()

    def over(self, observed: Observed) -> Observed:
        """A read with the confirmed changes since laid over it."""
        shown = {resource: None if configs is None else dict(configs) for resource, configs in observed.items()}
        for _, change, answered in self.sent:
            configs = shown.get(change.key.resource)
            if answered and configs is not None:
                put(configs, change)
        return shown
