"""What the operator must be allowed to do, asked of the API server at start-up.

Without this, a missing right shows as a watch that is silent for ever, or as a status that is never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reassign.api.common import GROUP
from reassign.kube.client import KubeClient

__all__ = ["RIGHTS", "missing_rights"]


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource (`plural` or `plural/subresource`) of an API group, or on the one of that name."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""


RIGHTS = (
    Right(GROUP, "kafkaclusters", ("get", "list", "watch", "patch")),
    Right(GROUP, "kafkaclusters/status", ("patch",)),
    Right(GROUP, "partitionreassignments", ("get", "list", "watch", "patch", "create", "delete")),
    Right(GROUP, "partitionreassignments/status", ("patch",)),
    Right(GROUP, "reassignmentplans", ("get", "list", "watch", "patch", "create", "delete")),
    Right(GROUP, "reassignmentplans/status", ("patch",)),
    Right(GROUP, "brokerdecommissions", ("get", "list", "watch", "patch")),
    Right(GROUP, "brokerdecommissions/status", ("patch",)),
    Right(GROUP, "reassignmentpolicies", ("get", "list", "watch")),
    Right(GROUP, "reassignmentpolicies/status", ("patch",)),
    Right(GROUP, "reassignmentrecords", ("get", "list", "watch", "create", "patch")),
    Right("", "secrets", ("get",)),
    Right("", "configmaps", ("create",)),
    Right("events.k8s.io", "events", ("create", "patch")),
)
"""Needed in each watched namespace."""


def lease_rights(name: str) -> tuple[Right, ...]:
    """Return the rights needed in the operator's own namespace for its Lease. To create cannot be bound to a name."""
    leases = ("coordination.k8s.io", "leases")
    return Right(*leases, ("create",)), Right(*leases, ("get", "update"), name)


async def missing_rights(kube: KubeClient, namespaces: Sequence[str], lease: tuple[str, str] | None) -> list[str]:
    """Return what is not allowed, one sentence each. No namespaces: all of them. The Lease is by namespace and name."""
    asked = [(right, namespace) for namespace in namespaces or ("",) for right in RIGHTS]
    if lease is not None:
        asked += [(right, lease[0]) for right in lease_rights(lease[1])]
    return [
        f"the operator may not {verb} {right.resource}{'.' if right.group else ''}{right.group} "
        + (f"in namespace {namespace}" if namespace else "in all namespaces")
        for right, namespace in asked
        for verb in right.verbs
        if not await _allowed(kube, right, verb, namespace)
    ]


async def _allowed(kube: KubeClient, right: Right, verb: str, namespace: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": namespace,
                "verb": verb,
                "group": right.group,
                "resource": resource,
                "subresource": subresource,
                "name": right.name,
            }
        },
    }
    answer = await kube.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer and answer["status"]["allowed"])
