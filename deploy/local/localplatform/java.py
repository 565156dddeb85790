"""Kafka's programs: the jars from Maven Central, fetched once, and how to run what is in them."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from localplatform import cache
from localplatform.certificates import write_private
from localplatform.console import PlatformError, SettingError, say

POM = Path(__file__).parents[1] / "kafka" / "pom.xml"
DEFAULT_VERSION = "4.3.1"

# A small JVM that starts fast; several of them share a machine.
JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
LOGGING = [
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
]
TOOLS = {
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "acls": "org.apache.kafka.tools.AclCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
}


def tool_class(name: str, version: str) -> str:
    """The class of a stock tool in that version: 4.4.0 moved that of configurations."""
    if name == "configs" and tuple(map(int, version.split("."))) >= (4, 4):
        return "org.apache.kafka.tools.ConfigCommand"
    return TOOLS.get(name, name)


def libs(version: str = DEFAULT_VERSION) -> Path:
    """The folder with the jars of that version, stock tools included, from Maven Central; fetched once."""

    def fetch(place: Path) -> None:
        if not shutil.which("mvn"):
            raise PlatformError("Maven is needed to fetch the brokers: apt-get install maven")
        say(f"fetching Kafka {version} from Maven Central: once, 54 MB")
        command = ["mvn", "-B", "-q", "-ntp", "-f", str(POM), "dependency:copy-dependencies"]
        # 3.9 brings a logging binding of its own, and two of them make the choice a matter of luck
        command += [f"-Dkafka.version={version}", "-DexcludeArtifactIds=slf4j-reload4j"]
        finished = subprocess.run(
            [*command, f"-DoutputDirectory={place}"],
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if finished.returncode:
            if "Could not find artifact" in finished.stdout:
                raise SettingError(
                    f"Maven Central has no Kafka {version}: choose another KAFKA_VERSION, such as {DEFAULT_VERSION}"
                )
            raise PlatformError(f"Maven could not fetch Kafka {version}:\n{finished.stdout.strip()[-2000:]}")

    return cache.entry("kafka", [POM, version], fetch)


def run_java(
    libs: Path,
    main: str,
    arguments: Sequence[str],
    *,
    jvm: Sequence[str] = (),
    scratch: Path | None = None,
    quiet: bool = False,
) -> str:
    """Run a program to its end; `jvm` are options of its JVM. With a scratch folder its arguments, secrets
    perhaps, stay out of sight: they go through a private file, which the launcher expands, and no error quotes them."""
    command = ["java", *JVM, *jvm, *(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"] if quiet else [])]
    command += ["-cp", f"{libs}/*"]
    options = scratch / "arguments" if scratch else None
    try:
        if options:
            write_private(options, "\n".join(f'"{part}"' for part in (main, *arguments)))
            command += [f"@{options}"]
        else:
            command += [main, *arguments]
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    finally:
        if options:
            options.unlink(missing_ok=True)
    if finished.returncode:
        said = finished.stdout + finished.stderr if not scratch else finished.stderr
        raise PlatformError(f"{main} failed ({finished.returncode}):\n{said.strip()[-3000:]}")
    return finished.stdout
