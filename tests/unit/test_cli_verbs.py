"""What the verbs of the command line decide and show, without a server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from reassign.api.kafka_cluster import Execution
from reassign.api.limits import MAX_NAME_CHARACTERS, MAX_TOPIC_NAME_CHARACTERS
from reassign.cli import approving, cancelling, changing, listing, top, watching
from reassign.cli import output as out
from reassign.cli.objects import Item
from reassign.cli.options import Brake, Cancels
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason, ReassignError
from tests.unit.cli import Live, error_of, kafka_cluster, run, sim
from tests.unit.verbs import (
    DIGEST,
    GIB,
    MIB,
    NOW,
    OTHER,
    Object,
    cluster,
    condition,
    detail,
    ended,
    moving,
    plan,
    suspended,
    wave_of,
)

DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
NO_OBJECT = "no PartitionReassignment, BrokerDecommission or ReassignmentPolicy"
ITEMS = [Item(obj) for obj in (moving(), ended(), suspended())]


def written(*parts: RenderableType, width: int = out.UNBOUNDED) -> str:
    """What a pipe gets."""
    capture = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", capture)
        patch.setattr(out, "UNBOUNDED", width)
        out.write_tables(parts)
    return capture.getvalue()


def on_terminal(part: RenderableType, width: int = 80) -> list[str]:
    """The lines that a terminal shows."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(part)
    return Text.from_ansi(captured.get()).plain.splitlines()


def load() -> top.ClusterLoad:
    (one,) = top.loads_of([cluster()], ITEMS, NOW)
    return one


def rates(item: Item) -> watching.Samples:
    """Samples of the last minute: 10 MiB/s everywhere."""
    bars = [*watching.partition_bars(item), *watching.broker_bars(item)]
    return {bar.name: [(0.0, bar.copied - 600 * MIB), (60.0, bar.copied)] for bar in bars}


def view() -> watching.View:
    return watching.View(Item(moving()))


# --- what is shown ---


@pytest.mark.parametrize(
    "text",
    [
        written(listing.table(ITEMS, NOW)),
        written(*top.parts([load()])),
        written(watching.picture(view(), rates(view().item), 80, 24), width=80),
        "".join(f"{line}\n" for line in approving.shown(Item(plan()), Item(plan()))),
        f"{cancelling.consequence(Item(moving()), [], 'orders')}\n",
        f"{watching.line(view())}\n",
    ],
    ids=["list", "top", "watch", "approve", "cancel", "line"],
)
def test_the_page_shows_what_the_commands_write(text: str) -> None:
    assert text in DOCS


@pytest.mark.parametrize(
    "part",
    [
        watching.picture(view(), rates(view().item), 80, 24),
        watching.picture(watching.View(Item(plan()), Item(moving())), {}, 80, 24),
    ],
)
def test_a_terminal_of_80_columns_has_room_for_all(part: RenderableType) -> None:
    lines = on_terminal(part)
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_the_longest_name_of_a_wave_takes_no_column_away() -> None:
    long = plan()
    long["status"]["waves"][0]["name"] = "x" * MAX_NAME_CHARACTERS
    long["status"]["waves"][0]["state"] = "Succeeded"
    wave = next(line for line in on_terminal(watching.picture(watching.View(Item(long)), {}, 80, 24)) if "xxx" in line)
    assert len(wave) <= 80
    assert re.fullmatch(r"x+…x{8}  Succeeded +\d+ +[\d.]+ .?i?B *", wave), wave


def test_a_pipe_gets_neither_colours_nor_cut_names_nor_trailing_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "")
    name = "x" * 253
    text = written(listing.table([Item(moving(name))], NOW, wide=True), *top.parts([load()]))
    assert name in text
    assert "\x1b" not in text
    assert not any(line.endswith(" ") for line in text.splitlines())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_of_objects_wraps_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    name, message = "drain-" + "x" * 120, "partition orders-7 waits: " + "broker 5 is down, " * 20
    obj = moving(name)
    (ready,) = [each for each in obj["status"]["conditions"] if each["type"] == "Ready"]
    ready["message"] = message.strip()
    out.write_tables([listing.table([Item(obj), ITEMS[0]], NOW, wide=True), *top.parts([load()])])
    lines = terminal.getvalue().split("\n")
    assert lines[1].startswith(name)
    assert lines[1].endswith(message.strip())
    assert lines[2].startswith(ITEMS[0].name)
    assert not any(line != line.rstrip() or "\x1b" in line for line in lines)


def test_a_bar_keeps_the_partition_of_a_long_name() -> None:
    topic = "t" * MAX_TOPIC_NAME_CHARACTERS
    obj = moving()
    obj["status"]["partitions"] = [detail(topic, 123, 3, 5, GIB, 999 * GIB)]
    lines = on_terminal(watching.picture(watching.View(Item(obj)), rates(Item(obj)), 80, 24))
    (row,) = [line for line in lines if line.startswith("tt")]
    assert "…tttt-123 " in row
    assert row.split()[-2:] == ["28.4", "h"]
    assert max(map(len, lines)) <= 80


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    def colours() -> bool:
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="256")
        with console.capture() as captured:
            console.print(watching.picture(view(), {}, 80, 24))
        return re.search(r"\x1b\[[39][0-8]", captured.get()) is not None

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours()


def test_partitions_without_room_are_counted() -> None:
    obj = moving()
    obj["status"]["partitions"] = [detail("orders", p, 3, 5, p, 100) for p in range(50)]
    obj["status"]["progress"]["partitionsInFlight"] = 70
    lines = on_terminal(watching.picture(watching.View(Item(obj)), {}, 80, 24))
    shown = [line for line in lines if line.startswith("orders-")]
    assert len(lines) <= 24
    assert f"and {70 - len(shown)} more" in "\n".join(lines)


def test_a_status_that_cannot_be_read_or_is_not_there_has_a_row_too() -> None:
    unread, fresh = moving("unread"), moving("fresh")
    unread["status"] = {"conditions": 7}
    fresh["status"] = {"observedGeneration": -1}
    text = written(listing.table([Item(unread), Item(fresh)], NOW, wide=True))
    assert [line.split()[:4] for line in text.splitlines()[1:]] == [
        ["unread", "main", "Unknown", "Pending"],
        ["fresh", "main", "Unknown", "Pending"],
    ]


HOSTILE = "/\x1b]0;pwned\x07\x1b[2J\r\x9b1m\nnext  main  True"
SHOWN = "/?]0;pwned??[2J??1m?next  main  True"


def test_what_others_choose_cannot_write_to_a_terminal() -> None:
    obj = moving()
    obj["status"] |= {
        "summary": HOSTILE,
        "conditions": [condition("Ready", "False", "UnknownLogDir", HOSTILE), condition("Stalled")],
    }
    rack = cluster()
    rack["status"]["brokers"][3]["rack"] = HOSTILE
    (loaded,) = top.loads_of([rack], [Item(obj)], NOW)
    seen = watching.View(Item(obj))
    listed = written(listing.table([Item(obj)], NOW, wide=True))
    assert listed.count(SHOWN) == 2
    assert len(listed.splitlines()) == 2
    assert SHOWN in watching.line(seen)
    for part in (watching.picture(seen, {}, 200, 24), top.brokers_table(loaded.brokers)):
        lines = on_terminal(out.Printable(part), 200)
        assert any("?]0;pwned?" in line for line in lines)
        assert all(line.isprintable() for line in [*lines, *written(part).splitlines()])


def test_a_line_and_an_error_are_printable_and_json_is_exact(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out.write_line(HOSTILE)
    out.say(HOSTILE)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n")
    out.write_value([HOSTILE], "json")
    assert json.loads(capsys.readouterr().out) == [HOSTILE]

    def fail(*_: object) -> None:
        raise ReassignError(Reason.UNKNOWN_LOG_DIR, HOSTILE)

    monkeypatch.setattr(watching, "run", fail)
    assert SHOWN in error_of(run("watch", "move", "-n", "kafka"), 2)


@pytest.mark.parametrize(
    ("created", "age"),
    [
        ("2026-01-31T12:00:05Z", "0s"),
        ("2026-01-31T11:58:01Z", "119s"),
        ("2026-01-31T11:58:00Z", "2m"),
        ("2026-01-31T10:00:00Z", "2h"),
        ("2026-01-29T12:00:00Z", "2d"),
    ],
)
def test_the_age_has_one_unit(created: str, age: str) -> None:
    assert listing.age({"metadata": {"creationTimestamp": created}}, NOW) == age


def test_brokers_share_the_bytes_of_a_partition_and_others_count_apart() -> None:
    by_broker = {each.broker: each for each in load().brokers}
    assert (by_broker[3].adding, by_broker[3].bytes_copied, by_broker[3].bytes_total) == (2, 7 * GIB, 12 * GIB)
    assert (by_broker[5].removing, by_broker[5].others, by_broker[5].fenced) == (3, 1, True)
    assert by_broker[0] == top.BrokerLoad(0, "rack-0")
    obj = moving()
    obj["status"]["partitions"] = [detail("orders", 0, 3, 5, 10, 20) | {"addingReplicas": [3, 4]}]
    (shared,) = top.loads_of([cluster()], [Item(obj)], NOW)
    assert [(b.bytes_copied, b.bytes_total) for b in shared.brokers if b.adding] == [(5, 10), (5, 10)]


def test_top_says_in_a_line_what_its_brokers_leave_out() -> None:
    obj, kafka = moving(), cluster()
    obj["status"]["progress"]["partitionsInFlight"] = 150
    kafka["status"]["inFlight"] = 152
    kafka["status"]["foreignInFlight"]["count"] = 120
    (many,) = top.loads_of([kafka], [Item(obj)], NOW)
    assert line_of(many) == (
        "left out of the brokers: 147 partitions in flight (at most 29 GiB), since a status describes 100 at most; "
        "2 partitions in flight (unknown bytes) that no status here counts as moving; "
        "119 partitions of other clients, since a status names 100 at most; the bytes of 120 partitions of other "
        "clients"
    )
    del obj["status"]["progress"]["bytesTotal"]
    (unknown,) = top.loads_of([kafka], [Item(obj)], NOW)
    assert "147 partitions in flight (unknown bytes), since" in (line_of(unknown) or "")


def test_top_leaves_nothing_out_where_each_move_is_described() -> None:
    kafka = cluster()
    del kafka["status"]["foreignInFlight"]
    (whole,) = top.loads_of([kafka], ITEMS, NOW)
    assert line_of(whole) is None


def line_of(load: top.ClusterLoad) -> str | None:
    lines = written(*top.parts([load])).splitlines()
    return next((line for line in lines if line.startswith("left out")), None)


def test_wide_top_has_idle_brokers_too() -> None:
    assert "rack-0" in written(*top.parts([load()]))
    rows = written(*top.parts([load()], wide=True)).splitlines()
    assert [row.split()[0] for row in rows if "rack-" in row] == ["0", "1", "2", "3", "4", "5"]


def test_rates_are_of_the_last_minute_and_only_of_what_is_shown() -> None:
    bar = watching.Bar("orders-0", 0, 100)
    samples: watching.Samples = {"gone": [(0.0, 1)]}
    for second in range(0, 100, 10):
        samples = watching.sampled(samples, [bar._replace(copied=second)], float(second))
    assert samples.keys() == {"orders-0"}
    assert samples["orders-0"][0] == (30.0, 30)
    assert samples["orders-0"][-1] == (90.0, 90)
    still = watching.sampled(samples, [bar._replace(copied=90)], 95.0)
    assert still["orders-0"][-1] == (90.0, 90)


def test_a_line_says_why_where_nothing_moves() -> None:
    assert watching.line(watching.View(Item(suspended()))) == "0/8 partitions (Suspended: spec.suspend is true)"
    assert watching.line(watching.View(Item(moving(deletionTimestamp="2026-01-31T12:00:00Z")))).endswith(
        "(being deleted: PartitionsInFlight)"
    )
    fresh = moving()
    fresh["status"] = {}
    assert watching.line(watching.View(Item(fresh))) == "not begun (Pending)"


def test_a_plan_has_the_summary_of_the_wave_that_runs_as_the_list_has_it() -> None:
    ready = condition("Ready", "False", "WaveInFlight", "0/2 waves, 0/15 partitions; drain-5-wave is under way")
    item, wave = Item(plan(conditions=[ready, condition("Reconciling")])), Item(moving())
    line = watching.line(watching.View(item, wave))
    assert line == (
        "0/2 waves, 0/15 partitions, drain-5-wave: 4/12 partitions, 40 %, about 9 min left, 52 MiB/s (WaveInFlight)"
    )
    assert str(wave.status.summary) in written(listing.table([wave], NOW))


def test_a_plan_outside_its_windows_is_shown_with_the_time_of_the_next() -> None:
    why = "no window is open until 2026-02-01 21:00 UTC"
    item = Item(plan(conditions=[condition("Ready", "False", "OutsideWindow", why)]))
    assert watching.line(watching.View(item)) == f"0/2 waves, 0/15 partitions (OutsideWindow: {why})"
    assert watching.end_of(item) is None
    for message in (f"{why}; 0/2 waves, 0/15 partitions", f"0/2 waves, 0/15 partitions; {why}"):
        again = Item(plan(conditions=[condition("Ready", "False", "OutsideWindow", message)]))
        assert watching.line(watching.View(again)) == watching.line(watching.View(item))
    shown = written(listing.table([item], NOW, wide=True))
    assert "OutsideWindow" in shown
    assert why in shown


# --- when it has ended ---


def changed(obj: Object, **status: Any) -> Item:
    return Item(obj | {"status": obj["status"] | status})


@pytest.mark.parametrize(
    ("item", "succeeded"),
    [
        (Item(ended()), True),
        (Item(ended(type="Failed")), False),
        (None, False),
        (Item(ended(deletionTimestamp="2026-01-31T12:00:00Z")), None),
        (Item(ended(generation=2)), None),
        (Item(moving()), None),
        (Item(suspended()), None),
        (changed(moving(), conditions=[condition("Stalled", reason="UnknownBroker")]), None),
        (changed(moving(), conditions=[condition("Checked")]), True),
        (changed(moving(), conditions=[condition("Checked", "False", "UnknownBroker")]), False),
        (Item(plan()), None),
        (Item(plan(conditions=[condition("Ready"), condition("Succeeded")])), True),
        (Item(plan(conditions=[condition("Ready", "False", "WaveFailed")])), False),
        (Item(plan(conditions=[condition("Ready", "False", "PlanStale")])), None),
    ],
)
def test_an_end_is_of_the_spec_as_it_is(item: Item | None, succeeded: bool | None) -> None:
    end = watching.end_of(item)
    assert (end and end.succeeded) == succeeded


# --- what is written ---


def refused(decide: Callable[[], object]) -> tuple[Reason, str]:
    with pytest.raises(ReassignError) as caught:
        decide()
    return caught.value.reason, caught.value.message


def test_an_approval_is_the_digest_of_the_plan_as_it_is() -> None:
    assert approving.approval(Item(plan()), None) == {"approvedDigest": DIGEST}
    assert approving.approval(Item(plan()), DIGEST) == {"approvedDigest": DIGEST}
    reason, message = refused(lambda: approving.approval(Item(plan()), OTHER))
    assert (reason, DIGEST in message, OTHER in message) == (Reason.APPROVED_DIGEST_MISMATCH, True, True)
    approved = plan()
    approved["spec"]["approvedDigest"] = DIGEST
    approved["metadata"]["generation"] = 2
    assert approving.approval(Item(approved), DIGEST) == {}


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (plan(digest=None), Reason.PLANNING),
        (plan() | {"metadata": plan()["metadata"] | {"generation": 2}}, Reason.PLANNING),
        (plan(staleDigest=DIGEST), Reason.PLAN_STALE),
        (moving(), Reason.NOTHING_SELECTED),
        (wave_of(plan()), Reason.NOTHING_SELECTED),
    ],
)
def test_nothing_else_is_approved(obj: Object, reason: Reason) -> None:
    assert refused(lambda: approving.approval(Item(obj), None))[0] is reason


def test_the_brake_is_never_set_to_stop_less() -> None:
    positions = list(Execution)
    for now in positions:
        for wanted in positions:
            obj = cluster() | {"spec": {"bootstrapServers": "b:9092", "execution": now.value}}
            harder = positions.index(wanted) > positions.index(now)
            changes = {"execution": wanted.value} if harder or (wanted is Execution.RUN and now is not wanted) else {}
            assert changing.braked(Item(obj), wanted) == changes
    assert changing.execution_of(Brake.ON, None) is Execution.PAUSE
    assert changing.execution_of(Brake.ON, Cancels.OURS) is Execution.CANCEL_OURS
    assert changing.execution_of(Brake.ON, Cancels.ALL) is Execution.CANCEL_ALL
    assert changing.execution_of(Brake.OFF, None) is Execution.RUN


def test_a_selection_takes_what_is_unended_and_plans_for_their_waves() -> None:
    made = plan()
    dry = moving("dry")
    dry["spec"]["mode"] = "DryRun"
    going = moving("going", deletionTimestamp="2026-01-31T12:00:00Z")
    items = [Item(obj) for obj in (wave_of(made), moving("single"), ended(), suspended(), dry, going, made)]

    def names(*asked: str | None) -> list[str]:
        return [str(item) for item in cancelling.selected(items, *asked)]

    assert names(None, "main") == ["krp/drain-5", "kpr/next", "kpr/single"]
    assert names("payments", None) == ["krp/drain-5", "kpr/single"]
    assert names("payments", "other") == []
    done = Item(plan(conditions=[condition("Ready"), condition("Succeeded")]))
    orphan = Item(wave_of(made))
    assert cancelling.selected([orphan, done], "orders", None) == [orphan]


def test_a_plan_is_cancelled_with_all_of_its_waves_that_have_not_ended() -> None:
    made = plan()
    finished = ended("drain-5-wave-0", labels=wave_of(made)["metadata"]["labels"])
    line = cancelling.consequence(Item(made), [Item(wave_of(made)), Item(finished), Item(moving("single"))])
    assert line == "krp/drain-5, with 1 wave not at an end: of 12 partitions, 3 in flight go back, 4 completed stay"


def test_a_deletion_that_orphans_moves_is_no_cancel() -> None:
    for obj, where in ((moving(), "deletionPolicy"), (plan(), "template.deletionPolicy")):
        options = {"deletionPolicy": "Orphan"}
        obj["spec"] |= options if obj["kind"] == "PartitionReassignment" else {"template": options}
        assert f"has {where} Orphan" in refused(lambda obj=obj: cancelling.check_policy(Item(obj)))[1]  # type: ignore[misc]
    cancelling.check_policy(Item(moving()))
    cancelling.check_policy(Item(plan()))


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (
            ("cancel", "--yes"),
            "kpr/drain-5-wave: of 12 partitions, 3 in flight go back, 4 completed stay\n"
            "kpr/drain-5-wave is cancelled\n",
        ),
        (("suspend",), "kpr/drain-5-wave suspended; moves in flight continue\n"),
    ],
    ids=["cancel", "suspend"],
)
def test_what_is_named_twice_is_one(verb: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Written(Live):
        async def delete(self, obj: Object, *, dry_run: bool) -> Object:
            return obj

        async def write_spec(self, obj: Object, spec: Object, manager: str, *, dry_run: bool) -> Object:
            return obj

    Written(sim(), moving()).serve(monkeypatch)
    assert run(*verb, "-n", "kafka", "drain-5-wave", "kpr/drain-5-wave", "drain-5-wave") == (0, said, "")


@pytest.mark.parametrize("obj", [ended(), ended(type="Failed")])
def test_a_resource_that_has_ended_says_so_when_it_is_suspended(obj: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    class Written(Live):
        async def write_spec(self, obj: Object, spec: Object, manager: str, *, dry_run: bool) -> Object:
            return obj

    Written(sim(), obj).serve(monkeypatch)
    ran = run("suspend", "-n", "kafka", "march")
    assert (ran.code, ran.err) == (0, "note: kpr/march has ended, and moves nothing until its spec is changed\n")


@pytest.mark.parametrize("command", ["report", "rollback"])
def test_the_name_of_a_plan_is_told_with_its_waves(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Live(sim(), plan(), moving()).serve(monkeypatch)
    said = error_of(run(command, "drain-5", "-n", "kafka"), 2)
    assert "drain-5 is a ReassignmentPlan; name one of its waves: drain-5-wave, drain-5-wave-2 (Nothing" in said
    Live(sim(), plan(waves=[])).serve(monkeypatch)
    assert "drain-5 is a ReassignmentPlan; it has no waves yet" in error_of(run(command, "drain-5", "-n", "kafka"), 2)
    assert "there is no PartitionReassignment other" in error_of(run(command, "other", "-n", "kafka"), 2)


# --- what is in flight, of the brokers ---


def test_all_that_is_in_flight_is_listed_in_the_stock_tools_form(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = sim()
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    command = ("list", "--cluster", "main", "-n", "kafka", "-o", "reassignment-json")
    assert json.loads(run(*command).out) == {"version": 1, "partitions": []}
    kafka.move_as_another(TopicPartition("orders", 0), (2, 1))
    ran = run(*command)
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "version": 1,
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}],
    }


@pytest.mark.parametrize(
    ("of", "code", "said"),
    [
        ((), 0, "there are no PartitionReassignments, BrokerDecommissions or ReassignmentPolicies in namespace team-a"),
        (
            ("--cluster", "idle"),
            0,
            f"{NO_OBJECT} in namespace team-a refers to the KafkaCluster idle",
        ),
        (
            ("--cluster", "nope"),
            2,
            f"there is no KafkaCluster nope in namespace team-a, and {NO_OBJECT} refers to one; there are: idle",
        ),
        (
            ("--cluster", "nope", "-A"),
            2,
            f"there is no KafkaCluster nope in any namespace, and {NO_OBJECT} refers to one; there are: main, idle",
        ),
    ],
)
def test_a_list_without_rows_says_why(
    of: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = kafka_cluster() | {"metadata": {"name": "idle", "namespace": "team-a"}}
    Live(sim(), kafka_cluster(), idle, moving()).serve(monkeypatch)
    ran = run("list", "-n", "team-a", *of)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.removeprefix("error: ").startswith(said)
    assert ("(ClusterNotFound)" in ran.err) is (code == 2)


def test_who_may_not_list_clusters_gets_a_list_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tenant(Live):
        async def list(self, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
            if kind == "KafkaCluster":
                raise ReassignError(Reason.NOT_AUTHORIZED, "no")
            return await super().list(kind, namespace)

    Tenant(sim(), moving()).serve(monkeypatch)
    said = f"{NO_OBJECT} in namespace kafka refers to the KafkaCluster nope\n"
    assert run("list", "-n", "kafka", "--cluster", "nope") == (0, "", said)


def test_what_is_in_flight_needs_the_name_of_a_cluster() -> None:
    ran = run("list", "-n", "kafka", "-o", "reassignment-json")
    assert (ran.code, "is of one KafkaCluster: name it with --cluster" in ran.err) == (2, True)


def test_brokers_of_another_cluster_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    Live(sim(), kafka_cluster() | {"status": {"clusterId": "another"}}).serve(monkeypatch)
    command = ("list", "--cluster", "main", "-n", "kafka", "-o", "reassignment-json")
    assert "ClusterIdChanged" in error_of(run(*command), 3)


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "run", interrupt)
    assert run("watch", "move", "-n", "kafka") == (130, "", "")
