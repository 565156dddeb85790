"""Makes everything that a release has, in dist/, and publishes nothing: `python -m localplatform.release`.

It is made of a commit. The same commit on the same bases becomes the same bytes.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from localplatform import debian, prerequisites
from localplatform.buildah import Buildah, with_storage
from localplatform.console import PlatformError, say
from localplatform.image import FLEET, OPERATOR, Target, build_target
from localplatform.machine import CHECKOUT
from localplatform.processes import run
from localplatform.sbom import bill, packages_of

DIST = CHECKOUT / "dist"
TREE = ("operator", "charts", "deploy", "docs", ".dockerignore", "pyproject.toml", "requirements.lock")
CHART = Path("charts") / OPERATOR.repository
NOT_RELEASED = "not released"
SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Release:
    """A commit's version, and its time: seconds since 1970."""

    version: str
    commit: str
    seconds: int

    def image_file(self, target: Target) -> str:
        return f"{target.repository}-image-{self.version}-{debian.architecture()}.tar.gz"

    def bill_file(self, target: Target) -> str:
        return f"{target.repository}-image-{self.version}-{debian.architecture()}.cdx.json"

    @property
    def chart_file(self) -> str:
        return f"{OPERATOR.repository}-{self.version}.tgz"

    @property
    def python_files(self) -> tuple[str, str]:
        name = OPERATOR.repository.replace("-", "_")
        return f"{name}-{self.version}-py3-none-any.whl", f"{name}-{self.version}.tar.gz"

    @property
    def notes_file(self) -> str:
        return f"release-notes-{self.version}.md"

    @property
    def files(self) -> list[str]:
        """The names of all files of the release, without that of their checksums."""
        images = [name for target in (OPERATOR, FLEET) for name in (self.image_file(target), self.bill_file(target))]
        return sorted([*images, self.chart_file, *self.python_files, self.notes_file])


def version_of(tree: Path) -> str:
    """The version that the package and the chart in this tree agree on."""
    chart = yaml.safe_load((tree / CHART / "Chart.yaml").read_text())
    (package,) = re.findall(r'^__version__ = "(.+)"$', (tree / "operator/reassign/__init__.py").read_text(), re.M)
    versions = {"the package": package, "the chart": str(chart["version"]), "its appVersion": str(chart["appVersion"])}
    if len(set(versions.values())) > 1:
        raise PlatformError(f"the versions differ, so set them to one: {versions}")
    return str(package)


def notes(changelog: str, version: str) -> str:
    """The part of the change log about this version, under its heading."""
    sections = re.split(r"^(?=## )", changelog, flags=re.M)
    for section in sections:
        heading = section.partition("\n")[0]
        if re.match(rf"## {re.escape(version)}\b(?![.-])", heading):
            return section.removeprefix("#").strip() + "\n"
    raise PlatformError(f"docs/changelog.md has no section about {version}: add one")


def require_tag(tag: str, version: str, text: str) -> None:
    """Refuse a tag that is not the version's, and a change log that says that it is not released."""
    if tag != f"v{version}":
        raise PlatformError(f"the tag is {tag}, but the version is {version}: tag v{version}, or change the version")
    if NOT_RELEASED in text.partition("\n")[0]:
        raise PlatformError(f"docs/changelog.md says that {version} is {NOT_RELEASED}: write the date there")


def chart_archive(chart: Path, seconds: int) -> bytes:
    """A chart's archive as `helm package` writes it, but with the same bytes for the same files and time."""
    written = io.BytesIO()
    paths = sorted(path for path in chart.rglob("*") if path.is_file())
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(paths, key=lambda path: path.name != "Chart.yaml"):  # helm expects it first
            member = tarfile.TarInfo(f"{chart.name}/{path.relative_to(chart)}")
            member.size, member.mtime = path.stat().st_size, seconds
            with path.open("rb") as content:
                archive.addfile(member, content)
    return gzip.compress(written.getvalue(), mtime=seconds)


def checksums(folder: Path, names: Iterable[str]) -> str:
    """What `sha256sum --check` reads, in the order of the names."""
    return "".join(f"{_sha256(folder / name)}  {name}\n" for name in names)


def make(tag: str | None, registry: str | None) -> None:
    """Write all files of the release to dist/."""
    prerequisites.require(["operator"])
    if changed := run(["git", "-C", CHECKOUT, "status", "--porcelain"]):
        raise PlatformError(f"a release is made of a commit, but files have changed since: commit them\n{changed}")
    commit, seconds = run(["git", "-C", CHECKOUT, "log", "-1", "--format=%H %ct"]).split()
    with TemporaryDirectory() as folder:
        tree = Path(folder)
        _export(tree)
        release = Release(version_of(tree), commit, int(seconds))
        text = notes((tree / "docs" / "changelog.md").read_text(), release.version)
        if tag:
            require_tag(tag, release.version, text)
        for name in debian.BASES:
            if different := debian.differences_of(name):
                raise PlatformError(
                    "the base differs from its lock: make lock-debian, test and commit\n" + different[0]
                )
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        (DIST / release.notes_file).write_text(text)
        if registry:
            values = tree / CHART / "values.yaml"
            values.write_text(in_registry(values.read_text(), registry))
        (DIST / release.chart_file).write_bytes(chart_archive(tree / CHART, release.seconds))
        uv = CHECKOUT / ".venv" / "bin" / "uv"
        epoch = {"SOURCE_DATE_EPOCH": str(release.seconds)}
        run([uv, "build", "--quiet", "--no-create-gitignore", "--out-dir", DIST, tree], env=epoch)
        for target in (OPERATOR, FLEET):
            write_image(DIST, release, target, tree, registry)
    (DIST / SUMS).write_text(checksums(DIST, release.files))
    found = {path.name for path in DIST.iterdir()}
    if found != {*release.files, SUMS}:
        raise PlatformError(f"dist/ has other files than a release: {sorted(found ^ {*release.files, SUMS})}")
    print((DIST / SUMS).read_text(), end="")


def in_registry(values: str, registry: str) -> str:
    """The chart's values with the operator's image in this registry."""
    plain = f"repository: {OPERATOR.repository}\n"
    assert values.count(plain) == 1
    return values.replace(plain, f"repository: {registry}/{OPERATOR.repository}\n")


def _export(tree: Path) -> None:
    archive = tree / "tree.tar"
    run(
        [
            "git",
            "-C",
            CHECKOUT,
            "-c",
            "tar.umask=0022",
            "archive",
            f"--output={archive}",
            "HEAD",
            *TREE,
            "README.md",
            "LICENSE",
        ]
    )
    with tarfile.open(archive) as written:
        written.extractall(tree, filter="tar")
    archive.unlink()


def write_image(folder: Path, release: Release, target: Target, tree: Path, registry: str | None = None) -> None:
    """Write the archive of an image of this tree, and its bill of materials, to the folder."""
    say(f"building the image {target.stage}")
    name = f"{registry or 'docker.io/library'}/{target.repository}:{release.version}"
    arguments = [f"VERSION={release.version}", f"REVISION={release.commit}"]

    def work(buildah: Buildah) -> None:
        build_target(buildah, target, name, tree, arguments)
        (folder / release.bill_file(target)).write_text(
            bill(target.repository, release.version, packages_of(buildah, name), release.seconds)
        )
        buildah.push(name, folder / "image.tar")

    with_storage(work)
    unpacked, packed = folder / "image.tar", folder / release.image_file(target)
    with (
        unpacked.open("rb") as source,
        packed.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=file, mtime=release.seconds) as written,
    ):
        shutil.copyfileobj(source, written, 1 << 20)
    unpacked.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    try:
        make(os.environ.get("TAG"), os.environ.get("REGISTRY"))
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
