"""A ReassignmentPlan in the loop of its KafkaCluster, with planning that answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

from reassign.api.goal import By
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL, Shares
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans.job import Job, planned
from reassign.controller.plans.planner import Planner
from reassign.core.model.layout import layout_seen
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.goal import not_reached
from reassign.core.plans.model import GoalSeen, Planned
from reassign.planning.problem import model
from tests.unit.sim import SimKafka
from tests.unit.world import LATER, OURS, THEIRS, Brokers, Kube, Object, World, api_object, cluster_record

NEW = (4, 2, 3)
GOAL = {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}}


class Work:
    """Planning: a wave for each partition that is on broker 1, or what it is told to come to; and what came of it."""

    def __init__(self, kafka: SimKafka) -> None:
        self.kafka = kafka
        self.jobs: list[Job] = []
        self.looks = 0
        """How often the cluster was compared with the goal."""
        self.fails: Exception | None = None
        self.blind: Exception | None = None
        """Why an observation of the goal fails."""
        self.partitions: tuple[TopicPartition, ...] = (OURS, LATER)

    async def __call__(self, job: Job) -> Planned | GoalSeen:
        if job.plan.planned:
            self.looks += 1
            if self.blind:
                raise self.blind
            layout = layout_seen(self.kafka.snapshot())
            even = (Shares(by=By.DISK, least_percent=93, greatest_percent=107),)
            return GoalSeen(not_reached(job.plan, layout, job.allowed), even)
        self.jobs.append(job)
        if self.fails:
            raise self.fails
        moved = [tp for tp in self.partitions if self.kafka.replicas[tp] != NEW]
        manifests = [self._manifest(job, number, tp) for number, tp in enumerate(moved, 1)]
        certificate = model.Certificate(
            bytes=200,
            bytes_bound=199,
            moves=2,
            moves_bound=2,
            leaders=1,
            balance=(model.Balance(By.DISK, (0.0, 5.408), (0.905, 1.091), 1.0, (0.9, 1.1)),),
            waves=len(moved),
            waves_bound=1,
        )
        return planned(job.plan, manifests, certificate, {(tp.topic, 0): 100 for tp in moved})

    def _manifest(self, job: Job, number: int, tp: TopicPartition) -> Object:
        entry = {"topic": tp.topic, "partition": 0, "replicas": list(NEW), "expectedReplicas": [1, 2, 3]}
        spec = {"clusterRef": job.plan.spec.cluster_ref.wire(), "partitions": [entry], "suspend": True}
        labels = {PLAN_LABEL: job.plan.name, PLAN_UID_LABEL: job.plan.uid}
        metadata = {"name": f"{job.plan.wave_prefix}-{number}", "namespace": job.plan.namespace, "labels": labels}
        version = "kafka.reassign.dev/v1alpha1"
        return {"apiVersion": version, "kind": "PartitionReassignment", "metadata": metadata, "spec": spec}


class Planning(World):
    """A plan that moves OURS and LATER off broker 1; nothing else is in flight."""

    def __init__(self) -> None:
        partitions = (OURS, THEIRS, LATER)
        sizes = {tp: dict.fromkeys(range(6), 100) for tp in partitions}
        self.kafka = SimKafka(dict.fromkeys(partitions, (1, 2, 3)), sizes=sizes)
        self.store, self.kube, self.metrics = Store(), Kube(), Metrics()
        self.brokers = Brokers(self.kafka, self.kube)
        self.work = Work(self.kafka)
        self.planner = Planner(self.work)
        self.put(api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"}))
        self.put(cluster_record("main"))
        self.loop = self.new_loop()
        self.put(api_object("ReassignmentPlan", "drain", deepcopy(GOAL)))

    def tick(self, times: int = 1, until: Callable[[], bool] | None = None) -> None:
        """As the loop of the operator: what is begun in one tick goes on between it and the next."""

        async def ticks() -> None:
            for _ in range(40 if until else times):
                await self.tick_once()
                for tp in list(self.kafka.reassignments):
                    self.kafka.copy(tp)
                if until and until():
                    return
            assert until is None, "it did not come true"

        asyncio.run(ticks())

    async def tick_once(self) -> None:
        await self.loop._tick()
        for _ in range(5):
            await asyncio.sleep(0)

    @property
    def plan(self) -> Object:
        return self.kube.objects["uid-drain"]

    @property
    def status(self) -> Object:
        status: Object = self.plan["status"]
        return status

    def says(self, reason: str) -> bool:
        ready = [c for c in self.status.get("conditions", ()) if c["type"] == "Ready"]
        return bool(ready) and ready[0]["reason"] == reason

    def message(self) -> str:
        return next(c["message"] for c in self.status["conditions"] if c["type"] == "Ready")

    @property
    def goal(self) -> Object:
        """The condition GoalMet."""
        return next(c for c in self.status["conditions"] if c["type"] == "GoalMet")

    def waves(self) -> list[Object]:
        found = [obj for obj in self.kube.objects.values() if PLAN_LABEL in obj["metadata"].get("labels", {})]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    def approve(self) -> None:
        self.change("drain", lambda obj: obj["spec"].update(approvedDigest=self.status["digest"]))
