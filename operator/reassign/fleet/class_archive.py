"""An archive of the JVM's classes, without which Spark starts some seconds later.

The first whole run of an installation makes it as its JVM ends, and leaves it in the user's cache. The JVM checks that
an archive fits its version and its jars, and does without one that does not fit (JEP 350).
"""

from __future__ import annotations

import os
import shlex
import shutil
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
"""What a JVM may take to write it; it takes 5 to 20 s."""
UNFINISHED, ENDING = "unfinished-", ".jsa"


class ClassArchive(NamedTuple):
    """The archive of an installation: where it is, or else where this process has it made."""

    file: Path
    is_made: bool

    @property
    def options(self) -> str:
        """Return the JVM's options to make it, or to read it."""
        use = "SharedArchiveFile" if self.is_made else "ArchiveClassesAtExit"
        return f"{shlex.quote(f'-XX:{use}={self.file}')} {QUIET}"

    def finish(self, jvm: subprocess.Popen[bytes]) -> None:
        """End the JVM that makes it. Its name has its length: a JVM that reads a shorter one crashes."""
        if self.is_made or jvm.stdin is None:
            return
        jvm.stdin.close()
        with suppress(subprocess.TimeoutExpired, FileNotFoundError):
            if jvm.wait(WRITING_SECONDS) == 0:
                self.file.rename(self.file.with_name(f"{self.file.stat().st_size}{ENDING}"))


def find() -> ClassArchive | None:
    """Return the archive of these jars and this Java; None where there is no Java, or no cache that can be written."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")
    if java is None:
        return None
    files = [Path(java).resolve(), *sorted(jars.glob("*.jar"))]
    key = hashed([[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files])
    folder = kept(of_user(), NAME, key.rpartition(":")[2][:16])
    if folder is None:
        return None
    for left in folder.glob(f"{UNFINISHED}*"):
        if not Path("/proc", left.name.removeprefix(UNFINISHED)).exists():
            left.unlink(missing_ok=True)
    made = [file for file in folder.glob(f"*{ENDING}") if file.stem == str(file.stat().st_size)]
    return ClassArchive(made[0], True) if made else ClassArchive(folder / f"{UNFINISHED}{os.getpid()}", False)
