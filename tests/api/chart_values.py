"""Every value of the chart beside what tests it; `python -m tests.api.chart_values` writes the page of the docs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localplatform.chart_readme import values
from tests.api.helm import NAME, of_kind
from tests.api.kubectl import Object
from tests.e2e.chart_modes import IN_ALL, MODES

Documents = list[Object]
PAGE = Path(__file__).parents[2] / "docs" / "built" / "chart-values.md"
HEAD = """\
# Tests of the chart's values

`tests/api/test_chart_values.py` renders the chart with each value below, and expects the change that the value's
description promises. A second test sends all of them to an API server. `tests/e2e/test_chart.py` installs the chart on
the local platform in the modes of the last column, and moves replicas in each. `make crds` writes this page from those
tests.

| value | rendered with | in pods |
| --- | --- | --- |
"""


def at(found: Any, path: str) -> Any:
    """What is at a path such as spec.containers.0.image; None where there is nothing."""
    for step in path.split("."):
        if isinstance(found, list):
            found = found[int(step)] if int(step) < len(found) else None
        else:
            found = (found or {}).get(step)
    return found


def the(kind: str, path: str, name: str = "") -> Callable[[Documents], Any]:
    """What is at a path of the only object of a kind, or of that with a name; None when there is none."""

    def look(documents: Documents) -> Any:
        found = [d for d in of_kind(documents, kind) if not name or d["metadata"]["name"] == name]
        return at(found[0], path) if found else None

    return look


def pod(path: str) -> Callable[[Documents], Any]:
    return the("Deployment", f"spec.template.spec.{path}")


def container(path: str) -> Callable[[Documents], Any]:
    return pod(f"containers.0.{path}")


def environment(documents: Documents) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in container("env")(documents)}


def variable(name: str) -> Callable[[Documents], Any]:
    return lambda documents: environment(documents).get(name)


def last(look: Callable[[Documents], Any]) -> Callable[[Documents], Any]:
    return lambda documents: look(documents)[-1]


def names_of(*kinds: str) -> Callable[[Documents], Any]:
    return lambda documents: {document["metadata"]["name"] for document in of_kind(documents, *kinds)}


def labels(documents: Documents) -> Any:
    """The value of a label that every object has."""
    found = {document["metadata"].get("labels", {}).get("team") for document in documents}
    return found.pop() if len(found) == 1 else found


def aggregates(documents: Documents) -> bool:
    return any("aggregate-to" in str(role["metadata"]["labels"]) for role in of_kind(documents, "ClusterRole"))


def kept(documents: Documents) -> bool:
    annotations = (crd["metadata"].get("annotations", {}) for crd in of_kind(documents, "CustomResourceDefinition"))
    return all(found.get("helm.sh/resource-policy") == "keep" for found in annotations)


def how_many(*kinds: str) -> Callable[[Documents], int]:
    return lambda documents: len(of_kind(documents, *kinds))


def alerts(documents: Documents) -> dict[str, Object]:
    """The alerts by name."""
    (group,) = of_kind(documents, "PrometheusRule")[0]["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


runbook = the("PrometheusRule", "spec.groups.0.rules.0.annotations.runbook_url")

DIGEST = "sha256:" + "a" * 64
TOLERATION = {"key": "dedicated", "operator": "Exists"}
SPREAD = {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
VOLUME, MOUNT = {"name": "ca", "configMap": {"name": "ca"}}, {"name": "ca", "mountPath": "/etc/ca"}
CLUSTER = {"namespace": "kafka", "name": "main", "secrets": ["ca"]}
BUDGET, POLICY, MONITOR = ({f"{name}.enabled": True} for name in ("podDisruptionBudget", "networkPolicy", "podMonitor"))
ALERTS, DASHBOARD = {"prometheusRule.enabled": True}, {"dashboard.enabled": True}
FIRST_ALERT = "kafkareassignoperatordown"
TAKEN = {"snapshots.enabled": True, "snapshots.clusters": [CLUSTER]}
EVERYTHING = BUDGET | POLICY | MONITOR | ALERTS | DASHBOARD | TAKEN
JOB_POD = "spec.jobTemplate.spec.template"
JOB = f"{JOB_POD}.spec"
fs_group = the("CronJob", f"{JOB}.securityContext.fsGroup")
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
PROXY = {"name": "HTTPS_PROXY", "value": "http://proxy"}
NO_TIMES = dict.fromkeys(("periodSeconds", "timeoutSeconds", "failureThreshold"))
RELABELING = {"targetLabel": "zone", "replacement": "a"}

ROWS: list[tuple[str, Any, Callable[[Documents], Any], Any, dict[str, Any]]] = [
    # value, setting, what to look at, what is found there then, other values that are set before and after
    ("global", {"imagePullSecrets": [{"name": "all"}]}, pod("imagePullSecrets"), [{"name": "all"}], {}),
    ("nameOverride", "mover", the("Deployment", "metadata.name"), f"{NAME}-mover", {}),
    ("fullnameOverride", "mover", names_of("Deployment", "ServiceAccount", "Service"), {"mover"}, {}),
    ("commonLabels", {"team": "kafka"}, labels, "kafka", EVERYTHING),
    ("image.repository", "registry.example/op", container("image"), "registry.example/op:0.1.0", {}),
    ("image.tag", "dev", container("image"), f"{NAME}:dev", {}),
    ("image.digest", DIGEST, container("image"), f"{NAME}@{DIGEST}", {"image.tag": "dev"}),
    ("image.pullPolicy", "Never", container("imagePullPolicy"), "Never", {}),
    ("imagePullSecrets", [{"name": "pull"}], pod("imagePullSecrets"), [{"name": "pull"}], {}),
    ("replicas", 2, the("Deployment", "spec.replicas"), 2, {}),
    ("revisionHistoryLimit", 3, the("Deployment", "spec.revisionHistoryLimit"), 3, {}),
    ("terminationGracePeriodSeconds", 60, pod("terminationGracePeriodSeconds"), 60, {}),
    ("watchNamespaces", ["kafka"], variable("REASSIGN_WATCH_NAMESPACES"), "kafka", {}),
    ("protectRecords", False, how_many("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"), 0, {}),
    ("logLevel", "DEBUG", variable("REASSIGN_LOG_LEVEL"), "DEBUG", {}),
    ("crds.enabled", False, how_many("CustomResourceDefinition"), 0, {}),
    ("crds.keep", False, kept, False, {}),
    ("rbac.create", False, how_many("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"), 0, TAKEN),
    ("rbac.aggregateRoles", True, aggregates, True, {}),
    ("serviceAccount.create", False, how_many("ServiceAccount"), 0, {"serviceAccount.name": "mover"}),
    ("serviceAccount.name", "mover", pod("serviceAccountName"), "mover", {}),
    ("serviceAccount.annotations", {"a": "b"}, the("ServiceAccount", "metadata.annotations"), {"a": "b"}, {}),
    ("resources", {"limits": {"memory": "1Gi"}}, container("resources.limits.memory"), "1Gi", {}),
    ("tmpSizeLimit", "64Mi", pod("volumes.0.emptyDir.sizeLimit"), "64Mi", {}),
    ("podSecurityContext", {"runAsUser": 1000650000}, pod("securityContext.runAsUser"), 1000650000, {}),
    ("securityContext", {"runAsGroup": 0}, container("securityContext.runAsGroup"), 0, {}),
    ("deploymentAnnotations", {"a": "b"}, the("Deployment", "metadata.annotations"), {"a": "b"}, {}),
    ("podAnnotations", {"a": "b"}, the("Deployment", "spec.template.metadata.annotations"), {"a": "b"}, {}),
    ("podLabels", {"a": "b"}, the("Deployment", "spec.template.metadata.labels.a"), "b", {}),
    ("podAnnotations", {"a": "b"}, the("CronJob", f"{JOB_POD}.metadata.annotations"), {"a": "b"}, TAKEN),
    ("podLabels", {"a": "b"}, the("CronJob", f"{JOB_POD}.metadata.labels.a"), "b", TAKEN),
    ("nodeSelector", {"a": "b"}, pod("nodeSelector"), {"a": "b"}, {}),
    ("affinity", {"podAntiAffinity": {}}, pod("affinity"), {"podAntiAffinity": {}}, {}),
    ("tolerations", [TOLERATION], pod("tolerations"), [TOLERATION], {}),
    ("topologySpreadConstraints", [SPREAD], pod("topologySpreadConstraints"), [SPREAD], {}),
    ("priorityClassName", "high", pod("priorityClassName"), "high", {}),
    ("hostAliases", [{"ip": "192.0.2.1"}], pod("hostAliases"), [{"ip": "192.0.2.1"}], {}),
    ("dnsPolicy", "Default", pod("dnsPolicy"), "Default", {}),
    ("dnsConfig", {"searches": ["example"]}, pod("dnsConfig"), {"searches": ["example"]}, {}),
    ("extraEnv", [PROXY], variable("HTTPS_PROXY"), "http://proxy", {}),
    ("extraEnv", [PROXY], the("CronJob", f"{JOB}.containers.0.env"), [PROXY], TAKEN),
    ("extraEnvFrom", [{"secretRef": {"name": "env"}}], container("envFrom"), [{"secretRef": {"name": "env"}}], {}),
    ("extraVolumes", [VOLUME], last(pod("volumes")), VOLUME, {}),
    ("extraVolumeMounts", [MOUNT], last(container("volumeMounts")), MOUNT, {"extraVolumes": [VOLUME]}),
    ("livenessProbe", {"failureThreshold": 9}, container("livenessProbe.failureThreshold"), 9, {}),
    ("livenessProbe", None, container("livenessProbe"), None, {}),
    ("livenessProbe", NO_TIMES, container("livenessProbe"), {"httpGet": {"path": "/livez", "port": "http"}}, {}),
    ("readinessProbe", {"periodSeconds": 9}, container("readinessProbe.periodSeconds"), 9, {}),
    ("readinessProbe", None, container("readinessProbe"), None, {}),
    ("podDisruptionBudget.enabled", True, how_many("PodDisruptionBudget"), 1, {}),
    ("podDisruptionBudget.minAvailable", 0, the("PodDisruptionBudget", "spec.minAvailable"), 0, BUDGET),
    ("podDisruptionBudget.maxUnavailable", "50%", the("PodDisruptionBudget", "spec.maxUnavailable"), "50%", BUDGET),
    ("networkPolicy.enabled", True, how_many("NetworkPolicy"), 1, {}),
    ("networkPolicy.metricsFrom", [PEER], the("NetworkPolicy", "spec.ingress.0.from"), [PEER], POLICY),
    ("networkPolicy.egress", [{"to": [PEER]}], the("NetworkPolicy", "spec.egress"), [{"to": [PEER]}], POLICY),
    ("networkPolicy.egress", [], the("NetworkPolicy", "spec.egress"), [], POLICY),
    ("networkPolicy.egress", None, the("NetworkPolicy", "spec.egress"), [], POLICY),
    ("service.enabled", False, how_many("Service"), 0, {}),
    ("service.port", 9090, the("Service", "spec.ports.0.port"), 9090, {}),
    ("service.ipFamilyPolicy", "PreferDualStack", the("Service", "spec.ipFamilyPolicy"), "PreferDualStack", {}),
    ("service.annotations", {"a": "b"}, the("Service", "metadata.annotations"), {"a": "b"}, {}),
    ("service.labels", {"a": "b"}, the("Service", "metadata.labels.a"), "b", {}),
    ("podMonitor.enabled", True, how_many("PodMonitor"), 1, {}),
    ("podMonitor.namespace", "monitoring", the("PodMonitor", "metadata.namespace"), "monitoring", MONITOR),
    ("podMonitor.interval", "5s", the("PodMonitor", "spec.podMetricsEndpoints.0.interval"), "5s", MONITOR),
    ("podMonitor.scrapeTimeout", "4s", the("PodMonitor", "spec.podMetricsEndpoints.0.scrapeTimeout"), "4s", MONITOR),
    ("podMonitor.labels", {"release": "prom"}, the("PodMonitor", "metadata.labels.release"), "prom", MONITOR),
    (
        "podMonitor.relabelings",
        [RELABELING],
        the("PodMonitor", "spec.podMetricsEndpoints.0.relabelings"),
        [RELABELING],
        MONITOR,
    ),
    (
        "podMonitor.metricRelabelings",
        [RELABELING],
        the("PodMonitor", "spec.podMetricsEndpoints.0.metricRelabelings"),
        [RELABELING],
        MONITOR,
    ),
    ("prometheusRule.enabled", True, how_many("PrometheusRule"), 1, {}),
    ("prometheusRule.namespace", "monitoring", the("PrometheusRule", "metadata.namespace"), "monitoring", ALERTS),
    ("prometheusRule.labels", {"release": "prom"}, the("PrometheusRule", "metadata.labels.release"), "prom", ALERTS),
    ("prometheusRule.runbookUrl", "https://wiki.example/r", runbook, f"https://wiki.example/r#{FIRST_ALERT}", ALERTS),
    ("dashboard.enabled", True, how_many("ConfigMap"), 1, {}),
    ("dashboard.namespace", "monitoring", the("ConfigMap", "metadata.namespace"), "monitoring", DASHBOARD),
    ("dashboard.labels", {"folder": "kafka"}, the("ConfigMap", "metadata.labels.folder"), "kafka", DASHBOARD),
    ("snapshots.enabled", True, how_many("CronJob"), 1, {"snapshots.clusters": [CLUSTER]}),
    ("snapshots.schedule", "5 1 * * *", the("CronJob", "spec.schedule"), "5 1 * * *", TAKEN),
    (
        "snapshots.clusters",
        [CLUSTER | {"as": "other"}],
        lambda documents: "--name=other" in str(the("CronJob", f"{JOB}.containers.0.args")(documents)),
        True,
        TAKEN,
    ),
    ("snapshots.volume", {"hostPath": {"path": "/data"}}, how_many("PersistentVolumeClaim"), 0, TAKEN),
    ("snapshots.claim.size", "1Ti", the("PersistentVolumeClaim", "spec.resources.requests.storage"), "1Ti", TAKEN),
    ("snapshots.claim.storageClassName", "x", the("PersistentVolumeClaim", "spec.storageClassName"), "x", TAKEN),
    (
        "snapshots.claim.accessModes",
        ["ReadWriteMany"],
        the("PersistentVolumeClaim", "spec.accessModes"),
        ["ReadWriteMany"],
        TAKEN,
    ),
    (
        "snapshots.resources",
        {"limits": {"memory": "1Gi"}},
        the("CronJob", f"{JOB}.containers.0.resources.limits.memory"),
        "1Gi",
        TAKEN,
    ),
    ("snapshots.podSecurityContext", {"fsGroup": 1}, fs_group, 1, TAKEN),
    ("snapshots.podSecurityContext", {"fsGroup": None}, fs_group, None, TAKEN),
]
NOT_RENDERED = {"enabled"}
"""A parent chart's condition: helm reads it."""


def page() -> str:
    """The table of the values and their tests."""
    rendered = {row[0]: f"`{json.dumps(row[1])}`" for row in reversed(ROWS)}  # of two rows, the first one
    lines = []
    for value in values():
        modes = "all" if value.path in IN_ALL else ", ".join(m for m, used in MODES.items() if value.path in used)
        lines.append(f"| `{value.path}` | {rendered.get(value.path, 'read by helm alone')} | {modes} |\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
