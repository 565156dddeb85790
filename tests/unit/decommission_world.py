"""BrokerDecommissions in the loop of their KafkaCluster, with API server, brokers and planning in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.api.common import FINALIZER
from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL
from reassign.controller.cluster import observer
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans import broker_watch
from reassign.controller.plans.job import Job, planned
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health
from reassign.controller.supervisor import Supervisor
from reassign.controller.writing.writer import Writer
from reassign.core.automation.model import WorkedOut, plan_spec_digest
from reassign.core.automation.seen import BrokersRead
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.model.configs import Change, put
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition, cordoned, live_brokers
from reassign.core.model.steps import APPLIED, Outcome, Step
from reassign.core.plans.goal import not_reached
from reassign.core.plans.model import GoalSeen, Planned
from reassign.errors import ConflictError
from reassign.kafka.client import StillValid
from reassign.kube.events import EventRecorder
from reassign.planning.problem import model
from tests.unit.configs import broker, copy, topic
from tests.unit.sim import SimKafka
from tests.unit.throttled_brokers import NOTHING_SET, Client
from tests.unit.world import Brokers, KilledError, Kube, Object, World, api_object, cluster_record

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)
BYTES = 100
"""Of each replica."""
START = datetime(2026, 1, 1, tzinfo=UTC)
TICK = 5.0


class Clock:
    """Both clocks, of this machine and of the API server; only ticks make them go on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return 1_000_000.0 + self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


class ApiServer(Kube):
    """Objects by kind and name, deleted as the API server and its garbage collector do."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock.now
        self.made: list[str] = []
        """The names of all objects that were created, of each kind."""
        self.started: list[str] = []
        """The names of the waves that were let go."""
        self.suspended: list[str] = []
        """The names of the waves that were suspended."""
        self.at: int | None = None
        """The write, counted from now, that `fails`."""
        self.fails: Callable[[], BaseException] = KilledError
        self.lands = True
        """Whether what fails has landed all the same."""
        self.writes: list[str] = []
        self.wrong: list[str] = []
        """What must not happen, and did."""

    @contextmanager
    def writing(self, what: str, *, to_kafka: bool = False) -> Iterator[None]:
        """A write, which fails before or after it has landed where that is asked for."""
        counts = self.at is not None and (self.fails is KilledError or not to_kafka)
        self.at = self.at - 1 if counts and self.at else self.at
        fails = counts and self.at == 0
        if fails:
            self.at = None
            if not self.lands:
                raise self.fails()
        yield
        self.writes.append(what)
        if fails:
            raise self.fails()

    @property
    def failed(self) -> bool:
        """Whether the write that is to fail has failed."""
        return self.at is None

    def _write(self, obj: Object, change: Callable[[Object], None]) -> Object:
        if obj["metadata"]["uid"] not in self.objects:
            raise ConflictError("it is gone")
        return super()._write(obj, change)

    async def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return deepcopy(self.find(kind, name))

    def find(self, kind: str, name: str) -> Object | None:
        """The object of that name."""
        return next((o for o in self.objects.values() if (o["kind"], o["metadata"]["name"]) == (kind, name)), None)

    async def create(self, obj: Object) -> Object:
        meta = obj["metadata"]
        if self.find(obj["kind"], meta["name"]):
            raise ConflictError("already exists")
        name = f"{obj['kind']} {meta['name']}"
        again = self.made.count(name)
        uid = f"uid-{meta['name']}" + (f"-again-{again}" if again else "")
        made = api_object(obj["kind"], meta["name"], deepcopy(obj["spec"]))
        made["metadata"] |= {"uid": uid, "creationTimestamp": f"{self.now():%Y-%m-%dT%H:%M:%SZ}"}
        made["metadata"] |= {key: deepcopy(value) for key, value in meta.items() if key not in made["metadata"]}
        if obj["kind"] == "ReassignmentRecord":
            del made["status"]
        with self.writing(f"create {name}"):
            self.objects[uid] = made
            self.made.append(name)
        return deepcopy(made)

    async def add_finalizer(self, obj: Object) -> Object:
        held = obj["metadata"].get("finalizers") or []
        if FINALIZER in held:
            return obj
        with self.writing(f"hold {obj['kind']} {obj['metadata']['name']}"):
            return self._write(obj, lambda new: new["metadata"].update(finalizers=[*held, FINALIZER]))

    async def remove_finalizer(self, obj: Object) -> Object | None:  # type: ignore[override]
        if obj["metadata"]["uid"] not in self.objects:
            return None
        kept = [name for name in obj["metadata"].get("finalizers") or [] if name != FINALIZER]
        with self.writing(f"release {obj['kind']} {obj['metadata']['name']}"):
            written = self._write(obj, lambda new: new["metadata"].update(finalizers=kept))
            if written["metadata"].get("deletionTimestamp") and not kept:
                del self.objects[written["metadata"]["uid"]]
        return written

    async def write_status(self, obj: Object, status: Object) -> Object:
        with self.writing(f"status {obj['kind']} {obj['metadata']['name']}"):
            return await super().write_status(obj, status)

    async def write_record(self, obj: Object, spec: Object, *, held: bool) -> Object:
        with self.writing(f"record {obj['metadata']['name']}"):
            return await super().write_record(obj, spec, held=held)

    async def suspend(self, obj: Object, suspended: bool) -> Object:
        name = obj["metadata"]["name"]
        if not suspended:
            self._may_start(obj)
        with self.writing(f"{'suspend' if suspended else 'start'} {name}"):
            written = await super().suspend(obj, suspended)
            (self.suspended if suspended else self.started).append(name)
        return written

    def _may_start(self, wave: Object) -> None:
        """See that the owner of the plan of a wave, as it is now, lets it go."""
        plan = self.find("ReassignmentPlan", wave["metadata"]["labels"][PLAN_LABEL])
        assert plan
        for reference in plan["metadata"].get("ownerReferences", ()):
            owner = self.objects[reference["uid"]]
            [record] = [o for o in self.objects.values() if o["metadata"]["name"] == f"{reference['uid']}-0"]
            recorded, spec = record["spec"].get("decommission") or record["spec"]["policy"], owner["spec"]
            approval, of = recorded.get("approval"), recorded["plan"]
            if (of["name"], of.get("approved"), bool(of.get("retired"))) != (plan["metadata"]["name"], True, False):
                self.wrong.append(f"{wave['metadata']['name']} starts, though the plan that may run is {of}")
            asked: Object = next((t for t in spec.get("triggers", ()) if t["name"] == of.get("trigger")), {})
            wished = asked.get("approval") or spec.get("approval")
            approved = wished == "NotRequired" or spec.get("approvedDigest") == approval.get("digest")
            deleted = owner["metadata"].get("deletionTimestamp")
            if not approval or not approved or spec.get("suspend") or deleted:
                self.wrong.append(f"{wave['metadata']['name']} starts, though its owner does not let it go")

    async def delete(self, obj: Object) -> Object | None:
        uid = obj["metadata"]["uid"]
        with self.writing(f"delete {obj['kind']} {obj['metadata']['name']}"):
            if uid in self.objects and obj["metadata"].get("finalizers"):
                at = f"{self.now():%Y-%m-%dT%H:%M:%SZ}"
                return self._write(obj, lambda new: new["metadata"].update(deletionTimestamp=at))
            self.objects.pop(uid, None)
        return None

    def collect_garbage(self) -> None:
        """Delete what no owner is left of, and in the foreground dependents first."""
        for obj in [*self.objects.values()]:
            uids = [owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())]
            owners = [self.objects[uid] for uid in uids if uid in self.objects]
            first = [o for o in owners if "foregroundDeletion" in o["metadata"].get("finalizers", ())]
            if uids and (not owners or first) and not obj["metadata"].get("deletionTimestamp"):
                self._delete(obj)
        for obj in [*self.objects.values()]:
            finalizers = obj["metadata"].get("finalizers", ())
            if "foregroundDeletion" in finalizers and obj["metadata"].get("deletionTimestamp"):
                kept = [name for name in finalizers if name != "foregroundDeletion"]
                uid = obj["metadata"]["uid"]
                # blockOwnerDeletion is unset: no dependent holds it
                self.write(uid, lambda new, kept=kept: new["metadata"].update(finalizers=kept))  # type: ignore[misc]
                if not kept:
                    del self.objects[uid]

    def _delete(self, obj: Object) -> None:
        uid, at = obj["metadata"]["uid"], f"{self.now():%Y-%m-%dT%H:%M:%SZ}"
        if obj["metadata"].get("finalizers"):
            self.write(uid, lambda new: new["metadata"].update(deletionTimestamp=at))
        else:
            del self.objects[uid]


class EmptiedBrokers(Brokers):
    """Brokers that take cordons, tell which logs they have, and can be unregistered."""

    def __init__(self, kafka: SimKafka, kube: ApiServer) -> None:
        super().__init__(kafka, kube)
        self._api = kube
        self.client = Client(copy(NOTHING_SET))
        self.client.store |= {topic(tp.topic): {} for tp in kafka.replicas} | {broker(6): {}}
        self.factor = 1
        self.voters: frozenset[int] | None = frozenset()
        self.lists_fenced = True
        self.unregistered: list[int] = []
        self.loses_unregister = False
        self.refuses_unregister: Outcome | None = None
        self.readings = 0
        self.cordon_readings = 0
        self.asked_for_logs: list[set[int]] = []
        self.silent: set[int] = set()
        self.begun: list[TopicPartition] = []
        """The partitions that were moved, once for each alter of a move that begins."""
        self.between: Callable[[str], None] = lambda _: None
        """What others do before a request: its name is given."""

    def see(self) -> None:
        """Logs are where replicas are, and brokers have heard of their cordons."""
        kafka = self._kafka
        kafka.sizes = {tp: dict.fromkeys(replicas, BYTES) for tp, replicas in kafka.replicas.items()}
        store = self.client.store
        kafka.cordons = {n: text for n in kafka.brokers if (text := store[broker(n)].get(CORDONED_LOG_DIRS))}
        kafka.heartbeat()

    async def observe(self, *given: Any) -> Snapshot:
        self.see()
        found = await super().observe(*given)
        return replace(found, lists_fenced=self.lists_fenced)

    async def observe_layout(self, logs_of: Callable[[Layout], Collection[int]], *, cordons: bool = False) -> Layout:
        self.see()
        snapshot = replace(self._kafka.snapshot(), lists_fenced=self.lists_fenced)
        found = layout_seen(snapshot)
        asked = set(logs_of(found)) & live_brokers(found.brokers)
        self.asked_for_logs.append(asked)
        told = {number: dirs for number, dirs in found.log_dirs.items() if number not in self.silent}
        return replace(
            found,
            log_dirs={number: dirs for number, dirs in told.items() if number in asked},
            cordoned={number: cordoned(dirs) for number, dirs in told.items() if cordons},
        )

    async def observe_cordons(self) -> tuple[str, dict[int, bool | None]]:
        self.cordon_readings += 1
        layout = await self.observe_layout(lambda _: (), cordons=True)
        return layout.cluster_id, dict(layout.cordoned)

    async def observe_brokers(self, logs_of: Callable[[Layout], Collection[int]]) -> BrokersRead:
        self.readings += 1
        layout = await self.observe_layout(logs_of, cordons=True)
        return BrokersRead(layout, factor=self.factor, voters=self.voters)

    async def configs(self, resources: Any) -> Any:
        return await self.client.configs([r for r in resources if not self._is_down(r)])

    def _is_down(self, resource: Any) -> bool:
        numbered = {broker(n): b for n, b in self._kafka.brokers.items()}
        return str(resource.type) == str(broker(0).type) and (resource not in numbered or numbered[resource].fenced)

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        outcomes: dict[Change, Outcome] = {}
        for change in changes:
            assert not self._is_down(change.key.resource), f"{change} is of a broker that is down"
            self.between("change")
            with self._api.writing(f"config {change}", to_kafka=True):
                put(self.client.store[change.key.resource], change)
            outcomes[change] = APPLIED
            self.see()
        return outcomes

    async def perform(self, steps: Sequence[Step], still_valid: StillValid | None = None) -> dict[Step, Outcome]:
        before = set(self._kafka.reassignments)
        if not steps:
            return {}
        with self._api.writing(f"steps {sorted(map(str, steps))}", to_kafka=True):
            outcomes = await super().perform(steps, still_valid)
            self.begun += sorted(set(self._kafka.reassignments) - before)
        return outcomes

    async def unregister(self, number: int, via: int | None) -> Outcome:
        self.between("unregister")
        assert self._kafka.brokers[number].fenced, f"broker {number} is up"
        assert not any(number in replicas for replicas in self._kafka.replicas.values())
        with self._api.writing(f"unregister {number}", to_kafka=True):
            if self.refuses_unregister:
                return self.refuses_unregister
            self.unregistered.append(number)
            if not self.loses_unregister:
                del self._kafka.brokers[number]
        return APPLIED


class Evacuation:
    """Planning: a wave for each partition on a drained broker, or what it is told to come to."""

    def __init__(self, kafka: SimKafka) -> None:
        self.kafka = kafka
        self.jobs: list[Job] = []
        self.fails: Exception | None = None
        self.incomplete: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()

    async def __call__(self, job: Job) -> Planned | GoalSeen | WorkedOut:
        if job.plan.planned:
            return GoalSeen(not_reached(job.plan, layout_seen(self.kafka.snapshot()), job.allowed))
        self.jobs.append(job)
        if self.fails:
            raise self.fails
        found = self._planned(job)
        if job.owner is None:
            return found
        return WorkedOut(plan_spec_digest(job.plan.spec), found, self.stays(job), self.left_out)

    def stays(self, job: Job) -> tuple[str, ...]:
        """Replicas that a plan would leave."""
        return self.incomplete

    def _planned(self, job: Job) -> Planned:
        moves = self.moves(job)
        manifests = [self._manifest(job, number, *move) for number, move in enumerate(moves, 1)]
        certificate = model.Certificate(
            bytes=BYTES * len(moves),
            bytes_bound=BYTES * len(moves),
            moves=len(moves),
            moves_bound=len(moves),
            leaders=0,
            balance=(),
            waves=len(moves),
            waves_bound=1,
        )
        return planned(job.plan, manifests, certificate, {(tp.topic, tp.partition): BYTES for tp, _, _ in moves})

    def moves(self, job: Job) -> list[tuple[TopicPartition, tuple[int, ...], tuple[int, ...]]]:
        """Each partition that a plan moves, with its replicas before and after."""
        goal = job.plan.spec.goal
        drained, avoid = set(goal.drain_brokers or ()), set(goal.avoid_brokers or ())
        up = live_brokers(self.kafka.brokers) - drained - avoid
        return [
            (tp, row, _without(drained, row, sorted(up - {*row})))
            for tp, row in sorted(self.kafka.replicas.items())
            if drained & {*row} and tp not in self.kafka.reassignments
        ]

    def _manifest(
        self, job: Job, number: int, tp: TopicPartition, before: Sequence[int], after: Sequence[int]
    ) -> Object:
        replicas = {"replicas": [*after], "expectedReplicas": [*before]}
        entry = {"topic": tp.topic, "partition": tp.partition, **replicas}
        template = job.plan.spec.template.wire()
        spec = {"clusterRef": job.plan.spec.cluster_ref.wire(), "partitions": [entry], "suspend": True, **template}
        labels = {PLAN_LABEL: job.plan.name, PLAN_UID_LABEL: job.plan.uid}
        metadata = {"name": f"{job.plan.wave_prefix}-{number}", "namespace": job.plan.namespace, "labels": labels}
        version = "kafka.reassign.dev/v1alpha1"
        return {"apiVersion": version, "kind": "PartitionReassignment", "metadata": metadata, "spec": spec}


def _without(drained: Collection[int], row: Sequence[int], free: Sequence[int]) -> tuple[int, ...]:
    """Replicas with the first free brokers in place of those that are drained."""
    others = iter(free)
    return tuple(next(others) if number in drained else number for number in row)


class Decommissioning(World):
    """Broker 1 has a replica of A and B, and is to be emptied by `old`. Broker 5 has none; no broker has C at first."""

    kube: ApiServer
    brokers: EmptiedBrokers
    planning = Evacuation

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> None:
        self.clock = Clock()
        monkeypatch.setattr(time, "monotonic", self.clock.monotonic)
        monkeypatch.setattr(broker_watch, "read_only", self._read_only)
        monkeypatch.setattr(observer, "KafkaClient", SimpleNamespace(connect=self._connect))
        self.kafka = SimKafka({A: (1, 2), B: (3, 1), C: (2, 3)})
        self.store, self.kube, self.metrics = Store(self.clock.monotonic), ApiServer(self.clock), Metrics()
        self.brokers = EmptiedBrokers(self.kafka, self.kube)
        self.work = self.planning(self.kafka)
        self.planner = Planner(self.work)
        self.copies = True
        """Whether moves come to their end between two ticks."""
        self.put(api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"}))
        self.put(cluster_record("main"))
        self.loop = self.new_loop()
        self.begin(**spec)

    def begin(self, **spec: Any) -> None:
        """What there is at first."""
        self.apply(**spec)

    async def _connect(self, *_: object, **__: object) -> EmptiedBrokers:
        self.brokers.see()
        return self.brokers

    @asynccontextmanager
    async def _read_only(self, *_: object) -> AsyncIterator[EmptiedBrokers]:
        yield self.brokers

    def apply(self, name: str = "old", brokers: Sequence[int] = (1,), **spec: Any) -> None:
        """One more decommission is created."""
        obj = api_object("BrokerDecommission", name, {"clusterRef": {"name": "main"}, "brokers": [*brokers], **spec})
        obj["metadata"]["creationTimestamp"] = f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        self.put(obj)

    def new_loop(self) -> ClusterLoop:
        """One of a new process; it connects by itself."""
        kube: Any = self.kube
        writer = Writer(kube, EventRecorder(kube, "test"), self.store, self.metrics)
        plans, health = Plans(self.store, kube, writer, self.planner), Health(60, [])
        return ClusterLoop(("kafka", "main"), self.store, kube, writer, self.metrics, health, lambda: None, plans)

    def restart(self) -> None:
        """The process is new: what it knew is lost."""
        self.planner = Planner(self.work)
        self.store = Store(self.clock.monotonic)
        self.store.take_over([*deepcopy(self.kube.objects).values()], {})
        self.loop = self.new_loop()

    def tick(
        self,
        times: int = 1,
        until: Callable[[], bool] | None = None,
        seconds: float = TICK,
        *,
        safely: bool = False,
        bugs: bool = False,
    ) -> None:
        """As the loop of the operator; what is begun in one tick goes on between it and the next, as brokers do.

        `safely`: an error ends one tick, and not the loop. There are no bugs unless that is said.
        """

        async def ticks() -> None:
            for _ in range(80 if until else times):
                self.clock.seconds += seconds
                await self.tick_once(safely=safely)
                assert bugs or self.loop._bug is None, self.loop._bug
                if until and until():
                    return
            if until is not None:
                raise AssertionError(f"it did not come true: {self.said()}")

        asyncio.run(ticks())

    async def tick_once(self, *, safely: bool = False) -> None:
        await (self.loop._safe_tick() if safely else self.loop._tick())
        for _ in range(8):
            await asyncio.sleep(0)
        for tp in list(self.kafka.reassignments) if self.copies else ():
            self.kafka.copy(tp)
        self.kube.collect_garbage()
        self.watch()
        assert not self.kube.wrong

    def said(self) -> str:
        """What status says of how far it is."""
        return f"{self.reason()}: {self.message()}"

    def watch(self) -> None:
        """The watches bring what others have written."""
        objects = self.kube.objects
        for uid in self.store.uids() - objects.keys():
            self.store.drop(uid)
        for obj in objects.values():
            self.store.put(deepcopy(obj))

    def until(self, reason: str, of: str = "old", **options: Any) -> None:
        """Tick until Ready has this reason."""
        self.tick(until=lambda: self.reason(of) == reason, **options)

    def run(self, times: int = 1, until: Callable[[], bool] | None = None) -> None:
        """Tick, and have another process go on where one is killed."""
        try:
            self.tick(times, until, safely=True)
        except KilledError:
            self.restart()
            self.tick(times, until, safely=True)

    def sweep(self, times: int = 1, seconds: float = TICK) -> None:
        """As the supervisor does while there is no KafkaCluster."""
        kube, unused = self.kube, None
        supervisor = Supervisor(self.store, kube, self.loop.writer, self.loop.plans, (), unused)  # type: ignore[arg-type]
        supervisor.listing.scopes[""].due = float("inf")
        supervisor._serving = True
        for _ in range(times):
            self.clock.seconds += seconds
            asyncio.run(supervisor._sweep_once())
            self.kube.collect_garbage()
            self.watch()

    def pauses(self, times: int) -> list[float]:
        """How long the loop waits after each of its next reconciliations."""

        async def ticks() -> list[float]:
            found = []
            for _ in range(times):
                self.clock.seconds += TICK
                found.append(await self.loop._safe_tick() or 0.0)
                await asyncio.sleep(0)
            return found

        return asyncio.run(ticks())

    # --- Users ---

    def approve(self, name: str = "old") -> None:
        digest = self.status(name)["digest"]
        self.change(name, lambda obj: obj["spec"].update(approvedDigest=digest))

    def edit(self, name: str = "old", **spec: Any) -> None:
        self.change(name, lambda obj: obj["spec"].update(spec))

    def delete(self, name: str = "old", kind: str = "BrokerDecommission", *, foreground: bool = False) -> None:
        obj = self.kube.find(kind, name)
        assert obj
        if foreground:
            finalizers = [*obj["metadata"].get("finalizers", ()), "foregroundDeletion"]
            self.kube.write(obj["metadata"]["uid"], lambda new: new["metadata"].update(finalizers=finalizers))
        self.kube._delete(self.kube.objects[obj["metadata"]["uid"]])
        self.kube.collect_garbage()
        self.watch()

    def down(self, *numbers: int) -> None:
        for number in numbers:
            self.kafka.brokers[number] = Broker(number, f"r{number}", fenced=True)

    # --- What there is ---

    def obj(self, kind: str, name: str) -> Object | None:
        return self.kube.find(kind, name)

    def status(self, name: str = "old") -> Object:
        obj = self.kube.find("BrokerDecommission", name)
        assert obj
        status: Object = obj["status"]
        return status

    def condition(self, kind: str = "Ready", name: str = "old") -> Object:
        if not self.kube.find("BrokerDecommission", name):
            return {}
        return next((c for c in self.status(name).get("conditions", ()) if c["type"] == kind), {})

    def reason(self, name: str = "old") -> str | None:
        return self.condition("Ready", name).get("reason")

    def message(self, name: str = "old") -> str | None:
        return self.condition("Ready", name).get("message")

    def record(self, name: str = "old") -> Object:
        """What the record of a decommission says."""
        return self._recorded(name, "decommission")

    def _recorded(self, name: str, field: str) -> Object:
        obj = self.kube.find("ReassignmentRecord", f"uid-{name}-0")
        found: Object = (obj or {"spec": {}})["spec"].get(field, {})
        return found

    def plans(self) -> list[str]:
        return sorted(o["metadata"]["name"] for o in self.kube.objects.values() if o["kind"] == "ReassignmentPlan")

    def plan(self, name: str = "old-1") -> Object:
        obj = self.kube.find("ReassignmentPlan", name)
        assert obj
        return obj

    def waves(self) -> list[Object]:
        found = [o for o in self.kube.objects.values() if o["kind"] == "PartitionReassignment"]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    def cordons(self) -> set[int]:
        """The brokers that are cordoned now."""
        return {n for n in range(6) if self.brokers.client.store[broker(n)].get(CORDONED_LOG_DIRS)}

    def recorded_cordons(self) -> frozenset[int]:
        return recorded_cordons(self.store.throttle("uid-main"))

    def on(self, number: int) -> list[TopicPartition]:
        return sorted(tp for tp, replicas in self.kafka.replicas.items() if number in replicas)

    def assert_nothing_left(self, unregistered: Collection[int] = ()) -> None:
        """No cordon, no throttle, nothing in flight, and no finalizer of ours but on the KafkaCluster.

        The cordon of a broker that is not registered any more stays, and its record with it.
        """
        assert not self.kafka.reassignments
        assert self.recorded_cordons() <= {*unregistered}
        left = {r.name: configs for r, configs in self.brokers.client.store.items() if configs}
        assert left.keys() <= {str(number) for number in unregistered}
        assert self.held() <= {"KafkaCluster main", *(["ReassignmentRecord uid-main-0"] if unregistered else ())}

    def held(self) -> set[str]:
        """What has our finalizer."""
        return {f"{o['kind']} {o['metadata']['name']}" for o in self.kube.objects.values() if _held(o)}


def _held(obj: Mapping[str, Any]) -> bool:
    return FINALIZER in (obj["metadata"].get("finalizers") or ())
