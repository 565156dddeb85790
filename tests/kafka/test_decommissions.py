"""BrokerDecommissions on real brokers, with a real API server: brokers that are emptied, stopped, and go."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from localplatform.brokers import DEFAULT_VERSION
from localplatform.processes import wait_until
from tests.kafka.automation import CORDON, SECONDS, Automation, automation, condition, ready
from tests.kafka.conftest import CHOSEN, OLDER

FREE = {"approval": "NotRequired"}
SLOW = {"throttle": {"interBroker": "1Ki"}}
"""Brokers then copy about 1 MB every ten seconds."""


@pytest.fixture(scope="module", params=[CHOSEN] if CHOSEN else [DEFAULT_VERSION, OLDER])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    """Six brokers, one version at a time."""
    with automation(request.param, tmp_path_factory) as found:
        yield found


@pytest.fixture
def world(shared: Automation) -> Iterator[Automation]:
    yield shared
    if not shared.operator.running:
        shared.start_operator()
    shared.clean_up(sorted(shared.kafka.metadata().topics))


@pytest.mark.any_version
def test_a_broker_is_emptied_stopped_unregistered_and_comes_back(world: Automation) -> None:
    """Topics are made all the time; one has a replica on the broker though it is cordoned no earlier than approved."""
    world.kafka.create("orders", [[5, 0, 1], [1, 5, 2], [2, 3, 4]], 200_000)
    numbers = itertools.count()

    def make_a_topic() -> None:
        try:
            world.kafka.create(f"new-{next(numbers)}", [[5, 1], [3, 4]])
        except KafkaException as refused:  # the cordon is in force, and the status does not say so yet
            if refused.args[0].code() != KafkaError.INVALID_REPLICA_ASSIGNMENT:
                raise

    with world.beside(make_a_topic, 3):
        name = world.retire(unregister="WhenDown")
        world.approve(name)
        assert wait_until(lambda: condition(world.status(name), "Cordoned").get("status") == "True", SECONDS)
    assert world.on(5)
    status = world.until_ready(name, "Empty")
    assert (world.on(5), status["replicasLeft"], condition(status, "Empty")["status"]) == ([], 0, "True")
    assert [plan["name"] for plan in status["plans"]] == [f"{name}-{n}" for n in range(1, len(status["plans"]) + 1)]
    assert {plan["outcome"] for plan in status["plans"]} == {"Succeeded"}
    assert world.configs() == {f"5 {CORDON}": "*"}
    world.brokers.shut_down(5)
    status = world.until_ready(name, "Unregistered")
    assert condition(status, "Succeeded")["status"] == "True"
    assert wait_until(lambda: 5 not in world.registered(), SECONDS)
    world.brokers.restart(5)
    assert wait_until(world.nothing_is_left, SECONDS), world.configs()
    assert ready(world.status(name))["reason"] == "Unregistered"


@pytest.mark.any_version
def test_a_scale_in_as_strimzi_does_it(world: Automation) -> None:
    """A pod is removed only when its broker is empty; a reconciliation resets what it does not know, again and again.

    Strimzi refuses to remove a broker that has replicas, and writes the configurations that it knows every two minutes.
    """
    world.kafka.create("orders", [[5, 0, 1], [1, 5, 2]], 100_000)
    texts = itertools.cycle(["*", None])
    with world.beside(lambda: world.cordon(5, next(texts)), 2):
        name = world.retire(**FREE)

        def scaled_in() -> bool:
            """Refuse as long as the broker has replicas."""
            return not world.on(5) and ready(world.status(name))["status"] == "True"

        assert wait_until(scaled_in, SECONDS), world.status(name)
    world.cordon(5, None)
    world.brokers.shut_down(5)
    assert ready(world.until(name, lambda s: s["brokers"][0]["state"] == "Down"))["status"] == "True"
    assert all(replicas and 5 not in replicas for replicas in world.kafka.replicas("orders").values())
    world.brokers.restart(5)


@pytest.mark.any_version
def test_a_process_that_is_killed_in_mid_wave_is_followed_by_another(world: Automation) -> None:
    world.kafka.create("orders", [[5, 0], [1, 5], [2, 5]], 8_000_000)
    name = world.retire(**FREE, template={"throttle": {"interBroker": "1Mi"}})
    assert wait_until(lambda: "Adding" in world.brokers.tool("topics", "--describe", "--topic", "orders"), SECONDS)
    world.operator.send(signal.SIGKILL)
    assert world.operator.ended() is not None
    world.start_operator()
    world.until_ready(name, "Empty")
    assert world.configs() == {f"5 {CORDON}": "*"}


@pytest.mark.any_version
def test_deleted_in_mid_wave_it_takes_all_back(world: Automation) -> None:
    world.kafka.create("orders", [[5, 0], [1, 5], [2, 5]], 8_000_000)
    before = world.kafka.replicas("orders")
    name = world.retire(**FREE, template=SLOW)
    assert wait_until(lambda: ready(world.status(name)).get("reason") == "WaveInFlight", SECONDS)
    assert wait_until(lambda: not world.nothing_is_left() and world.kafka.replicas("orders") != before, SECONDS)
    world.kubectl("delete", "kbd", name, "--timeout=2m")
    assert wait_until(world.nothing_is_left, SECONDS), world.configs()
    assert world.kafka.replicas("orders") == before


@pytest.mark.any_version
def test_a_broker_that_was_down_from_the_start(world: Automation) -> None:
    """It has the only replica of one topic, which stays and is named; without that it is empty by metadata alone.

    Until it counts as lost, that topic keeps all moves from beginning (pauseWhen).
    """
    world.kafka.create("alone", [[5]], 1000)
    world.kafka.create("orders", [[5, 0], [1, 5]], 1000)
    world.brokers.shut_down(5)
    name = world.retire(**FREE, unregister="WhenDown", template={"stallTimeoutSeconds": 20})
    status = world.until_ready(name, "DrainIncomplete")
    assert "alone-0" in ready(status)["message"]
    assert condition(status, "Stalled")["status"] == "True"
    assert world.on(5) == ["alone-0"]
    world.kafka.delete(["alone"])
    status = world.until_ready(name, "NotObserved")
    assert (ready(status)["status"], status["brokers"][0]["state"]) == ("True", "Down")
    assert 5 in world.registered()


@pytest.mark.any_version
def test_two_of_them_go_one_after_the_other_and_fill_neither(world: Automation) -> None:
    world.kafka.create("orders", [[4, 5], [5, 4], [0, 5], [1, 4]], 100_000)
    one, other = world.retire("first", [5], **FREE), world.retire("second", [4], **FREE)
    world.until_ready(one, "Empty")
    world.until_ready(other, "Empty")
    assert (world.on(4), world.on(5)) == ([], [])
    waves = world.kubectl.json("get", "kpr", "-l", f"kafka.reassign.dev/plan={other}-1")["items"]
    moves = [entry for wave in waves for entry in wave["spec"]["partitions"]]
    assert moves
    assert all({4, 5}.isdisjoint(set(move["replicas"]) - set(move["expectedReplicas"])) for move in moves)


@pytest.mark.any_version
@pytest.mark.parametrize(
    ("brokers", "reason"),
    [([77], "UnknownBroker"), ([0, 1, 2, 3, 4, 5], "NotEnoughBrokers"), ([2, 3, 4, 5], "NotEnoughBrokers")],
)
def test_what_cannot_be_done_is_said_and_nothing_is_cordoned(
    world: Automation, brokers: list[int], reason: str
) -> None:
    world.kafka.create("orders", [[0, 1, 2]])
    name = world.retire("cannot", brokers, **FREE)
    status = world.until_ready(name, reason)
    assert condition(status, "Stalled")["status"] == "True"
    assert world.configs() == {}
    assert world.kubectl.json("get", "krp")["items"] == []


def test_without_cordons_it_goes_on_and_says_why(world: Automation) -> None:
    """Kafka before 4.3 does not know them, and takes the configuration without a word; others do as they are asked."""
    supported = tuple(map(int, world.brokers.version.split("."))) >= (4, 3)
    world.kafka.create("orders", [[5, 0], [1, 5]], 1000)
    name = world.retire(**FREE, cordon="Never" if supported else "WhereSupported")
    status = world.until_ready(name, "Empty")
    reason = "CordonNever" if supported else "NotSupported"
    assert (condition(status, "Cordoned")["status"], condition(status, "Cordoned")["reason"]) == ("False", reason)
    assert (world.configs(), world.on(5)) == ({}, [])
