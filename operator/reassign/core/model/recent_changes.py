"""The configuration changes of the last seconds, which a read may not show yet, and what others change again and again.

A throttle that another client changed is set again at once, and after growing waits when that repeats. Where brokers
copy faster than they should, the waits stay short: nothing else bounds the moves in flight.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.model.configs import Change, ConfigKey, ConfigResourceType, Observed, items, put
from reassign.core.model.forwarding import SETTLE_SECONDS, Forwarding, Write
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
        """Return how long the throttle has to stand; until then it is not set again."""
        return min(REPEAT_SECONDS * 2.0 ** min(self.times - 1, 10), longest)


class SentChange(NamedTuple):
    """A change, and whether the broker that it was sent to has confirmed it."""

    write: Write
    change: Change
    answered: bool


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """The configuration changes of this process's last seconds, by a monotonic clock."""

    started: float
    now: float = 0.0
    """When the last read began."""
    sent: tuple[SentChange, ...] = ()
    """Those that a read may not show yet."""
    made: Mapping[ConfigKey, tuple[SentChange, ...]] = field(default_factory=dict)
    """All of the last minutes, in their order."""
    drifts: Mapping[ConfigKey, Drift] = field(default_factory=dict)
    """Configurations that another client changed in the last minutes."""
    forwarding: Forwarding = field(default_factory=Forwarding)
    earlier: Write | None = None
    """The last change that an earlier process recorded; the broker is that of topics, where one is recorded."""

    def observe(self, began: float, forwarding: Forwarding | None = None) -> RecentChanges:
        """Return the state after a read that began then."""
        drifts = {key: drift for key, drift in self.drifts.items() if began - drift.at < FORGOTTEN_SECONDS}
        kept = (
            (key, tuple(one for one in sent if began - one.write.at < FORGOTTEN_SECONDS))
            for key, sent in self.made.items()
        )
        made = {key: sent for key, sent in kept if sent}
        after = replace(self, now=began, forwarding=forwarding or self.forwarding, made=made, drifts=drifts)
        return replace(after, sent=tuple(sent for sent in self.sent if began - after._shown(sent) < SETTLE_SECONDS))

    def remember(self, outcomes: Mapping[Change, Outcome], at: float) -> RecentChanges:
        """Return the state after these changes; one without an answer may never be carried out, or later."""
        new = [
            SentChange(Write(self.forwarding.via_of(change.key.resource), at), change, answered)
            for change, outcome in outcomes.items()
            if outcome.result in (Result.APPLIED, Result.UNKNOWN)
            for answered in [outcome.result is Result.APPLIED]
        ]
        made = {**self.made}
        for sent in new:
            made[sent.change.key] = (*made.get(sent.change.key, ()), sent)
        return replace(self, sent=(*self.sent, *new), made=made)

    def drifted(self, keys: Iterable[ConfigKey], at: float) -> RecentChanges:
        """Return the state after these were set again, because another client had changed them."""
        drifts = {key: Drift(self.drifts[key].times + 1 if key in self.drifts else 1, at) for key in keys}
        return replace(self, drifts={**self.drifts, **drifts})

    def took(self, key: ConfigKey, texts: Collection[str]) -> frozenset[str]:
        """Return which of these values of a configuration, or items of a list, our own changes have taken away
        again."""
        left: str | None = ",".join(sorted(texts))
        for sent in self.made.get(key, ()):
            left = sent.change.of(left)
        return frozenset(texts).difference(items(left))

    def unsteady(self, key: ConfigKey, longest: float = LONGEST_LOOSER_SECONDS) -> bool:
        """Whether a configuration was set again too lately to rely on it, or to set it once more."""
        drift = self.drifts.get(key)
        return drift is not None and self.now - drift.at < drift.wait(longest)

    @property
    def repeated(self) -> Collection[tuple[ConfigKey, Drift]]:
        """The configurations that another client changes again and again."""
        return sorted((key, drift) for key, drift in self.drifts.items() if drift.times >= REPEATED)

    def settled(self, keys: Collection[ConfigKey], recorded: Collection[ConfigKey] = ()) -> Set[ConfigKey]:
        """Return the configurations that a read shows as they are.

        An earlier process may have changed them just before it ended, so a new one waits as long first. A recorded
        change may have been made without an answer.
        """
        sent = {sent.change.key for sent in self.sent}
        return {key for key in keys if key not in sent and self._old(key, key in recorded)}

    def _old(self, key: ConfigKey, recorded: bool) -> bool:
        since = self.started
        if recorded and self.earlier:
            reader = self.forwarding.via_of(key.resource)
            broker = reader if key.resource.type is ConfigResourceType.BROKER else self.earlier.via
            since = max(since, self.forwarding.shown(Write(broker, self.earlier.at), reader))
        return self.now - since >= SETTLE_SECONDS

    def in_doubt(self, record: RecordedConfigs | None) -> list[Write]:
        """Return the writes without an answer, and those of an earlier process that are recorded."""
        found = [sent.write for sent in self.sent if not sent.answered]
        if record is None or (self.now and not self.earlier):
            return found
        earlier = self.earlier or Write(record.via, self.started)
        return [*found, earlier, *(Write(b.broker, earlier.at) for b in record.brokers)]

    def may_land_elsewhere(self, via: int | None) -> bool:
        """Whether a change of topics without an answer may still land that was sent to another broker than this one."""
        topics = (
            s.write for s in self.sent if s.change.key.resource.type is ConfigResourceType.TOPIC and not s.answered
        )
        writes = [*topics, *([self.earlier] if self.earlier else [])]
        return any(write.via != via and self.now < self.forwarding.landed(write) for write in writes)

    def over(self, observed: Observed) -> Observed:
        """Return a read with the confirmed changes since laid over it."""
        shown = {resource: None if configs is None else dict(configs) for resource, configs in observed.items()}
        for _, change, answered in self.sent:
            configs = shown.get(change.key.resource)
            if answered and configs is not None:
                put(configs, change)
        return shown

    def _shown(self, sent: SentChange) -> float:
        reader = self.forwarding.via_of(sent.change.key.resource)
        return sent.write.at if sent.answered else self.forwarding.shown(sent.write, reader)
