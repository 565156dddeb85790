"""Nothing is lost and nothing is left over, however the operator ends and however fast resources come and go."""

from __future__ import annotations

import json

from localplatform.operator_ import NAMESPACE, RELEASE
from tests.e2e.world import HELD_BYTES, MB, World, entries, eventually


def test_an_operator_killed_in_flight_ends_where_it_would_have(world: World) -> None:
    orders = world.topic("orders", [0, 1], [1, 0], [0, 1], [1, 0], size=HELD_BYTES // 2)
    targets = {(orders, p): [2, 3] for p in range(4)}
    world.hold(orders)
    name = world.move("killed", targets)
    world.wait_in_flight(*targets)
    world.operator.kill()
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.stock_tool_says(targets)


def test_an_operator_killed_right_after_the_apply_reaches_the_same_end(world: World) -> None:
    orders = world.topic("orders", *[[0, 1]] * 4, size=MB)
    targets = {(orders, p): [2, 3] for p in range(4)}
    name = world.move("early", targets)
    world.operator.kill()
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)


def test_an_operator_killed_while_it_cancels_brings_the_originals_back(world: World) -> None:
    orders = world.topic("orders", [1, 0], [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("cancel", {(orders, 0): [2, 3], (orders, 1): [3, 2]})
    world.wait_in_flight((orders, 0), (orders, 1))
    world.delete(name)
    world.operator.kill()
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [1, 0], (orders, 1): [0, 1]})


def renewed(world: World) -> str:
    """When the lease was renewed last."""
    lease = world.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}") or {}
    return str(lease["spec"]["renewTime"])


def test_an_operator_that_lost_its_lease_ends_at_once_and_waits_for_it(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    (before,) = eventually("the operator runs", world.operator.pids)
    last = renewed(world)
    eventually("it holds the lease", lambda: renewed(world) != last)
    taken = json.dumps({"spec": {"holderIdentity": "another", "leaseDurationSeconds": 8}})
    world.api.kubectl("patch", "lease", RELEASE, f"--namespace={NAMESPACE}", "--type=merge", "-p", taken)
    eventually("the process has ended", lambda: before not in world.operator.pids())
    name = world.move("later", {(orders, 0): [2, 3]})
    world.wait_for(name, "Succeeded")


def test_a_manifest_edited_while_the_operator_is_away_is_followed(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("edited", {(orders, 0): [2, 3], (orders, 1): [2, 3]})
    world.wait_in_flight((orders, 0), (orders, 1))
    world.operator.kill()
    world.patch(name, {"partitions": entries({(orders, 1): [1, 2]})})
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    # the entry that was removed may have completed before the operator was back
    assert world.kafka.replicas(orders)[0] in ([0, 1], [2, 3])
    world.brokers_say({(orders, 1): [1, 2]})


def test_two_hundred_quick_pairs_of_create_and_delete_leave_nothing_over(world: World) -> None:
    orders = world.topic("orders", *[[0, 1]] * 8, size=MB)
    manifests = [
        world.manifest(f"{world.prefix}-quick-{n}", {(orders, n % 8): [2, 3]}, deletionPolicy="Cancel")
        for n in range(200)
    ]
    batches = [manifests[start : start + 20] for start in range(0, 200, 20)]
    for batch in batches:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": batch})
        world.kubectl("create", "-f", "-", input=text)
        world.kubectl("delete", "-f", "-", "--wait=false", input=text)

    def left() -> list[str]:
        names = world.kubectl("get", "partitionreassignments", "-o", "name").split()
        return [name for name in names if world.prefix in name]

    eventually("all are gone", lambda: not left(), state=left)
    world.wait_idle(orders)
    # one that completed before it was deleted stays where it is; none is anywhere else
    assert all(replicas in ([0, 1], [2, 3]) for replicas in world.kafka.replicas(orders).values())
