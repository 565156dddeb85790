"""Container images built without Docker: by buildah, in a chroot.

The layers that do not change are kept. Where that storage is damaged, say by a power cut, or the kernel has no
overlays, the image is built once more in the slow storage that every machine has.
"""

from collections.abc import Callable
from pathlib import Path

from localplatform import cache
from localplatform.console import PlatformError
from localplatform.machine import remove_folder
from localplatform.processes import run

FAILED_COMMAND = 'building at STEP "RUN'
"""What buildah says when a command of a Containerfile has failed: another storage would not help."""


class Buildah:
    """buildah with one kind of storage."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._storage = cache.root() / "buildah" / driver

    def __call__(self, *arguments: str | Path) -> str:
        """Run buildah and return what it printed."""
        places: list[str | Path] = ["--root", self._storage / "storage", "--runroot", self._storage / "run"]
        return run(["buildah", *places, "--storage-driver", self._driver, *arguments])

    def build(self, name: str, context: Path, *options: str | Path) -> None:
        """Build an image of this name from the context; earlier images of its repository go."""
        settings = ("--isolation=chroot", "--layers", "--quiet", "--identity-label=false")
        self("build", *settings, "--tag", name, *options, context)
        repository = name.rpartition(":")[0]
        for other in self("images", "--format", "{{.Name}}:{{.Tag}}").split():
            if other.rpartition(":")[0] == repository and other != name:
                self("rmi", other)

    def push(self, name: str, archive: Path) -> None:
        """Write the image of this name to an archive, as `docker save` does."""
        archive.unlink(missing_ok=True)
        self("push", "--quiet", name, f"docker-archive:{archive}:{name}")

    def load(self, name: str, archive: Path) -> None:
        """Make the image of this name in the archive known, unless it is."""
        if not self("images", "--quiet", "--filter", f"reference={name}").strip():
            self("pull", "--quiet", f"docker-archive:{archive}")


def with_storage(work: Callable[[Buildah], None]) -> None:
    """Do this work with buildah, which no other process uses meanwhile; once more where the storage does not serve."""
    with cache.locked(cache.root() / "buildah.lock", "another process builds an image, waiting for that"):
        try:
            work(Buildah("overlay"))
        except PlatformError as error:
            if FAILED_COMMAND in str(error):
                raise
            remove_folder(cache.root() / "buildah")
            work(Buildah("vfs"))
