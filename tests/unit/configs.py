"""Broker and topic configurations in memory, changed as KRaft's controller does and read late, as brokers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from reassign.api.config_keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_REPLICAS
from reassign.api.kafka_cluster import ThrottleUser
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.desired import InterBrokerMove, ThrottledMove
from reassign.core.configs.diff import Diff, fit, from_record
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Observed, put
from reassign.core.model.forwarding import SETTLE_SECONDS, Forwarded, Forwarding, MetadataOffsets, Write
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Outcome, Result

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
    status: RecordedConfigs | None = None
    now: float = 100.0
    lag: int = 0
    """By how many ticks reads are older than our own writes."""
    down: set[ConfigResource] = field(default_factory=set)
    lately: RecentChanges = field(default_factory=lambda: RecentChanges(started=0.0))
    limbo: list[tuple[float, int, Change]] = field(default_factory=list)
    """Requests that a broker holds, and when they land. It lists nothing before that."""
    silent: set[int] = field(default_factory=set)
    """Brokers that answer nothing."""
    forwarding: Forwarding = field(default_factory=Forwarding)
    _past: list[Store] = field(default_factory=list)

    def tick(
        self, moves: Sequence[ThrottledMove] = (), *, die_after: int | None = None, lands_after: float | None = None
    ) -> Diff:
        """`die_after` steps the process is killed, the record being the first step, and another one starts.

        With `lands_after` the answers are lost, and the changes are made that many seconds later.
        """
        self.now += 1
        # one may answer a while before what it holds lands: a reconnect changes the order
        held = {via for lands, via, _ in self.limbo if lands - self.now > 5} | self.silent
        self._land(self.now)
        self._past.append(copy(self.store))
        shown = self._past[-1 - min(self.lag, len(self._past) - 1)]
        observed: Observed = {resource: configs for resource, configs in shown.items() if resource not in self.down}
        brokers = [broker for broker in range(4) if broker not in held]
        shown_until = dict.fromkeys(brokers, len(self._past) - self.lag)
        forwarded = Forwarded(min(brokers, default=None), brokers, MetadataOffsets(len(self._past), shown_until))
        self.forwarding = self.forwarding.observe(self.now, forwarded)
        self.lately = self.lately.observe(self.now, self.forwarding)
        planned, _ = fit(self.status, moves, observed, self.lately)
        steps: list[Change | None] = [None, *planned.changes]
        for number, step in enumerate(steps):
            if number == die_after:
                self.restart()
                break
            if step is None:
                # what the API server has read back from the wire
                self.status = planned.record and RecordedConfigs.parse(planned.record.wire())
                continue
            assert step.key in from_record(self.status), f"{step} is not recorded"
            via = self.forwarding.via_of(step.key.resource)
            assert via is not None
            self.limbo.append((self.now + (lands_after or 0), via, step))
            self._land(self.now)
            outcome = APPLIED if lands_after is None else LOST
            self.lately = self.lately.remember({step: outcome}, self.now)
            self.lately = self.lately.drifted(planned.drifted & {step.key}, self.now)
            if lands_after is not None:
                self.forwarding = self.forwarding.lost([via])
        return planned

    def _land(self, until: float) -> None:
        for late in [late for late in self.limbo if late[0] <= until]:
            put(self.store[late[2].key.resource], late[2])
            self.limbo.remove(late)

    def ticks(self, count: int, moves: Sequence[ThrottledMove] = ()) -> None:
        for _ in range(count):
            self.tick(moves)

    def restart(self) -> None:
        earlier = Write(self.forwarding.via, self.now) if self.status else None
        self.forwarding = Forwarding()
        self.lately = RecentChanges(started=self.now, earlier=earlier)

    def another_client(self, change: Change) -> None:
        """Land what is pending, then change a config as another client, at once visible to reads.

        Without a compare-and-set, our next write overwrites an edit that we have not read.
        """
        self._land(inf)
        put(self.store[change.key.resource], change)
        for past in self._past:
            put(past[change.key.resource], change)

    def at(self, key: ConfigKey) -> str | None:
        return self.store[key.resource].get(key.config)


LEADERS, FOLLOWERS = ConfigKey(topic(), LEADER_REPLICAS), ConfigKey(topic(), FOLLOWER_REPLICAS)
SETTLED = int(SETTLE_SECONDS) + 1


def move(
    partition: int = 0, sources: Sequence[int] = (0, 1), adding: Sequence[int] = (2,), rate: int = 5000, user: str = "a"
) -> InterBrokerMove:
    user_ = ThrottleUser(namespace="kafka", name=user, uid=user)
    return InterBrokerMove(TopicPartition("orders", partition), frozenset(sources), frozenset(adding), user_, rate)


def store(**lists: str) -> Store:
    """Three brokers and a topic; its lists by `leaders` and `followers`."""
    names = {"leaders": LEADER_REPLICAS, "followers": FOLLOWER_REPLICAS}
    return {**{broker(b): {} for b in range(4)}, topic(): {names[name]: text for name, text in lists.items()}}


def rates(throttler: Throttler) -> dict[int, str | None]:
    """The rate of each broker, as a follower."""
    return {b: throttler.at(ConfigKey(broker(b), FOLLOWER_RATE)) for b in range(4)}
