"""Two KafkaClusters for the same brokers: what the younger one set before that was known is restored first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from copy import copy as shallow_copy
from typing import Any

import pytest

from reassign.api.config_keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.server import Health
from reassign.controller.writing.records import UNDO_WAITS_SECONDS
from reassign.core.configs.desired import WantedConfigs
from reassign.core.configs.diff import Ours, from_record, to_record, with_taken_over
from reassign.core.duplicates import HANDOVER_SECONDS, peers_throttles
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, Op, put
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.model.steps import Outcome, Result
from reassign.errors import Reason, ReassignError
from reassign.kafka.throttles import Read
from tests.unit.configs import Store, broker, copy, topic
from tests.unit.throttled_brokers import NOTHING_SET, Client
from tests.unit.throttling import grow_up, show_changes, throttle_its_move
from tests.unit.world import LATER, OURS, Object, World, api_object, config_record, connect, forget, serve_beside


class Two(World):
    """`main` moves OURS at 1 MiB/s; an older one has not reached the brokers yet, and is to move LATER slower."""

    prior = NOTHING_SET

    def __init__(self, namespace: str = "kafka") -> None:
        """The older one is in this namespace."""
        super().__init__()
        self.now = 0.0
        self.store.clock = lambda: self.now
        self.client = Client(copy(self.prior))
        throttle_its_move(self, self.client)
        self.tick(2)  # the first asks for configurations
        older = api_object("KafkaCluster", "older", {"bootstrapServers": "b:9092"})
        older["metadata"] |= {"creationTimestamp": "2025-01-01T00:00:00Z", "namespace": namespace}
        self.put(older)
        entry = {"topic": LATER.topic, "partition": LATER.partition, "replicas": [4, 2, 3]}
        spec = {"clusterRef": {"name": "older"}, "partitions": [entry], "throttle": {"interBroker": "512Ki"}}
        second = api_object("PartitionReassignment", "second", spec)
        second["metadata"]["namespace"] = namespace
        self.put(second)
        self.main, key, health = self.loop, (namespace, "older"), Health(60, [])
        self.older = ClusterLoop(
            key, self.store, self.main.kube, self.main.writer, self.metrics, health, lambda: None, self.main.plans
        )
        connect(self.older, self.brokers, KafkaCluster.parse(older))
        grow_up(self.older)

    def restart(self) -> None:
        super().restart()
        self.store.clock, self.store._began = lambda: self.now, self.now
        grow_up(self.loop)

    def both(self, times: int) -> None:
        """They look in turns, some seconds apart."""
        for _ in range(times):
            for loop in (self.older, self.main):
                show_changes(loop)
                self.loop = loop
                self.tick()
        self.loop = self.main

    @property
    def rates(self) -> set[str | None]:
        return {self.client.store[broker(b)].get(FOLLOWER_RATE) for b in (1, 2, 3, 4)}

    def finish(self, *moved: TopicPartition) -> None:
        """Moves come to their end, and all that is left is restored."""
        for tp in moved:
            self.kafka.copy(tp)
        self.both(8)

    def cluster(self, name: str) -> KafkaCluster:
        return KafkaCluster.parse(self.store.get(f"uid-{name}") or {})

    def message(self, name: str) -> str:
        [detail] = (self.store.get(f"uid-{name}") or {})["status"]["partitions"]
        return f"{detail['state']} {detail.get('reason')} {detail.get('message')}"


@pytest.fixture
def two() -> Two:
    return Two()


def test_the_older_waits_until_the_younger_has_restored_its_throttles(two: Two) -> None:
    two.both(5)
    assert LATER not in two.kafka.reassignments
    assert two.rates == {"1048576"}
    assert "Blocked ThrottleNotSet the younger KafkaCluster kafka/main has throttles" in two.message("second")
    two.finish(OURS)
    forget(two.older, refused={})  # it is asked for again after a while
    two.both(2)
    assert LATER in two.kafka.reassignments
    assert two.rates == {"524288"}
    two.finish(LATER)
    assert two.client.store == NOTHING_SET


def test_the_younger_keeps_in_flight_moves_throttled_and_sets_nothing_new(two: Two) -> None:
    two.both(2)
    before = copy(two.client.store)
    two.change("move", lambda obj: obj["spec"].update(throttle={"interBroker": "3Mi"}))
    two.both(3)
    assert two.client.store == before
    key = ConfigKey(broker(4), FOLLOWER_RATE)
    put(two.client.store[key.resource], Change(key, Op.DELETE))
    two.both(1)
    assert two.client.store == before


@pytest.fixture
def third(two: Two) -> Store:
    """One more resource of the younger waits for a throttle; what is set before that."""
    two.add("third", LATER, (5, 2, 3))
    two.change("third", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))
    return copy(two.client.store)


def see_older(two: Two) -> None:
    serve_beside(two, "older")


def test_the_younger_sets_nothing_when_it_sees_the_older_while_reading(two: Two, third: Store) -> None:
    read: list[ConfigResource] = []

    async def configs(resources: Collection[ConfigResource]) -> Read:
        if topic(LATER.topic) in resources:
            see_older(two)
            read.extend(resources)
        return await two.client.configs(resources)

    brokers: Any = two.brokers
    brokers.configs = configs
    two.tick(4)
    assert read
    assert two.client.store == third
    assert LATER not in two.kafka.reassignments


def test_the_older_one_holds_back_only_what_is_throttled(two: Two) -> None:
    two.change("second", lambda obj: obj["spec"].pop("throttle"))
    two.both(6)
    assert LATER in two.kafka.reassignments


def test_a_broker_that_is_gone_for_good_does_not_hold_the_older_one(two: Two) -> None:
    two.both(2)
    for number in (1, 2, 3, 4):
        two.kafka.brokers.pop(number)
    two.store.put(two.kube.write("uid-uid-main-0", lambda obj: obj["spec"]["throttle"].pop("topics")))
    assert peers_throttles(two.cluster("older"), two.kafka.snapshot(), two.store.peers(), two.now) == (None, None)
    two.kafka.brokers[4] = Broker(4)
    assert peers_throttles(two.cluster("older"), two.kafka.snapshot(), two.store.peers(), two.now)[1]


@pytest.mark.parametrize(
    ("reason", "served_now"),
    [(None, "older"), (Reason.CLUSTER_UNREACHABLE, "main"), (Reason.CLUSTER_DELETED, "main")],
)
def test_an_older_cluster_that_is_not_ready_stops_no_moves(two: Two, reason: Reason | None, served_now: str) -> None:
    serve_beside(two, "older", reason)
    two.now += HANDOVER_SECONDS
    two.add("third", LATER, (5, 2, 3))
    two.tick(4)
    assert (LATER in two.kafka.reassignments) is (served_now == "main")


@pytest.mark.parametrize("forged", ["clusterId", "conditions"])
def test_a_status_that_others_write_makes_no_older_cluster_serve(two: Two, forged: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Connected", "message": ""}
    status = {"clusterId": "sim", "conditions": [{**ready, "lastTransitionTime": "2025-01-01T00:00:00Z"}]}
    two.change_status("older", lambda old: old.update({forged: status[forged]}))
    two.add("third", LATER, (5, 2, 3))
    two.tick(4)
    assert LATER in two.kafka.reassignments


def test_a_new_process_lets_the_older_cluster_connect_first(two: Two) -> None:
    serve_beside(two, "older")
    two.restart()
    two.add("third", LATER, (5, 2, 3))
    two.tick(4)
    assert LATER not in two.kafka.reassignments
    two.now += HANDOVER_SECONDS
    two.tick(4)
    assert LATER in two.kafka.reassignments


def test_no_throttle_is_set_while_an_older_cluster_restores_its_own(two: Two) -> None:
    two.put(config_record("older"))
    serve_beside(two, "older", Reason.CLUSTER_DELETED)
    two.add("third", LATER, (5, 2, 3))
    two.change("third", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))
    two.tick(4)
    assert LATER not in two.kafka.reassignments
    assert "the older KafkaCluster kafka/older has throttles" in two.message("third")
    two.store.drop("uid-uid-older-0")
    forget(two.main, refused={})
    two.tick(4)
    assert LATER in two.kafka.reassignments


def test_two_that_are_both_ready_are_never_both_served(two: Two) -> None:
    """The older one is Ready again while the younger one starts moves."""
    two.change("second", lambda obj: obj["spec"].pop("throttle"))
    assert two.cluster("main").status.conditions[0].status == "True"
    two.loop = two.older
    two.tick(3)  # it says that it is Ready, and starts nothing before the younger one has seen that
    assert LATER not in two.kafka.reassignments
    assert [c.reason for c in two.cluster("older").status.conditions if c.type == "Paused"] == ["Connecting"]
    two.loop = two.main
    two.tick()
    assert two.cluster("main").status.conditions[0].reason == "DuplicateCluster"
    two.loop = two.older
    two.tick(2)
    assert LATER in two.kafka.reassignments


class Closed(Two):
    """The older one is served, in a namespace that becomes unreadable; a resource of each waits for its start."""

    def __init__(self) -> None:
        super().__init__("closed")
        self.change("second", lambda obj: obj["spec"].pop("throttle"))
        see_older(self)
        self.change_status("older", lambda status: status.update(observedGeneration=1))
        self.add("third", LATER, (5, 2, 3))
        self.turn(readable=False)

    def turn(self, *, readable: bool) -> None:
        self.store.unreadable_namespaces = set() if readable else {"closed"}
        self.kube.unwritable = set() if readable else {"uid-older", "uid-second"}

    def ticks(self, loop: ClusterLoop, times: int = 2) -> None:
        self.loop = loop
        self.tick(times)

    @property
    def begun(self) -> set[int]:
        """The new replicas of LATER: 4 by the older one, 5 by the younger."""
        moving = self.kafka.reassignments.get(LATER)
        return set(moving.adding) if moving else set()


@pytest.fixture
def closed() -> Closed:
    return Closed()


def test_an_older_cluster_in_an_unreadable_namespace_blocks_nothing(closed: Closed) -> None:
    closed.both(2)
    assert not closed.begun, "what the older one has sent may land"
    closed.ticks(closed.older)
    closed.now += HANDOVER_SECONDS
    closed.both(3)
    assert closed.begun == {5}


def test_an_older_cluster_that_is_readable_again_waits_for_the_younger(closed: Closed) -> None:
    closed.ticks(closed.older)
    closed.now += HANDOVER_SECONDS
    closed.ticks(closed.main)
    assert closed.begun == {5}
    closed.kafka.copy(LATER)
    closed.store.drop("uid-third")
    closed.now += HANDOVER_SECONDS
    closed.turn(readable=True)
    closed.change("second", lambda obj: obj["spec"]["partitions"][0].update(replicas=[4, 2, 3]))
    closed.ticks(closed.older, 3)
    assert not closed.begun, "the younger one has not said that it stops"
    closed.ticks(closed.main)
    assert closed.cluster("main").status.conditions[0].reason == "DuplicateCluster"
    closed.ticks(closed.older, 3)
    assert closed.begun == {4}


def test_a_cluster_that_is_not_seen_cancels_no_moves_of_another(closed: Closed) -> None:
    closed.change("older", lambda obj: obj["spec"].update(execution="CancelAll"))
    connect(closed.older, closed.brokers, closed.cluster("older"))  # type: ignore[arg-type]
    closed.ticks(closed.older)
    closed.now += HANDOVER_SECONDS
    closed.both(3)
    assert closed.begun == {5}


PRIOR: Store = {
    **{broker(b): {FOLLOWER_RATE: f"{b}000000", LEADER_RATE: "9000000"} for b in range(6)},
    topic(OURS.topic): {FOLLOWER_REPLICAS: "", LEADER_REPLICAS: "7:1,7:2"},
    topic(LATER.topic): {FOLLOWER_REPLICAS: "7:3"},
}


class Left(Two):
    """What other clients had set is there, and one of the two can do nothing any more after a while."""

    prior = PRIOR

    def only(self, loop: ClusterLoop, times: int = 2) -> None:
        for _ in range(times):
            show_changes(loop)
            self.loop = loop
            self.tick()

    def loop_of(self, name: str) -> ClusterLoop:
        return self.older if name == "older" else self.main

    def fails(self, name: str) -> None:
        self.store.note_served(f"uid-{name}", Problem(Reason.SECRET_NOT_FOUND, ""))

    def throttles(self, name: str) -> bool:
        return self.store.throttle(f"uid-{name}") is not None

    def is_as_before(self) -> bool:
        return self.client.store == PRIOR


@pytest.fixture
def left() -> Left:
    return Left()


def test_what_a_younger_cluster_left_is_taken_over_and_restored(left: Left) -> None:
    left.both(2)
    left.fails("main")
    left.now += HANDOVER_SECONDS - 1
    left.only(left.older, 3)
    assert LATER not in left.kafka.reassignments
    assert "takes them over" in left.message("second")
    left.now += 1
    forget(left.older, refused={})
    left.only(left.older, 4)
    assert (left.throttles("main"), left.throttles("older")) == (False, True)
    forget(left.older, refused={})
    left.only(left.older, 2)
    assert LATER in left.kafka.reassignments
    assert left.rates == {"524288"}
    assert "0:4" in left.client.store[topic(OURS.topic)][FOLLOWER_REPLICAS], "that move goes on"
    left.kafka.copy(OURS)
    left.kafka.copy(LATER)
    left.only(left.older, 8)
    assert left.is_as_before()
    assert not left.throttles("older")


@pytest.mark.parametrize("returns", [False, True])
def test_what_an_older_cluster_left_is_taken_over_and_restored(left: Left, returns: bool) -> None:
    left.kafka.copy(OURS)
    left.both(8)
    left.only(left.older, 4)
    assert (LATER in left.kafka.reassignments, left.throttles("older")) == (True, True)
    left.fails("older")
    left.now += HANDOVER_SECONDS
    left.only(left.main, 3)
    assert (left.throttles("main"), left.throttles("older")) == (True, False)
    left.kafka.copy(LATER)
    if returns:
        left.both(10)
    else:
        left.only(left.main, 10)
    assert left.is_as_before()
    assert not left.throttles("main")


def may_change_nothing(left: Left, loop: ClusterLoop) -> None:
    """Its Kafka user has lost the right to change configurations, and the other one's has not."""

    async def refused(changes: Collection[Change]) -> dict[Change, Outcome]:
        return dict.fromkeys(changes, Outcome(Result.REFUSED, Reason.NOT_AUTHORIZED, "not allowed"))

    its_own: Any = shallow_copy(left.brokers)
    its_own.change = refused
    loop.observer.client = its_own


def test_what_a_duplicate_may_not_restore_is_taken_over_after_its_moves(left: Left) -> None:
    left.both(2)
    may_change_nothing(left, left.main)
    left.now += HANDOVER_SECONDS
    left.both(3)
    assert left.throttles("main"), "its move is in flight"
    left.kafka.copy(OURS)
    left.both(3)
    left.now += HANDOVER_SECONDS - 1
    left.both(1)
    assert (left.throttles("main"), left.throttles("older")) == (True, False)
    assert "When it has not restored them for 90 seconds" in left.message("second")
    left.now += 1
    left.both(4)
    assert (left.throttles("main"), left.throttles("older")) == (False, False)
    forget(left.older, refused={})
    left.both(2)
    assert LATER in left.kafka.reassignments
    assert left.rates == {"524288"}
    left.finish(LATER)
    assert left.is_as_before()


def test_what_a_deleted_cluster_may_not_restore_is_taken_over(left: Left) -> None:
    left.kafka.copy(OURS)
    left.both(8)
    left.only(left.older, 4)
    assert left.throttles("older")
    left.delete("older")
    may_change_nothing(left, left.older)
    left.both(2)
    left.now += HANDOVER_SECONDS
    left.both(2)
    assert left.throttles("older"), "its move is in flight"
    left.kafka.copy(LATER)
    left.both(3)
    assert left.ready("older")["reason"] == Reason.RESTORING_THROTTLES
    left.now += HANDOVER_SECONDS
    left.both(6)
    assert left.is_as_before()
    assert "uid-older" not in left.kube.objects
    assert not left.throttles("main")


def test_a_broker_that_is_down_holds_no_other_cluster_up_for_ever(left: Left) -> None:
    """The younger one has a rate on it, which nobody can restore now."""
    left.store.drop("uid-second")
    left.both(2)
    left.kafka.copy(OURS)
    left.kafka.brokers[4] = Broker(4, fenced=True)
    left.both(6)
    assert left.throttles("main")
    left.now += HANDOVER_SECONDS
    left.both(2)
    assert (left.throttles("main"), left.throttles("older")) == (False, True)
    left.kafka.brokers[4] = Broker(4)
    left.both(6)
    assert left.is_as_before()


def test_what_was_taken_over_meanwhile_is_not_recorded_again(left: Left) -> None:
    """The other one takes it over while this one reads from the brokers what it is about to restore."""
    left.both(2)
    left.kafka.copy(OURS)
    before, reads = copy(left.client.store), []

    async def configs(resources: Collection[ConfigResource]) -> Read:
        reads.append(await left.main.writer.records.take_over(left.cluster("older"), "uid-main"))
        return await left.client.configs(resources)

    its_own: Any = shallow_copy(left.brokers)
    its_own.configs = configs
    left.main.observer.client = its_own
    left.only(left.main, 1)
    assert reads
    assert left.client.store == before
    assert (left.throttles("main"), left.throttles("older")) == (False, True)


@pytest.mark.parametrize("late", [False, True], ids=["its moves have ended", "its moves go on"])
def test_what_is_set_over_throttles_of_an_unknown_cluster_is_restored(left: Left, late: bool) -> None:
    """An earlier version recorded no id with them, so nobody knew of them until their KafkaCluster was reached."""
    left.store.put(left.kube.write("uid-uid-main-0", lambda obj: obj["spec"].pop("clusterId")))
    left.only(left.older, 6)
    assert LATER in left.kafka.reassignments
    assert left.rates == {"524288"}
    if late:
        left.both(4)
        assert left.rates == {"524288"}
    left.kafka.copy(OURS)
    left.both(8)
    assert left.cluster("main").status.conditions[0].reason == Reason.DUPLICATE_CLUSTER
    left.now += HANDOVER_SECONDS
    left.both(4)
    left.finish(LATER)
    assert left.is_as_before()
    assert (left.throttles("main"), left.throttles("older")) == (False, False)


def gone(left: Left, name: str) -> None:
    """Its object goes without its finalizer, and its record stays."""
    del left.kube.objects[f"uid-{name}"]
    left.store.drop(f"uid-{name}")


def gone_before(left: Left, name: str) -> None:
    """It went before this process began."""
    gone(left, name)
    left.store._served.clear()
    left.store._began = left.now


def unreadable(left: Left, name: str) -> None:
    """This version of the operator cannot read it."""
    left.store.put(left.kube.write(f"uid-{name}", lambda obj: obj["spec"].update(limits="none")))
    left.only(left.loop_of(name), 1)


@pytest.mark.parametrize("ends", [gone, gone_before, unreadable])
@pytest.mark.parametrize(("name", "other"), [("main", "older"), ("older", "main")])
def test_what_one_that_is_gone_or_unreadable_left_is_restored(
    left: Left, name: str, other: str, ends: Callable[[Left, str], None]
) -> None:
    if name == "older":
        left.kafka.copy(OURS)
        left.both(8)
        left.only(left.older, 4)
    else:
        left.both(2)
    assert (left.throttles(name), left.throttles(other)) == (True, False)
    ends(left, name)
    before, loop = copy(left.client.store), left.loop_of(other)
    left.now += HANDOVER_SECONDS - 1
    left.only(loop, 3)
    assert (left.throttles(name), left.client.store) == (True, before)
    left.now += 1
    left.only(loop, 4)
    assert (left.throttles(name), left.throttles(other)) == (False, True)
    assert not left.kube.objects[f"uid-uid-{name}-0"]["metadata"]["finalizers"], "nothing keeps its record"
    for _ in range(4):
        for tp in [*left.kafka.reassignments]:
            left.kafka.copy(tp)
        left.only(loop, 3)
    assert left.is_as_before()
    assert not left.throttles(other)


def test_one_that_is_deleted_takes_over_and_restores_all(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is deleted when its own record has what the other one set, and so has the other record still."""
    left.both(2)
    left.fails("main")
    left.now += HANDOVER_SECONDS
    with monkeypatch.context() as patch:
        refuse_record_of_main(left, patch)
        left.only(left.older, 2)
    assert (left.throttles("main"), left.throttles("older")) == (True, True)
    left.store.drop("uid-second")
    left.delete("older")
    left.kafka.copy(OURS)
    left.only(left.older, 8)
    assert left.is_as_before()
    assert "uid-older" not in left.kube.objects


def refuse_record_of_main(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record may not be written."""
    write = left.kube.write_record

    async def refuse(obj: Object, spec: Object, *, held: bool) -> Object:
        if obj["metadata"]["name"].startswith("uid-main"):
            raise ReassignError(Reason.NOT_AUTHORIZED, "403")
        return await write(obj, spec, held=held)

    monkeypatch.setattr(left.kube, "write_record", refuse)


def keeps_record_of_main(left: Left) -> bool:
    """Whether its record stays when its owner is looked for."""
    asyncio.run(left.main.writer.records.look_for_owners(("kafka", "main"), left.kube.now()))
    return bool(left.kube.objects["uid-uid-main-0"]["metadata"]["finalizers"])


def assert_given_up_in_ten_minutes(left: Left) -> None:
    left.now += UNDO_WAITS_SECONDS - 1
    assert keeps_record_of_main(left)
    left.now += 1
    assert not keeps_record_of_main(left)


def test_what_a_cluster_left_waits_for_another_for_its_brokers(left: Left) -> None:
    left.both(2)
    gone(left, "main")
    left.now += 3600
    assert keeps_record_of_main(left)
    gone(left, "older")
    assert not keeps_record_of_main(left)


def test_what_a_cluster_left_waits_ten_minutes_for_a_new_one(left: Left) -> None:
    left.both(2)
    gone(left, "older")
    gone(left, "main")
    assert_given_up_in_ten_minutes(left)


def test_what_a_cluster_left_that_was_never_reached_is_given_up(left: Left) -> None:
    """An earlier version recorded no id: which brokers these are is not known, nor of the other one."""
    left.both(2)
    for name in ("main", "older"):
        left.store.put(left.kube.write(f"uid-uid-{name}-0", lambda obj: obj["spec"].pop("clusterId")))
    gone(left, "main")
    assert_given_up_in_ten_minutes(left)


def test_a_cluster_that_is_gone_is_said_to_restore_nothing(left: Left) -> None:
    left.both(2)
    gone(left, "main")
    left.only(left.older, 2)
    assert "the younger KafkaCluster kafka/main is gone and has left throttles" in left.message("second")
    assert "restores them" not in left.message("second")


def takes_nothing_over(left: Left, why: str) -> None:
    """The other one fails for good, and this one sets nothing and says why."""
    before = copy(left.client.store)
    left.fails("main")
    left.now += HANDOVER_SECONDS
    left.only(left.older, 5)
    assert left.client.store == before
    assert LATER not in left.kafka.reassignments
    assert "can read and write its ReassignmentRecord" in left.message("second")
    [stalled] = [c for c in left.cluster("older").status.conditions if c.type == "Stalled"]
    assert stalled.reason == Reason.THROTTLE_NOT_SET
    assert stalled.message.startswith("no throttle is set before those of the KafkaCluster kafka/main are taken over")
    assert why in stalled.message


def test_a_record_that_cannot_be_written_is_not_taken_over(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    left.both(2)
    refuse_record_of_main(left, monkeypatch)
    takes_nothing_over(left, "403")


def test_a_record_that_cannot_be_read_is_not_taken_over(left: Left) -> None:
    left.both(2)
    left.store.put(left.kube.write("uid-uid-main-0", lambda obj: obj["spec"].update(topics="none")))
    takes_nothing_over(left, "its record cannot be read")


RATE, LIST = ConfigKey(broker(1), FOLLOWER_RATE), ConfigKey(topic(), FOLLOWER_REPLICAS)


@pytest.mark.parametrize(
    ("key", "mine", "theirs", "value", "prior"),
    [
        (RATE, None, ("5", "9"), "5", "9"),
        (RATE, None, ("5", None), "5", None),
        (RATE, ("7", "5"), ("5", "9"), "7", "9"),  # mine was set over theirs
        (RATE, ("5", "9"), ("7", "5"), "5", "9"),
        (LIST, None, ("0:1", ""), "0:1", ""),
        (LIST, ("1:2", "0:1"), ("0:1", None), "0:1,1:2", None),
        (LIST, ("0:1", "7:7"), ("1:2", "0:1,7:7"), "0:1,1:2", "7:7"),
    ],
)
def test_the_prior_value_is_that_before_both(
    key: ConfigKey, mine: tuple[str, str | None] | None, theirs: tuple[str, str | None], value: str, prior: str | None
) -> None:
    own, other = (to_record({key: Ours(*one)}, WantedConfigs()) if one else None for one in (mine, theirs))
    assert other
    taken = from_record(with_taken_over(own, other))[key]
    assert (taken.value, taken.prior) == (value, prior)
