"""Real brokers. Most tests run on 4.3.1 and on 4.1.2, which differ in when a reassignment is complete.

KAFKA_VERSION chooses another version in their place.
"""

import os
from collections.abc import Iterator

import pytest

from localplatform.brokers import DEFAULT_VERSION, Brokers, running
from tests.kafka.harness import Kafka

OLDER = "4.1.2"
CHOSEN = os.environ.get("KAFKA_VERSION")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deselect tests marked any_version on the older version."""
    items[:] = [item for item in items if "any_version" not in item.keywords or OLDER not in item.name]


@pytest.fixture(scope="session", params=[CHOSEN] if CHOSEN else [DEFAULT_VERSION, OLDER])
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Four brokers, one version at a time; controllers stop in tests of the newer one alone."""
    controllers = 1 if request.param == OLDER else 3
    with running(tmp_path_factory.mktemp("brokers"), request.param, secure=True, controllers=controllers) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka(brokers: Brokers) -> Iterator[Kafka]:
    found = Kafka(brokers)
    yield found
    found.close()
