"""Invariants of two resources and another client that move the same partitions."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reassign.api.kafka_cluster import Limits
from reassign.core.model.forwarding import SETTLE_SECONDS
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel, Outcome, Step
from tests.unit.examples import examples
from tests.unit.moves import ORIGINAL, TARGETS
from tests.unit.sim import Driver, SimKafka, drive, resource

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
    """Fail when a resource alters a foreign move that it may not supersede."""

    theirs: dict[TopicPartition, Reassignment]
    may_supersede: set[TopicPartition]
    driver: Driver

    def perform(self, step: Step) -> Outcome:
        foreign = self.theirs_in_flight().get(step.tp)
        if foreign and isinstance(step, Cancel):
            assert step.tp in self.may_supersede, f"{step} cancels a foreign move"
        assert not (foreign and isinstance(step, Alter)), f"{step} overrides a foreign move"
        if isinstance(step, Alter) and self.restores(step):
            assert set(step.replicas) == set(self.replicas[step.tp]), f"{step} undoes a foreign move"
        return super().perform(step)

    def restores(self, step: Alter) -> bool:
        """Whether it brings back the order after a cancel."""
        entries = [r.record[step.tp] for r in self.driver.resources.values() if step.tp in r.record]
        return any(e.state is State.CANCELLING and e.original == step.replicas for e in entries)

    def theirs_in_flight(self) -> dict[TopicPartition, Reassignment]:
        return {tp: move for tp, move in self.theirs.items() if self.reassignments.get(tp) == move}


class Shared(RuleBasedStateMachine):
    """Resources a and b, edited at will, and a mover who knows nothing of them."""

    driver: Driver
    kafka: WatchedKafka

    @initialize(a=WANTED, b=WANTED, of_a=OPTIONS, of_b=OPTIONS, cap=st.integers(2, 3))
    def begin(self, a: dict, b: dict, of_a: dict, of_b: dict, cap: int) -> None:  # type: ignore[type-arg]
        self.kafka = WatchedKafka(dict(ORIGINAL), brokers={b: Broker(b) for b in range(8)}, min_insync=2)
        self.kafka.theirs, self.kafka.may_supersede, self.cap = {}, set(), cap
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

    @rule(dies=st.integers(0, 3))
    def is_killed(self, dies: int) -> None:
        self.driver.tick(die_after=dies)

    @rule()
    def loses_answers(self) -> None:
        self.driver.tick(lose_answers=True)

    @rule(seconds=st.integers(1, 6))
    def goes_on(self, seconds: int) -> None:
        self.driver.ticks(seconds)

    @rule(move=THEIRS)
    def another_client_moves(self, move: tuple[TopicPartition, tuple[int, ...], int]) -> None:
        tp, order, broker = move
        if tp not in self.kafka.reassignments and broker not in self.kafka.replicas[tp]:
            self.kafka.move_as_another(tp, (broker, *order[:2]))
            self.kafka.theirs[tp] = self.kafka.reassignments[tp]
            self.driver.tick()

    @rule(move=THEIRS, seconds=st.integers(0, 10))
    def another_client_has_moved_unobserved(
        self, move: tuple[TopicPartition, tuple[int, ...], int], seconds: int
    ) -> None:
        tp, order, broker = move
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
        held = [tp for r in self.driver.resources.values() for tp, e in r.record.items() if e.active]
        assert len(held) == len(set(held))
        assert self.kafka.reassignments.keys() - self.kafka.theirs_in_flight().keys() <= set(held)

    @invariant()
    def no_partition_is_lost(self) -> None:
        if hasattr(self, "driver"):
            for tp, replicas in self.kafka.replicas.items():
                assert len(set(replicas)) == len(replicas)
                assert len(replicas) == 3 or tp in self.kafka.reassignments

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.driver.ticks(int(SETTLE_SECONDS) + 1)
        theirs = self.kafka.theirs_in_flight()
        self.driver.delete("a")
        self.driver.delete("b")
        self.kafka.may_supersede = set()
        self.driver.ticks(5 * int(SETTLE_SECONDS))
        assert self.driver.gone == {"a", "b"}
        assert self.kafka.reassignments == theirs


TestShared = Shared.TestCase
TestShared.settings = examples(100, stateful_step_count=30)
