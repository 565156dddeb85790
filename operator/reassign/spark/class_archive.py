"""An archive of the JVM's classes, without which Spark starts some seconds later.

The first whole run of an installation makes it as its JVM ends, and leaves it in the user's cache. The JVM checks that
an archive fits its version and its jars, and does without one that does not fit (JEP 350).
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyspark

from reassign.api.digest import hashed
from reassign.caches import kept, of_user

NAME = "reassign-spark-classes"
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""The JVM would print which classes it leaves out to stdout."""
WRITING_SECONDS = 120
"""How long a JVM may take to write an archive; it takes 5 to 20 s."""
CONFIGURATION = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables for folders that Spark puts into the class path."""
UNFINISHED, ENDING = "unfinished-", ".jsa"


class ClassArchive(NamedTuple):
    """The archive of an installation: where it is, or else where this process has it made."""

    file: Path
    is_made: bool

    @property
    def options(self) -> str:
        """The JVM's options to make the archive, or to read it."""
        use = "SharedArchiveFile" if self.is_made else "ArchiveClassesAtExit"
        return f"{shlex.quote(f'-XX:{use}={self.file}')} {QUIET}"

    def finish(self, jvm: subprocess.Popen[bytes]) -> None:
        """End the JVM that makes the archive, and name the file by its length: a JVM that reads a cut one crashes."""
        if self.is_made or jvm.stdin is None:
            return
        jvm.stdin.close()
        with suppress(subprocess.TimeoutExpired, FileNotFoundError, KeyboardInterrupt):
            if jvm.wait(WRITING_SECONDS) == 0:
                self.file.rename(self.file.with_name(f"{self.file.stat().st_size}{ENDING}"))


def find() -> ClassArchive | None:
    """Return the archive of these jars and this Java; None where there can be none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if java is None or any(_has_files(os.environ.get(name)) for name in CONFIGURATION) or _has_files(spark / "conf"):
        return None
    try:
        files = [Path(java).resolve(), *sorted((spark / "jars").glob("*.jar"))]
        key = hashed([[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files])
        folder = kept(of_user(), NAME, key.rpartition(":")[2][:16])
        return _in(folder, java) if folder and _ours(folder) else None
    except OSError:  # such as a cache that is removed meanwhile
        return None


def _in(folder: Path, java: str) -> ClassArchive | None:
    own = folder / f"{UNFINISHED}{os.getpid()}"
    for left in folder.glob(f"{UNFINISHED}*"):
        if left == own or not Path("/proc", left.name.removeprefix(UNFINISHED)).exists():
            left.unlink(missing_ok=True)
    for file in folder.glob(f"*{ENDING}"):
        if file.stem == str(file.stat().st_size):
            return ClassArchive(file, True)
    archive = ClassArchive(own, False)
    tried = subprocess.run([java, *shlex.split(archive.options), "-version"], capture_output=True)
    own.unlink(missing_ok=True)
    return archive if tried.returncode == 0 else None  # some JVMs cannot make one, and would not start


def _has_files(folder: Path | str | None) -> bool:
    """Whether a folder of the class path has files: a JVM makes no archive then."""
    return folder is not None and Path(folder).is_dir() and any(Path(folder).iterdir())


def _ours(folder: Path) -> bool:
    """Whether no other user may have put an archive there, whose code would be ours."""
    said = folder.stat()
    return said.st_uid == os.getuid() and not said.st_mode & stat.S_IWOTH
