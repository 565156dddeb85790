"""How fleets run on Kubernetes: what a container of their image runs, and the examples."""

from __future__ import annotations

import runpy
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

SPARK = Path(__file__).parents[2] / "deploy" / "spark"

EXECUTOR = {
    "SPARK_HOME": "/opt/spark",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "fleet-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def command(*arguments: str, **env: str) -> list[str]:
    entrypoint: Any = runpy.run_path(str(SPARK / "entrypoint.py"))
    found: list[str] = entrypoint["command"](arguments, EXECUTOR | env)
    return found


def test_an_executor_reports_to_its_driver_under_its_own_address() -> None:
    told = command("executor")
    pairs = dict(pairwise(told))
    assert told[0] == "java"
    assert pairs["--driver-url"] == "spark://CoarseGrainedScheduler@10.0.0.1:7078"
    assert pairs["--hostname"] == "10.0.0.2"
    assert pairs["--executor-id"] == "1"
    assert pairs["-cp"] == "/opt/spark/conf:/opt/spark/jars/*"
    assert {"-Xms1024m", "-Xmx1024m"} < set(told)


def test_an_executor_gets_its_java_options_whole_and_in_their_order() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number} and a space" for number in range(12)}
    told = command("executor", **options)
    assert told[1:13] == list(options.values())


def test_an_executor_without_a_configuration_folder_has_the_jars_only() -> None:
    told = command("executor", SPARK_CONF_DIR="", SPARK_CLASSPATH=":/more/*")
    assert told[told.index("-cp") + 1] == "/opt/spark/jars/*:/more/*"


def test_a_driver_submits_within_its_container() -> None:
    told = command("driver", "--class", "some.Main", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1")
    assert told[:3] == ["spark-submit", "--deploy-mode", "client"]
    assert told[-2:] == ["--class", "some.Main"]
    assert "spark.driver.bindAddress=10.0.0.1" in told


def test_anything_else_is_run_as_it_is() -> None:
    assert command("python3", "-V") == ["python3", "-V"]


@pytest.mark.parametrize("example", ["example-sparkapplication.yaml", "example-kubeflow.yaml"])
def test_an_operator_for_spark_runs_what_the_job_runs(example: str) -> None:
    (job,) = (each for each in yaml.safe_load_all((SPARK / "job.yaml").read_text()) if each["kind"] == "Job")
    (driver,) = job["spec"]["template"]["spec"]["containers"]
    program = driver["args"].index("/opt/operator/fleet.py")
    spec = yaml.safe_load((SPARK / example).read_text())["spec"]
    assert [spec.get("pyFiles") or spec["mainApplicationFile"], *(spec.get("driverArgs") or spec["arguments"])] == [
        "local:///opt/operator/fleet.py",
        *driver["args"][program + 1 :],
    ]
    assert (spec.get("runtimeVersions") or spec)["sparkVersion"] == version("pyspark")


def named(user: int, folder: Path) -> dict[str, str]:
    entrypoint: Any = runpy.run_path(str(SPARK / "entrypoint.py"))
    entrypoint["named"].__globals__["LIBRARIES"] = folder
    found: dict[str, str] = entrypoint["named"](user, 0, folder)
    return found


def test_a_user_without_an_entry_gets_a_name_where_it_may_write(tmp_path: Path) -> None:
    wrapper = tmp_path / "some-architecture" / "libnss_wrapper.so"
    wrapper.parent.mkdir()
    wrapper.touch()
    assert named(123456, tmp_path) == {
        "LD_PRELOAD": str(wrapper),
        "NSS_WRAPPER_PASSWD": str(tmp_path / "passwd"),
        "NSS_WRAPPER_GROUP": str(tmp_path / "group"),
    }
    assert (tmp_path / "passwd").read_text() == f"fleet:x:123456:0::{tmp_path}:/usr/sbin/nologin\n"
    assert (tmp_path / "group").read_text() == "fleet:x:0:\n"


def test_a_user_with_a_name_keeps_it(tmp_path: Path) -> None:
    assert named(0, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
