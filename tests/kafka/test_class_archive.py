"""The archive of Kafka's classes, without which nodes take twice as long to start."""

from pathlib import Path

import pytest

from localplatform import brokers as kafka
from localplatform.brokers import Brokers, class_archive
from localplatform.console import PlatformError


def test_every_node_reads_the_archive_of_its_version(brokers: Brokers) -> None:
    archive = str(class_archive(brokers.version))
    nodes = [process for process in brokers.processes.all() if process.name.startswith("kafka-")]
    assert len(nodes) == len(brokers.ids) + len(brokers.controllers)
    assert all(archive in Path(f"/proc/{node.pid}/maps").read_text() for node in nodes)


def test_brokers_start_without_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(version: str) -> Path:
        raise PlatformError("no archive")

    monkeypatch.setattr(kafka, "class_archive", fails)
    with kafka.running(tmp_path, brokers=1, controllers=1) as cluster:
        assert cluster.registered() == {0}
    assert "without an archive of their classes, which takes longer: no archive" in capsys.readouterr().err
