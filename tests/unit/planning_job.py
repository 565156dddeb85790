"""A job of the planner."""

from __future__ import annotations

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.controller.plans.job import Job
from reassign.core.plans.model import PlanResource
from reassign.kafka.connection import Connection
from tests.unit.world import api_object

WAY = Connection("b:9092")
SPEC = {
    "clusterRef": {"name": "main"},
    "goal": {"drainBrokers": [1], "replicationFactor": 3, "balance": {"by": ["Disk"], "tolerancePercent": 5}},
    "waves": {"maxPartitions": 1, "maxBytes": "1Gi"},
    "racks": {"awareness": "Flat"},
    "template": {"throttle": {"interBroker": "2Mi"}},
}


def job(*, cluster_id: str = "sim", **spec: object) -> Job:
    parsed = ReassignmentPlanSpec.parse(SPEC | spec)
    plan = PlanResource("uid", 1, "team-a", "drain", 3, parsed, ReassignmentPlanStatus(), True)
    cluster = api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"})
    return Job(plan, KafkaCluster.parse(cluster), cluster_id, WAY, ("*",))
