"""`kubectl kafka-reassign` against a live cluster, which it finds through its KafkaCluster."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.e2e.world import MB, World


def test_a_broker_is_drained_and_that_is_rolled_back_from_a_shell(world: World, tmp_path: Path) -> None:
    before = {0: [3, 0], 1: [1, 3], 2: [0, 1]}
    orders = world.topic("orders", *before.values(), size=MB)
    goal = ("--cluster", world.cluster, "--include", orders, "--drain-broker", 3, "-o", "manifests")
    goal = (*goal, "--name", f"{world.prefix}-drain")
    file, snapshot = tmp_path / "waves.yaml", tmp_path / "snapshot"

    file.write_text(world.plugin("plan", *goal))
    world.plugin("snapshot", "--cluster", world.cluster, snapshot)
    assert world.plugin("plan", *goal, "--snapshot", snapshot) == file.read_text()
    verified = json.loads(world.plugin("verify", "-f", file, "-o", "json"))
    assert verified["passed"]
    assert {(entry["topic"], entry["partition"]) for entry in verified["entries"]} == {(orders, 0), (orders, 1)}

    (wave,) = yaml.safe_load_all(file.read_text())
    name = wave["metadata"]["name"]
    world.resources.append(name)
    world.apply(wave)
    world.wait_for(name, "Ready", "False", "Suspended")
    world.brokers_say({(orders, number): replicas for number, replicas in before.items()})
    assert world.plugin("resume", name) == f"kpr/{name} resumed\n"
    assert world.plugin("watch", name).splitlines()[-1].startswith("Completed: all 2 partitions")
    page = world.plugin("report", name)
    assert page.count('<rect class="Completed"') == 2
    assert "<td>ReassignmentCompleted</td>" in page
    targets = {entry["partition"]: entry["replicas"] for entry in wave["spec"]["partitions"]}
    assert all(3 not in replicas for replicas in targets.values())
    world.brokers_say({(orders, number): replicas for number, replicas in (before | targets).items()})

    (back,) = yaml.safe_load_all(world.plugin("rollback", name))
    world.resources.append(back["metadata"]["name"])
    world.apply(back)
    world.wait_for(back["metadata"]["name"], "Succeeded")
    world.brokers_say({(orders, number): replicas for number, replicas in before.items()})
