"""Which steps go in one request."""

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Alter, Cancel, Elect, Step
from reassign.kafka.steps import batches


def tp(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_at_most_two_hundred_partitions_in_one() -> None:
    steps = [Alter(tp(number), (1, 2)) for number in range(450)]
    assert [len(batch) for batch in batches(steps)] == [200, 200, 50]


def test_a_change_of_kind_or_guard_begins_another_and_the_order_stays() -> None:
    steps: list[Step] = [
        Cancel(tp(0), (1, 2)),
        Cancel(tp(1), (1, 2)),
        Alter(tp(2), (1, 2)),
        Alter(tp(3), (1,), allow_replication_factor_change=True),
        Elect(tp(4)),
        Elect(tp(5)),
        Alter(tp(6), (1, 2)),
    ]
    found = list(batches(steps))
    assert found == [steps[0:2], steps[2:3], steps[3:4], steps[4:6], steps[6:7]]


def test_a_partition_comes_once_in_a_request() -> None:
    steps: list[Step] = [Cancel(tp(0), (1, 2)), Cancel(tp(1), (1, 2)), Alter(tp(0), (1, 2))]
    assert list(batches(steps)) == [steps[0:2], steps[2:3]]


def test_nothing_to_do() -> None:
    assert list(batches([])) == []
