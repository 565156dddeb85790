"""Which volume a replica goes to on a broker that has several."""

import numpy as np

from reassign.planning.problem.directories import name, volumes
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories

GB = 10**9


def directories(
    *rows: tuple[int, int, int], cordoned: tuple[int, ...] = (), offline: tuple[int, ...] = ()
) -> Directories:
    """Of rows (broker, total, usable), in GB."""
    broker, total, usable = (np.array(column) for column in zip(*rows, strict=True))
    everything = np.arange(len(rows))
    return Directories(
        broker=broker.astype(np.int32),
        path=tuple(f"/data/{i}" for i in everything),
        total=np.where(total == UNKNOWN, UNKNOWN, total * GB),
        usable=np.where(usable == UNKNOWN, UNKNOWN, usable * GB),
        cordoned=np.isin(everything, cordoned),
        online=~np.isin(everything, offline),
    )


def cluster(found: Directories, replicas: list[list[int]], topic: str = "t") -> Cluster:
    partitions = len(replicas)
    brokers = int(found.broker.max()) + 1
    return Cluster(
        id="a",
        brokers=np.arange(brokers, dtype=np.int32),
        racks=("",) * brokers,
        registered=np.ones(brokers, np.bool_),
        alive=np.ones(brokers, np.bool_),
        directories=found,
        topics=(topic,),
        topic=np.zeros(partitions, np.int32),
        partition=np.arange(partitions, dtype=np.int32),
        replicas=np.array(replicas, np.int32),
        sizes=np.zeros(partitions, np.int64),
        in_flight=np.zeros(partitions, np.bool_),
    )


def named(
    found: Directories, target: list[list[int]], *gigabytes: int, min_free: float = 0.1, topic: str = "t"
) -> tuple[object, list[int]]:
    start = cluster(found, [[0]] * len(target), topic)
    sizes = np.array(gigabytes, np.int64) * GB
    chosen, without_room = name(start, np.array(target, np.int32), sizes, min_free)
    return chosen.tolist(), without_room


def test_directories_of_one_volume_are_recognised_by_their_sizes() -> None:
    found = directories((0, 100, 50), (0, 100, 50), (0, 200, 50), (1, 100, 50), (1, UNKNOWN, UNKNOWN))
    assert volumes(found).tolist() == [0, 0, 1, 2, 3]


def test_a_volume_of_no_size_takes_nothing() -> None:
    assert named(directories((0, 9, 9), (1, 0, 0), (1, 100, 50), (1, 90, 80)), [[1]], 1) == ([[3]], [])


def test_a_volume_without_known_free_space_takes_nothing() -> None:
    found = directories((0, 9, 9), (1, 100, UNKNOWN), (1, 100, 50), (1, 90, 80))
    assert named(found, [[1]], 1) == ([[3]], [])
    only = directories((0, 9, 9), (1, 100, UNKNOWN), (1, 90, 80))
    assert named(only, [[1]], 75) == ([[UNKNOWN]], []), "the broker chooses"


def test_on_one_volume_the_broker_chooses() -> None:
    assert named(directories((0, 9, 9), (1, 100, 50), (1, 100, 50)), [[1]], 1) == ([[UNKNOWN]], [])


def test_the_largest_goes_first_to_the_volume_with_most_free_share() -> None:
    found = directories((0, 9, 9), (1, 100, 60), (1, 200, 160))
    assert named(found, [[1], [0], [1], [1]], 10, 10, 70, 20) == ([[2], [UNKNOWN], [2], [1]], [])


def test_what_stays_where_it_is_gets_no_directory() -> None:
    assert named(directories((0, 9, 9), (0, 8, 4)), [[0]], 1) == ([[UNKNOWN]], [])


def test_cordoned_and_offline_directories_take_nothing() -> None:
    found = directories(
        (0, 9, 9), (1, 100, 20), (1, 200, 30), (1, 300, 300), (1, 400, 400), cordoned=(3,), offline=(4,)
    )
    assert named(found, [[1]], 5) == ([[1]], [])


def test_what_fits_into_no_volume_is_reported_and_left_to_the_broker() -> None:
    found = directories((0, 9, 9), (1, 100, 20), (1, 200, 29))
    assert named(found, [[1], [1]], 15, 9) == ([[UNKNOWN], [1]], [0])
    assert named(found, [[1], [1]], 15, 9, min_free=0) == ([[1], [2]], [])


def test_for_too_long_a_name_the_broker_chooses_among_volumes_with_room() -> None:
    found = directories((0, 9, 9), (1, 100, 60), (1, 200, 160))
    assert named(found, [[1]], 50, topic="t" * 213) == ([[2]], [])
    assert named(found, [[1]], 50, topic="t" * 214) == ([[UNKNOWN]], [])
    assert named(found, [[1]], 51, topic="t" * 214) == ([[UNKNOWN]], [0])
    assert named(found, [[1], [1]], 30, 30, topic="t" * 214) == ([[UNKNOWN], [UNKNOWN]], [1]), "it may be the same one"


def test_a_volume_with_room_comes_before_one_with_a_greater_free_share() -> None:
    found = directories((0, 9, 9), (1, 100, 60), (1, 2000, 400))
    assert named(found, [[1]], 60) == ([[2]], [])
