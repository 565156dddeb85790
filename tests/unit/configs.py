"""Broker and topic configurations in memory, changed as KRaft's controller does and read late, as brokers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reassign.api.kafka_cluster import ThrottleStatus
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Observed, put
from reassign.core.model.memory import LANDING_SECONDS
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.steps import APPLIED, Outcome, Result
from reassign.core.throttle.desired import ThrottledMove
from reassign.core.throttle.diff import Diff, fit, read_record

LOST = Outcome(Result.UNKNOWN)
Store = dict[ConfigResource, dict[str, str]]


def broker(number: int) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, str(number))


def topic(name: str = "orders") -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name)


def copy(store: Mapping[ConfigResource, Mapping[str, str]]) -> Store:
    return {resource: dict(configs) for resource, configs in store.items()}


@dataclass
class Throttler:
    """Ticks the core's throttles as the operator does: record first, then the changes; one tick is a second."""

    store: Store
    status: ThrottleStatus | None = None
    now: float = 100.0
    lag: int = 0
    """By how many ticks reads are older than our own writes."""
    down: set[ConfigResource] = field(default_factory=set)
    lately: RecentChanges = field(default_factory=lambda: RecentChanges(started=0.0))
    limbo: list[tuple[float, Change]] = field(default_factory=list)
    """Requests that are still on their way, and when they land."""
    _past: list[Store] = field(default_factory=list)

    def tick(
        self, moves: Sequence[ThrottledMove] = (), *, die_after: int | None = None, lands_after: float | None = None
    ) -> Diff:
        """`die_after` steps the process is killed, the record being the first step, and another one starts.

        With `lands_after` the answers are lost, and the changes are made that many seconds later.
        """
        self.now += 1
        self._land(self.now)
        self._past.append(copy(self.store))
        shown = self._past[-1 - min(self.lag, len(self._past) - 1)]
        observed: Observed = {resource: configs for resource, configs in shown.items() if resource not in self.down}
        self.lately = self.lately.observe(self.now)
        planned, _ = fit(self.status, moves, observed, self.lately)
        steps: list[Change | None] = [None, *planned.changes]
        for number, step in enumerate(steps):
            if number == die_after:
                self.restart()
                break
            if step is None:
                # what the API server has read back from the wire
                self.status = planned.record and ThrottleStatus.parse(planned.record.wire())
                continue
            assert step.key in read_record(self.status), f"{step} is not recorded"
            self.limbo.append((self.now + (lands_after or 0), step))
            self._land(self.now)
            outcome = APPLIED if lands_after is None else LOST
            self.lately = self.lately.remember({step: outcome}, self.now)
            self.lately = self.lately.drifted(planned.drifted & {step.key}, self.now)
        return planned

    def _land(self, until: float) -> None:
        for at, change in [late for late in self.limbo if late[0] <= until]:
            put(self.store[change.key.resource], change)
            self.limbo.remove((at, change))

    def ticks(self, count: int, moves: Sequence[ThrottledMove] = ()) -> None:
        for _ in range(count):
            self.tick(moves)

    def restart(self) -> None:
        self._land(self.now + LANDING_SECONDS)
        self.lately = RecentChanges(started=self.now)

    def another_client(self, change: Change) -> None:
        """Land what is pending, then change a config as another client, at once visible to reads.

        Without a compare-and-set, our next write overwrites an edit that we have not read.
        """
        self._land(self.now + LANDING_SECONDS)
        put(self.store[change.key.resource], change)
        for past in self._past:
            put(past[change.key.resource], change)

    def at(self, key: ConfigKey) -> str | None:
        return self.store[key.resource].get(key.config)
