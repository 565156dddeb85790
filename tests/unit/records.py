"""The ReassignmentRecords of a world, and those that earlier versions wrote."""

from __future__ import annotations

from typing import Any

from reassign.api.common import FINALIZER
from tests.unit.world import THEIRS, Object, World


def parts(world: World, name: str = "move") -> list[Object]:
    """The ReassignmentRecords that the API server has of a resource, by number."""
    found = [o for o in world.kube.objects.values() if o["metadata"]["name"].startswith(f"uid-{name}-")]
    return sorted(found, key=lambda part: part["spec"]["part"])


def record(world: World, name: str = "move") -> dict[str, Object]:
    """What the records of a resource say of the first partition of each topic."""
    topics = [topic for part in parts(world, name) for topic in part["spec"].get("topics", ())]
    return {topic["topic"]: topic["partitions"][0] for topic in topics}


def held(world: World, name: str = "move") -> bool:
    """Whether all of its records have our finalizer."""
    return all(FINALIZER in part["metadata"].get("finalizers", ()) for part in parts(world, name))


def in_flight_before(**more: Any) -> Object:
    entry = {"partition": 0, "originalReplicas": [1, 2, 3], "targetReplicas": [5, 2, 3], "state": "InFlight"}
    topic = {"topic": THEIRS.topic, "topicId": f"id-{THEIRS.topic}", "partitions": [entry]}
    return {"observedGeneration": 1, "record": [topic], **more}
