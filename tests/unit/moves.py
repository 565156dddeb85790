"""Four partitions on six brokers, any three brokers as a target, and what may befall a process that moves them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reassign.api.kafka_cluster import Limits
from reassign.core.model.forwarding import LANDING_SECONDS, SETTLE_SECONDS
from reassign.core.model.memory import LAGS_SECONDS
from reassign.core.model.record import Record
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource

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


class Moves(Lagging):
    """One resource over four partitions. At the end it is deleted, and nothing of it may be left."""

    @initialize(wanted=st.fixed_dictionaries(dict.fromkeys(ORIGINAL, TARGETS)), cap=st.integers(1, 3))
    def begin(self, wanted: dict, cap: int) -> None:  # type: ignore[type-arg]
        limits = Limits(partitions_in_flight=3, moves_per_broker=cap)
        self.driver = drive(SimKafka(dict(ORIGINAL), min_insync=2), resource(wanted), limits=limits)
        self.cap, self.held, self.cancelled = cap, False, set[TopicPartition]()

    @rule(lands_after=st.one_of(st.integers(1, 6), st.sampled_from([12, 50])), killed=st.booleans())
    def has_requests_on_their_way(self, lands_after: int, killed: bool) -> None:
        self.driver.tick(lands_after=lands_after)
        self.held = self.held or lands_after > 6
        if killed:
            self.driver.restart()

    @rule(lands_after=st.sampled_from([0, 0, 5, 50]))
    def has_changed_at_the_last_check(self, lands_after: int) -> None:
        self.driver.tick(changed={"a"}, lands_after=lands_after)
        self.held = self.held or lands_after > 6

    @rule(seconds=st.sampled_from([-600.0, -1.0, 1.0, 600.0]))
    def another_api_servers_clock_counts(self, seconds: float) -> None:
        self.driver.ahead += seconds

    @rule(ticks=st.integers(0, 2))
    def metadata_lags(self, ticks: int) -> None:
        self.driver.lag = ticks

    @rule(choice=st.integers(0, 3))
    def copies(self, choice: int) -> None:
        moving = sorted(self.driver.kafka.reassignments)
        if moving:
            self.driver.kafka.copy(moving[choice % len(moving)])

    @rule(choice=st.integers(0, 3))
    def is_cancelled_by_another_client(self, choice: int) -> None:
        moving = sorted(self.driver.kafka.reassignments)
        if moving:
            self.driver.kafka.perform_as_another(tp := moving[choice % len(moving)])
            self.cancelled.add(tp)

    @rule(wanted=st.dictionaries(st.sampled_from(list(ORIGINAL)), TARGETS, min_size=1))
    def is_edited(self, wanted: dict) -> None:  # type: ignore[type-arg]
        if "a" in self.driver.resources and not self.driver.resources["a"].deleted:
            self.driver.edit("a", wanted)

    @invariant()
    def no_broker_receives_more_than_its_cap(self) -> None:
        if not hasattr(self, "driver"):
            return
        adding = [broker for r in self.driver.kafka.reassignments.values() for broker in r.adding]
        assert all(adding.count(broker) <= self.cap for broker in adding)
        assert len(self.driver.kafka.reassignments) <= 3

    @invariant()
    def what_is_in_flight_is_recorded(self) -> None:
        if not hasattr(self, "driver") or "a" not in self.driver.resources:
            return
        record = self.driver.resources["a"].record
        assert self.driver.kafka.reassignments.keys() <= record.keys()

    @invariant()
    def no_move_counts_as_cancelled_that_no_client_has_cancelled(self) -> None:
        if not hasattr(self, "driver"):
            return
        for ours in self.driver.resources.values():
            for tp, entry in ours.record.items():
                assert entry.state is not State.CANCELLED or ours.deleted or tp in self.cancelled

    @invariant()
    def every_partition_keeps_its_replication_factor(self) -> None:
        if hasattr(self, "driver"):
            for tp, replicas in self.driver.kafka.replicas.items():
                if tp not in self.driver.kafka.reassignments:
                    assert len(replicas) == 3

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        driver, kafka = self.driver, self.driver.kafka
        self.metadata_goes_on()
        lag, driver.lag = driver.lag, 0
        while driver.limbo:
            driver.tick()
        driver.ticks(int(SETTLE_SECONDS) + 1 + self.patience)
        driver.lag = lag
        moving = dict(kafka.reassignments)
        record = driver.resources["a"].record
        originals = {tp: record[tp].original for tp in moving}
        at_rest = {
            tp: kafka.replicas[tp] for tp in kafka.replicas if tp not in moving and not record_active(record, tp)
        }
        driver.delete("a")
        driver.ticks(4 * int(SETTLE_SECONDS) + self.patience + (int(LANDING_SECONDS) if self.held else 0))
        assert driver.gone == {"a"}
        assert kafka.reassignments == {}
        for tp, replicas in (originals | at_rest).items():
            assert kafka.replicas[tp] == replicas
        assert all(isinstance(step.replicas, tuple) for step in kafka.writes if isinstance(step, Alter))


def record_active(record: Record, tp: TopicPartition) -> bool:
    return tp in record and record[tp].active
