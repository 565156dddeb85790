"""The platform as a whole: which parts there are, what each needs, and how to get from any state to up or down.

A part that is healthy is left alone. The node and the API server belong together, and so do the brokers and
the API server: what one of them knows of the other would be wrong after either was made anew.
"""

import os
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from localplatform import argocd, brokers, cache, dns, machine, node, operator_, prerequisites, prometheus
from localplatform.binaries import binaries
from localplatform.console import PlatformError, say
from localplatform.controlplane import CONTROL_PLANE, ApiServer, start_api_server, start_controllers
from localplatform.image import Image, fleet_image, operator_image
from localplatform.machine import ADDRESS, LOCAL, STATE
from localplatform.processes import Processes, publish
from localplatform.settings import asked
from localplatform.workload import Workload

# each part, and the parts that it stands on
NEEDS = {
    "api": ["api"],
    "node": ["api", "node"],
    "brokers": ["brokers"],
    "operator": ["api", "node", "brokers", "operator"],
    "argocd": ["api", "node", "brokers", "operator", "argocd"],
}
PARTS = list(NEEDS)
API, BROKERS, HAD_NODE = STATE / "api", STATE / "brokers", STATE / "api" / "had-node"
ARGOCD = STATE / "api" / "argocd"
LOCK = Path("/run/lock/kafka-reassign-local")


def up(part: str | None = None) -> None:
    """Start the part with all that it stands on, or everything; leave alone what runs and is well."""
    wanted = NEEDS[part or _everything()]
    _require_root()
    with cache.locked(LOCK, "another command changes the platform, waiting for it"):
        prerequisites.require(wanted)
        if "brokers" in wanted:
            fetch_asked_version()
        _take_machine()
        processes = machine.processes()
        if ("brokers" in wanted and not brokers_healthy(processes, BROKERS)) or not _cluster_healthy(processes):
            _stop_cluster(processes)
        machine.add_bridge()
        steps: dict[str, Callable[[Processes], None]] = {
            "api": _start_api,
            "node": _start_node,
            "brokers": lambda processes: start_brokers(processes, BROKERS, ADDRESS),
            "operator": _start_operator,
            "argocd": _start_argocd,
        }
        for step in wanted:
            steps[step](processes)
            _write_env(processes)
    say(f"ready: source {(LOCAL / 'env').relative_to(machine.CHECKOUT)}")


def prepare(part: str | None = None) -> None:
    """Install and build all that takes long, and leave nothing running."""
    wanted = NEEDS[part or _everything()]
    prerequisites.require(wanted)
    builds: dict[str, list[Callable[[], Path | Image]]] = {
        "api": [binaries],
        "node": [node.pause_image, dns.built],
        "brokers": [brokers.class_archive],
        "operator": [operator_image, fleet_image, prometheus.built],
        "argocd": [argocd.built],
    }
    for step in wanted:
        for build in builds[step]:
            build()
    say("everything that is built beforehand is there")


def down(part: str | None = None) -> None:
    """Stop the part with all that stands on it, or everything, and give back what was taken of the machine."""
    _require_root()
    with cache.locked(LOCK, "another command changes the platform, waiting for it"):
        if other := machine.others():
            raise PlatformError(f"the platform was started from another checkout: make -C {other} down")
        processes = machine.processes()
        if part is None:
            _remove_everything()
        elif part == "brokers":
            _stop_brokers(processes, BROKERS)
        elif part == "operator":
            if server := _api_server(processes):
                operator_.uninstall(server)
        else:
            _stop_cluster(processes)
    say("stopped")


def running() -> tuple[ApiServer, brokers.Brokers]:
    """What `up` has started."""
    server = ApiServer.load(API)
    if server is None:
        raise PlatformError("the platform is not up: make up")
    return server, brokers.load(machine.processes(), BROKERS)


def _everything() -> str:
    return "argocd" if os.environ.get("ARGOCD") == "1" else "operator"


def _require_root() -> None:
    if os.geteuid() != 0:
        raise PlatformError("the platform makes a network and runs containers, so it needs root: run it with sudo")


def _take_machine() -> None:
    """Become the owner of the machine, unless another checkout's platform runs on it."""
    if other := machine.others():
        if machine.processes().all():
            raise PlatformError(
                f"the platform runs already, from another checkout: {other}\n"
                f"use that one, or stop it: make -C {other} down"
            )
        say(f"removing what the platform of {other} left behind")
    elif machine.owner():
        return
    _remove_everything()
    machine.claim()


def _remove_everything() -> None:
    processes = machine.processes()
    node.clean_up(processes)
    processes.stop_all()
    machine.release()
    (LOCAL / "env").unlink(missing_ok=True)


def _api_server(processes: Processes) -> ApiServer | None:
    """The API server, if it and what belongs to it are well."""
    server = ApiServer.load(API)
    well = server and all(processes.find(name) for name in CONTROL_PLANE) and server.ready
    return server if well else None


def _cluster_healthy(processes: Processes) -> bool:
    server = _api_server(processes)
    return server is not None and (not HAD_NODE.exists() or node.healthy(processes, server))


def _stop_cluster(processes: Processes) -> None:
    if API.exists():
        say("stopping Kubernetes")
    argocd.stop(processes)
    node.clean_up(processes)
    processes.stop(*reversed(CONTROL_PLANE))
    machine.remove_folder(API)


def _start_api(processes: Processes) -> None:
    if _api_server(processes):
        return
    binaries()
    say("starting the API server")
    flags = node.api_server_flags(*node.client_certificate(API))
    server = start_api_server(processes, API, ADDRESS, flags)
    start_controllers(processes, server)


def _start_node(processes: Processes) -> None:
    server = _running_api_server(processes)
    if node.healthy(processes, server):
        return
    say("starting the node")
    HAD_NODE.touch()
    node.start(processes, server)


def _start_operator(processes: Processes) -> None:
    server, image = _running_api_server(processes), operator_image()
    if image.name not in node.images():
        node.import_image(image.archive)
    found = brokers.load(processes, BROKERS)
    operator_.install(server, found, image)
    add_example(found)


def _start_argocd(processes: Processes) -> None:
    server = _running_api_server(processes)
    if argocd.load(processes, server, ARGOCD):
        return
    say("starting Argo CD")
    argocd.stop(processes)
    found = argocd.start(processes, server, ARGOCD)
    say(f"Argo CD: {found.url}, its repository: {found.repository.url}")


def add_example(found: brokers.Brokers) -> None:
    """The topic that the manifests in deploy/examples move, with enough in it to watch."""
    work = Workload(found.bootstrap_servers)
    if found.count >= 4 and not work.replicas("orders"):
        say("writing records to the topic orders, for the examples")
        work.create("orders", [[0, 1, 2], [1, 2, 3]], 32 * 2**20)


def _running_api_server(processes: Processes) -> ApiServer:
    server = _api_server(processes)
    if not server:
        raise PlatformError(f"the API server does not run any more; see {LOCAL / 'logs'}")
    return server


def brokers_healthy(processes: Processes, directory: Path) -> bool:
    """Whether brokers and controllers run, or can be made to with their data, and are those that were asked for."""
    try:
        found = brokers.load(processes, directory)
    except PlatformError:
        return False
    there = {"BROKERS": str(found.count), "CONTROLLERS": str(len(found.controllers)), "KAFKA_VERSION": found.version}
    same = all(asked(name, value) == value for name, value in there.items())
    return any(map(found.alive, found.controllers)) and same


def fetch_asked_version() -> None:
    """Fetch the version of Kafka that was asked for: one that is not there is known before anything is changed."""
    if version := asked("KAFKA_VERSION", ""):
        brokers.libs(version)


def start_brokers(processes: Processes, directory: Path, bridge: str) -> None:
    """Start the brokers that were asked for, or those of them that are down; pods reach them at this address."""
    if brokers_healthy(processes, directory):
        found = brokers.load(processes, directory)
        for node in (*found.controllers, *found.ids):
            if not found.alive(node):
                say(f"node {node} of Kafka is down: starting it")
                found.restart(node)
        return
    _stop_brokers(processes, directory)
    count, version = asked("BROKERS", "4"), asked("KAFKA_VERSION", brokers.DEFAULT_VERSION)
    brokers.libs(version)
    say(f"starting {count} brokers of Kafka {version}")
    brokers.start(
        processes,
        directory,
        version=version,
        brokers=int(count),
        base_port=int(asked("KAFKA_PORT", str(brokers.PLATFORM_PORT))),
        bridge=bridge,
        secure=True,
        controllers=int(asked("CONTROLLERS", str(brokers.CONTROLLERS))),
    )


def _stop_brokers(processes: Processes, directory: Path) -> None:
    processes.stop(*(process.name for process in processes.all() if process.name.startswith("kafka-")))
    machine.remove_folder(directory)


def _write_env(processes: Processes) -> None:
    started = (BROKERS / "brokers.json").exists()
    write_env(ApiServer.load(API), brokers.load(processes, BROKERS) if started else None)


def write_env(server: ApiServer | None, found: brokers.Brokers | None) -> None:
    """Write the file that a shell sources: only what there is."""
    values: dict[str, object] = {}
    if server:
        values |= {"KUBECONFIG": server.kubeconfig, "AUDIT_LOG": server.audit_log}
    if found:
        values |= {
            "BOOTSTRAP_SERVERS": found.bootstrap_servers,
            "BRIDGE_BOOTSTRAP_SERVERS": found.bridge_bootstrap_servers,
            "KAFKA_LIBS": found.libs,
        }
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in values.items()]
    lines.append(f'export PATH={shlex.quote(f"{binaries()}:{plugin()}")}:"$PATH"')
    publish(LOCAL / "env", "\n".join([*lines, ""]))


def plugin() -> Path:
    """The folder with the programs of `kubectl kafka-reassign`, which run this checkout's source."""
    folder = LOCAL / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    scripts = tomllib.loads((machine.CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
    for name, entry in scripts.items():
        module, _, function = entry.partition(":")
        program = (
            f"#!/bin/sh\nexport PYTHONPATH={shlex.quote(str(machine.CHECKOUT / 'operator'))}\n"
            f'exec {shlex.quote(sys.executable)} -c "from {module} import {function}; {function}()" "$@"\n'
        )
        publish(folder / name, program, 0o755)
    return folder
