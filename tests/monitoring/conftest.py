"""Prometheus' own tools for the rules and the dashboard, and a real Prometheus beside a real operator."""

import pytest

from localplatform import prerequisites


@pytest.fixture(scope="session", autouse=True)
def go() -> None:
    """What builds Prometheus is there."""
    prerequisites.require(["api"])
