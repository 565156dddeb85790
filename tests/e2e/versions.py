"""Versions of the operator to install: this checkout's, and an earlier one from the history of the repository."""

from __future__ import annotations

import json
import os
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from localplatform import cache, node, operator_
from localplatform.console import PlatformError, say
from localplatform.image import Image, operator_image
from localplatform.machine import CHECKOUT
from localplatform.processes import run
from tests.e2e.world import World

REPOSITORY = "localhost/kafka-reassign-operator"
EARLIER = "bb9eb4b03d3970341bed014fda196ee4b59e663a"
"""The commit that the tests of the upgrade begin with."""
PARTS = (".dockerignore", "operator", "charts", "deploy", "pyproject.toml", "requirements.lock")
BUILD = "from localplatform.image import operator_image as built; i = built(); print(i.tag); print(i.archive)"


@dataclass(frozen=True)
class Version:
    """An image of the operator that the kubelet knows, and the chart that was released with it."""

    image: Image
    chart: Path

    def install(self, world: World) -> None:
        """Bring the operator to this version by `helm upgrade --install`."""
        operator_.install(world.api, world.brokers, self.image, self.chart)


def current() -> Version:
    """The version of this checkout."""
    return Version(operator_image(), operator_.CHART)


def earlier() -> Version:
    """The version of an earlier commit, with an image that its own sources build."""
    _check_history()

    def build(place: Path) -> None:
        say("building the version to upgrade from: once, about a minute")
        run(["git", "-C", CHECKOUT, "archive", f"--output={place / 'tree.tar'}", EARLIER, *PARTS])
        with tarfile.open(place / "tree.tar") as tree:
            tree.extractall(place, filter="data")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        said = run([sys.executable, "-c", BUILD], env={"PYTHONPATH": str(place / "deploy/local"), "PATH": path})
        tag, archive = said.splitlines()[-2:]
        os.link(archive, place / "image.tar")  # its own place is one of a few that are kept
        (place / "image.json").write_text(json.dumps({"tag": tag}))

    place = cache.entry("earlier", [EARLIER], build)
    image = Image(REPOSITORY, json.loads((place / "image.json").read_text())["tag"], place / "image.tar")
    if image.name not in node.images():
        node.import_image(image.archive)
    return Version(image, place / "charts" / operator_.CHART.name)


def _check_history() -> None:
    """Raise PlatformError where the checkout does not have the earlier commit, as a shallow clone has not."""
    try:
        run(["git", "-C", CHECKOUT, "cat-file", "-e", f"{EARLIER}^{{commit}}"])
    except PlatformError:
        raise PlatformError(
            f"the test of the upgrade needs the commit {EARLIER}, which this checkout does not have: "
            "clone the whole history, or run git fetch --unshallow"
        ) from None
