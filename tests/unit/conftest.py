"""Property tests try the same examples at every run, to judge a change by itself; `make explore` tries others, and
eight times as many. However long one takes: a test asserts no time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from structlog.testing import capture_logs

from tests.unit import stages

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, max_examples=50, **COMMON)
settings.register_profile("explore", print_blob=True, max_examples=400, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    """What is logged, unprinted."""
    with capture_logs() as logs:
        yield logs


stages.watch()
