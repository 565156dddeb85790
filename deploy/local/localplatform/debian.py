"""Base images of Debian's packages, made by mmdebstrap without an image registry; a lock names the packages' versions.

Debian's mirrors keep only the latest version of a package. So a base has what they have, and says what differs from the
lock; a release accepts no difference.
"""

import hashlib
import io
import json
import platform
import tarfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from localplatform import cache
from localplatform.console import say
from localplatform.machine import CHECKOUT
from localplatform.processes import run

LOCK = CHECKOUT / "deploy" / "debian.lock"
SUITE = "bookworm"
RUNTIME = ("ca-certificates", "libstdc++6", "python3")
BUILD = (*RUNTIME, "python3-venv")
FLEET = (*RUNTIME, "libnss-wrapper", "openjdk-17-jre-headless")
BASES = {"build": BUILD, "operator": RUNTIME, "fleet": FLEET}
"""The packages of each base that deploy/Containerfile asks for, with all that these depend on."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EPOCH = "# epoch "


def base(name: str) -> Path:
    """The archive of the base of this name; its image's name is `image_name`."""

    def build(place: Path) -> None:
        say(f"making the base image {name} of Debian's packages: once, about a minute")
        layer = place / "layer.tar"
        _bootstrap(BASES[name], layer, epoch())
        if different := differences(locked(), installed(layer)):
            said = "\n".join(different)
            say(f"the base differs from {LOCK.name}, which make lock-debian writes anew\n{said}")
        (place / "differences").write_text("\n".join(different))
        write_archive(layer, place / "image.tar", image_name(name))
        layer.unlink()

    return cache.entry(f"base-{name}", _pins(name), build) / "image.tar"


def image_name(name: str) -> str:
    """The name of a base's image; it changes with what the base is made of."""
    return f"localhost/debian-{name}:{cache.key(_pins(name))}"


def differences_of(name: str) -> list[str]:
    """What a base has otherwise than the lock says."""
    return (base(name).parent / "differences").read_text().splitlines()


def epoch() -> int:
    """The time, in seconds since 1970, that the lock was written: of all files of an image that are newer."""
    first = LOCK.read_text().splitlines()[0]
    return int(first.removeprefix(EPOCH))


def locked() -> dict[str, str]:
    """The version of each package in the lock."""
    lines = (line for line in LOCK.read_text().splitlines() if not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def installed(layer: Path) -> dict[str, str]:
    """The version of each package in the archive of a file system."""
    with tarfile.open(layer) as archive:
        status = archive.extractfile("./var/lib/dpkg/status")
        assert status
        return versions(status.read().decode())


def versions(status: str) -> dict[str, str]:
    """The version of each package in dpkg's status file."""
    found = {}
    for stanza in status.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if not line.startswith(" ") and ": " in line)
        found[fields["Package"]] = fields["Version"]
    return found


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """A line for each package that was found in another version than is wanted, or is not wanted at all."""
    return [
        f"{package}: {wanted.get(package, 'not')} in the lock, {version} in the base"
        for package, version in sorted(found.items())
        if wanted.get(package) != version
    ]


def write_archive(layer: Path, archive: Path, name: str) -> None:
    """Write an image with one layer, as `docker save` does: the same bytes for the same layer and name."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    history = {"created": _iso(epoch()), "created_by": "mmdebstrap"}
    config = {
        "architecture": architecture(),
        "os": "linux",
        "created": history["created"],
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [history],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as written, layer.open("rb") as content:
        for file_name, value in (("manifest.json", manifest), ("config.json", config)):
            data = json.dumps(value).encode()
            written.addfile(_member(file_name, len(data)), io.BytesIO(data))
        written.addfile(_member("layer.tar", layer.stat().st_size), content)


def architecture() -> str:
    """This machine's, as images and Debian name it."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def write_lock(found: Iterable[Mapping[str, str]], now: int) -> None:
    """Write the lock from the packages of all bases."""
    union = {package: version for each in found for package, version in each.items()}
    lines = [f"{EPOCH}{now}", "# The Debian packages of the images' bases: make lock-debian"]
    LOCK.write_text("\n".join([*lines, *(f"{package}={union[package]}" for package in sorted(union)), ""]))


def _bootstrap(packages: Iterable[str], layer: Path, seconds: int) -> None:
    command: list[str | Path] = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(packages)}"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "locale")]
    run([*command, SUITE, layer], env={"SOURCE_DATE_EPOCH": str(seconds)})


def _pins(name: str) -> list[cache.Pin]:
    return [SUITE, *BASES[name], architecture(), LOCK]


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def _iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _lock() -> None:
    now = int(time.time())
    with TemporaryDirectory() as folder:
        layer = Path(folder) / "layer.tar"
        found = []
        for packages in BASES.values():
            _bootstrap(packages, layer, now)
            found.append(installed(layer))
    write_lock(found, now)


if __name__ == "__main__":
    _lock()
