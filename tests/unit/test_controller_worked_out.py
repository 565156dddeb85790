"""Plans that are worked out before they have an object: what they leave out, their names, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reassign.api.reassignment_plan import PLAN_UID_LABEL, ReassignmentPlanSpec
from reassign.controller.plans.job import Job, owned_plan_of, plan_of, renamed, uncordoned, worked_out
from reassign.controller.plans.planner import Planner
from reassign.core.automation.model import WorkedOut, plan_spec_digest
from reassign.core.model.snapshot import Broker, LogDir, Snapshot, TopicPartition
from reassign.core.plans.model import GoalSeen, Planned, manifest_digest
from reassign.core.survey import sourceless, survey
from reassign.errors import PlanningError
from tests.unit.planning_job import job
from tests.unit.sim import SimKafka

DRAIN: Mapping[str, Any] = {"goal": {"drainBrokers": [1], "scope": "Drained"}, "waves": {}, "template": {}}


def orders(*rows: tuple[int, ...]) -> SimKafka:
    replicas = {TopicPartition("orders", number): row for number, row in enumerate(rows)}
    kafka = SimKafka(replicas)
    kafka.sizes = {tp: dict.fromkeys(row, 100) for tp, row in replicas.items()}
    return kafka


def asked(uid: str = "uid-old", **spec: Any) -> Job:
    """The job of a decommission, which has this uid."""
    found = job(**{**DRAIN, **spec})
    plan = replace(found.plan, uid=uid, namespace="kafka", name="old", generation=1)
    return found._replace(plan=plan, owner=uid)


def shown(kafka: SimKafka) -> Snapshot:
    return replace(kafka.snapshot(), lists_fenced=True)


def work(kafka: SimKafka, **spec: Any) -> WorkedOut:
    return worked_out(asked(**spec), shown(kafka), survey(shown(kafka)))


def moved(found: WorkedOut) -> dict[str, list[int]]:
    entries = (entry for manifest in found.planned.manifests for entry in manifest["spec"]["partitions"])
    return {f"{entry['topic']}-{entry['partition']}": entry["replicas"] for entry in entries}


def without_source(kafka: SimKafka, number: int) -> None:
    """Only a broker that is down has this partition in sync."""
    kafka.brokers[1] = Broker(1, "r1", fenced=True)
    tp = TopicPartition("orders", number)
    kafka.isr[tp], kafka.leader[tp] = frozenset({1}), None


def test_all_replicas_leave_the_broker_and_nothing_else_moves() -> None:
    found = work(orders((1, 2), (3, 1), (2, 3)))
    assert moved(found).keys() == {"orders-0", "orders-1"}
    assert all(1 not in row for row in moved(found).values())
    assert (moved(found)["orders-0"][1], moved(found)["orders-1"][0]) == (2, 3)
    assert (found.incomplete, found.left_out) == ((), ())
    assert found.spec_digest == plan_spec_digest(asked().plan.spec)


def test_what_has_no_source_is_left_out_and_named() -> None:
    kafka = orders((1, 2), (1, 3), (2, 3))
    without_source(kafka, 0)
    found = work(kafka)
    assert moved(found).keys() == {"orders-1"}
    assert (found.left_out, found.incomplete) == (("orders-0",), ())


def test_what_has_no_live_replica_is_not_said_to_be_in_flight() -> None:
    kafka = orders((1,), (1, 3), (2, 3))
    without_source(kafka, 0)
    found = work(kafka)
    said = [one.what for one in found.planned.unmet]
    assert (moved(found).keys(), found.left_out) == ({"orders-1"}, ("orders-0",))
    assert said == ["orders-0 has no replica on a live broker or directory"]


def test_what_has_no_source_on_other_brokers_is_not_named() -> None:
    kafka = orders((1, 2), (3,))
    kafka.brokers[3] = Broker(3, "r3", fenced=True)
    kafka.leader[TopicPartition("orders", 1)] = None
    assert sourceless(shown(kafka), survey(shown(kafka))) == [1]
    found = work(kafka)
    assert (moved(found).keys(), found.left_out, found.incomplete) == ({"orders-0"}, (), ())


def test_partitions_in_flight_are_left_alone_and_hold_nothing_up() -> None:
    kafka = orders((1, 2), (1, 3))
    kafka.move_as_another(TopicPartition("orders", 1), (1, 4))
    assert sourceless(shown(kafka), survey(shown(kafka))) == []
    found = work(kafka)
    assert (moved(found).keys(), found.incomplete, found.left_out) == ({"orders-0"}, (), ())


def test_excluded_topics_stay_and_are_not_named() -> None:
    kafka = orders((1, 2))
    kafka.add(TopicPartition("canary", 0), (1,))
    assert kafka.sizes is not None
    kafka.sizes[TopicPartition("canary", 0)] = {1: 5}
    found = work(kafka, topics={"exclude": ["canary*"]})
    assert (moved(found).keys(), found.incomplete, found.left_out) == ({"orders-0"}, (), ())
    kafka.brokers[1] = Broker(1, "r1", fenced=True)
    kafka.leader[TopicPartition("canary", 0)] = None
    kafka.isr[TopicPartition("orders", 0)] = frozenset({2})
    assert work(kafka, topics={"exclude": ["canary*"]}).left_out == ()


def test_internal_topics_leave_too() -> None:
    kafka = orders()
    offsets = TopicPartition("__consumer_offsets", 0)
    kafka.add(offsets, (1, 2))
    kafka.sizes = {offsets: {1: 5, 2: 5}}
    assert moved(work(kafka)).keys() == {"__consumer_offsets-0"}


def test_replicas_that_would_stay_are_named() -> None:
    kafka = orders((1, 2), (1, 3))
    kafka.log_dirs = {number: {"/data": LogDir(total=100, usable=0)} for number in (0, 2, 3, 4, 5)}
    found = work(kafka)
    assert "2 partitions" in " ".join(found.incomplete)


def test_a_broker_that_is_down_may_hide_nothing_from_the_plan() -> None:
    kafka = orders((1, 2), (2, 3))
    kafka.brokers[1] = Broker(1, "r1", fenced=True)
    kafka.isr[TopicPartition("orders", 0)], kafka.leader[TopicPartition("orders", 0)] = frozenset({2}), 2
    found = work(kafka)
    assert (moved(found).keys(), found.incomplete) == ({"orders-0"}, ())


def test_a_silent_broker_that_is_up_makes_a_plan_incomplete() -> None:
    kafka = orders((1, 2))
    kafka.silent = {1}
    assert work(kafka).incomplete


def test_brokers_to_avoid_get_nothing() -> None:
    kafka = orders((1, 2), (1, 3), (1, 4))
    found = work(kafka, goal={"drainBrokers": [1], "scope": "Drained", "avoidBrokers": [0, 5]})
    assert not {0, 5} & {broker for row in moved(found).values() for broker in row}
    assert found.incomplete == ()


@pytest.mark.parametrize("name", ["old", "o" * 50])
def test_a_renamed_plan_is_the_same_in_the_name_of_its_object(name: str) -> None:
    kafka = orders((1, 2), (1, 3))
    before = asked(waves={"maxPartitions": 1})
    before = before._replace(plan=replace(before.plan, name=name))
    found = worked_out(before, shown(kafka), survey(shown(kafka)))
    plan = replace(before.plan, uid="uid-1", name=f"{name}-1")
    made = renamed(found.planned, before.plan, plan)
    again = plan_of(before._replace(plan=plan, owner=None), survey(shown(kafka)))
    assert len(made.waves) == 2
    assert [wave.digest for wave in made.waves] == [wave.digest for wave in again.waves]
    assert [m["spec"] for m in made.manifests] == [m["spec"] for m in again.manifests]
    assert [m["metadata"]["labels"] for m in made.manifests] == [m["metadata"]["labels"] for m in again.manifests]
    for manifest, wave in zip(made.manifests, made.waves, strict=True):
        assert manifest["metadata"]["name"] == wave.name
        assert wave.name.startswith(plan.wave_prefix)
        assert len(wave.name) <= 253
        assert manifest["metadata"]["labels"][PLAN_UID_LABEL] == "uid-1"
        assert manifest_digest(manifest) == wave.digest


# --- Whose turn it is ---


class Work:
    """Planning that ends when it is let."""

    def __init__(self) -> None:
        self.begun: list[Job] = []
        self.go = asyncio.Event()

    async def __call__(self, job: Job) -> Planned | WorkedOut | GoalSeen:
        self.begun.append(job)
        await self.go.wait()
        return worked_out(job, shown(orders((1, 2))), survey(shown(orders((1, 2)))))


@pytest.fixture
def work_to_do() -> Work:
    return Work()


async def rest() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_is_worked_out_after_the_other(work_to_do: Work) -> None:
    async def plans() -> None:
        planner, one, two = Planner(work_to_do), asked("uid-one"), asked("uid-two")
        assert planner.ask(one, lambda: None)
        await rest()
        assert not planner.ask(one, lambda: None), "it is under way"
        assert not planner.ask(two, lambda: None)
        work_to_do.go.set()
        await rest()
        assert isinstance(planner.made(one), WorkedOut)
        assert planner.made(two) is None
        assert planner.ask(two, lambda: None)
        await rest()
        assert isinstance(planner.made(two), WorkedOut)

    asyncio.run(plans())


def test_other_terms_end_what_is_under_way(work_to_do: Work) -> None:
    async def plans() -> None:
        planner, one = Planner(work_to_do), asked()
        planner.ask(one, lambda: None)
        await rest()
        other = one._replace(plan=replace(one.plan, spec=asked(waves={"maxPartitions": 7}).plan.spec))
        assert not planner.ask(other, lambda: None)
        await rest()
        assert planner.ask(other, lambda: None)
        work_to_do.go.set()
        await rest()
        assert planner.made(one) is None
        assert isinstance(planner.made(other), WorkedOut)
        assert work_to_do.begun == [one, other]

    asyncio.run(plans())


def test_what_is_handed_over_is_what_the_plan_came_to(work_to_do: Work) -> None:
    async def plans() -> None:
        planner, one = Planner(work_to_do), asked()
        planner.ask(one, lambda: None)
        work_to_do.go.set()
        await rest()
        found = planner.made(one)
        assert isinstance(found, WorkedOut)
        plan = replace(one.plan, uid="uid-old-1", name="old-1")
        of_plan = one._replace(plan=plan, owner=None)
        planner.hand_over(of_plan, renamed(found.planned, one.plan, plan))
        planner.forget(one.uid)
        assert planner.made(one) is None
        made = planner.made(of_plan)
        assert isinstance(made, Planned)
        assert not planner.ask(of_plan, lambda: None), "it is made already"
        spec = ReassignmentPlanSpec.parse({**plan.spec.wire(), "waves": {"maxPartitions": 7}})
        assert planner.made(of_plan._replace(plan=replace(plan, spec=spec))) is None

    asyncio.run(plans())


def test_one_whose_owner_is_gone_is_forgotten(work_to_do: Work) -> None:
    async def plans() -> None:
        planner, one = Planner(work_to_do), asked()
        planner.ask(one, lambda: None)
        await rest()
        planner.keep({"uid-old"})
        await rest()
        assert not planner.ask(one, lambda: None)
        planner.keep(set())
        await rest()
        assert planner.ask(one, lambda: None)
        planner.forget(one.uid)
        await rest()

    asyncio.run(plans())


def test_a_plan_of_an_owner_is_made_in_part_only_where_that_is_enough() -> None:
    kafka = orders((1, 2), (1, 3))
    kafka.brokers = {number: Broker(number, f"r{number}") for number in (1, 2, 3)}
    kafka.cordons = {3: "*"}
    whole = asked()._replace(owner=None, owned=True)
    with pytest.raises(PlanningError, match="would stay"):
        owned_plan_of(whole, shown(kafka), survey(shown(kafka)))
    assert owned_plan_of(whole._replace(in_part=True), shown(kafka), survey(shown(kafka))).waves == ()


def test_a_plan_is_made_as_though_our_cordons_were_lifted() -> None:
    kafka = orders((1, 2), (1, 3))
    kafka.cordons = {2: "*", 3: "*"}
    goal = {"goal": {"drainBrokers": [1], "scope": "Drained", "avoidBrokers": [2]}}
    assert moved(work(kafka, **goal)) == {}
    ours = uncordoned(shown(kafka), frozenset({2}))
    found = worked_out(asked(**goal), ours, survey(ours))
    assert {name: 2 in row for name, row in moved(found).items()} == {"orders-0": True}
    assert found.incomplete, "the cordon of another client stays"
    kafka.cordons = {2: "*"}
    ours = uncordoned(shown(kafka), frozenset({2}))
    found = worked_out(asked(**goal), ours, survey(ours))
    assert {name: 2 in row for name, row in moved(found).items()} == {"orders-0": True, "orders-1": False}
