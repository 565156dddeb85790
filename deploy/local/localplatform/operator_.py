"""The operator on the platform: its image, its chart, and a KafkaCluster for the brokers."""

import json
from contextlib import suppress
from pathlib import Path

from localplatform import cache
from localplatform.binaries import binaries
from localplatform.brokers import Brokers
from localplatform.console import PlatformError, say
from localplatform.controlplane import ApiServer
from localplatform.image import Image
from localplatform.machine import CHECKOUT, LOCAL
from localplatform.processes import run

CHART = CHECKOUT / "charts" / "kafka-reassign-operator"
RELEASE, NAMESPACE = "kafka-reassign-operator", "kafka-reassign"
CLUSTER_NAMESPACE, CLUSTER = "kafka", "local"


def install(server: ApiServer, brokers: Brokers, image: Image, chart: Path = CHART) -> None:
    """Bring the operator to this image, which the cluster has, and this chart; wait until it serves."""
    installed = server.directory / "operator-installed"
    files = sorted(path for path in chart.rglob("*") if path.is_file())
    pins: list[cache.Pin] = [image.name]
    for path in files:
        pins += [str(path.relative_to(chart)), path]
    state = cache.key(pins)
    if not _is_installed(server) or not installed.exists() or installed.read_text() != state:
        say("installing the operator with its chart")
        flags = ["--create-namespace", "--wait", "--timeout=5m"]
        try:
            helm(server, "upgrade", "--install", RELEASE, chart, *flags, *image_flags(image))
        except PlatformError as error:
            raise PlatformError(f"{error}\n{_what_pods_say(server)}") from None
        installed.write_text(state)
    _apply_cluster(server, brokers)


def image_flags(image: Image) -> list[str]:
    """What has helm's chart take this image, which the cluster has."""
    settings = {"repository": image.repository, "tag": image.tag, "pullPolicy": "Never"}
    return [f"--set=image.{name}={value}" for name, value in settings.items()]


def revision(server: ApiServer) -> int:
    """The release's revision."""
    (latest,) = json.loads(helm(server, "history", RELEASE, "--max=1", "--output=json"))
    return int(latest["revision"])


def roll_back(server: ApiServer, revision: int) -> None:
    """Bring the operator back to an earlier revision of the release."""
    (server.directory / "operator-installed").unlink(missing_ok=True)
    helm(server, "rollback", RELEASE, str(revision), "--wait", "--timeout=5m")


def _is_installed(server: ApiServer) -> bool:
    """Whether the operator is there still: somebody may have uninstalled it with helm."""
    found = server.kubectl("get", f"deployment/{RELEASE}", f"--namespace={NAMESPACE}", "--ignore-not-found", "-o=name")
    return bool(found.strip())


def uninstall(server: ApiServer) -> None:
    """Remove the chart's release; resources that it keeps stay."""
    (server.directory / "operator-installed").unlink(missing_ok=True)
    helm(server, "uninstall", RELEASE, "--ignore-not-found", "--wait")


def helm(server: ApiServer, *arguments: str | Path) -> str:
    """Run helm as the administrator, in the operator's namespace."""
    return run([binaries() / "helm", f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}", *arguments])


def _what_pods_say(server: ApiServer) -> str:
    """Why the operator does not become ready: its pods, the end of their logs, and where all logs are."""
    pods = server.kubectl("get", "pods", f"--namespace={NAMESPACE}")
    read = ("logs", f"deployment/{RELEASE}", f"--namespace={NAMESPACE}")
    logs = []
    for which, flags in (("log", ()), ("log before its last restart", ("--previous",))):
        with suppress(PlatformError):  # there is no such container
            logs.append(f"the last lines of the operator's {which}:\n{server.kubectl(*read, '--tail=15', *flags)}")
    kubectl = f"kubectl --kubeconfig={server.kubeconfig} {' '.join(read)}"
    return "\n".join([pods, *logs, f"all of it: {kubectl}; logs of all other processes: {LOCAL / 'logs'}"])


def _apply_cluster(server: ApiServer, brokers: Brokers) -> None:
    resources = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLUSTER_NAMESPACE}},
        {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "KafkaCluster",
            "metadata": {"name": CLUSTER, "namespace": CLUSTER_NAMESPACE},
            "spec": {"bootstrapServers": brokers.bridge_bootstrap_servers},
        },
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": resources}
    server.kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=local-platform",
        "-f",
        "-",
        input=json.dumps(listed),
    )
    plain = json.dumps({"spec": {"tls": None, "sasl": None}})  # whatever somebody tried on it before
    server.kubectl(
        "patch", f"kafkacluster/{CLUSTER}", f"--namespace={CLUSTER_NAMESPACE}", "--type=merge", f"--patch={plain}"
    )
    say(f"waiting for the KafkaCluster {CLUSTER} in namespace {CLUSTER_NAMESPACE}")
    wait = ["wait", "--for=condition=Ready", f"kafkacluster/{CLUSTER}", f"--namespace={CLUSTER_NAMESPACE}"]
    server.kubectl(*wait, "--timeout=5m")
