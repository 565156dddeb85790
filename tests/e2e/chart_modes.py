"""The ways in which the chart is installed on the platform, each with the values that it sets there."""

from __future__ import annotations

from typing import Any

from localplatform.operator_ import CLUSTER, CLUSTER_NAMESPACE

Values = dict[str, Any]
"""By path, such as image.tag."""

WATCHED: Values = {"watchNamespaces": [CLUSTER_NAMESPACE]}
ARBITRARY_USER = 1000650000
"""As OpenShift chooses one for a namespace."""

IN_ALL = {"image.repository", "image.tag", "image.pullPolicy"}
CLUSTER_WIDE: Values = {}
BY_NAMESPACE: Values = WATCHED | {
    "commonLabels": {"team": "kafka"},
    "imagePullSecrets": [{"name": "pull"}],
    "replicas": 2,
    "revisionHistoryLimit": 2,
    "terminationGracePeriodSeconds": 20,
    "logLevel": "DEBUG",
    "rbac.aggregateRoles": True,
    "serviceAccount.name": "mover",
    "serviceAccount.annotations": {"example.org/team": "kafka"},
    "resources": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
    "tmpSizeLimit": "32Mi",
    "podSecurityContext": {"runAsUser": ARBITRARY_USER, "runAsGroup": 0, "fsGroup": ARBITRARY_USER},
    "securityContext": {"runAsUser": ARBITRARY_USER},
    "deploymentAnnotations": {"example.org/team": "kafka"},
    "podAnnotations": {"example.org/team": "kafka"},
    "podLabels": {"example.org/team": "kafka"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"team": "kafka"}},
        }
    ],
    "priorityClassName": "system-cluster-critical",
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["broker.example"]}],
    "dnsPolicy": "ClusterFirst",
    "dnsConfig": {"searches": ["example.org"]},
    "extraEnv": [{"name": "EXTRA", "value": "set"}],
    "extraEnvFrom": [{"configMapRef": {"name": "kube-root-ca.crt"}}],
    "extraVolumes": [{"name": "extra", "configMap": {"name": "kube-root-ca.crt"}}],
    "extraVolumeMounts": [{"name": "extra", "mountPath": "/etc/extra"}],
    "livenessProbe": {"failureThreshold": 9},
    "readinessProbe": {"periodSeconds": 1},
    "podDisruptionBudget.enabled": True,
    "podDisruptionBudget.maxUnavailable": "50%",
    "networkPolicy.enabled": True,
    "service.port": 9090,
    "service.ipFamilyPolicy": "SingleStack",
    "service.annotations": {"example.org/team": "kafka"},
    "service.labels": {"example.org/team": "kafka"},
    "dashboard.enabled": True,
    "dashboard.labels": {"folder": "kafka"},
}
WITHOUT_CLUSTER_RIGHTS: Values = WATCHED | {"rbac.create": False, "crds.enabled": False, "protectRecords": False}
SNAPSHOTS: Values = {
    "snapshots.enabled": True,
    "snapshots.clusters": [{"namespace": CLUSTER_NAMESPACE, "name": CLUSTER}],
    "snapshots.podSecurityContext": {"fsGroup": None},
}
MODES = {
    "cluster-wide": CLUSTER_WIDE,
    "by namespace": BY_NAMESPACE,
    "without cluster rights": WITHOUT_CLUSTER_RIGHTS,
    "snapshots": SNAPSHOTS,
}
