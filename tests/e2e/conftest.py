"""The whole, as a user has it: the operator in its pod on the local platform, which is started when it is not up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from localplatform import brokers, machine, parts
from localplatform.brokers import Brokers
from localplatform.controlplane import ApiServer
from localplatform.operator_pod import OperatorPod
from tests.e2e.world import World


@pytest.fixture(scope="session")
def platform() -> tuple[ApiServer, Brokers]:
    """The local platform; when it is up it stays as it is. No test stops a controller, so one does."""
    subprocess.run(["make", "up", "CONTROLLERS=1"], cwd=machine.CHECKOUT, check=True)
    server = ApiServer.load(parts.API)
    assert server is not None
    return server, brokers.load(machine.processes(), parts.BROKERS)


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
