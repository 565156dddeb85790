"""The loop of one KafkaCluster, mostly with the brake pulled: API server and brokers in memory, the rest as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reassign.controller.cluster import outage
from reassign.controller.cluster.pace import AT_ONCE_SECONDS, MOVING_SECONDS, DriftTurn, Pace
from reassign.controller.server import Health
from reassign.controller.writing.attempts import AT_ONCE
from reassign.core.model.memory import Recent
from reassign.core.model.snapshot import Broker, Snapshot, Topic, TopicPartition
from reassign.core.model.steps import Alter
from reassign.errors import ApiServerError, ClusterError, ConflictError, Reason, ReassignError
from tests.unit.world import LATER, OURS, THEIRS, KilledError, Object, World, api_object, serve_beside


@pytest.fixture
def world() -> World:
    return World()


def test_cancel_ours_cancels_ours_at_the_next_tick_and_keeps_nothing(world: World) -> None:
    world.pull("CancelOurs")
    world.tick()
    assert set(world.kafka.reassignments) == {THEIRS}
    assert world.kube.config_maps == []
    assert world.conditions("main") == {"Ready": "Connected", "Paused": "CancelledByBrake"}
    assert "CancelledByBrake" in world.kube.events


def test_cancel_all_keeps_and_then_cancels_everything_at_the_next_tick(world: World) -> None:
    world.pull("CancelAll")
    world.tick()
    assert world.kafka.reassignments == {}
    assert world.kept() == [["ours", "theirs"]]
    assert world.brokers.kept_at_cancel == [1, 1]
    world.tick(3)
    assert world.kept() == [["ours", "theirs"]]
    pause = asyncio.run(world.loop._tick())
    assert pause is not None
    assert pause <= MOVING_SECONDS  # what others begin now does not go on for long


def test_the_brake_takes_back_what_it_can_though_much_cannot_be_written(world: World) -> None:
    for number in range(5):
        world.add(f"bad-{number}", LATER, (4, 2, 3))
    world.kube.unwritable = {"uid-main", *(f"uid-bad-{number}" for number in range(5))}
    world.pull("CancelOurs")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_a_kill_between_keeping_and_cancelling_keeps_again_and_cancels(world: World) -> None:
    world.brokers.dies = True
    world.pull("CancelAll")
    with pytest.raises(KilledError):
        world.tick()
    world.brokers.dies = False
    world.loop.memory = replace(world.loop.memory, kept={})  # as a new process has it
    world.tick()
    assert world.kafka.reassignments == {}
    assert world.kept() == [["ours", "theirs"], ["ours", "theirs"]]


def test_a_foreign_move_started_under_cancel_all_is_kept_and_cancelled(world: World) -> None:
    world.pull("CancelAll")
    world.tick()
    world.kafka.perform(Alter(LATER, (5, 2, 3)))
    world.tick(until=lambda: not world.kafka.reassignments)
    assert world.kept() == [["ours", "theirs"], ["later"]]


def test_moves_that_cannot_be_kept_are_not_cancelled_and_are_reported(world: World) -> None:
    world.kube.refusal = ReassignError(Reason.NOT_AUTHORIZED, "no more ConfigMaps")
    world.pull("CancelAll")
    world.tick(2)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert world.conditions("main")["Stalled"] == "NotAuthorized"
    world.kube.refusal = None
    world.tick(2)
    assert world.kafka.reassignments == {}
    assert "Stalled" not in world.conditions("main")


def test_an_unsafe_cancel_of_a_foreign_move_waits_and_is_named(world: World) -> None:
    world.kafka.isr[THEIRS] = frozenset({2, 5})
    world.kafka.brokers |= {1: Broker(1, fenced=True), 3: Broker(3, fenced=True)}
    world.pull("CancelAll")
    world.tick(2)
    assert THEIRS in world.kafka.reassignments
    assert world.conditions("main")["Stalled"] == "CancelUnsafe"
    world.kafka.brokers |= {3: Broker(3)}
    world.kafka.isr[THEIRS] = frozenset({2, 3, 5})
    world.tick(until=lambda: THEIRS not in world.kafka.reassignments)


def test_a_cluster_that_an_older_one_stands_for_cancels_nothing_of_others(world: World) -> None:
    older = api_object("KafkaCluster", "older", {"bootstrapServers": "b:9092"})
    older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    world.put(older)
    serve_beside(world, "older")
    world.pull("CancelAll")
    world.tick(2)
    assert set(world.kafka.reassignments) == {THEIRS}


@pytest.mark.parametrize("change", ["moved", "made again"])
def test_a_change_during_a_record_write_is_decided_again(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    entry = {"topic": "later", "partition": 0, "replicas": [4, 2, 3], "expectedReplicas": [1, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(entry))
    write_record = world.kube.write_record

    async def meanwhile(obj: Object, spec: Object, *, held: bool) -> Object:
        if any(topic["topic"] == "later" for topic in spec.get("topics", ())) and not changed:
            changed.append(change)
            if change == "moved":
                world.kafka.move_as_another(LATER, (5, 2, 3))
                world.kafka.copy(LATER)
            else:
                world.kafka.topic_ids["later"] = "another"
        return await write_record(obj, spec, held=held)

    changed: list[str] = []
    monkeypatch.setattr(world.kube, "write_record", meanwhile)
    world.tick(5)
    assert changed == [change]
    assert LATER not in world.kafka.reassignments
    assert world.kafka.replicas[LATER] == ((5, 2, 3) if change == "moved" else (1, 2, 3))


def test_a_resource_with_a_lost_record_reports_its_wait(world: World) -> None:
    del world.kube.objects["uid-uid-move-0"]
    world.restart()
    world.delete("move")
    world.brokers.reachable = False
    world.loop.memory = replace(world.loop.memory, recent=Recent())  # nothing seen yet
    world.tick()
    assert world.conditions("move") == {"Reconciling": "Cancelling"}
    assert world.ready("move")["reason"] == "ClusterUnreachable"
    move = world.store.resource("uid-move")
    assert move
    assert move.record_lost


@pytest.mark.parametrize(("seconds", "reason"), [(9.0, "Connected"), (12.0, "ClusterUnreachable")])
def test_brokers_that_hang_for_long_show_after_one_observation(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: float, reason: str
) -> None:
    now = time.monotonic()

    async def hang(*_: object) -> Snapshot:
        nonlocal now
        now += seconds
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no answer in time")

    monkeypatch.setattr(world.brokers, "observe", hang)
    monkeypatch.setattr(outage, "time", SimpleNamespace(monotonic=lambda: now))
    world.tick()
    assert world.ready("main")["reason"] == reason


def test_a_cluster_being_deleted_waits_only_for_what_is_not_settled(world: World) -> None:
    world.delete("main")
    world.tick(3)
    assert "kafka/move" in world.ready("main")["message"]
    world.kafka.copy(OURS)
    world.tick(until=lambda: world.store.get("uid-main") is None)
    assert world.conditions("move") == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("field", [{"mode": "DryRun"}, {"suspend": True}], ids=["dry run", "suspended"])
def test_a_dry_run_keeps_no_cluster_and_a_suspended_move_does(world: World, field: Object) -> None:
    world.kafka.copy(OURS)
    world.add("later", LATER, (4, 2, 3))
    world.change("later", lambda obj: obj["spec"].update(field))
    world.tick(3)
    world.delete("main")
    world.tick(3)
    assert (world.store.get("uid-main") is None) is ("mode" in field)


@pytest.fixture
def in_two_batches(world: World) -> World:
    """The first batch is in flight."""
    later = {"topic": "later", "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(later))
    world.change("move", lambda obj: obj["spec"].update(concurrency={"partitions": 1}))
    world.tick(2)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    return world


def test_started_moves_are_one_event_and_not_one_per_batch(in_two_batches: World) -> None:
    world = in_two_batches
    world.kafka.copy(OURS)
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick(2)
    assert world.kube.events == ["ReassignmentStarted"]


def test_moves_started_again_after_a_pause_count_in_the_first_event(in_two_batches: World) -> None:
    world = in_two_batches
    world.change("move", lambda obj: obj["spec"].update(suspend=True))
    world.kafka.copy(OURS)
    world.tick(2)
    assert (world.conditions("move"), world.ready("move")["reason"]) == ({}, "Suspended")
    world.change("move", lambda obj: obj["spec"].update(suspend=False))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.kube.events == ["ReassignmentStarted", "a repeat"]


def test_a_failed_survey_stops_no_deletion(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> Mapping[str, Topic]:
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    world.add("waits", LATER, (4, 2, 3))
    monkeypatch.setattr(world.brokers, "observe_shortages", fails)
    world.loop.observer._survey._at = float("-inf")
    world.delete("move")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert world.conditions("main")["Paused"] == "ClusterUnreachable"
    assert LATER not in world.kafka.reassignments


@pytest.mark.parametrize("error", [ApiServerError("500"), ConflictError("another version")], ids=["500", "409"])
def test_a_status_that_is_refused_stops_no_cancel(
    world: World, monkeypatch: pytest.MonkeyPatch, error: ReassignError
) -> None:
    async def refuse(*_: object, **__: object) -> Object:
        raise error

    world.add("late", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.pull("CancelOurs")
    for method in ("get", "write_status", "write_record", "create"):
        monkeypatch.setattr(world.kube, method, refuse)
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_a_conflict_on_the_cluster_is_resolved_by_a_get(world: World) -> None:
    world.kube.write("uid-main", lambda obj: obj["metadata"].update(labels={"a": "b"}))  # the watch is late
    world.change_status("main", lambda status: status.update(inFlight=7))
    world.store._objects["uid-main"]["metadata"]["resourceVersion"] = "1"
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)


def test_nothing_begins_under_a_brake_that_the_watch_has_not_brought(world: World) -> None:
    def brake(obj: Object) -> None:
        obj["spec"]["execution"] = "Pause"
        obj["metadata"]["generation"] += 1

    world.add("late", LATER, (4, 2, 3))
    world.kube.write("uid-main", brake)
    world.tick(5)
    assert LATER not in world.kafka.reassignments
    assert world.conditions("main")["Paused"] == "Paused"


def test_the_end_of_quick_moves_is_looked_for_soon_and_of_slow_ones_later(world: World) -> None:
    pauses = [asyncio.run(world.loop._tick()) for _ in range(6)]
    assert pauses == [0.2, 0.4, 0.8, MOVING_SECONDS, MOVING_SECONDS, MOVING_SECONDS]


def test_after_a_move_has_ended_the_loop_ticks_at_once(world: World) -> None:
    world.add("later", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick(6)
    world.kafka.copy(OURS)
    assert asyncio.run(world.loop._tick()) == AT_ONCE_SECONDS
    assert asyncio.run(world.loop._tick()) < MOVING_SECONDS


def test_a_loop_that_finds_nothing_pauses_as_long_as_it_worked() -> None:
    pace = Pace()
    pace.at_once()
    assert [pace.later(took) for took in (0.0, 0.7, 0.1, 5.0, 0.0)] == [0.2, 0.7, 0.8, MOVING_SECONDS, MOVING_SECONDS]


def test_several_resources_are_written_at_once_but_not_all(world: World) -> None:
    write, under_way, at_once = world.kube.write_status, set(), []

    async def slowly(obj: Object, status: Object) -> Object:
        under_way.add(obj["metadata"]["uid"])
        at_once.append(len(under_way))
        for _ in range(20):
            await asyncio.sleep(0)
        under_way.remove(obj["metadata"]["uid"])
        return await write(obj, status)

    world.kube.write_status = slowly  # type: ignore[method-assign]
    for number in range(3 * AT_ONCE):
        world.add(f"r{number}", TopicPartition("later", number), (4, 2, 3))
    world.tick()
    assert len(at_once) >= 3 * AT_ONCE
    assert max(at_once) == AT_ONCE


def test_an_error_with_one_of_several_resources_keeps_no_other_waiting(world: World) -> None:
    names = [f"r{number}" for number in range(3 * AT_ONCE)]
    for name in names:
        world.add(name, LATER, (4, 2, 3))
    world.kube.unwritable = {f"uid-{name}" for name in names[::2]}
    world.tick()
    written = {name for name in names if "conditions" in world.kube.objects[f"uid-{name}"]["status"]}
    assert written == set(names[1::2])


def test_resources_are_judged_for_drift_as_seldom_as_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0, cpu=0.0)
    time = SimpleNamespace(monotonic=lambda: clock.now, process_time=lambda: clock.cpu)
    monkeypatch.setattr("reassign.controller.cluster.pace.time", time)
    turn, judged = DriftTurn(), []
    for second in range(200):
        clock.now = float(second)
        with turn.tick():
            judged += [second] if turn.now else []
            clock.cpu += 1.0 if second >= 30 else 0.125
    assert judged == [0, 15, 30, 80, 130, 180]


def test_a_long_round_is_not_a_stuck_loop(world: World) -> None:
    now = 0.0
    world.loop.health = health = Health(30.0, [], clock=lambda: now)
    health.tick(world.loop.name)
    world.add("later", LATER, (4, 2, 3))
    write_status, stuck = world.kube.write_status, []

    async def slowly(obj: Object, status: Object) -> Object:
        nonlocal now
        now += 25
        stuck.extend(health.stuck())
        return await write_status(obj, status)

    world.kube.write_status = slowly  # type: ignore[method-assign]
    world.delete("move")
    for _ in range(3):
        world.tick()
        health.tick(world.loop.name)
    assert now > 60
    assert stuck == []
