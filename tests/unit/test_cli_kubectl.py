"""kubectl's own words: --namespace, --context, --kubeconfig and -o mean in each command what they mean there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from reassign.cli.app import app
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.refs import Kube
from reassign.kube.login import Login
from tests.unit.cli import HEAVY, ROOT, Live, Planner, entry, error_of, kafka_cluster, manifest, moved, run, sim, taken

KUBECONFIG = """
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: kafka}}
- {name: there, context: {cluster: c, user: u, namespace: team-a}}
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""
STOCK = json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})
WITHOUT_API_SERVER = {"fleet"}


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "config").write_text(KUBECONFIG)
    return tmp_path / "config"


def converted(*options: object) -> Any:
    ran = run("convert", "-f", "-", "--cluster", "main", *options, stdin=STOCK)
    assert ran.code == 0, ran
    return yaml.safe_load(ran.out)["metadata"]["namespace"]


def test_every_command_with_an_api_server_takes_kubectls_flags() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name in commands.keys() - WITHOUT_API_SERVER:
        options = {option for parameter in commands[name].params for option in parameter.opts}
        assert {"-n", "--namespace", "--context", "--kubeconfig"} <= options, name


def test_the_namespace_is_that_of_the_context_that_is_named(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert converted() == "default"
    assert converted("--kubeconfig", kubeconfig) == "kafka"
    assert converted("--kubeconfig", kubeconfig, "--context", "there") == "team-a"
    assert converted("--kubeconfig", kubeconfig, "--context", "there", "-n", "mine") == "mine"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert converted("--context", "there") == "team-a"


def test_a_namespace_of_the_context_that_cannot_be_is_refused(kubeconfig: Path) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("team-a", "Team_A"))
    ran = run("convert", "-f", "-", "--cluster", "main", "--kubeconfig", kubeconfig, "--context", "there", stdin=STOCK)
    assert (ran.code, ran.out) == (2, "")
    assert "'Team_A', of the kubeconfig's context, cannot be a namespace; name one" in ran.err


@pytest.mark.parametrize("namespace", [(), ("-n", "mine")])
@pytest.mark.parametrize(
    "command",
    [
        ("convert", "-f", "-", "--cluster", "main"),
        ("plan", "--cluster", "main", "--drain-broker", 5),
        ("snapshot", "s", "--cluster", "main"),
        ("rollback", "move"),
        ("list",),
        ("list", "-A"),
        ("top",),
        ("watch", "move"),
        ("approve", "drain"),
        ("suspend", "move"),
        ("resume", "move"),
        ("cancel", "move"),
        ("brake", "on", "main"),
    ],
    ids=lambda command: " ".join(map(str, command)),
)
def test_a_context_that_is_not_there_names_those_that_are(
    command: tuple[object, ...], namespace: tuple[str, ...], kubeconfig: Path
) -> None:
    ran = run(*command, *namespace, "--kubeconfig", kubeconfig, "--context", "no", stdin=STOCK)
    assert (ran.code, ran.out) == (2, "")
    assert "'no' is not in the kubeconfig; there are: here, there" in ran.err


def test_a_kubeconfig_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    ran = run("rollback", "move", "--kubeconfig", tmp_path / "none")
    assert (ran.code, ran.out) == (2, "")
    assert "does not exist" in ran.err


def test_the_api_server_is_the_one_of_the_kubeconfig_that_is_named(kubeconfig: Path) -> None:
    ran = run("rollback", "move", "--kubeconfig", kubeconfig, "--context", "there")
    assert "did not answer" in error_of(ran, 3)


def test_a_pod_with_a_kubeconfig_or_context_uses_it(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "did not answer" in error_of(run("rollback", "move", "--kubeconfig", kubeconfig, "-n", "kafka"), 3)
    assert namespace_of(Kube(None, Login(str(kubeconfig), "there"))) == "team-a"


def test_verify_answers_in_each_of_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    Live(sim(), kafka_cluster()).serve(monkeypatch)
    stdin = json.dumps(manifest(entry(0, 2, 3)))
    words = ("table", "wide", "json", "yaml")
    said = {word: run("verify", "-n", "kafka", "-f", "-", "-o", word, stdin=stdin) for word in words}
    assert {ran.code for ran in said.values()} == {0}
    assert said["table"] == said["wide"]
    assert yaml.safe_load(said["yaml"].out) == json.loads(said["json"].out)
    assert said["yaml"].out.startswith("passed: true\n")


def test_plan_answers_in_each_of_the_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reassign.cli.planning.make", Planner().make)
    folder = taken(tmp_path)
    plan = ("plan", "--snapshot", folder, "--drain-broker", 1, "-o")
    said = {word: run(*plan, word).out for word in ("table", "wide", "json", "yaml")}
    assert yaml.safe_load(said["yaml"]) == json.loads(said["json"])
    assert said["wide"].startswith(said["table"])
    rows = [line.split() for line in said["wide"].removeprefix(said["table"]).strip().splitlines()]
    assert rows == [
        ["PARTITION", "wave", "from", "to"],
        ["orders-0", "1", "0,1", "0,2"],
        ["orders-1", "1", "1,0", "2,0"],
    ]


def test_a_rollback_is_written_as_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Live(sim(), moved()).serve(monkeypatch)
    as_yaml, as_json = (run("rollback", "move", "-n", "kafka", "-o", word).out for word in ("yaml", "json"))
    assert json.loads(as_json) == yaml.safe_load(as_yaml)


def test_several_rollbacks_are_one_list_in_json(tmp_path: Path) -> None:
    second = moved() | {"metadata": {"name": "other"}}
    (tmp_path / "f").write_text(yaml.safe_dump_all([moved(), second]))
    as_yaml, as_json = (
        run("rollback", "-f", tmp_path / "f", "-n", "kafka", "-o", word).out for word in ("yaml", "json")
    )
    assert json.loads(as_json) == {"apiVersion": "v1", "kind": "List", "items": list(yaml.safe_load_all(as_yaml))}


def test_an_output_that_is_not_known_names_those_that_are() -> None:
    ran = run("verify", "-f", "-", "-o", "xml")
    assert (ran.code, ran.out) == (2, "")
    assert all(word in ran.err for word in ("table", "wide", "json", "yaml"))


def test_a_completion_of_names_loads_the_api_client_alone(kubeconfig: Path) -> None:
    code = (
        "import sys; from reassign.cli.completion import main; main();"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "suspend", "--kubeconfig", str(kubeconfig), ""],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == ":0\n"  # the API server does not answer: the shell completes files
    assert "\n" not in ran.stderr.strip()
    assert set(ran.stderr.split()) & (HEAVY - {"kubernetes", "aiohttp"}) == set()
