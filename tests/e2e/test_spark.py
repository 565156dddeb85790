"""A fleet planned on Kubernetes: driver and executors are pods."""

from __future__ import annotations

import os
from pathlib import Path

from localplatform.controlplane import ApiServer
from localplatform.parts import plugin
from localplatform.processes import run
from localplatform.spark import NAMESPACE, run_fleet
from tests.benchmarks.fleets import write_fleet

POLICY = """\
defaults:
  namespace: kafka
overrides:
- clusters: [eu-*]
  goal: {drainBrokers: [1], balance: {by: [Disk]}}
"""


def test_executors_as_pods_make_the_same_bytes_as_one_machine(server: ApiServer, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        write_fleet(folder / "snapshots", clusters=3)

    ran = run_fleet(server, there, executors=2, policy=POLICY)
    assert ran.code == 0, ran.log
    assert ran.pods.count("-exec-") == ran.pods.count("Running") - 1 == 2, ran.pods

    plan_here(here)
    assert made(there) == made(here)
    assert {"manifests/run.json", "report.html"} < made(here).keys()

    assert server.get(f"/api/v1/namespaces/{NAMESPACE}") is None
    assert server.get(f"/api/v1/persistentvolumes/{NAMESPACE}") is None


def plan_here(folder: Path) -> None:
    """The same run on this machine's cores."""
    (folder / "policy.yaml").write_text(POLICY)
    options = {"snapshots": "snapshots", "policy": "policy.yaml", "work": "work", "manifests": "manifests"}
    command = ["kubectl-kafka_reassign", "fleet", "run", "--master=local[*]", f"--report={folder / 'report.html'}"]
    command += [f"--{option}={folder / name}" for option, name in options.items()]
    run(command, env={"PATH": f"{plugin()}:{os.environ['PATH']}"})


def made(folder: Path) -> dict[str, bytes]:
    """What a run is for, by file: manifests, run manifest and report."""
    files = [folder / "report.html", *(folder / "manifests").rglob("*")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.is_file()}
