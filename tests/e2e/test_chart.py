"""The chart on the platform in each of its modes, and from the files of a release: helm test, and a real move."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localplatform import debian, node, operator_, release
from localplatform.brokers import Brokers
from localplatform.certificates import write_private
from localplatform.controlplane import ApiServer, binaries
from localplatform.image import OPERATOR, operator_image
from localplatform.machine import CHECKOUT
from localplatform.operator_ import CHART, NAMESPACE, RELEASE
from localplatform.processes import run
from tests.e2e.chart_modes import ARBITRARY_USER, BY_NAMESPACE
from tests.e2e.world import MB, World
from tests.pages import blocks

INSTALLER = "installer"
"""A user with rights in the operator's namespace alone."""


@pytest.fixture(scope="module", autouse=True)
def restored(platform: tuple[ApiServer, Brokers]) -> Iterator[None]:
    """Afterwards the operator is as the platform has it."""
    yield
    server, cluster = platform
    operator_.uninstall(server)
    operator_.install(server, cluster, operator_image())


def commands(page: str, having: str) -> str:
    """The block of a page that has these words."""
    (found,) = (block.text for block in blocks() if block.page == f"docs/{page}" and having in block.text)
    return found


def carry_out(lines: str, folder: Path, kubeconfig: Path, **env: str) -> None:
    """Run the commands as a user would in a shell."""
    env |= {"PATH": f"{binaries()}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    run(["bash", "-euo", "pipefail", "-c", f"cd {folder}\n{lines}"], env=env)


def works(world: World, port: int = 8080) -> None:
    """Expect `helm test` to pass, and a move to succeed."""
    said = operator_.helm(world.api, "test", RELEASE, "--logs", "--timeout=5m")
    assert f"http://{RELEASE}.{NAMESPACE}.svc:{port}/readyz 200" in said
    orders = world.topic("orders", [0, 1], size=MB)
    world.wait_for(world.move("orders", {(orders, 0): [2, 1]}), "Succeeded")
    world.brokers_say({(orders, 0): [2, 1]})
    assert "the operator may not" not in world.operator.log()


def rights(world: World, account: str) -> set[str]:
    """The kinds of bindings of a ServiceAccount, with their namespaces."""
    bindings = json.loads(world.api.kubectl("get", "rolebinding,clusterrolebinding", "--all-namespaces", "-o", "json"))
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    return {
        binding["metadata"].get("namespace", "the whole cluster")
        for binding in bindings["items"]
        if subject in binding.get("subjects", ())
    }


def test_with_rights_on_the_whole_cluster(world: World) -> None:
    assert rights(world, RELEASE) == {"the whole cluster", NAMESPACE}
    works(world)


def test_by_namespace_with_all_that_pods_can_be_given(world: World) -> None:
    values = [f"--set-json={name}={json.dumps(value)}" for name, value in BY_NAMESPACE.items()]
    operator_.helm(
        world.api,
        "upgrade",
        RELEASE,
        CHART,
        *values,
        *operator_.image_flags(operator_image()),
        "--wait",
        "--timeout=5m",
    )
    assert rights(world, "mover") == {world.namespace, NAMESPACE}
    works(world, BY_NAMESPACE["service.port"])
    pids = world.operator.pids()
    assert len(pids) == BY_NAMESPACE["replicas"]
    process = Path("/proc") / str(pids[0])
    assert process.stat().st_uid == ARBITRARY_USER
    assert {b"EXTRA=set", b"REASSIGN_LOG_LEVEL=DEBUG"} <= set((process / "environ").read_bytes().split(b"\0"))
    files = process / "root" / "etc"
    assert (files / "extra" / "ca.crt").read_text().startswith("-----BEGIN CERTIFICATE")
    assert "broker.example" in (files / "hosts").read_text()
    assert "example.org" in (files / "resolv.conf").read_text()


def test_without_any_right_on_the_cluster(world: World, installer: Path) -> None:
    carry_out(commands("security/kubernetes.md", "templates/rbac.yaml"), CHECKOUT, world.api.kubeconfig)
    install = commands("security/kubernetes.md", "rbac.create=false")
    with_image = " ".join(["helm install", *operator_.image_flags(operator_image()), "--wait --timeout=5m"])
    carry_out(install.replace("helm install", with_image), CHECKOUT, installer)
    assert rights(world, RELEASE) == {world.namespace, NAMESPACE}
    works(world)


def test_the_files_of_a_release_install_as_the_docs_say(world: World, tmp_path: Path) -> None:
    made = release.Release(release.version_of(CHECKOUT), "HEAD", debian.epoch())
    (tmp_path / made.chart_file).write_bytes(release.chart_archive(CHART, made.seconds))
    release.write_image(tmp_path, made, OPERATOR, CHECKOUT)
    operator_.uninstall(world.api)
    lines = commands("operations/releases.md", "ctr --namespace")
    lines = lines.replace("VERSION", made.version).replace("amd64", debian.architecture())
    carry_out(lines, tmp_path, world.api.kubeconfig, CONTAINERD_ADDRESS=str(node.SOCKET))
    world.api.kubectl("rollout", "status", f"deployment/{RELEASE}", f"--namespace={NAMESPACE}", "--timeout=5m")
    works(world)


@pytest.fixture
def installer(world: World, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a user with the role admin in the operator's namespace, where nothing is installed."""
    operator_.uninstall(world.api)
    kubectl = world.api.kubectl
    kubectl(
        "create", "rolebinding", INSTALLER, "--clusterrole=admin", f"--user={INSTALLER}", f"--namespace={NAMESPACE}"
    )
    config: dict[str, Any] = json.loads(world.api.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = INSTALLER
    write_private(tmp_path / "kubeconfig", json.dumps(config))
    yield tmp_path / "kubeconfig"
    kubectl("delete", "rolebinding", INSTALLER, f"--namespace={NAMESPACE}")
    label = f"--selector=app.kubernetes.io/instance={RELEASE}"
    operator_.uninstall(world.api)
    for namespace in (NAMESPACE, world.namespace):
        kubectl("delete", "role,rolebinding", label, f"--namespace={namespace}")
    for crd in json.loads(kubectl("get", "crd", "-o", "json", "--show-managed-fields"))["items"]:
        fields = [of for of in crd["metadata"]["managedFields"] if of["manager"] != "kubectl"]  # helm's alone again
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": fields}]
        kubectl("patch", "crd", crd["metadata"]["name"], "--type=json", "--patch", json.dumps(patch))
