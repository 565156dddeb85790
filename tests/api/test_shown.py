"""What the pages show, against a real API server: each manifest, and each command of kubectl and helm, as a dry run."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localplatform.controlplane import ApiServer
from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.common import FINALIZER
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import ReassignmentPlan
from reassign.api.reassignment_policy import ReassignmentPolicy
from tests.api.helm import CHART, Helm
from tests.api.kubectl import Kubectl, RefusedError, cluster, decommission, plan, policy, reassignment
from tests.pages import ROOT, Block, Command, manifests, of_program

OURS = "kafka.reassign.dev/v1alpha1"
STRIMZI = "kafka.strimzi.io/v1"
NAMESPACES = ("kafka", "fleet", "kafka-reassign", "team-a")
KINDS = (KafkaCluster, PartitionReassignment, ReassignmentPlan, BrokerDecommission, ReassignmentPolicy)
MODELS = {model.KIND: model for model in KINDS}
MAKERS = {"kcl": cluster, "kpr": reassignment, "krp": plan, "kbd": decommission, "krpol": policy}
CHANGES = {"apply", "create", "delete", "patch"}
RELEASE = "kafka-reassign-operator"
ABSENT = (
    'jobs.batch "fleet"',
    f'deployments.apps "{RELEASE}"',
    'configmaps "main-cancelled-1"',
    'reassignmentrecords.kafka.reassign.dev "main"',
)
"""What the pages name and this server does not have: it has neither controllers nor an operator."""
HARMLESS = (
    "condition not met",
    *(f'namespaces "{name}" already exists' for name in NAMESPACES),
    *(f"{name} not found" for name in ABSENT),
)
"""What kubectl says of commands that are right."""
UPGRADE_ONLY = {"-i", "--install", "--reuse-values", "--reset-values", "--reset-then-reuse-values"}

EXAMPLES = [
    (Block(str(path.relative_to(ROOT)), "yaml", path.name), yaml.safe_load(path.read_text()))
    for path in sorted(ROOT.glob("deploy/examples/*.yaml"))
]
SHOWN = [(block, found) for block, found in manifests() if found.get("apiVersion") == OURS]
VALUES = [(block, found) for block, found in manifests() if "apiVersion" not in found and "defaults" not in found]


def cases(found: list[tuple[Block, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(block, one, id=str(block)) for block, one in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a user has it: a checkout, and the files that the pages speak of."""
    found = tmp_path_factory.mktemp("user")
    for name in ("deploy", "charts", "crds"):
        (found / name).symlink_to(ROOT / name)
    (found / "ca.crt").write_text("a certificate")
    Helm(found)("package", str(CHART), "--destination", str(found))
    return found


@pytest.fixture(scope="module")
def user(api: ApiServer, folder: Path) -> Iterator[Kubectl]:
    """kubectl there, with the namespaces of the pages; what was made in them is gone at the end."""
    kubectl = Kubectl(api, "", cwd=folder)
    for namespace in NAMESPACES:
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    yield kubectl
    for kind in MAKERS:
        for found in kubectl.json("get", kind, "-n", "kafka")["items"]:
            kubectl("patch", kind, found["metadata"]["name"], "-n", "kafka", "--type=merge", "-p", NO_FINALIZERS)
        kubectl("delete", kind, "--all", "-n", "kafka")


NO_FINALIZERS = json.dumps({"metadata": {"finalizers": None}})


def test_what_is_shown_as_yaml_is_ours_strimzis_values_or_a_policy() -> None:
    rest = [str(block) for block, found in manifests() if found.get("apiVersion", OURS) not in (OURS, STRIMZI)]
    assert rest == []
    assert len(SHOWN) > 15


@pytest.mark.parametrize(("block", "manifest"), cases([*EXAMPLES, *SHOWN]))
def test_a_manifest_is_accepted_and_can_be_read(user: Kubectl, block: Block, manifest: dict[str, Any]) -> None:
    user("apply", "-f", "-", "--dry-run=server", "--validate=strict", input=json.dumps(manifest))
    assert MODELS[manifest["kind"]].parse(manifest).metadata.namespace == "kafka"


@pytest.mark.parametrize(("block", "values"), cases(VALUES))
def test_values_of_the_chart_are_accepted(tmp_path: Path, block: Block, values: dict[str, Any]) -> None:
    Helm(tmp_path).template(**values)


@pytest.mark.parametrize("command", of_program("kubectl"), ids=str)
def test_a_command_of_kubectl_is_accepted(user: Kubectl, folder: Path, command: Command) -> None:
    words = list(command.words[1:])
    if "kafkauser/" in str(command):
        pytest.skip("this API server has no Strimzi")
    if words[-2:] == ["-f", "-"]:
        pytest.skip("it applies what another program writes")
    make_what_is_named(user, words)
    if "-f" in words and words[0] == "apply":
        write_file(folder / words[words.index("-f") + 1], command.page)
    if words[0] in CHANGES:
        words += ["--dry-run=server", *(["--warnings-as-errors"] if words[0] == "patch" else [])]
    if words[0] == "wait":
        words = [word for word in words if "--timeout" not in word] + ["--timeout=0"]
    words = [word.replace("$digest", "sha256:" + "0a" * 32) for word in words]
    try:
        user(*words)
    except RefusedError as error:
        if not is_harmless(str(error)):
            raise


def is_harmless(said: str) -> bool:
    return any(harmless in said for harmless in HARMLESS)


@pytest.mark.parametrize(
    "words",
    [
        ("delete", "crd", "reassignmentrecord.kafka.reassign.dev", "--dry-run=server"),
        ("get", "secret", "kafka-movr", "-n", "kafka"),
        ("wait", "--for=condition=Available", "deployment/kafka-reassign", "-n", "kafka-reassign", "--timeout=0"),
    ],
    ids=" ".join,
)
def test_a_name_that_no_page_may_have_is_refused(user: Kubectl, words: tuple[str, ...]) -> None:
    with pytest.raises(RefusedError, match="NotFound") as refused:
        user(*words)
    assert not is_harmless(str(refused.value))


def make_what_is_named(user: Kubectl, words: list[str]) -> None:
    """The resources of ours that a command names, as TYPE/NAME or TYPE NAME: as a page shows them, or the least."""
    joined = [word.partition("/")[::2] for word in words]
    for kind, name in [*joined, *itertools.pairwise(words)]:
        if kind in MAKERS and name and not name.startswith("-"):
            least = MAKERS[kind](name)
            same = (found for _, found in [*EXAMPLES, *SHOWN] if key(found) == key(least))
            made = copy.deepcopy(next(same, least))
            made["metadata"] |= {"namespace": "kafka", "finalizers": [FINALIZER]}
            user("apply", "-f", "-", input=json.dumps(made))


def key(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def write_file(path: Path, page: str) -> None:
    """The file that a page applies is one of its manifests, by its name, or all of them."""
    if path.exists():
        return
    shown = [found for block, found in SHOWN if block.page == page]
    named = [found for found in shown if found["metadata"]["name"] == path.stem]
    assert shown
    path.write_text(yaml.safe_dump_all(named[-1:] or shown))


@pytest.mark.parametrize("command", of_program("helm"), ids=str)
def test_a_command_of_helm_is_accepted(folder: Path, command: Command) -> None:
    check_helm(Helm(folder, cwd=folder), *command.words[1:])


@pytest.mark.parametrize("verb", ["install", "upgrade"])
def test_a_wrong_value_in_a_command_of_helm_is_refused(folder: Path, verb: str) -> None:
    helm = Helm(folder, cwd=folder)
    command = (verb, RELEASE, "charts/kafka-reassign-operator", "-n", "kafka-reassign", "--set")
    check_helm(helm, *command, "image.tag=0.1.0")
    with pytest.raises(RefusedError, match="nonsense"):
        check_helm(helm, *command, "nonsense=1")


def check_helm(helm: Helm, verb: str, *words: str) -> None:
    """What a release is made or changed by is rendered; there is no release to remove."""
    assert words[0] == RELEASE
    if verb == "template":
        assert "kind: Role" in helm(verb, *words)
    elif verb in ("install", "upgrade"):
        assert "kind: Deployment" in helm("template", *(word for word in words if word not in UPGRADE_ONLY))
    else:
        assert (verb, *words) == ("uninstall", RELEASE, "-n", "kafka-reassign")
