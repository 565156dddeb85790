"""The archive of the JVM's classes: which one an installation has, and how it is made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reassign.spark.class_archive import ClassArchive, find

JAVA = """#!/bin/sh
case "$JAVA_TOOL_OPTIONS" in *-Xshare:off*) echo "a JVM that makes no archive"; exit 1;; esac
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Java, a jar of Spark's, and a cache."""
    for file in ("jdk/bin/java", "spark/jars/spark-core.jar"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(JAVA)
        (tmp_path / file).chmod(0o755)
    for name, place in {"JAVA_HOME": "jdk", "SPARK_HOME": "spark", "XDG_CACHE_HOME": "the cache"}.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    return tmp_path


def jvm(script: str, archive: ClassArchive) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", script, "sh", str(archive.file)], stdin=subprocess.PIPE)


def test_it_is_made_once_and_read_from_then_on(installed: Path) -> None:
    first = find()
    assert first is not None
    assert not first.is_made
    assert first.options.startswith(f"'-XX:ArchiveClassesAtExit={first.file}' ")
    first.finish(jvm('read -r line; printf made > "$1"', first))  # it ends when its stdin does
    second = find()
    assert second == ClassArchive(first.file.with_name("4.jsa"), True)
    assert second.options.startswith(f"'-XX:SharedArchiveFile={second.file}' ")
    assert second.file.read_text() == "made"
    second.file.write_text("mad")
    assert find() == first, "one that was cut off is made again"


@pytest.mark.parametrize("changed", ["jdk/bin/java", "spark/jars/spark-core.jar"])
def test_another_java_or_jar_has_another_one(installed: Path, changed: str) -> None:
    before = find()
    (installed / changed).write_text(JAVA + "exit 0")
    after = find()
    assert before
    assert after
    assert before.file != after.file


def test_a_jvm_that_writes_none_leaves_none(installed: Path) -> None:
    first = find()
    assert first
    for script in ("exit 0", 'printf half > "$1"; exit 1'):
        first.finish(jvm(script, first))
        assert find() == first


def test_a_jvm_that_can_make_none_is_asked_for_none(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xshare:off")
    assert find() is None


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", None])
def test_with_files_of_a_configuration_in_the_class_path_there_is_none(
    installed: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    folder = installed / "spark" / "conf"
    folder.mkdir()
    if name:
        monkeypatch.setenv(name, str(folder))
    assert find()
    (folder / "spark-defaults.conf").touch()
    assert find() is None


def test_where_others_may_write_there_is_none(installed: Path) -> None:
    archive = find()
    assert archive
    archive.file.parent.chmod(0o777)
    assert find() is None


def test_a_jar_that_is_gone_is_no_failure(installed: Path) -> None:
    (installed / "spark/jars/dangling.jar").symlink_to(installed / "nothing")
    assert find() is None


def test_without_a_java_or_a_place_there_is_none(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (installed / "a file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(installed / "a file"))
    assert find() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(installed / "the cache"))
    assert find()
    (installed / "jdk/bin/java").unlink()
    assert find() is None


def test_what_a_process_that_is_gone_has_left_is_removed(installed: Path) -> None:
    archive = find()
    assert archive
    gone = archive.file.with_name("unfinished-999999999")  # no process has such a number
    gone.touch()
    archive.file.touch()
    assert find() == archive
    assert not [*archive.file.parent.iterdir()]
