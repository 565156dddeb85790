"""A goal becomes waves that are read, approved and run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.world import HELD_BYTES, MB, Object, World, entries, eventually

PLAN = "reassignmentplan"
PLAN_LABEL = "kafka.reassign.dev/plan"


class Plans:
    """Plans of one test, for its own topics only; gone afterwards, with their waves."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names: list[str] = []

    def apply(self, name: str, goal: Object, **spec: Any) -> str:
        name = f"{self.world.prefix}-{name}"
        self.names.append(name)
        topics = {"include": [f"{self.world.prefix}-*"]}
        manifest = self.world.manifest(name, {}) | {"kind": "ReassignmentPlan"}
        manifest["spec"] = {"clusterRef": {"name": self.world.cluster}, "topics": topics, "goal": goal} | spec
        self.world.apply(manifest)
        return name

    def status(self, name: str) -> Object:
        return dict((self.world.read(name, PLAN) or {}).get("status", {}))

    def wait(self, name: str, type: str, status: str = "True", reason: str = "") -> Object:
        return self.world.wait_for(name, type, status, reason, kind=PLAN)

    def approve(self, name: str) -> None:
        self.world.patch(name, {"approvedDigest": self.status(name)["digest"]}, kind=PLAN)

    def waves(self, name: str) -> dict[str, Object]:
        listed = json.loads(self.world.kubectl("get", "kpr", f"--selector={PLAN_LABEL}={name}", "-o", "json"))
        return {obj["metadata"]["name"]: obj for obj in listed["items"]}

    def wave_names(self, name: str) -> list[str]:
        """In the order in which they run."""
        return [wave["name"] for wave in self.status(name)["waves"]]

    def states(self, name: str) -> list[str]:
        return [wave["state"] for wave in self.status(name)["waves"]]

    def clean_up(self) -> None:
        if self.names:
            self.world.kubectl("delete", PLAN, *self.names, "--ignore-not-found", "--wait=false")
        for name in self.names:
            self.world.wait_gone(name, kind=PLAN)
            self.world.kubectl("delete", "kpr", f"--selector={PLAN_LABEL}={name}")


@pytest.fixture
def plans(world: World) -> Iterator[Plans]:
    made = Plans(world)
    yield made
    made.clean_up()


def on_broker(world: World, broker: int, *topics: str) -> int:
    """How many replicas of these topics are on a broker."""
    return sum(broker in replicas for topic in topics for replicas in world.kafka.replicas(topic).values())


def test_a_plan_is_made_by_the_code_that_the_image_keeps(world: World, plans: Plans) -> None:
    world.topic("orders", [0, 1], size=MB)
    name = plans.apply("drain", {"drainBrokers": [0], "balance": {}})
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    [pid] = world.operator.pids()
    used = list(Path(f"/proc/{pid}/root/tmp/.cache").rglob("*.nb[ci]"))
    assert used
    assert [path.name for path in used if not path.is_symlink()] == [], "compiled in the pod"


def test_a_broker_is_drained_in_waves_only_after_approval(world: World, plans: Plans) -> None:
    orders = world.topic("orders", *[[3, number % 3] for number in range(6)], size=MB)
    name = plans.apply("drain", {"drainBrokers": [3]}, waves={"maxPartitions": 2})
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    waves = plans.waves(name)
    assert len(waves) == len(plans.status(name)["waves"]) == 3
    assert all(wave["spec"]["suspend"] for wave in waves.values())
    assert on_broker(world, 3, orders) == 6
    plans.approve(name)
    plans.wait(name, "Succeeded")
    assert on_broker(world, 3, orders) == 0
    ends = [plans.waves(name)[wave["name"]]["status"]["completionTime"] for wave in plans.status(name)["waves"]]
    assert ends == sorted(ends)
    world.wait_idle(orders)


def test_a_goal_that_is_met_has_succeeded_at_once(world: World, plans: Plans) -> None:
    world.topic("orders", [0, 1])
    name = plans.apply("met", {"drainBrokers": [3]})
    plans.wait(name, "Succeeded")
    assert plans.waves(name) == {}


def test_deleting_a_plan_cancels_in_flight_moves_and_keeps_completed_ones(world: World, plans: Plans) -> None:
    quick, slow = world.topic("quick", [3, 0], size=MB), world.topic("slow", [3, 1], size=HELD_BYTES)
    world.hold(slow)
    name = plans.apply("drain", {"drainBrokers": [3]}, waves={"maxPartitions": 1}, approval="NotRequired")
    world.wait_in_flight((slow, 0))
    states = {wave["name"]: wave["state"] for wave in plans.status(name)["waves"]}
    world.delete(name, PLAN)
    world.wait_gone(name, kind=PLAN)
    world.wait_idle(slow)
    world.brokers_say({(slow, 0): [3, 1]})
    assert set(plans.waves(name)) == {wave for wave, state in states.items() if state == "Succeeded"}
    assert on_broker(world, 3, quick) in (0, 1)


def test_a_plan_that_no_longer_fits_lets_nothing_go(world: World, plans: Plans) -> None:
    orders = world.topic("orders", [3, 0], size=MB)
    name = plans.apply("drain", {"drainBrokers": [3]})
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    elsewhere = next(b for b in (1, 2) if b not in _target(plans, name))
    world.wait_for(world.move("other", {(orders, 0): [elsewhere, 0]}), "Succeeded")
    plans.wait(name, "PlanStale")
    plans.approve(name)
    eventually("the approval is seen", lambda: plans.status(name).get("staleDigest"))
    world.brokers_say({(orders, 0): [elsewhere, 0]})


def _target(plans: Plans, name: str) -> list[int]:
    (wave,) = plans.waves(name).values()
    return list(wave["spec"]["partitions"][0]["replicas"])


def test_a_withdrawn_approval_edit_or_foreign_move_holds_back_a_wave(world: World, plans: Plans) -> None:
    orders = world.topic("orders", [3, 0], [3, 1], size=HELD_BYTES // 2)
    world.hold(orders)
    name = plans.apply("drain", {"drainBrokers": [3]}, waves={"maxPartitions": 1})
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    plans.approve(name)
    eventually("the first wave is in flight", lambda: world.kafka.in_flight([orders]))
    moving = world.kafka.in_flight([orders])
    first, second = plans.wave_names(name)
    [entry] = plans.waves(name)[second]["spec"]["partitions"]
    partition = (orders, entry["partition"])
    assert partition not in moving

    world.patch(name, {"approvedDigest": None}, kind=PLAN)
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    assert world.kafka.in_flight([orders]) == moving
    world.let_go(orders)
    world.wait_for(first, "Succeeded")

    elsewhere = {partition: [1 if entry["replicas"] == [2, 0] else 2, 0]}
    world.patch(second, {"partitions": entries(elsewhere)})
    plans.approve(name)
    assert second in plans.wait(name, "Stalled", reason="WaveEdited")["message"]
    world.brokers_say({partition: entry["expectedReplicas"]})

    other = world.move("other", elsewhere)
    world.wait_for(other, "Succeeded")
    world.patch(second, {"partitions": [entry]})
    plans.wait(name, "PlanStale")
    world.brokers_say(elsewhere)

    world.move("other", {partition: entry["expectedReplicas"]})
    world.wait_for(other, "Succeeded")
    world.patch(name, {"approvedDigest": None}, kind=PLAN)
    plans.wait(name, "Ready", "False", "AwaitingApproval")
    assert plans.waves(name)[second]["spec"]["suspend"]
    plans.approve(name)
    plans.wait(name, "Succeeded")
    assert on_broker(world, 3, orders) == 0


def test_an_operator_killed_in_or_between_waves_resumes(world: World, plans: Plans) -> None:
    orders = world.topic("orders", [3, 0], [3, 1], [3, 2], size=HELD_BYTES // 2)
    world.hold(orders)
    name = plans.apply("drain", {"drainBrokers": [3]}, waves={"maxPartitions": 1}, approval="NotRequired")
    eventually("the first wave is in flight", lambda: world.kafka.in_flight([orders]))
    moving = world.kafka.in_flight([orders])
    first, *_ = waves = plans.wave_names(name)
    world.wait_for(first, "Reconciling", reason="PartitionsInFlight")
    world.operator.kill()
    world.patch(name, {"suspend": True}, kind=PLAN)
    plans.wait(name, "Ready", "False", "Suspended")
    assert world.kafka.in_flight([orders]) == moving
    world.let_go(orders)
    world.wait_for(first, "Succeeded")
    eventually("the plan has it", lambda: plans.states(name) == ["Succeeded", "Pending", "Pending"])
    done, record = plans.waves(name)[first]["status"], world.record(first)

    world.operator.kill()
    world.patch(name, {"suspend": False}, kind=PLAN)
    plans.wait(name, "Succeeded")
    assert on_broker(world, 3, orders) == 0
    found = plans.waves(name)
    assert list(found) == sorted(waves)
    assert found[first]["status"]["completionTime"] == done["completionTime"]
    assert world.record(first) == record
    told = [[reason for _, reason in world.events(wave)] for wave in waves]
    assert all(reasons.count("ReassignmentStarted") <= 1 == reasons.count("ReassignmentCompleted") for reasons in told)
    assert not any("MovesCancelled" in reasons for reasons in told)
