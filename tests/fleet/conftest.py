"""One Spark session for all tests of the fleet."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from localplatform import prerequisites
from reassign.spark import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of the start first: they make the archive of classes with which each later program starts."""
    items.sort(key=lambda item: item.path.name != "test_start.py")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    prerequisites.require(["fleet"])
    os.environ["PYARROW_IGNORE_TIMEZONE"] = "1"  # pyspark.testing warns without it
    started = session.start("local[1]")
    started.conf.set("spark.sql.shuffle.partitions", "2")
    yield started
    started.stop()


@pytest.fixture
def program(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program that runs in this process take the session of all tests for its own."""
    monkeypatch.setattr(session, "start", lambda *_: spark)
    monkeypatch.setattr(session, "_stop", lambda *_: None)
