"""The command `assign`: a new topic's replicas over racks of racks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reassign.core.model.snapshot import Broker
from tests.unit.cli import error_of, run, sim, taken

RACKS = {1: "/a/1", 2: "/a/2", 3: "/b/1", 4: "/b/2"}
TOPIC = ("--topic", "new", "--partitions", 2, "--replication-factor", 3)
FIRST = ("--seed", 4)
"""All rings begin at their first child."""


def snapshot(folder: Path, brokers: dict[int, Broker] | None = None) -> Path:
    kafka = sim()
    kafka.replicas.clear()
    kafka.brokers = brokers or {id: Broker(id, rack) for id, rack in RACKS.items()}
    return taken(folder, kafka)


def test_the_worked_example_as_the_stock_tools_json(tmp_path: Path) -> None:
    ran = run("assign", "--snapshot", snapshot(tmp_path), *TOPIC, *FIRST)
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "version": 1,
        "partitions": [
            {"topic": "new", "partition": 0, "replicas": [1, 3, 2]},
            {"topic": "new", "partition": 1, "replicas": [4, 1, 3]},
        ],
    }


def test_the_same_for_the_option_of_kafka_topics(tmp_path: Path) -> None:
    ran = run("assign", "--snapshot", snapshot(tmp_path), *TOPIC, *FIRST, "-o", "kafka-topics")
    assert ran == (0, "1:3:2,4:1:3\n", "")


def test_without_a_seed_the_start_is_random_and_can_be_repeated(tmp_path: Path) -> None:
    folder = snapshot(tmp_path)
    ran = [run("assign", "--snapshot", folder, *TOPIC, "-o", "kafka-topics") for _ in range(20)]
    assert len({one.out.split(":")[0] for one in ran}) > 1
    note, seed = ran[0].err.rsplit(" ", 1)
    assert note == "random start; to repeat this assignment: --seed"
    again = run("assign", "--snapshot", folder, *TOPIC, "-o", "kafka-topics", "--seed", int(seed))
    assert again == (0, ran[0].out, "")


def test_a_seed_makes_the_rings_begin_elsewhere_and_always_there(tmp_path: Path) -> None:
    folder = snapshot(tmp_path)
    found = {run("assign", "--snapshot", folder, *TOPIC, "--seed", seed).out for seed in (*range(8), *range(8))}
    assert 1 < len(found) <= 8


def test_simple_assignment_ignores_racks(tmp_path: Path) -> None:
    ran = run("assign", "--snapshot", snapshot(tmp_path), *TOPIC, "--force-simple", "-o", "kafka-topics", "--seed", 1)
    assert ran.out == "1:2:3,2:3:4\n"


def test_a_topic_that_is_there_already_is_noted(tmp_path: Path) -> None:
    asked = ("assign", "--snapshot", taken(tmp_path), "--partitions", 1, "--replication-factor", 1, "--seed", 1)
    ran = run(*asked, "--force-simple", "--topic", "orders")
    assert (ran.code, ran.err) == (0, "note: there is a topic orders already, with 2 partitions\n")
    assert run(*asked, "--force-simple", "--topic", "other").err == ""


def test_brokers_that_are_down_are_not_chosen_unless_they_are_named(tmp_path: Path) -> None:
    brokers = {id: Broker(id, rack, fenced=id == 1) for id, rack in RACKS.items()}
    folder = snapshot(tmp_path, brokers)
    assert "1" not in run("assign", "--snapshot", folder, *TOPIC, "-o", "kafka-topics").out
    named = run("assign", "--snapshot", folder, *TOPIC, "--broker", "1,2,3", "-o", "kafka-topics").out
    assert sorted(named.split(",")[0].split(":")) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("dead", "arguments"),
    [((), ("--force-simple",)), ((4,), ()), ((4,), ("--broker", "1,2,4")), ((), ("--broker", "1,2,3"))],
)
def test_a_broker_without_a_rack_is_left_out_or_racks_are(
    tmp_path: Path, dead: tuple[int, ...], arguments: tuple[str, ...]
) -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: ""}
    folder = snapshot(tmp_path, {id: Broker(id, rack, fenced=id in dead) for id, rack in racks.items()})
    assert run("assign", "--snapshot", folder, *TOPIC, *arguments, "--seed", 1).code == 0


@pytest.mark.parametrize(
    ("racks", "arguments", "why"),
    [
        (RACKS, ("--broker", "9"), "broker 9 is not in the cluster"),
        (RACKS, ("--broker", "1,2"), "NotEnoughBrokers"),
        ({1: "/a//1", 2: "/b", 3: "/c"}, (), "or use `--force-simple` (InvalidRacks)"),
        ({1: "/a/1", 2: "b", 3: "/c"}, (), "or use `--force-simple` (InvalidRacks)"),
        ({1: "/a" * 12, 2: "/b", 3: "/c"}, (), "or use `--force-simple` (InvalidRacks)"),
        ({1: "a", 2: "", 3: "c"}, (), "broker 2 has no rack"),
    ],
)
def test_an_impossible_assignment_is_refused(
    tmp_path: Path, racks: dict[int, str], arguments: tuple[str, ...], why: str
) -> None:
    folder = snapshot(tmp_path, {id: Broker(id, rack) for id, rack in racks.items()})
    assert why in error_of(run("assign", "--snapshot", folder, *TOPIC, *arguments), 2)


@pytest.mark.parametrize(("ids", "why"), [("x", "'x' is not a broker id"), ("1,1", "1,1 names a broker more than")])
def test_broker_ids_that_are_none_name_their_option(tmp_path: Path, ids: str, why: str) -> None:
    ran = run("assign", "--snapshot", snapshot(tmp_path), *TOPIC, "--broker", ids)
    assert (ran.code, ran.out) == (2, "")
    assert f"error: Invalid value for '--broker': {why}" in ran.err
