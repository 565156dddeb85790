"""The control plane: etcd and the API server; for a cluster with a node also controller manager and scheduler.

Everyone logs in with a bearer token from one private file. The API server makes its own certificate.
"""

import json
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localplatform.binaries import binaries
from localplatform.certificates import write_private
from localplatform.console import PlatformError
from localplatform.processes import Process, Processes, free_port, run

__all__ = ["ApiServer", "api_server", "binaries", "start_api_server", "start_controllers"]

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SERVICE_ADDRESSES = "10.250.2.0/24"

# user: groups. Who logs in to a control plane; the names are those that Kubernetes' own roles expect.
ADMINISTRATOR = "administrator"
USERS = {
    ADMINISTRATOR: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "system:kube-proxy": "",
    "system:coredns": "",
    "system:node:local": "system:nodes",
}

# Who asked for what on our resources; bodies are left out, since they say nothing that a count needs.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "resources": [{"group": "kafka.reassign.dev"}]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class ApiServer:
    """A running API server, and how its administrator reaches it."""

    directory: Path
    url: str
    kubeconfig: Path
    certificate_authority: Path
    audit_log: Path
    """One JSON event per line (audit.k8s.io/v1) for each request on a resource of kafka.reassign.dev."""

    @classmethod
    def at(cls, directory: Path, url: str) -> "ApiServer":
        """The API server that keeps its things in the directory."""
        return cls(
            directory=directory,
            url=url,
            kubeconfig=directory / f"{ADMINISTRATOR}.kubeconfig",
            certificate_authority=directory / "certificates" / "apiserver.crt",
            audit_log=directory / "audit.log",
        )

    @classmethod
    def load(cls, directory: Path) -> "ApiServer | None":
        """The API server that an earlier command started there, if one did."""
        try:
            config = json.loads((directory / f"{ADMINISTRATOR}.kubeconfig").read_text())
        except FileNotFoundError:
            return None
        return cls.at(directory, config["clusters"][0]["cluster"]["server"])

    @property
    def token(self) -> str:
        """The administrator's bearer token (group system:masters)."""
        return _tokens(self.directory)[ADMINISTRATOR]

    def kubeconfig_of(self, user: str) -> Path:
        """A kubeconfig, readable by its owner only, of one of USERS."""
        path = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "local",
                    "cluster": {"server": self.url, "certificate-authority": str(self.certificate_authority)},
                }
            ],
            "users": [{"name": user, "user": {"token": _tokens(self.directory)[user]}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
            "current-context": "local",
        }
        write_private(path, json.dumps(config, indent=1))
        return path

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """Run kubectl as the administrator and return what it printed."""
        return run([binaries() / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments], input=input)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Server-side, as the owner of every field that they have."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=listed)

    def applied(self, *objects: dict[str, Any]) -> bool:
        """Whether they could be applied: an established kind is not yet a served one."""
        try:
            self.apply(*objects)
        except PlatformError:
            return False
        return True

    @property
    def ready(self) -> bool:
        """Whether it answers, with everything that it does at its start done."""
        try:
            self._ask("/readyz")
        except OSError:
            return False
        return True

    def get(self, path: str) -> dict[str, Any] | None:
        """The object at a path of the API, None when there is none; asked over and over, kubectl costs too much."""
        try:
            found: dict[str, Any] = json.loads(self._ask(path))
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return found

    def _ask(self, path: str) -> bytes:
        """Raises an OSError when it does not answer, or answers with an error."""
        context = ssl.create_default_context(cafile=str(self.certificate_authority))
        request = urllib.request.Request(f"{self.url}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, context=context, timeout=5) as response:
            answer: bytes = response.read()
            return answer


@contextmanager
def api_server(directory: Path) -> Iterator[ApiServer]:
    """An API server with RBAC and nothing else (no node, no controllers), on loopback, for a test.

    It is ready when the block begins, gone when it ends, and dies with the process that asked for it.
    """
    processes = Processes(directory / "processes", directory / "logs", end_with_us=True)
    try:
        yield start_api_server(processes, directory)
    finally:
        processes.stop_all()


def start_api_server(
    processes: Processes,
    directory: Path,
    address: str = "127.0.0.1",
    extra_flags: Sequence[str] = (),
) -> ApiServer:
    """Start etcd and the API server on the address, with their data in the directory; wait until it is ready."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = ApiServer.at(directory, f"https://{address}:{free_port(address)}")
    tokens = "".join(f'{secrets.token_hex(16)},{user},{user},"{groups}"\n' for user, groups in USERS.items())
    write_private(directory / "tokens.csv", tokens)
    write_private(directory / "service-account.key", run(["openssl", "genpkey", "-algorithm", "RSA"]))
    (directory / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
    server.kubeconfig_of(ADMINISTRATOR)

    etcd_url = _start_etcd(processes, directory)
    process = processes.start(
        "kube-apiserver",
        [
            binaries() / "kube-apiserver",
            f"--etcd-servers={etcd_url}",
            f"--bind-address={address}",
            f"--advertise-address={address}",
            f"--secure-port={urlsplit(server.url).port}",
            f"--cert-dir={server.certificate_authority.parent}",
            f"--token-auth-file={directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={directory / 'service-account.key'}",
            f"--service-account-key-file={directory / 'service-account.key'}",
            f"--audit-policy-file={directory / 'audit-policy.json'}",
            f"--audit-log-path={server.audit_log}",
            *extra_flags,
        ],
    )
    processes.wait("the API server", lambda: server.ready, process)
    return server


def start_controllers(processes: Processes, server: ApiServer) -> None:
    """Start the controller manager and the scheduler, and wait until they say that they are healthy."""
    key, authority = server.directory / "service-account.key", server.certificate_authority
    flags = {
        "kube-controller-manager": [
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={authority}",
            "--use-service-account-credentials=true",  # each controller with its own role
        ],
        "kube-scheduler": [],
    }
    started: list[tuple[Process, int]] = []
    for name, own in flags.items():
        port, config = free_port(), server.kubeconfig_of(f"system:{name}")
        command: list[str | Path] = [
            binaries() / name,
            *(f"--{use}kubeconfig={config}" for use in ("", "authentication-", "authorization-")),
            "--authentication-skip-lookup=true",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={server.directory / name}",
            *own,
        ]
        started.append((processes.start(name, command), port))
    for process, port in started:
        processes.wait(process.name, lambda port=port: _healthy(port), process)  # type: ignore[misc]


def _start_etcd(processes: Processes, directory: Path) -> str:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    process = processes.start(
        "etcd",
        [
            binaries() / "etcd",
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # a platform that is lost with its machine is made again
        ],
    )

    def healthy() -> bool:
        try:
            with urllib.request.urlopen(f"{client}/health", timeout=5) as answer:
                return bool(json.load(answer)["health"] == "true")
        except OSError:
            return False

    processes.wait("etcd", healthy, process)
    return client


def _healthy(port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a self-made one, on loopback
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/healthz", context=context, timeout=5):
            return True
    except OSError:
        return False


def _tokens(directory: Path) -> dict[str, str]:
    rows = (line.split(",") for line in (directory / "tokens.csv").read_text().splitlines())
    return {row[1]: row[0] for row in rows}
