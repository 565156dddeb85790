"""The node: containerd, the kubelet, kube-proxy and the cluster's DNS, on which pods run as anywhere else.

Each pod has a link of its own to the host (CNI's ptp), so that all its traffic is routed and Services work
without further kernel modules. Pods reach the brokers, the API server and the DNS on the bridge, and nothing outside.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localplatform import cache, dns
from localplatform.binaries import binaries
from localplatform.buildah import Buildah, with_storage
from localplatform.certificates import write_private
from localplatform.controlplane import ApiServer
from localplatform.machine import ADDRESS, RUN, STATE, kill_all, remove_devices, remove_folder
from localplatform.processes import Processes, free_port, run

NODE = "local"
SOCKET = RUN / "containerd.sock"
PAUSE_SOURCE = Path(__file__).parents[1] / "pause" / "main.go"
PAUSE_IMAGE = "localhost/pause:local"
POD_ADDRESSES, POD_GATEWAY = "10.250.1.0/24", "10.250.1.1"
CNI_PLUGINS = Path("/usr/lib/cni")
CNI_RESULTS = Path("/var/lib/cni/results")  # containerd decides where
NETWORK_NAME = "kafka-reassign-local"
CGROUP = "kafka-reassign-local"
CGROUPS = Path("/sys/fs/cgroup")
PROXY_CONFIG = "kube-proxy.json"
IMAGE_USER = 65532  # of deploy/Containerfile
AGENTS = ("kube-proxy", "kubelet", dns.PROCESS, "containerd")

CONTAINERD = f"""\
version = 2
root = "{STATE}/containerd"
state = "{RUN}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true  # a machine without CAP_SYS_RESOURCE cannot lower the score
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{STATE}/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "{RUN}/runc"
"""

NETWORK = {
    "cniVersion": "1.0.0",
    "name": NETWORK_NAME,
    "plugins": [
        {
            "type": "ptp",
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "dataDir": f"{STATE}/cni/addresses",
                "ranges": [[{"subnet": POD_ADDRESSES, "gateway": POD_GATEWAY}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}


def client_certificate(directory: Path) -> tuple[Path, Path]:
    """Certificate and key with which the API server talks to the kubelet (`kubectl logs`, `exec`).

    Self-signed, and so its own authority: the kubelet trusts it alone.
    """
    key, certificate = directory / "kubelet-client.key", directory / "kubelet-client.crt"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(key, run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]))
    subject = ["-subj", "/O=system:masters/CN=api-server", "-days", "825"]
    run(["openssl", "req", "-x509", "-new", "-key", key, "-out", certificate, *subject])
    return certificate, key


def api_server_flags(certificate: Path, key: Path) -> list[str]:
    """What an API server with a node needs beyond one without."""
    return [
        f"--kubelet-client-certificate={certificate}",
        f"--kubelet-client-key={key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
    ]


def start(processes: Processes, server: ApiServer) -> None:
    """Start the node's agents and wait until the API server calls the node ready."""
    clean_up(processes)
    _start_containerd(processes)
    import_image(pause_image())
    dns.start(processes, server, ADDRESS, STATE)
    _start_kubelet(processes, server)
    _start_proxy(processes, server)


def healthy(processes: Processes, server: ApiServer) -> bool:
    """Whether the agents run and the node is ready."""
    return all(processes.find(name) for name in AGENTS) and _node_ready(server)


def clean_up(processes: Processes) -> None:
    """Stop the agents, if any run, and remove every trace of their pods, also after a crash."""
    processes.stop(*AGENTS)
    kill_all("containers", lambda process: f"/{CGROUP}/" in (process / "cgroup").read_text())
    kill_all("containers' shims", _is_shim)
    for folder in (RUN / "containerd", RUN / "runc", STATE / "containerd" / "tmpmounts", STATE / "kubelet"):
        remove_folder(folder)
    remove_folder(STATE / "containerd")
    remove_folder(STATE / "cni")
    remove_devices(lambda device: POD_GATEWAY in json.dumps(device.get("addr_info")))
    for result in CNI_RESULTS.glob(f"{NETWORK_NAME}-*-eth0"):
        pod = result.name.removeprefix(f"{NETWORK_NAME}-").removesuffix("-eth0")
        result.unlink()
        (CNI_RESULTS / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
    if (STATE / PROXY_CONFIG).exists():  # otherwise the tables are somebody else's
        for family in ("ip", "ip6"):
            subprocess.run(["nft", "delete", "table", family, "kube-proxy"], capture_output=True)
        (STATE / PROXY_CONFIG).unlink()
    for hierarchy in _cgroup_hierarchies():
        for group, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            with contextlib.suppress(OSError):
                Path(group).rmdir()


def import_image(archive: Path) -> None:
    """Make an image archive known to the kubelet."""
    run(["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "import", archive])


def images() -> list[str]:
    """The names of the images that the kubelet knows."""
    return run(["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "list", "-q"]).split()


def volume(folder: Path, claim: str, namespace: str, access: str) -> dict[str, Any]:
    """A PersistentVolume that is this folder, named as the claim that gets it; pods write there as the images' user."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, IMAGE_USER, IMAGE_USER)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": claim},
        "spec": {
            "accessModes": [access],
            "capacity": {"storage": "10Gi"},
            "claimRef": {"namespace": namespace, "name": claim},
            "hostPath": {"path": str(folder.absolute()), "type": "Directory"},
        },
    }


def pause_image() -> Path:
    """An image with a program that does nothing, in which a pod's namespaces live; built once."""

    def build(place: Path) -> None:
        (place / "files").mkdir()
        program = place / "files" / "pause"
        run(["go", "build", "-ldflags", "-s -w", "-o", program, PAUSE_SOURCE], env={"CGO_ENABLED": "0"})
        (place / "files" / "Containerfile").write_text('FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n')

        def work(buildah: Buildah) -> None:
            buildah.build(PAUSE_IMAGE, place / "files")
            buildah.push(PAUSE_IMAGE, place / "image.tar")

        with_storage(work)

    return cache.entry("pause", [PAUSE_SOURCE, "3"], build) / "image.tar"


def _start_containerd(processes: Processes) -> None:
    (STATE / "cni" / "net.d").mkdir(parents=True)
    (STATE / "cni" / "net.d" / "network.conflist").write_text(json.dumps(NETWORK))
    (STATE / "containerd.toml").write_text(CONTAINERD)
    process = processes.start("containerd", ["containerd", "--config", STATE / "containerd.toml"])
    version: list[str | Path] = ["ctr", "--address", SOCKET, "version"]
    processes.wait("containerd", lambda: subprocess.run(version, capture_output=True).returncode == 0, process)


def _start_kubelet(processes: Processes, server: ApiServer) -> None:
    for hierarchy in _cgroup_hierarchies():
        (hierarchy / CGROUP).mkdir(exist_ok=True)
    config = _write_config(
        STATE / "kubelet.json",
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS,
            "port": free_port(ADDRESS),
            "healthzPort": 0,
            "clusterDNS": [ADDRESS],
            "clusterDomain": dns.DOMAIN,
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "podLogsDir": f"{STATE}/kubelet/logs",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{CGROUP}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "makeIPTablesUtilChains": False,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(server.directory / "kubelet-client.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},  # to who holds the API server's certificate
            "featureGates": {"KubeletCrashLoopBackOffMax": True},
            "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},  # so that tests that kill need not wait
            "evictionHard": {"imagefs.available": "1%", "nodefs.available": "1%", "memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,  # what is imported is not pulled again
        },
    )
    process = processes.start(
        "kubelet",
        [
            binaries() / "kubelet",
            f"--config={config}",
            f"--kubeconfig={server.kubeconfig_of(f'system:node:{NODE}')}",
            f"--hostname-override={NODE}",
            f"--node-ip={ADDRESS}",
            f"--root-dir={STATE}/kubelet",
            f"--cert-dir={STATE}/kubelet/pki",
        ],
    )
    processes.wait("the node", lambda: _node_ready(server), process)


def _start_proxy(processes: Processes, server: ApiServer) -> None:
    config = _write_config(
        STATE / PROXY_CONFIG,
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": str(server.kubeconfig_of("system:kube-proxy"))},
            "hostnameOverride": NODE,
            "bindAddress": ADDRESS,
            "clusterCIDR": POD_ADDRESSES,
            "healthzBindAddress": f"127.0.0.1:{free_port()}",
            "metricsBindAddress": f"127.0.0.1:{free_port()}",
            "conntrack": {"maxPerCore": 0},
        },
    )
    process = processes.start("kube-proxy", [binaries() / "kube-proxy", f"--config={config}"])
    table = ["nft", "list", "table", "ip", "kube-proxy"]
    processes.wait("kube-proxy", lambda: subprocess.run(table, capture_output=True).returncode == 0, process)


def _node_ready(server: ApiServer) -> bool:
    path = "{.status.conditions[?(@.type=='Ready')].status}{.spec.taints}"
    return server.kubectl("get", "node", NODE, "-o", f"jsonpath={path}", "--ignore-not-found") == "True"


def _write_config(path: Path, content: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(content, indent=1))
    return path


def _is_shim(process: Path) -> bool:
    arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return "containerd-shim" in arguments[0] and str(SOCKET) in arguments


def _cgroup_hierarchies() -> list[Path]:
    """The folders in which a group must be made: one per controller (version 1), or the one of version 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [folder for folder in CGROUPS.iterdir() if (folder / "cgroup.procs").exists() and not folder.is_symlink()]
