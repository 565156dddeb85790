"""The configuration changes of the last seconds, which a read may not show yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from reassign.core.model.memory import LANDING_SECONDS, SETTLE_SECONDS
from reassign.core.throttle.configs import Change, ConfigKey, Observed, put


@dataclass(slots=True)
class Lately:
    """What this process wrote in its last seconds: reads can be older than that. By a monotonic clock.

    `now` is when the last read began.
    """

    started: float
    now: float = 0.0
    _sent: list[tuple[float, Change, bool]] = field(default_factory=list)

    def observe(self, began: float) -> None:
        """Take note of a read that began then."""
        self.now = began
        self._sent = [sent for sent in self._sent if began - sent[0] < SETTLE_SECONDS]

    def touch(self, change: Change, at: float, *, answered: bool) -> None:
        """It was sent; without an answer it may not have been carried out, or may be later."""
        self._sent.append((at if answered else at + LANDING_SECONDS, change, answered))

    def settled(self, key: ConfigKey) -> bool:
        """Whether a read shows the configuration as it is.

        An earlier process may have changed it just before it ended, so a new one waits as long first.
        """
        old = self.now - self.started >= SETTLE_SECONDS
        return old and all(change.key != key for _, change, _ in self._sent)

    def over(self, observed: Observed) -> Observed:
        """A read with what was written since laid over it."""
        shown = {resource: None if configs is None else dict(configs) for resource, configs in observed.items()}
        for _, change, answered in self._sent:
            configs = shown.get(change.key.resource)
            if answered and configs is not None:
                put(configs, change)
        return shown
