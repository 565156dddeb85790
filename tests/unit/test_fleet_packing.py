"""How snapshots are packed into tasks, and what that is worth on many cores."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.fleet.choose import Folder
from reassign.fleet.handout import packed
from reassign.spark.executors import slots
from tests.benchmarks.fleet_cores import CORES, Timed, bound, makespan

SIZES = st.lists(st.integers(0, 1 << 20), min_size=1, max_size=40)
FEW_SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=7)


def loads(sizes: list[int], tasks: int) -> list[int]:
    """The bytes of each task; of each snapshot one more, so that empty ones are spread, too."""
    found = [0] * tasks
    for folder, task in packed({Folder("", str(n)): size for n, size in enumerate(sizes)}, tasks).items():
        found[task] += sizes[int(folder.cluster)] + 1
    return found


@given(SIZES, st.integers(1, 12))
def test_no_task_has_more_than_the_mean_and_the_largest(sizes: list[int], tasks: int) -> None:
    found = loads(sizes, tasks)
    assert sum(found) == sum(sizes) + len(sizes)
    assert max(found) <= Fraction(sum(found), tasks) + max(sizes) + 1


@given(FEW_SIZES, st.integers(1, 3))
def test_packing_is_at_most_a_third_off_the_best(sizes: list[int], tasks: int) -> None:
    """Graham's bound of largest first, 4/3 - 1/(3m)."""
    best = min(
        max(sum(size + 1 for size, of in zip(sizes, each, strict=True) if of == task) for task in range(tasks))
        for each in product(range(tasks), repeat=len(sizes))
    )
    assert max(loads(sizes, tasks)) <= (Fraction(4, 3) - Fraction(1, 3 * tasks)) * best


def test_a_largest_above_the_mean_is_alone_in_the_first_task() -> None:
    sizes = {Folder("", str(n)): size for n, size in enumerate([3, 1, 4, 100, 5, 9, 2, 6])}
    of = packed(sizes, 4)
    assert [folder.cluster for folder, task in of.items() if task == 0] == ["3"]


def test_a_skewed_fleet_takes_as_long_as_its_largest_once_cores_suffice() -> None:
    even = [Timed(40_000 + n % 7, 0.1) for n in range(2_000)]
    for fleet in (even, [*even, Timed(14_000_000, 10)]):
        assert all(makespan(fleet, cores) <= 1.25 * bound(fleet, cores) for cores in CORES)
    assert [makespan(fleet, cores) for cores in (32, 64)] == [10, 10]


@pytest.mark.parametrize(
    ("master", "settings", "expected"),
    [
        ("local[4]", {"spark.executor.cores": "2"}, 4),
        ("local[4]", {"spark.task.cpus": "2"}, 2),
        ("local[3,2]", {"spark.default.parallelism": "200"}, 3),
        ("local[*]", {}, os.cpu_count()),
        ("local", {}, 1),
        ("k8s://https://there", {"spark.executor.cores": "3", "spark.task.cpus": "2"}, 1),
        ("k8s://https://there", {"spark.executor.cores": "8"}, 8),
        ("k8s://https://there", {}, 1),
        ("spark://there:7077", {}, 4),
    ],
)
def test_an_executor_runs_a_task_for_each_of_its_cores(master: str, settings: dict[str, str], expected: int) -> None:
    context: Any = SimpleNamespace(master=master, defaultParallelism=4, getConf=lambda: settings)
    assert slots(context) == expected
