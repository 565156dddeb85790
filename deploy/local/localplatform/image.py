"""Container images, built without Docker and without an image registry: by buildah in a chroot, on a base
from Debian's mirrors, with Python packages that the lock file pins.
"""

import json
import os
import platform
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from localplatform import cache
from localplatform.console import PlatformError, say
from localplatform.machine import CHECKOUT, remove_folder
from localplatform.processes import run

CONTAINERFILE = CHECKOUT / "deploy" / "Containerfile"
SOURCE = CHECKOUT / "operator"
PROJECT, LOCK = CHECKOUT / "pyproject.toml", CHECKOUT / "requirements.lock"
REPOSITORY = "localhost/kafka-reassign-operator"
SUITE = "bookworm"
BASE_PACKAGES = "python3,ca-certificates"
EXTRAS = ("operator", "cli")
"""Of the project's packages: in a pod of this image snapshots are taken, by the command line."""
PYTHON = "Linux on x86_64 with Python 3.11"
"""What the operator's packages in the image are for."""
CPU = "generic"
"""That the planner is compiled for; by numba's name."""


@dataclass(frozen=True)
class Image:
    """An image that was built: its repository and tag, and the archive to import it from."""

    tag: str
    archive: Path
    repository: str = REPOSITORY

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.tag}"


def operator_image() -> Image:
    """The operator's image of this checkout's source; the tag is a hash of all that goes into it."""
    base = base_image()
    sources = operator_source()
    pins: list[cache.Pin] = [CONTAINERFILE, str(base), str(packages()), str(compiled())]
    for path in sources:
        pins += [str(path.relative_to(SOURCE)), path]
    tag = cache.key(pins)

    def build(place: Path) -> None:
        say("building the operator's image")
        copy_source(place / "source")
        contexts = {"packages": packages(), "compiled": compiled(), "source": place / "source"}
        build_archive(CONTAINERFILE, f"{REPOSITORY}:{tag}", place / "image.tar", base=base, contexts=contexts)

    image = Image(tag, cache.entry("operator", [tag], build) / "image.tar")
    cache.keep_latest("operator", 3)
    return image


def operator_source() -> list[Path]:
    """The files of the operator's package, in a fixed order."""
    files = (SOURCE / "reassign").rglob("*")
    return sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts)


def copy_source(destination: Path) -> None:
    """Copy the operator's package, without anything that running it left there."""
    for file in operator_source():
        copy = destination / file.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o644)


def packages() -> Path:
    """A folder with the Python packages of the operator and the command line, by the lock's hashes."""

    def build(place: Path) -> None:
        say("gathering the operator's Python packages: once per lock file, about half a minute")
        install_packages(place, EXTRAS)

    place = cache.entry("packages", [*package_pins(EXTRAS), "1"], build)
    cache.keep_latest("packages", 2)
    return place


def package_pins(extras: Iterable[str]) -> list[cache.Pin]:
    """What says which packages `install_packages` installs."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    named = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return [json.dumps(named), LOCK]


def install_packages(place: Path, extras: Iterable[str], built: Iterable[str] = ()) -> None:
    """Install the project's packages, with those of the extras, by the lock's hashes; `built` are no wheels yet."""
    uv = shutil.which("uv", path=str(CHECKOUT / ".venv" / "bin")) or shutil.which("uv")
    if not uv:
        raise PlatformError("uv is not in the virtual environment: make venv")
    command: list[str | Path] = [uv, "pip", "install", "--quiet", "--target", place, "--only-binary", ":all:"]
    command += [option for name in built for option in ("--no-binary", name)]
    command += ["--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.11"]
    command += ["--compile-bytecode"]  # the container cannot write any
    command += ["--require-hashes", "--constraints", LOCK, "--requirements", PROJECT]
    run([*command, *(option for extra in extras for option in ("--extra", extra))])


def compiled() -> Path:
    """A folder with the planner's machine code, for any CPU of this machine's architecture: all that a plan needs."""
    require_python()
    pins: list[cache.Pin] = [str(packages()), sys.version, CPU]
    for path in operator_source():
        name = path.relative_to(SOURCE / "reassign")
        if name.parts[0] in ("api", "errors.py", "planning"):
            pins += [str(name), path]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, (SOURCE, packages()))), "NUMBA_CPU_NAME": CPU}
    command = [sys.executable, "-m", "reassign.planning.compile_ahead"]

    def build(place: Path) -> None:
        say("compiling the planner: once for each change of it, about a minute")
        run(command, env=environment | {"NUMBA_CACHE_DIR": str(place)})
        with TemporaryDirectory() as used:  # as in a pod; fails where a plan would compile anything more
            run(command, env=environment | {"REASSIGN_COMPILED": str(place), "NUMBA_CACHE_DIR": used})

    place = cache.entry("compiled", pins, build)
    cache.keep_latest("compiled", 3)
    return place


def require_python() -> None:
    """Refuse a machine that cannot run the image's packages, which compile the planner."""
    version = ".".join(platform.python_version_tuple()[:2])
    found = f"{platform.system()} on {platform.machine()} with Python {version}"
    if found != PYTHON:
        raise PlatformError(
            f"the planner is compiled here by the image's packages, which need {PYTHON}; this is {found}"
        )


def base_image(packages: str = BASE_PACKAGES) -> Path:
    """An archive of an image with Debian 12 and these packages of it; made once."""

    def build(place: Path) -> None:
        say("making a base image with debootstrap: once, about a minute")
        tree = place / "tree"
        run(["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, tree])
        for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(tree / folder, ignore_errors=True)
        containerfile = place / "Containerfile"
        containerfile.write_text("FROM scratch\nCOPY --from=tree . /\n")
        build_archive(containerfile, "localhost/base:local", place / "image.tar", contexts={"tree": tree})
        shutil.rmtree(tree)

    return cache.entry("base-image", [SUITE, packages, "1"], build) / "image.tar"


def build_archive(
    containerfile: Path, name: str, archive: Path, *, contexts: Mapping[str, Path], base: Path | None = None
) -> None:
    """Build an image whose files come from the named contexts, and write it to an archive.

    The storage that buildah needs for it is kept for the layers that do not change. Where it is damaged, say by a
    power cut, or the kernel has no overlays, the image is built once more in the slow storage that every machine has.
    """
    with cache.locked(cache.root() / "buildah.lock", "another process builds an image, waiting for that"):
        try:
            _build_archive("overlay", containerfile, name, archive, contexts, base)
        except PlatformError:
            archive.unlink(missing_ok=True)
            remove_folder(cache.root() / "buildah")
            _build_archive("vfs", containerfile, name, archive, contexts, base)


def _build_archive(
    driver: str, containerfile: Path, name: str, archive: Path, contexts: Mapping[str, Path], base: Path | None
) -> None:
    command: list[str | Path] = ["build", "--isolation=chroot", "--layers", "--file", containerfile, "--tag", name]
    command += [f"--build-context={context}={folder}" for context, folder in contexts.items()]
    if base:
        loaded = _buildah(driver, "pull", "--quiet", f"docker-archive:{base}").split()[-1]
        command += [f"--build-arg=BASE={loaded}"]
    _buildah(driver, *command, containerfile.parent)
    _buildah(driver, "push", "--quiet", name, f"docker-archive:{archive}:{name}")
    _forget_old(driver, name.rpartition(":")[0])


def _forget_old(driver: str, repository: str) -> None:
    """Remove all but the latest images of that name from buildah's storage, with the layers that only they use."""
    listed = _buildah(driver, "images", "--format", "{{.Name}}:{{.Tag}}", "--filter", f"reference={repository}").split()
    for name in listed[2:]:
        _buildah(driver, "rmi", name)


def _buildah(driver: str, *arguments: str | Path) -> str:
    storage = _storage(driver)
    places: list[str | Path] = ["--root", storage / "storage", "--runroot", storage / "run"]
    return run(["buildah", *places, "--storage-driver", driver, *arguments])


def _storage(driver: str) -> Path:
    return cache.root() / "buildah" / driver
