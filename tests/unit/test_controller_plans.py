"""ReassignmentPlans in the loop of their cluster: API server, brokers and planning in memory, the rest as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.api.common import FINALIZER
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_plan import PLAN_UID_LABEL, ReassignmentPlanStatus
from reassign.controller.cluster.loop import IDLE_SECONDS
from reassign.controller.cluster.observer import Observer
from reassign.controller.plans import goal_watch, plans
from reassign.controller.plans.job import Job, goal_of
from reassign.controller.plans.planner import RETRY_SECONDS, WAIT_SECONDS, Planner
from reassign.controller.plans.plans import PlanInputs
from reassign.controller.supervisor import Supervisor
from reassign.core.model.awaited import Awaited
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Snapshot, Topic, TopicPartition
from reassign.core.plans import decide
from reassign.core.plans.model import GoalSeen, Planned, PlanResource
from reassign.errors import ApiServerError, ClusterError, PlanningError, Reason, ReassignError
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.lease import LeaseLost
from tests.unit.plan_world import GOAL, NEW, Planning
from tests.unit.world import LATER, OURS, THEIRS, Brokers, Object, api_object, forget

ENDED = "2026-01-01T00:00:00Z"
STAYS = TopicPartition("stays", 0)
NOTHING = ReassignmentPlanStatus()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Planning:
    """A client that is made anew has the same brokers."""
    world = Planning()

    async def connect(*_: object, **__: object) -> Brokers:
        return world.brokers

    monkeypatch.setattr(KafkaClient, "connect", connect)
    return world


def test_a_plan_is_its_suspended_reassignments_and_waits_for_approval(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]
    assert {wave["metadata"]["labels"][PLAN_UID_LABEL] for wave in world.waves()} == {"uid-drain"}
    assert all("ownerReferences" not in wave["metadata"] for wave in world.waves())
    assert FINALIZER in world.plan["metadata"]["finalizers"]
    assert world.status["moves"] == {"replicas": 2, "bytes": 200, "leaders": 1}
    assert world.status["lowerBound"] == {"replicas": 2, "bytes": 199, "waves": 1}
    assert world.status["balance"]["before"] == [{"by": "Disk", "leastPercent": 0, "greatestPercent": 541}]
    assert world.status["balance"]["after"] == [{"by": "Disk", "leastPercent": 90, "greatestPercent": 110}]
    assert [(w["partitions"], w["bytes"], w["state"]) for w in world.status["waves"]] == [(1, 100, "Pending")] * 2
    assert "PlanMade" in world.kube.events
    world.tick(5)
    assert world.kafka.replicas[OURS] == (1, 2, 3)
    assert len(world.work.jobs) == 1


def test_a_plan_approved_by_its_digest_moves_wave_by_wave(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: world.says("Completed"))
    assert world.kafka.replicas == {OURS: NEW, LATER: NEW, THEIRS: (1, 2, 3)}
    assert world.status["summary"] == "2/2 waves, 2/2 partitions"
    assert [wave["state"] for wave in world.status["waves"]] == ["Succeeded"] * 2
    told = [event for event in world.kube.events if event in ("WaveStarted", "WaveCompleted", "PlanCompleted")]
    assert told[-1] == "PlanCompleted"
    assert told.count("WaveCompleted") == 2
    world.tick(3)
    assert world.plan["metadata"]["finalizers"] == []


WINDOWS = [{"cron": "0 22 * * *", "durationSeconds": 3600, "timeZone": "Europe/Berlin"}]
"""In winter from 21:00 to 22:00 UTC."""


def _at(world: Planning, hour: int, minute: int = 0, second: int = 0, day: int = 1) -> None:
    """Set the API server's clock."""
    world.kube.clock = lambda: datetime(2026, 1, day, hour, minute, second, tzinfo=UTC)


def _has_windows(world: Planning) -> None:
    _at(world, 20)
    world.change("drain", lambda obj: obj["spec"].update(approval="NotRequired", windows=WINDOWS))


def _began(world: Planning) -> bool:
    return bool(world.kafka.reassignments)


def test_waves_begin_and_go_on_only_in_the_windows_of_their_plan(world: Planning) -> None:
    _has_windows(world)
    world.tick(until=lambda: world.says("OutsideWindow"))
    assert (world.status["windowOpen"], world.status["nextWindowTime"]) == (False, "2026-01-01T21:00:00Z")
    world.tick(3)
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]
    _at(world, 21)
    world.tick(until=lambda: world.status["waves"][0]["state"] == "Succeeded")
    assert (world.status["windowOpen"], world.status["nextWindowTime"]) == (True, "2026-01-02T21:00:00Z")
    _at(world, 22)
    world.tick(until=lambda: world.says("OutsideWindow"))
    world.tick(3)
    assert (world.kafka.replicas[OURS], world.kafka.replicas[LATER]) == (NEW, (1, 2, 3))
    _at(world, 21, 30)
    world.tick(until=lambda: world.says("Completed"))
    assert "windowOpen" not in world.status


def test_a_plan_that_three_windows_did_not_end_is_counted(world: Planning) -> None:
    _has_windows(world)
    world.metrics.serve("kafka/main", dict)
    world.tick(until=lambda: world.says("OutsideWindow"))
    _at(world, 21)
    world.tick(until=lambda: world.status["waves"][0]["state"] == "Succeeded")
    counted = list[str]()
    for day in (1, 2, 3):
        _at(world, 22, day=day)
        world.tick(3)
        name = 'kafka_reassign_plans_past_windows{kafka_cluster="kafka/main"} '
        counted += [line.removeprefix(name) for line in world.metrics.text().decode().splitlines() if name in line]
    assert counted == ["0.0", "0.0", "1.0"]


def test_a_wave_that_was_let_go_in_time_begins_nothing_after_its_window(world: Planning) -> None:
    _has_windows(world)
    world.tick(until=lambda: world.says("OutsideWindow"))
    _at(world, 21)
    world.tick(until=lambda: not world.waves()[0]["spec"]["suspend"])
    assert not _began(world)
    _at(world, 23)  # the process was away meanwhile
    world.loop = world.new_loop()
    forget(world.loop, busy={})
    world.tick(until=lambda: bool(world.waves()[0]["spec"]["suspend"]))
    world.tick(5)
    assert not _began(world)
    assert world.kafka.replicas[OURS] == (1, 2, 3)
    assert world.ready(world.waves()[0]["metadata"]["name"])["reason"] == "Suspended"


def test_a_wave_that_is_let_go_by_hand_begins_nothing_outside_the_windows(
    world: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: object) -> Object:
        raise ApiServerError("500: failed calling webhook")

    _has_windows(world)
    world.tick(until=lambda: world.says("OutsideWindow"))
    monkeypatch.setattr(world.kube, "suspend", refuses)
    later = world.waves()[1]["metadata"]["name"]
    world.change(later, lambda obj: obj["spec"].update(suspend=False))
    for _ in range(5):
        world.loop._drift._due = -inf  # it is the turn of all that sleeps
        world.tick()
        assert not _began(world)
    assert world.kafka.replicas[LATER] == (1, 2, 3)
    assert world.ready(later)["reason"] == "Suspended"


def test_a_loop_reconciles_when_a_window_opens_or_closes(world: Planning) -> None:
    _has_windows(world)
    world.tick(until=lambda: world.says("OutsideWindow"))
    _at(world, 20, 59, 58)
    world.tick(2)
    assert asyncio.run(world.loop._tick()) == 2
    _at(world, 20, 30)
    assert asyncio.run(world.loop._tick()) == IDLE_SECONDS
    _at(world, 21)
    world.tick(until=lambda: not world.waves()[0]["spec"]["suspend"])
    world.kafka.brokers[4] = replace(world.kafka.brokers[4], fenced=True)
    _at(world, 21, 59, 57)
    world.tick(3)
    assert asyncio.run(world.loop._tick()) == 3


def test_a_plan_that_evacuates_a_lost_broker_is_not_paused_by_it(world: Planning) -> None:
    world.brokers.short = {"alone": Topic("id", 1, {0: Partition((1,), frozenset({1}), None)})}
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(10)
    assert world.kafka.writes == []
    assert "ClusterUnderMinIsr" in {c["reason"] for c in world.waves()[0]["status"]["conditions"]}
    world.loop.automation.lost = {"uid-drain": frozenset({1})}
    world.tick(until=lambda: world.kafka.replicas[OURS] == NEW)


def test_a_bug_in_a_window_concerns_its_plan_alone(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> object:
        raise ZeroDivisionError

    _has_windows(world)
    world.tick(until=lambda: world.says("OutsideWindow"))
    _at(world, 21)
    world.tick(until=lambda: not world.waves()[0]["spec"]["suspend"])
    for module in (plans, decide):
        monkeypatch.setattr(module, "windows_at", wrong)
    world.add("move", THEIRS, NEW)
    world.tick(until=lambda: world.kafka.replicas[THEIRS] == NEW)
    assert world.says("InternalError")
    assert world.kafka.replicas[OURS] == (1, 2, 3)


def test_what_came_of_the_goal_is_observed_and_then_watched(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goal_watch, "GOAL_SECONDS", 0.0)
    world.kafka.add(STAYS, (1, 2, 3))
    world.tick(until=lambda: world.says("AwaitingApproval"))
    assert "goalObservedTime" not in world.status
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    assert (world.goal["status"], world.goal["reason"]) == ("False", "DrainIncomplete")
    assert world.status["balance"]["after"] == [{"by": "Disk", "leastPercent": 93, "greatestPercent": 107}]
    world.kafka.replicas |= dict.fromkeys((STAYS, THEIRS), NEW)
    world.tick(until=lambda: world.goal["status"] == "True")
    assert world.work.looks == 1
    assert world.plan["metadata"]["finalizers"] == []


def test_one_reading_serves_all_plans_and_none_is_made_without_plans(world: Planning) -> None:
    world.tick(5)
    assert world.brokers.layouts == 0
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    world.put(api_object("ReassignmentPlan", "again", deepcopy(GOAL)))
    world.tick(until=lambda: "goalObservedTime" in world.kube.objects["uid-again"]["status"])
    world.tick(10)
    assert world.brokers.layouts == 1


def test_what_cannot_be_read_leaves_what_was_observed(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_: object) -> object:
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    monkeypatch.setattr(goal_watch, "GOAL_SECONDS", 0.0)
    monkeypatch.setattr(world.brokers, "observe_layout", fails)
    before = deepcopy(world.status)
    world.tick(until=lambda: "could not be observed again" in world.goal["message"])
    said = "; it could not be observed again: no broker answers; the next try follows 0 s later"
    assert world.goal["message"].endswith(said)
    world.goal["message"] = world.goal["message"].removesuffix(said)
    assert ReassignmentPlanStatus.parse(world.status) == ReassignmentPlanStatus.parse(before)


def test_a_reading_says_nothing_of_what_was_observed_later(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    plan, job = world.store.plan("uid-drain"), _job(world)
    assert plan
    assert plan.status.goal_observed_time
    reading = goal_watch.GoalReading(layout_seen(world.kafka.snapshot()), {plan.uid: plan.status.goal_observed_time})
    assert isinstance(reading.of(plan, job), GoalSeen)
    later = {"goal_observed_time": plan.status.goal_observed_time + timedelta(seconds=1)}
    assert reading.of(replace(plan, status=plan.status.model_copy(update=later)), job) is None


def test_a_watch_that_hangs_delays_no_undo(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def hangs(_: object) -> None:
        asked.append(True)
        await asyncio.Event().wait()

    async def scenario() -> None:
        await _ticks_until(world, lambda: bool(asked))
        world.add("move", THEIRS, NEW)
        await _ticks_until(world, lambda: THEIRS in world.kafka.reassignments)
        world.delete("move")
        await _ticks_until(world, lambda: THEIRS not in world.kafka.reassignments)

    async def bounded() -> None:
        ticks = asyncio.create_task(scenario())
        for _ in range(5000):
            await asyncio.sleep(0)
        ended = ticks.done()
        ticks.cancel()
        assert ended, "the loop waits for the watch"
        await ticks

    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    monkeypatch.setattr(goal_watch, "GOAL_SECONDS", 0.0)
    monkeypatch.setattr(world.brokers, "observe_layout", hangs)
    asyncio.run(bounded())
    assert len(asked) == 1
    assert set(world.kafka.replicas[THEIRS]) == {1, 2, 3}


def test_a_reading_of_goals_has_a_client_of_its_own(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = _new_clients(world, monkeypatch)
    _drain(world)
    world.tick(until=lambda: bool(clients) and clients[0].closed)
    assert (clients[0].layouts, world.brokers.layouts) == (1, 0)


def test_a_client_made_anew_disturbs_no_reading_of_goals(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    _new_clients(world, monkeypatch)
    _drain(world)
    world.kafka.replicas[THEIRS] = NEW
    asyncio.run(world.loop.observer.disconnect())
    reads, begun, goes_on = _Own.observe_layout, asyncio.Event(), asyncio.Event()

    async def waits(own: _Own, logs_of: Callable[[Layout], Collection[int]]) -> Layout:
        begun.set()
        await goes_on.wait()
        return await reads(own, logs_of)

    async def scenario() -> None:
        await _ticks_until(world, begun.is_set)
        await world.loop.observer.disconnect()
        goes_on.set()
        await _ticks_until(world, lambda: world.goal["status"] == "True")

    monkeypatch.setattr(_Own, "observe_layout", waits)
    asyncio.run(scenario())


def test_a_reading_that_hangs_ends_and_is_said(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(_: object) -> None:
        await asyncio.Event().wait()

    _drain(world)
    monkeypatch.setattr(goal_watch, "READING_SECONDS", 0.0, raising=False)
    monkeypatch.setattr(world.brokers, "observe_layout", hangs)
    world.tick(until=lambda: "could not be observed again" in world.goal["message"])
    assert "where all replicas are could not be read within 0 s; the next try follows" in world.goal["message"]


def test_a_reading_of_another_cluster_says_nothing_of_a_goal(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    async def of_another(_: object) -> Layout:
        return replace(layout_seen(world.kafka.snapshot()), cluster_id="other")

    _drain(world)
    world.kafka.replicas[THEIRS] = NEW
    monkeypatch.setattr(world.brokers, "observe_layout", of_another)
    world.tick(until=lambda: "the brokers are of cluster other" in world.goal["message"])
    assert world.goal["status"] == "False"


def _drain(world: Planning) -> None:
    """Have the plan carried out and its goal observed; from now on a reading is due."""
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: "goalObservedTime" in world.status)
    world.loop.goals._at = float("-inf")


class _Own(Brokers):
    """What one client reads from the brokers, until it is closed."""

    closed = False

    async def observe_layout(self, logs_of: Callable[[Layout], Collection[int]]) -> Layout:
        if self.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return await super().observe_layout(logs_of)

    async def close(self) -> None:
        self.closed = True


def _new_clients(world: Planning, monkeypatch: pytest.MonkeyPatch) -> list[_Own]:
    """Return where each client that is made from now on will be."""
    made = list[_Own]()

    async def connect(*_: object, **__: object) -> _Own:
        made.append(_Own(world.kafka, world.kube))
        return made[-1]

    monkeypatch.setattr(KafkaClient, "connect", connect)
    return made


def test_an_observation_that_fails_is_tried_again_ever_later(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("reassign.controller.plans.planner.time", SimpleNamespace(monotonic=lambda: now[0]))
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.work.blind = PlanningError(Reason.PLANNING_FAILED, "it took longer than 300 s")
    world.tick(until=lambda: world.goal["status"] == "Unknown")
    for looks, (seconds, said) in enumerate([(60, "60 s"), (120, "2 min"), (240, "4 min")], 1):
        assert f"it took longer than 300 s; the next try follows {said} later" in world.goal["message"]
        now[0] += seconds - 1
        world.tick(3)
        assert world.work.looks == looks
        now[0] += 1
        world.tick(3)
        assert world.work.looks == looks + 1
    now[0] += 1e6
    world.work.blind = None
    world.tick(until=lambda: "goalObservedTime" in world.status)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ApiServerError("500: failed calling webhook"), "ApiServerUnavailable"),
        (ReassignError(Reason.NOT_AUTHORIZED, "a webhook denied the request"), "NotAuthorized"),
    ],
)
def test_a_wave_whose_start_is_refused_is_named_and_started_later(
    world: Planning, monkeypatch: pytest.MonkeyPatch, error: ReassignError, reason: str
) -> None:
    async def refuses(*_: object) -> Object:
        raise error

    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    with monkeypatch.context() as patched:
        patched.setattr(world.kube, "suspend", refuses)
        world.tick(until=lambda: world.says(reason))
        name = world.waves()[0]["metadata"]["name"]
        assert world.message() == (
            f"the PartitionReassignment {name} cannot be started (spec.suspend: false): {error.message}; "
            "it is tried again"
        )
        assert world.status["digest"] == world.plan["spec"]["approvedDigest"]
        assert world.goal["status"] == "True"
    world.tick(until=lambda: world.says("Completed"))


def test_a_refused_suspension_keeps_no_other_wave_running(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    suspend = world.kube.suspend

    async def refuses_one(obj: Object, suspended: bool) -> Object:
        if obj["metadata"]["name"] == first:
            raise ApiServerError("500: failed calling webhook")
        return await suspend(obj, suspended)

    world.tick(until=lambda: world.says("AwaitingApproval"))
    first, second = (wave["metadata"]["name"] for wave in world.waves())
    world.change("drain", lambda obj: obj["spec"].update(suspend=True))
    for name in (first, second):
        world.change(name, lambda obj: obj["spec"].update(suspend=False))
    monkeypatch.setattr(world.kube, "suspend", refuses_one)
    asyncio.run(_ticks_until(world, lambda: world.waves()[1]["spec"]["suspend"]))
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [False, True]
    assert f"the PartitionReassignment {first} cannot be suspended" in world.message()


def test_a_plan_whose_finalizer_cannot_go_stays_completed(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = world.kube.remove_finalizer

    async def refuses_plans(obj: Object) -> Object:
        if obj["kind"] == "ReassignmentPlan":
            raise ReassignError(Reason.NOT_AUTHORIZED, "a webhook denied the request")
        return await remove(obj)

    with monkeypatch.context() as patched:
        patched.setattr(world.kube, "remove_finalizer", refuses_plans)
        world.tick(until=lambda: world.says("AwaitingApproval"))
        world.approve()
        world.tick(until=lambda: "goalObservedTime" in world.status)
        world.tick(3)
        assert world.conditions("drain") == {"Ready": "Completed", "Succeeded": "Completed"}
        refused = "the finalizer of the plan cannot be removed: a webhook denied the request; it is tried again"
        assert world.status["summary"] == f"2/2 waves, 2/2 partitions; {refused}"
        world.delete("drain")
        world.tick(2)
        assert world.says("NotAuthorized")
        assert world.message() == refused
    world.tick(until=lambda: world.store.get("uid-drain") is None)


def test_a_withdrawn_approval_starts_no_wave_despite_a_stale_watch(world: Planning) -> None:
    def take_back(obj: Object) -> None:
        del obj["spec"]["approvedDigest"]
        obj["metadata"]["generation"] += 1

    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.kube.write("uid-drain", take_back)
    world.tick(3)
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]
    assert world.says("AwaitingApproval")


def test_a_move_that_has_just_ended_makes_no_plan_stale(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    forget(world.loop, busy={OURS: Awaited(inf)})
    world.kafka.replicas[OURS] = (4, 1, 2, 3)
    world.approve()
    world.tick(5)
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]
    assert world.says("WaveInFlight")
    world.kafka.replicas[OURS] = (1, 2, 3)
    forget(world.loop, busy={})
    world.tick(until=lambda: world.says("Completed"))


def test_waves_behind_the_next_one_are_read_only_now_and_then(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.tick(2)
    assert world.brokers.asked == {OURS.topic}
    world.approve()
    world.tick(until=lambda: world.status["waves"][0]["state"] == "Succeeded")
    assert LATER.topic in world.brokers.asked
    world.tick(until=lambda: world.says("Completed"))


def test_whether_topics_are_allowed_is_asked_of_a_failed_wave_too(world: Planning) -> None:
    def fail(wave: Object) -> None:
        failed = {"type": "Failed", "status": "True", "reason": "Failed", "message": "", "lastTransitionTime": ENDED}
        wave["status"] = {"observedGeneration": 1, "completionTime": ENDED, "conditions": [failed]}
        wave["metadata"]["finalizers"] = []

    world.tick(until=lambda: world.says("AwaitingApproval"))
    wave = world.waves()[0]["metadata"]
    world.store.put(world.kube.write(wave["uid"], fail))
    assert [kept.name for kept in world.store.settled(("kafka", "main"))] == [wave["name"]]
    asked: list[Resource | None] = []

    def seen(plan: PlanResource, wave: Resource | None) -> Snapshot:
        asked.append(wave)
        return world.kafka.snapshot()

    asyncio.run(world.loop.plans.serve(("kafka", "main"), PlanInputs(seen)))
    assert [found.asked.keys() for found in asked if found] == [{OURS}]


def test_deleted_it_takes_with_it_what_is_not_done(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.delete("drain")
    world.tick(until=lambda: world.store.get("uid-drain") is None)
    assert [wave for wave in world.waves() if wave["metadata"].get("finalizers")] == []
    assert world.kafka.replicas[OURS] == (1, 2, 3)


def test_an_operator_that_ends_before_status_has_the_waves_begins_again(world: Planning) -> None:
    world.tick(until=lambda: len(world.waves()) == 2)
    assert "digest" not in world.status
    world.planner = Planner(world.work)
    world.restart()
    world.tick(until=lambda: world.says("AwaitingApproval"))
    alive = [wave for wave in world.waves() if not wave["metadata"].get("deletionTimestamp")]
    assert {wave["metadata"]["name"] for wave in alive} == {wave["name"] for wave in world.status["waves"]}


def test_a_wave_that_is_there_already_will_do_when_it_is_the_same(world: Planning) -> None:
    create = world.kube.create

    async def answer_lost(obj: Object) -> Object:
        made = await create(obj)
        if obj["kind"] == "ReassignmentRecord":
            return made
        world.kube.create = create  # type: ignore[method-assign]
        raise ApiServerError("no answer")

    world.kube.create = answer_lost  # type: ignore[method-assign]
    world.tick(until=lambda: world.says("AwaitingApproval"))
    assert len(world.waves()) == 2


def test_another_object_of_a_waves_name_is_left_alone_and_named(world: Planning) -> None:
    prefix = (world.store.plan("uid-drain") or pytest.fail("no plan")).wave_prefix
    spec = {"clusterRef": {"name": "main"}, "suspend": True, "partitions": [_entry(LATER)]}
    world.put(api_object("PartitionReassignment", f"{prefix}-1", spec))
    world.tick(until=lambda: world.says("Conflict"))
    assert f"{prefix}-1" in world.message()
    assert world.kube.objects[f"uid-{prefix}-1"]["spec"]["partitions"] == [_entry(LATER)]


def test_a_wave_without_its_label_counts_as_deleted(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    name = world.waves()[0]["metadata"]["name"]
    world.change(name, lambda obj: obj["metadata"]["labels"].pop(PLAN_UID_LABEL))
    world.approve()
    world.tick(until=lambda: world.says("WaveFailed"))
    assert f"a user deleted the PartitionReassignment {name}" in world.message()
    assert all(wave["spec"]["suspend"] for wave in world.waves())


def _entry(tp: TopicPartition) -> Object:
    return {"topic": tp.topic, "partition": tp.partition, "replicas": list(NEW)}


def test_a_plan_that_cannot_be_made_is_reported_and_retried_later(
    world: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work.fails = PlanningError(Reason.NOT_ENOUGH_BROKERS, "2 brokers cannot hold 3 replicas; add one")
    world.tick(until=lambda: world.says("NotEnoughBrokers"))
    world.tick(5)
    assert len(world.work.jobs) == 1
    assert world.conditions("drain") == {"Stalled": "NotEnoughBrokers"}
    world.work.fails = None
    monkeypatch.setattr("reassign.controller.plans.planner.RETRY_SECONDS", -RETRY_SECONDS)
    world.tick(until=lambda: world.says("AwaitingApproval"))


def test_a_plan_that_exceeds_the_memory_is_not_retried_in_a_loop(
    world: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reassign.controller.plans.planner.RETRY_SECONDS", -RETRY_SECONDS)
    world.work.fails = PlanningError(Reason.INSUFFICIENT_MEMORY, "raise the limit")
    world.tick(until=lambda: world.says("InsufficientMemory"))
    world.tick(5)
    assert len(world.work.jobs) == 1
    world.work.fails = None
    world.change("drain", lambda obj: obj["spec"].update(topics={"include": ["o*"]}))
    world.tick(until=lambda: world.says("AwaitingApproval"))


def test_what_a_plan_came_to_is_forgotten_when_the_plan_is_gone(world: Planning) -> None:
    world.work.fails = PlanningError(Reason.NOT_ENOUGH_BROKERS, "2 brokers cannot hold 3 replicas; add one")
    world.tick(until=lambda: world.says("NotEnoughBrokers"))
    job = _job(world)
    assert world.planner.made(job)
    world.store.drop("uid-drain")
    world.tick()
    assert world.planner.made(job) is None


def test_a_bug_in_planning_stalls_that_plan_alone(world: Planning) -> None:
    world.work.fails = KeyError("a bug")
    world.add("move", THEIRS, NEW)
    world.tick(until=lambda: world.says("InternalError"))
    world.tick(until=lambda: world.kafka.replicas[THEIRS] == NEW)


def test_planning_does_not_block_the_loop_and_another_plan_waits(world: Planning) -> None:
    ends = asyncio.Event()
    made: list[str] = []
    at_once = world.work.__call__

    async def slowly(job: Job) -> Planned:
        made.append(job.plan.name)
        await ends.wait()
        return await at_once(job)

    world.planner._work = slowly
    world.put(api_object("ReassignmentPlan", "second", deepcopy(GOAL)))

    async def scenario() -> None:
        for _ in range(6):
            await world.tick_once()
        assert len(made) == 1
        world.add("move", THEIRS, NEW)
        for _ in range(6):
            await world.tick_once()
        assert THEIRS in world.kafka.reassignments
        assert len(made) == 1
        ends.set()
        for _ in range(6):
            await world.tick_once()
        assert set(made) == {"drain", "second"}

    asyncio.run(scenario())


def test_a_plan_that_is_deleted_while_it_is_made_ends_that(world: Planning) -> None:
    async def for_ever(job: Job) -> Planned:
        await asyncio.Event().wait()
        raise AssertionError

    world.planner._work = for_ever

    async def scenario() -> None:
        for _ in range(4):
            await world.tick_once()
        assert world.planner._under_way is not None
        world.delete("drain")
        await world.tick_once()
        assert world.planner._under_way is None

    asyncio.run(scenario())
    assert world.store.get("uid-drain") is None


def _another(world: Planning) -> Job:
    plan, cluster = world.store.plan("uid-drain"), KafkaCluster.parse(world.kube.objects["uid-main"])
    assert plan is not None
    return Job(replace(plan, uid="uid-other"), cluster, "sim", Connection("b:9092"), ("*",))


def test_of_the_plans_of_two_clusters_one_is_made_first(world: Planning) -> None:
    other = _another(world)
    first = other._replace(plan=replace(other.plan, uid="uid-drain"))

    async def scenario() -> None:
        world.planner.ask(first, lambda: None)
        world.planner.ask(other, lambda: world.planner.ask(other, lambda: None))
        await asyncio.sleep(0)
        assert [job.plan.uid for job in world.work.jobs] == ["uid-drain"]
        for _ in range(5):
            await asyncio.sleep(0)
        assert [job.plan.uid for job in world.work.jobs] == ["uid-drain", "uid-other"]

    asyncio.run(scenario())


def test_a_plan_forgotten_before_it_begins_delays_no_other(world: Planning) -> None:
    other = _another(world)
    first = other._replace(plan=replace(other.plan, uid="uid-drain"))
    ended: list[str] = []

    async def scenario() -> None:
        world.planner.ask(other, lambda: ended.append("other"))
        world.planner.forget("uid-other")
        for _ in range(3):
            await asyncio.sleep(0)
        assert ended == ["other"]
        assert world.work.jobs == []
        world.planner.ask(first, lambda: None)
        await asyncio.sleep(0)
        assert [job.plan.uid for job in world.work.jobs] == ["uid-drain"]

    asyncio.run(scenario())


def test_a_plan_goes_before_observations_of_others(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    observed, made = (
        _job(world),
        _another(world)._replace(plan=replace(_job(world).plan, uid="uid-new", status=NOTHING)),
    )
    jobs = [observed._replace(plan=replace(observed.plan, uid=f"uid-{n}")) for n in (1, 2)]
    assert [job.plan.planned for job in (*jobs, made)] == [True, True, False]
    tried: list[str] = []

    async def work(job: Job) -> GoalSeen:
        tried.append(job.plan.uid)
        return GoalSeen(())

    planner = Planner(work)

    def ask(job: Job) -> None:
        if job.plan.uid not in tried:
            planner.ask(job, partial(ask, job))

    async def scenario() -> None:
        for job in (*jobs, made):
            ask(job)
        for _ in range(20):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert tried == ["uid-1", "uid-new", "uid-2"]


def test_plans_that_fail_and_observations_take_turns(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("reassign.controller.plans.planner.time", SimpleNamespace(monotonic=lambda: now[0]))
    world.tick(until=lambda: world.says("AwaitingApproval"))
    observed = _job(world)
    jobs = [observed._replace(plan=replace(observed.plan, uid=f"uid-look-{n}")) for n in (1, 2, 3)]
    jobs += [observed._replace(plan=replace(observed.plan, uid=f"uid-plan-{n}", status=NOTHING)) for n in (1, 2)]
    tried: list[str] = []

    async def fail(job: Job) -> GoalSeen:
        tried.append(job.plan.uid)
        now[0] += RETRY_SECONDS
        raise PlanningError(Reason.PLANNING_FAILED, "it took longer than 300 s")

    planner = Planner(fail)

    async def scenario() -> None:
        while len(tried) < 8:
            for job in jobs:
                planner.ask(job, lambda: None)
            await asyncio.sleep(0)

    asyncio.run(scenario())
    plans = [uid for uid in tried if uid.startswith("uid-plan")]
    looks = [uid for uid in tried if uid.startswith("uid-look")]
    assert tried[1:3] == ["uid-plan-1", "uid-plan-2"]
    assert len(plans) >= 4
    assert len(looks) >= 4


def _slow_failures(world: Planning, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[str]]:
    """The time, and the plans that are tried, each for longer than a failure waits to be tried again."""
    now, tried = [0.0], []

    async def fail(job: Job) -> Planned:
        tried.append(job.plan.name)
        now[0] += 5 * RETRY_SECONDS
        for _ in range(8):  # the loop looks meanwhile
            await asyncio.sleep(0)
        raise PlanningError(Reason.PLANNING_FAILED, "it took longer than 300 s")

    monkeypatch.setattr("reassign.controller.plans.planner.time", SimpleNamespace(monotonic=lambda: now[0]))
    world.planner._work = fail
    return now, tried


def test_plans_that_fail_slowly_keep_no_other_from_its_turn(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    _, tried = _slow_failures(world, monkeypatch)
    for name in ("second", "third"):
        world.put(api_object("ReassignmentPlan", name, deepcopy(GOAL)))
    world.tick(until=lambda: len(tried) >= 6)
    assert tried[:6] == ["drain", "second", "third"] * 2


def test_a_plan_that_cannot_be_made_now_delays_no_other_for_long(
    world: Planning, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tried = _slow_failures(world, monkeypatch)
    for name in ("second", "third"):
        world.put(api_object("ReassignmentPlan", name, deepcopy(GOAL)))
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": "2Mi"}))

    async def scenario() -> None:
        await _ticks_until(world, lambda: tried == ["drain", "second"])
        await world.tick_once()  # the third asks once more
        world.change("third", lambda obj: obj["spec"].update(template={"throttle": {"interBroker": "3Mi"}}))
        for _ in range(5):
            await world.tick_once()
        assert tried == ["drain", "second"]
        now[0] += WAIT_SECONDS
        await _ticks_until(world, lambda: len(tried) == 4)

    asyncio.run(scenario())
    assert tried == ["drain", "second", "drain", "second"]


def test_a_plan_reports_an_unreachable_cluster(world: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreachable(observer: Observer, cluster: KafkaCluster) -> Any:
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    monkeypatch.setattr(Observer, "_connected", unreachable)
    world.tick(until=lambda: world.says("ClusterUnreachable"))
    assert world.waves() == []
    world.delete("drain")
    world.tick()
    assert world.store.get("uid-drain") is None


def test_a_namespace_that_is_not_allowed_gets_no_plan(world: Planning) -> None:
    _put_foreign(world)
    world.tick(until=lambda: world.says("NamespaceNotAllowed"))
    assert world.work.jobs == []
    assert world.kube.objects["uid-drain"]["status"].get("waves", []) == []


def test_a_withdrawn_permission_holds_back_the_next_wave(
    world: Planning,
) -> None:
    allowed = [{"name": "team-a", "topics": ["*"]}]
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=allowed))
    world.store.drop("uid-drain")
    plan = api_object("ReassignmentPlan", "drain", {**GOAL, "clusterRef": {"name": "main", "namespace": "kafka"}})
    plan["metadata"] |= {"namespace": "team-a"}
    world.put(plan)
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=[{"name": "team-a", "topics": ["others"]}]))
    world.kafka.replicas[OURS] = (5, 2, 3)
    world.approve()
    world.tick(until=lambda: world.says("NamespaceNotAllowed"))
    assert f"may move others, not {OURS.topic}" in world.message()
    assert "5" not in world.message()
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]


def _allow(world: Planning, *topics: str) -> None:
    allowed = [{"name": "team-a", "topics": list(topics)}]
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=allowed if topics else []))


def _put_foreign(world: Planning) -> None:
    plan = api_object("ReassignmentPlan", "drain", {**GOAL, "clusterRef": {"name": "main", "namespace": "kafka"}})
    plan["metadata"] |= {"namespace": "team-a", "resourceVersion": "99"}
    world.put(plan)


def test_a_plan_under_wider_permissions_is_not_written_once_narrowed(world: Planning) -> None:
    began: list[Job] = []
    wide = asyncio.Event()

    async def slowly(job: Job) -> Planned:
        began.append(job)
        if job.allowed != ("*",):
            raise PlanningError(Reason.NOTHING_SELECTED, "change the patterns")
        await wide.wait()
        return await world.work(job)

    world.planner._work = slowly
    _allow(world, "*")
    _put_foreign(world)

    async def scenario() -> None:
        await _ticks_until(world, lambda: bool(began))
        _allow(world, "others-*")
        wide.set()
        await _ticks_until(world, lambda: len(began) == 2)

    asyncio.run(scenario())
    world.tick(until=lambda: world.says("NothingSelected"))
    assert world.waves() == []
    assert "moves" not in world.status
    assert [job.allowed for job in began] == [("*",), ("others-*",)]


def test_waves_written_under_a_withdrawn_permission_are_deleted(
    world: Planning,
) -> None:
    _allow(world, "*")
    _put_foreign(world)
    world.tick(until=lambda: len(world.waves()) == 2)
    assert "digest" not in world.status
    _allow(world)
    world.tick(until=lambda: world.says("NamespaceNotAllowed"))
    assert [wave for wave in world.waves() if not wave["metadata"].get("deletionTimestamp")] == []
    assert len(world.work.jobs) == 1


@pytest.mark.parametrize(
    "change", [{"limits": {"minFreeDiskPercent": 20}}, {"throttle": {"interBroker": "1Mi"}}], ids=["disk", "throttle"]
)
def test_a_plan_for_other_limits_of_the_cluster_is_made_again(world: Planning, change: Object) -> None:
    world.tick(until=lambda: bool(world.work.jobs))
    world.change("main", lambda obj: obj["spec"].update(change))
    world.tick(until=lambda: world.says("AwaitingApproval"))
    assert len(world.work.jobs) == 2


def _job(world: Planning, allowed: tuple[str, ...] = ("*",), **cluster: Any) -> Job:
    plan, obj = world.store.plan("uid-drain"), deepcopy(world.kube.objects["uid-main"])
    obj["spec"] |= cluster
    assert plan is not None
    return Job(plan, KafkaCluster.parse(obj), "sim", Connection("b:9092"), allowed)


def test_a_namespace_plans_for_the_topics_that_it_may_move(world: Planning) -> None:
    topics = tuple(sorted(world.kafka.snapshot().topics))
    everything = goal_of(_job(world), topics)
    assert (everything.include, everything.exclude, everything.drain) == (("*",), None, frozenset({1}))
    assert everything.min_free == 0.1
    some = goal_of(_job(world, ("o*", "th?irs")), topics)
    assert some.include == ("ours", "theirs")


@pytest.mark.parametrize("allowed", ["others-*", "__ours"])
def test_a_namespace_without_permission_learns_nothing_of_the_cluster(world: Planning, allowed: str) -> None:
    world.change("drain", lambda obj: obj["spec"].update(topics={"exclude": ["__*"]}))
    with pytest.raises(PlanningError, match="no topic that the namespace kafka may move") as raised:
        goal_of(_job(world, (allowed,)), ("__ours", "secret", "theirs"))
    assert raised.value.reason is Reason.NOTHING_SELECTED
    assert "secret" not in raised.value.message
    assert "3" not in raised.value.message


def test_the_rate_is_the_templates_or_the_clusters(world: Planning) -> None:
    def rate(template: Object, **cluster: Object) -> int | None:
        world.change("drain", lambda obj: obj["spec"].update(template=template))
        return _job(world, **cluster).rate

    assert rate({}) is None
    assert rate({}, throttle={"interBroker": "1Mi"}) == 2**20
    assert rate({"throttle": {"interBroker": "2Mi"}}, throttle={"interBroker": "1Mi"}) == 2**21
    assert rate({"throttle": {"logDir": "2Mi"}}, throttle={"interBroker": "1Mi"}) == 2**20


@pytest.mark.parametrize("field", ["interBroker", "logDir"])
def test_a_template_above_the_maximum_is_reported_before_planning(world: Planning, field: str) -> None:
    def template(rate: str) -> None:
        world.change("drain", lambda obj: obj["spec"].update(template={"throttle": {field: rate}}))

    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": "2Mi"}))
    template("3Mi")
    world.tick(until=lambda: world.says("ThrottleAboveMaximum"))
    assert f"spec.template.throttle.{field}: 3Mi is above limits.maxThrottle: 2Mi" in world.message()
    assert world.conditions("drain") == {"Stalled": "ThrottleAboveMaximum"}
    assert world.work.jobs == []
    template("2Mi")
    world.tick(until=lambda: world.says("AwaitingApproval"))


def test_a_template_below_the_minimum_is_reported_before_planning(world: Planning) -> None:
    world.change("main", lambda obj: obj["spec"].update(limits={"minThrottle": "2Mi"}))
    world.change("drain", lambda obj: obj["spec"].update(template={"throttle": {"interBroker": "1Mi"}}))
    world.tick(until=lambda: world.says("ThrottleBelowMinimum"))
    assert "spec.template.throttle.interBroker: 1Mi is below limits.minThrottle: 2Mi" in world.message()
    assert world.work.jobs == []


def test_a_maximum_lowered_below_the_template_holds_back_the_next_wave(world: Planning) -> None:
    world.change("drain", lambda obj: obj["spec"].update(template={"throttle": {"interBroker": "3Mi"}}))
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": "2Mi"}))
    world.approve()
    world.tick(until=lambda: world.says("ThrottleAboveMaximum"))
    assert [wave["spec"]["suspend"] for wave in world.waves()] == [True, True]
    world.change("main", lambda obj: obj["spec"].update(limits={}))
    world.tick(until=lambda: world.says("Completed"))


def test_a_cluster_does_not_wait_for_a_plan_that_has_not_begun(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.delete("main")
    world.tick()
    assert world.store.get("uid-main") is None


def test_a_cluster_that_is_deleted_waits_for_its_plans(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    asyncio.run(_ticks_until(world, lambda: OURS in world.kafka.reassignments))
    world.delete("main")
    world.tick(3)
    assert world.says("ClusterDeleted")
    assert FINALIZER in world.kube.objects["uid-main"]["metadata"]["finalizers"]
    ready = next(c for c in world.kube.objects["uid-main"]["status"]["conditions"] if c["type"] == "Ready")
    assert "kafka/drain" in ready["message"]


def test_a_plan_reports_a_missing_cluster_and_can_be_deleted(world: Planning) -> None:
    kube: Any = world.kube
    unused: Any = None
    del world.kube.objects["uid-main"]
    world.store.drop("uid-main")
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), unused)
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert world.says("ClusterNotFound")
    world.delete("drain")
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert world.store.get("uid-drain") is None


def test_an_unreadable_plan_is_reported(world: Planning) -> None:
    world.change("drain", lambda obj: obj["spec"].update(goal={"replicationFactor": "many"}))
    world.tick()
    assert world.says("CannotBeRead")


def _unreadable(obj: Object) -> None:
    obj["spec"]["partitions"][0]["replicas"] = ["four"]


def test_an_unreadable_wave_is_reported_and_holds_back_the_next(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    second, before = world.waves()[1]["metadata"]["name"], deepcopy(world.waves()[1]["spec"])
    world.change(second, _unreadable)
    world.approve()
    world.tick(until=lambda: world.says("CannotBeRead"))
    world.tick(3)
    assert f"{second}: this version of the operator cannot read spec.partitions" in world.message()
    assert world.conditions("drain") == {"GoalMet": "GoalMet", "Stalled": "CannotBeRead"}
    assert [wave["state"] for wave in world.status["waves"]] == ["Pending", "Pending"]
    assert world.kafka.replicas[OURS] == (1, 2, 3)
    world.change(second, lambda obj: obj.update(spec=before))
    world.tick(until=lambda: world.says("Completed"))


@pytest.mark.parametrize("moving", [True, False], ids=["in flight", "not begun"])
def test_an_unreadable_wave_delays_its_plans_deletion_only_while_unsafe(world: Planning, moving: bool) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    first = world.waves()[0]["metadata"]["name"]
    if moving:
        world.approve()
        asyncio.run(_ticks_until(world, lambda: OURS in world.kafka.reassignments))
    world.change(first, _unreadable)
    world.delete("drain")
    asyncio.run(_ticks_until(world, lambda: world.store.get("uid-drain") is None))
    left = [wave["metadata"] for wave in world.waves() if wave["metadata"].get("finalizers")]
    assert [(meta["name"], bool(meta.get("deletionTimestamp"))) for meta in left] == ([(first, True)] if moving else [])
    assert (OURS in world.kafka.reassignments) is moving


def test_a_completed_unreadable_wave_stays_when_its_plan_is_deleted(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    world.approve()
    world.tick(until=lambda: world.says("Completed"))
    first = world.waves()[0]["metadata"]["name"]
    world.change(first, _unreadable)
    world.tick(3)
    assert world.says("Completed")
    world.delete("drain")
    world.tick(3)
    assert world.store.get("uid-drain") is None
    assert "deletionTimestamp" not in world.kube.objects[f"uid-{first}"]["metadata"]


async def _ticks_until(world: Planning, true: Callable[[], bool]) -> None:
    """What is in flight stays in flight."""
    for _ in range(40):
        await world.tick_once()
        if true():
            return
    raise AssertionError("it did not come true")


def test_the_planner_status_survives_what_the_api_server_says(world: Planning) -> None:
    world.tick(until=lambda: world.says("AwaitingApproval"))
    assert ReassignmentPlanStatus.parse(world.status).wire() == world.status


def test_a_lost_lease_is_no_bug_of_a_plan(world: Planning, monkeypatch: pytest.MonkeyPatch, logged: list[Any]) -> None:
    async def lost(*_: object) -> None:
        raise LeaseLost("another process has the Lease")

    monkeypatch.setattr(world.loop.plans, "_serve", lost)
    logged.clear()
    asyncio.run(world.loop._safe_tick())
    assert [line["event"] for line in logged] == ["nothing is written any more"]
    assert not world.says("InternalError")
