"""The images as OpenShift runs them: any user in the group 0, no rights, and a root file system that is read-only."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import urlopen

import pytest

from localplatform import prerequisites
from localplatform.buildah import Buildah, with_storage
from localplatform.image import Image, fleet_image, operator_image
from localplatform.processes import TIMEOUT, free_port, wait_until
from reassign import __version__

USER = 123456
UNREACHABLE = {
    "current-context": "none",
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "clusters": [{"name": "none", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "none", "user": {}}],
}
SPARK = "from pyspark.sql import SparkSession as S; print(S.builder.master('local[1]').getOrCreate().range(7).count())"


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    """What builds images and runs containers is there."""
    prerequisites.require(["node", "operator"])


@contextmanager
def mounted(image: Image) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The image's file system, and its configuration."""
    used: list[tuple[Buildah, str]] = []

    def work(buildah: Buildah) -> None:
        buildah.load(image.name, image.archive)
        used.append((buildah, buildah("from", "--pull-never", image.name).split()[-1]))

    with_storage(work)
    buildah, container = used[-1]
    try:
        described = json.loads(buildah("inspect", "--type=image", image.name))
        yield Path(buildah("mount", container).strip()), described["OCIv1"]["config"]
    finally:
        buildah("rm", container)


@contextmanager
def container(image: Image, folder: Path, *command: str, **env: str) -> Iterator[Popen[str]]:
    """Run a command in a container of the image, which has this machine's network, and the folder as /tmp/shared."""
    writable = ["nosuid", "nodev", "mode=1777"]
    folder.chmod(0o755)
    with mounted(image) as (root, config):
        process = {
            "user": {"uid": USER, "gid": 0},
            "args": list(command),
            "env": [*config["Env"], *(f"{name}={value}" for name, value in env.items())],
            "cwd": config.get("WorkingDir") or "/",
            "noNewPrivileges": True,
        }
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": writable},
            {"destination": "/etc/hosts", "type": "bind", "source": "/etc/hosts", "options": ["bind", "ro"]},
            {"destination": "/tmp/shared", "type": "bind", "source": str(folder), "options": ["bind", "ro"]},
        ]
        bundle = {
            "ociVersion": "1.0.2",
            "process": process,
            "root": {"path": str(root), "readonly": True},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }
        (folder / "config.json").write_text(json.dumps(bundle))
        runc, name = ["runc", "--root", str(folder / "runc")], f"image-{uuid.uuid4().hex[:8]}"
        started = Popen([*runc, "run", "--bundle", str(folder), name], stdout=PIPE, stderr=PIPE, text=True)
        try:
            yield started
        finally:
            started.terminate()  # runc passes it on
            started.communicate(timeout=TIMEOUT)


def run(image: Image, folder: Path, *command: str, **env: str) -> tuple[int, str, str]:
    """The exit code of a command in a container, its output, and its errors."""
    with container(image, folder, *command, **env) as process:
        output, errors = process.communicate(timeout=TIMEOUT)
        return process.returncode, output, errors


def test_any_user_can_run_the_command_line(tmp_path: Path) -> None:
    code, output, errors = run(operator_image(), tmp_path, "python3", "-m", "reassign.cli", "--version")
    assert (code, output) == (0, f"kafka-reassign {__version__}\n"), errors


def test_any_user_plans_with_the_code_that_the_image_keeps(tmp_path: Path) -> None:
    code, _, errors = run(operator_image(), tmp_path, "python3", "-m", "reassign.planning.compile_ahead")
    assert code == 0, errors


def test_the_operator_serves_as_any_user(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "kubeconfig").write_text(json.dumps(UNREACHABLE))
    env = {"KUBECONFIG": "/tmp/shared/kubeconfig", "REASSIGN_HTTP_PORT": str(port), "REASSIGN_LEASE": "false"}
    with container(operator_image(), tmp_path, "python3", "-m", "reassign.controller", **env) as process:

        def alive() -> bool:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/livez", timeout=5) as answer:
                return bool(answer.status == 200)
            return process.poll() is not None

        assert wait_until(alive)
        assert process.poll() is None, process.communicate()


def test_any_user_can_run_spark(tmp_path: Path) -> None:
    command = ["python3", "/opt/operator/entrypoint.py", "python3", "-c", SPARK]
    code, output, errors = run(fleet_image(), tmp_path, *command, SPARK_LOCAL_IP="127.0.0.1")
    assert (code, output) == (0, "7\n"), errors
