"""What a plan is made from, out of one look at a whole cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.survey import Roles, roles, survey
from reassign.errors import Reason
from reassign.planning.unseen import UnseenLogs
from tests.unit.sim import SimKafka

A0, A1, B10, B2 = (
    TopicPartition("a", 0),
    TopicPartition("a", 1),
    TopicPartition("b", 10),
    TopicPartition("b", 2),
)


def kafka() -> SimKafka:
    return SimKafka(
        {B10: (7, 3), B2: (3,), A1: (5, 3, 7), A0: (3, 5, 7)},
        brokers={7: Broker(7, "/x/1"), 3: Broker(3, None), 5: Broker(5, "/y/1", fenced=True)},
        sizes={A0: {3: 100, 7: 90}, A1: {3: 50, 7: 60}, B2: {3: 0}},
    )


def test_partitions_are_sorted_and_name_brokers_by_index() -> None:
    found = survey(kafka().snapshot())
    assert found.id == "sim"
    assert found.topics == ("a", "b")
    assert list(zip(found.topic.tolist(), found.partition.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2), (1, 10)]
    assert found.brokers.tolist() == [3, 5, 7]
    assert found.replicas.tolist() == [[0, 1, 2], [1, 0, 2], [0, -1, -1], [2, 0, -1]]
    assert (found.replicas.dtype, found.sizes.dtype, found.in_flight.dtype) == (np.int32, np.int64, np.bool_)


def test_racks_and_who_is_alive_come_from_what_is_registered() -> None:
    found = survey(kafka().snapshot())
    assert found.racks == ("", "/y/1", "/x/1")
    assert found.alive.tolist() == [True, False, True]
    assert found.registered.tolist() == [True, True, True]


def test_a_broker_that_only_a_replica_names_is_not_registered() -> None:
    sim = kafka()
    del sim.brokers[5]
    found = survey(sim.snapshot())
    assert found.brokers.tolist() == [3, 5, 7]
    assert found.alive.tolist() == found.registered.tolist() == [True, False, True]
    assert found.racks == ("", "", "/x/1")


def test_a_size_is_the_leaders_else_the_greatest_known() -> None:
    # 5 leads a-1 and does not say its size; nothing is known of b-10
    assert survey(kafka().snapshot()).sizes.tolist() == [100, 60, 0, -1]


def test_without_any_sizes_all_are_unknown() -> None:
    sim = kafka()
    sim.sizes = None
    assert survey(sim.snapshot()).sizes.tolist() == [-1, -1, -1, -1]


def test_of_a_partition_in_flight_the_replicas_are_its_targets() -> None:
    sim = kafka()
    sim.move_as_another(A0, (7, 5))
    found = survey(sim.snapshot())
    assert found.in_flight.tolist() == [True, False, False, False]
    assert found.replicas[0].tolist() == [2, 1, -1]
    assert survey(kafka().snapshot()).in_flight.tolist() == [False] * 4


def test_what_is_in_flight_of_a_topic_that_we_may_not_see_is_left_out() -> None:
    sim = kafka()
    sim.move_as_another(A0, (7, 5))
    snapshot = sim.snapshot({B2: sim.metadata()[B2]})
    assert survey(snapshot).topics == ("b",)


def test_log_dirs_are_sorted_by_broker_and_path_with_their_volumes() -> None:
    sim = kafka()
    sim.log_dirs = {
        7: {"/b": LogDir(total=9, usable=4, cordoned=True, logs={A1: 60}), "/a": LogDir(online=False, logs={A0: 90})},
        3: {"/a": LogDir(logs={A0: 100, A1: 50, B2: 0})},
    }
    found = survey(sim.snapshot())
    directories = found.directories
    assert directories.broker.tolist() == [0, 2, 2]  # the broker that is down says nothing
    assert directories.path == ("/a", "/a", "/b")
    assert directories.total.tolist() == [-1, -1, 9]
    assert directories.usable.tolist() == [-1, -1, 4]
    assert directories.cordoned.tolist() == [False, False, True]
    assert directories.online.tolist() == [True, False, True]
    assert found.directory.tolist() == [[0, -1, 1], [-1, 0, 2], [0, -1, -1], [-1, -1, -1]]


def test_a_replica_on_its_way_to_another_directory_counts_as_there() -> None:
    sim = kafka()
    sim.log_dirs = {3: {"/a": LogDir(futures={A0: 1}), "/b": LogDir(logs={A0: 100})}}
    found = survey(sim.snapshot())
    # broker 7 has one directory, which comes after both of broker 3
    assert found.directory[0].tolist() == [0, -1, 2]


def test_a_cluster_without_topics_has_arrays_of_no_rows() -> None:
    found = survey(SimKafka({}).snapshot())
    assert found.replicas.shape == found.directory.shape == (0, 0)
    assert found.sizes.shape == found.topic.shape == (0,)
    assert found.brokers.tolist() == [0, 1, 2, 3, 4, 5]


# --- leaders and in-sync replicas ---


def roles_of(sim: SimKafka) -> Roles:
    snapshot = sim.snapshot()
    return roles(snapshot, survey(snapshot))


def test_leaders_and_in_sync_replicas_are_those_of_metadata() -> None:
    sim = kafka()
    sim.leader |= {A0: 7, B2: None}
    sim.isr |= {A1: frozenset({7, 5}), B2: frozenset()}
    found = roles_of(sim)
    assert found.leader.tolist() == [2, 1, -1, 2]
    assert found.isr.tolist() == [[0, 1, 2], [1, 2, -1], [-1, -1, -1], [0, 2, -1]]
    assert (found.leader.dtype, found.isr.dtype) == (np.int32, np.int32)


def test_original_replicas_lead_and_are_in_sync_during_a_move() -> None:
    sim = kafka()
    sim.move_as_another(B2, (7,))
    found = roles_of(sim)
    assert survey(sim.snapshot()).replicas[2].tolist() == [2, -1, -1]
    assert (found.leader[2], found.isr[2].tolist()) == (0, [0, -1, -1])


def test_a_missing_broker_of_a_replica_being_removed_leads_nothing() -> None:
    sim = SimKafka({B2: (3, 5)}, brokers={5: Broker(5), 7: Broker(7)})
    sim.move_as_another(B2, (5, 7))
    assert survey(sim.snapshot()).brokers.tolist() == [5, 7]
    found = roles_of(sim)
    assert (found.leader.tolist(), found.isr.tolist()) == ([-1], [[0]])


def test_a_cluster_without_topics_has_no_roles() -> None:
    found = roles_of(SimKafka({}))
    assert (found.leader.shape, found.isr.shape) == ((0,), (0, 0))


def test_logs_without_metadata_and_brokers_without_a_report_are_unseen() -> None:
    sim = kafka()
    hidden = [TopicPartition("hidden", number) for number in range(2)]
    sim.log_dirs[7] = {"/a": LogDir(logs={hidden[0]: 30}), "/b": LogDir(logs={hidden[1]: 12})}
    sim.silent = {3}
    unseen = survey(sim.snapshot()).unseen
    assert unseen is not None
    assert unseen.logs == (UnseenLogs(7, "hidden", 2, 42),)
    assert unseen.silent == {3, 5}, "5 is fenced"


def test_a_broker_with_an_offline_log_directory_is_silent() -> None:
    sim = kafka()
    sim.log_dirs[7] = {"/a": LogDir(logs={A0: 90}), "/failed": LogDir(online=False)}
    unseen = survey(sim.snapshot()).unseen
    assert unseen is not None
    assert unseen.silent == {5, 7}, "5 is fenced"


def test_a_topic_whose_configuration_is_withheld_is_unseen() -> None:
    snapshot = kafka().snapshot()
    gone = next(iter(sorted(snapshot.topics)))
    withheld = replace(
        snapshot,
        topics={name: topic for name, topic in snapshot.topics.items() if name != gone},
        unread_topics={gone: Problem(Reason.NOT_AUTHORIZED, "its configuration is withheld")},
    )
    unseen = survey(withheld).unseen
    assert unseen is not None
    assert {one.topic for one in unseen.logs} == unseen.unread == {gone}
