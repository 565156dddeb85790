"""What the images are made of: the lock of Debian's packages, and the tag that names the sources."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from localplatform import debian, image

STATUS = """\
Package: libc6
Status: install ok installed
Version: 2.36-9
Description: a library
 Version: of the description

Package: zlib1g
Version: 1:1.2.13
"""


def test_versions_of_packages_are_read_from_the_status_of_dpkg() -> None:
    assert debian.versions(STATUS) == {"libc6": "2.36-9", "zlib1g": "1:1.2.13"}


def test_what_differs_from_the_lock_is_named() -> None:
    assert debian.differences({"libc6": "1", "gone": "1"}, {"libc6": "1"}) == []
    assert debian.differences({"libc6": "1"}, {"libc6": "2", "new": "3"}) == [
        "libc6: 1 in the lock, 2 in the base",
        "new: not in the lock, 3 in the base",
    ]


def test_the_lock_has_the_packages_that_the_bases_name() -> None:
    assert {package for packages in debian.BASES.values() for package in packages} <= debian.locked().keys()
    assert debian.epoch() > 1_700_000_000


def test_a_base_is_an_image_with_one_layer_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    layer = tmp_path / "layer.tar"
    layer.write_bytes(b"layer")
    for name in ("one", "two"):
        debian.write_archive(layer, tmp_path / name, "localhost/base:1")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(tmp_path / "one") as archive:
        (manifest,) = json.loads(archive.extractfile("manifest.json").read())  # type: ignore[union-attr]
        config = json.loads(archive.extractfile(manifest["Config"]).read())  # type: ignore[union-attr]
    assert manifest["RepoTags"] == ["localhost/base:1"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'layer').hexdigest()}"]


def test_a_base_has_another_name_for_other_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = debian.image_name("operator")
    assert before == debian.image_name("operator") != debian.image_name("build")
    monkeypatch.setattr(debian, "LOCK", tmp_path / "lock")
    debian.write_lock([{"libc6": "1"}, {"libc6": "1", "zlib1g": "2"}], 1_700_000_000)
    assert (debian.locked(), debian.epoch()) == ({"libc6": "1", "zlib1g": "2"}, 1_700_000_000)
    assert debian.image_name("operator") != before


def test_a_tag_changes_with_what_goes_into_the_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders = (image.SOURCE, image.FLEET_PROGRAMS)
    for path in (*image.INPUTS, *(folder / "file.py" for folder in folders)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    monkeypatch.setattr(image, "CHECKOUT", tmp_path)

    def tags() -> tuple[str, str]:
        return image.source_tag(image.OPERATOR), image.source_tag(image.FLEET)

    before = tags()
    (tmp_path / image.SOURCE / "__pycache__").mkdir()
    (tmp_path / image.SOURCE / "__pycache__" / "file.pyc").write_text("left by a run")
    assert tags() == before
    (tmp_path / image.FLEET_PROGRAMS / "file.py").write_text("changed")
    assert [tag == earlier for tag, earlier in zip(tags(), before, strict=True)] == [True, False]
    (tmp_path / image.SOURCE / "file.py").write_text("changed")
    assert tags()[0] != before[0]
