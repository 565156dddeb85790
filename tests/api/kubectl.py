"""kubectl for tests, as the administrator, and the smallest valid objects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from localplatform.controlplane import ApiServer, binaries
from localplatform.processes import TIMEOUT

Object = dict[str, Any]


class RefusedError(AssertionError):
    """kubectl ended with an error; its text is what the user sees."""


class Kubectl:
    """Runs kubectl; a failure is an error that quotes what it said."""

    def __init__(self, server: ApiServer, namespace: str = "default", cwd: Path | None = None) -> None:
        self.namespace, self._cwd = namespace, cwd
        self._command = [
            str(binaries() / "kubectl"),
            f"--kubeconfig={server.kubeconfig}",
            *([f"--namespace={namespace}"] if namespace else []),
        ]

    def __call__(self, *arguments: str, input: str | None = None) -> str:
        finished = subprocess.run(
            [*self._command, *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT,
            check=False,
            cwd=self._cwd,
        )
        if finished.returncode:
            raise RefusedError(f"kubectl {' '.join(arguments)}: {finished.stderr}")
        return finished.stdout

    def json(self, *arguments: str, input: str | None = None) -> Object:
        answer: Object = json.loads(self(*arguments, "-o", "json", input=input))
        return answer

    def apply(self, obj: Object, *flags: str) -> Object:
        return self.json("apply", "-f", "-", *flags, input=json.dumps(obj))

    def read(self, kind: str, name: str) -> Object:
        """The object as it is stored, managed fields included."""
        return self.json("get", kind, name, "--show-managed-fields")

    def patch(self, kind: str, name: str, change: Object) -> Object:
        return self.json("patch", kind, name, "--type=merge", "-p", json.dumps(change))

    def write_status(self, kind: str, name: str, status: Object) -> Object:
        """Make this the whole status, through the subresource."""
        change = json.dumps([{"op": "add", "path": "/status", "value": status}])
        flags = ("--subresource=status", "--type=json", "--patch-file=/dev/stdin")
        return self.json("patch", kind, name, *flags, input=change)

    def delete(self, kind: str, name: str, *flags: str) -> None:
        self("delete", kind, name, "--ignore-not-found", *flags)


def by(manager: str) -> tuple[str, str]:
    """The flags of a server-side apply in the name of a field manager."""
    return ("--server-side", f"--field-manager={manager}")


def entry(topic: str = "orders", partition: int = 0, replicas: Any = (1, 2, 3), **fields: Any) -> Object:
    """One item of spec.partitions."""
    return {"topic": topic, "partition": partition, "replicas": list(replicas), **fields}


def reassignment(name: str = "move", **spec: Any) -> Object:
    """A PartitionReassignment, in kubectl's namespace."""
    least = {"clusterRef": {"name": "main"}, "partitions": [entry()]}
    return _manifest("PartitionReassignment", name, least | spec)


def cluster(name: str = "main", **spec: Any) -> Object:
    """A KafkaCluster, in kubectl's namespace."""
    return _manifest("KafkaCluster", name, {"bootstrapServers": "b0:9092,b1:9092"} | spec)


def plan(name: str = "drain", **spec: Any) -> Object:
    """A ReassignmentPlan, in kubectl's namespace."""
    return _manifest("ReassignmentPlan", name, {"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [5]}} | spec)


def decommission(name: str = "retire-5", **spec: Any) -> Object:
    """A BrokerDecommission, in kubectl's namespace."""
    return _manifest("BrokerDecommission", name, {"clusterRef": {"name": "main"}, "brokers": [5]} | spec)


def policy(name: str = "standing", **spec: Any) -> Object:
    """A ReassignmentPolicy, in kubectl's namespace."""
    triggers = [{"name": "lost", "brokerLost": {}}]
    return _manifest("ReassignmentPolicy", name, {"clusterRef": {"name": "main"}, "triggers": triggers} | spec)


def _manifest(kind: str, name: str, spec: Object) -> Object:
    api_version = "kafka.reassign.dev/v1alpha1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
