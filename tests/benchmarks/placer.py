"""Kafka's own placer as a peer: StripedReplicaPlacer, of the controller and of `--generate`, from Kafka's jars."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from localplatform import java
from reassign.planning.problem.model import Cluster, Ints

DRIVER = Path(__file__).with_name("StripedPlacer.java")
JVM = ["-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC", "-Xms1g", "-Xmx3g"]
WARM = 6


def place(cluster: Cluster, brokers: Ints) -> tuple[Ints, float]:
    """Replicas (P, R) of all topics on these brokers (indices), and the seconds of the fastest of WARM times."""
    with tempfile.TemporaryDirectory() as scratch:
        wanted, placed = Path(scratch, "wanted"), Path(scratch, "placed")
        wanted.write_bytes(b"".join(_wanted(cluster, brokers)))
        command = ["java", *JVM, "-cp", f"{java.libs()}/*", str(DRIVER), str(wanted), str(placed), str(WARM)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ids = np.frombuffer(placed.read_bytes(), ">i4").reshape(cluster.replicas.shape)
    return np.searchsorted(cluster.brokers, ids).astype(np.int32), min(map(float, said.split()))


def _wanted(cluster: Cluster, brokers: Ints) -> Iterator[bytes]:
    yield struct.pack(">i", len(brokers))
    for broker in brokers.tolist():
        rack = cluster.racks[broker].encode()
        yield struct.pack(f">ih{len(rack)}s", int(cluster.brokers[broker]), len(rack), rack)
    yield struct.pack(">i", len(cluster.topics))
    factor = cluster.replicas.shape[1]
    for partitions in np.bincount(cluster.topic, minlength=len(cluster.topics)).tolist():
        yield struct.pack(">ih", partitions, factor)
