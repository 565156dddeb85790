"""A BrokerDecommission in the loop of its KafkaCluster, from its creation to its end, whatever others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reassign.core.claim import ClaimState
from reassign.core.model.snapshot import Broker
from reassign.errors import ApiServerError, ClusterError, Reason
from reassign.kafka.claim import Membership
from tests.unit.decommission_world import A, B, C, Decommissioning
from tests.unit.world import KilledError, Object, api_object

Change = Callable[[Decommissioning], None]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Decommissioning:
    return Decommissioning(monkeypatch)


@pytest.fixture
def approved(monkeypatch: pytest.MonkeyPatch) -> Decommissioning:
    """One that needs no approval, and whose broker is unregistered once it is down."""
    return Decommissioning(monkeypatch, approval="NotRequired", unregister="WhenDown")


def in_flight(world: Decommissioning) -> None:
    """Tick until the first wave has its move in flight, which does not end by itself."""
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.tick()


# --- A life ---


def test_nothing_is_cordoned_or_moved_before_the_approval(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    world.tick(20)
    assert (world.reason(), world.plans(), world.kube.started) == ("AwaitingApproval", ["old-1"], [])
    assert not world.cordons()
    assert world.on(1) == [A, B]


def test_a_broker_is_cordoned_emptied_and_unregistered(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.until("AwaitingApproval")
    world.approve()
    world.tick(until=lambda: world.cordons() == {1})
    assert not world.kube.started
    world.until("Empty")
    assert (world.on(1), len(world.kube.started), world.cordons()) == ([], 2, {1})
    assert world.condition("Succeeded")["status"] == "False"
    world.down(1)
    world.tick(5)
    assert world.status()["brokers"] == [{"id": 1, "state": "Down", "replicas": 0}]
    assert not world.brokers.unregistered
    world.until("Unregistered")
    world.tick(5)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.brokers.unregistered == [1]
    assert world.plans() == ["old-1"]
    world.assert_nothing_left(unregistered=[1])
    world.kafka.brokers[1] = Broker(1, "r1")
    world.tick(10)
    assert (world.reason(), world.cordons()) == ("Unregistered", set())


def test_a_broker_that_others_unregister_is_gone(world: Decommissioning) -> None:
    world.edit(approval="NotRequired")
    world.until("Empty")
    del world.kafka.brokers[1]
    world.until("Gone")
    world.kafka.brokers[1] = Broker(1, "r1")
    world.kafka.move_as_another(C, (1, 3))
    world.kafka.copy(C)
    world.tick(20)
    assert (world.reason(), world.plans(), world.cordons()) == ("Gone", ["old-1"], set())


def test_another_digest_approves_nothing(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    world.edit(approvedDigest=f"sha256:{'f' * 64}")
    world.until("ApprovedDigestMismatch")
    world.tick(10)
    assert (world.kube.started, world.cordons()) == ([], set())


def test_applying_one_that_needs_no_approval_is_enough(approved: Decommissioning) -> None:
    approved.until("Empty")
    approved.down(1)
    approved.until("Unregistered")
    assert approved.status()["plans"][0]["outcome"] == "Succeeded"


def test_what_lands_later_gets_a_further_plan_and_its_approval(world: Decommissioning) -> None:
    world.edit(cordon="Never")
    world.until("AwaitingApproval")
    world.approve()
    world.until("Empty")
    world.kafka.move_as_another(C, (1, 3))
    world.kafka.copy(C)
    world.until("AwaitingApproval")
    assert world.plans() == ["old-1", "old-2"]
    assert "more than 110 %" in (world.message() or "")
    world.approve()
    world.until("Empty")
    assert world.on(1) == []


# --- Held ---


def test_suspending_one_starts_no_wave_and_keeps_its_cordon(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.edit(suspend=True)
    approved.copies = True
    approved.until("Suspended")
    approved.tick(10)
    assert (len(approved.kube.started), approved.cordons(), approved.on(1)) == (1, {1}, [B])
    approved.edit(suspend=False)
    approved.until("Empty")


def test_taking_the_approval_away_starts_no_further_wave(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    world.approve()
    in_flight(world)
    world.edit(approvedDigest=None)
    world.copies = True
    world.until("AwaitingApproval")
    world.tick(10)
    assert (len(world.kube.started), world.on(1)) == (1, [B])
    world.approve()
    world.until("Empty")
    assert world.plans() == ["old-1"]


def test_no_wave_starts_while_no_window_is_open(world: Decommissioning) -> None:
    opens = world.clock.now().hour + 2
    world.edit(approval="NotRequired", windows=[{"cron": f"0 {opens} * * *", "durationSeconds": 3600}])
    world.until("OutsideWindow")
    world.tick(10)
    assert (world.kube.started, world.cordons()) == ([], {1})
    world.clock.seconds += 2 * 3600
    world.tick(until=lambda: len(world.kube.started) > 0)
    world.until("Empty")


def test_a_wave_begins_nothing_once_the_window_has_closed(world: Decommissioning) -> None:
    hour = world.clock.now().hour
    world.edit(approval="NotRequired", windows=[{"cron": f"0 {hour} * * *", "durationSeconds": 3600}])
    world.tick(until=lambda: len(world.kube.started) == 1)
    world.clock.seconds += 3600
    world.tick(10)
    assert (world.brokers.begun, world.reason()) == ([], "OutsideWindow")


@pytest.mark.parametrize("execution", ["Pause", "CancelOurs", "CancelAll"])
def test_the_brake_starts_nothing_and_run_goes_on(approved: Decommissioning, execution: str) -> None:
    in_flight(approved)
    approved.pull(execution)
    approved.copies = execution == "Pause"
    approved.until("Suspended")
    approved.tick(15)
    assert len(approved.kube.started) == 1
    assert not approved.kafka.reassignments
    assert approved.cordons() == ({1} if execution == "Pause" else set())
    approved.copies = True
    approved.pull("Run")
    approved.until("Empty", seconds=20)
    assert approved.cordons() == {1}
    assert approved.record()["approval"]["begunBytes"] == 200


# --- Deleted ---


BEFORE: dict[str, Change] = {
    "before it is seen": lambda world: None,
    "when it is held": lambda world: world.tick(),
    "when its plan is worked out": lambda world: world.tick(2),
    "when its plan is created": lambda world: world.tick(until=lambda: world.plans() == ["old-1"]),
    "when its waves are created": lambda world: world.tick(until=lambda: len(world.waves()) == 2),
    "when it is approved": lambda world: world.tick(until=lambda: "approval" in world.record()),
    "when it is cordoned": lambda world: world.tick(until=lambda: world.cordons() == {1}),
    "when a wave starts": lambda world: world.tick(until=lambda: len(world.kube.started) == 1),
    "when a move is in flight": in_flight,
    "when the second wave starts": lambda world: world.tick(until=lambda: len(world.kube.started) == 2),
    "when it is empty": lambda world: world.until("Empty"),
}
steps = pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)


def foreground(world: Decommissioning) -> None:
    world.delete(foreground=True)


def plan_first(world: Decommissioning) -> None:
    if world.plans():
        world.delete("old-1", "ReassignmentPlan")
        world.tick()
    world.delete()


def plan_after(world: Decommissioning) -> None:
    world.delete()
    if world.plans():
        world.tick()
        if world.plans():
            world.delete("old-1", "ReassignmentPlan")


@steps
@pytest.mark.parametrize("delete", [Decommissioning.delete, foreground, plan_first, plan_after])
def test_deleting_one_leaves_nothing_behind(approved: Decommissioning, before: Change, delete: Change) -> None:
    before(approved)
    delete(approved)
    approved.tick(until=lambda: not approved.obj("BrokerDecommission", "old"))
    approved.tick(10)
    approved.assert_nothing_left()
    started = len(approved.kube.started)
    approved.tick(10)
    assert len(approved.kube.started) == started


@steps
def test_stripping_its_finalizer_by_hand_leaves_no_cordon(approved: Decommissioning, before: Change) -> None:
    before(approved)
    if "uid-old" in approved.kube.objects:
        approved.kube.write("uid-old", lambda obj: obj["metadata"].update(finalizers=[]))
    approved.delete()
    approved.tick(30)
    approved.assert_nothing_left()


# --- Its KafkaCluster ---


def test_an_unreachable_cluster_is_waited_for(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.brokers.reachable = False
    approved.until("ClusterUnreachable")
    approved.tick(20)
    assert (approved.kube.started, approved.kube.suspended) == (approved.kube.started[:1], [])
    approved.brokers.reachable = approved.copies = True
    approved.until("Empty")
    assert approved.plans() == ["old-1"]


def test_a_cordon_is_lifted_once_the_cluster_is_reached_again(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.brokers.reachable = False
    approved.until("ClusterUnreachable")
    approved.delete()
    approved.tick(30)
    approved.brokers.reachable = True
    approved.tick(30)
    approved.assert_nothing_left()


def test_a_deleted_cluster_waits_for_an_approved_one(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.delete("main", "KafkaCluster")
    approved.tick(10)
    approved.copies = True
    assert approved.obj("KafkaCluster", "main")
    assert len(approved.kube.started) == 1
    assert not approved.cordons()
    approved.delete()
    approved.tick(until=lambda: not approved.obj("KafkaCluster", "main"))
    approved.assert_nothing_left()


def test_a_deleted_cluster_waits_for_none_that_is_not_approved(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    world.delete("main", "KafkaCluster")
    world.tick(until=lambda: not world.obj("KafkaCluster", "main"))


def test_a_cluster_that_cannot_be_read_starts_nothing(approved: Decommissioning) -> None:
    approved.tick(until=lambda: approved.cordons() == {1})
    approved.change("main", lambda obj: obj["spec"].update(limits={"partitionsInFlight": "many"}))
    approved.until("CannotBeRead")
    approved.tick(10)
    assert (approved.kube.started, approved.cordons()) == ([], {1})
    approved.change("main", lambda obj: obj["spec"].pop("limits"))
    approved.until("Empty")


# --- Others ---


def test_an_unreadable_one_keeps_its_cordon(approved: Decommissioning) -> None:
    approved.until("Empty")
    approved.change("old", lambda obj: obj["spec"].update(cordon="Sometimes"))
    approved.until("CannotBeRead")
    approved.tick(10)
    assert (approved.cordons(), approved.recorded_cordons()) == ({1}, {1})
    approved.restart()
    approved.tick(30)
    assert (approved.cordons(), approved.recorded_cordons()) == ({1}, {1})


def test_one_that_is_new_says_why_brokers_cannot_be_read(
    approved: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> object:
        raise ClusterError(Reason.NOT_AUTHORIZED, "grant DESCRIBE on Cluster")

    approved.until("Empty")
    monkeypatch.setattr(approved.brokers, "observe_brokers", refused)
    approved.tick(until=lambda: approved.loop.automation.watch.failed is not None)
    approved.apply("new", [3])
    approved.until("NotAuthorized", "new", seconds=20)


def claims(world: Decommissioning, state: ClaimState) -> None:
    """So much is known of the claims of other installations."""

    def keep(membership: Membership) -> None:
        membership.state = state

    world.brokers.keep = keep  # type: ignore[attr-defined]
    world.loop.observer.installation = "ours"


UNDECIDED, FREE = ClaimState(float("inf")), ClaimState(0.0, True)


def test_no_broker_is_cordoned_before_the_claim_is_known(approved: Decommissioning) -> None:
    approved.tick(until=lambda: "approval" in approved.record())
    approved.restart()
    claims(approved, UNDECIDED)
    approved.tick(20)
    assert not approved.cordons()
    claims(approved, FREE)
    approved.until("Empty")
    assert approved.cordons() == {1}


def test_no_broker_is_unregistered_before_the_claim_is_known(world: Decommissioning) -> None:
    world.edit(approval="NotRequired")
    world.until("Empty")
    world.down(1)
    world.tick(30)
    world.edit(unregister="WhenDown")
    world.restart()
    claims(world, UNDECIDED)
    world.tick(20)
    assert (world.brokers.unregistered, world.reason()) == ([], "Empty")
    claims(world, FREE)
    world.until("Unregistered")


def as_another(name: str = "old-1", **spec: Any) -> Object:
    """A plan of a user."""
    goal = {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [2]}}
    return api_object("ReassignmentPlan", name, goal | spec) | {"metadata": user_metadata(name)}


def user_metadata(name: str) -> Object:
    metadata: Object = api_object("ReassignmentPlan", name, {})["metadata"]
    return metadata | {"uid": f"uid-of-a-user-{name}"}


def test_a_plan_of_that_name_made_before_is_not_adopted(world: Decommissioning) -> None:
    world.put(as_another())
    world.until("AwaitingApproval")
    assert world.plans() == ["old-1", "old-2"]
    assert world.record()["plan"]["name"] == "old-2"


def test_a_plan_of_that_name_made_in_between_is_not_adopted(world: Decommissioning) -> None:
    create = world.kube.create

    async def late(obj: Object) -> Object:
        if obj["metadata"]["name"] == "old-1":
            world.kube.objects["uid-of-a-user-old-1"] = as_another()
        return await create(obj)

    world.kube.create = late  # type: ignore[method-assign]
    world.until("AwaitingApproval")
    assert world.plans() == ["old-1", "old-2"]
    assert world.record()["plan"]["uid"] == "uid-old-2"
    world.approve()
    world.until("Empty")


def test_a_name_taken_by_a_plan_that_cannot_be_read_is_passed_by(world: Decommissioning) -> None:
    world.put(as_another(goal={"drainBrokers": "all"}))
    world.until("AwaitingApproval")
    assert world.plans() == ["old-1", "old-2"]


def test_a_plan_that_cannot_be_read_any_more_is_waited_for(approved: Decommissioning) -> None:
    in_flight(approved)
    goal = approved.plan()["spec"]["goal"]
    approved.change("old-1", lambda obj: obj["spec"].update(goal={"drainBrokers": "all"}))
    approved.copies = True
    approved.until("CannotBeRead")
    approved.tick(20)
    assert (approved.plans(), len(approved.kube.started)) == (["old-1"], 1)
    approved.change("old-1", lambda obj: obj["spec"].update(goal=goal))
    approved.until("Empty", seconds=20)


def test_two_go_one_after_the_other(approved: Decommissioning) -> None:
    approved.apply("second", [2], approval="NotRequired")
    approved.until("Empty")
    approved.until("Empty", "second", seconds=10)
    assert (approved.on(1), approved.on(2), approved.cordons()) == ([], [], {1, 2})
    names = [name.rpartition("-")[0].rpartition("-")[0] for name in approved.kube.started]
    assert names == sorted(names)
    approved.delete()
    approved.tick(10)
    assert approved.cordons() == {2}


# --- Changed by hand ---


def edited(world: Decommissioning) -> None:
    world.change("old-1", lambda obj: obj["spec"].update(goal={"drainBrokers": [1, 2]}))


def suspended(world: Decommissioning) -> None:
    world.change("old-1", lambda obj: obj["spec"].update(suspend=True))


def deleted(world: Decommissioning) -> None:
    world.delete("old-1", "ReassignmentPlan")


def wave_deleted(world: Decommissioning) -> None:
    world.delete(world.waves()[-1]["metadata"]["name"], "PartitionReassignment")


def wave_edited(world: Decommissioning) -> None:
    name = world.waves()[-1]["metadata"]["name"]
    partitions = [{"topic": "c", "partition": 0, "replicas": [5, 3]}]
    world.change(name, lambda obj: obj["spec"].update(partitions=partitions))


def wave_started(world: Decommissioning) -> None:
    world.change(world.waves()[-1]["metadata"]["name"], lambda obj: obj["spec"].update(suspend=False))


def disowned(world: Decommissioning) -> None:
    world.change("old-1", lambda obj: obj["metadata"].update(ownerReferences=[]))


BY_HAND: dict[str, Change] = {
    "edited": edited,
    "suspended": suspended,
    "deleted": deleted,
    "a wave deleted": wave_deleted,
    "a wave edited": wave_edited,
    "a wave started": wave_started,
    "disowned": disowned,
}
by_hand = pytest.mark.parametrize("by_hand", BY_HAND.values(), ids=BY_HAND)


@by_hand
def test_a_plan_changed_by_hand_before_its_approval_starts_nothing(world: Decommissioning, by_hand: Change) -> None:
    world.until("AwaitingApproval")
    by_hand(world)
    world.tick(20)
    assert (world.kube.started, world.cordons()) == ([], set())
    world.clock.seconds += 3600
    world.tick(20)
    assert world.reason() == "AwaitingApproval"
    world.approve()
    world.until("Empty", seconds=20)


@by_hand
def test_a_plan_changed_by_hand_midway_ends_all_the_same(approved: Decommissioning, by_hand: Change) -> None:
    in_flight(approved)
    by_hand(approved)
    approved.tick(5)
    approved.copies = True
    approved.until("Empty", seconds=20)
    assert approved.on(1) == []
    assert set(approved.brokers.begun) <= {A, B}


# --- Between the decision and the step ---


WISHES: dict[str, Object] = {"suspended": {"suspend": True}, "withdrawn": {"approval": "Required"}}
changed = pytest.mark.parametrize("wish", [*WISHES.values(), None], ids=[*WISHES, "deleted"])
seen = pytest.mark.parametrize("seen", [False, True], ids=["unseen", "seen"])


def change_unseen(world: Decommissioning, wish: Object | None, *, seen: bool) -> None:
    """Others change the decommission; the watch brings it at once, or not yet."""

    def edit(obj: Object) -> None:
        if wish is None:
            obj["metadata"].update(deletionTimestamp=f"{world.clock.now():%Y-%m-%dT%H:%M:%SZ}")
        else:
            obj["spec"].update(wish)
        obj["metadata"]["generation"] += 1

    world.kube.write("uid-old", edit)
    if seen:
        world.watch()


@changed
@seen
def test_no_wave_starts_for_an_owner_that_has_changed(
    approved: Decommissioning, wish: Object | None, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = approved.loop.writer.records.write_decommission

    async def writes(it: Any, record: Any) -> None:
        await write(it, record)
        if record.plan and record.plan.begun_waves == 1:
            change_unseen(approved, wish, seen=seen)

    monkeypatch.setattr(approved.loop.writer.records, "write_decommission", writes)
    approved.tick(until=lambda: approved.record().get("plan", {}).get("begunWaves") == 1)
    approved.tick(5)
    assert not approved.kube.started


def test_a_plan_without_its_reference_starts_nothing_once_suspended(
    approved: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = approved.loop.writer.records.write_decommission

    async def writes(it: Any, record: Any) -> None:
        await write(it, record)
        if record.plan and record.plan.begun_waves == 1:
            change_unseen(approved, {"suspend": True}, seen=False)

    approved.tick(until=lambda: approved.cordons() == {1})
    disowned(approved)
    monkeypatch.setattr(approved.loop.writer.records, "write_decommission", writes)
    approved.tick(10)
    assert not approved.kube.started


@changed
@seen
def test_no_broker_is_cordoned_for_an_owner_that_has_changed(
    approved: Decommissioning, wish: Object | None, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = approved.loop.automation
    look = stage.automation.decide

    def decides(*given: Any) -> Any:
        decision = look(*given)
        if decision.cordons:
            change_unseen(approved, wish, seen=seen)
            monkeypatch.setattr(stage.automation, "decide", look)
        return decision

    monkeypatch.setattr(stage.automation, "decide", decides)
    approved.tick(30)
    if wish != {"suspend": True}:
        assert not approved.cordons()
        assert not [write for write in approved.kube.writes if "cordoned" in write]


@changed
@seen
def test_no_broker_is_unregistered_for_an_owner_that_has_changed(
    approved: Decommissioning, wish: Object | None, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved.until("Empty")
    approved.down(1)
    write = approved.loop.writer.records.write_decommission

    async def writes(it: Any, record: Any) -> None:
        await write(it, record)
        if record.brokers[0].unregister_sent_at:
            change_unseen(approved, wish, seen=seen)

    monkeypatch.setattr(approved.loop.writer.records, "write_decommission", writes)
    approved.tick(30)
    assert not approved.brokers.unregistered


@changed
def test_a_watch_ahead_of_the_decision_unregisters_nothing(
    approved: Decommissioning, wish: Object | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved.until("Empty")
    approved.down(1)
    perform = approved.loop.automation.automation.perform

    async def performs(key: Any, decision: Any, inputs: Any) -> Any:
        if any(type(step).__name__ == "UnregisterBroker" for step in decision.decommissions["uid-old"].steps):
            change_unseen(approved, wish, seen=True)
        return await perform(key, decision, inputs)

    monkeypatch.setattr(approved.loop.automation.automation, "perform", performs)
    approved.tick(30)
    assert not approved.brokers.unregistered


@changed
def test_a_watch_ahead_of_the_decision_starts_no_wave(
    approved: Decommissioning, wish: Object | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = approved.loop.automation.automation.perform

    async def performs(key: Any, decision: Any, inputs: Any) -> Any:
        if any(type(step).__name__ == "RunPlan" for step in decision.decommissions["uid-old"].steps):
            change_unseen(approved, wish, seen=True)
            monkeypatch.setattr(approved.loop.automation.automation, "perform", perform)
        return await perform(key, decision, inputs)

    monkeypatch.setattr(approved.loop.automation.automation, "perform", performs)
    approved.tick(30)
    assert not approved.kube.started


def test_an_api_server_that_does_not_answer_is_not_asked_at_once(
    approved: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> Object:
        raise ApiServerError("503: unavailable")

    approved.tick(until=lambda: "approval" in approved.record())
    monkeypatch.setattr(approved.kube, "metadata", refuse)
    pauses = approved.pauses(5)
    assert not approved.cordons()
    assert min(pauses) >= 0.1


def test_a_record_that_is_refused_suspends_no_wave_under_way(
    approved: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = approved.kube.write_record

    async def refuse(obj: Object, spec: Object, *, held: bool) -> Object:
        if spec.get("decommission"):
            raise ApiServerError("503: unavailable")
        return await write(obj, spec, held=held)

    in_flight(approved)
    approved.down(1)
    monkeypatch.setattr(approved.kube, "write_record", refuse)
    approved.tick(5)
    assert (approved.kube.suspended, len(approved.kube.started)) == ([], 1)
    approved.edit(suspend=True)
    approved.tick(2)
    assert len(approved.kube.suspended) == 1


# --- Statuses that others have forged ---


def test_forged_statuses_start_nothing(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    digest = world.status()["digest"]

    def forged(status: Object) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "Empty", "message": "", "observedGeneration": 1}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status["conditions"] = [ready, ready | {"type": "Empty"}, ready | {"type": "Succeeded"}]
        status["plans"] = [
            {"name": "old-1", "digest": digest, "bytes": 0, "lowerBoundBytes": 0, "replicas": 0, "outcome": "Succeeded"}
        ]
        status["digest"] = f"sha256:{'0' * 64}"
        status["brokers"] = [{"id": 1, "state": "Unregistered", "replicas": 0, "cordoned": True}]

    for _ in range(3):
        world.change_status("old", forged)
        world.tick()
    world.tick(10)
    assert (world.reason(), world.status()["digest"]) == ("AwaitingApproval", digest)
    assert (world.kube.started, world.cordons(), world.brokers.unregistered) == ([], set(), [])
    world.approve()
    world.change_status("old", forged)
    world.until("Empty")
    assert world.on(1) == []


def test_a_wiped_status_loses_nothing(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.change_status("old", Object.clear)
    approved.copies = True
    approved.until("Empty")
    approved.change_status("old", Object.clear)
    approved.until("Empty")
    assert approved.plans() == ["old-1"]


# --- A process that ends ---


def test_a_restart_suspends_no_wave_under_way(approved: Decommissioning) -> None:
    in_flight(approved)
    approved.restart()
    approved.tick(30)
    assert approved.kube.suspended == []


def test_a_plan_whose_process_ends_before_its_waves_is_made_for_its_owner(world: Decommissioning) -> None:
    world.tick(until=lambda: world.record().get("plan", {}).get("number") == 1)
    world.kube.at = 1
    with pytest.raises(KilledError):
        world.tick(10)
    assert (world.plans(), world.waves()) == (["old-1"], [])
    world.work.jobs.clear()
    world.restart()
    world.until("AwaitingApproval")
    assert [(job.plan.name, job.owned) for job in world.work.jobs] == [("old-1", True)]


def test_what_was_approved_once_is_not_copied_again_and_again(world: Decommissioning) -> None:
    world.until("AwaitingApproval")
    world.approve()
    world.until("Empty")
    first = world.status()["plans"][0]["digest"]
    world.kafka.replicas[A], world.kafka.replicas[B] = (1, 2), (3, 1)
    world.until("AwaitingApproval", seconds=20)
    assert (world.status()["digest"] != first, len(world.kube.started)) == (True, 2)
    world.approve()
    world.until("Empty", seconds=20)
    assert len(world.kube.started) == 4
