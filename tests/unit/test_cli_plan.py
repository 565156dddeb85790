"""The command `plan`: what is asked of the planner, and how its answer is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from reassign.api.goal import Awareness, By, FencedBrokers, Scope
from reassign.api.limits import MAX_TOPIC_NAME_CHARACTERS
from reassign.cli import output, planning
from reassign.core.model.snapshot import Broker
from reassign.files import rules
from reassign.planning.problem.model import PlacementGoal, UnmetGoal
from tests.fleet import broken
from tests.snapshots import as_of_version_2
from tests.unit.cli import GIB, P1, Live, Planner, error_of, kafka_cluster, run, sim, taken

GOAL = ("--broker", "0,1,2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return taken(tmp_path)


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    found = Planner()
    monkeypatch.setattr(planning, "make", found.make)
    return found


def test_the_options_are_the_goal_and_the_waves(folder: Path, planner: Planner) -> None:
    ran = run(
        *("plan", "--snapshot", folder, "--drain-broker", "5", "--broker", "0,1,2", "--broker", 3),
        *("--replication-factor", 2, "--balance", "disk", "--balance", "leaders", "--tolerance", 5, "--racks", "flat"),
        *("--include", "a*", "--include", "b", "--exclude", "c", "--max-partitions", 7, "--max-bytes", "1Gi"),
        *("--throttle", "50Mi", "--min-free-disk", 0, "--fenced-brokers", "replace"),
    )
    assert ran.code == 0, ran
    assert planner.goal == PlacementGoal(
        include=("a*", "b"),
        exclude=("c",),
        drain=frozenset({5}),
        brokers=frozenset({0, 1, 2, 3}),
        replication_factor=2,
        balance=frozenset({By.DISK, By.LEADERS}),
        tolerance=0.05,
        awareness=Awareness.FLAT,
        min_free=0.0,
        fenced_brokers=FencedBrokers.REPLACE,
    )
    assert planner.waves == (7, 2**30, 50 * 2**20)


def test_without_options_everything_is_as_a_plan_of_the_operator_has_it(folder: Path, planner: Planner) -> None:
    assert run("plan", "--snapshot", folder, *GOAL).code == 0
    assert planner.goal == PlacementGoal(brokers=frozenset({0, 1, 2}))
    assert planner.waves == (200, None, None)


@pytest.mark.parametrize("arguments", [(), ("--tolerance", 5, "--racks", "flat", "--include", "a")])
def test_no_goal_is_a_usage_error_that_lists_the_goals(folder: Path, arguments: tuple[object, ...]) -> None:
    ran = run("plan", "--snapshot", folder, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "at least one of --drain-broker, --broker, --replication-factor and --balance" in ran.err


def test_a_drain_may_move_nothing_else_and_avoid_brokers(folder: Path, planner: Planner) -> None:
    drain = ("--drain-broker", 5, "--scope", "drained", "--avoid-broker", "1,2", "--avoid-broker", 3)
    assert run("plan", "--snapshot", folder, *drain).code == 0
    assert planner.goal == PlacementGoal(drain=frozenset({5}), scope=Scope.DRAINED, avoid=frozenset({1, 2, 3}))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--balance", "disk", "--scope", "drained"), "drained needs --drain-broker"),
        (("--drain-broker", 5, "--replication-factor", 2, "--scope", "drained"), "excludes --replication-factor"),
        (("--drain-broker", "5,6", "--avoid-broker", 6), "broker 6 is to be emptied"),
        (("--broker", "1,2", "--avoid-broker", "2,3"), "broker 3 is to be emptied"),
        (("--avoid-broker", 6), "at least one of --drain-broker"),
    ],
)
def test_goals_that_contradict_themselves_are_usage_errors(
    folder: Path, arguments: tuple[object, ...], why: str
) -> None:
    ran = run("plan", "--snapshot", folder, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in " ".join(ran.err.split())


def test_patterns_come_by_commas_as_ids_do(folder: Path, planner: Planner) -> None:
    lists = ("--include", "a,b*", "--include", "c", "--exclude", "d?,__*")
    assert run("plan", "--snapshot", folder, *GOAL, *lists).code == 0
    assert (planner.goal.include, planner.goal.exclude) == (("a", "b*", "c"), ("d?", "__*"))
    assert run("plan", "--snapshot", folder, *GOAL, "--exclude", "").code == 0
    assert planner.goal.exclude == ()


def test_the_help_says_what_becomes_of_internal_topics() -> None:
    text = " ".join(run("plan", "--help").out.split())
    assert "By default __* are not balanced, but are drained." in text


TOPICS = ("orders", "orders.eu", "payments", "__consumer_offsets")


@pytest.mark.parametrize(
    ("include", "exclude", "notes"),
    [
        (("*",), None, []),
        (("orders", "ord*"), ("payments", "__*"), []),
        (("orders", "shops*"), None, ["no topic matches shops* of --include"]),
        (("orders",), ("shops",), ["no topic matches shops of --exclude"]),
        (("order.*",), None, ["no topic matches order.* of --include; order* matches 2 topics"]),
        (
            ("orders.*",),
            None,
            ["orders.* of --include matches 1 topic, with a dot in the name; orders* matches 2 topics"],
        ),
        (
            ("*",),
            ("orders",),
            ["--exclude replaces its default, so __consumer_offsets may move; add __* to prevent that"],
        ),
        (("orders",), ("payments",), []),
        (("*",), (), []),
    ],
)
def test_what_patterns_do_not_match_is_said(
    include: tuple[str, ...], exclude: tuple[str, ...] | None, notes: list[str]
) -> None:
    assert [*planning.pattern_notes(PlacementGoal(include, exclude), TOPICS)] == notes


def test_a_pattern_that_matches_nothing_is_a_note(folder: Path, planner: Planner) -> None:
    ran = run("plan", "--snapshot", folder, *GOAL, "--include", "orders,shops", "-o", "json")
    assert (ran.code, ran.err) == (0, "note: no topic matches shops of --include\n")


NO_BROKERS = "NoBrokers"


@pytest.mark.parametrize("kind", [*sorted(rules.FAULTS), NO_BROKERS])
def test_a_snapshot_with_rows_that_a_fleet_quarantines_is_refused(tmp_path: Path, kind: str) -> None:
    broken.BROKEN[kind](tmp_path, "main")
    folder = tmp_path / f"date={broken.DAY}" / "cluster=main"
    ran = run("plan", "--snapshot", folder, "--balance", "disk")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert ("it has no brokers" if kind == NO_BROKERS else f"{kind} in ") in ran.err
    assert rules.REMEDIES.get(kind, "take it again") in ran.err


def test_a_drain_from_a_snapshot_of_an_earlier_version_is_incomplete(tmp_path: Path) -> None:
    folder = broken.good(tmp_path, "main")
    assert run("plan", "--snapshot", folder, "--drain-broker", 4).err == ""
    as_of_version_2(folder)
    ran = run("plan", "--snapshot", folder, "--drain-broker", 4)
    assert ran.code == 1
    assert ran.err.startswith("note: what could not be seen is not known")
    assert "it is not known what broker 4 has of topics that could not be read" in ran.out


def test_free_disk_and_rate_default_to_those_of_the_kafka_cluster(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = kafka_cluster(limits={"minFreeDiskPercent": 3}, throttle={"interBroker": "7Mi"})
    Live(sim(), limited).serve(monkeypatch)
    here = ("plan", "--cluster", "main", "-n", "kafka", *GOAL)
    assert run(*here).code == 0
    assert (planner.goal.min_free, planner.waves[2]) == (0.03, 7 * 2**20)
    assert run(*here, "--min-free-disk", 20, "--throttle", "1Mi").code == 0
    assert (planner.goal.min_free, planner.waves[2]) == (0.2, 2**20)
    Live(sim(), kafka_cluster()).serve(monkeypatch)
    assert run(*here).code == 0
    assert (planner.goal.min_free, planner.waves[2]) == (0.1, None)


def test_no_rate_is_above_the_kafka_clusters_maximum(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = kafka_cluster(limits={"maxThrottle": "2Mi"}, throttle={"interBroker": "1Mi"})
    Live(sim(), bounded).serve(monkeypatch)
    here = ("plan", "--cluster", "main", "-n", "kafka", *GOAL)
    assert run(*here, "--throttle", "5Mi").code == 0
    assert planner.waves[2] == 2 * 2**20
    assert run(*here).code == 0
    assert planner.waves[2] == 2**20


def test_a_partition_of_unknown_size_counts_as_the_mean_of_its_topic(tmp_path: Path, planner: Planner) -> None:
    kafka = sim()
    kafka.sizes = {P1: kafka.sizes[P1]} if kafka.sizes else {}
    ran = run("plan", "--snapshot", taken(tmp_path, kafka), *GOAL, "-o", "json")
    brokers = {broker["id"]: broker["before"]["disk"] for broker in json.loads(ran.out)["brokers"]}
    assert (brokers[0], brokers[1]) == (4 * GIB, 4 * GIB)


def test_text_has_costs_beside_bounds_and_brokers_before_and_after(folder: Path, planner: Planner) -> None:
    ran = run("plan", "--snapshot", folder, "--drain-broker", 1, "--throttle", "50Mi")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "bytes copied 3.0 GiB 2.0 GiB 1.500" in lines
    assert "replicas moved 2 2 1.000" in lines
    assert "time at the throttle 90 s 60 s 1.500" not in lines
    assert "time at the throttle 2 min 60 s 1.500" in lines
    assert "preferred leaders changed 1" in lines
    assert "disk 0.00 to 1.50 0.90 to 1.10 0.90 to 1.10 1.05" in lines
    lines = [re.sub("█+", "█", line) for line in lines]
    assert "1 r1 3.0 GiB █ 0 B 2 → 0 1 → 0" in lines
    assert "2 r2 0 B 3.0 GiB █ 0 → 2 █ 0 → 1" in lines
    assert "\x1b" not in ran.out
    assert ran.err == ""


@pytest.mark.parametrize("width", [60, 80, 200])
def test_in_a_narrow_terminal_bars_give_way_and_no_number_does(
    folder: Path, planner: Planner, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "WIDTH", width)
    lines = run("plan", "--snapshot", folder, "--drain-broker", 1).out.splitlines()
    brokers = lines[[line.startswith("BROKER") for line in lines].index(True) :]
    assert "…" not in "".join(brokers)
    assert max(map(len, brokers)) <= width
    assert [line.split()[-3:] for line in brokers[2:4]] == [["1", "→", "0"], ["0", "→", "1"]]


def test_the_longest_names_take_no_column_away(tmp_path: Path, planner: Planner) -> None:
    topic, rack = "t" * MAX_TOPIC_NAME_CHARACTERS, "/dc/" + "r" * 150
    kafka = sim(topic)
    kafka.brokers[2] = Broker(2, rack)
    text = run("plan", "--snapshot", taken(tmp_path, kafka), *GOAL, "-o", "wide").out
    brokers, partitions = text.partition("BROKER")[2].split("PARTITION")
    assert partitions.split()[:3] == ["wave", "from", "to"]
    assert partitions.splitlines()[1].split() == [f"{topic}-0", "1", "0,1", "0,2"]
    assert re.search(r"3\.0 GiB .* 0 → 2 .* 0 → 1$", brokers, re.MULTILINE)
    assert "…" not in text
    assert rack in re.sub(r"\s", "", brokers)


def test_a_rack_is_written_as_it_is_and_a_broker_that_is_down_is_marked(tmp_path: Path, planner: Planner) -> None:
    kafka = sim()
    kafka.brokers[3] = Broker(3, "[red]:smile:[/red]", fenced=True)
    kafka.brokers[4] = Broker(4, None, fenced=True)
    ran = run("plan", "--snapshot", taken(tmp_path, kafka), *GOAL)
    assert "3 [red]:smile:[/red] (down) " in ran.out
    assert "4 (down) " in ran.out


def test_json_is_all_that_is_on_stdout(folder: Path, planner: Planner) -> None:
    ran = run("plan", "--snapshot", folder, "--drain-broker", 1, "--output", "json")
    found = json.loads(ran.out)
    assert found["bytes"] == {"plan": 3 * 2**30, "bound": 2 * 2**30}
    assert found["seconds"] == {"plan": None, "bound": None}
    assert found["partitions"][0] == {"topic": "orders", "partition": 0, "from": [0, 1], "to": [0, 2], "wave": 1}
    assert found["brokers"][2] == {
        "id": 2,
        "rack": "r2",
        "before": {"disk": 0, "replicas": 0, "leaders": 0},
        "after": {"disk": 3 * 2**30, "replicas": 2, "leaders": 1},
    }
    assert ran.err == ""


def test_an_unmet_goal_is_shown_with_the_nearest_and_exits_with_no(folder: Path, planner: Planner) -> None:
    planner.unmet = (UnmetGoal("broker 1 has 2 GiB too much", "12 % over"),)
    ran = run("plan", "--snapshot", folder, *GOAL)
    assert ran.code == 1
    assert "NOT MET\n  broker 1 has 2 GiB too much; the nearest that is reached: 12 % over\n" in ran.out
    ran = run("plan", "--snapshot", folder, *GOAL, "-o", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["unmet"] == [
        {"what": "broker 1 has 2 GiB too much", "nearest": "12 % over", "part": None}
    ]


def test_a_live_cluster_is_observed_where_there_is_no_snapshot(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(sim()).serve(monkeypatch)
    ran = run("plan", "--bootstrap-server", "b:9092", *GOAL, "-o", "json")
    assert json.loads(ran.out)["clusterId"] == "sim"


def test_manifests_are_suspended_waves_for_the_named_kafka_cluster(folder: Path, planner: Planner) -> None:
    ran = run(
        *("plan", "--snapshot", folder, *GOAL, "-o", "manifests", "--cluster", "main", "-n", "kafka"),
        *("--name", "drain-1", "--throttle", "50Mi"),
    )
    assert (ran.code, ran.err) == (0, "")
    (manifest,) = yaml.safe_load_all(ran.out)
    assert manifest["metadata"]["name"].startswith("drain-1-")
    assert manifest["metadata"]["namespace"] == "kafka"
    assert manifest["spec"]["clusterRef"] == {"name": "main"}
    assert manifest["spec"]["suspend"] is True
    assert manifest["spec"]["throttle"] == {"interBroker": "50Mi"}
    assert manifest["spec"]["partitions"] == [
        {"topic": "orders", "partition": 0, "replicas": [0, 2], "expectedReplicas": [0, 1]},
        {"topic": "orders", "partition": 1, "replicas": [2, 0], "expectedReplicas": [1, 0]},
    ]
    assert "replicas: [0, 2]\n" in ran.out


def test_a_plan_without_a_move_says_that_there_are_no_manifests(tmp_path: Path) -> None:
    ran = run(
        *("plan", "--snapshot", taken(tmp_path), "--broker", "0,1,2,3,4,5"),
        *("-o", "manifests", "--cluster", "main", "-n", "kafka"),
    )
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "note: there are no manifests, because the plan changes no partition\n"


def test_manifests_need_the_name_of_a_kafka_cluster(folder: Path, planner: Planner) -> None:
    ran = run("plan", "--snapshot", folder, *GOAL, "-o", "manifests")
    assert (ran.code, ran.out) == (2, "")
    assert "manifests refer to a KafkaCluster: name it with --cluster" in ran.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--drain-broker", "five"), "'--drain-broker': 'five' is not a broker id"),
        (("--drain-broker", "1,"), "'' is not a broker id"),
        (("--broker", "-1"), "'--broker': '-1' is not a broker id"),
        (("--broker", "9" * 5000), "is not a broker id"),
        (("--broker", "1,2", "--drain-broker", "2,3"), "broker 2 cannot be emptied and hold replicas"),
        (("--balance", ""), "'' is none of disk, replicas, leaders"),
        (("--min-free-disk", "100"), "'--min-free-disk': it is more than 99"),
        (("--balance", "disk,cpu"), "'cpu' is none of disk, replicas, leaders"),
        (("--tolerance", "0"), "'--tolerance': it is less than 1"),
        (("--replication-factor", "x"), "'--replication-factor': it is no whole number"),
        (("--racks", "forest"), "'forest' is not one of"),
        (("--throttle", "50MB"), "'50MB' is not a quantity such as 50Mi"),
        (("--throttle", "1"), "'1' is not between 1Ki and 1Ti bytes per second"),
        (("--max-bytes", "lots"), "'lots' is not a quantity"),
        (("--frobnicate",), "No such option: --frobnicate"),
        (("--max-bytes", "0" * 32 + "5Gi"), "a quantity has at most 32 characters"),
        (("--drain-broker", "1,1"), "'--drain-broker': 1,1 names a broker more than once"),
        ((*GOAL, "--tolerance", "5"), "'--tolerance': it has no effect without --balance; leave it out"),
        (("--balance", "disk", "--balance", "disk"), "names a resource more than once"),
        (("--broker", ",".join(map(str, range(301)))), "'--broker': it has more than 300 items"),
        (("--balance", "disk,disk"), "names a resource more than once"),
        ((*GOAL, "--include", ""), "'--include': it is empty"),
        ((*GOAL, "--include", "a,"), "'': it is empty"),
        ((*GOAL, "--exclude", "a,a"), "names a pattern twice"),
        ((*GOAL, "--exclude", "t" * 250), "it has more than 249 characters"),
        ((*GOAL, "--exclude", ",".join(f"t{n}" for n in range(101))), "it has more than 100 items"),
        ((*GOAL, "--exclude", "orders|payments"), "'orders|payments': it has other characters than a-zA-Z0-9._*?-"),
        ((*GOAL, "--include", "^orders$"), "'^orders$': it has other characters than"),
        ((*GOAL, "--include", "[op]*"), "'[op]*': it has other characters than"),
        ((*GOAL, "--include", "a, b"), "' b': it has other characters than"),
    ],
)
def test_an_option_that_cannot_be_read_is_a_usage_error(folder: Path, arguments: tuple[str, ...], why: str) -> None:
    ran = run("plan", "--snapshot", folder, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert not re.search("Input|String|Tuple|should", ran.err.partition("\n")[0])
    assert "error: Invalid value" in ran.err or "No such option" in ran.err


def test_an_option_of_manifests_is_noted_where_there_are_none(folder: Path, planner: Planner) -> None:
    options = ("--name", "x", "--cluster", "main", "-n", "kafka")
    ran = run("plan", "--snapshot", folder, *GOAL, *options)
    assert (ran.code, ran.err.splitlines()) == (
        0,
        [f"note: {option} has no effect here without -o manifests" for option in ("--name", "--cluster")],
    )
    assert run("plan", "--snapshot", folder, *GOAL, *options, "-o", "manifests").err == ""


def test_a_snapshot_that_is_cut_short_is_refused(folder: Path, planner: Planner) -> None:
    path = folder / "partitions.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert "cut short" in error_of(run("plan", "--snapshot", folder, *GOAL), 2)


@pytest.mark.parametrize(
    ("racks", "arguments", "reason"),
    [
        (["/a/1", "b", "c"], GOAL, "or use `--racks flat` (InvalidRacks"),
        (["/a//1", "/b", "/c"], GOAL, "or use `--racks flat` (InvalidRacks"),
        (["/a" * 12, "/b", "/c"], GOAL, "or use `--racks flat` (InvalidRacks"),
        (["a", "b", ""], GOAL, "or let racks not count (`--racks none`) (InvalidRacks"),
        (["a", "b", "c"], (*GOAL, "--include", "no-such-topic"), "NothingSelected"),
        (["a", "b", "c"], ("--drain-broker", "0,1"), "NotEnoughBrokers"),
        (["a", "b", "c"], ("--replication-factor", 4), "NotEnoughBrokers"),
        (["a", "b", "c"], ("--drain-broker", 9), "InvalidGoal"),
    ],
)
def test_a_goal_that_cannot_be_planned_is_one_line_with_its_reason(
    tmp_path: Path, racks: list[str], arguments: tuple[object, ...], reason: str
) -> None:
    kafka = sim()
    kafka.brokers = {id: Broker(id, rack) for id, rack in enumerate(racks)}
    assert f"{reason})" in error_of(run("plan", "--snapshot", taken(tmp_path, kafka), *arguments), 2)


def test_an_internal_topic_keeps_its_factor_until_no_topic_is_excluded(tmp_path: Path) -> None:
    folder = taken(tmp_path, sim("__consumer_offsets"))
    goal = ("--broker", 0, "--drain-broker", 1, "--replication-factor", 1)
    why = error_of(run("plan", "--snapshot", folder, *goal), 2)
    assert "__consumer_offsets-0 needs 2 brokers, and the goal leaves 1: 0; allow more brokers, or have" in why
    assert "topics that are excluded by default keep theirs, and `--exclude ''` excludes none (NotEnough" in why
    assert run("plan", "--snapshot", folder, *goal, "--exclude", "").code == 0
    others = error_of(run("plan", "--snapshot", taken(tmp_path / "o"), *goal[:4]), 2)
    assert "allow more brokers, or lower the replication factor (NotEnoughBrokers)" in others
