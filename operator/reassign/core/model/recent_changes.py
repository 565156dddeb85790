"""The configuration changes of the last seconds, which a read may not show yet, and what others change again and again.

Drift is set again at once, and when it repeats after growing waits. Where it leaves brokers to copy faster than they
should, these stay short: nothing else protects the moves in flight.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reassign.core.model.configs import Change, ConfigKey, Observed, put
from reassign.core.model.memory import LANDING_SECONDS, SETTLE_SECONDS
from reassign.core.model.steps import Outcome, Result

REPEAT_SECONDS = 5.0
"""How long a throttle that was set again has to stand, so that it is set again at once; twice as long each time."""
LONGEST_LOOSER_SECONDS, LONGEST_STRICTER_SECONDS = 30.0, 300.0
"""The longest wait, where another client has lifted a throttle, and where it has set a lower rate."""
FORGOTTEN_SECONDS = 600.0
REPEATED = 3


class Drift(NamedTuple):
    """How often a throttle was set again after another client had changed it, and when that was last."""

    times: int
    at: float

    def wait(self, longest: float = LONGEST_LOOSER_SECONDS) -> float:
        """How long it has to stand; until then it is not set again."""
        return min(REPEAT_SECONDS * 2.0 ** min(self.times - 1, 10), longest)


class SentChange(NamedTuple):
    """A change, as late as when it landed, and whether the broker has confirmed it."""

    at: float
    change: Change
    answered: bool


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """The configuration changes of this process's last seconds, by a monotonic clock.

    `now` is when the last read began. `drifts` are the configurations that another client changed in the last minutes.
    """

    started: float
    now: float = 0.0
    sent: tuple[SentChange, ...] = ()
    drifts: Mapping[ConfigKey, Drift] = field(default_factory=dict)

    def observe(self, began: float) -> RecentChanges:
        """After a read that began then."""
        sent = tuple(sent for sent in self.sent if began - sent.at < SETTLE_SECONDS)
        drifts = {key: drift for key, drift in self.drifts.items() if began - drift.at < FORGOTTEN_SECONDS}
        return replace(self, now=began, sent=sent, drifts=drifts)

    def remember(self, outcomes: Mapping[Change, Outcome], at: float) -> RecentChanges:
        """After these changes; one without an answer may not have been carried out, or may be later."""
        new = [
            SentChange(at if answered else at + LANDING_SECONDS, change, answered)
            for change, outcome in outcomes.items()
            if outcome.result is not Result.REFUSED
            for answered in [outcome.result is Result.APPLIED]
        ]
        return replace(self, sent=(*self.sent, *new))

    def drifted(self, keys: Iterable[ConfigKey], at: float) -> RecentChanges:
        """After these were set again, because another client had changed them."""
        drifts = {key: Drift(self.drifts[key].times + 1 if key in self.drifts else 1, at) for key in keys}
        return replace(self, drifts={**self.drifts, **drifts})

    def unsteady(self, key: ConfigKey, longest: float = LONGEST_LOOSER_SECONDS) -> bool:
        """Whether it was set again too lately to rely on it, or to set it once more."""
        drift = self.drifts.get(key)
        return drift is not None and self.now - drift.at < drift.wait(longest)

    @property
    def repeated(self) -> Collection[tuple[ConfigKey, Drift]]:
        """What another client changes again and again."""
        return sorted((key, drift) for key, drift in self.drifts.items() if drift.times >= REPEATED)

    def settled(self, key: ConfigKey) -> bool:
        """Whether a read shows the configuration as it is.

        An earlier process may have changed it just before it ended, so a new one waits as long first.
        """
        old = self.now - self.started >= SETTLE_SECONDS
        return old and all(sent.change.key != key for sent in self.sent)

    def over(self, observed: Observed) -> Observed:
        """A read with the confirmed changes since laid over it."""
        shown = {resource: None if configs is None else dict(configs) for resource, configs in observed.items()}
        for _, change, answered in self.sent:
            configs = shown.get(change.key.resource)
            if answered and configs is not None:
                put(configs, change)
        return shown
