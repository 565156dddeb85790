"""What a container of the fleet's image runs. Spark starts executors with the argument `executor` and their settings in
the environment; an operator for Spark starts a driver with `driver` and the arguments of spark-submit.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION = "SPARK_JAVA_OPT_"  # with a number after it
NAME = "fleet"
LIBRARIES = Path("/usr/lib")


def executor(env: Mapping[str, str]) -> list[str]:
    """The command of an executor."""
    options = sorted((name for name in env if name.startswith(JAVA_OPTION)), key=lambda name: int(name.split("_")[-1]))
    memory = env["SPARK_EXECUTOR_MEMORY"]
    classes = [env.get("SPARK_CONF_DIR", ""), f"{env['SPARK_HOME']}/jars/*", env.get("SPARK_CLASSPATH", "").strip(":")]
    return [
        "java",
        *(env[name] for name in options),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, classes)),
        BACKEND,
        *("--driver-url", env["SPARK_DRIVER_URL"]),
        *("--executor-id", env["SPARK_EXECUTOR_ID"]),
        *("--cores", env["SPARK_EXECUTOR_CORES"]),
        *("--app-id", env["SPARK_APPLICATION_ID"]),
        *("--hostname", env["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", env["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", env["SPARK_EXECUTOR_POD_NAME"]),
    ]


def driver(env: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """The command of a driver whose pod somebody else has made: what is submitted runs in this container."""
    address = env["SPARK_DRIVER_BIND_ADDRESS"]
    return ["spark-submit", "--deploy-mode", "client", "--conf", f"spark.driver.bindAddress={address}", *arguments]


def command(arguments: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """What to run for the container's arguments: executor, driver, or whatever they name."""
    match list(arguments):
        case ["executor"]:
            return executor(env)
        case ["driver", *rest]:
            return driver(env, rest)
        case rest:
            return rest


def named(user: int, group: int, folder: Path) -> dict[str, str]:
    """The environment in which a user without an entry in /etc/passwd has a name, which Hadoop asks for.

    The entry is written to the folder, and nss_wrapper reads it there: any user will do, on a read-only file system.
    """
    try:
        pwd.getpwuid(user)
    except KeyError:
        (folder / "passwd").write_text(f"{NAME}:x:{user}:{group}::{folder}:/usr/sbin/nologin\n")
        (folder / "group").write_text(f"{NAME}:x:{group}:\n")
        (wrapper,) = LIBRARIES.glob("*/libnss_wrapper.so")
        files = {"NSS_WRAPPER_PASSWD": str(folder / "passwd"), "NSS_WRAPPER_GROUP": str(folder / "group")}
        return {"LD_PRELOAD": str(wrapper), **files}
    return {}


if __name__ == "__main__":
    chosen = command(sys.argv[1:], os.environ)
    os.execvpe(chosen[0], chosen, os.environ | named(os.getuid(), os.getgid(), Path("/tmp")))
