"""The loop of a KafkaCluster cordons brokers, says so, and is held up by no cordon that it wants or cannot lift."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.controller.cluster.automation import AutomationStage
from reassign.controller.cluster.loop import IDLE_SECONDS, MOVING_SECONDS
from reassign.controller.plans.automation import AT_ONCE_SECONDS
from reassign.core.configs.cordons import GIVEN_UP_SECONDS, CordonReason, recorded_cordons
from reassign.core.model.snapshot import Broker
from tests.unit.configs import broker, copy
from tests.unit.throttled_brokers import NOTHING_SET, Client
from tests.unit.throttling import grow_up, show_changes
from tests.unit.world import OURS, Object, World


@dataclass(slots=True)
class Wished(AutomationStage):
    """Decides that these brokers are to be cordoned."""

    brokers: frozenset[int] = frozenset()

    async def decide(self, *_: object) -> float | None:
        self.cordons = self.brokers
        return None


class Cordoning:
    """A world of an operator that has been running for long, and has nothing to move; its brokers take cordons."""

    def __init__(self) -> None:
        self.world = World()
        for tp in list(self.world.kafka.reassignments):
            self.world.kafka.copy(tp)
        self.client = Client(copy(NOTHING_SET))
        self.world.brokers.configs, self.world.brokers.change = self.client.configs, self.client.change  # type: ignore[method-assign]
        grow_up(self.world.loop)
        stage = self.world.loop.automation
        self.wished = self.world.loop.automation = Wished(stage.key, stage.automation, stage.watch)
        self.world.tick(until=lambda: self.world.conditions("move").get("Succeeded") is not None)

    def tick(self, until: Callable[[], bool]) -> None:
        def shown() -> bool:
            self.see()
            return until()

        self.see()
        self.world.tick(until=shown)

    def see(self) -> None:
        """Some seconds pass: brokers and reads show what was changed."""
        show_changes(self.world.loop)
        self.world.loop.observer._sized_at = float("-inf")
        store = self.client.store
        self.world.kafka.cordons = {n: text for n in range(6) if (text := store[broker(n)].get(CORDONED_LOG_DIRS))}

    def cordon(self, *brokers: int) -> None:
        self.wished.brokers = frozenset(brokers)
        self.tick(lambda: self.cordoned() == {*brokers})

    def cordoned(self) -> set[int]:
        """The brokers that the status of the KafkaCluster shows as cordoned."""
        status = self.world.kube.objects["uid-main"]["status"]
        return {b["id"] for b in status["brokers"] if b.get("cordoned")}

    @property
    def recorded(self) -> frozenset[int]:
        return recorded_cordons(self.world.store.throttle("uid-main"))

    @property
    def text(self) -> str | None:
        return self.client.store[broker(5)].get(CORDONED_LOG_DIRS)

    def metric(self) -> str:
        lines = self.world.metrics.text().decode().splitlines()
        return next(line for line in lines if line.startswith("kafka_reassign_brokers_cordoned")).split()[-1]


@pytest.fixture
def cordoning() -> Cordoning:
    return Cordoning()


def test_a_cordon_is_in_status_events_and_metrics_until_it_is_lifted(cordoning: Cordoning) -> None:
    assert cordoning.metric() == "0.0"
    cordoning.cordon(5)
    cordoning.tick(lambda: "BrokerCordoned" in cordoning.world.kube.events)
    assert (cordoning.text, cordoning.recorded, cordoning.metric()) == ("*", {5}, "1.0")
    assert "throttle" not in cordoning.world.kube.objects["uid-main"]["status"]
    cordoning.wished.brokers = frozenset()
    cordoning.tick(lambda: not cordoning.cordoned() and not cordoning.recorded)
    assert (cordoning.text, cordoning.metric()) == (None, "0.0")
    assert cordoning.world.kube.events[-1] == "BrokerUncordoned"


def test_others_cordons_are_in_the_status_alone(cordoning: Cordoning) -> None:
    cordoning.client.store[broker(5)][CORDONED_LOG_DIRS] = "*"
    cordoning.cordon(5)
    assert (cordoning.recorded, cordoning.metric()) == (set(), "0.0")
    cordoning.wished.brokers = frozenset()
    del cordoning.client.store[broker(5)][CORDONED_LOG_DIRS]
    cordoning.tick(lambda: not cordoning.cordoned())


def test_a_wanted_cordon_does_not_quicken_the_loop(cordoning: Cordoning) -> None:
    cordoning.cordon(5)
    assert pauses(cordoning)[-1] == IDLE_SECONDS
    cordoning.wished.brokers = frozenset()
    assert pauses(cordoning, 3)[0] <= MOVING_SECONDS


def test_a_cordon_that_is_in_force_is_decided_about_at_once(cordoning: Cordoning) -> None:
    cordoning.wished.brokers = frozenset({5})
    found = pauses(cordoning)
    assert found[1] > AT_ONCE_SECONDS  # it is being cordoned
    assert found.count(AT_ONCE_SECONDS) == 2
    assert cordoning.wished._states[5].reason is CordonReason.IN_FORCE


def pauses(cordoning: Cordoning, count: int = 8) -> list[float]:
    """How long the loop waits after each of its next reconciliations."""
    found: list[float] = []
    for _ in range(count):
        cordoning.see()
        found.append(asyncio.run(cordoning.world.loop._tick()) or 0.0)
    return found


def test_a_deleted_cluster_lifts_its_cordons_first(cordoning: Cordoning) -> None:
    cordoning.cordon(5)
    cordoning.world.delete("main")
    cordoning.tick(lambda: "uid-main" not in cordoning.world.kube.objects)
    assert (cordoning.text, cordoning.recorded) == (None, set())


def test_a_cordon_on_an_unregistered_id_holds_no_deletion(cordoning: Cordoning) -> None:
    cordoning.cordon(5)
    del cordoning.world.kafka.brokers[5]
    cordoning.world.delete("main")
    cordoning.tick(lambda: "uid-main" not in cordoning.world.kube.objects)
    assert "CordonsLeft" in cordoning.world.kube.events


def test_a_cordon_on_a_broker_that_is_down_holds_a_deletion_for_a_while(cordoning: Cordoning) -> None:
    cordoning.cordon(5)
    cordoning.world.kafka.brokers[5] = Broker(5, fenced=True)
    cordoning.world.delete("main")
    cordoning.world.tick(5)
    assert "uid-main" in cordoning.world.kube.objects
    memory = cordoning.world.loop.memory
    cordons = replace(memory.throttle.cordons, fenced={5: memory.throttle.cordons.fenced[5] - GIVEN_UP_SECONDS})
    cordoning.world.loop.memory = replace(memory, throttle=replace(memory.throttle, cordons=cordons))
    cordoning.tick(lambda: "uid-main" not in cordoning.world.kube.objects)
    assert "CordonsLeft" in cordoning.world.kube.events


@pytest.mark.parametrize("deleted", [True, False])
def test_an_event_has_the_order_that_was_refused(deleted: bool) -> None:
    world = World()
    notes: list[str] = []
    record = world.kube.request

    async def noted(verb: str, path: str, body: Object, **more: object) -> Object:
        notes.append(body.get("note", ""))
        return await record(verb, path, body, **more)

    world.kube.request = noted  # type: ignore[method-assign]
    world.kafka.known_cordons = {1}
    if deleted:
        world.delete("move")
    else:
        world.pull("CancelOurs")
    world.tick(until=lambda: "OrderNotRestored" in world.kube.events)
    assert world.kafka.replicas[OURS] == (2, 3, 1)
    assert "the brokers refused the original order of 1 partition: ours-0 had [1, 2, 3]" in notes
