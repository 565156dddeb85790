"""ReassignmentPolicies in the loop of their KafkaCluster, beside BrokerDecommissions."""

from __future__ import annotations

from typing import Any

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.controller.plans.job import Job
from reassign.core.model.snapshot import Broker, TopicPartition, live_brokers
from tests.unit.configs import broker
from tests.unit.decommission_world import Decommissioning, Evacuation
from tests.unit.world import Object, api_object

LOST = {"name": "lost", "brokerLost": {"afterSeconds": 60}}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 60}}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 60, "belowPercent": 80}}
NIGHTLY = {"name": "nightly", "schedule": {"cron": "0 2 * * *"}}
TEMPLATE = {"goal": {"balance": {"by": ["Replicas"]}}}
Moves = list[tuple[TopicPartition, tuple[int, ...], tuple[int, ...]]]


class Placement(Evacuation):
    """Planning of plans that balance replicas, too: a wave for each move from the fullest broker to the emptiest."""

    balanced = False
    """Whether a plan that balances finds nothing to move."""

    def stays(self, job: Job) -> tuple[str, ...]:
        """Partitions that would be on a cordoned broker stay: Kafka refuses such an assignment."""
        refused = [tp for tp, _, after in super().moves(job) if self._cordoned(job) & {*after}]
        return (*self.incomplete, *map(str, refused if job.plan.spec.goal.drains else ()))

    def _cordoned(self, job: Job) -> set[int]:
        return {*self.kafka.cordons} - job.lifted

    def moves(self, job: Job) -> Moves:
        goal = job.plan.spec.goal
        if goal.drains:
            return [move for move in super().moves(job) if not self._cordoned(job) & {*move[2]}]
        if self.balanced:
            return []
        hosts = sorted(live_brokers(self.kafka.brokers) - {*(goal.avoid_brokers or ())} - self._cordoned(job))
        free = {tp: row for tp, row in sorted(self.kafka.replicas.items()) if tp not in self.kafka.reassignments}
        before = {tp: row for tp, row in free.items() if not self._cordoned(job) & {*row}}
        after = dict(before)
        while True:
            load = {number: sum(number in row for row in after.values()) for number in hosts}
            full, bare = max(hosts, key=load.__getitem__), min(hosts, key=load.__getitem__)
            movable = [tp for tp, row in after.items() if full in row and bare not in row and row == before[tp]]
            if load[full] - load[bare] < 2 or not movable:
                return [(tp, before[tp], row) for tp, row in after.items() if row != before[tp]]
            row = after[movable[0]]
            after[movable[0]] = tuple(bare if number == full else number for number in row)


class Policing(Decommissioning):
    """Partitions A, B and C lie on brokers 1, 2 and 3. The policy `main` is there, and no decommission."""

    planning = Placement
    work: Placement

    def begin(self, **spec: Any) -> None:
        self.apply_policy(**spec)

    def apply_policy(self, name: str = "main", **spec: Any) -> None:
        """One more policy is created; its uid is not that of the KafkaCluster."""
        defaults = {"clusterRef": {"name": "main"}, "triggers": [LOST], "planTemplate": TEMPLATE, "settleSeconds": 60}
        obj = api_object("ReassignmentPolicy", name, defaults | spec)
        obj["metadata"] |= {"uid": uid(name), "creationTimestamp": f"{self.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
        self.put(obj)

    def apply_plan(self, name: str, **goal: Any) -> None:
        """A user's plan, which needs no approval, is created."""
        spec = {"clusterRef": {"name": "main"}, "goal": goal, "approval": "NotRequired"}
        self.put(api_object("ReassignmentPlan", name, spec))

    # --- Users, and brokers ---

    def edit_policy(self, name: str = "main", **spec: Any) -> None:
        self.change(uid(name).removeprefix("uid-"), lambda obj: obj["spec"].update(spec))

    def approve_policy(self, name: str = "main") -> None:
        self.edit_policy(name, approvedDigest=self.policy(name)["digest"])

    def up(self, *numbers: int) -> None:
        for number in numbers:
            self.kafka.brokers[number] = Broker(number, f"r{number}")

    def cordon(self, number: int, text: str | None = "*") -> None:
        """Another client cordons a broker, or lifts its cordon."""
        store = self.brokers.client.store[broker(number)]
        store.pop(CORDONED_LOG_DIRS, None)
        store.update({} if text is None else {CORDONED_LOG_DIRS: text})

    # --- What there is ---

    def policy(self, name: str = "main") -> Object:
        """The status of a policy."""
        status: Object = self.kube.objects[uid(name)]["status"]
        return status

    def ready_of(self, name: str = "main") -> str | None:
        """The reason of Ready."""
        conditions = self.policy(name).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    def trigger(self, trigger: str, name: str = "main") -> tuple[str | None, str | None]:
        """The state of a trigger, with its reason."""
        triggers: list[Object] = self.policy(name).get("triggers", [])
        return next(((t["state"], t.get("reason")) for t in triggers if t["name"] == trigger), (None, None))

    def outcomes(self, name: str = "main") -> list[tuple[str, str]]:
        return [(plan["name"], plan["outcome"]) for plan in self.policy(name).get("plans", ())]

    def active_waves(self) -> list[Object]:
        """Waves that have a partition in flight."""
        moving = {tp.topic for tp in self.kafka.reassignments}
        under_way = [wave for wave in self.waves() if "completionTime" not in wave["status"]]
        let_go = [wave for wave in under_way if not wave["spec"].get("suspend")]
        return [wave for wave in let_go if moving & {entry["topic"] for entry in wave["spec"]["partitions"]}]

    def policy_record(self, name: str = "main") -> Object:
        """What the record of a policy says."""
        return self._recorded(uid(name).removeprefix("uid-"), "policy")

    def said(self) -> str:
        policies = [obj["status"] for obj in self.kube.objects.values() if obj["kind"] == "ReassignmentPolicy"]
        return f"{policies}; {self.reason()}"


def uid(policy: str) -> str:
    return f"uid-policy-{policy}"
