"""Invariants of brokers that are cordoned while partitions move: nothing of ours stays, and others' values do."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import Execution
from reassign.core.configs.cordons import EFFECT_SECONDS, MOST_REMOVALS, CordonReason, recorded_cordons
from reassign.core.model.configs import Change
from reassign.core.model.forwarding import LANDING_SECONDS
from reassign.core.model.snapshot import Broker, LogDir
from reassign.core.model.steps import Outcome
from reassign.core.tick import Decision
from tests.unit.configs import SETTLED, Store, broker
from tests.unit.examples import examples
from tests.unit.moves import ORIGINAL, TARGETS, Moves
from tests.unit.sim import LOST, Driver, is_cordon, pull

BROKERS = range(6)
NUMBERS = st.sampled_from(BROKERS)
THEIRS = st.sampled_from([None, "", "/a", "/a,/b", "*"])


class LosingDriver(Driver):
    """Loses the answers to changes of configurations, too: they are made, or are not."""

    loses: bool | None = None
    """Whether the changes are made whose answers are lost; None: no answer is."""

    def change_configs(self, decision: Decision) -> dict[Change, Outcome]:
        before = {key: dict(configs) for key, configs in self.configs.items()}
        outcomes = super().change_configs(decision)
        if self.loses is None:
            return outcomes
        if not self.loses:
            self.configs = before
        return {change: LOST if is_cordon(change) else outcome for change, outcome in outcomes.items()}


class Cordons(Moves):
    """Brokers are cordoned and uncordoned, restart, and have cordons of another client."""

    @initialize(
        wanted=st.fixed_dictionaries(dict.fromkeys(ORIGINAL, TARGETS)),
        cap=st.integers(1, 3),
        priors=st.dictionaries(NUMBERS, st.sampled_from(["", "/a", "/b", "/a,/b", "*"]), max_size=3),
        without_effect=st.sets(NUMBERS, max_size=1),
    )
    def begin(self, wanted: dict, cap: int, priors: dict[int, str], without_effect: set[int]) -> None:  # type: ignore[override, type-arg]
        super().begin(wanted, cap)
        kafka = self.driver.kafka
        kafka.log_dirs = {b: {"/a": LogDir(), "/b": LogDir()} for b in BROKERS}
        for tp in kafka.replicas:
            kafka._place(tp)
        kafka.without_effect = without_effect
        configs: Store = {broker(b): {} for b in BROKERS}
        self.driver = LosingDriver(kafka, self.driver.resources, limits=self.driver.limits, configs=configs)
        self.without_us: dict[int, str | None] = dict.fromkeys(BROKERS)
        for number, text in priors.items():
            self._others_set(number, text)

    def _others_set(self, number: int, text: str | None) -> None:
        self.without_us[number] = text
        self.driver.configs[broker(number)].pop(CORDONED_LOG_DIRS, None)
        if text is not None:
            self.driver.configs[broker(number)][CORDONED_LOG_DIRS] = text

    @rule(cordons=st.frozensets(NUMBERS, max_size=2))
    def brokers_are_to_be_cordoned(self, cordons: frozenset[int]) -> None:
        self.driver.cordons = cordons

    @rule(number=NUMBERS, text=THEIRS)
    def another_client_cordons(self, number: int, text: str | None) -> None:
        """What it sets over ours in our own words cannot be told from ours."""
        if self.driver.kafka.brokers[number].fenced:
            return
        if text != "*" or number not in recorded_cordons(self.driver.throttle.record):
            self._others_set(number, text)

    @rule(number=NUMBERS, times=st.integers(1, 4))
    def another_client_removes_a_cordon_again_and_again(self, number: int, times: int) -> None:
        self.driver.cordons |= {number}
        for _ in range(times):
            self.driver.ticks(2 * SETTLED)
            self.another_client_cordons(number, None)
        self.driver.ticks(SETTLED)

    @rule(number=NUMBERS)
    def a_broker_restarts(self, number: int) -> None:
        fenced = self.driver.kafka.brokers[number].fenced
        self.driver.kafka.brokers[number] = Broker(number, f"r{number}", fenced=not fenced)
        self.driver.tick()

    @rule(made=st.sampled_from([True, False, None]), seconds=st.integers(1, 3))
    def answers_about_cordons_are_lost(self, made: bool | None, seconds: int) -> None:
        assert isinstance(self.driver, LosingDriver)
        self.driver.loses = made
        self.driver.ticks(seconds)
        self.driver.loses = None

    @rule(seconds=st.sampled_from([20, int(EFFECT_SECONDS) + 10]))
    def much_time_passes(self, seconds: int) -> None:
        self.driver.now += seconds
        self.driver.tick()

    @rule(execution=st.sampled_from([Execution.CANCEL_OURS, Execution.RUN, Execution.RUN]))
    def the_brake_is_set(self, execution: Execution) -> None:
        pull(self.driver, execution)

    @invariant()
    def a_cordon_of_ours_is_recorded(self) -> None:
        if not hasattr(self, "driver"):
            return
        ours = recorded_cordons(self.driver.throttle.record)
        for number in BROKERS:
            if number not in ours:
                assert self.driver.configs[broker(number)].get(CORDONED_LOG_DIRS) == self.without_us[number]

    @invariant()
    def a_full_cordon_of_another_client_stays(self) -> None:
        if not hasattr(self, "driver"):
            return
        for number, text in self.without_us.items():
            if text == "/a,/b" and number not in self.driver.kafka.without_effect:
                assert self.driver.configs[broker(number)][CORDONED_LOG_DIRS] == text

    @invariant()
    def removals_are_counted_up_to_three(self) -> None:
        if hasattr(self, "driver") and self.driver.throttle.record:
            counts = [b.cordon_removals or 0 for b in self.driver.throttle.record.brokers]
            assert all(count <= MOST_REMOVALS for count in counts)

    def _much_later(self) -> None:
        """What is not answered yet has landed, and all is settled."""
        for _ in range(2):
            self.driver.ticks(2 * SETTLED)
            self.driver.now += LANDING_SECONDS
        self.driver.ticks(2 * SETTLED)

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        driver, kafka = self.driver, self.driver.kafka
        kafka.brokers = {b: Broker(b, f"r{b}") for b in BROKERS}
        self.metadata_goes_on()
        pull(driver, Execution.RUN)
        self._much_later()
        for number, state in driver.states.items():
            if number not in kafka.without_effect and state.reason is not CordonReason.CORDON_DRIFT:
                assert state.reason is CordonReason.IN_FORCE, state
        driver.cordons = frozenset()
        self._much_later()
        assert driver.throttle.record is None
        assert {b: driver.configs[broker(b)].get(CORDONED_LOG_DIRS) for b in BROKERS} == self.without_us
        for number in BROKERS:
            self._others_set(number, None)
        driver.ticks(5)
        driver.now += 700  # what was refused is asked for again
        super().teardown()


TestCordons = Cordons.TestCase
TestCordons.settings = examples(100, stateful_step_count=30)
