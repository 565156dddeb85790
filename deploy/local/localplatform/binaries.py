"""The programs of Kubernetes, built from Go modules: etcd, the control plane, the node's agents, kubectl, helm.

Their versions are pinned in deploy/local/control-plane (go.mod, go.sum); built once, then found in the cache.
"""

import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

from localplatform import cache
from localplatform.console import PlatformError, say

MODULE = Path(__file__).parents[1] / "control-plane"
PACKAGES = 3200  # that the build compiles, about; for the progress line only


def kubernetes_version() -> str:
    """The pinned version, such as v1.36.3."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise PlatformError(f"{MODULE / 'go.mod'} does not pin k8s.io/kubernetes")
    return found[1]


def binaries() -> Path:
    """The folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy,
    kubectl and helm. The first call on a machine builds them: about 10 minutes on two cores."""
    pins: list[cache.Pin] = [
        MODULE / "go.mod",
        MODULE / "go.sum",
        "1",
    ]  # raise the last one when the way of building changes
    return cache.entry("control-plane", pins, _build)


def _build(place: Path) -> None:
    if not shutil.which("go"):
        raise PlatformError("Go is needed to build Kubernetes (1.21 or later): apt-get install golang-go")
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = "k8s.io/component-base/version"  # clients refuse a server that does not know its version
    flags = f"-s -w -X {stamp}.gitVersion={version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    say(f"building Kubernetes {version}, etcd and helm from source: once, about 10 minutes on two cores")
    with subprocess.Popen(
        ["go", "build", "-v", "-trimpath", "-ldflags", flags, "-o", f"{place}/", "tool"],
        cwd=MODULE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOFLAGS": "-mod=readonly -buildvcs=false"},
    ) as child:
        assert child.stderr
        lines: list[str] = []
        reader = threading.Thread(target=lambda stream: lines.extend(stream), args=(child.stderr,), daemon=True)
        reader.start()
        told = time.monotonic()
        while child.poll() is None:
            time.sleep(0.5)
            if time.monotonic() - told > 15:
                told = time.monotonic()
                fetched = sum(line.startswith("go: downloading") for line in lines)
                done = len(list(place.iterdir()))
                say(
                    f"building: {fetched} modules fetched, {len(lines) - fetched} of about {PACKAGES} packages "
                    f"compiled, {done} of 8 programs linked"
                )
        reader.join()
    if child.returncode:
        raise PlatformError("building Kubernetes failed:\n" + "".join(lines[-20:]))
    (place / "server").rename(place / "etcd")  # named after the last part of its module's path
