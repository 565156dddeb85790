"""The bill of materials of an image, in CycloneDX's JSON: read from the image itself, whatever its base is."""

import inspect
import json
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from localplatform import image_packages
from localplatform.buildah import Buildah


class Package(NamedTuple):
    """A package in an image: its kind and namespace by the rules of package URLs, and an SPDX expression, if known."""

    kind: str
    namespace: str | None
    name: str
    version: str
    license: str | None = None


def packages_of(buildah: Buildah, image: str) -> list[Package]:
    """List the packages in an image that buildah knows, by running its Python."""
    container = buildah("from", image).split()[-1]
    try:
        program = inspect.getsource(image_packages)
        listed = buildah("run", "--isolation=chroot", container, "--", "python3", "-c", program)
    finally:
        buildah("rm", container)
    return [Package(*each) for each in json.loads(listed)]


def bill(name: str, version: str, packages: list[Package], seconds: int) -> str:
    """The bill of materials of an image of this name and version, made at this time: seconds since 1970."""
    about = Component(name=name, version=version, type=ComponentType.CONTAINER, bom_ref=f"{name}@{version}")
    components = [_component(package) for package in packages]
    bom = Bom(
        components=components,
        serial_number=uuid5(NAMESPACE_URL, f"{name}@{version} {sorted(packages, key=repr)}"),
        metadata=BomMetaData(component=about, timestamp=datetime.fromtimestamp(seconds, UTC)),
    )
    bom.register_dependency(about, components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(package: Package) -> Component:
    url = PackageURL(package.kind, package.namespace, package.name, package.version)
    licenses = [LicenseExpression(package.license)] if package.license else []
    return Component(
        name=package.name,
        version=package.version,
        group=package.namespace,
        type=ComponentType.LIBRARY,
        bom_ref=url.to_string(),
        purl=url,
        licenses=licenses,
    )
