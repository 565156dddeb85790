"""The loop of one KafkaCluster: observe, decide, act, report.

What must survive a crash is recorded before the act that needs it, and nothing is altered before our finalizer
has been seen on the object. Events only wake the loop; it ticks anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import structlog
from structlog.contextvars import bind_contextvars

from reassign.api.kafka_cluster import KafkaCluster, ThrottleDeletionPolicy
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller.cluster.actor import Actor
from reassign.controller.cluster.automation import AutomationStage
from reassign.controller.cluster.foreign_cancels import ForeignCancels
from reassign.controller.cluster.last_check import LastCheck
from reassign.controller.cluster.observer import Observation, Observer
from reassign.controller.cluster.outage import Outage
from reassign.controller.cluster.pace import AT_ONCE_SECONDS, MOVING_SECONDS, DriftTurn, Pace
from reassign.controller.cluster.parts import KEEPS, Parts
from reassign.controller.cluster.unserved import Unserved
from reassign.controller.metrics import Metrics
from reassign.controller.objects.reading import named
from reassign.controller.objects.store import Store
from reassign.controller.plans.broker_watch import BrokerWatch
from reassign.controller.plans.goal_watch import GoalWatch
from reassign.controller.plans.orders import Orders
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health
from reassign.controller.writing.config_record import ConfigRecord
from reassign.controller.writing.writer import Writer
from reassign.core.admission.pacing import take_sample
from reassign.core.brake import CANCELS_MAY_LAND
from reassign.core.cluster import (
    ClusterHold,
    brake_of,
    cordons_left,
    hold_now,
    orphaned_throttles,
    rules_of,
    unknown_hold,
)
from reassign.core.configs.drift import repeated_drift
from reassign.core.configs.stage import left_to_restore
from reassign.core.duplicates import abandoned, not_taken_over
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.configs import ConfigResource
from reassign.core.model.problem import Problem, bug_problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.steps import Outcome, Result
from reassign.core.plans.model import ObservedCluster
from reassign.core.tick import Memory, decide, doubts, gate, kept, marked, recorded, settle, unanswered
from reassign.errors import ConflictError, Reason, ReassignError
from reassign.kube.client import ClusterKey, KubeClient, Object
from reassign.kube.lease import LeaseLost

log = structlog.get_logger()

CONFLICT_SECONDS, IDLE_SECONDS = 0.5, 15.0
WAITING_SECONDS = UNREACHABLE_SECONDS = 5.0


class Prepared(NamedTuple):
    """What one reconciliation serves."""

    obj: Object
    cluster: KafkaCluster
    resources: Sequence[Resource]
    awaited: Sequence[str]
    """What keeps the KafkaCluster from being deleted."""
    throttle: RecordedConfigs | None
    """The record of its throttles."""
    unwritten: list[Problem]
    """What writes to our own objects have met so far."""


@dataclass(slots=True)
class ClusterLoop:
    """Serves one KafkaCluster until it is gone."""

    key: ClusterKey
    store: Store
    kube: KubeClient
    writer: Writer
    metrics: Metrics
    health: Health
    before_write: Callable[[], None]
    plans: Plans
    installation: str = ""
    """What all pods of this installation share; without it no claim on the Kafka cluster is kept."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Makes it tick at once."""
    parts: Parts = field(init=False)
    observer: Observer = field(init=False)
    actor: Actor = field(init=False)
    unserved: Unserved = field(init=False)
    outage: Outage = field(init=False)
    goals: GoalWatch = field(init=False)
    automation: AutomationStage = field(init=False)
    foreign_cancels: ForeignCancels = field(init=False)
    memory: Memory = field(default_factory=lambda: Memory.begin(time.monotonic()))
    _pace: Pace = field(default_factory=Pace)
    _reads: frozenset[ConfigResource] = frozenset()
    _stuck: Problem | None = None
    """Why the brake had not undone everything at the last tick."""
    _bug: Problem | None = None
    """What the last tick ended with; the next one says it, so that it does not come and go within each."""
    _drift: DriftTurn = field(default_factory=DriftTurn)

    def __post_init__(self) -> None:
        self.parts = Parts(self.key, self.writer)
        self.foreign_cancels = ForeignCancels(self.store, self.parts)
        self.observer = Observer(self.kube, self.before_write, self.installation)
        record = ConfigRecord(self.key, self.store, self.writer, self.metrics)
        self.unserved = Unserved(self.key, self.store, self.writer, self.metrics, self.plans)
        self.actor = Actor(self.key, self.store, self.kube, self.writer, self.metrics, record)
        self.outage = Outage(self.name, self.metrics)
        self.goals = GoalWatch(self.unserved.problem_of)
        self.automation = AutomationStage(self.key, self.plans.automation, BrokerWatch(self.unserved.problem_of))

    @property
    def name(self) -> str:
        return "/".join(self.key)

    async def run(self) -> None:
        """Tick until the KafkaCluster is gone; end with the connection closed."""
        self.metrics.serve(self.name, lambda: self.store.conditions(self.key))
        try:
            self.health.tick(self.name)
            while (pause := await self._safe_tick()) is not None:
                self.health.tick(self.name)
                await self._pace.rest(pause, self.wake, self.observer.has_ended)
            await self.observer.give_up_claim()
        finally:
            self.health.forget(self.name)
            self.metrics.forget(self.name)
            await self.goals.stop()
            await self.automation.watch.stop()
            await self.observer.close()

    async def _safe_tick(self) -> float | None:
        self.wake.clear()
        try:
            with self.metrics.reconciliation(self.name):
                pause = await self._tick()
            self._bug = None
            return pause
        except ConflictError:
            with suppress(ReassignError):
                await self.writer.refresh_cluster(self.key)
            return CONFLICT_SECONDS
        except ReassignError as error:
            log.warning("reconciliation failed", reason=error.reason, error=error.message)
            return UNREACHABLE_SECONDS
        except LeaseLost as error:
            log.warning("nothing is written any more", error=str(error))
            return UNREACHABLE_SECONDS
        except Exception as error:
            log.exception("reconciliation failed unexpectedly")
            self._bug = bug_problem(error, KEEPS)
            return UNREACHABLE_SECONDS

    async def _tick(self) -> float | None:
        obj = self.store.cluster(self.key)
        if obj is None:
            return None
        bind_contextvars(**named(obj))
        with self.parts.tick():
            try:
                with self._drift.tick():
                    pause = await self._reconcile(obj)
            finally:  # what cannot be read waits for no other object, and none for it
                await self.unserved.answer_for_unreadable()
        return pause

    async def _reconcile(self, obj: Object) -> float | None:
        """Serve what can be read; return in how many seconds to tick again, None when the KafkaCluster is released."""
        unwritten: list[Problem] = []
        await self.parts.write(self.writer.records.look_for_owners(self.key, self.writer.now()), unwritten)
        try:
            cluster = self.store.parse_cluster(obj)
        except ReassignError as error:
            problem = Problem(error.reason, error.message)
            self.store.note_served(obj["metadata"]["uid"], problem)
            released = await self.unserved.cannot_read(obj, problem)
            return None if released else UNREACHABLE_SECONDS
        prepared = await self._prepare(obj, cluster, unwritten)
        if prepared is None:
            return None
        try:
            observed = await self._observe(prepared)
        except Exception as error:
            return await self._stand_still(prepared, self.unserved.problem_of(error))
        if self.store.cluster_id(cluster.metadata.uid) is None and await self._pin(prepared, observed):
            return AT_ONCE_SECONDS
        return await self._serve(prepared, observed)

    async def _prepare(self, obj: Object, cluster: KafkaCluster, unwritten: list[Problem]) -> Prepared | None:
        """Find what to serve, and keep the KafkaCluster for it; return None when it is released instead."""
        if self.actor.config_record.made_anew(cluster):
            self.memory = replace(self.memory, throttle=replace(self.memory.throttle, compared=False))
        admitted = await self.unserved.refuse(cluster)
        awaited = self.unserved.unsettled(cluster, admitted)
        throttle = self.actor.config_record.recorded
        nothing_to_restore = throttle is None or cluster.spec.deletion_policy is ThrottleDeletionPolicy.ORPHAN
        if cluster.metadata.deletion_timestamp and nothing_to_restore and not awaited and not unwritten:
            await self._release(obj, throttle)
            return None
        await self.parts.write(self.writer.keep_cluster(obj), unwritten)
        if cluster.status.observed_generation is None:
            connecting = Problem(Reason.CONNECTING, f"connecting to {cluster.spec.bootstrap_servers}")
            await self.parts.write(self.writer.write_unready_cluster(self.key, connecting, self.writer.now()), [])
        return Prepared(obj, cluster, self._due(cluster, admitted), awaited, throttle, unwritten)

    async def _release(self, obj: Object, throttle: RecordedConfigs | None) -> None:
        self.store.note_served(obj["metadata"]["uid"], Problem(Reason.CLUSTER_DELETED, "it is being released"))
        if throttle:
            await self.writer.record_cluster_event(self.key, orphaned_throttles(throttle))
        await self.writer.release_object(obj)

    async def _observe(self, prepared: Prepared) -> Observation:
        """Read from Kafka what the decision needs, and remember what that shows."""
        cluster, resources, throttle = prepared.cluster, prepared.resources, prepared.throttle
        self.outage.begin()
        in_doubt = doubts(resources, throttle, self.memory)
        pinned = self.store.cluster_id(cluster.metadata.uid)
        observed = await self.observer.observe(cluster, pinned, resources, throttle, self.automation.cordons, in_doubt)
        self.memory = replace(self.memory, recent=observed.remembered_by(self.memory.recent))
        explain = self.unserved.problem_of
        reads = self._reads
        observed = await self.observer.complete(
            observed, cluster, resources, reads, throttle, self.automation.lost, explain
        )
        self.outage.observed()
        return observed

    async def _pin(self, prepared: Prepared, observed: Observation) -> bool:
        """Record the id of the Kafka cluster before anything else; return whether it is there now.

        Of two KafkaClusters that are made at once, each then sees the other. Definitions of an earlier version drop the
        id, and without it everything else goes on.
        """
        pin = self.writer.records.pin(prepared.cluster, observed.snapshot.cluster_id)
        await self.parts.write(pin, prepared.unwritten)
        return self.store.cluster_id(prepared.cluster.metadata.uid) is not None

    async def _take_over_throttles(self, cluster: KafkaCluster, snapshot: Snapshot) -> tuple[bool, Problem | None]:
        """Take over the throttles of KafkaClusters that can restore nothing.

        Return whether any were, and why others were not: then nothing is set for this one.
        """
        taken, problem = False, None
        for peer in abandoned(cluster, snapshot, self.store.peers(), self.store.clock()):
            met: list[Problem] = []
            taken |= await self.parts.write(self.writer.records.take_over(cluster, peer.uid), met)
            problem = problem or (not_taken_over(peer, met[0]) if met else None)
        return taken, problem

    async def _serve(self, prepared: Prepared, observed: Observation) -> float | None:
        """Serve the resources, then the plans; return in how many seconds to tick again, None when released."""
        obj, cluster, resources, awaited, throttle, unwritten = prepared
        takes_over = self._take_over_throttles(cluster, observed.snapshot)
        taken, left = await self.parts.attempt(takes_over, lambda problem: (False, problem))
        if taken:
            return AT_ONCE_SECONDS
        try:
            hold = replace(self._hold(cluster, observed, resources, awaited), left=left)
        except Exception as error:
            hold = unknown_hold(self.parts.failed(error))
        seen_again = await self.parts.attempt(self._decide_automation(prepared, observed, hold), lambda _: None)
        cordons = rules_of(cluster, hold, throttle, self.automation.cordons).wanted_cordons
        # a peer decides by that from now on
        self.store.note_served(cluster.metadata.uid, hold.hold, keeps=hold.keeps, cordons=cordons)
        if self.key[0] not in self.store.unreadable_namespaces:
            await self.parts.write(self.actor.report_cluster(cluster, observed.snapshot, resources, hold), unwritten)
        last = unwritten[-1] if unwritten else None
        hold = replace(hold, hold=hold.hold or last)
        await self.foreign_cancels.forget(cluster, self.memory.recent)
        rules = rules_of(cluster, hold, throttle, self.automation.cordons)
        sleep = await self._act(obj, resources, observed, rules)
        if hold.claim and hold.claim.undecided:
            sleep = min(sleep, MOVING_SECONDS)
        orders, decided_again = await self.parts.attempt(self.automation.perform(), lambda _: (None, None))
        seen = hold.hold or observed.snapshot
        plans = await self.parts.attempt(self._serve_plans(cluster, resources, seen, orders), lambda _: None)
        if cluster.metadata.deletion_timestamp and not awaited and not self._restores(observed.snapshot, rules):
            if event := cordons_left(self.actor.config_record.recorded):
                await self.writer.record_cluster_event(self.key, event)
            await self.writer.release_object(self.store.cluster(self.key) or obj)
            return None
        past_windows = self.plans.past_windows(self.key, self.writer.now())
        self.metrics.automated(self.name, self.automation.figures, past_windows)
        pauses = (
            plans,
            seen_again,
            decided_again,
            CONFLICT_SECONDS if last and last.reason is Reason.CONFLICT else None,
        )
        return min([sleep, *(pause for pause in pauses if pause is not None)])

    async def _decide_automation(self, prepared: Prepared, observed: Observation, hold: ClusterHold) -> float | None:
        """Decide about the owners of plans; return in how many seconds there is more to see, or None."""
        client, connection = self.observer.client, self.observer.connection
        assert client is not None
        assert connection is not None
        cluster, throttle = prepared.cluster, prepared.throttle
        pinned = self.store.cluster_id(cluster.metadata.uid)
        return await self.automation.decide(
            cluster, pinned, hold, throttle, observed.snapshot, client, connection, self.wake.set
        )

    async def _serve_plans(
        self, cluster: KafkaCluster, resources: Sequence[Resource], seen: ObservedCluster, orders: Orders | None
    ) -> float | None:
        """Serve the plans, with what was read of their goals; return in how many seconds to do so again, or None."""
        connection, wake, settled = self.observer.connection, self.wake.set, self.memory.recent.settled
        assert connection is not None
        pinned = self.store.cluster_id(cluster.metadata.uid)
        goals = self.goals.look(connection, pinned, self.plans.watched(self.key), wake)
        return await self.plans.serve_cluster(cluster, resources, seen, connection, wake, goals, settled, orders)

    def _restores(self, snapshot: Snapshot, rules: ClusterRules) -> bool:
        """Whether throttles or cordons are left to restore, of brokers that may come back soon."""
        memory = self.memory
        given_up = memory.throttle.cordons.given_up(memory.recent.now)
        return left_to_restore(self.actor.config_record.recorded, snapshot.brokers, rules.wanted_cordons | given_up)

    async def _act(
        self, obj: Object, resources: Sequence[Resource], observed: Observation, rules: ClusterRules
    ) -> float:
        """Decide, act and report; return in how many seconds to tick again."""
        client, began = self.observer.client, time.monotonic()
        attempts = self.unserved.attempts(lambda: self.health.tick(self.name))
        assert client is not None
        decision = decide(resources, observed.snapshot, observed.configs, self.memory, rules, self.writer.now())
        self.memory, self._reads = decision.memory, decision.throttle.reads
        self.automation.note_cordons(decision.throttle.cordons, self.memory.throttle.cordons)
        ended = self._pace.ended(observed.snapshot.reassignments.keys())
        changes = decision.throttle.changes
        changed = await self.parts.attempt(
            self.actor.throttle(decision, client), lambda p: dict.fromkeys(changes, _lost(p))
        )
        decision = gate(decision, changed, time.monotonic())
        self.memory = decision.memory
        check = LastCheck(self.writer, attempts, obj, {v.resource.uid: v for v in decision.verdicts})
        # without records nothing begins, and what is to be undone waits for no API server
        written = await self.parts.attempt(self.actor.record(decision, rules, attempts), lambda _: {})
        decision = recorded(decision, written, attempts.refused)
        decision = kept(decision, await self.parts.attempt(self.actor.copies.keep(decision.keep), lambda p: p))
        if decision.brake and decision.brake.cancels:
            mark = self.foreign_cancels.mark(self.store.parse_cluster(obj))
            decision = marked(decision, await self.parts.attempt(mark, lambda p: p))
        self.memory, steps = unanswered(decision, time.monotonic()), decision.steps
        outcomes = await self.parts.attempt(
            self.actor.act(decision, client, check), lambda p: dict.fromkeys(steps, _lost(p))
        )
        decision = settle(decision, outcomes, time.monotonic(), check.refused)
        self.memory, self._stuck = decision.memory, decision.brake.problem if decision.brake else None
        await attempts.each(decision.verdicts, lambda v: self.actor.report(v, decision.snapshot, rules))
        for resource, error in decision.errors:
            if resource is None:
                self.parts.failed(error)
                continue
            async with attempts.at(resource):
                raise error
        self.metrics.decided(self.name, decision, rules.limits.partitions_in_flight)
        if attempts.conflict:
            return CONFLICT_SECONDS
        applied = any(outcome.result is Result.APPLIED for outcome in outcomes.values())
        if self.actor.written or decision.throttle.awaited or applied or ended:
            return self._pace.at_once()
        served = [v for v in decision.verdicts if v.resource.uid not in attempts.refused or active(v.record)]
        moving = any(active(v.record) or v.waits_to_settle for v in served)
        if moving or decision.brake or self._restores(observed.snapshot, rules):
            return self._pace.later(time.monotonic() - began)
        waits = any(not (r.settled or r.spec.suspend) for r in resources) or decision.throttle.cordons_awaited
        return WAITING_SECONDS if waits else IDLE_SECONDS

    def _due(self, cluster: KafkaCluster, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Return the resources to judge now. Some of the settled ones are judged for drift, now and then.

        Outside the windows of its plan a wave begins nothing, before the plan has suspended it too.
        """
        waves, closed = self.plans.next_waves(self.key), self.plans.outside_windows(self.key, self.writer.now())
        rest = {r.uid: r for r in resources if r.settled or (r.asleep and r.uid not in waves)}
        turn = self._drift.next([*rest.values(), *self.unserved.settled(cluster)]) if self._drift.now else ()
        due = [r for r in resources if r.uid not in rest] + [r for uid in turn if (r := self.store.resource(uid))]
        return [_suspended(r) if r.uid in closed else r for r in due]

    def _hold(
        self, cluster: KafkaCluster, observed: Observation, resources: Sequence[Resource], awaited: Sequence[str]
    ) -> ClusterHold:
        short, snapshot = observed.short, observed.snapshot
        sample = None if short is None else take_sample(short, snapshot, resources, self.memory.recent)
        pacer = self.memory.pacer.pace(cluster.spec.limits, cluster.status.pacing, self.writer.now(), sample)
        self.memory = replace(self.memory, pacer=pacer)
        store, claim = self.store, observed.claim
        peers, unreadable = store.peers(), store.unreadable_namespaces
        throttle = self.actor.config_record.recorded
        hold = hold_now(cluster, snapshot, peers, awaited, throttle, store.clock(), claim, unreadable)
        first = brake_of(cluster.spec.execution) or hold.pause
        last = CANCELS_MAY_LAND if self.foreign_cancels.may_land(cluster, self.memory.recent) else None
        return replace(
            hold,
            pause=first or observed.paused.everything or last,
            pauses={uid: first or pause or last for uid, pause in observed.paused.of_plans.items()},
            stuck=self._bug or self._stuck,
            pacing=pacer.status,
            drift=repeated_drift(self.memory.throttle.recent),
        )

    async def _stand_still(self, prepared: Prepared, problem: Problem) -> float:
        """Say why the cluster cannot be observed, if that lasts; return in how many seconds to try again."""
        if not self.outage.failed(problem):
            return MOVING_SECONDS
        cluster, resources = prepared.cluster, prepared.resources
        self.store.note_served(cluster.metadata.uid, problem)
        await self.automation.have_wait(cluster, prepared.throttle, problem)
        await self.unserved.stand_still(cluster, problem, resources, self.observer.connection, self.wake.set)
        return UNREACHABLE_SECONDS


def _suspended(wave: Resource) -> Resource:
    return wave if wave.spec.suspend else replace(wave, spec=wave.spec.model_copy(update={"suspend": True}))


def _lost(problem: Problem) -> Outcome:
    """Return the outcome of what may have been done before this went wrong."""
    return Outcome(Result.UNKNOWN, problem.reason, problem.message)
