"""The archive of Kafka's classes, without which nodes take twice as long to start."""

from pathlib import Path

from localplatform.brokers import CONTROLLERS, Brokers, class_archive


def test_every_node_reads_the_archive_of_its_version(brokers: Brokers) -> None:
    archive = str(class_archive(brokers.version))
    nodes = [process for process in brokers.processes.all() if process.name.startswith("kafka-")]
    assert len(nodes) == len(brokers.ids) + len(CONTROLLERS)
    assert all(archive in Path(f"/proc/{node.pid}/maps").read_text() for node in nodes)
