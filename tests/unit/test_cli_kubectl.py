"""kubectl's own words: --namespace, --context, --kubeconfig and -o mean in each command what they mean there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import typer
import yaml

from localplatform.certificates import make_authority
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
        ("explain", "main"),
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


FILES = {"missing": "No such file or directory", "a folder": "Is a directory", "denied": "Permission denied"}


READ_A_FILE = (("convert", "--cluster", "c"), ("verify",), ("rollback",))


@pytest.fixture
def unreadable() -> Iterator[dict[str, Path]]:
    """Files that cannot be read, by root neither, who is another user meanwhile."""
    with TemporaryDirectory() as name:  # pytest closes its own folders to other users whenever a run begins
        folder = Path(name)
        folder.chmod(0o777)
        found = {what: folder / what.replace(" ", "-") for what in FILES}
        found["a folder"].mkdir()
        found["denied"].touch(mode=0)
        for command in (("list", "--kubeconfig"), *((*words, "-f") for words in READ_A_FILE)):
            run(*command, found["missing"])  # imports what it needs
        root = os.geteuid() == 0
        if root:
            os.setresuid(65534, 65534, 0)
        yield found
        if root:
            os.setresuid(0, 0, 0)


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("named", [True, False], ids=["named", "environment"])
def test_a_kubeconfig_that_cannot_be_read_is_named(
    what: str, named: bool, unreadable: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(unreadable[what]))
    said = error_of(run("rollback", "move", *(("--kubeconfig", unreadable[what]) if named else ())), 3)
    assert said.startswith(f"error: the kubeconfig cannot be used ({unreadable[what]}: {FILES[what]}); name one")


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("command", READ_A_FILE)
def test_an_input_that_cannot_be_read_is_named(
    what: str, command: tuple[str, ...], unreadable: dict[str, Path]
) -> None:
    said = error_of(run(*command, "-f", unreadable[what]), 2)
    assert said == f"error: {unreadable[what]} cannot be read: {FILES[what]}; name another file (CannotBeRead)\n"


@pytest.mark.parametrize("entry", ["certificate-authority", "client-certificate", "client-key"])
def test_a_file_that_the_kubeconfig_names_is_named(entry: str, unreadable: dict[str, Path]) -> None:
    made = make_authority(unreadable["denied"].parent / "made")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(made)}
    user = {"client-certificate": str(made), "client-key": str(made.with_suffix(".key"))}
    (cluster if entry in cluster else user)[entry] = str(unreadable["denied"])
    login = yaml.safe_load(KUBECONFIG) | {"clusters": [{"name": "c", "cluster": cluster}]}
    (made.parent / "config").write_text(yaml.safe_dump(login | {"users": [{"name": "u", "user": user}]}))
    said = error_of(run("list", "--kubeconfig", made.parent / "config"), 3)
    assert said.startswith(f"error: the kubeconfig cannot be used ({unreadable['denied']}: Permission denied); name")


def test_a_file_of_the_kubeconfig_that_is_no_pem_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"\xff\xfe")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(tmp_path / "ca.crt")}
    login = yaml.safe_load(KUBECONFIG) | {"clusters": [{"name": "c", "cluster": cluster}]}
    (tmp_path / "config").write_text(yaml.safe_dump(login))
    assert f"({tmp_path / 'ca.crt'}: no certificate, or no key of it, in PEM)" in error_of(
        run("list", "--kubeconfig", tmp_path / "config"), 3
    )


def test_one_of_several_kubeconfigs_may_be_missing(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{kubeconfig.with_name('none')}:{kubeconfig}")
    assert "did not answer" in error_of(run("list"), 3)


@pytest.mark.parametrize("entries", [":{}", "{}:", ":{}:"])
def test_empty_entries_of_kubeconfig_are_none(entries: str, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", entries.format(kubeconfig))
    assert converted("--context", "there") == "team-a"
    kubeconfig.write_text("7")
    assert f"({kubeconfig} is no kubeconfig)" in error_of(run("list"), 3)
    monkeypatch.setenv("KUBECONFIG", ":")
    assert "the kubeconfig cannot be used (KUBECONFIG names no file)" in error_of(run("list"), 3)


def login_of(folder: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> str:
    """What the command line says of a kubeconfig with this cluster and user."""
    login = yaml.safe_load(KUBECONFIG) | {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"} | cluster}],
        "users": [{"name": "u", "user": user or {}}],
    }
    (folder / "config").write_text(yaml.safe_dump(login))
    said = error_of(run("list", "--kubeconfig", folder / "config"), 3)
    before, after = "error: the kubeconfig cannot be used (", "); name one with"
    assert said.startswith(before)
    return said.removeprefix(before).partition(after)[0]


@pytest.mark.parametrize(
    "server", ["", "127.0.0.1:1", "not a url", "ftp://a", "https://", "https://[::1", "https://a:99999", "https://a b"]
)
def test_a_server_that_is_no_url_is_named(server: str, tmp_path: Path) -> None:
    shown = f"{server.rstrip('/')!r}, no URL such as https://host:6443"
    assert login_of(tmp_path, {"server": server}) == f"its server is {shown}"
    if server:
        assert (
            login_of(tmp_path, {"proxy-url": server})
            == f"its proxy-url is {server!r}, no URL such as https://host:6443"
        )


@pytest.mark.parametrize("server", ["user:hidden@a:6443", "https://user:hidden@a:99999", "socks5://:hid@den@a:1080"])
def test_no_password_of_a_url_is_shown(server: str, tmp_path: Path) -> None:
    for field in ("server", "proxy-url"):
        said = login_of(tmp_path, {field: server})
        assert said.startswith(f"its {field} is ")
        assert "…@a:" in said
        assert "hid" not in said


NO_PEM = "bm8gUEVN"


@pytest.mark.parametrize(
    ("cluster", "user", "why"),
    [
        ({"certificate-authority-data": NO_PEM}, {}, "certificate-authority-data: no certificate, or no key of it, in"),
        (
            {},
            {"client-certificate-data": NO_PEM, "client-key-data": NO_PEM + NO_PEM},
            "client-certificate-data, client-key-data: no certificate, or no key of it, in PEM",
        ),
        ({"certificate-authority-data": "A"}, {}, "what a field that ends in -data has is not base64"),
        ({"certificate-authority": "/none"}, {}, "/none: No such file or directory"),
        ({"tls-server-name": 5}, {}, "its tls-server-name is 5, no text"),
        ({}, {"tokenFile": "/none"}, "/none: No such file or directory"),
    ],
)
def test_the_field_of_the_kubeconfig_is_named(
    cluster: dict[str, Any], user: dict[str, Any], why: str, tmp_path: Path
) -> None:
    assert login_of(tmp_path, cluster, user).startswith(why)


def test_nothing_secret_of_the_kubeconfig_is_shown(tmp_path: Path) -> None:
    login = yaml.safe_load(KUBECONFIG) | {"users": [{"name": "u", "token": "hidden"}]}
    (tmp_path / "config").write_text(yaml.safe_dump(login))
    said = error_of(run("list", "--kubeconfig", tmp_path / "config"), 3)
    assert "hidden" not in said
    assert "it has no user where one is expected" in said


CREDENTIAL = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'log in first' >&2; echo hidden >&2; exit 7", "it ended with exit code 7: log in first"),
        ("exit 3", "it ended with exit code 3"),
        (f"echo 'token={'hidden' * 2} {'hidden' * 9} is old' >&2; exit 1", "exit code 1: token=… … is old"),
        ("echo 'client_secret=hidden' >&2; exit 1", "exit code 1: client_secret=…"),
        ("""echo '{"access_token":"hidden"}' >&2; exit 1""", 'exit code 1: {"access_token":"…'),
        ("echo 'Authorization: Basic hidden' >&2; exit 1", "exit code 1: Authorization: Basic …"),
        ("echo 'run it --password hidden' >&2; exit 1", "exit code 1: run it --password …"),
        ("echo 'no answer of https://me:hidden@a/b' >&2; exit 1", "exit code 1: no answer of https://…@a/b"),
        ("echo hidden", "what it prints is not JSON"),
        (f"echo '{json.dumps(CREDENTIAL)}'", "malformed response. missing key 'status'"),
        (f"echo '{json.dumps(CREDENTIAL | {'status': {}})}'", "missing token or clientCertificateData field in"),
    ],
)
def test_a_credential_plugin_that_fails_is_named_with_why(script: str, why: str, tmp_path: Path) -> None:
    plugin = {"apiVersion": CREDENTIAL["apiVersion"], "command": "sh", "args": ["-c", script]}
    said = login_of(tmp_path, {}, {"exec": plugin, "token": "hidden"})
    assert said.startswith("its credential plugin sh: ")
    assert why in said
    assert "hidden" not in said
    gone = {"exec": plugin | {"command": "no-such-plugin"}}
    assert login_of(tmp_path, {}, gone) == "its credential plugin no-such-plugin: No such file or directory"


WRONG_WORDS = {
    ("list", "-o", "foo"): "Invalid value for '--output' / '-o': 'foo' is not one of 'table', 'wide', 'json', 'yaml'",
    ("watch",): "Missing argument 'NAME' (InvalidArgument)",
    ("explain",): "Missing argument 'NAME' (InvalidArgument)",
    (
        "explain",
        "kbd/x",
    ): "Invalid value for 'NAME': BrokerDecommission has no triggers: name a ReassignmentPolicy (Inv",
    (
        "explain",
        "kafka/x",
    ): "Invalid value for 'NAME': 'kafka' is no type that has verbs here; there are: kpr, krp, kbd",
    ("report", "krp/x"): "Invalid value for 'NAME': ReassignmentPlan has no report: name one of its waves (Inv",
    ("lists",): "No such command 'lists'",
    ("--no-such",): "No such option: --no-such",
    ("-n", "kafka", "list"): "No such option: -n; it goes after the command: kubectl kafka-reassign COMMAND -n …",
    ("--cluster", "a", "top"): "No such option: --cluster; it goes after the command: kubectl kafka-reassign COMMAND",
    ("fleet", "--work", "w", "run"): "No such option: --work; it goes after the command: kubectl kafka-reassign fleet ",
    ("rollback", "a", "-f", "b"): "Invalid value: a PartitionReassignment and a file are given: leave one of them out",
    ("fleet", "run"): "Missing option '--snapshots' (InvalidArgument)",
    ("plan", "--snapshot", "s", "--throttle", "5x"): "Invalid value for '--throttle': '5x' is not a quantity",
}


@pytest.mark.parametrize(("words", "said"), WRONG_WORDS.items(), ids=map(" ".join, WRONG_WORDS))
def test_wrong_words_are_an_error_as_any_other_with_the_usage(words: tuple[str, ...], said: str) -> None:
    ran = run(*words)
    error, usage, hint = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert error.startswith(f"error: {said}")
    assert error.endswith("(InvalidArgument)")
    assert usage.startswith("Usage: kubectl kafka-reassign ")
    assert hint.endswith("--help' for help.")


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
