"""Four partitions on six brokers, any three brokers as a target, and what may befall a process that moves them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from reassign.core.model.memory import LAGS_SECONDS
from tests.unit.sim import Driver, partitions

ORIGINAL = dict(zip(partitions(4), [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5)], strict=True))
TARGETS = st.permutations(range(6)).map(lambda order: tuple(order[:3]))


class Disturbed(RuleBasedStateMachine):
    """A process that is killed between any two steps, and loses answers."""

    driver: Driver

    @rule(dies=st.integers(0, 3))
    def is_killed(self, dies: int) -> None:
        self.driver.tick(die_after=dies)

    @rule()
    def loses_answers(self) -> None:
        self.driver.tick(lose_answers=True)

    @rule(seconds=st.integers(1, 6))
    def goes_on(self, seconds: int) -> None:
        self.driver.ticks(seconds)


class Lagging(Disturbed):
    """Brokers may fetch no metadata for a while, too, and one for ever."""

    for_good = False
    """Whether broker 0 fetches none any more; then all others go on in the end."""

    @rule()
    def metadata_of_one_broker_stands_still_for_good(self) -> None:
        self.for_good = True
        self.driver.stand_still(0)
        self.driver.tick()

    @rule(brokers=st.sampled_from(((0,), (0, 1))), seconds=st.integers(0, 12))
    def metadata_of_brokers_stands_still(self, brokers: tuple[int, ...], seconds: int) -> None:
        self.driver.stand_still(*brokers)
        self.driver.ticks(seconds)

    @rule()
    def metadata_goes_on(self) -> None:
        """Of all brokers but one that stands still for good."""
        standing = self.driver.standing
        self.driver.standing = {broker: at for broker, at in standing.items() if self.for_good and broker == 0}

    @property
    def patience(self) -> int:
        """How many seconds later the metadata of a broker that is well is read."""
        return int(LAGS_SECONDS) + 1 if self.for_good else 0
