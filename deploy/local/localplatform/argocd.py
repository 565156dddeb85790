"""A real Argo CD, as plain processes beside an API server: its controllers, its repo-server and its API.

Built from the Go module that deploy/local/argo-cd pins, which brings the definitions and ConfigMaps too. Git is a bare
repository on the disk. It looks at Git and at resources every few seconds, where users wait for minutes.
"""

import json
import secrets
import shutil
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localplatform import argocd_config, cache
from localplatform.console import PlatformError, say
from localplatform.controlplane import ApiServer
from localplatform.golang import go
from localplatform.processes import TIMEOUT, Processes, free_port, run, wait_until

MODULE = Path(__file__).parents[1] / "argo-cd"
PATH_OF_MODULE = "github.com/argoproj/argo-cd/v3"
NAMESPACE, CLUSTER = "argocd", "local"
NAMED = {"app.kubernetes.io/name": "argocd-secret", "app.kubernetes.io/part-of": "argocd"}
LOOK_SECONDS = 5
PROGRAMS = ("redis", "repo-server", "application-controller", "server", "applicationset-controller")
KINDS = ("application", "applicationset", "appproject")
CONFIG_MAPS = tuple(
    f"argocd-{name}" for name in ("cm", "cmd-params-cm", "rbac-cm", "ssh-known-hosts-cm", "tls-certs-cm", "gpg-keys-cm")
)
API = "/apis/argoproj.io/v1alpha1/namespaces/argocd"

Object = dict[str, Any]


def built() -> Path:
    """The folder with the program, and the definitions and ConfigMaps that belong to it; built once."""
    return cache.entry("argo-cd", [MODULE / "go.mod", MODULE / "go.sum", "1"], _build)


def _build(place: Path) -> None:
    say("building Argo CD from source: once, about 6 minutes on two cores")
    go(MODULE, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(place / "argocd"), f"{PATH_OF_MODULE}/cmd")
    manifests = Path(go(MODULE, "list", "-m", "-f", "{{.Dir}}", PATH_OF_MODULE)) / "manifests"
    for name in KINDS:
        shutil.copyfile(manifests / "crds" / f"{name}-crd.yaml", place / f"{name}-crd.yaml")
    for name in CONFIG_MAPS:
        shutil.copyfile(manifests / "base" / "config" / f"{name}.yaml", place / f"{name}.yaml")


@dataclass(frozen=True)
class Repository:
    """A bare repository, and a work tree of it."""

    bare: Path
    tree: Path

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    @classmethod
    def at(cls, directory: Path) -> "Repository":
        """The one in this folder, made when there is none."""
        found = cls(directory / "fleet.git", directory / "tree")
        if not found.bare.exists():
            run(["git", "init", "--quiet", "--bare", "--initial-branch=main", found.bare])
            run(["git", "init", "--quiet", "--initial-branch=main", found.tree])
            found._git("remote", "add", "origin", found.url)
        return found

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Write these files, or remove them where there is None, and push; the commit."""
        for name, text in files.items():
            path = self.tree / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", "change")
        self._git("push", "--quiet", "origin", "main")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=platform", "-c", "user.email=platform@localhost", "-c", "commit.gpgsign=false"]
        return run(["git", "-C", self.tree, *identity, *arguments])


@dataclass(frozen=True)
class ArgoCd:
    """A running Argo CD."""

    server: ApiServer
    repository: Repository
    url: str

    def application(self, name: str) -> Object:
        """The Application as it is now; empty when there is none."""
        return self.server.get(f"{API}/applications/{name}") or {}

    def state(self, name: str) -> tuple[str, str]:
        """Whether it is synced, and its health."""
        status = self.application(name).get("status", {})
        return status.get("sync", {}).get("status", ""), status.get("health", {}).get("status", "")

    def health_of(self, name: str, resource: str) -> tuple[str, str]:
        """Status and message of the health of a resource of an Application."""
        for found in self.ask("GET", f"/api/v1/applications/{name}/resource-tree").get("nodes", ()):
            if found["name"] == resource:
                health = found.get("health", {})
                return health.get("status", ""), health.get("message", "")
        return "", ""

    def terminate(self, name: str) -> None:
        """End the running sync of an Application, as `argocd app terminate-op` does."""
        self.ask("DELETE", f"/api/v1/applications/{name}/operation")

    def ask(self, verb: str, path: str, body: object = None) -> Object:
        """A request to Argo CD's own API."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                found: Object = json.load(answer)
        except urllib.error.HTTPError as error:
            raise PlatformError(f"Argo CD answered {error.code}: {error.read().decode()[:500]}") from None
        return found


def start(processes: Processes, server: ApiServer, directory: Path) -> ArgoCd:
    """Start it beside an API server, configured as docs/fleets/manifests.md says; wait until it answers."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    _configure(server)
    ports = {name: str(free_port()) for name in ("redis", "repo", "server", *(f"unused-{n}" for n in range(6)))}
    unused = iter([port for name, port in ports.items() if name.startswith("unused")])
    redis, repo = f"127.0.0.1:{ports['redis']}", f"127.0.0.1:{ports['repo']}"
    folders = {name: directory / name for name in ("home", "tmp", "gnupg", "tls", "ssh", "plugins", "static", "redis")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True, mode=0o700)
    (folders["ssh"] / "ssh_known_hosts").touch()
    environment = {
        "HOME": str(folders["home"]),
        "KUBECONFIG": str(server.kubeconfig),
        "TMPDIR": str(folders["tmp"]),
        "GNUPGHOME": str(folders["gnupg"]),
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_TLS_DATA_PATH": str(folders["tls"]),
        "ARGOCD_SSH_DATA_PATH": str(folders["ssh"]),
        "ARGOCD_PLUGINSOCKFILEPATH": str(folders["plugins"]),
        "ARGOCD_FAKE_IN_CLUSTER": "true",
    }
    common = ["--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig), "--logformat", "text"]
    here, plain = "127.0.0.1", "--repo-server-plaintext"
    commands = {
        "repo-server": [
            *("--disable-tls", "--address", here, "--port", ports["repo"], "--redis", redis),
            *("--metrics-address", here, "--metrics-port", next(unused), "--revision-cache-expiration", "2s"),
        ],
        "application-controller": [
            *("--repo-server", repo, plain, "--redis", redis, "--metrics-port", next(unused), *common),
            *("--app-resync", str(LOOK_SECONDS), "--app-resync-jitter", "0"),
        ],
        "server": [
            *("--insecure", "--disable-auth", "--address", here, "--port", ports["server"]),
            *("--metrics-address", here, "--metrics-port", next(unused), "--repo-server", repo, plain),
            *("--redis", redis, "--staticassets", str(folders["static"]), *common),
        ],
        "applicationset-controller": [
            *("--argocd-repo-server", repo, plain, "--metrics-addr", f"{here}:{next(unused)}"),
            *("--probe-addr", f"{here}:{next(unused)}", "--webhook-addr", f"{here}:{next(unused)}", *common),
        ],
    }
    own = ["--port", ports["redis"], "--bind", here, "--save", "", "--appendonly", "no", "--dir", folders["redis"]]
    started = [processes.start("argocd-redis", ["redis-server", *map(str, own)])]
    for name, arguments in commands.items():
        role = environment | {"ARGOCD_BINARY_NAME": f"argocd-{name}"}
        started.append(processes.start(f"argocd-{name}", [built() / "argocd", *arguments], role))
    argocd = ArgoCd(server, Repository.at(directory / "git"), f"http://{here}:{ports['server']}")
    processes.wait("Argo CD", lambda: _answers(argocd), *started)
    (directory / "url").write_text(argocd.url)
    return argocd


def load(processes: Processes, server: ApiServer, directory: Path) -> ArgoCd | None:
    """The one that an earlier command started there, if all of it runs."""
    url = directory / "url"
    if not url.exists() or not all(processes.find(f"argocd-{name}") for name in PROGRAMS):
        return None
    return ArgoCd(server, Repository.at(directory / "git"), url.read_text())


def stop(processes: Processes) -> None:
    """Stop what runs of it."""
    processes.stop(*(f"argocd-{name}" for name in reversed(PROGRAMS)))


def _answers(argocd: ArgoCd) -> bool:
    try:
        return "Version" in argocd.ask("GET", "/api/version")
    except (OSError, PlatformError):
        return False


def _configure(server: ApiServer) -> None:
    """Definitions, ConfigMaps, the cluster, and what this project has Argo CD's users configure."""
    place = built()
    for name in KINDS:
        server.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(place / f"{name}-crd.yaml"))
    _until("Argo CD's definitions are served", lambda: server.get("/apis/argoproj.io/v1alpha1") is not None)
    server.apply(_object("v1", "Namespace", NAMESPACE))
    for name in CONFIG_MAPS:
        server.kubectl(
            "-n", NAMESPACE, "apply", "--server-side", "--force-conflicts", "-f", str(place / f"{name}.yaml")
        )
    quick = {"data": {"timeout.reconciliation": f"{LOOK_SECONDS}s", "timeout.reconciliation.jitter": "0s"}}
    patch = ["-n", NAMESPACE, "patch", "configmap", "argocd-cm", "--type=merge"]
    server.kubectl(*patch, f"--patch={json.dumps(quick)}")
    server.kubectl(*patch, f"--patch-file={argocd_config.FOLDER / 'argocd-cm.yaml'}")
    authority = server.certificate_authority.read_bytes()
    access = {"bearerToken": server.token, "tlsClientConfig": {"caData": _base64(authority)}}
    secret = {"name": CLUSTER, "server": server.url, "config": json.dumps(access)}
    everything = [{"group": "*", "kind": "*"}]
    anywhere = [{"server": "*", "name": "*", "namespace": "*"}]
    objects = [
        _secret("argocd-secret", {"server.secretkey": secrets.token_urlsafe(24)}, NAMED),
        _secret("cluster-local", secret, {"argocd.argoproj.io/secret-type": "cluster"}),
        _object("argoproj.io/v1alpha1", "AppProject", "default")
        | {"spec": {"sourceRepos": ["*"], "destinations": anywhere, "clusterResourceWhitelist": everything}},
    ]
    _until("an AppProject can be made", lambda: server.applied(*objects))


def _until(what: str, condition: Callable[[], bool]) -> None:
    if not wait_until(condition):
        raise PlatformError(f"not within {TIMEOUT:.0f} s: {what}")


def _object(version: str, kind: str, name: str) -> Object:
    namespace = {} if kind == "Namespace" else {"namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **namespace}}


def _secret(name: str, data: Mapping[str, str], labels: Mapping[str, str]) -> Object:
    found = _object("v1", "Secret", name)
    found["metadata"]["labels"] = dict(labels)
    return found | {"stringData": dict(data)}


def _base64(content: bytes) -> str:
    return b64encode(content).decode()


def application(repository: Repository, name: str, path: str, **policy: Any) -> Object:
    """An Application of a folder of the repository."""
    found = _object("argoproj.io/v1alpha1", "Application", name)
    source = {"repoURL": repository.url, "targetRevision": "main", "path": path}
    destination = {"name": CLUSTER, "namespace": "kafka"}
    return found | {"spec": {"project": "default", "source": source, "destination": destination, "syncPolicy": policy}}


def application_set(repository: Repository) -> Object:
    """deploy/argocd/applicationset.yaml for this repository."""
    text = (argocd_config.FOLDER / "applicationset.yaml").read_text()
    found: Object = yaml.safe_load(text.replace("https://git.example.com/kafka/fleet.git", repository.url))
    return found


def sync_policy(repository: Repository, retry_seconds: int) -> dict[str, Any]:
    """That of deploy/argocd/applicationset.yaml, which tries again every so many seconds."""
    policy: dict[str, Any] = application_set(repository)["spec"]["template"]["spec"]["syncPolicy"]
    every = f"{retry_seconds}s"
    policy["retry"]["backoff"] = {"duration": every, "factor": 1, "maxDuration": every}
    return policy


def confirm(argocd: ArgoCd, name: str) -> None:
    """Confirm the pruning and deletion that an Application asks for, as `argocd app confirm-deletion` does."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    annotations = {"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}}
    patch = ["patch", "application", name, "--type=merge", f"--patch={json.dumps(annotations)}"]
    argocd.server.kubectl("-n", NAMESPACE, *patch)
