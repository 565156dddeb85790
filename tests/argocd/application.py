"""What Argo CD says of the Application of a test, and what its page does with a resource of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from tests.argocd.conftest import Site
from tests.benchmarks.apart import NAMESPACE


def operation(site: Site) -> dict[str, Any]:
    """The sync that runs, or else the last one."""
    found: dict[str, Any] = site.argocd.application(site.name)["status"].get("operationState", {})
    return found


def seen(site: Site, commit: str) -> bool:
    """Whether Argo CD has compared a commit with what is there."""
    return bool(site.argocd.application(site.name)["status"]["sync"]["revision"] == commit)


def act(site: Site, action: str, kind: str, name: str) -> None:
    """Run an action of a resource, as Argo CD's page does."""
    path = f"/api/v1/applications/{site.name}/resource/actions/v2"
    site.argocd.ask("POST", path, {"name": site.name, **resource(kind, name), "action": action})


def approve_is_offered(site: Site, kind: str, name: str) -> bool:
    path = f"/api/v1/applications/{site.name}/resource/actions?{urlencode(resource(kind, name))}"
    disabled = {action["name"]: action.get("disabled", False) for action in site.argocd.ask("GET", path)["actions"]}
    return not disabled["approve"]


def resource(kind: str, name: str) -> dict[str, str]:
    """It, as a request to Argo CD names it."""
    group = {"group": "kafka.reassign.dev", "version": "v1alpha1", "kind": kind}
    return {"namespace": NAMESPACE, "resourceName": name, **group}
