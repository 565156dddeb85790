"""The local platform for programs that are no tests."""

from __future__ import annotations

from localplatform import brokers, machine, parts
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.operator_pod import OperatorPod
from tests.e2e.world import World


def world(prefix: str) -> World:
    """The platform that is up; what has that prefix on it is ours."""
    server = ApiServer.load(parts.API)
    if server is None:
        raise PlatformError("the platform is not up: make up")
    return World(server, brokers.load(machine.processes(), parts.BROKERS), OperatorPod(server), prefix)
