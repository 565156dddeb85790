"""A KafkaCluster that another installation of the operator may have claimed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from reassign.api.config_keys import FOLLOWER_RATE, RATES
from reassign.core.claim import Claim, ClaimState
from reassign.core.model.configs import Change, ConfigKey, Op, put
from reassign.kafka.claim import Membership
from tests.unit.configs import broker, copy
from tests.unit.throttled_brokers import NOTHING_SET, Client
from tests.unit.throttling import show_changes, throttle_its_move
from tests.unit.world import World

OTHER = Claim("other", datetime(2026, 1, 1, tzinfo=UTC), "10.0.0.1")
FREE = ClaimState(0.0, True)


class Claimed(World):
    """`main` moves OURS; `state` is what is known of the claim."""

    def __init__(self) -> None:
        self.state = FREE
        super().__init__()

    def new_loop(self) -> Any:
        loop, brokers = super().new_loop(), self.brokers

        def keep(membership: Membership) -> None:
            membership.state = self.state

        brokers.keep = keep  # type: ignore[attr-defined]
        loop.observer.installation = "ours"
        return loop

    def lose(self) -> None:
        """Another installation has the claim."""
        self.state = FREE.read(OTHER, 0.0)


class Throttled(Claimed):
    """The same, at 1 MiB/s."""

    def __init__(self) -> None:
        super().__init__()
        self.client = Client(copy(NOTHING_SET))
        throttle_its_move(self, self.client)
        self.seconds(3)

    def seconds(self, times: int) -> None:
        """Reconcile, some seconds apart."""
        for _ in range(times):
            show_changes(self.loop)
            self.tick()

    def set_rates(self, rate: str) -> None:
        """The other installation sets a rate on all brokers."""
        for number in range(6):
            for config in RATES:
                put(self.client.store[broker(number)], Change(ConfigKey(broker(number), config), Op.SET, rate))

    @property
    def rates(self) -> dict[int, str | None]:
        return {b: self.client.store[broker(b)].get(FOLLOWER_RATE) for b in range(6)}
