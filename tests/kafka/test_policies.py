"""A ReassignmentPolicy on real brokers, with a real API server: brokers are lost, come back, are cordoned and added.

Each trigger waits for a minute at least. So one test goes from one to the next, and their minutes pass together.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localplatform.brokers import DEFAULT_VERSION
from localplatform.processes import wait_until
from localplatform.traffic import Made, Traffic
from tests.api.kubectl import Object, policy
from tests.kafka import hasty_operator
from tests.kafka.automation import SECONDS, Automation, automation, condition, ready
from tests.kafka.conftest import CHOSEN

pytestmark = pytest.mark.skipif(
    tuple(map(int, (CHOSEN or DEFAULT_VERSION).split("."))) < (4, 3), reason="it has no cordons"
)
POLICY = "standing"
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 60, "maxBrokers": 2}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 60}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 60, "belowPercent": 80}}
SLOW, FAST = "128Ki", "20Mi"
ORDERS = [[5, 0], [4, 1], [4, 2], [0, 4], [1, 4], [2, 5], [5, 1], [4, 0], [3, 2], [0, 3], [3, 1], [1, 2]]
"""Three replicas are on broker 5, five on broker 4, and three on broker 3."""
BALLAST = [[0, 1, 2]] * 30
"""What brokers 0 to 2 have besides: all others have few replicas."""

Placed = Mapping[int, list[int]]
"""The replicas of each partition of the topic `orders`."""


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Automation]:
    with automation(CHOSEN or DEFAULT_VERSION, tmp_path_factory, hasty_operator.__name__) as found:
        yield found


def apply(world: Automation, rate: str, *triggers: Object) -> None:
    """Apply the policy, whose plans need approval where a trigger does not say otherwise."""
    template = {
        "topics": {"include": ["orders"]},
        "goal": {"balance": {"by": ["Replicas"]}},
        "waves": {"maxPartitions": 2},
        "template": {"throttle": {"interBroker": rate}},
    }
    spec = {"settleSeconds": 60, "cooldownSeconds": 0, "planTemplate": template}
    world.kubectl.apply(policy(POLICY, triggers=[*triggers], **spec))


def until(world: Automation, condition: Any) -> Object:
    """Wait until the status of the policy is so; return it."""
    return world.until(POLICY, condition, kind="krpol")


def trigger(status: Object, name: str) -> Object:
    return next((found for found in status.get("triggers", ()) if found["name"] == name), {})


def is_(status: Object, name: str, state: str, *brokers: int) -> bool:
    """Whether a trigger is in a state, for these brokers."""
    found = trigger(status, name)
    return (found.get("state"), found.get("brokers", [])) == (state, [*brokers])


def plan(status: Object, number: int) -> Object:
    """Return the first, second … plan of the policy; empty before it is there."""
    found: list[Object] = status.get("plans", [])[number - 1 : number]
    return found[0] if found else {}


def until_ended(world: Automation, number: int, outcome: str, name: str, *emptied: int) -> Placed:
    """Wait until a plan has ended so; return where its waves were to move replicas.

    One that empties brokers copies no byte more than its bound, and leaves every other replica where it was.
    """
    found = plan(until(world, lambda status: plan(status, number).get("outcome") not in (None, "Running")), number)
    assert (found["outcome"], found["name"]) == (outcome, f"{POLICY}-{name}-{number}"), world.operator.log_text()
    assert found["bytes"] >= found["lowerBoundBytes"]
    print(f"{found['name']}: {found['bytes']} bytes, its bound {found['lowerBoundBytes']}, {outcome}")
    entries = waves(world, found["name"])
    if emptied:
        assert found["bytes"] == found["lowerBoundBytes"]
        for it in entries:
            changes = zip(it["expectedReplicas"], it["replicas"], strict=True)
            assert {old for old, new in changes if old != new} <= {*emptied}, it
    return {it["partition"]: it["replicas"] for it in entries if it["topic"] == "orders"}


def waves(world: Automation, name: str) -> list[Object]:
    """Return the entries of a plan's waves."""
    found = world.kubectl.json("get", "kpr", "-l", f"kafka.reassign.dev/plan={name}")["items"]
    return [entry for wave in found for entry in wave["spec"]["partitions"]]


def cordoned(world: Automation, broker: int) -> bool:
    """Whether the KafkaCluster shows a broker as cordoned."""
    brokers = world.kubectl.json("get", "kcl", "main")["status"]["brokers"]
    return any(it["id"] == broker and it.get("cordoned") is True for it in brokers)


def test_one_failure_after_another(world: Automation) -> None:
    world.kafka.create("ballast", BALLAST)
    world.kafka.create("orders", ORDERS, 4_000_000)
    apply(world, SLOW, LOST, CORDONED)
    traffic = Traffic(world.brokers.bootstrap_servers, "policies", made=[Made("orders", 0)], topic_seconds=None)
    with traffic.going_on():
        others_cordon_and_one_flaps(world)
        after = two_are_lost_and_one_returns(world)
        after = {**after, **until_ended(world, 2, "Succeeded", "lost", 5)}
        assert world.on(5) == []
        after = {**after, **until_ended(world, 3, "Succeeded", "in", 3)}
        assert world.on(3) == []
        after = {**after, **an_empty_one_is_filled(world)}
    assert world.kafka.replicas("orders") == after
    assert traffic.lost() == {}
    world.cordon(3, None)
    assert wait_until(world.nothing_is_left, SECONDS), world.configs()


def others_cordon_and_one_flaps(world: Automation) -> None:
    """A BrokerDecommission holds the cordon's trigger off, and a broker that comes back in time starts nothing."""
    world.cordon(3, "*")
    slow = {"throttle": {"interBroker": "1Ki"}}
    name = world.retire("retire-3", [3], approval="NotRequired", cordon="Never", template=slow)
    world.until(name, lambda status: bool(status.get("plans")))
    world.brokers.kill(5)
    until(world, lambda status: is_(status, "lost", "Waiting", 5) and cordoned(world, 3))
    world.brokers.restart(5)
    status = until(world, lambda status: is_(status, "lost", "Idle"))
    assert is_(status, "in", "Idle"), trigger(status, "in")
    assert not status["plans"]
    world.kubectl("delete", "kbd", name, "--timeout=2m")
    until(world, lambda status: is_(status, "in", "Waiting", 3))


def two_are_lost_and_one_returns(world: Automation) -> Placed:
    """The plan of two lost brokers starts nothing more once one is back; return where replicas are then."""
    before = world.kafka.replicas("orders")
    world.operator.send(signal.SIGSTOP)  # it is to see both fenced at once
    for broker in (4, 5):
        world.brokers.kill(broker)
    assert wait_until(lambda: world.brokers.registered() == {0, 1, 2, 3}, SECONDS)
    world.operator.send(signal.SIGCONT)
    until(world, lambda status: "startTime" in plan(status, 1))
    assert wait_until(lambda: world.kafka.replicas("orders") != before, SECONDS)
    planned = {it["partition"]: it["replicas"] for it in waves(world, f"{POLICY}-lost-1") if it["topic"] == "orders"}
    assert planned.keys() == {p for p, replicas in enumerate(ORDERS) if {4, 5} & {*replicas}}
    world.brokers.restart(4)
    apply(world, FAST, LOST, CORDONED, ADDED)
    begun = {p for p, replicas in world.kafka.replicas("orders").items() if replicas != before[p]}
    done = until_ended(world, 1, "Retired", "lost", 4, 5)
    assert 0 < len(begun) < len(planned)
    assert done == {p: planned[p] for p in begun}
    placed, stays = world.kafka.replicas("orders"), {p for p in planned.keys() - begun if 4 in before[p]}
    assert {p: placed[p] for p in begun | stays} == {**done, **{p: before[p] for p in stays}}
    return {**before, **done}


def an_empty_one_is_filled(world: Automation) -> Placed:
    """Its plan waits for its digest. What it leaves starts no other one, though the broker still has few replicas."""
    status = until(world, lambda status: "digest" in status)
    assert (ready(status)["status"], ready(status)["reason"]) == ("True", "AwaitingApproval")
    assert condition(status, "ApprovalNeeded")["status"] == "True"
    assert (status["plan"]["trigger"], world.kafka.in_flight()) == ("out", {})
    few = world.on(4)
    world.kubectl.patch("krpol", POLICY, {"spec": {"approvedDigest": status["digest"]}})
    done = until_ended(world, 4, "Succeeded", "out")
    assert {*few} < {*world.on(4)}
    status = until(world, lambda status: is_(status, "out", "Held", 4))
    assert trigger(status, "out")["reason"] == "GainTooSmall"
    plans = world.kubectl.json("get", "krp")["items"]
    assert [it["metadata"]["name"] for it in plans] == sorted(it["name"] for it in status["plans"])
    return done
