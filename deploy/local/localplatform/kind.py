"""The platform on kind, for machines with Docker on Linux: only when asked for with PLATFORM=kind.

Kubernetes and the operator run in kind, which is built from the Go module in deploy/local/kind. The brokers are
processes of this machine, as always, and listen also on the gateway of kind's network, where pods reach them.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from localplatform import brokers, cache, operator_, parts, prerequisites
from localplatform.binaries import binaries
from localplatform.brokers import Brokers
from localplatform.console import PlatformError, say
from localplatform.controlplane import ApiServer
from localplatform.golang import go
from localplatform.image import CONTAINERFILE, OPERATOR, Image, source_tag
from localplatform.machine import CHECKOUT, LOCAL
from localplatform.processes import Processes, run

MODULE = Path(__file__).parents[1] / "kind"
CLUSTER = "kafka-reassign"
PLACE = LOCAL / "kind"
BROKERS = PLACE / "brokers"
KUBECONFIG = PLACE / "kubeconfig"
NAMED = f"--name={CLUSTER}"
CREATE = ("create", "cluster", NAMED, "--wait=3m")
LIST = ("get", "clusters")
DELETE = ("delete", "cluster", NAMED)


def chosen() -> bool:
    """Whether it was asked for."""
    return os.environ.get("PLATFORM") == "kind"


def prepare(part: str | None = None) -> None:
    """Install and build all that takes long, and start nothing."""
    _require_docker()
    _refuse_part(part)
    prerequisites.require(["brokers"])
    for build in (built, binaries, brokers.class_archive):
        build()


def up(part: str | None = None) -> None:
    """Create the cluster and start the brokers, unless both run, and install the operator."""
    prepare(part)
    parts.fetch_asked_version()
    processes = _processes()
    if CLUSTER not in kind(*LIST).split() or not parts.brokers_healthy(processes, BROKERS):
        _remove()  # either knows of the other what would be wrong
        say("creating a cluster with kind")
        kind(*CREATE)
    parts.start_brokers(processes, BROKERS, _gateway())
    server, found = running()
    operator_.install(server, found, _load_image())
    parts.add_example(found)
    parts.write_env(server, found)
    say("ready: source .local/env")


def down(part: str | None = None) -> None:
    """Delete the cluster and stop the brokers."""
    _require_docker()
    _refuse_part(part)
    _remove()
    say("stopped")


def running() -> tuple[ApiServer, Brokers]:
    """What `up` has started."""
    if not KUBECONFIG.exists():
        raise PlatformError("the platform is not up: make up PLATFORM=kind")
    server = ApiServer(PLACE, "", KUBECONFIG, certificate_authority=KUBECONFIG, audit_log=Path(os.devnull))
    return server, brokers.load(_processes(), BROKERS)


def built() -> Path:
    """The folder with the program; built once."""
    return cache.entry("kind", [MODULE / "go.mod", MODULE / "go.sum", "1"], _build)


def kind(*arguments: str) -> str:
    """Run kind, which keeps its cluster in a kubeconfig of its own, and return what it printed."""
    return run([built() / "kind", *arguments], env={"KUBECONFIG": str(KUBECONFIG)})


def _build(place: Path) -> None:
    say("building kind from source: once, some seconds")
    go(MODULE, "build", "-trimpath", "-ldflags", "-s -w", "-o", f"{place}/", "tool")


def _gateway() -> str:
    """This machine's address in kind's network."""
    networks = json.loads(run(["docker", "network", "inspect", "kind"]))[0]["IPAM"]["Config"]
    return next(str(network["Gateway"]) for network in networks if "." in network.get("Gateway", ""))


def _load_image() -> Image:
    say("building the operator's image with docker")
    image = Image(f"localhost/{OPERATOR.repository}", source_tag(OPERATOR), PLACE / "unused")
    what = (f"--file={CHECKOUT / CONTAINERFILE}", f"--target={OPERATOR.stage}", f"--tag={image.name}")
    run(["docker", "buildx", "build", "--load", *what, CHECKOUT])
    kind("load", "docker-image", image.name, NAMED)
    return image


def _require_docker() -> None:
    if not shutil.which("docker"):
        raise PlatformError(
            "PLATFORM=kind needs Docker: https://docs.docker.com/engine/install; without PLATFORM=kind it is not needed"
        )
    asked = subprocess.run(["docker", "version"], capture_output=True, text=True)
    if asked.returncode:
        said = "".join(asked.stderr.strip().splitlines()[-1:])
        raise PlatformError(f"PLATFORM=kind needs Docker's engine, which does not answer: {said}")


def _refuse_part(part: str | None) -> None:
    if part or os.environ.get("ARGOCD") == "1":
        raise PlatformError("with PLATFORM=kind the platform comes as a whole, without Argo CD: name no part")


def _remove() -> None:
    _processes().stop_all()
    kind(*DELETE)
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True, mode=0o700)


def _processes() -> Processes:
    return Processes(PLACE / "processes", LOCAL / "logs")
