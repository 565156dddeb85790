"""What a release is made of, and the files that build and publish it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from localplatform import debian, release
from localplatform.console import PlatformError
from localplatform.image import FLEET, OPERATOR
from localplatform.sbom import Package, bill
from reassign import __version__

ROOT = Path(__file__).parents[2]
CHANGELOG = """\
# Changes

## 0.2.0, 2027-01-02

Second.

## 0.1.0-rc1, 2026-12-01

Candidate.

## 0.1.0, not released

- First.
"""
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


def made(version: str = __version__) -> release.Release:
    return release.Release(version, "c0ffee", 1_700_000_000)


def test_the_package_and_the_chart_have_one_version() -> None:
    assert release.version_of(ROOT) == __version__


def test_versions_that_differ_are_refused(tmp_path: Path) -> None:
    for name in (release.CHART / "Chart.yaml", Path("operator/reassign/__init__.py")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    chart = tmp_path / release.CHART / "Chart.yaml"
    chart.write_text(re.sub(r"appVersion: .*", "appVersion: 9.9.9", chart.read_text()))
    with pytest.raises(PlatformError, match=r"versions differ.*9\.9\.9"):
        release.version_of(tmp_path)


def test_all_files_of_a_release_bear_its_version() -> None:
    assert [name for name in made("1.2.3").files if "1.2.3" not in name] == []
    assert len(set(made().files)) == 8


def test_the_change_log_says_something_of_this_version() -> None:
    assert release.notes((ROOT / "docs" / "changelog.md").read_text(), __version__).count("\n") > 2


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1.0", "# 0.1.0, not released\n\n- First.\n"),
        ("0.1.0-rc1", "# 0.1.0-rc1, 2026-12-01\n\nCandidate.\n"),
        ("0.2.0", "# 0.2.0, 2027-01-02\n\nSecond.\n"),
    ],
)
def test_notes_are_the_section_of_the_version(version: str, expected: str) -> None:
    assert release.notes(CHANGELOG, version) == expected


@pytest.mark.parametrize("version", ["0.1", "0.2.0-rc1", "3.0.0"])
def test_a_version_without_a_section_is_refused(version: str) -> None:
    with pytest.raises(PlatformError, match="no section"):
        release.notes(CHANGELOG, version)


def test_a_tag_needs_its_version_and_a_date() -> None:
    released = release.notes(CHANGELOG, "0.2.0")
    release.require_tag("v0.2.0", "0.2.0", released)
    with pytest.raises(PlatformError, match=r"tag v0\.2\.0"):
        release.require_tag("0.2.0", "0.2.0", released)
    with pytest.raises(PlatformError, match="not released"):
        release.require_tag("v0.1.0", "0.1.0", release.notes(CHANGELOG, "0.1.0"))


def test_checksums_are_what_sha256sum_checks(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / release.SUMS).write_text(release.checksums(tmp_path, ["a.txt", "b.txt"]))
    command = ["sha256sum", "--strict", "--check", release.SUMS]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "b.txt").write_text("changed")
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 1


def test_a_chart_becomes_the_same_bytes_whenever_its_files_were_written(tmp_path: Path) -> None:
    written = []
    for folder, order in (("one", 1), ("two", -1)):
        chart = tmp_path / folder / "chart"
        (chart / "templates").mkdir(parents=True)
        for name in ["values.yaml", "Chart.yaml", "templates/a.yaml"][::order]:
            (chart / name).write_text(name)
            os.utime(chart / name, (order + 2, order + 2))
        written.append(release.chart_archive(chart, 1_700_000_000))
    assert written[0] == written[1]
    with tarfile.open(fileobj=io.BytesIO(written[0])) as archive:
        assert archive.getnames() == ["chart/Chart.yaml", "chart/templates/a.yaml", "chart/values.yaml"]


def test_the_chart_of_a_registry_takes_its_image_from_there() -> None:
    values = (ROOT / release.CHART / "values.yaml").read_text()
    image = yaml.safe_load(release.in_registry(values, "registry.example/team"))["image"]
    assert image == yaml.safe_load(values)["image"] | {"repository": "registry.example/team/kafka-reassign-operator"}


def test_the_chart_asks_for_the_image_of_the_release() -> None:
    image = yaml.safe_load((ROOT / release.CHART / "values.yaml").read_text())["image"]
    assert (image["repository"], image["tag"]) == (OPERATOR.repository, "")


def test_a_bill_of_materials_names_each_package_by_its_url() -> None:
    packages = [
        Package("pypi", None, "numpy", "2.4.6", "BSD-3-Clause AND MIT"),
        Package("deb", "debian", "zlib1g", "1:1.2.13"),
        Package("maven", "org.apache", "commons", "1"),
    ]
    text = bill(FLEET.repository, "1.0.0", packages, 1_700_000_000)
    assert text == bill(FLEET.repository, "1.0.0", packages[::-1], 1_700_000_000)
    found = json.loads(text)
    assert {each["purl"] for each in found["components"]} == {
        "pkg:pypi/numpy@2.4.6",
        "pkg:deb/debian/zlib1g@1:1.2.13",
        "pkg:maven/org.apache/commons@1",
    }
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert found["metadata"]["component"]["version"] == "1.0.0"
    (numpy,) = (each for each in found["components"] if each["name"] == "numpy")
    assert [each["expression"] for each in numpy["licenses"]] == ["BSD-3-Clause AND MIT"]


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_workflow_runs_targets_of_make_that_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*)(?=[ a-z-]*:)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {found for step in steps(workflow) for found in re.findall(r"^\s*make ([\w-]+)", step.get("run", ""), re.M)}
    assert {"check", "test"} <= run <= targets


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)
def test_a_workflow_pins_its_actions_and_asks_for_few_rights(workflow: Path) -> None:
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}


def test_the_workflow_publishes_the_files_of_a_release() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yaml").read_text()
    files = made("$VERSION")
    assert f"dist/{files.chart_file}" in text
    assert f"dist/{files.notes_file}" in text
    for target, name in ((OPERATOR, "operator"), (FLEET, "fleet")):
        archive = files.image_file(target).removesuffix(".tar.gz").replace(debian.architecture(), "amd64")
        assert f"dist/{archive}" == f"dist/kafka-reassign-{name}-image-$VERSION-amd64"
        assert files.bill_file(target).removesuffix(".cdx.json").endswith(debian.architecture())
