"""Tenants: no status and no event of an allowed namespace has a name that its users may not read.

Whatever belongs to others is named with a token here, and their brokers have numbers of their own. Both are looked for
in all that is written to the tenant's namespace.
"""

from __future__ import annotations

import asyncio
import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from reassign.api.kafka_cluster import KafkaCluster, Limits
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import PlanInputs
from reassign.core import tick
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.permission import Permission
from reassign.core.model.problem import PLANNED, Audience, Name, Names, Problem, error_problem, render
from reassign.core.model.snapshot import Broker, Partition, Topic, TopicPartition
from reassign.core.model.steps import Outcome, Result
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import transitions
from reassign.errors import ClusterError, PlanningError, Reason
from tests.unit.examples import examples
from tests.unit.sim import SimKafka, drive, resource
from tests.unit.world import Brokers, Kube, World, api_object, cluster_record, config_record, connect, serve_beside

TOKEN, TENANT = "zz9", "team-a"
FOREIGN = re.compile(rf"{TOKEN}|\b90[1-5]\b")
"""A name of what belongs to others, or the number of a broker that has nothing of the tenant's."""
MINE = [TopicPartition("team-a-orders", number) for number in range(4)]
SECRET = [TopicPartition(f"{TOKEN}-topic", number) for number in range(4)]
FAILURES = (
    Reason.CLUSTER_UNREACHABLE,
    Reason.AUTHENTICATION_FAILED,
    Reason.NOT_AUTHORIZED,
    Reason.SECRET_NOT_FOUND,
    Reason.TOKEN_ENDPOINT_UNREACHABLE,
    Reason.CLUSTER_NOT_SUPPORTED,
)


RARELY = st.sampled_from([False, False, False, True])
"""What keeps most of the rest from happening."""


class FailingBrokers(Brokers):
    """What brokers say may name any of them."""

    failure: Reason | None = None
    unanswered: Result | None = None

    async def observe(self, *asked: Any) -> Any:
        if self.failure:
            raise ClusterError(self.failure, f"{TOKEN}-broker.example:9092 said no")
        return await super().observe(*asked)

    async def perform(self, steps: Any, still_valid: Any = None) -> Any:
        if self.unanswered is None:
            return await super().perform(steps, still_valid)
        return dict.fromkeys(steps, Outcome(self.unanswered, Reason.REQUEST_FAILED, f"{TOKEN}-broker:9092 is gone"))


class Tenants(World):
    """A tenant's resource and plan on a KafkaCluster that others use, too."""

    def __init__(self) -> None:
        replicas = dict.fromkeys(MINE, (1, 2, 3)) | dict.fromkeys(SECRET, (901, 902, 903))
        self.kafka = SimKafka(replicas, sizes={tp: dict.fromkeys((*range(6), 901, 902, 903), 100) for tp in replicas})
        self.kafka.brokers |= {b: Broker(b) for b in range(901, 906)}
        self.store, self.kube, self.metrics = Store(), Kube(), Metrics()
        self.brokers = FailingBrokers(self.kafka, self.kube)
        self.planner = Planner(self._plan)
        self.written: list[str] = []
        self._collect()
        allowed = [{"name": TENANT, "topics": ["team-a-*"]}, {"name": f"{TOKEN}-team", "topics": [f"{TOKEN}-*"]}]
        self.put(
            api_object("KafkaCluster", "main", {"bootstrapServers": f"{TOKEN}:9092", "allowedNamespaces": allowed})
        )
        self.put(cluster_record("main"))
        self.move("kafka", f"{TOKEN}-own", {MINE[3]: (4, 2, 3), SECRET[0]: (904, 902, 903)})
        self.move(f"{TOKEN}-team", f"{TOKEN}-others", {SECRET[1]: (905, 902, 903)})
        self.move(TENANT, "mine", {MINE[0]: (4, 2, 3), MINE[1]: (99, 2, 3), MINE[2]: (5, 2, 3), MINE[3]: (5, 2, 3)})
        plan = api_object(
            "ReassignmentPlan", "plan", {"goal": {"drainBrokers": [1]}, "topics": {"include": ["team-a-*"]}}
        )
        self.put(self.of(TENANT, plan))
        self.loop = self.new_loop()

    def of(self, namespace: str, obj: Any) -> Any:
        obj["metadata"]["namespace"] = namespace
        obj["spec"]["clusterRef"] = {"name": "main", "namespace": "kafka"}
        return obj

    def move(self, namespace: str, name: str, wanted: Any) -> None:
        partitions = [{"topic": tp.topic, "partition": tp.partition, "replicas": list(r)} for tp, r in wanted.items()]
        obj = self.of(namespace, api_object("PartitionReassignment", name, {"partitions": partitions}))
        obj["metadata"]["creationTimestamp"] = f"202{'6' if namespace == TENANT else '5'}-01-01T00:00:00Z"
        self.put(obj)

    async def _plan(self, job: object) -> Any:
        raise PlanningError(Reason.CLUSTER_UNREACHABLE, f"{TOKEN}-broker:9092 does not answer")

    def _collect(self) -> None:
        """Keep what is written to the tenant's namespace."""
        write_status, request = self.kube.write_status, self.kube.request

        async def status(obj: Any, status: Any) -> Any:
            if obj["metadata"]["namespace"] == TENANT:
                self.written.append(json.dumps(status))
            return await write_status(obj, status)

        async def event(verb: str, path: str, body: Any, **options: Any) -> Any:
            if f"/namespaces/{TENANT}/" in path:
                self.written.append(json.dumps(body))
            return await request(verb, path, body, **options)

        kube: Any = self.kube
        kube.write_status, kube.request = status, event

    def safe_ticks(self, times: int) -> None:
        """As the loop of the operator ticks, whatever one ends with."""

        async def ticks() -> None:
            for _ in range(times):
                if obj := self.store.get("uid-main"):
                    connect(self.loop, self.brokers, KafkaCluster.parse(obj))
                await self.loop._safe_tick()
                for _ in range(3):
                    await asyncio.sleep(0)

        asyncio.run(ticks())


class Machine(RuleBasedStateMachine):
    """Whatever happens to others."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Tenants()
        self.brokers: Any = self.world.brokers
        self._logged = capture_logs()
        self._entries = self._logged.__enter__()
        self._right = tick.follow
        self._wrong = False
        tick.follow = self._follow

    def _follow(self, verdict: Verdict, *rest: Any) -> Verdict:
        if self._wrong and verdict.resource.name == f"{TOKEN}-own":
            raise ZeroDivisionError
        return self._right(verdict, *rest)

    def teardown(self) -> None:
        tick.follow = self._right
        self._logged.__exit__(None, None, None)

    @rule(times=st.integers(1, 3))
    def ticks(self, times: int = 2) -> None:
        self.world.loop.outage._since = 0.0  # it has been so for long
        self.world.loop.observer._survey._at = float("-inf")
        self.world.safe_ticks(times)

    @rule(execution=st.sampled_from(["Run", "Pause", "CancelOurs", "CancelAll"]))
    def brake(self, execution: str) -> None:
        self.world.pull(execution)
        self.ticks()

    @rule(failure=st.sampled_from([*[None] * 6, *FAILURES]))
    def brokers_fail(self, failure: Reason | None) -> None:
        self.brokers.failure = failure
        self.ticks()

    @rule(result=st.sampled_from([None, Result.UNKNOWN, Result.NOT_SENT]))
    def steps_are_not_answered(self, result: Result | None) -> None:
        self.brokers.unanswered = result
        self.ticks()

    @rule(topics=st.sets(st.sampled_from([MINE[0].topic, SECRET[0].topic])), when=st.booleans())
    def partitions_are_short(self, topics: set[str], when: bool) -> None:
        short = Partition((901, 902), frozenset(), None)
        self.brokers.short = {name: Topic(f"id-{name}", 1, dict.fromkeys(range(7), short)) for name in topics}
        pause = "UnderMinIsr" if when else "UnderReplicated"
        self.world.change("main", lambda obj: obj["spec"].update(pauseWhen=pause))
        self.ticks()

    @rule(wrong=st.booleans())
    def a_bug_meets_another_resource(self, wrong: bool) -> None:
        self._wrong = wrong
        self.ticks()

    @rule(
        older=st.booleans(),
        reason=st.sampled_from(["Connected", "ClusterDeleted", "ClusterUnreachable", "gone"]),
        throttles=st.booleans(),
    )
    def another_cluster(self, older: bool, reason: str, throttles: bool) -> None:
        name = f"{TOKEN}-{'older' if older else 'younger'}"
        if reason == "gone":
            self.world.store.drop(f"uid-{name}")
            return
        obj = api_object("KafkaCluster", name, {"bootstrapServers": "b:9092"})
        created = "2025-01-01T00:00:00Z" if older else "2026-02-01T00:00:00Z"
        obj["metadata"] |= {"namespace": f"{TOKEN}-team", "creationTimestamp": created}
        for uid in (f"uid-{name}", f"uid-uid-{name}-0"):
            self.world.store.drop(uid)
        self.world.put(obj)
        if throttles:
            self.world.put(config_record(name, f"{TOKEN}-team"))
        serve_beside(self.world, name, None if reason == "Connected" else Reason(reason))
        self.ticks()

    @rule(deleted=RARELY)
    def the_cluster_is_deleted(self, deleted: bool) -> None:
        def change(obj: Any) -> None:
            obj["metadata"].pop("deletionTimestamp", None)
            if deleted and obj["metadata"].get("finalizers"):
                obj["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"

        if "uid-main" in self.world.kube.objects and self.world.store.get("uid-main"):
            self.world.change("main", change)
            self.ticks()

    @rule(allowed=RARELY.map(lambda rare: not rare))
    def the_namespace_is_allowed(self, allowed: bool) -> None:
        def change(obj: Any) -> None:
            obj["spec"]["allowedNamespaces"][0]["name"] = TENANT if allowed else "nowhere"

        self.world.change("main", change)
        self.ticks()

    @rule(
        fields=st.fixed_dictionaries(
            {},
            optional={
                "suspend": st.booleans(),
                "throttle": st.just({"interBroker": "1Mi"}),
                "whenInFlight": st.sampled_from(["Wait", "Supersede", "Fail"]),
                "admission": st.sampled_from(["Always", "WhenIdle"]),
                "stallTimeoutSeconds": st.just(1),
                "mode": st.just("DryRun"),
            },
        )
    )
    def the_tenant_edits(self, fields: Any) -> None:
        self.world.change("mine", lambda obj: obj["spec"].update(deepcopy(fields)))
        self.ticks()

    @rule(choice=st.integers(0, 3))
    def copies(self, choice: int) -> None:
        if moving := sorted(self.world.kafka.reassignments):
            self.world.kafka.copy(moving[choice % len(moving)])

    @invariant()
    def no_foreign_name_is_written_to_the_tenant(self) -> None:
        for text in self.world.written:
            assert not FOREIGN.search(text), text
        assert not [e for e in self._entries if e["event"] == "reconciliation failed unexpectedly"]
        self.world.written.clear()


TestTenants = Machine.TestCase
TestTenants.settings = examples(40, stateful_step_count=15)


def secret(reason: Reason) -> Problem:
    hidden = Names((Name(f"{TOKEN}-1", f"{TOKEN}-topic"), Name(f"{TOKEN}-2")), "some of others")
    return Problem(reason, "it waits for ", hidden)


@pytest.mark.parametrize("reason", Reason)
def test_no_reason_carries_a_foreign_name_into_a_status(reason: Reason) -> None:
    problem = secret(reason)
    permission = Permission({"kafka": ("*",), TENANT: ("team-a-*",)}, "kafka")
    asks = {MINE[0]: (4, 2, 3), MINE[1]: (5, 2, 3)}
    for options in (
        {"hold": problem},
        {"throttle": ConfigRules(older=problem)},
        {"throttle": ConfigRules(younger=problem)},
    ):
        mine = resource(asks, throttle={"interBroker": "1Mi"})
        for namespace in (TENANT, "kafka"):
            one = replace(mine, namespace=namespace)
            driver = drive(SimKafka(dict.fromkeys(MINE, (1, 2, 3))), one, permission=permission, **options)
            driver.ticks(4)
            status = driver.resources["a"].status
            events = transitions((), status.conditions)
            said = json.dumps([status.wire(), [event.note for event in events]])
            assert bool(FOREIGN.search(said)) is (namespace == "kafka"), said


@pytest.mark.parametrize("reason", Reason)
def test_no_reason_carries_a_foreign_name_into_a_plan(reason: Reason) -> None:
    inputs = PlanInputs(lambda *_: secret(reason), permission=Permission({TENANT: ("team-a-*",)}, "kafka"))

    class Plan:
        namespace = TENANT

    plan: Any = Plan()
    rendered = inputs.rendered(plan, inputs.seen(plan, None))
    assert isinstance(rendered, Problem)
    assert rendered == Problem(reason, "it waits for some of others")


@pytest.mark.parametrize("reason", Reason)
def test_errors_of_the_cluster_are_read_in_full_by_its_own_namespace(reason: Reason) -> None:
    problem = error_problem(ClusterError(reason, f"{TOKEN}:9092 said no"))
    assert f"{TOKEN}:9092 said no" in render(problem, Audience("kafka", ("*",), owner=True)).message
    read = render(problem, Audience(TENANT, ("*",))).message
    assert (TOKEN in read) is (reason in PLANNED)  # these speak of the plan alone


def test_a_list_shows_the_readable_names_and_the_number_of_the_others() -> None:
    names = tuple(Name(f"{topic}-{n}", topic) for topic in (f"{TOKEN}-topic", "team-a-orders") for n in range(2))
    problem = Problem(Reason.CLUSTER_UNDER_MIN_ISR, "4 have (", Names(names, "of topics of others"), ")")
    assert render(problem, Audience(TENANT, ("team-a-*",))).message == (
        "4 have (team-a-orders-0, team-a-orders-1 and 2 more)"
    )
    assert render(problem, Audience(TENANT, ("other",))).message == "4 have (of topics of others)"
    assert render(problem, None).message == problem.message


def test_another_cluster_is_named_only_to_those_who_may_use_it() -> None:
    name = Name("kafka/older", namespaces=frozenset({"kafka", TENANT}), elsewhere=True)
    assert Audience(TENANT).reads(name)
    assert not Audience("team-b", ("*",), owner=True).reads(name)


def test_the_owner_of_a_cluster_reads_who_claims_a_partition() -> None:
    permission = Permission({"kafka": ("*",), TENANT: ("team-a-*",)}, "kafka")
    older, younger = resource({MINE[0]: (4, 2, 3)}, "older"), resource({MINE[0]: (5, 2, 3)}, "younger")
    said = {}
    for namespace in ("kafka", TENANT):
        pair = (replace(older, namespace=f"{TOKEN}-team"), replace(younger, namespace=namespace))
        allowed = Permission(dict(permission.allowed) | {f"{TOKEN}-team": ("*",)}, "kafka")
        driver = drive(SimKafka({MINE[0]: (1, 2, 3)}), *pair, permission=allowed, limits=Limits())
        driver.ticks(3)
        [said[namespace]] = (d.message for d in driver.resources["younger"].status.partitions)
    wait = "has it; wait until that one is settled, or remove the entry there"
    assert said["kafka"] == f"the PartitionReassignment {TOKEN}-team/older {wait}"
    assert said[TENANT] == f"the PartitionReassignment of another namespace {wait}"
