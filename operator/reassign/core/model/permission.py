"""Who may move what on a KafkaCluster: its own namespace everything, others the topics that it allows them.

A namespace that is not allowed learns nothing of the cluster from its resources' status, not even whether it exists.
One that is allowed learns nothing of topics that are not its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reassign.api.names import matches
from reassign.core.model.problem import Audience, Name, Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot
from reassign.errors import Reason

ALL_NAMESPACES = ""
"""Stands for all namespaces."""


class Namespaces(set[str]):
    """Names of namespaces; `ALL_NAMESPACES` among them means each."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(ALL_NAMESPACES)


def name_of(resource: Resource) -> Name:
    """Return the name of a resource, for its own namespace to read."""
    return Name(f"{resource.namespace}/{resource.name}", namespaces=frozenset({resource.namespace}))


def not_allowed(namespace: str) -> Problem:
    """Return what a namespace learns of another's KafkaCluster that does not allow it, or is not there."""
    return Problem(
        Reason.NAMESPACE_NOT_ALLOWED,
        f"the KafkaCluster of spec.clusterRef is not there, or does not allow the namespace {namespace}; "
        f'create it, or have its spec.allowedNamespaces list {{name: {namespace}, topics: ["*"]}}, or fewer topics',
    )


def not_readable(namespace: str) -> Problem:
    """Return the problem of a KafkaCluster in a namespace that the operator may not read now."""
    return Problem(
        Reason.NOT_AUTHORIZED,
        f"the operator may not read the namespace {namespace} of spec.clusterRef, whether it exists or not: "
        "create it, with the Role and the RoleBinding of the chart",
    )


@dataclass(frozen=True, slots=True)
class Permission:
    """Who may move what on a KafkaCluster."""

    allowed: Mapping[str, tuple[str, ...]]
    """Patterns of topic names by namespace, the KafkaCluster's own among them."""
    owner: str | None = None
    """The KafkaCluster's namespace."""

    def of_namespace(self, namespace: str) -> Problem | None:
        """Return why the resources of a namespace may not use the cluster at all, or None."""
        if namespace in self.allowed:
            return None
        return not_allowed(namespace)

    def of_topic(self, namespace: str, topic: str) -> Problem | None:
        """Return why the resources of a namespace may not move a topic, or None."""
        if problem := self.of_namespace(namespace):
            return problem
        if matches(topic, self.allowed[namespace]):
            return None
        return Problem(
            Reason.NAMESPACE_NOT_ALLOWED,
            f"the namespace {namespace} may move {', '.join(self.allowed[namespace])}, not {topic}; "
            "remove the entry, or have spec.allowedNamespaces of the KafkaCluster list it",
        )

    def audience(self, namespace: str) -> Audience:
        """Return who reads the statuses in a namespace."""
        return Audience(namespace, self.allowed.get(namespace, ()), namespace == self.owner)

    def view(self, resource: Resource, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot that a resource's status may show: no topics that it may not move and never has moved."""
        known = {tp.topic for tp in resource.record}
        asked = {tp.topic for tp in resource.asked} - known
        hidden = {topic for topic in asked if self.of_topic(resource.namespace, topic)}
        if not hidden:
            return snapshot
        return replace(
            snapshot,
            topics={name: topic for name, topic in snapshot.topics.items() if name not in hidden},
            reassignments={tp: r for tp, r in snapshot.reassignments.items() if tp.topic not in hidden},
            sizes=snapshot.sizes and {tp: size for tp, size in snapshot.sizes.items() if tp.topic not in hidden},
        )
