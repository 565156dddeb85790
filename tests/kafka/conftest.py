"""Real brokers. Most tests run on 4.3.1 and on 4.1.2, which differ in when a reassignment is complete."""

from collections.abc import Iterator

import pytest

from localplatform.brokers import Brokers, running
from tests.kafka.harness import Kafka

VERSIONS = ("4.3.1", "4.1.2")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "brokers" in metafunc.fixturenames:
        versions = VERSIONS[:1] if metafunc.definition.get_closest_marker("any_version") else VERSIONS
        metafunc.parametrize("brokers", versions, indirect=True, scope="session")


@pytest.fixture(scope="session")
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Four brokers, one version at a time."""
    with running(tmp_path_factory.mktemp("brokers"), request.param, secure=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka(brokers: Brokers) -> Iterator[Kafka]:
    found = Kafka(brokers)
    yield found
    found.close()
