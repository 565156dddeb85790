"""The command line as a whole: what it loads, how it ends, what it tells a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reassign.api.config_keys import LEADER_RATE, LOG_DIR_RATE
from reassign.cli import kubeconfig, source
from reassign.cli.app import main
from reassign.cli.completion import completions
from reassign.cli.refs import Kube
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.problem import Problem
from reassign.errors import ApiServerError, ClusterError, Reason, ReassignError
from reassign.files import snapshots
from reassign.files.tables import snapshot_of
from reassign.kube.login import Login
from tests.unit.cli import HEAVY, P0, P1, ROOT, Live, entry, error_of, kafka_cluster, manifest, run, sim, taken

PLANNING = ("plan", "assign", "convert", "rollback", "snapshot", "verify")
VERBS = ("list", "decommission", "approve", "suspend", "resume", "cancel", "brake", "top", "watch", "explain", "report")
COMMANDS = (*PLANNING, *VERBS, "fleet")
FLEET = ("assess", "plan", "emit", "report", "run")


@pytest.mark.parametrize("command", [(), *((each,) for each in COMMANDS), *(("fleet", each) for each in FLEET)])
def test_help_lists_exit_codes_and_loads_no_client_and_no_compiler(command: tuple[str, ...]) -> None:
    code = (
        "import sys; from reassign.cli.app import main;\n"
        "try: main()\n"
        "finally: print('LOADED', *{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *command, "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=True,
    )
    help, _, loaded = ran.stdout.partition("LOADED")
    assert "Exit codes: 0" in help
    assert all(name in help for name in COMMANDS) or command
    assert all(name in help for name in FLEET) or command != ("fleet",)
    assert "..." not in help.partition("Commands:")[2]
    assert "Example: " in help or command in ((), ("fleet",))
    assert set(loaded.split()) & HEAVY == set()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ClusterError(Reason.CLUSTER_UNREACHABLE, "the brokers do not answer"), 3),
        (ClusterError(Reason.AUTHENTICATION_FAILED, "refused"), 3),
        (ApiServerError("the API server did not answer"), 3),
        (ReassignError(Reason.NOT_AUTHORIZED, "not allowed"), 3),
        (ReassignError(Reason.INVALID_SECRET, "key ca.crt is empty"), 2),
    ],
)
def test_every_error_of_ours_is_one_line_with_its_reason_and_an_exit_code(
    error: ReassignError, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(source, "take", fail)
    ran = run("snapshot", tmp_path / "s", "--cluster", "main")
    assert error_of(ran, code) == f"error: {error.message} ({error.reason})\n"


def test_a_file_that_no_command_expects_to_fail_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def fail(_: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setattr(source, "take", fail)
    ran = run("snapshot", tmp_path / "s", "--cluster", "main")
    assert error_of(ran, 2) == "error: /some/file cannot be used: Permission denied (CannotBeRead)\n"


def test_no_cluster_at_all_is_a_usage_error(tmp_path: Path) -> None:
    assert "no cluster is named" in error_of(run("snapshot", tmp_path / "s"), 2)


def test_brokers_that_are_not_there_are_unreachable(tmp_path: Path) -> None:
    ran = run("snapshot", tmp_path / "s", "--bootstrap-server", "127.0.0.1:1")
    assert "ClusterUnreachable" in error_of(ran, 3)


@pytest.mark.parametrize("servers", ["b", "b:", "b:x", "b:9092,", "http://b:9092", " "])
@pytest.mark.parametrize("command", [("snapshot", "s"), ("verify", "-f", "-")])
def test_bootstrap_servers_that_are_none_are_a_usage_error(servers: str, command: tuple[str, ...]) -> None:
    ran = run(*command, "--bootstrap-server", servers, stdin=json.dumps(manifest(entry(0, 1))))
    assert (ran.code, ran.out) == (2, "")
    assert "is not host:port" in ran.err


def test_bootstrap_servers_come_by_commas_or_by_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def observe(where: source.Where) -> source.Observed:
        asked.append(where.bootstrap_servers or "")
        raise ReassignError(Reason.CLUSTER_UNREACHABLE, "none")

    monkeypatch.setattr("reassign.cli.planning.observe", observe)
    run("plan", "--broker", 1, "--bootstrap-server", "a:1,b:2", "--bootstrap-server", "c:3")
    assert asked == ["a:1,b:2,c:3"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("convert", "--cluster", "main", "-f", ""), "'--file' / '-f'"),
        (("verify", "-f", ""), "'--file' / '-f'"),
        (("rollback", "-f", ""), "'--file' / '-f'"),
        (("plan", "--broker", "1", "--snapshot", ""), "'--snapshot'"),
        (
            ("assign", "--topic", "t", "--partitions", "1", "--replication-factor", "1", "--snapshot", ""),
            "'--snapshot'",
        ),
        (("snapshot", ""), "'FOLDER'"),
        (("snapshot", "--into", "", "--name", "a"), "'--into'"),
        (("list", "--kubeconfig", ""), "'--kubeconfig'"),
        (("list", "--context", ""), "'--context'"),
        (("approve", "drain", "--digest", ""), "'--digest'"),
    ],
)
def test_an_empty_value_is_refused_and_is_not_the_current_folder(command: tuple[str, ...], option: str) -> None:
    ran = run(*command)
    assert (ran.code, ran.out) == (2, "")
    needed = command[0] in ("convert", "verify")
    words = "it is empty: give a value" if needed else "it is empty: give a value, or leave it out"
    assert f"error: Invalid value for {option}: {words} (InvalidArgument)" in ran.err.replace("[", "").replace("]", "")


@pytest.mark.parametrize("port", [0, 65536, 66000, 99999])
def test_a_number_that_is_no_port_is_a_usage_error(port: int) -> None:
    ran = run("snapshot", "s", "--bootstrap-server", f"b:{port},c:9092")
    assert (ran.code, ran.out) == (2, "")
    assert "ports are from 1 to 65535" in ran.err


@pytest.mark.parametrize("port", [1, 9092, 60000, 65535])
def test_every_port_of_tcp_is_one(port: int) -> None:
    assert source.plain(f"[::1]:{port},b:{port}").bootstrap_servers


@pytest.mark.parametrize("text", [None, "", "a: [", "apiVersion: v1\nkind: Config\n"])
def test_a_kubeconfig_that_is_missing_or_broken_is_one_line(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert "ApiServerUnavailable" in error_of(run("snapshot", tmp_path / "s", "--cluster", "main"), 3)


@pytest.mark.parametrize("text", ["", "[]", "text", "a: [", "clusters: 7\ncontexts: 7\nusers: 7\ncurrent-context: a\n"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "environment"])
def test_a_file_that_is_no_kubeconfig_is_named(
    text: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none" if named else config))
    said = error_of(run("list", *(("--kubeconfig", config) if named else ())), 3)
    assert said.startswith(f"error: the kubeconfig cannot be used ({config} is no kubeconfig); name one with")


def test_a_word_that_is_no_choice_names_the_choices() -> None:
    ran = run("list", "-o", "foo")
    assert (ran.code, ran.out) == (2, "")
    assert "Invalid value for '--output' / '-o': 'foo' is not one of 'table', 'wide', " in ran.err


KUBECONFIG = """
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: kafka}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


def test_the_namespace_is_the_contexts_as_kubectl_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert kubeconfig.namespace_of(Kube(None, Login())) == "default"
    (tmp_path / "config").write_text(KUBECONFIG)
    assert kubeconfig.namespace_of(Kube(None, Login())) == "kafka"
    assert kubeconfig.namespace_of(Kube("mine", Login())) == "mine"
    (tmp_path / "config").write_text(KUBECONFIG.replace(", namespace: kafka", ""))
    assert kubeconfig.namespace_of(Kube(None, Login())) == "default"


def test_in_a_pod_without_a_kubeconfig_the_namespace_is_the_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    (tmp_path / "namespace").write_text("team-a")
    monkeypatch.setattr(kubeconfig, "POD_NAMESPACE", tmp_path / "namespace")
    assert kubeconfig.namespace_of(Kube(None, Login())) == "team-a"


def test_the_command_line_runs_where_no_program_of_its_name_is_installed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "reassign.cli", "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "snapshot" in ran.stdout


def test_an_api_server_that_is_not_there_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert "ApiServerUnavailable" in error_of(run("snapshot", tmp_path / "s", "--cluster", "main"), 3)


@pytest.mark.parametrize("name", ["", "A", "a/b", "a b", "-a", "a.", "a..b", "a\n", "x" * 254])
@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--name"),
        ("plan", "--cluster"),
        ("plan", "--namespace"),
        ("convert", "-f", "-", "--name"),
        ("convert", "-f", "-", "--cluster"),
        ("assign", "--partitions", 1, "--replication-factor", 1, "--topic", "t", "-n"),
        ("rollback",),
        ("verify", "-f", "-", "-n"),
    ],
)
def test_a_name_that_nothing_can_have_is_a_usage_error(command: tuple[str, ...], name: str) -> None:
    ran = run(*command, *(["--"] if command == ("rollback",) else []), name)
    assert (ran.code, ran.out) == (2, "")
    assert f"{name[:50]!r} is not a name" in ran.err


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "a/b", "ü", "x" * 250])
def test_a_topic_that_cannot_be_is_a_usage_error(topic: str) -> None:
    ran = run("assign", "--topic", topic, "--partitions", 1, "--replication-factor", 1, "-o", "kafka-topics")
    assert (ran.code, ran.out) == (2, "")
    assert f"{topic[:50]!r} is not a name" in ran.err


def test_a_snapshot_of_a_live_cluster_reports_its_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = sim()
    kafka.sizes = {}
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    ran = run("snapshot", tmp_path / "s", "--cluster", "main", "-n", "kafka")
    assert ran == (0, f"{tmp_path / 's'}: 6 brokers, 1 topic, 2 partitions, 2 of them of unknown size\n", "")
    assert snapshots.read(tmp_path / "s").cluster.id == "sim"
    assert "there already" in error_of(run("snapshot", tmp_path / "s", "--cluster", "main", "-n", "kafka"), 2)


def test_a_snapshot_has_what_is_live_and_not_what_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = sim()
    kafka.leader[P0], kafka.isr[P1] = 1, frozenset({0})
    live = Live(kafka, kafka_cluster())
    topic, gone = ConfigResource(ConfigResourceType.TOPIC, P0.topic), ConfigResource(ConfigResourceType.TOPIC, "gone")
    live.set = {
        topic: {"min.insync.replicas": "2"},
        ConfigResource(ConfigResourceType.BROKER, "3"): {LOG_DIR_RATE: "9", LEADER_RATE: "7"},
    }
    live.set[gone] = None
    live.serve(monkeypatch)
    assert run("snapshot", tmp_path / "s", "--cluster", "main", "-n", "kafka").err == ""
    about, tables = snapshots.tables_in(tmp_path / "s")  # a leader out of sync is refused by `read`
    found = snapshot_of(tmp_path / "s", about.cluster_id, about.taken_at, tables)
    assert (found.leader.tolist(), found.isr.tolist()) == ([1, 1], [[0, 1], [0, -1]])
    assert found.configs == (
        ("broker", "3", LEADER_RATE, "7"),
        ("broker", "3", LOG_DIR_RATE, "9"),
        ("topic", P0.topic, "min.insync.replicas", "2"),
    )


def test_configurations_that_may_not_be_read_are_not_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(sim())
    denied = Problem(Reason.NOT_AUTHORIZED, "the Kafka user needs DESCRIBE_CONFIGS and ALTER_CONFIGS on the cluster")
    live.set = {ConfigResource(ConfigResourceType.BROKER, str(id)): denied for id in range(6)}
    live.set[ConfigResource(ConfigResourceType.TOPIC, P0.topic)] = Problem(Reason.REQUEST_FAILED, "they timed out.")
    live.serve(monkeypatch)
    ran = run("snapshot", tmp_path / "s", "--bootstrap-server", "b:9092")
    assert ran.code == 0
    assert ran.err == (
        "note: the configurations of brokers are left out (0, 1, 2, 3, 4 and 1 more): "
        "grant DESCRIBE_CONFIGS on the cluster\n"
        f"note: the configurations of topics are left out ({P0.topic}): they timed out\n"
    )
    assert snapshots.read(tmp_path / "s").configs == ()


def test_below_a_root_a_snapshot_lies_by_its_day_and_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(sim(), kafka_cluster()).serve(monkeypatch)
    ran = run("snapshot", "--into", tmp_path, "--cluster", "main", "-n", "kafka")
    other = run("snapshot", "--into", tmp_path, "--bootstrap-server", "b:9092", "--name", "other")
    assert (ran.code, ran.err, other.code, other.err) == (0, "", 0, "")
    for name in ("main", "other"):
        (folder,) = tmp_path.glob(f"date=*/cluster={name}")
        day = f"date={snapshots.read(folder).taken_at.date().isoformat()}"
        assert folder == tmp_path / day / f"cluster={name}"
    (tmp_path / day).rename(tmp_path / "date=2026-01-31")
    assert run("snapshot", "--into", tmp_path, "--cluster", "main", "-n", "kafka").code == 0
    newest = tmp_path / day / "cluster=main"
    for above in (tmp_path, newest.parent):
        said = error_of(run("plan", "--snapshot", above, "--broker", 0), 2)
        assert f"it has snapshots below; name one of them, the newest: {newest} (InvalidSnapshot)" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cluster", "main"),
        ("s", "--into", "r", "--cluster", "main"),
        ("s", "--name", "n", "--cluster", "main"),
        ("--name", "n", "--cluster", "main"),
        ("--into", "r", "--bootstrap-server", "b:9092"),
        ("--into", "r", "--cluster", "main", "--name", "../x"),
    ],
)
def test_the_target_of_a_snapshot_is_given_once_and_fully(arguments: tuple[str, ...]) -> None:
    ran = run("snapshot", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: " in ran.err


def test_topics_that_may_not_be_seen_are_not_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(sim())
    live.hidden = frozenset({"b", "a"})
    live.serve(monkeypatch)
    ran = run("snapshot", tmp_path / "s", "--bootstrap-server", "b:9092")
    assert ran.code == 0
    note = (
        "note: left out: topics that could not be read: a, b; grant the Kafka user DESCRIBE and DESCRIBE_CONFIGS on "
        "these topics\n"
    )
    assert ran.err == note
    planned = run("plan", "--snapshot", tmp_path / "s", "--balance", "disk")
    assert planned.err == note
    assert "topics that could not be read: a, b; the nearest" in planned.out


def test_a_secret_that_is_missing_is_named_and_nothing_of_others_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sasl = {"mechanism": "PLAIN", "username": "u", "passwordSecretRef": {"name": "s", "key": "k"}}
    Live(sim(), kafka_cluster(sasl=sasl)).serve(monkeypatch)
    ran = run("snapshot", tmp_path / "s", "--cluster", "main", "-n", "kafka")
    assert "there is no Secret s in kafka" in error_of(ran, 2)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("snapshot", "s", "--cluster", "main"), "--cluster"),
        (("verify", "-f", "-", "--cluster", "main"), "--cluster"),
        (("plan", "--balance", "disk", "--cluster", "main"), "--cluster"),
        (("plan", "--balance", "disk", "--snapshot", "s"), "--snapshot"),
        (("assign", *("--topic", "t", "--partitions", 1, "--replication-factor", 1), "--snapshot", "s"), "--snapshot"),
    ],
)
def test_two_clusters_are_a_usage_error_and_none_of_them_is_preferred(
    arguments: tuple[object, ...], option: str
) -> None:
    ran = run(*arguments, "--bootstrap-server", "b:9092", stdin="")
    assert (ran.code, ran.out) == (2, "")
    assert f"it is another cluster than {option} names" in ran.err


def test_a_topic_is_assigned_for_a_cluster_or_a_snapshot_and_not_for_both() -> None:
    new = ("--topic", "t", "--partitions", 1, "--replication-factor", 1)
    ran = run("assign", *new, "--snapshot", "s", "--cluster", "main")
    assert (ran.code, ran.out) == (2, "")
    assert "it is another cluster than --cluster names" in ran.err


def program(*arguments: object, stdout: int, stdin: str = "", **environment: str) -> tuple[int, str]:
    """The exit code and stderr of the program itself."""
    ran = subprocess.run(
        [sys.executable, "-c", "from reassign.cli.app import main; main()", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), **environment},
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stderr


STOCK = json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]})


@pytest.mark.parametrize("command", [("--help",), ("convert", "-f", "-", "--cluster", "c")])
def test_a_full_disk_and_a_closed_pipe_have_an_exit_code_of_their_own(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        code, said = program(*command, stdin=STOCK, stdout=full.fileno())
    assert (code, "Traceback" in said) == (4, False)
    full_disk = "error: stdout cannot be written: No space left on device (CannotBeWritten)\n"
    assert (said == full_disk) == ("convert" in command)
    read, write = os.pipe()
    os.close(read)
    code, said = program(*command, stdin=STOCK, stdout=write)
    os.close(write)
    assert (code, said) == (4, "")


def test_a_full_disk_is_told_of_a_table_as_well() -> None:
    script = "from reassign.cli import output\ntry: output.write_picture(['x'])\nexcept output.UnwritableError: exit(9)"
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT / "operator")}, stdout=full
        )
    assert ran.returncode == 9


def test_streams_that_are_closed_are_no_traceback() -> None:
    shell = '"$0" -c "from reassign.cli.app import main; main()" convert -f - --cluster c '
    for closed, code, why in (
        ("<&-", 2, "standard input is closed"),
        (">&-", 4, "it is closed"),
        ("2>&- --no-such", 2, ""),
    ):
        ran = subprocess.run(
            ["/bin/sh", "-c", shell + closed, sys.executable],
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
            input=STOCK,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, why in ran.stderr, "Traceback" in ran.stderr) == (code, True, False), ran


ASCII_ONLY = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_any_locale_will_do(output: str, tmp_path: Path) -> None:
    plan = ("plan", "--snapshot", taken(tmp_path), "--drain-broker", 5, "-o", output)
    assert program(*plan, stdout=subprocess.DEVNULL, **ASCII_ONLY) == (0, "")


def test_any_name_of_a_file_will_do(tmp_path: Path) -> None:
    code, said = program("verify", "-f", tmp_path / "\udcff", stdout=subprocess.DEVNULL, **ASCII_ONLY)
    assert (code, said.count("\n"), "CannotBeRead" in said) == (2, 1, True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], COMMANDS),
        (["pl"], ("plan",)),
        (["plan", "--dr"], ("--drain-broker",)),
        (["plan", "--racks", ""], ("tree", "flat", "none")),
        (["verify", "-f", ""], ()),
    ],
)
def test_kubectl_gets_the_completions_of_a_word(
    words: list[str], found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert tuple(completions(words)) == found


def test_usage_is_as_users_type_it_and_names_every_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["list"], ["fleet", "run"]):
        monkeypatch.setattr("sys.argv", ["kubectl-kafka_reassign", *words, "--help"])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr().out
        assert said.startswith(f"Usage: kubectl kafka-reassign {' '.join(words)} ")
        assert "130 it was interrupted" in " ".join(said.split())
