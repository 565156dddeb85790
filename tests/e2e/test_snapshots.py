"""Snapshots that the chart's CronJob takes in its pod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localplatform import node, operator_
from localplatform.operator_ import CHART, NAMESPACE, RELEASE
from tests.e2e.chart_modes import SNAPSHOTS
from tests.e2e.world import MB, World

NAME = f"{RELEASE}-snapshots"


@pytest.fixture
def volume(world: World, tmp_path: Path) -> Iterator[Path]:
    """A folder that the CronJob's claim gets; the release has a CronJob while it is there."""
    folder = tmp_path / "snapshots"
    folder.mkdir()
    persistent = node.volume(folder, NAME, NAMESPACE, "ReadWriteOnce")
    world.api.kubectl("apply", "-f", "-", input=json.dumps(persistent))
    try:
        values = [f"--set-json={name}={json.dumps(value)}" for name, value in SNAPSHOTS.items()]
        operator_.helm(world.api, "upgrade", RELEASE, CHART, "--reuse-values", *values)
        yield folder
    finally:
        operator_.helm(world.api, "upgrade", RELEASE, CHART, "--reuse-values", "--set=snapshots.enabled=false")
        for thing in (f"job/{NAME}", f"persistentvolumeclaim/{NAME}", f"persistentvolume/{NAME}"):
            world.api.kubectl("delete", thing, f"--namespace={NAMESPACE}", "--ignore-not-found", "--timeout=5m")


def test_a_snapshot_of_the_cron_job_is_planned_as_the_cluster_is(world: World, volume: Path) -> None:
    orders = world.topic("orders", [3, 0], [1, 3], [0, 1], size=MB)
    world.api.kubectl("create", "job", NAME, f"--from=cronjob/{NAME}", f"--namespace={NAMESPACE}")
    wait = ("wait", "--for=condition=Complete", f"job/{NAME}", "--timeout=5m")
    world.api.kubectl(*wait, f"--namespace={NAMESPACE}")
    (snapshot,) = volume.glob("date=*/cluster=*")
    assert snapshot.name == f"cluster={world.cluster}"
    goal = ("plan", "--include", orders, "--drain-broker", 3, "-o", "manifests", "--cluster", world.cluster)
    planned = world.plugin(*goal, "--snapshot", snapshot)
    assert planned.count(orders) >= 2
    assert planned == world.plugin(*goal)
