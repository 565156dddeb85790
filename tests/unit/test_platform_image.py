"""What the platform compiles the planner with, and keeps."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from localplatform import image
from localplatform.console import PlatformError


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_REASSIGN_CACHE", str(tmp_path))
    monkeypatch.setattr(image, "packages", lambda: tmp_path / "packages")
    monkeypatch.setattr(image, "run", lambda *_, **__: None)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "11", "2"))


@pytest.mark.parametrize(
    ("what", "found", "said"),
    [
        ("system", "Darwin", "this is Darwin on x86_64 with Python 3.11"),
        ("machine", "aarch64", "this is Linux on aarch64 with Python 3.11"),
        ("python_version_tuple", ("3", "12", "1"), "this is Linux on x86_64 with Python 3.12"),
    ],
)
def test_a_machine_that_cannot_run_the_packages_of_the_image_is_refused(
    monkeypatch: pytest.MonkeyPatch, what: str, found: object, said: str
) -> None:
    monkeypatch.setattr(platform, what, lambda: found)
    with pytest.raises(PlatformError, match=said):
        image.compiled()


def test_what_another_python_compiled_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image.compiled()
    assert image.compiled() == before
    monkeypatch.setattr(sys, "version", f"{sys.version} of another build")
    assert image.compiled() != before
