"""Runs in an image, by its Python alone: prints its Debian packages, Python packages and jars as a JSON list.

Each is a list of kind, namespace, name, version and license, as `Package` of sbom.py has them.
"""

import json
import subprocess
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

PACKAGES = "/opt/packages"
Found = tuple[str, str | None, str, str, str | None]


def debian() -> Iterator[Found]:
    """The packages that dpkg knows."""
    listed = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\\n"], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        name, version = line.split()
        yield "deb", "debian", name, version, None


def python() -> Iterator[Found]:
    """The packages of the project's lock."""
    for found in distributions(path=[PACKAGES]):
        yield (
            "pypi",
            None,
            found.metadata["Name"].lower(),
            found.version,
            (found.metadata.get_all("License-Expression") or [None])[0],
        )


def jars() -> Iterator[Found]:
    """What Maven built of the jars that Spark brings; without their Maven coordinates it is the file's name."""
    for jar in Path(PACKAGES).glob("pyspark/jars/*.jar"):
        with zipfile.ZipFile(jar) as archive:
            written = [name for name in archive.namelist() if name.endswith("/pom.properties")]
            for name in written:
                lines = (line.partition("=") for line in archive.read(name).decode().splitlines())
                properties = {key.strip(): value.strip() for key, _, value in lines}
                yield "maven", properties["groupId"], properties["artifactId"], properties["version"], None
        if not written:
            name, _, version = jar.stem.rpartition("-")
            yield "generic", None, name, version, None


if __name__ == "__main__":
    print(json.dumps(sorted({*debian(), *python(), *jars()}, key=repr)))
