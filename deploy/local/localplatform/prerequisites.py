"""What the platform needs from the distribution: named with the command that installs it, and as root on
Debian installed.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from localplatform import cache
from localplatform.console import PlatformError, say
from localplatform.processes import run

# what is looked for (a command, or a file by its path) and the Debian package that has it, by the platform's part
NEEDED = {
    "api": {"openssl": "openssl", "ip": "iproute2"},
    "node": {
        "containerd": "containerd",
        "runc": "runc",
        "/usr/lib/cni/ptp": "containernetworking-plugins",
        "nft": "nftables",
        "conntrack": "conntrack",
        "buildah": "buildah",
    },
    "brokers": {"java": "openjdk-17-jre-headless", "mvn": "maven", "openssl": "openssl", "ip": "iproute2"},
    "fleet": {"java": "openjdk-17-jre-headless"},
    "operator": {
        "buildah": "buildah",
        "mmdebstrap": "mmdebstrap",
        "debootstrap": "debootstrap",  # for the version that the test of the upgrade builds
    },
    "browser": {"chromium": "chromium"},
    "argocd": {"redis-server": "redis-server", "git": "git"},
}
GO = (1, 21)  # fetches by itself the version that go.mod names
BACKPORTS = Path("/etc/apt/sources.list.d/kafka-reassign-backports.list")


def require(parts: Iterable[str]) -> None:
    """Install what these parts need and the machine has not, or say how to."""
    wanted = {thing: package for part in parts for thing, package in NEEDED[part].items()}
    with cache.locked(cache.root() / "apt.lock", "another process installs packages, waiting for it"):
        missing = sorted({package for thing, package in wanted.items() if not shutil.which(thing)})
        _install(missing, needs_go=_go_version() < GO)


def _install(missing: Sequence[str], *, needs_go: bool) -> None:
    if not missing and not needs_go:
        return
    command = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(missing)}"
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian" or os.geteuid() != 0:
        hint = f"on Debian 12, as root: {command}" if missing else "see https://go.dev/doc/install"
        names = [*missing, *(["Go 1.21 or later"] if needs_go else [])]
        raise PlatformError(f"the platform needs {', '.join(names)}, which this machine has not; {hint}")
    if missing:
        say(f"installing Debian packages: {' '.join(missing)}")
        _apt("update")
        _apt("install", "-y", "--no-install-recommends", *missing)
    if needs_go:
        _install_go(release["VERSION_CODENAME"])


def _install_go(suite: str) -> None:
    backports = f"{suite}-backports"
    say(f"installing Go from {backports}")
    if suite == "bookworm":  # its own Go is too old
        asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {suite}", "Component: main"]
        mirror = run(asked).split()[0]  # the one that this machine uses
        BACKPORTS.write_text(f"deb {mirror} {backports} main\n")
        _apt("update")
        _apt("install", "-y", "--no-install-recommends", "-t", backports, "golang-go")
    else:
        _apt("update")
        _apt("install", "-y", "--no-install-recommends", "golang-go")


def _apt(*arguments: str) -> None:
    run(["apt-get", "-qq", *arguments], env={"DEBIAN_FRONTEND": "noninteractive"})


def _go_version() -> tuple[int, int]:
    if not shutil.which("go"):
        return (0, 0)
    asked = subprocess.run(
        ["go", "version"], capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"}
    )
    found = re.search(r"go(\d+)\.(\d+)", asked.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)
