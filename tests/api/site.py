"""Namespaces in which an operator's process runs with the rights of the chart, and no others."""

from __future__ import annotations

import json
from pathlib import Path

from localplatform.controlplane import ApiServer
from localplatform.processes import wait_until
from reassign.kube.access import RIGHTS, lease_rights
from tests.api.kubectl import Kubectl, RefusedError

ACCOUNTS, LEASE = ("one", "two"), "kafka-reassign-operator"
UNREACHABLE = "127.0.0.1:1"
"""Where no broker listens: that it is unreachable shows that a KafkaCluster is served."""


class Site:
    """A namespace for the operator, and two that it watches, with what it may do there."""

    def __init__(self, api: ApiServer, prefix: str) -> None:
        self.system, self.a, self.b = (Kubectl(api, f"{prefix}-{name}") for name in ("system", "a", "b"))
        for kubectl in (self.system, self.a, self.b):
            kubectl("create", "namespace", kubectl.namespace)
        for account in ACCOUNTS:
            self.system("create", "serviceaccount", account)
        lease = [{"apiGroups": [r.group], "resources": [r.resource], "verbs": r.verbs} for r in lease_rights(LEASE)]
        self._grant(self.system, lease)

    @property
    def watched(self) -> dict[str, str]:
        namespaces = f"{self.a.namespace},{self.b.namespace}"
        return {"REASSIGN_WATCH_NAMESPACES": namespaces, "POD_NAMESPACE": self.system.namespace}

    def kubeconfig(self, directory: Path, api: ApiServer, port: int | None = None, account: str = ACCOUNTS[0]) -> Path:
        config = json.loads(api.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self.system("create", "token", account, "--duration=1h").strip()}
        if port:
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        path = directory / f"{account}.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def allow(self, kubectl: Kubectl) -> None:
        rules = [{"apiGroups": [r.group], "resources": [r.resource], "verbs": r.verbs} for r in RIGHTS]
        self._grant(kubectl, rules)
        assert wait_until(lambda: self._may_list(kubectl))

    def refuse(self, kubectl: Kubectl) -> None:
        kubectl("delete", "rolebinding", "operator")
        assert wait_until(lambda: not self._may_list(kubectl))

    def _may_list(self, kubectl: Kubectl) -> bool:
        account = f"--as=system:serviceaccount:{self.system.namespace}:{ACCOUNTS[0]}"
        try:
            return kubectl("auth", "can-i", "list", "kafkaclusters.kafka.reassign.dev", account).strip() == "yes"
        except RefusedError:
            return False

    def _grant(self, kubectl: Kubectl, rules: list[dict[str, object]]) -> None:
        group = "rbac.authorization.k8s.io"
        named = {"apiVersion": f"{group}/v1", "metadata": {"name": "operator"}}
        namespace = self.system.namespace
        accounts = [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in ACCOUNTS]
        kubectl.apply(named | {"kind": "Role", "rules": rules})
        role = {"apiGroup": group, "kind": "Role", "name": "operator"}
        kubectl.apply(named | {"kind": "RoleBinding", "roleRef": role, "subjects": accounts})


def reason(kubectl: Kubectl, kind: str, name: str) -> str | None:
    """The reason of its condition Ready, None while the operator has not seen it."""
    conditions = kubectl.read(kind, name).get("status", {}).get("conditions", ())
    return next((str(c["reason"]) for c in conditions if c["type"] == "Ready"), None)


def is_served(kubectl: Kubectl, name: str) -> bool:
    """Whether a KafkaCluster without brokers is said to be unreachable."""
    return wait_until(lambda: reason(kubectl, "kcl", name) == "ClusterUnreachable")
