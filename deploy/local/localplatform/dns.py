"""The cluster's DNS: CoreDNS, built from the Go module in deploy/local/dns, as a process on the bridge.

It knows the Services and pods of the cluster. All other names do not exist, since pods reach nothing outside.
"""

import urllib.request
from pathlib import Path

from localplatform import cache
from localplatform.console import say
from localplatform.controlplane import ApiServer
from localplatform.golang import go
from localplatform.processes import Processes, free_port

MODULE = Path(__file__).parents[1] / "dns"
PROCESS, USER, DOMAIN = "coredns", "system:coredns", "cluster.local"

CONFIG = """\
.:53 {{
    bind {address}
    ready 127.0.0.1:{port}
    errors
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
    }}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""

RIGHTS = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": USER},
        "rules": [
            {"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    },
)


def built() -> Path:
    """The folder with the program `dns`; built once."""
    return cache.entry("dns", [MODULE / "go.mod", MODULE / "go.sum", MODULE / "main.go", "1"], _build)


def _build(place: Path) -> None:
    say("building CoreDNS from source: once, about a minute on two cores")
    go(MODULE, "build", "-trimpath", "-ldflags", "-s -w", "-o", f"{place}/", ".")


def start(processes: Processes, server: ApiServer, address: str, directory: Path) -> None:
    """Start it on port 53 of the address, with its settings in the directory; wait until it knows the Services."""
    server.apply(*RIGHTS)
    port, config = free_port(), directory / "Corefile"
    config.write_text(CONFIG.format(address=address, port=port, domain=DOMAIN, kubeconfig=server.kubeconfig_of(USER)))
    process = processes.start(PROCESS, [built() / "dns", "-conf", config])
    processes.wait("the cluster's DNS", lambda: _ready(port), process)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return True
    except OSError:
        return False
