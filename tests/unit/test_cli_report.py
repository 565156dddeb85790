"""The page about one PartitionReassignment: what it knows, what it says that it does not know, and what it stands."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.cli.report.history import History, Row, Sources, _end, describes_all, history
from reassign.cli.report.page import Axis, _line, render
from reassign.core.model.snapshot import TopicPartition
from tests.browser import ADDRESSES, HOSTILE
from tests.unit.cli import run
from tests.unit.reports import BEGAN, UID, at, event, made, named, written
from tests.unit.sim import START, SimKafka, drive, partitions, resource

ORDERS_0, ORDERS_2 = TopicPartition("orders", 0), TopicPartition("orders", 2)


def row_of(known: History, tp: TopicPartition) -> Any:
    return next(row for row in known.rows if row.tp == tp)


def changed(sources: Sources, **status: Any) -> Sources:
    obj = deepcopy(sources.obj)
    obj["status"] |= status
    return replace(sources, obj=obj)


# --- what is known ---


def test_rows_have_the_times_of_the_status_in_the_order_of_their_start() -> None:
    known = history(made())
    begins = [row.began for row in known.rows]
    assert begins == sorted(begins)  # type: ignore[type-var]
    first = row_of(known, ORDERS_0)
    assert (first.began, first.ended) == (BEGAN, BEGAN + timedelta(seconds=20))
    assert (known.began, known.ended) == (BEGAN, max(row.ended for row in known.rows if row.ended))
    assert known.missing == ()


def test_a_partition_that_waited_for_its_turn_names_the_one_that_ended() -> None:
    known = history(made())
    assert row_of(known, ORDERS_0).after is None
    third = row_of(known, ORDERS_2)
    assert (third.waited_for, third.after) == ("WaitingForBudget", ORDERS_0)
    for row in known.rows:
        if row.after:
            assert row_of(known, row.after).ended == row.began


@pytest.mark.parametrize(("ended", "after"), [(6, ORDERS_0), (21, ORDERS_0), (4, None), (23, None)])
def test_a_turn_comes_when_another_one_ends_and_not_long_after(ended: int, after: TopicPartition | None) -> None:
    sources = made()
    partitions = [each | {} for each in sources.obj["status"]["partitions"]]
    assert partitions[0]["partition"] == 0
    partitions[0]["completionTime"] = at(ended)
    assert row_of(history(changed(sources, partitions=partitions)), ORDERS_2).after == after


def test_of_many_that_ended_in_one_second_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Row] = []

    def end(row: Row) -> float:
        looked.append(row)
        return _end(row)

    monkeypatch.setattr("reassign.cli.report.history._end", end)
    sources = made(1000, at_once=1000)
    times = {"startTime": at(20), "completionTime": at(20), "waitedFor": "WaitingForBudget"}
    for record in sources.records:
        for topic in record["spec"]["topics"]:
            topic["partitions"] = [partition | times for partition in topic["partitions"]]
    known = history(changed(sources, partitions=[]))
    last = TopicPartition("payments", 499)
    assert {row.after for row in known.rows} == {ORDERS_0, TopicPartition("orders", 1)}
    assert row_of(known, last).after == ORDERS_0
    assert len(looked) < 200 * len(known.rows)


def test_what_waited_for_anything_else_names_no_other_partition() -> None:
    sources = made()
    partitions = [each | {"waitedFor": "BrokerFenced"} for each in sources.obj["status"]["partitions"]]
    assert {row.after for row in history(changed(sources, partitions=partitions)).rows} == {None}


def test_while_it_goes_on_the_time_line_ends_now() -> None:
    known = history(made(now=50))
    assert known.ended == known.now == BEGAN + timedelta(seconds=50)
    states = {row.state.value for row in known.rows if row.state}
    assert states == {"Completed", "InFlight", "Pending", "Blocked"}


def test_partitions_beyond_the_status_come_from_the_records() -> None:
    sources = made(300)
    assert not describes_all(sources.obj)
    known = history(sources)
    assert len(known.rows) == 300
    assert all(row.began and row.ended for row in known.rows)
    assert known.missing == ()


def test_a_state_that_the_counts_leave_alone_is_known_without_records() -> None:
    known = history(replace(made(300), records=[]))
    assert {row.state and row.state.value for row in known.rows} == {"Completed"}
    assert known.missing == ("the times of 200 partitions are not recorded",)
    mixed = history(replace(made(300, now=400), records=[]))
    assert any("200 partitions is not known" in note for note in mixed.missing)


def test_what_the_operator_writes_is_what_the_page_shows() -> None:
    tps = partitions(3)
    moved = resource(dict.fromkeys(tps, (2, 1)), concurrency={"partitions": 1})
    driver = drive(SimKafka(dict.fromkeys(tps, (0, 1)), sizes={tp: {0: 100, 1: 100, 2: 100} for tp in tps}), moved)
    driver.finish()
    done = driver.resources["a"]
    meta = {"name": "a", "namespace": "kafka", "uid": "a", "creationTimestamp": START.isoformat()}
    obj = {"metadata": meta, "spec": done.spec.wire(), "status": done.status.wire()}
    known = history(Sources(obj, [], [], None, driver.time))
    assert known.missing == ()
    assert [row.tp for row in known.rows] == tps
    assert [row.after for row in known.rows] == [None, *tps[:2]]
    text = render(known, "1")
    assert text.count('<rect class="Completed"') == 3
    assert text.count("WaitingForBudget, until") == 2
    assert 'aria-label="Bytes copied over time: 300\u00a0B of 300\u00a0B.' in text


# --- how long partitions waited ---

UNKNOWN = "How long partitions waited is not known"


def waited(sources: Sources) -> dict[int, float | None]:
    """By partition, in seconds, as the page says it."""
    known = history(sources)
    axis = Axis(known.began, known.ended)
    lines = [_line(row, known, axis) for row in known.rows]
    assert all((line.waited or 0) == 0 or line.bars[0].kind == "wait" for line in lines)
    return {line.row.tp.partition: line.waited.total_seconds() if line.waited is not None else None for line in lines}


def edited(sources: Sources, seconds: float, **fields: str) -> Sources:
    """One that was written again."""
    obj = deepcopy(sources.obj)
    obj["metadata"]["managedFields"] += [written(seconds, **fields)]
    return replace(sources, obj=obj)


def test_a_wait_is_counted_from_when_the_resource_could_begin() -> None:
    sources = made(3, ("orders",), at_once=1)
    assert waited(sources) == {0: 0, 1: 20, 2: 47}
    assert UNKNOWN not in render(history(sources), "1")
    assert waited(made(3, ("orders",), at_once=1, now=10)) == {0: 0, 1: 10, 2: 10}


def test_no_wait_is_known_after_an_edit() -> None:
    sources = made(3, ("orders",), at_once=1)
    assert sources.cluster
    braked = sources.cluster | {"metadata": sources.cluster["metadata"] | {"managedFields": [written(30)]}}
    unsaid = deepcopy(sources.obj)
    del unsaid["metadata"]["managedFields"]
    for changed_since in (
        edited(sources, 1),
        replace(sources, cluster=braked),
        replace(sources, cluster=None),
        replace(sources, obj=unsaid),
    ):
        assert set(waited(changed_since).values()) == {None}
        text = render(history(changed_since), "1")
        assert UNKNOWN in text
        assert '<rect class="wait"' not in text
    for same in (edited(sources, 0), edited(sources, 9, field="f:metadata"), edited(sources, 9, subresource="status")):
        assert waited(same) == waited(sources)


def test_what_began_before_a_resume_or_while_suspended_has_no_known_wait() -> None:
    sources = made(3, ("orders",), at_once=1)
    partitions = deepcopy(sources.obj["status"]["partitions"])
    partitions[1]["waitedFor"] = "Suspended"
    resumed = edited(changed(sources, startTime=at(20), partitions=partitions), 19)
    assert waited(resumed) == {0: None, 1: None, 2: 27}
    assert "Suspended" in render(history(resumed), "1")
    assert set(waited(changed(made(3, ("orders",), 1, now=10), startTime=None)).values()) == {None}


def test_what_a_deadline_has_failed_waited_until_then() -> None:
    sources = made(3, ("orders",), at_once=1)
    failed = {"state": "Failed", "reason": "DeadlineExceeded", "message": "it waited", "completionTime": at(40)}
    partitions = deepcopy(sources.obj["status"]["partitions"])
    partitions[2] = {"topic": "orders", "partition": 2, "targetReplicas": [3, 1, 2]} | failed
    assert waited(changed(sources, partitions=partitions)) == {0: 0, 1: 20, 2: 40}


# --- what is not known ---


def test_a_part_of_a_record_that_is_lost_or_unreadable_is_named() -> None:
    sources = made(300)
    known = history(replace(sources, records=sources.records[1:]))
    assert "1 ReassignmentRecord of this resource cannot be found" in known.missing
    broken = deepcopy(sources.records[1])
    broken["spec"]["topics"][0]["partitions"][0]["state"] = "Teleporting"
    known = history(replace(sources, records=[sources.records[0], broken, sources.records[2]]))
    assert any(note.startswith(f"this version cannot read {UID}-1: spec.topics.0") for note in known.missing)
    assert sum(row.began is not None for row in known.rows) >= 200


def test_parts_of_a_record_that_cannot_be_read_are_not_lost() -> None:
    sources = made(300)
    broken = deepcopy(sources.records)
    for record in broken[1:]:
        record["spec"]["topics"][0]["partitions"][0]["state"] = "Teleporting"
    for records, lost in ((broken, 0), ([broken[0], broken[2]], 1), (broken[1:], 1)):
        known = history(replace(sources, records=records))
        said = [note for note in known.missing if "cannot be found" in note]
        assert said == ["1 ReassignmentRecord of this resource cannot be found"] * lost


def test_a_record_of_another_resource_of_that_name_does_not_count() -> None:
    sources = made(300)
    others = deepcopy(sources.records)
    for record in others:
        record["metadata"]["ownerReferences"][0]["uid"] = "an-earlier-one"
    assert sum(row.began is not None for row in history(replace(sources, records=others)).rows) == 100


def test_of_a_status_that_cannot_be_read_the_rest_is_shown() -> None:
    sources = made(300)
    known = history(changed(sources, partitions=[{"topic": "orders", "partition": 0, "state": "Teleporting"}]))
    (note,) = known.missing
    assert "this version cannot read the status: partitions.0.state" in note
    assert all(row.began for row in known.rows)
    assert "kafka/march" in render(known, "1")
    unread = history(changed(made(), startTime="yesterday", samples="many"))
    assert (unread.status.start_time, unread.status.samples) == (None, ())
    assert len(unread.rows) == 12


def test_forged_times_and_bytes_make_a_page_too() -> None:
    forged = {"startTime": "0001-01-01T00:00:00Z", "completionTime": "9999-12-31T23:59:59Z"}
    sources = made()
    partitions = [detail | forged for detail in sources.obj["status"]["partitions"]]
    samples = [{"time": time, "bytesCopied": 2**63 - 1} for time in forged.values()]
    text = render(history(changed(sources, **forged, partitions=partitions, samples=samples)), "1")
    assert text.count('<rect class="Completed"') == 12


@pytest.mark.parametrize(
    "forged", ["10000-01-01T22:59:59Z", "0000-06-01T00:00:01Z", "0001-01-01T00:00:00+23:00", "soon"]
)
def test_a_time_of_an_event_that_cannot_be_read_is_not_known(forged: str) -> None:
    times: dict[str, Any] = {"eventTime": None, "firstTimestamp": forged, "lastTimestamp": forged}
    read = event("Read", "by another time", 5, **times)
    unread = event("Unread", "by none", 5, "KafkaCluster", type="Warning", metadata={}, **times)
    known = history(replace(made(), events=[unread, read]))
    assert [(one.reason, one.first) for one in known.events] == [
        ("Read", BEGAN + timedelta(seconds=5)),
        ("Unread", None),
    ]
    assert "by none" in render(known, "1")


def test_of_too_many_events_warnings_and_the_newest_show_and_others_count() -> None:
    events = [event(f"E{i}", "note", i, type="Warning" if i == 3 else "Normal") for i in range(507)]
    known = history(replace(made(), events=events))
    assert [one.reason for one in known.events] == ["E3", *(f"E{i}" for i in range(8, 507))]
    assert known.missing == ("7 events left out: 500 are shown, warnings before others, and the newest",)
    assert history(replace(made(), events=events[7:])).missing == ()


def test_one_that_the_operator_has_not_seen_yet_has_a_page() -> None:
    sources = made()
    obj = sources.obj | {"status": {"observedGeneration": -1}}
    known = history(replace(sources, obj=obj, events=[], cluster=None, missing=("events are not shown",)))
    assert {row.state for row in known.rows} == {None}
    assert known.began == BEGAN - timedelta(seconds=30)
    text = render(known, "1")
    assert all(said in text for said in ("Not seen yet", "events are not shown", "Not recorded."))


def test_what_an_earlier_version_moved_has_no_times_and_the_page_says_so() -> None:
    sources = made()
    without = ("startTime", "completionTime", "waitedFor")
    partitions = [{k: v for k, v in d.items() if k not in without} for d in sources.obj["status"]["partitions"]]
    known = history(changed(sources, partitions=partitions, samples=[]))
    assert known.missing == ("the times of 12 partitions are not recorded",)
    assert "Not recorded." in render(known, "1")
    assert '<rect class="Completed"' not in render(known, "1")


# --- the overview ---


def figures(sources: Sources) -> dict[str, str]:
    """The overview, by name."""
    text = render(history(sources), "1")
    overview = text[text.index('<dl class="figures">') : text.index("</dl>")]
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", overview.replace("\u00a0", " ")))


def test_the_overview_counts_from_the_start_to_the_end_or_now() -> None:
    ended, so_far = figures(made(3, ("orders",), 1)), figures(made(3, ("orders",), 1, now=10))
    assert (ended["Started, or resumed"], ended["Ended"], ended["Took since then"]) == ("12:00:00", "12:01:21", "81 s")
    assert (so_far["Started, or resumed"], so_far["So far since then"]) == ("12:00:00", "10 s")
    assert "Ended" not in so_far


def test_a_run_of_an_edit_long_after_the_end_took_its_own_time() -> None:
    sources = made(3, ("orders",), 1)
    day = 86400
    again = changed(sources, startTime=at(day), completionTime=at(day + 5))
    assert figures(again)["Took since then"] == "5 s"


def test_what_has_not_started_has_no_beginning() -> None:
    sources = made(3, ("orders",), now=10)
    pending = [{"topic": "orders", "partition": i, "state": "Pending", "reason": "Suspended"} for i in range(3)]
    for details, progress in ((pending, sources.obj["status"]["progress"]), ([], None)):
        known = changed(sources, startTime=None, partitions=details, progress=progress, samples=[])
        assert not figures(known).keys() & {"Started, or resumed", "Ended", "Took since then", "So far since then"}
        assert "Goes on at" not in render(history(known), "1")


def test_a_new_one_names_no_cause_for_what_is_not_known() -> None:
    known = history(changed(made(3, ("orders",)), partitions=[], progress=None, samples=[]))
    assert known.missing == ("the state of 3 partitions is not known",)


def test_what_had_nothing_to_move_lacks_nothing() -> None:
    settled = [{"topic": "orders", "partition": i, "state": "Completed", "completionTime": at(1)} for i in range(3)]
    assert history(changed(made(3, ("orders",)), partitions=settled, samples=[])).missing == ()


def test_nothing_waits_in_a_dry_run() -> None:
    said = {"targetReplicas": [3, 1, 2], "message": "it would be moved"}
    checked = [
        {"topic": "orders", "partition": 0, "state": "Pending", "reason": "WouldMove"} | said,
        {"topic": "orders", "partition": 1, "state": "Blocked", "reason": "BrokerFenced"} | said,
        {"topic": "orders", "partition": 2, "state": "Completed"},
    ]
    sources = changed(made(3, ("orders",)), startTime=None, completionTime=None, partitions=checked, samples=[])
    sources.obj["spec"]["mode"] = "DryRun"
    known = history(sources)
    text = render(known, "1")
    assert known.missing == ()
    assert "A dry run moves nothing, so nothing waits." in text
    assert "Waits for" not in text
    assert text.count("it would be moved") == 2
    assert not figures(sources).keys() & {"Started, or resumed", "Ended", "So far since then"}


# --- the page ---


def test_bars_are_as_long_as_their_times() -> None:
    axis = Axis(BEGAN, BEGAN + timedelta(seconds=200))
    bar = axis.bar("InFlight", BEGAN + timedelta(seconds=50), BEGAN + timedelta(seconds=150))
    assert (bar.x, bar.width) == ("25", "50")
    assert axis.bar("Completed", axis.began, axis.began).width == "0.2"
    late = BEGAN + timedelta(days=9)
    assert axis.bar("Completed", late, late).x == "99.8"


@pytest.mark.parametrize("seconds", [0, 1, 59, 61, 3599, 7200, 86400, 10 * 86400, 4000 * 86400])
def test_an_axis_has_a_few_round_times(seconds: int) -> None:
    marks = Axis(BEGAN, BEGAN + timedelta(seconds=seconds)).marks
    assert 2 <= len(marks) <= 7
    assert marks[0] == ("0", "0")
    assert all(float(mark.at) <= 100 for mark in marks)


def test_names_that_are_markup_are_escaped() -> None:
    text = render(history(named(HOSTILE)), HOSTILE)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "<img" not in text


def test_it_names_no_address_and_runs_no_script() -> None:
    text = render(history(made(now=50)), "1")
    assert re.findall(ADDRESSES, text) == []
    assert 'content="default-src &#39;none&#39;; style-src &#39;sha256-' in text
    assert "script-src" not in text


def test_two_thousand_partitions_with_long_names_take_less_than_two_mb() -> None:
    topics = tuple(f"{'t' * 70}{i:04}" for i in range(200))
    sources = made(2000, topics, at_once=50, now=400)
    long = [each | {"message": "m" * 1024} for each in sources.obj["status"]["partitions"]]
    assert len(render(history(changed(sources, partitions=long)), "1").encode()) < 2 * 2**20


# --- the command ---


def test_a_plan_has_no_report() -> None:
    ran = run("report", "krp/drain-5", "-n", "kafka")
    assert ran.code == 2
    assert "has no report: name one of its waves" in ran.err


def test_a_terminal_gets_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("reassign.cli.report.reading.sys", terminal)
    ran = run("report", "march", "-n", "kafka")
    assert ran.code == 2
    assert "redirect it" in ran.err


def test_a_context_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    login = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "local", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "local",
    }
    (tmp_path / "config").write_text(json.dumps(login))
    ran = run("report", "march", "--kubeconfig", tmp_path / "config", "--context", "nope")
    assert (ran.code, ran.out) == (2, "")
    assert "'nope' is not in the kubeconfig; there are: local" in ran.err
