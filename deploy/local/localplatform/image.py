"""The project's container images, built from deploy/Containerfile on bases of Debian's packages."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localplatform import cache, debian
from localplatform.buildah import Buildah, with_storage
from localplatform.console import PlatformError, say
from localplatform.machine import CHECKOUT

CONTAINERFILE = Path("deploy") / "Containerfile"
SOURCE = Path("operator") / "reassign"
FLEET_PROGRAMS = Path("deploy") / "spark"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
INPUTS = (CONTAINERFILE, Path(".dockerignore"), Path("pyproject.toml"), Path("requirements.lock"))


@dataclass(frozen=True)
class Target:
    """A stage of deploy/Containerfile that becomes an image, and the stages before it that take long."""

    stage: str
    repository: str
    slow: tuple[str, ...]


OPERATOR = Target("operator", "kafka-reassign-operator", ("build",))
FLEET = Target("fleet", "kafka-reassign-fleet", ("build", "fleet-build"))


@dataclass(frozen=True)
class Image:
    """An image that was built: its repository and tag, and the archive to import it from."""

    repository: str
    tag: str
    archive: Path

    @property
    def name(self) -> str:
        return f"{self.repository}:{self.tag}"


def operator_image() -> Image:
    """The operator's image of this checkout's source; the tag is a hash of all that goes into it."""
    return _of_checkout(OPERATOR)


def fleet_image() -> Image:
    """The image of this checkout's source in which a fleet is planned on Kubernetes, for driver and executors."""
    return _of_checkout(FLEET)


def _of_checkout(target: Target) -> Image:
    tag, repository = source_tag(target), f"localhost/{target.repository}"

    def build(place: Path) -> None:
        def work(buildah: Buildah) -> None:
            build_target(buildah, target, f"{repository}:{tag}", CHECKOUT)
            buildah.push(f"{repository}:{tag}", place / "image.tar")

        with_storage(work)

    place = cache.entry(f"{target.stage}-image", [tag], build)
    cache.keep_latest(f"{target.stage}-image", 3)
    return Image(repository, tag, place / "image.tar")


def source_tag(target: Target) -> str:
    """A hash of all that goes into the target's image of this checkout."""
    pins: list[cache.Pin] = [debian.image_name(name) for name in _bases(target)]
    for path in _files(target):
        pins += [str(path.relative_to(CHECKOUT)), path]
    return cache.key(pins)


def build_target(buildah: Buildah, target: Target, name: str, context: Path, arguments: Sequence[str] = ()) -> None:
    """Build the target's image under this name from a tree of the project's files.

    All its files have the time of the bases' lock, so the same sources on the same bases become the same bytes.
    """
    options: list[str | Path] = ["--file", context / CONTAINERFILE, f"--timestamp={debian.epoch()}"]
    for base in _bases(target):
        buildah.load(debian.image_name(base), debian.base(base))
        argument = "BASE" if base == OPERATOR.stage else f"{base.upper()}_BASE"
        options.append(f"--build-arg={argument}={debian.image_name(base)}")
    if (authorities := Path(os.environ.get("SSL_CERT_FILE") or AUTHORITIES)).exists():
        options.append(f"--secret=id=ca,src={authorities}")  # whom this machine trusts, the build does too
    say(f"building the image {target.stage}; where packages or the planner have changed, that takes minutes")
    for stage in target.slow:
        buildah.build(f"localhost/stage-{stage}:{source_tag(target)}", context, f"--target={stage}", *options)
    buildah.build(name, context, f"--target={target.stage}", *(f"--build-arg={each}" for each in arguments), *options)


def _bases(target: Target) -> list[str]:
    return ["build", OPERATOR.stage] if target is OPERATOR else ["build", OPERATOR.stage, FLEET.stage]


def _files(target: Target) -> list[Path]:
    """The files of the checkout that the target's image is built from, in a fixed order."""
    folders = [SOURCE] if target is OPERATOR else [SOURCE, FLEET_PROGRAMS]
    found = (path for folder in folders for path in (CHECKOUT / folder).rglob("*"))
    files = sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)
    return [*(CHECKOUT / path for path in INPUTS), *files]


def main() -> int:
    """Build the operator's image, and say where it is."""
    try:
        image = operator_image()
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return os.EX_SOFTWARE
    print(f"{image.name} is in {image.archive}: docker load --input {image.archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
