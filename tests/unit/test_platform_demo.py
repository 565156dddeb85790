"""What the demos and `make up` show, without a platform."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from localplatform import debian, demo_view, image, java, operator_, parts, story
from localplatform.console import PlatformError, SettingError
from localplatform.controlplane import ApiServer
from localplatform.machine import CHECKOUT

Demo = Callable[[], None]


def moving(topics: tuple[str, ...] = ("demo-orders",)) -> dict[str, Any]:
    """A PartitionReassignment as the demo reads it, with the longest of each column."""
    replicas = {"currentReplicas": [2, 0, 1, 3], "targetReplicas": [2, 0, 1], "addingReplicas": [1, 3]}
    one = {**replicas, "removingReplicas": [0, 2], "bytesCopied": 100 * 10**6, "bytesTotal": 100 * 10**6}
    partitions = [{"topic": t, "partition": p, "state": "Cancelling", **one} for t in topics for p in (0, 11)]
    return {"metadata": {"name": "demo-move"}, "status": {"partitions": partitions}}


def shown(obj: dict[str, Any], width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(demo_view.table(obj, width))
    return captured.get()


def test_the_demos_table_cuts_nothing_at_80_columns() -> None:
    text = shown(moving(), 80)
    assert "PartitionReassignment demo-move, topic demo-orders" in text
    assert all(f"│ {word} " in text for word in ("0", "11", "Cancelling", "2,0,1,3", "2,0,1", "1,3", "100.0 MB"))
    assert all(head in text for head in ("partition", "state", "replicas", "target", "adding", "copied"))
    assert "…" not in text
    assert ("removing" in text.split("\n")[2], "removing" in shown(moving(), 100).split("\n")[2]) == (False, True)


def test_the_demos_table_of_several_topics_keeps_the_partition_numbers() -> None:
    lines = shown(moving(("fleet-orders", "fleet-payments")), 80).split("\n")
    names = "".join(line.split("│")[1].strip() for line in lines if line.startswith("│"))
    assert names == "fleet-orders-0fleet-orders-11fleet-payments-0fleet-payments-11"


def test_the_demos_line_says_the_time_left_as_the_status_does() -> None:
    left = "about 3 min left for what does not wait"
    progress = {"partitionsTotal": 4, "percent": 20, "estimatedCompletionTime": "2026-01-31T12:00:00Z"}
    obj = {"status": {"progress": progress, "summary": f"1/4 partitions, 20 %, {left}, 1 blocked"}}
    assert demo_view.line(obj).split(" · ")[-1] == left
    obj["status"]["summary"] = "1/4 partitions, 20 %"
    assert "left" not in demo_view.line(obj)


def test_an_interrupted_table_is_not_drawn_again() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=80, height=40, force_terminal=True)
    answers = iter([moving()])

    def read() -> dict[str, Any]:
        for answer in answers:
            return answer
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        demo_view.follow(console, read, lambda obj: False, 60)
    assert screen.getvalue().count("PartitionReassignment") == 1


def told(
    run: Demo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> tuple[int, str]:
    """The exit code of a demo that does this, and what it says."""

    class Made:
        def __init__(self, *_: object) -> None:
            pass

        def run(self) -> None:
            run()

    monkeypatch.setattr(story, "LOCAL", folder)
    monkeypatch.setattr(parts, "running", lambda: (None, None))
    monkeypatch.delenv("PLATFORM", raising=False)
    return story.tell(Made), capsys.readouterr().out


def interrupted() -> None:
    raise KeyboardInterrupt


def test_a_demo_says_what_is_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, said = told(lambda: None, monkeypatch, capsys, tmp_path)
    assert (code, "source .local/env" in said, "make down" in said) == (0, True, True)


def test_an_interrupted_demo_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    removed: list[bool] = []

    def once() -> None:
        with story.removed_afterwards(lambda: removed.append(True)):
            interrupted()

    still = "the platform still runs (`make down` stops it)\n"
    assert told(once, monkeypatch, capsys, tmp_path) == (
        130,
        f"interrupted: what the demo made is removed; {still}",
    )
    assert len(removed) == 2

    def twice() -> None:
        with story.removed_afterwards(lambda: interrupted() if len(removed) == 3 else removed.append(True)):
            interrupted()

    code, said = told(twice, monkeypatch, capsys, tmp_path)
    assert code == 130
    assert said.startswith("interrupted: not all that the demo made is removed: it was interrupted again;")
    assert "what the demo made is removed" not in said.replace("not all that the demo made is removed", "")


def test_a_second_demo_names_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen: list[tuple[int, str]] = []
    code, _ = told(
        lambda: seen.append(told(lambda: None, monkeypatch, capsys, tmp_path)), monkeypatch, capsys, tmp_path
    )
    said = f"another demo runs (process {os.getpid()}): wait for its end, or stop it\n"
    assert (code, seen) == (0, [(2, said)])


@pytest.mark.parametrize(
    "setting",
    [
        "PLATFORM=knd",
        "ARGOCD=yes",
        "BROKERS=abc",
        "BROKERS=21",
        "CONTROLLERS=2",
        "KAFKA_PORT=x",
        "KAFKA_PORT=65500",
        "KAFKA_VERSION=4",
        "KAFKA_VERSION=3.8.1",
    ],
)
def test_a_setting_that_is_none_is_refused_before_the_first_step(setting: str, tmp_path: Path) -> None:
    name, _, value = setting.partition("=")
    paths = f"{CHECKOUT / 'deploy' / 'local'}:{CHECKOUT}"
    env = os.environ | {"PYTHONPATH": paths, "PATH": str(tmp_path), name: value}
    for command in (["localplatform", "prepare"], ["localplatform", "up"], ["localplatform", "down"], ["tests.run"]):
        ended = subprocess.run(
            [sys.executable, "-m", *command], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"error: {setting}: ")
        assert ended.stderr.count("\n") == 1


def test_a_version_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] Could not find artifact org.apache.kafka:kafka:jar:9.9.9'; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("KAFKA_REASSIGN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAFKA_VERSION", "9.9.9")
    with pytest.raises(SettingError) as error:
        parts.fetch_asked_version()
    assert (
        str(error.value)
        == f"Maven Central has no Kafka 9.9.9: choose another KAFKA_VERSION, such as {java.DEFAULT_VERSION}"
    )


def test_an_operator_that_is_not_ready_shows_its_logs_and_where_all_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def kubectl(_: ApiServer, *arguments: str, input: str | None = None) -> str:
        if arguments[0] == "get":
            return "operator-1 0/1 Running 73" if "pods" in arguments else ""
        return "it ended here\n" if "--previous" in arguments else ""

    def helm(*_: object) -> str:
        raise PlatformError("context deadline exceeded")

    monkeypatch.setattr(ApiServer, "kubectl", kubectl)
    monkeypatch.setattr(operator_, "helm", helm)
    server = ApiServer(tmp_path, "", tmp_path / "kubeconfig", tmp_path / "ca.crt", tmp_path / "audit.log")
    made: Any = None
    with pytest.raises(PlatformError) as error:
        operator_.install(server, made, image.Image("operator", "1", tmp_path / "image.tar"))
    said = str(error.value)
    assert all(text in said for text in ("deadline", "73", "before its last restart:\nit ended here", ".local/logs"))


def test_an_image_and_its_bases_are_named_when_their_making_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def bootstrapped(*_: object) -> None:
        raise PlatformError("stop")

    class Buildah:
        def load(self, *_: object) -> None:
            said.append("base")

        def build(self, *_: object) -> None:
            said.append(capsys.readouterr().err[8:])

    said: list[str] = []
    monkeypatch.setattr(debian, "base", lambda name: tmp_path)
    built: Any = Buildah()
    image.build_target(built, image.OPERATOR, "operator:1", CHECKOUT)
    assert said[:2] == ["base", "base"]
    assert said[2].startswith("building the image operator;")


def test_the_virtual_environment_is_made_with_and_without_ensurepip(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3"
    made = '#!/bin/sh\ncase "$*" in *pip*install*) echo "$*" > {folder}/installed;; esac\n'
    programs = {
        "python3": f"""#!/bin/sh
case "$*" in
  *ensurepip*) test -e {tmp_path}/ensurepip;;
  *venv*) test -e {tmp_path}/ensurepip || exit 1; mkdir -p .venv/bin
    printf '%s' '{made.format(folder=tmp_path)}' > .venv/bin/python; chmod +x .venv/bin/python;;
esac
""",
        "apt-get": f"#!/bin/sh\necho noise\ntouch {tmp_path}/ensurepip\n",
    }
    python.parent.mkdir()
    for name, text in programs.items():
        (python.parent / name).write_text(text)
        (python.parent / name).chmod(0o755)
    for file in ("Makefile", "requirements.lock"):
        shutil.copy(CHECKOUT / file, tmp_path / file)
    env = os.environ | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    packages = "installing the Python packages\n"
    for said in (f"installing python3-venv\n{packages}", packages):
        shutil.rmtree(tmp_path / ".venv", ignore_errors=True)
        ended = subprocess.run(
            ["make", "--no-print-directory", "venv"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.replace("noise\n", "") == said
        assert (tmp_path / "installed").exists()
