"""What holds whatever happens to copies between log directories: kills, lost answers, silent and dead brokers, edits,
the brake, and others who copy too."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from reassign.api.kafka_cluster import Execution
from reassign.core.model.forwarding import SETTLE_SECONDS
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import AlterLogDirs, Outcome, Step
from tests.unit.examples import examples
from tests.unit.moves import Disturbed
from tests.unit.sim import Driver, SimKafka, drive, partitions, pull, resource

BROKERS = range(4)
ORIGINAL = dict(zip(partitions(2), [(0, 1), (1, 2)], strict=True))
THEIRS = "/c"
"""Another client copies to a directory that no entry names, so that its copies differ from ours."""
ENTRY = st.tuples(
    st.permutations(BROKERS).map(lambda order: tuple(order[:2])),
    st.tuples(st.sampled_from(("/a", "/b", "any")), st.sampled_from(("/a", "/b", "any"))),
)
WANTED = st.dictionaries(st.sampled_from(list(ORIGINAL)), ENTRY, min_size=1)
Wanted = dict[TopicPartition, tuple[tuple[int, ...], tuple[str, str]]]


class WatchedKafka(SimKafka):
    """Fail when a foreign copy that the last observation showed is altered."""

    driver: Driver
    may_supersede: bool

    def perform(self, step: Step) -> Outcome:
        if isinstance(step, AlterLogDirs) and not self.may_supersede and not self.driver.limbo:
            seen = {broker for broker, _ in step.dirs} - self.silent
            assert not any(step.tp in self.log_dirs[broker][THEIRS].futures for broker in seen), f"{step} ends theirs"
        return super().perform(step)

    def copies(self, *paths: str) -> set[tuple[TopicPartition, int, str]]:
        return {(tp, b, path) for b, dirs in self.log_dirs.items() for path in paths for tp in dirs[path].futures}


def with_dirs(base: Resource, wanted: Wanted) -> Resource:
    entries = tuple(
        entry.model_copy(update={"log_dirs": wanted[TopicPartition(entry.topic, entry.partition)][1]})
        for entry in base.spec.partitions
    )
    return replace(base, spec=base.spec.model_copy(update={"partitions": entries}))


class Directories(Disturbed):
    """One resource over two partitions. At the end it is deleted, and no copy of it may be left."""

    kafka: WatchedKafka

    @initialize(wanted=WANTED, when=st.sampled_from(("Wait", "Fail", "Supersede")))
    def begin(self, wanted: Wanted, when: str) -> None:
        log_dirs = {b: {path: LogDir(logs={}, futures={}) for path in ("/a", "/b", THEIRS)} for b in BROKERS}
        self.kafka = WatchedKafka(dict(ORIGINAL), brokers={b: Broker(b) for b in BROKERS}, log_dirs=log_dirs)
        for tp in ORIGINAL:
            self.kafka._place(tp)
        self.when = when
        self.driver = drive(self.kafka, with_dirs(resource(self._targets(wanted), whenInFlight=when), wanted))
        self.kafka.driver, self.kafka.may_supersede = self.driver, when == "Supersede"

    @staticmethod
    def _targets(wanted: Wanted) -> dict[TopicPartition, tuple[int, ...]]:
        return {tp: replicas for tp, (replicas, _) in wanted.items()}

    @rule(lands_after=st.integers(1, 6))
    def is_killed_with_requests_on_their_way(self, lands_after: int) -> None:
        self.driver.tick(lands_after=lands_after)
        self.driver.restart()

    @rule(ticks=st.integers(0, 2))
    def metadata_lags(self, ticks: int) -> None:
        self.driver.lag = ticks

    @rule(brokers=st.sets(st.sampled_from(BROKERS)))
    def brokers_do_not_say_what_is_in_their_directories(self, brokers: set[int]) -> None:
        self.kafka.silent = brokers

    @rule(broker=st.sampled_from(BROKERS))
    def a_broker_dies(self, broker: int) -> None:
        self._all_start()
        self.kafka.brokers[broker] = Broker(broker, fenced=True)
        self.kafka.isr |= {tp: isr - {broker} for tp, isr in self.kafka.isr.items()}

    @rule()
    def the_broker_is_back(self) -> None:
        self._all_start()

    def _all_start(self) -> None:
        for tp, replicas in self.kafka.replicas.items():
            move = self.kafka.reassignments.get(tp)
            self.kafka.isr[tp] = frozenset(replicas) - frozenset(move.adding if move else ())
        self.kafka.brokers |= {b: Broker(b) for b in BROKERS}

    @rule(tp=st.sampled_from(list(ORIGINAL)))
    def copies_between_brokers(self, tp: TopicPartition) -> None:
        if tp in self.kafka.reassignments:
            self._all_start()
            self.kafka.copy(tp)

    @rule(tp=st.sampled_from(list(ORIGINAL)))
    def copies_between_directories(self, tp: TopicPartition) -> None:
        if self.driver.limbo:
            return
        self._all_start()
        self.kafka.copy_between_dirs(tp)
        # a copy that ends unseen is copied back by what is told then: only that process knows that this is its own
        self.kafka.silent = set()
        self.driver.tick()

    @rule(tp=st.sampled_from(list(ORIGINAL)), broker=st.sampled_from(BROKERS))
    def another_client_copies(self, tp: TopicPartition, broker: int) -> None:
        directories = self.kafka.log_dirs[broker]
        if self.kafka.directory(tp, broker) not in (None, THEIRS):
            for directory in directories.values():
                directory.futures.pop(tp, None)  # type: ignore[attr-defined]
            directories[THEIRS].futures[tp] = 0  # type: ignore[index]

    @rule(choice=st.integers(0, 3))
    def another_client_replaces_our_copy(self, choice: int) -> None:
        if ours := sorted(self.kafka.copies("/a", "/b")):
            tp, broker, _ = ours[choice % len(ours)]
            self.another_client_copies(tp, broker)
            self.driver.tick()

    @rule(wanted=WANTED, seconds=st.integers(1, 8))
    def is_edited_as_soon_as_a_copy_begins_while_brokers_are_silent(self, wanted: Wanted, seconds: int) -> None:
        before = self.kafka.copies("/a", "/b")
        for _ in range(5):
            self.driver.tick()
            if self.kafka.copies("/a", "/b") - before:
                break
        self.kafka.silent = set(BROKERS)
        self.is_edited(wanted)
        self.driver.ticks(seconds)

    @rule(tp=st.sampled_from(list(ORIGINAL)))
    def another_client_cancels(self, tp: TopicPartition) -> None:
        if tp in self.kafka.reassignments:
            self.kafka.perform_as_another(tp)

    @rule(wanted=WANTED)
    def is_edited(self, wanted: Wanted) -> None:
        self.driver.edit("a", self._targets(wanted), whenInFlight=self.when)
        self.driver.resources["a"] = with_dirs(self.driver.resources["a"], wanted)

    @rule(execution=st.sampled_from((Execution.RUN, Execution.PAUSE)))
    def the_brake_is_released(self, execution: Execution) -> None:
        pull(self.driver, execution)

    @rule(execution=st.sampled_from((Execution.CANCEL_OURS, Execution.CANCEL_ALL)))
    def the_brake_is_pulled(self, execution: Execution) -> None:
        pull(self.driver, execution)
        hindered = self.kafka.silent or self.driver.limbo or any(b.fenced for b in self.kafka.brokers.values())
        self.driver.tick()
        if not hindered:
            assert self.kafka.reassignments == {}
            assert self.kafka.copies("/a", "/b") == set()

    @invariant()
    def what_is_copied_is_recorded(self) -> None:
        if not hasattr(self, "driver"):
            return
        record = self.driver.resources["a"].record
        for tp, broker, path in self.kafka.copies("/a", "/b"):
            assert record[tp].active
            assert (broker, path) in record[tp].log_dirs

    @invariant()
    def what_has_completed_is_in_its_directories(self) -> None:
        if not hasattr(self, "driver"):
            return
        for tp, entry in self.driver.resources["a"].record.items():
            if entry.state is State.COMPLETED and self.kafka.replicas[tp] == entry.target:
                for broker, path in entry.log_dirs:
                    moved = tp in self.kafka.log_dirs[broker][THEIRS].logs
                    assert moved or self.kafka.directory(tp, broker) == path

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self._all_start()
        self.kafka.silent = set()
        self.driver.lag = 0
        self.driver.ticks(7)
        assert not self.driver.limbo
        theirs = self.kafka.copies(THEIRS)
        self.driver.delete("a")
        self.driver.ticks(8 * int(SETTLE_SECONDS))
        assert self.driver.gone == {"a"}
        assert self.kafka.reassignments == {}
        assert self.kafka.copies("/a", "/b") == set()
        assert self.kafka.copies(THEIRS) == {copy for copy in theirs if copy[1] in self.kafka.replicas[copy[0]]}


TestDirectories = Directories.TestCase
TestDirectories.settings = examples(100, stateful_step_count=30)
