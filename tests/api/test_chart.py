"""The chart, rendered by helm and installed on a real API server (which runs no pods)."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubernetes.aio.config import incluster_config

from localplatform.controlplane import ApiServer, api_server, start_controllers
from localplatform.processes import TIMEOUT, Processes, wait_until
from localplatform.release import chart_archive
from reassign.api.common import FINALIZER
from reassign.kube.access import RIGHTS, lease_rights
from tests.api.helm import CHART, NAME, ROOT, Helm, flags, of_kind, rights
from tests.api.kubectl import Kubectl, Object, RefusedError, cluster, reassignment
from tests.unit.cli import error_of, run


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path)


NEEDED = {(right.group, right.resource, verb) for right in RIGHTS for verb in right.verbs}
NEEDED_FOR_LEASE = {(right.group, right.resource, verb) for right in lease_rights(NAME) for verb in right.verbs}


def test_helm_finds_nothing_to_complain_about(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_helm_reads_the_archive_of_a_release(helm: Helm, tmp_path: Path) -> None:
    archive = tmp_path / "chart.tgz"
    archive.write_bytes(chart_archive(CHART, 1_700_000_000))
    assert helm("template", NAME, str(archive)) == helm("template", NAME, str(CHART))


def test_the_definitions_are_those_of_the_crds_folder_and_are_kept(helm: Helm) -> None:
    rendered = of_kind(helm.template(), "CustomResourceDefinition")
    assert {crd["metadata"]["annotations"]["helm.sh/resource-policy"] for crd in rendered} == {"keep"}
    source = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").iterdir())]
    assert [crd["spec"] for crd in rendered] == [crd["spec"] for crd in source]


def test_the_definitions_can_go_with_the_release_or_be_left_out(helm: Helm) -> None:
    gone = of_kind(helm.template(crds={"keep": False}), "CustomResourceDefinition")
    assert [crd["metadata"].get("annotations") for crd in gone] == [None] * 6
    assert of_kind(helm.template(crds={"enabled": False}), "CustomResourceDefinition") == []


def test_the_operator_may_do_what_it_asks_for_and_nothing_else(helm: Helm) -> None:
    documents = helm.template()
    everywhere = [role for role in of_kind(documents, "ClusterRole") if role["metadata"]["name"] == NAME]
    assert [rights(role) for role in everywhere] == [NEEDED]
    assert [rights(role) for role in of_kind(documents, "Role")] == [NEEDED_FOR_LEASE]
    bound = of_kind(documents, "ClusterRoleBinding", "RoleBinding")
    assert [binding["roleRef"]["name"] for binding in bound] == [NAME, f"{NAME}-lease"]


def test_of_leases_it_may_change_its_own_alone(helm: Helm) -> None:
    (role,) = of_kind(helm.template(), "Role")
    named = {tuple(rule["verbs"]): rule.get("resourceNames") for rule in role["rules"]}
    assert named == {right.verbs: [right.name] if right.name else None for right in lease_rights(NAME)}


def test_with_watched_namespaces_it_may_do_that_in_these_alone(helm: Helm) -> None:
    documents = helm.template(watchNamespaces=["kafka", "team-a"])
    assert of_kind(documents, "ClusterRoleBinding") == []
    allowed = {role["metadata"]["namespace"]: rights(role) for role in of_kind(documents, "Role")}
    assert allowed == {"kafka": NEEDED, "team-a": NEEDED, "system": NEEDED_FOR_LEASE}
    (deployment,) = of_kind(documents, "Deployment")
    environment = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "REASSIGN_WATCH_NAMESPACES", "value": "kafka,team-a"} in environment


def test_the_default_account_does_not_get_the_operators_rights(helm: Helm) -> None:
    unnamed = {"serviceAccount.create": False}
    for rights_to_give in ({}, {"rbac.create": False}, {"protectRecords": False}):
        with pytest.raises(RefusedError, match=r"serviceAccount\.name is empty.* name an account of its own"):
            helm.template(**unnamed | rights_to_give)

    def accounts(**values: Any) -> set[str]:
        documents = helm.template(**unnamed, **values)
        bound = of_kind(documents, "ClusterRoleBinding", "RoleBinding")
        pods = [found["spec"]["template"]["spec"]["serviceAccountName"] for found in of_kind(documents, "Deployment")]
        return {subject["name"] for binding in bound for subject in binding["subjects"]} | set(pods)

    assert accounts(**{"serviceAccount.name": "mover"}) == {"mover"}
    assert accounts(**{"rbac.create": False, "protectRecords": False}) == {"default"}


def test_viewers_and_editors_of_a_namespace_may_view_and_edit_our_kinds(helm: Helm) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    aggregated = {
        label.removeprefix(prefix): {verb for _, _, verb in rights(role)}
        for role in of_kind(helm.template(rbac={"aggregateRoles": True}), "ClusterRole")
        for label in role["metadata"]["labels"]
        if label.startswith(prefix)
    }
    assert "reassignmentrecords" not in str(
        [
            role
            for role in of_kind(helm.template(rbac={"aggregateRoles": True}), "ClusterRole")
            if prefix in str(role["metadata"]["labels"])
        ]
    )
    assert aggregated == {
        "view": {"get", "list", "watch"},
        "edit": {"create", "update", "patch", "delete", "deletecollection"},
    }


def test_who_may_edit_may_only_view_what_acts_on_the_cluster(helm: Helm) -> None:
    roles = of_kind(helm.template(rbac={"aggregateRoles": True}), "ClusterRole")
    kinds = {role["metadata"]["name"]: {resource for _, resource, _ in rights(role)} for role in roles}
    assert kinds[f"{NAME}-view"] - kinds[f"{NAME}-edit"] == {"brokerdecommissions", "reassignmentpolicies"}


def test_the_image_is_the_one_that_was_asked_for(helm: Helm) -> None:
    def image(**values: Any) -> str:
        (deployment,) = of_kind(helm.template(**values), "Deployment")
        return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])

    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert image() == f"{NAME}:{version}"
    assert image(image={"repository": "registry.example/op", "tag": "dev"}) == "registry.example/op:dev"


def test_pods_roll_and_are_spread_over_nodes(helm: Helm) -> None:
    def deployment(**values: Any) -> Object:
        (found,) = of_kind(helm.template(**values), "Deployment")
        spec: Object = found["spec"]
        return spec

    assert (deployment()["replicas"], deployment(replicas=2)["replicas"]) == (1, 2)
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    assert deployment()["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    (spread,) = deployment()["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == deployment()["selector"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")


def test_a_disruption_budget_says_how_many(helm: Helm) -> None:
    with pytest.raises(RefusedError, match="neither minAvailable nor maxUnavailable is set"):
        helm.template(podDisruptionBudget={"enabled": True, "maxUnavailable": None})
    (budget,) = of_kind(helm.template(podDisruptionBudget={"enabled": True, "minAvailable": 1}), "PodDisruptionBudget")
    assert {name: budget["spec"].get(name) for name in ("minAvailable", "maxUnavailable")} == {
        "minAvailable": 1,
        "maxUnavailable": None,
    }


def test_the_pod_of_helm_test_asks_until_the_operator_is_ready(helm: Helm) -> None:
    (pod,) = of_kind(helm.template(), "Pod")
    (container,) = pod["spec"]["containers"]
    script, url = container["args"]
    assert (container["command"], url) == (["python3", "-c"], f"http://{NAME}.system.svc:8080/readyz")
    selector = of_kind(helm.template(), "Service")[0]["spec"]["selector"]
    assert not selector.items() <= pod["metadata"]["labels"].items()
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if len(asked) > 1 else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def ran(script: str, url: str) -> tuple[int, str]:
        ended = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, timeout=TIMEOUT)
        return ended.returncode, ended.stdout + ended.stderr

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/readyz"
        assert ran(script, url) == (0, f"{url} 200 \n")
        server.shutdown()
    assert asked == ["/readyz", "/readyz"]
    code, said = ran(script.replace("+ 60", "+ 0"), url)
    assert code == 1
    assert said.startswith(f"{url}: ")


# --- Snapshots ---

SNAPSHOTS = f"{NAME}-snapshots"
CLUSTERS = [
    {"namespace": "kafka", "name": "main", "secrets": ["main-password", "main-ca"]},
    {"namespace": "kafka", "name": "other", "secrets": ["main-ca"]},
    {"namespace": "team-a", "name": "main", "as": "team-a-main"},
]


def of_snapshots(documents: list[Object], *kinds: str) -> list[Object]:
    return [found for found in of_kind(documents, *kinds) if found["metadata"]["name"] == SNAPSHOTS]


def snapshots(helm: Helm, **values: Any) -> list[Object]:
    """What is rendered for snapshots of the clusters."""
    rendered = helm.template(snapshots={"enabled": True, "clusters": CLUSTERS} | values)
    return [found for found in rendered if found["metadata"]["name"] == SNAPSHOTS]


def pod_of(documents: list[Object]) -> Object:
    (job,) = of_kind(documents, "CronJob")
    pod: Object = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def test_no_snapshots_are_taken_unless_they_are_asked_for(helm: Helm) -> None:
    assert of_snapshots(helm.template(), "CronJob", "ServiceAccount", "PersistentVolumeClaim", "Role") == []


def test_snapshots_that_hang_do_not_keep_the_next_days_from_beginning(helm: Helm) -> None:
    (job,) = of_kind(snapshots(helm), "CronJob")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert 0 < job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 24 * 60 * 60


def test_each_clusters_snapshot_is_kept_even_when_others_fail(helm: Helm, tmp_path: Path) -> None:
    (container,) = pod_of(snapshots(helm))["containers"]
    program = tmp_path / "python3"
    program.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *other*) exit 3; esac\n')
    program.chmod(0o755)
    ran = subprocess.run(
        [*container["command"], *container["args"]], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    begins = "-m reassign.cli snapshot --into /snapshots"
    assert ran.stdout.splitlines() == [
        f"{begins} --namespace=kafka --cluster=main --name=main",
        f"{begins} --namespace=kafka --cluster=other --name=other",
        f"{begins} --namespace=team-a --cluster=main --name=team-a-main",
    ]
    assert (ran.returncode, ran.stderr) == (1, "no snapshot: --namespace=kafka --cluster=other --name=other\n")


def test_the_snapshot_account_may_read_only_its_clusters_and_secrets(helm: Helm) -> None:
    documents = snapshots(helm)
    allowed = {
        role["metadata"]["namespace"]: [(r["resources"], r["verbs"], r["resourceNames"]) for r in role["rules"]]
        for role in of_kind(documents, "Role")
    }
    assert allowed == {
        "kafka": [
            (["kafkaclusters"], ["get"], ["main", "other"]),
            (["secrets"], ["get"], ["main-ca", "main-password"]),
        ],
        "team-a": [(["kafkaclusters"], ["get"], ["main"])],
    }
    bound = {binding["metadata"]["namespace"]: binding["subjects"] for binding in of_kind(documents, "RoleBinding")}
    account = {"kind": "ServiceAccount", "name": SNAPSHOTS, "namespace": "system"}
    assert bound == {"kafka": [account], "team-a": [account]}
    assert pod_of(documents)["serviceAccountName"] == SNAPSHOTS


def test_snapshots_are_kept_on_their_own_claim_or_an_existing_volume(helm: Helm) -> None:
    documents = snapshots(helm)
    (claim,) = of_kind(documents, "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "storageClassName" not in claim["spec"]
    mounted = {"name": "snapshots", "persistentVolumeClaim": {"claimName": SNAPSHOTS}}
    assert pod_of(documents)["volumes"][0] == mounted

    documents = snapshots(helm, volume={"nfs": {"server": "files", "path": "/fleet"}})
    assert of_kind(documents, "PersistentVolumeClaim") == []
    assert pod_of(documents)["volumes"][0] == {"name": "snapshots", "nfs": {"server": "files", "path": "/fleet"}}


def test_two_clusters_are_not_kept_under_one_name(helm: Helm) -> None:
    with pytest.raises(RefusedError, match=r"two are kept as main; give one of them another name with `as`"):
        snapshots(helm, clusters=[*CLUSTERS, {"namespace": "team-b", "name": "main"}])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"snapshots": {"enabled": True}}, "/snapshots/clusters"),
        ({"snapshots": {"clusters": [{"name": "main"}]}}, "/snapshots/clusters/0"),
        ({"snapshots": {"clusters": [{"namespace": "kafka", "name": "a; b"}]}}, "/snapshots/clusters/0/name"),
        ({"snapshots": {"clusters": [{"namespace": "kafka", "name": "a", "as": "../b"}]}}, "/snapshots/clusters/0/as"),
        ({"snapshots": {"claim": {"accessModes": ["ReadOnlyMany"]}}}, "/snapshots/claim/accessModes/0"),
        ({"snapshots": {"folder": "/"}}, "folder"),
        ({"watchNamespaces": "kafka"}, "/watchNamespaces"),
        ({"watchNamespaces": ["Kafka"]}, "/watchNamespaces/0"),
        ({"logLevel": "verbose"}, "/logLevel"),
        ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
        ({"crds": {"keep": "yes"}}, "/crds/keep"),
        ({"protectRecords": "yes"}, "/protectRecords"),
        ({"podLabels": {"app.kubernetes.io/name": "x"}}, "/podLabels/app.kubernetes.io~1name"),
        ({"commonLabels": {"app.kubernetes.io/instance": "x"}}, "/commonLabels/app.kubernetes.io~1instance"),
        ({"service.labels": {"a": "b c"}}, "/service/labels/a"),
        ({"fullnameOverride": "A_b"}, "/fullnameOverride"),
        ({"nameOverride": "a b"}, "/nameOverride"),
        ({"serviceAccount": {"name": "A_b"}}, "/serviceAccount/name"),
        ({"tmpSizeLimit": "abc"}, "/tmpSizeLimit"),
        ({"snapshots": {"claim": {"size": "much"}}}, "/snapshots/claim/size"),
        ({"snapshots": {"schedule": "foo"}}, "/snapshots/schedule"),
        ({"global": {"imagePullSecrets": ["x"]}}, "/global/imagePullSecrets/0"),
        ({"imagePullSecrets": [{}]}, "/imagePullSecrets/0"),
        ({"extraVolumes": [{"name": "tmp", "emptyDir": {}}]}, "/extraVolumes/0/name"),
        ({"extraVolumeMounts": [{"name": "x", "mountPath": "/tmp"}]}, "/extraVolumeMounts/0/mountPath"),
        ({"livenessProbe": {"exec": {"command": ["true"]}}}, "at '/livenessProbe': additional properties 'exec'"),
        ({"service": {"port": None}}, "at '/service': missing property 'port'"),
        ({"image": None}, "missing property 'image'"),
        ({"crds": None}, "missing property 'crds'"),
        ({"rbac": None}, "missing property 'rbac'"),
        ({"service": None}, "missing property 'service'"),
        ({"replica": 2}, "replica"),
    ],
)
def test_a_value_that_the_chart_does_not_know_is_refused_by_name(
    helm: Helm, values: dict[str, Any], named: str
) -> None:
    with pytest.raises(RefusedError, match=named):
        helm.template(**values)


# --- On an API server of their own, since a release owns the definitions ---


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without our kinds, with a namespace where Kubernetes admits only restricted pods."""
    with api_server(tmp_path_factory.mktemp("chart")) as server:
        kubectl = Kubectl(server)
        kubectl("create", "namespace", "system")
        kubectl("label", "namespace", "system", "pod-security.kubernetes.io/enforce=restricted")
        yield server


@pytest.fixture
def cluster_helm(bare: ApiServer, tmp_path: Path) -> Helm:
    """Helm with a cluster, on which another test may have left the release."""
    return Helm(tmp_path, bare.kubeconfig)


def install(helm: Helm, kubectl: Kubectl, **values: Any) -> str:
    """Install the release with these values, or make it what it would be then; returns the notes."""
    told = helm("upgrade", "--install", "--reset-values", NAME, str(CHART), "--namespace=system", *flags(values))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
    return told


def may(kubectl: Kubectl, verb: str, resource: str, namespace: str) -> bool:
    """Whether the operator's ServiceAccount may; to kubectl, what follows a slash is a name and no subresource."""
    account = f"--as=system:serviceaccount:system:{NAME}"
    what = [resource.removesuffix("/status"), *(["--subresource=status"] if resource.endswith("/status") else [])]
    try:
        kubectl("auth", "can-i", verb, *what, account, f"--namespace={namespace}", "--quiet")
    except RefusedError:
        return False
    return True


def test_the_pod_is_admitted_where_only_restricted_ones_are(bare: ApiServer, cluster_helm: Helm) -> None:
    kubectl = Kubectl(bare, "system")
    install(cluster_helm, kubectl)
    template = kubectl.json("get", "deployment", NAME)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": template["spec"]}
    kubectl.apply(pod, "--dry-run=server")
    del template["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(RefusedError, match='violates PodSecurity "restricted'):
        kubectl.apply(pod, "--dry-run=server")


def test_a_pod_that_takes_snapshots_is_admitted_there_too(bare: ApiServer, cluster_helm: Helm) -> None:
    kubectl = Kubectl(bare, "system")
    clusters = [{"namespace": "default", "name": "main"}]
    install(cluster_helm, kubectl, snapshots={"enabled": True, "clusters": clusters})
    template = kubectl.json("get", "cronjob", SNAPSHOTS)["spec"]["jobTemplate"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": template["spec"]}
    kubectl.apply(pod, "--dry-run=server")


def test_a_snapshot_needs_no_more_than_its_pods_rights(
    bare: ApiServer, cluster_helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = Kubectl(bare)
    clusters = [{"namespace": "default", "name": "main", "secrets": ["main-password"]}]
    install(cluster_helm, kubectl, snapshots={"enabled": True, "clusters": clusters})
    kubectl("create", "secret", "generic", "main-password", "--from-literal=other=x")
    sasl = {"mechanism": "PLAIN", "username": "u", "passwordSecretRef": {"name": "main-password", "key": "password"}}
    sasl["allowPlaintext"] = True
    for name in ("main", "unlisted"):
        kubectl.apply(cluster(name, bootstrapServers="127.0.0.1:1", sasl=sasl))

    (tmp_path / "token").write_text(kubectl("create", "token", SNAPSHOTS, "--namespace=system"))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(bare.certificate_authority))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    address = urlsplit(bare.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(address.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))

    def said(name: str, code: int) -> str:
        return error_of(run("snapshot", "--into", tmp_path / "s", "--cluster", name, "-n", "default"), code)

    assert "the Secret default/main-password has no key password" in said("main", 2)  # so it was read
    kubectl("create", "secret", "generic", "another", "--from-literal=password=x")
    kubectl.patch("kafkacluster", "main", {"spec": {"sasl": {"passwordSecretRef": {"name": "another"}}}})
    assert "secrets/another is not allowed" in said("main", 3)
    assert "kafkaclusters/unlisted is not allowed" in said("unlisted", 3)
    kubectl.patch("kafkacluster", "main", {"spec": {"sasl": None}})
    assert "ClusterUnreachable" in said("main", 3)


def test_rights_are_as_wide_as_the_watched_namespaces(bare: ApiServer, cluster_helm: Helm) -> None:
    kubectl = Kubectl(bare)
    install(cluster_helm, kubectl, watchNamespaces=["default"])
    resource = "partitionreassignments.kafka.reassign.dev"
    assert may(kubectl, "patch", f"{resource}/status", "default")
    assert may(kubectl, "update", f"leases.coordination.k8s.io/{NAME}", "system")
    assert not may(kubectl, "update", "leases.coordination.k8s.io/another", "system")
    assert not may(kubectl, "patch", f"{resource}/status", "system")
    assert not may(kubectl, "get", "secrets", "system")
    assert may(kubectl, "create", "configmaps", "default")
    assert not may(kubectl, "create", "configmaps", "system")
    install(cluster_helm, kubectl)
    assert may(kubectl, "patch", f"{resource}/status", "system")
    assert may(kubectl, "delete", resource, "default")
    assert may(kubectl, "delete", "reassignmentplans.kafka.reassign.dev", "default")  # ttlSecondsAfterFinished
    assert not may(kubectl, "delete", "kafkaclusters.kafka.reassign.dev", "default")
    assert may(kubectl, "create", "reassignmentplans.kafka.reassign.dev", "default")  # of a BrokerDecommission
    assert may(kubectl, "patch", "brokerdecommissions.kafka.reassign.dev/status", "default")
    assert not may(kubectl, "create", "brokerdecommissions.kafka.reassign.dev", "default")
    assert not may(kubectl, "delete", "brokerdecommissions.kafka.reassign.dev", "default")
    assert may(kubectl, "patch", "reassignmentpolicies.kafka.reassign.dev/status", "default")
    for verb in ("create", "patch", "delete"):
        assert not may(kubectl, verb, "reassignmentpolicies.kafka.reassign.dev", "default")
    assert may(kubectl, "create", "reassignmentrecords.kafka.reassign.dev", "default")
    assert not may(kubectl, "delete", "reassignmentrecords.kafka.reassign.dev", "default")
    assert not may(kubectl, "list", "secrets", "default")
    assert [verb for verb in ("get", "list", "update", "delete") if may(kubectl, verb, "configmaps", "default")] == []


OPERATOR = f"--as=system:serviceaccount:system:{NAME}"
TENANT = "--as=tenant"
STRIP = (
    f'[{{"op": "test", "path": "/metadata/finalizers/0", "value": "{FINALIZER}"}},'
    ' {"op": "remove", "path": "/metadata/finalizers/0"}]'
)
OURS = "ReassignmentRecords are the operator's own"


@pytest.fixture
def tenants(bare: ApiServer, cluster_helm: Helm) -> Kubectl:
    """A namespace in which the user `tenant` has every right, beside the release."""
    kubectl = Kubectl(bare, "tenants")
    install(cluster_helm, kubectl)
    if not kubectl("get", "namespace", "tenants", "--ignore-not-found"):
        kubectl("create", "namespace", "tenants")
        rights = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"}}
        kubectl.apply(role | {"rules": [rights]})
        kubectl("create", "rolebinding", "all", "--role=all", "--user=tenant")
    assert wait_until(lambda: OURS in refusal(kubectl, record("probe"), TENANT))
    return kubectl


def record(name: str, held: bool = True) -> Object:
    """A ReassignmentRecord, as the operator makes it."""
    owner = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "PartitionReassignment", "name": "move", "uid": "u"}
    meta = {"name": name, "ownerReferences": [owner], "finalizers": [FINALIZER] if held else []}
    spec = {"clusterRef": {"name": "main", "namespace": "tenants"}, "part": 0, "topics": []}
    return {"apiVersion": owner["apiVersion"], "kind": "ReassignmentRecord", "metadata": meta, "spec": spec}


def make_settled(kubectl: Kubectl) -> None:
    """A PartitionReassignment with a record that nothing holds back."""
    made = record("settled", held=False)
    made["metadata"]["ownerReferences"][0]["uid"] = kubectl.apply(reassignment())["metadata"]["uid"]
    kubectl("create", "-f", "-", OPERATOR, input=json.dumps(made))


def refusal(kubectl: Kubectl, obj: Object, user: str) -> str:
    """What is said to a user who makes an object, if not that it is made."""
    try:
        kubectl("create", "-f", "-", "--dry-run=server", user, input=json.dumps(obj))
    except RefusedError as error:
        return str(error)
    return ""


def test_only_the_operator_writes_records_whatever_the_rights_of_others(tenants: Kubectl) -> None:
    tenants("create", "-f", "-", OPERATOR, input=json.dumps(record("made")))
    change = {"spec": {"topics": [{"topic": "orders", "topicId": "id", "partitions": []}]}}
    without = {"metadata": {"finalizers": []}}
    for patch in (change, without):
        with pytest.raises(RefusedError, match=OURS):
            tenants("patch", "reassignmentrecord", "made", "--type=merge", "-p", json.dumps(patch), TENANT)
    for which in (("made",), ("--all",)):
        with pytest.raises(RefusedError, match=OURS):
            tenants("delete", "reassignmentrecord", *which, "--wait=false", TENANT)
    tenants("patch", "reassignmentrecord", "made", "--type=merge", "-p", json.dumps(change), OPERATOR)
    assert refusal(tenants, reassignment(), TENANT) == ""
    tenants("patch", "reassignmentrecord", "made", "--type=merge", "-p", json.dumps(without), OPERATOR)
    tenants("delete", "reassignmentrecord", "made")


def test_garbage_collection_and_a_namespaces_end_delete_records(
    bare: ApiServer, tenants: Kubectl, tmp_path: Path
) -> None:
    processes = Processes(tmp_path / "processes", tmp_path / "logs", end_with_us=True)
    try:
        start_controllers(processes, bare)
        for cascade in ("background", "foreground"):
            make_settled(tenants)
            tenants("delete", "partitionreassignment", "move", f"--cascade={cascade}")
            tenants("wait", "--for=delete", "reassignmentrecord/settled", "--timeout=5m")
        make_settled(tenants)
        tenants("delete", "namespace", "tenants", "--timeout=5m")
    finally:
        processes.stop_all()


def test_an_administrator_may_remove_the_finalizer_of_a_record(tenants: Kubectl) -> None:
    tenants("create", "-f", "-", OPERATOR, input=json.dumps(record("held")))
    tenants("delete", "reassignmentrecord", "held", "--wait=false")
    tenants("patch", "reassignmentrecord", "held", "--type=json", "-p", STRIP)
    tenants("wait", "--for=delete", "reassignmentrecord/held", "--timeout=5m")


def test_records_are_protected_in_the_watched_namespaces_or_not_at_all(helm: Helm) -> None:
    def namespaces(**values: Any) -> list[Object | None]:
        policies = of_kind(helm.template(**values), "ValidatingAdmissionPolicy")
        return [policy["spec"]["matchConstraints"].get("namespaceSelector") for policy in policies]

    watched = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kafka", "team-a"]}
    assert namespaces() == [None]
    assert namespaces(watchNamespaces=["kafka", "team-a"]) == [{"matchExpressions": [watched]}]
    assert namespaces(protectRecords=False) == []


def test_resources_outlive_the_release_and_are_there_when_it_comes_back(bare: ApiServer, cluster_helm: Helm) -> None:
    kubectl = Kubectl(bare)
    install(cluster_helm, kubectl)
    kubectl.apply(reassignment())
    cluster_helm("uninstall", NAME, "--namespace=system")
    assert kubectl.read("kpr", "move")["spec"]["clusterRef"] == {"name": "main"}
    install(cluster_helm, kubectl)
    assert kubectl.read("kpr", "move")["spec"]["clusterRef"] == {"name": "main"}


def test_definitions_that_are_not_kept_go_with_the_release(bare: ApiServer, cluster_helm: Helm) -> None:
    kubectl = Kubectl(bare)
    install(cluster_helm, kubectl, crds={"keep": False})
    cluster_helm("uninstall", NAME, "--namespace=system")
    # the API server looks for objects of a kind in rounds, and puts off the next one when it is still being set up
    kubectl("wait", "--for=delete", "crd", "--all", "--timeout=5m")


STEPS = (
    "delete reassignmentpolicies",
    "delete brokerdecommissions",
    "delete reassignmentplans",
    "delete partitionreassignments",
    "delete kafkaclusters",
    "helm uninstall",
)


def test_the_notes_say_in_which_order_to_uninstall(bare: ApiServer, cluster_helm: Helm) -> None:
    notes = install(cluster_helm, Kubectl(bare))
    order = [notes.index(step) for step in STEPS]
    assert order == sorted(order)
