"""Decommissions beside moves of users and other clients, on brokers and an API server that fail; and what is true."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.names import matches
from reassign.api.reassignment_plan import PLAN_UID_LABEL
from reassign.api.reassignment_record import ReassignmentRecordSpec
from reassign.controller.cluster import observer
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans import broker_watch, goal_watch
from reassign.controller.plans.job import Job, goal_seen, plan_of, worked_out
from reassign.controller.plans.planner import Planner
from reassign.core.automation.model import WorkedOut
from reassign.core.automation.seen import BrokersRead
from reassign.core.model.configs import Change
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.record import active, read_record
from reassign.core.model.snapshot import Reassignment, Topic, TopicPartition, live_brokers
from reassign.core.model.steps import Outcome, Result, Step
from reassign.core.plans.model import GoalSeen, Planned
from reassign.core.survey import survey
from reassign.errors import ApiServerError, Reason
from reassign.kafka.client import StillValid
from reassign.kafka.throttles import Read
from tests.unit.configs import broker, topic
from tests.unit.decommission_world import (
    TICK,
    A,
    ApiServer,
    B,
    C,
    Clock,
    Decommissioning,
    EmptiedBrokers,
    Evacuation,
)
from tests.unit.sim import LOST, SimKafka
from tests.unit.world import KilledError, Object, api_object, cluster_record

REFUSED = Outcome(Result.REFUSED, Reason.REQUEST_FAILED, "refused")
GREATEST_AGE = 700.0
"""Seconds that an observation, and what was said because of it, may be old."""


class Failure(StrEnum):
    """What happens at a write."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    REFUSED = "refused"
    LOST = "lost"
    CHANGED = "changed"
    """It succeeds, and a user changes something right after it, which no watch brings yet."""


class RefusedError(ApiServerError):
    """A write that has not landed."""


class FailingApiServer(ApiServer):
    """The n-th of all writes, those to Kafka among them, meets something."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.failure, self.after = Failure.REFUSED, 0
        self.change: Callable[[], None] = lambda: None
        self.recorded: set[tuple[str, str]] = set()
        """The plans whose uids were recorded, by the uid of the owner and their name."""
        self.starts: Callable[[Object], None] = lambda _: None
        """Judges a wave that is let go."""

    def fail(self, failure: Failure, after: int, change: Callable[[], None] = lambda: None) -> None:
        """Have the write so many from now fail."""
        self.failure, self.after, self.change = failure, after, change

    @contextmanager
    def writing(self, what: str, *, to_kafka: bool = False) -> Iterator[None]:
        self.after -= self.after > 0
        failure = self.failure if self.after == 0 else None
        if failure:
            self.after = -1
        if failure is Failure.KILLED_BEFORE:
            raise KilledError
        if failure is Failure.REFUSED:
            raise RefusedError("503: refused")
        yield
        self.writes.append(what)
        if failure is Failure.KILLED_AFTER:
            raise KilledError
        if failure is Failure.LOST:
            raise ApiServerError("the answer was lost")
        if failure is Failure.CHANGED:
            self.change()

    async def create(self, obj: Object) -> Object:
        if obj["kind"] == "ReassignmentPlan":
            [owner] = _owners(obj)
            if (owner["uid"], obj["metadata"]["name"]) in self.recorded:
                self.wrong.append(f"{obj['metadata']['name']} is created once more")
        return await super().create(obj)

    async def write_record(self, obj: Object, spec: Object, *, held: bool) -> Object:
        plan = (spec.get("decommission") or {}).get("plan") or {}
        if plan.get("uid"):
            [owner] = _owners(obj)
            self.recorded.add((owner["uid"], plan["name"]))
        return await super().write_record(obj, spec, held=held)

    def _may_start(self, wave: Object) -> None:
        self.starts(wave)


class FailingBrokers(EmptiedBrokers):
    """Brokers that go down, forget topics, refuse, and answer late."""

    _api: FailingApiServer

    def __init__(self, kafka: SimKafka, kube: FailingApiServer) -> None:
        super().__init__(kafka, kube)
        self.refuses_cordoned = True
        """Whether the controller refuses a target that names a cordoned broker (from Kafka 4.3.2 on)."""
        self.held = asyncio.Event()
        """Unset: a reading that has begun does not end."""
        self.held.set()
        self.begins: Callable[[TopicPartition, Reassignment], None] = lambda *_: None
        """Judges a move of ours that begins."""
        self.cordons: Callable[[int], None] = lambda _: None
        """Judges a cordon of ours."""

    def see(self) -> None:
        super().see()
        kafka = self._kafka
        if not self.refuses_cordoned:
            kafka.known_cordons = set()
        live = live_brokers(kafka.brokers)
        for tp, replicas in kafka.replicas.items():
            adding = kafka.reassignments[tp].adding if tp in kafka.reassignments else ()
            up = [number for number in replicas if number in live and number not in adding]
            kafka.leader[tp] = next(iter(up), None)
            kafka.isr[tp] = frozenset(up) or kafka.isr[tp]

    async def observe_shortages(self) -> Mapping[str, Topic]:
        self.see()
        return self._kafka.snapshot().topics

    async def observe_brokers(self, logs_of: Callable[[Layout], Collection[int]]) -> BrokersRead:
        read = await super().observe_brokers(logs_of)
        await self.held.wait()
        return read

    async def configs(self, resources: Any) -> Read:
        known = [r for r in resources if r in self.client.store]
        return {r: None for r in resources if r not in known} | await super().configs(known)

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        outcomes: dict[Change, Outcome] = {}
        for change in changes:
            resource = change.key.resource
            if resource not in self.client.store:
                outcomes[change] = REFUSED
                continue
            if change.key.config == CORDONED_LOG_DIRS and change.value:
                self.cordons(int(resource.name))
            try:
                outcomes |= await super().change([change])
            except ApiServerError as error:
                outcomes[change] = _outcome(error)
        return outcomes

    async def perform(self, steps: Sequence[Step], still_valid: StillValid | None = None) -> dict[Step, Outcome]:
        before = set(self._kafka.reassignments)
        try:
            return await super().perform(steps, still_valid)
        except ApiServerError as error:
            return dict.fromkeys(steps, _outcome(error))
        finally:
            for tp in sorted(set(self._kafka.reassignments) - before):
                self.begins(tp, self._kafka.reassignments[tp])

    async def unregister(self, number: int, via: int | None) -> Outcome:
        try:
            return await super().unregister(number, via)
        except ApiServerError as error:
            return _outcome(error)

    # --- Others ---

    def may_get(self, row: Sequence[int]) -> bool:
        """Whether these may be the replicas of a partition that is made or moved: none is down or cordoned."""
        live = live_brokers(self._kafka.brokers)
        return {*row} <= live and not any(self.client.store[broker(n)].get(CORDONED_LOG_DIRS) for n in row)

    def make(self, tp: TopicPartition, row: Sequence[int]) -> None:
        self._kafka.add(tp, tuple(row))
        self.client.store.setdefault(topic(tp.topic), {})

    def delete_topic(self, name: str) -> None:
        kafka = self._kafka
        for tp in [tp for tp in kafka.replicas if tp.topic == name]:
            for known in (kafka.replicas, kafka.isr, kafka.leader, kafka.reassignments):
                known.pop(tp, None)  # type: ignore[attr-defined]
        kafka.topic_ids.pop(name, None)
        self.client.store.pop(topic(name), None)


def _outcome(error: ApiServerError) -> Outcome:
    return REFUSED if isinstance(error, RefusedError) else LOST


class Planning(Evacuation):
    """The operator's own, in this process."""

    def __init__(self, kafka: SimKafka, brokers: FailingBrokers) -> None:
        super().__init__(kafka)
        self._brokers = brokers

    async def __call__(self, job: Job) -> Planned | GoalSeen | WorkedOut:
        self._brokers.see()
        snapshot = self.kafka.snapshot()
        cluster = survey(snapshot)
        if job.owner:
            return worked_out(job, snapshot, cluster)
        return goal_seen(job, layout_seen(snapshot), cluster) if job.plan.planned else plan_of(job, cluster)


class Troubled(Decommissioning):
    """Six brokers with partitions on 1, 2, 3 and 5, and nothing that is to be decommissioned yet."""

    kube: FailingApiServer
    brokers: FailingBrokers

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        monkeypatch.setattr(time, "monotonic", self.clock.monotonic)
        monkeypatch.setattr(broker_watch, "read_only", self._read_only)
        monkeypatch.setattr(goal_watch, "read_only", self._read_only)
        monkeypatch.setattr(observer, "KafkaClient", SimpleNamespace(connect=self._connect))
        self.kafka = SimKafka({A: (1, 2), B: (3, 1), C: (2, 3), TopicPartition("a", 1): (5, 1)})
        self.store, self.kube, self.metrics = Store(self.clock.monotonic), FailingApiServer(self.clock), Metrics()
        self.brokers = FailingBrokers(self.kafka, self.kube)
        self.work = Planning(self.kafka, self.brokers)
        self.planner = Planner(self.work)
        self.copies, self.lags = True, 0
        self.put(api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"}))
        self.put(cluster_record("main"))
        self.loop = self.new_loop()
        self.events = asyncio.new_event_loop()
        self.errors: list[str] = []
        """Bugs, as they are logged."""
        self.log = self._begin_to_log()
        self.number = 0
        """Of the next object that a user makes."""

    def _begin_to_log(self) -> Iterator[None]:
        processors: list[Any] = structlog.get_config()["processors"]
        before = [*processors]

        def log(_: object, level: str, event: Any) -> Any:
            if level in ("error", "exception", "critical"):
                error = event.get("exc_info")
                if isinstance(error, BaseException):
                    event["exc_info"] = "".join(traceback.format_exception(error))
                self.errors.append(f"{event} {traceback.format_exc()}")
            raise structlog.DropEvent

        processors[:] = [log]

        def ends() -> Iterator[None]:
            yield
            processors[:] = before

        logs = ends()
        next(logs)
        return logs

    def close(self) -> None:
        """End the process and what was patched for it."""
        self._end_tasks()
        self.events.close()
        next(self.log, None)

    # --- The process ---

    def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks(self.events)
        for task in tasks:
            task.cancel()
        if tasks:
            self.events.run_until_complete(asyncio.wait(tasks))

    def restart(self) -> None:
        self._end_tasks()
        super().restart()

    def tick(self, times: int = 1, until: Callable[[], bool] | None = None, seconds: float = TICK, **_: bool) -> None:
        for _ in range(200 if until else times):
            self.clock.seconds += seconds
            self.watch()
            try:
                self.events.run_until_complete(self.tick_once())
            except KilledError:
                self.restart()
            self._go_on()
            if until and until():
                return
        assert until is None, "it did not come true"

    async def tick_once(self, *, safely: bool = True) -> None:
        await self.loop._safe_tick()
        for _ in range(8):
            await asyncio.sleep(0)

    def _go_on(self) -> None:
        """What is in flight comes to its end, and what is deleted goes."""
        self.brokers.see()
        live = live_brokers(self.kafka.brokers)
        for tp, move in list(self.kafka.reassignments.items()) if self.copies else ():
            if self.kafka.leader[tp] is not None and {*move.adding} <= live:
                self.kafka.copy(tp)
        self.brokers.see()
        self.kube.collect_garbage()
        self.lags = max(0, self.lags - 1)

    def watch(self) -> None:
        """The watches bring what has been written, unless they lag."""
        if self.lags:
            return
        objects = self.kube.objects
        for uid in self.store.uids() - objects.keys():
            self.store.drop(uid)
        for uid, obj in objects.items():
            known = self.store.get(uid)
            if known is None or known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self.store.put(deepcopy(obj))

    # --- Users ---

    def objects(self, kind: str) -> list[Object]:
        """Objects of a kind, by name."""
        found = [obj for obj in self.kube.objects.values() if obj["kind"] == kind]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    def make(self, kind: str, name: str, **spec: Any) -> None:
        """An object that a user makes, with a uid of its own."""
        self.number += 1
        obj = api_object(kind, name, {"clusterRef": {"name": "main"}} | spec)
        at = f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        obj["metadata"] |= {"uid": f"uid-{name}-no-{self.number}", "creationTimestamp": at}
        self.kube.objects[obj["metadata"]["uid"]] = obj

    def edit_spec(self, obj: Object, **spec: Any) -> None:
        def edit(new: Object) -> None:
            new["spec"] |= spec
            new["metadata"]["generation"] += 1

        if obj["metadata"]["uid"] in self.kube.objects:
            self.kube.write(obj["metadata"]["uid"], edit)

    # --- What is true ---

    def record_of(self, uid: str) -> Object:
        """What the record of a decommission says."""
        found = (o["spec"].get("decommission") for o in self.objects("ReassignmentRecord") if _owned_by(o, uid))
        return next((record for record in found if record), {})

    def is_approved(self, it: Object) -> bool:
        """Whether the spec of a decommission still has what gave the recorded approval."""
        approval, spec = self.record_of(it["metadata"]["uid"]).get("approval"), it["spec"]
        given = spec.get("approval") == "NotRequired" or (approval or {}).get("digest") == spec.get("approvedDigest")
        return bool(approval) and given

    def is_finished(self, it: Object) -> bool:
        """Whether all brokers of a decommission were seen empty and no longer registered."""
        known = self.record_of(it["metadata"]["uid"]).get("brokers", ())
        return {*it["spec"]["brokers"]} == {each["id"] for each in known if each.get("seenUnregistered")}

    def wants_cordon(self, it: Object) -> bool:
        unwanted = (
            self.is_finished(it) or it["spec"].get("cordon") == "Never" or it["metadata"].get("deletionTimestamp")
        )
        return self.is_approved(it) and not unwanted and self.execution in ("Run", "Pause")

    @property
    def execution(self) -> str:
        return str(self.kube.objects["uid-main"]["spec"].get("execution", "Run"))

    def is_empty(self, it: Object, number: int) -> bool:
        """Whether no counted topic has a replica, a move or a log on a broker."""
        moving = [(tp, (*m.replicas, *m.adding)) for tp, m in self.kafka.reassignments.items()]
        named = {tp.topic for tp, row in (*self.kafka.replicas.items(), *moving) if number in row}
        return all(matches(name, it["spec"].get("excludeTopics", ())) for name in named)

    def owner_of(self, wave: Object) -> tuple[Object, Object] | None:
        """The plan of a wave and the decommission that made it."""
        labels = wave["metadata"].get("labels", {})
        plan = self.kube.objects.get(labels.get(PLAN_UID_LABEL, ""))
        owners = [
            self.kube.objects.get(o["uid"]) for o in (plan or {"metadata": {}})["metadata"].get("ownerReferences", ())
        ]
        return (plan, owners[0]) if plan and owners and owners[0] else None

    def why_not_start(self, wave: Object) -> str | None:
        """Say why a wave may not start, by what the API server has now."""
        if (found := self.owner_of(wave)) is None:
            return "nobody owns its plan"
        plan, it = found
        record, spec = self.record_of(it["metadata"]["uid"]), it["spec"]
        known = record.get("plan", {})
        names = [one["name"] for one in plan["status"]["waves"]]
        checks = {
            "it is not approved": self.is_approved(it) and bool(known.get("approved")),
            "it is suspended": not spec.get("suspend"),
            "its owner is deleted": not it["metadata"].get("deletionTimestamp"),
            "its plan is not the recorded one": known.get("uid") == plan["metadata"]["uid"],
            "its plan is retired": not known.get("retired"),
            "it is not recorded": names.index(wave["metadata"]["name"]) < known.get("begunWaves", 0),
        }
        return next((why for why, holds in checks.items() if not holds), None)

    def holders(self, tp: TopicPartition) -> list[Object]:
        """The PartitionReassignments whose records hold a partition."""
        uids = {owner["uid"] for r in self.objects("ReassignmentRecord") if tp in self._held(r) for owner in _owners(r)}
        return [obj for uid, obj in self.kube.objects.items() if uid in uids]

    def held_twice(self) -> list[TopicPartition]:
        """Partitions that two records hold."""
        held = Counter(tp for record in self.objects("ReassignmentRecord") for tp in self._held(record))
        return [tp for tp, times in held.items() if times > 1]

    def _held(self, record: Object) -> set[TopicPartition]:
        entries = active(read_record(ReassignmentRecordSpec.parse(record["spec"]).topics))
        return {tp for tp, entry in entries.items() if entry.topic_id == self.kafka.topic_ids.get(tp.topic)}


def _owners(obj: Object) -> list[Object]:
    owners: list[Object] = obj["metadata"].get("ownerReferences", [])
    return owners


def _owned_by(obj: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in _owners(obj))
