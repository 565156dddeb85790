"""Who starts when there is not room for all; and what the brokers or others do between the check and the alter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import Limits, NamespaceLimits
from reassign.core.model.permission import Permission
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.model.steps import Alter
from tests.unit.examples import examples
from tests.unit.sim import SimKafka, detail, drive, partitions, resource, states, true_conditions

P0, P1, P2 = partitions(3)


def test_an_old_giant_does_not_starve_a_small_new_one() -> None:
    giant, small = partitions(60, "giant"), partitions(2, "small")
    kafka = SimKafka(dict.fromkeys(giant + small, (0, 1)))
    driver = drive(
        kafka, resource(dict.fromkeys(giant, (2, 3)), "a"), limits=Limits(partitions_in_flight=4, moves_per_broker=50)
    )
    driver.ticks(2)
    assert len(kafka.reassignments) == 4
    driver.resources["b"] = resource(dict.fromkeys(small, (3, 4)), "b")
    done = 0
    while not all(kafka.replicas[tp] == (3, 4) for tp in small):
        kafka.copy(next(iter(kafka.reassignments)))  # the longest in flight
        driver.ticks(5)
        done += 1
    assert done <= 6  # the giant's four first, then the small one's two


def test_small_partitions_do_not_starve_a_large_one_at_one_source() -> None:
    many, large = partitions(40, "many"), TopicPartition("large", 0)
    kafka = SimKafka(dict.fromkeys([*many, large], (0, 1, 2)))
    driver = drive(kafka, resource(dict.fromkeys(many, (0, 1, 3)), "a"), limits=Limits(moves_per_broker=4))
    driver.ticks(2)
    assert len(kafka.reassignments) == 4
    driver.resources["b"] = resource({large: (3, 4, 5)}, "b")
    done = 0
    while kafka.replicas[large] != (3, 4, 5):
        kafka.copy(next(iter(kafka.reassignments)))  # the longest in flight
        driver.ticks(5)
        done += 1
    assert done <= 5  # what was in flight at its source before, and itself


@pytest.mark.parametrize("why", ["it copies nothing", "its destination is down"])
def test_slots_at_a_source_are_not_reserved_while_its_moves_stall(why: str) -> None:
    still, large, many = TopicPartition("still", 0), TopicPartition("large", 0), partitions(2, "many")
    kafka = SimKafka(dict.fromkeys([still, large, *many], (0, 1, 2)))
    first = resource({still: (3, 4, 5)}, "a", stallTimeoutSeconds=10)
    driver = drive(kafka, first, limits=Limits(moves_per_broker=5))
    driver.ticks(2)
    driver.resources["b"] = resource({large: (3, 4, 5)}, "b")
    driver.resources["c"] = resource(dict.fromkeys(many, (0, 1, 4)), "c")
    driver.ticks(2)
    assert set(kafka.reassignments) == {still}
    if why == "its destination is down":
        kafka.brokers[5] = Broker(5, fenced=True)
    driver.ticks(2 if kafka.brokers[5].fenced else 12)
    assert set(kafka.reassignments) == {still, *many}


@pytest.mark.parametrize(("of_others", "many_start"), [(3, True), (2, False)])
def test_slots_at_a_source_are_reserved_only_where_our_moves_free_them(of_others: int, many_start: bool) -> None:
    theirs, many, large = partitions(of_others, "theirs"), partitions(2, "many"), TopicPartition("large", 0)
    ours = partitions(5 - of_others, "ours")
    kafka = SimKafka(dict.fromkeys([*theirs, *ours, *many, large], (0, 1, 2)))
    for tp in theirs:
        kafka.move_as_another(tp, (0, 1, 5))
    first = resource(dict.fromkeys(ours, (0, 1, 3)), "a")
    driver = drive(kafka, first, limits=Limits(moves_per_broker=5))
    driver.ticks(3)
    driver.resources["b"] = resource({large: (3, 4, 5)}, "b")
    driver.resources["c"] = resource(dict.fromkeys(many, (0, 1, 4)), "c")
    driver.ticks(3)
    kafka.copy(ours[0])
    driver.ticks(5)
    assert bool(kafka.reassignments.keys() & set(many)) is many_start


def test_the_partition_with_the_most_bytes_goes_first() -> None:
    kafka = SimKafka(dict.fromkeys((P0, P1, P2), (0, 1)))
    kafka.sizes = {P0: {0: 10, 1: 10}, P1: {0: 500, 1: 500}, P2: {0: 70, 1: 70}}
    driver = drive(kafka, resource(dict.fromkeys((P0, P1, P2), (2, 1))), limits=Limits(partitions_in_flight=1))
    driver.ticks(2)
    driver.finish()
    assert [step.tp for step in kafka.writes if isinstance(step, Alter)] == [P1, P2, P0]


ASSIGNMENTS = st.permutations(range(6)).map(lambda order: tuple(order[:3]))


@examples(60)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    in_flight=st.integers(1, 6),
    per_broker=st.integers(3, 5),
    own=st.integers(1, 4),
    data=st.data(),
)
def test_no_limit_is_exceeded_and_every_move_completes(
    sizes: list[int], in_flight: int, per_broker: int, own: int, data: st.DataObject
) -> None:
    mine = {f"r{n}": partitions(size, f"t{n}") for n, size in enumerate(sizes)}
    every = [tp for tps in mine.values() for tp in tps]
    kafka = SimKafka({tp: data.draw(ASSIGNMENTS) for tp in every})
    wanted = {tp: data.draw(ASSIGNMENTS) for tp in every}
    resources = [
        resource({tp: wanted[tp] for tp in tps}, uid, concurrency={"partitions": own}) for uid, tps in mine.items()
    ]
    driver = drive(kafka, *resources, limits=Limits(partitions_in_flight=in_flight, moves_per_broker=per_broker))
    driver.ticks(3)
    for _ in range(20 * len(every)):
        adding = [broker for move in kafka.reassignments.values() for broker in move.adding]
        assert len(kafka.reassignments) <= in_flight
        assert all(adding.count(broker) <= per_broker for broker in adding)
        assert all(len(kafka.reassignments.keys() & set(tps)) <= own for tps in mine.values())
        if not kafka.reassignments:
            break
        kafka.copy(data.draw(st.sampled_from(sorted(kafka.reassignments))))
        driver.ticks(2)
    driver.finish()
    assert kafka.replicas == wanted


@pytest.mark.parametrize(
    ("bytes_of_each", "limit", "at_once"),
    [
        (0, "1Mi", 20),
        (2**19, "1Mi", 20),  # two replicas of half a MiB
        (2**19 + 1, "1Mi", 3),
        (0, 0, 3),
        (None, "1Mi", 3),
    ],
    ids=["empty", "just small", "just not small", "none is small", "of unknown size"],
)
def test_small_moves_take_no_slot_of_a_broker(bytes_of_each: int | None, limit: int | str, at_once: int) -> None:
    small = partitions(30)
    kafka = SimKafka(dict.fromkeys(small, (0, 1)))
    if bytes_of_each is not None:
        kafka.sizes = {tp: {0: bytes_of_each, 1: bytes_of_each} for tp in small}
    limits = Limits(partitions_in_flight=20, moves_per_broker=7, small_move_bytes=limit)
    driver = drive(kafka, resource(dict.fromkeys(small, (2, 3)), concurrency={"movesPerBroker": 6}), limits=limits)
    driver.ticks(4)
    assert len(kafka.reassignments) == at_once


def test_small_moves_beside_a_large_one_take_none_of_its_slots() -> None:
    small, large = partitions(4, "small"), TopicPartition("large", 0)
    kafka = SimKafka(dict.fromkeys([*small, large], (0, 1)))
    kafka.sizes = {tp: {0: 0, 1: 0} for tp in small} | {large: {0: 2**30, 1: 2**30}}
    for tp in small[:2]:
        kafka.move_as_another(tp, (2, 1))
    driver = drive(kafka, resource(dict.fromkeys([*small[2:], large], (2, 1))), limits=Limits(moves_per_broker=1))
    driver.ticks(4)
    assert set(kafka.reassignments) == {*small, large}


def test_small_moves_of_one_resource_begin_together() -> None:
    mine = {f"r{n}": partitions(10, f"t{n}") for n in range(6)}
    kafka = SimKafka({tp: (0, 1) for tps in mine.values() for tp in tps})
    kafka.sizes = {tp: {0: 0, 1: 0} for tp in kafka.replicas}
    resources = [resource(dict.fromkeys(tps, (2, 1)), uid) for uid, tps in mine.items()]
    driver = drive(kafka, *resources, limits=Limits(partitions_in_flight=20))
    driver.ticks(4)
    assert set(kafka.reassignments) == {*mine["r0"], *mine["r1"]}


def test_small_moves_of_a_giant_do_not_starve_another_resource() -> None:
    giant, small = partitions(200, "giant"), partitions(2, "small")
    kafka = SimKafka(dict.fromkeys(giant + small, (0, 1)))
    kafka.sizes = {tp: {0: 0, 1: 0} for tp in kafka.replicas}
    limits = Limits(partitions_in_flight=100)
    driver = drive(kafka, resource(dict.fromkeys(giant, (2, 1)), "a"), limits=limits)
    driver.ticks(4)
    driver.resources["b"] = resource(dict.fromkeys(small, (2, 1)), "b")
    for tp in list(kafka.reassignments)[:2]:
        kafka.copy(tp)
    driver.ticks(2)
    assert set(small) <= kafka.reassignments.keys()


def test_a_small_move_that_has_grown_takes_its_slots() -> None:
    kafka = SimKafka({P0: (0, 1), P1: (0, 1)})
    kafka.sizes = {P0: {0: 0, 1: 0}, P1: {0: 2**30, 1: 2**30}}
    driver = drive(kafka, resource({P0: (2, 1)}), limits=Limits(moves_per_broker=1))
    driver.ticks(4)
    kafka.sizes[P0] = {0: 2**30, 1: 2**30}
    driver.resources["b"] = resource({P1: (2, 1)}, "b")
    driver.ticks(4)
    assert set(kafka.reassignments) == {P0}


def test_foreign_moves_count_and_superseding_replaces_their_slots() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.move_as_another(P0, (4, 1, 2))
    asked = {P0: (3, 1, 2), P1: (3, 1, 2)}
    driver = drive(kafka, resource(asked, whenInFlight="Supersede"), limits=Limits(partitions_in_flight=1))
    driver.ticks(10)
    assert set(kafka.reassignments) == {P0}
    assert kafka.reassignments[P0].target == {3, 1, 2}
    driver.finish()
    assert kafka.replicas == asked


def test_there_is_no_superseding_where_there_is_no_room_for_ours() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.move_as_another(P0, (4, 1, 2))
    kafka.move_as_another(P1, (3, 1, 2))
    driver = drive(kafka, resource({P0: (3, 1, 2)}, whenInFlight="Supersede"), limits=Limits(moves_per_broker=1))
    driver.ticks(5)
    assert kafka.writes == []
    assert true_conditions(driver)["Reconciling"] == "WaitingForBudget"


def test_a_broker_lost_before_the_alter_blocks_its_partition() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    driver = drive(kafka, resource({P0: (5, 1, 2), P1: (3, 1, 2)}))
    alter = kafka._alter

    def without_broker_5(step: Alter) -> object:
        gone = kafka.brokers.pop(5, None)
        answer = alter(step)
        if gone:
            kafka.brokers[5] = gone
        return answer

    kafka._alter = without_broker_5  # type: ignore[method-assign, assignment]
    driver.ticks(3)
    assert detail(driver, P0).reason == "InvalidReplicaAssignment"
    assert states(driver) == {P0: "Blocked", P1: "InFlight"}
    del kafka.brokers[5]
    driver.tick()
    assert detail(driver, P0).reason == "UnknownBroker"
    kafka.brokers[5], kafka._alter = Broker(5), alter  # type: ignore[method-assign]
    driver.ticks(20)
    assert states(driver) == {P0: "InFlight", P1: "InFlight"}


def test_partitions_added_to_a_topic_in_flight_are_moved_once_they_exist() -> None:
    kafka = SimKafka({P0: (0, 1, 2)})
    driver = drive(kafka, resource({P0: (3, 1, 2), P1: (3, 1, 2)}))
    driver.ticks(3)
    assert (detail(driver, P1).state, detail(driver, P1).reason) == ("Blocked", "UnknownTopicOrPartition")
    kafka.replicas[P1], kafka.isr[P1], kafka.leader[P1] = (0, 1, 2), frozenset({0, 1, 2}), 0
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight", P1: "InFlight"}


def test_only_the_order_changes_and_nothing_is_ever_in_flight() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (2, 0, 1)}))
    driver.finish()
    assert driver.kafka.replicas[P0] == (2, 0, 1)
    assert driver.kafka.leader[P0] == 2
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("mode", ["Fail", "Supersede"])
def test_a_target_that_is_there_already_is_done_whatever_else_is_asked(mode: str) -> None:
    options = {"whenInFlight": mode, "admission": "WhenIdle", "deadlineSeconds": 1, "preferredLeader": "Keep"}
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.move_as_another(P1, (3, 1, 2))
    driver = drive(kafka, resource({P0: (0, 1, 2)}, **options))
    driver.ticks(3)
    assert states(driver) == {P0: "Completed"}
    assert kafka.writes == []


def test_a_factor_change_among_valid_entries_is_blocked_alone() -> None:
    many = [TopicPartition("many", number) for number in range(50)]
    kafka = SimKafka(dict.fromkeys(many, (0, 1, 2)))
    asked: dict[TopicPartition, tuple[int, ...]] = dict.fromkeys(many, (0, 1, 3))
    asked[many[17]] = (0, 1)
    driver = drive(kafka, resource(asked), limits=Limits(moves_per_broker=100))
    driver.ticks(2)
    driver.finish()
    assert sum(kafka.replicas[tp] == (0, 1, 3) for tp in many) == 49
    assert kafka.replicas[many[17]] == (0, 1, 2)
    assert true_conditions(driver) == {"Stalled": "ReplicationFactorChange"}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (None, "spec.suspend is true; set it to false to start what is pending"),
        ("drain", "spec.suspend is true; the ReassignmentPlan drain starts it in its turn, once it is approved"),
    ],
)
def test_a_suspended_wave_reports_that_its_plan_starts_it(plan: str | None, said: str) -> None:
    tp = TopicPartition("a", 0)
    wave = replace(resource({tp: (4, 2, 3)}, suspend=True), plan=plan)
    driver = drive(SimKafka({tp: (1, 2, 3)}), wave)
    driver.tick()
    assert detail(driver, tp).message == said


def test_a_namespace_with_many_resources_does_not_crowd_out_another() -> None:
    many = [TopicPartition(f"many-{n}", p) for n in range(30) for p in range(2)]
    few = partitions(4, "few")
    kafka = SimKafka(dict.fromkeys(many + few, (0, 1)))
    crowd = [
        replace(resource({tp: (2, 3) for tp in many if tp.topic == f"many-{n}"}, f"a{n}"), namespace="crowd")
        for n in range(30)
    ]
    lone = replace(resource(dict.fromkeys(few, (3, 4)), "b"), namespace="lone")
    driver = drive(kafka, *crowd, lone, limits=Limits(partitions_in_flight=8, moves_per_broker=50))
    driver.ticks(3)
    assert len(kafka.reassignments) == 8
    assert set(few) <= kafka.reassignments.keys()


@pytest.mark.parametrize(
    ("limits", "lack"),
    [
        (NamespaceLimits(partitions_in_flight=2), "2 places for partitions in flight, and none is free"),
        (NamespaceLimits(moves_per_broker=1), "broker 0 sends 1 replica already"),
    ],
)
def test_what_another_namespace_has_in_flight_is_bounded(limits: NamespaceLimits, lack: str) -> None:
    theirs, ours = partitions(6, "team-a-orders"), partitions(6, "ours")
    kafka = SimKafka({tp: (tp.partition % 2, 5) for tp in theirs + ours})
    two = [
        replace(resource({tp: (2 + tp.partition % 3, 5) for tp in tps}, uid), namespace="team-a")
        for uid, tps in (("a", theirs[:3]), ("b", theirs[3:]))
    ]
    permission = Permission({"kafka": ("*",), "team-a": ("team-a-*",)}, "kafka")
    own = resource({tp: (2 + tp.partition % 3, 5) for tp in ours}, "c")
    driver = drive(kafka, *two, own, limits=Limits(per_namespace=limits), permission=permission)
    driver.ticks(3)
    assert sum(tp in theirs for tp in kafka.reassignments) == 2
    assert set(ours) <= kafka.reassignments.keys()
    waits = {d.message for uid in "ab" for d in driver.resources[uid].status.partitions if d.state == "Pending"}
    said = "limits.perNamespace of the KafkaCluster: {} for this namespace; it starts when one of them is done"
    assert said.format(lack) in waits
    driver.finish()
    assert all(set(kafka.replicas[tp]) == {2 + tp.partition % 3, 5} for tp in theirs)


def test_what_a_namespace_has_left_behind_counts_for_it() -> None:
    theirs = partitions(6, "team-a-orders")
    kafka = SimKafka(dict.fromkeys(theirs, (0, 1)))
    limits = Limits(per_namespace=NamespaceLimits(partitions_in_flight=2))
    permission = Permission({"kafka": ("*",), "team-a": ("team-a-*",)}, "kafka")

    def orphan(uid: str) -> Resource:
        return replace(resource(dict.fromkeys(theirs, (2, 1)), uid, deletionPolicy="Orphan"), namespace="team-a")

    driver = drive(kafka, orphan("a"), limits=limits, permission=permission)
    driver.ticks(3)
    driver.delete("a")
    driver.resources["b"] = orphan("b")
    driver.ticks(5)
    assert driver.gone == {"a"}
    assert len(kafka.reassignments) == 2
    kafka.copy(min(kafka.reassignments))
    driver.ticks(5)
    assert len(kafka.reassignments) == 2, "b has begun one"
    assert len(driver.memory.recent.holders) == 2


def test_a_foreign_move_counts_for_no_namespace_that_was_to_supersede_it() -> None:
    kafka = SimKafka({P0: (0, 1)}, unsafe={P0})
    kafka.move_as_another(P0, (2, 1))
    over = resource({P0: (1, 2)}, whenInFlight="Supersede")
    driver = drive(kafka, over)
    driver.ticks(3)
    driver.delete("a")
    driver.ticks(3)
    assert P0 in kafka.reassignments
    assert driver.memory.recent.holders == {}


def test_taking_over_a_foreign_move_takes_a_place_of_the_namespace() -> None:
    kafka = SimKafka({P0: (0, 1), P1: (0, 1)})
    kafka.move_as_another(P0, (2, 1))
    kafka.move_as_another(P1, (2, 1))
    over = replace(resource({P0: (2, 1), P1: (2, 1)}, whenInFlight="Supersede"), namespace="team-a")
    limits = Limits(per_namespace=NamespaceLimits(partitions_in_flight=1))
    driver = drive(kafka, over, limits=limits, permission=Permission({"team-a": ("*",)}, "kafka"))
    driver.ticks(3)
    assert sorted(states(driver).values()) == ["InFlight", "Pending"]
