"""ttlSecondsAfterFinished: what has come to its end is deleted after its time to live, and nothing else is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reassign.api.common import TRACKED_BY_ARGO_CD, YEAR_SECONDS
from reassign.api.reassignment_plan import PLAN_UID_LABEL
from reassign.controller import expiry
from reassign.controller.expiry import Expiry
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.expiry import expired, needs, plan_expired
from reassign.errors import ApiServerError, ConflictError
from tests.unit.plan_sim import approved
from tests.unit.sim import START
from tests.unit.world import OURS, Object, World, forget

TTL = 3600


class Sweeper:
    """A world whose resource `move` has a time to live, and what deletes it."""

    def __init__(self, ttl: int = TTL) -> None:
        self.world = World()
        self.world.change("move", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=ttl))
        kube: Any = self.world.kube
        self.expiry = Expiry(self.world.store, kube, self.world.loop.writer)

    def finish(self) -> None:
        self.world.kafka.copy(OURS)

        def ended() -> bool:
            forget(self.world.loop, busy={})
            return "completionTime" in self.status and not self.object["metadata"].get("finalizers")

        self.world.tick(until=ended)

    @property
    def object(self) -> Object:
        return self.world.store.get("uid-move") or {}

    @property
    def status(self) -> Object:
        status: Object = self.object["status"]
        return status

    def sweep(self, seconds: float) -> None:
        """A sweep so long after the end."""
        ended = datetime.fromisoformat(self.status["completionTime"])
        self.world.kube.clock = lambda: ended + timedelta(seconds=seconds)
        asyncio.run(self.expiry.sweep())

    @property
    def gone(self) -> bool:
        assert ("uid-move" in self.world.kube.objects) == (self.object != {})
        return not self.object


@pytest.mark.parametrize(("ttl", "after", "gone"), [(TTL, TTL - 1, False), (TTL, TTL, True), (0, 0, True)])
def test_a_settled_resource_is_deleted_after_its_time_to_live(ttl: int, after: float, gone: bool) -> None:
    sweeper = Sweeper(ttl)
    sweeper.finish()
    sweeper.sweep(after)
    assert sweeper.gone is gone


def test_what_is_in_flight_is_never_deleted() -> None:
    sweeper = Sweeper(0)
    sweeper.world.kube.clock = lambda: START + timedelta(days=10_000)
    asyncio.run(sweeper.expiry.sweep())
    assert not sweeper.gone


def test_a_resource_without_a_time_to_live_stays() -> None:
    sweeper = Sweeper()
    sweeper.world.change("move", lambda obj: obj["spec"].pop("ttlSecondsAfterFinished"))
    sweeper.finish()
    sweeper.sweep(10 * TTL)
    assert not sweeper.gone


def test_a_completion_time_that_is_forged_keeps_no_other_resource() -> None:
    sweeper = Sweeper()
    sweeper.finish()
    sweeper.world.add("forged", OURS, (4, 2, 3))
    sweeper.world.change("forged", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=YEAR_SECONDS))
    ended = {"observedGeneration": 2, "completionTime": "9999-12-31T00:00:00Z"}
    sweeper.world.change_status("forged", lambda status: status.update(ended))
    sweeper.sweep(TTL)
    assert sweeper.gone
    assert "uid-forged" in sweeper.world.kube.objects


def test_one_that_cannot_be_judged_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper = Sweeper()
    sweeper.finish()
    sweeper.world.add("odd", OURS, (4, 2, 3))
    sweeper.world.change("odd", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=TTL))

    def expires(resource: Resource | Settled, now: datetime) -> bool:
        if resource.name == "odd":
            raise ZeroDivisionError
        return expired(resource, now)

    monkeypatch.setattr(expiry, "expired", expires)
    sweeper.sweep(TTL)
    assert sweeper.gone


def test_an_edit_that_no_watch_has_brought_yet_keeps_a_resource() -> None:
    sweeper = Sweeper()
    sweeper.finish()
    kube = sweeper.world.kube

    async def delete(obj: Object) -> Object | None:
        raise ConflictError("another version")

    kube.write("uid-move", lambda new: new["spec"].pop("ttlSecondsAfterFinished"))
    kube.delete = delete  # type: ignore[method-assign]
    sweeper.sweep(TTL)
    assert not sweeper.gone
    assert "ttlSecondsAfterFinished" not in sweeper.object["spec"]


def test_a_resource_that_argo_cd_tracks_stays_with_one_warning() -> None:
    sweeper = Sweeper()
    tracked = {TRACKED_BY_ARGO_CD: "app:kafka.reassign.dev/PartitionReassignment:kafka/move"}
    sweeper.world.change("move", lambda obj: obj["metadata"].update(annotations=tracked))
    sweeper.finish()
    for _ in range(3):
        sweeper.sweep(TTL)
    assert not sweeper.gone
    assert sweeper.world.kube.events.count("NotDeleted") == 1


def test_no_more_than_so_many_are_deleted_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "AT_ONCE", 0)
    sweeper = Sweeper()
    sweeper.finish()
    sweeper.sweep(TTL)
    assert not sweeper.gone


def test_a_wave_stays_until_its_plan_is_there_no_more() -> None:
    sweeper = Sweeper()
    sweeper.world.put(
        {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "ReassignmentPlan",
            "metadata": {"name": "drain", "namespace": "kafka", "uid": "uid-drain", "resourceVersion": "1"}
            | {"generation": 1},
            "spec": {"clusterRef": {"name": "main"}},  # it cannot be read: what it needs is not known
            "status": {},
        }
    )
    sweeper.world.change("move", lambda obj: obj["metadata"].update(labels={PLAN_UID_LABEL: "uid-drain"}))
    sweeper.finish()
    sweeper.sweep(TTL)
    assert not sweeper.gone
    sweeper.world.store.drop("uid-drain")
    sweeper.sweep(TTL)
    assert sweeper.gone


def test_a_plan_needs_a_wave_until_it_has_seen_it_succeed() -> None:
    plan = approved(2)
    plan.tick(3)
    plan.begin()
    plan.tick()
    first, second = plan.name(1), plan.name(2)
    plan.finish()
    assert needs(plan.plan, first)
    plan.tick()
    assert not needs(plan.plan, first)
    assert needs(plan.plan, second)


def test_a_plan_needs_a_wave_that_failed() -> None:
    plan = approved(2)
    plan.tick(3)
    plan.begin()
    plan.finish("Failed")
    plan.tick()
    assert needs(plan.plan, plan.name(1))


def test_a_plan_goes_on_without_the_waves_that_it_no_longer_needs() -> None:
    plan = approved(2, ttlSecondsAfterFinished=TTL)
    for _ in range(30):
        plan.tick()
        plan.begin()
        plan.finish()
        for name in [name for name, wave in plan.waves.items() if wave.outcome and not needs(plan.plan, name)]:
            plan.delete_wave(name)
    assert "Succeeded" in plan.true
    assert plan.waves == {}
    done = replace(plan.plan, status=plan.status.model_copy(update={"observed_generation": plan.generation}))
    ended = next(c.last_transition_time for c in done.status.conditions if c.type == "Succeeded")
    assert not plan_expired(done, ended + timedelta(seconds=TTL - 1))
    assert plan_expired(done, ended + timedelta(seconds=TTL))
    assert not plan_expired(replace(done, has_finalizer=True), ended + timedelta(seconds=TTL))


def test_a_plan_that_is_under_way_or_failed_is_not_expired() -> None:
    plan = approved(2, ttlSecondsAfterFinished=0)
    plan.tick(3)
    plan.begin()
    plan.tick()
    assert not plan_expired(plan.plan, START + timedelta(days=10_000))
    plan.finish("Failed")
    plan.tick(2)
    assert not plan_expired(plan.plan, START + timedelta(days=10_000))


def test_a_reopened_resource_is_not_expired() -> None:
    sweeper = Sweeper(0)
    sweeper.finish()
    resource = sweeper.world.store.resource("uid-move")
    assert resource is not None
    later = START + timedelta(days=10_000)
    assert expired(resource, later)
    assert not expired(replace(resource, generation=resource.generation + 1), later)
    assert not expired(replace(resource, has_finalizer=True), later)


def test_one_that_cannot_be_asked_for_keeps_no_other(logged: list[Any]) -> None:
    sweeper = Sweeper()
    sweeper.finish()
    kube, asked = sweeper.world.kube, list[str]()

    async def delete(obj: Object) -> Object | None:
        raise ConflictError("another version")

    async def get(*name: str) -> Object | None:
        asked.append(name[-1])
        raise ApiServerError("it did not answer")

    kube.delete, kube.get = delete, get  # type: ignore[method-assign, assignment]
    logged.clear()
    sweeper.sweep(TTL)
    assert asked == ["move"]
    assert [line["event"] for line in logged] == ["not deleted"]
    assert not sweeper.gone
