"""Invariants of two resources and another client that move the same partitions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from reassign.api.kafka_cluster import Limits
from reassign.api.partition_reassignment import Progress
from reassign.core.model.forwarding import LANDING_SECONDS, SETTLE_SECONDS
from reassign.core.model.record import Entry, active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel, Outcome, Step
from tests.unit.examples import examples
from tests.unit.moves import ORIGINAL, TARGETS, Lagging
from tests.unit.sim import START, Driver, SimKafka, drive, resource, without_record

THEIRS = st.tuples(st.sampled_from(list(ORIGINAL)), st.permutations(range(6)), st.sampled_from((6, 7)))
"""Another client moves to brokers that no resource names, so that its moves differ from ours."""
WANTED = st.dictionaries(st.sampled_from(list(ORIGINAL)), TARGETS, min_size=1)
OPTIONS = st.fixed_dictionaries(
    {
        "whenInFlight": st.sampled_from(("Wait", "Fail", "Supersede")),
        "admission": st.sampled_from(("Always", "WhenIdle")),
    },
    optional={"deadlineSeconds": st.sampled_from((10, 1000)), "suspend": st.booleans()},
)


class WatchedKafka(SimKafka):
    """Fail when a resource alters a foreign move that it may not supersede.

    A request that a broker has held is another matter: when it was sent, there was no such move.
    """

    theirs: dict[TopicPartition, Reassignment]
    may_supersede: set[TopicPartition]
    overridden: set[TopicPartition]
    """Where a request has landed on a foreign move: a cancel leaves more replicas there than before."""
    driver: Driver

    def perform(self, step: Step) -> Outcome:
        foreign = self.theirs_in_flight().get(step.tp)
        if foreign and isinstance(step, Cancel):
            assert step.tp in self.may_supersede, f"{step} cancels a foreign move"
        assert not (foreign and isinstance(step, Alter)), f"{step} overrides a foreign move"
        if isinstance(step, Alter) and self.restores(step):
            assert set(step.replicas) == set(self.replicas[step.tp]), f"{step} undoes a foreign move"
        return super().perform(step)

    def land(self, step: Step) -> Outcome:
        foreign = self.theirs_in_flight().get(step.tp)
        if foreign and isinstance(step, Alter):
            del self.theirs[step.tp]
            if foreign.target != set(step.replicas):
                self.overridden.add(step.tp)
        return super().land(step)

    def _cancel(self, tp: TopicPartition) -> Outcome:
        self.theirs.pop(tp, None)
        return super()._cancel(tp)

    def copy(self, tp: TopicPartition) -> None:
        self.theirs.pop(tp, None)
        super().copy(tp)

    def restores(self, step: Alter) -> bool:
        """Whether it brings back the order after a cancel."""
        entries = [r.record[step.tp] for r in self.driver.resources.values() if step.tp in r.record]
        return any(e.state is State.CANCELLING and e.original == step.replicas for e in entries)

    def theirs_in_flight(self) -> dict[TopicPartition, Reassignment]:
        for r in self.driver.resources.values():
            if r.spec.when_in_flight == "Supersede":  # it may take over a move to the same replicas
                for tp, entry in r.record.items():
                    theirs = self.theirs.get(tp)
                    if theirs and entry.state is State.IN_FLIGHT and theirs.target == set(entry.target):
                        del self.theirs[tp]
        return {tp: move for tp, move in self.theirs.items() if self.reassignments.get(tp) == move}


class Shared(Lagging):
    """Resources a and b, edited at will, and a mover who knows nothing of them."""

    kafka: WatchedKafka

    @initialize(a=WANTED, b=WANTED, of_a=OPTIONS, of_b=OPTIONS, cap=st.integers(2, 3))
    def begin(self, a: dict, b: dict, of_a: dict, of_b: dict, cap: int) -> None:  # type: ignore[type-arg]
        self.kafka = WatchedKafka(dict(ORIGINAL), brokers={b: Broker(b) for b in range(8)}, min_insync=2)
        self.kafka.theirs, self.kafka.may_supersede, self.kafka.overridden = {}, set(), set()
        self.cap = cap
        self.driver = drive(
            self.kafka,
            resource(a, "a", **of_a),
            resource(b, "b", **of_b),
            limits=Limits(partitions_in_flight=3, moves_per_broker=cap),
        )
        self.kafka.driver = self.driver
        self._note_permission()

    def _note_permission(self) -> None:
        """What may be cancelled by the specs as they are when a tick begins."""
        self.kafka.may_supersede = {
            tp
            for r in self.driver.resources.values()
            for tp in r.wanted
            if r.spec.when_in_flight == "Supersede" and not r.spec.suspend
        }

    @rule(lands_after=st.sampled_from((1, 4, 12, 50)), killed=st.booleans())
    def has_requests_on_their_way(self, lands_after: int, killed: bool) -> None:
        self.driver.tick(lands_after=lands_after)
        if killed:
            self.driver.restart()

    @precondition(lambda self: hasattr(self, "driver") and not self.driver.limbo)
    @rule(uid=st.sampled_from("ab"), killed=st.booleans())
    def a_record_is_lost(self, uid: str, killed: bool) -> None:
        lost = self.driver.resources[uid]
        moves = {tp: move for tp, move in self.kafka.reassignments.items() if tp in self._known_to(lost)}
        if not killed and not moves.keys() <= self.driver.recent.holders.keys():
            return  # what the process has not seen in flight is not known to be the resource's
        self.driver.resources[uid] = without_record(lost)
        if killed:
            self.driver.restart()
            self.kafka.theirs |= moves
        self.driver.tick()

    @rule(uid=st.sampled_from("ab"), ended=st.booleans(), moving=st.booleans())
    def a_status_is_forged(self, uid: str, ended: bool, moving: bool) -> None:
        """It says that all has ended, or that partitions are in flight; then a record without entries looks lost."""
        before = self.driver.resources[uid]
        forged = {
            "observed_generation": before.generation,
            "completion_time": START if ended else None,
            "progress": Progress(partitions_in_flight=1) if moving else None,
        }
        resource = replace(before, status=before.status.model_copy(update=forged))
        self.driver.resources[uid] = replace(resource, record_lost=not resource.record and resource.has_moved)
        self.driver.tick()

    @rule()
    def the_topic_is_made_again(self) -> None:
        kafka = self.kafka
        kafka.topic_ids = {name: f"{topic_id}'" for name, topic_id in kafka.topic_ids.items()}
        kafka.reassignments.clear()
        kafka.theirs.clear()
        for tp, replicas in ORIGINAL.items():
            kafka.replicas[tp], kafka.isr[tp], kafka.leader[tp] = replicas, frozenset(replicas), replicas[0]
        self.driver.tick()

    @rule(move=THEIRS)
    def another_client_moves(self, move: tuple[TopicPartition, tuple[int, ...], int]) -> None:
        tp, order, broker = move
        if tp not in self.kafka.reassignments and broker not in self.kafka.replicas[tp]:
            self.kafka.move_as_another(tp, (broker, *order[:2]))
            self.kafka.theirs[tp] = self.kafka.reassignments[tp]
            self.driver.tick()

    @precondition(lambda self: not self.for_good)
    @rule(move=THEIRS, seconds=st.integers(0, 10))
    def another_client_has_moved_unobserved(
        self, move: tuple[TopicPartition, tuple[int, ...], int], seconds: int
    ) -> None:
        tp, order, broker = move
        self.driver.standing.clear()  # of what no list has shown, old metadata says nothing
        if tp not in self.kafka.reassignments and broker not in self.kafka.replicas[tp]:
            self.kafka.move_as_another(tp, (broker, *order[:2]))
            self.kafka.copy(tp)
            self.driver.now += seconds
            self.driver.tick()

    @rule(choice=st.integers(0, 3))
    def copies(self, choice: int) -> None:
        moving = sorted(self.kafka.reassignments)
        if moving:
            self.kafka.copy(moving[choice % len(moving)])
            self.driver.tick()

    @rule(choice=st.integers(0, 3))
    def another_client_cancels(self, choice: int) -> None:
        moving = sorted(self.kafka.reassignments)
        if moving:
            self.kafka.perform_as_another(moving[choice % len(moving)])
            self.driver.tick()

    @precondition(lambda self: hasattr(self, "driver") and not self.driver.resources["a"].deleted)
    @rule(uid=st.sampled_from("ab"), wanted=WANTED, options=OPTIONS, seconds=st.integers(0, 1))
    def is_edited(self, uid: str, wanted: dict, options: dict, seconds: int) -> None:  # type: ignore[type-arg]
        self.driver.edit(uid, wanted, **options)
        self._note_permission()
        self.driver.ticks(seconds)

    @invariant()
    def no_broker_receives_more_of_ours_than_its_cap(self) -> None:
        if not hasattr(self, "driver"):
            return
        ours = self.kafka.reassignments.keys() - self.kafka.theirs_in_flight().keys()
        adding = [broker for tp in ours for broker in self.kafka.reassignments[tp].adding]
        assert all(adding.count(broker) <= self.cap for broker in adding)
        assert len(ours) <= 3

    @invariant()
    def one_resource_at_most_holds_a_partition_and_what_is_ours_is_recorded(self) -> None:
        if not hasattr(self, "driver"):
            return
        resources = self.driver.resources.values()
        held = [tp for r in resources for tp, entry in active(r.record).items() if self._is_there(tp, entry)]
        assert len(held) == len(set(held))
        known = {tp for r in resources for tp in self._known_to(r)}
        assert self.kafka.reassignments.keys() - self.kafka.theirs_in_flight().keys() <= known

    def _is_there(self, tp: TopicPartition, entry: Entry) -> bool:
        return entry.topic_id == self.kafka.topic_ids[tp.topic]

    def _known_to(self, known: Resource) -> set[TopicPartition]:
        """What its record holds, also where an alter has landed on a topic that metadata does not show yet."""
        moves = {tp: move.target for tp, move in self.kafka.reassignments.items()}
        return {
            tp
            for tp, entry in active(known.record).items()
            if self._is_there(tp, entry) or (entry.may_land and moves.get(tp) == set(entry.target))
        }

    @invariant()
    def no_partition_is_lost(self) -> None:
        if hasattr(self, "driver"):
            for tp, replicas in self.kafka.replicas.items():
                assert len(set(replicas)) == len(replicas)
                assert len(replicas) == 3 or tp in self.kafka.reassignments.keys() | self.kafka.overridden

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.metadata_goes_on()
        while self.driver.limbo:
            self.driver.tick()
        self.driver.ticks(int(SETTLE_SECONDS) + 1 + self.patience)
        theirs = self.kafka.theirs_in_flight()
        self.driver.delete("a")
        self.driver.delete("b")
        self.kafka.may_supersede = set()
        self.driver.ticks(5 * int(SETTLE_SECONDS) + int(LANDING_SECONDS) + self.patience)
        for tp in self._on_their_way_back():
            self.kafka.copy(tp)
        self.driver.ticks(2 * int(SETTLE_SECONDS) + self.patience)
        assert self.driver.gone == {"a", "b"}
        assert self.kafka.reassignments == theirs

    def _on_their_way_back(self) -> list[TopicPartition]:
        """The moves to their original replicas: another client moved the partition while the request was held."""
        records = [r.record for r in self.driver.resources.values()]
        back = [(tp, set(entry.original)) for record in records for tp, entry in active(record).items()]
        moves = self.kafka.reassignments
        return [tp for tp, original in back if tp in moves and moves[tp].target == original]


TestShared = Shared.TestCase
TestShared.settings = examples(100, stateful_step_count=30)
