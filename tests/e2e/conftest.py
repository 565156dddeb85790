"""The whole, as a user has it: the operator in its pod on the local platform, which is started when it is not up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localplatform import brokers, cache, machine, node, parts
from localplatform.brokers import Brokers
from localplatform.controlplane import CONTROL_PLANE, ApiServer
from localplatform.operator_pod import OperatorPod
from tests.e2e.world import World

STARTING = Path("/run/lock/kafka-reassign-tests")
"""Two parts of the tests share the platform, and only one of them may start it."""


@pytest.fixture(scope="session")
def platform() -> tuple[ApiServer, Brokers]:
    """The local platform; when it is up it stays as it is. No test stops a controller, so one does."""
    return started(), brokers.load(machine.processes(), parts.BROKERS)


@pytest.fixture(scope="session")
def server() -> ApiServer:
    """The API server of the platform, for tests that need its node alone: what others do meanwhile stays as it is."""
    return started(unless_running=True)


def started(unless_running: bool = False) -> ApiServer:
    with cache.locked(STARTING, "another part of the tests starts the platform, waiting for it"):
        running = all(machine.processes().find(name) for name in (*CONTROL_PLANE, *node.AGENTS))
        if not (running and unless_running):
            subprocess.run(["make", "up", "CONTROLLERS=1"], cwd=machine.CHECKOUT, check=True)
    found = ApiServer.load(parts.API)
    assert found is not None
    return found


@pytest.fixture
def world(platform: tuple[ApiServer, Brokers], request: pytest.FixtureRequest) -> Iterator[World]:
    """What a test works with; what it made is gone afterwards, or the test fails."""
    server, cluster = platform
    prefix = f"e2e-{abs(hash(request.node.nodeid)) % 16**6:06x}"
    world = World(server, cluster, OperatorPod(server), prefix)
    before = request.session.testsfailed
    yield world
    if request.session.testsfailed > before:
        print(world.operator.log())
    world.clean_up()
