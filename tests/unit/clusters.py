"""KafkaClusters, and PartitionReassignments for them, as the API server shows them."""

from __future__ import annotations

from typing import Any


def cluster(name: str, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Any:
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "KafkaCluster",
        "metadata": {
            "name": name,
            "namespace": "kafka",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": created,
            "finalizers": ["kafka.reassign.dev/cancel"],
        },
        "spec": {"bootstrapServers": "b:9092", **spec},
        "status": {},
    }


def move(name: str, namespace: str = "kafka", **metadata: Any) -> Any:
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {
            "clusterRef": {"name": "main", "namespace": "kafka"},
            "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}],
        },
    }
