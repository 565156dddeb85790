"""What the operator shows to the outside: probes, metrics, logs; and what it is told from there: settings."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import aiohttp
import pytest
import structlog
from pydantic import ValidationError

from reassign.controller.logs import set_up_logs
from reassign.controller.metrics import Metrics
from reassign.controller.server import Health, serving
from reassign.controller.settings import Settings
from reassign.errors import ApiServerError


def fetch(health: Health, metrics: Metrics, *paths: str) -> list[tuple[int, str]]:
    async def run() -> list[tuple[int, str]]:
        async with serving(health, metrics, port=0) as port, aiohttp.ClientSession() as session:
            answers = [await session.get(f"http://127.0.0.1:{port}{path}") for path in paths]
            return [(answer.status, await answer.text()) for answer in answers]

    return asyncio.run(run())


def test_a_stuck_loop_does_not_end_a_process_whose_others_tick() -> None:
    now = 100.0
    health = Health(30.0, [], clock=lambda: now)
    assert fetch(health, Metrics(), "/livez") == [(200, "ok\n")]
    health.tick("kafka/main")
    health.tick("kafka/other")
    now = 131.0
    health.tick("kafka/other")
    assert health.stuck() == ["kafka/main"]
    now = 162.0
    health.tick("kafka/other")
    assert fetch(health, Metrics(), "/livez") == [(200, "ok\n")]
    now = 223.0
    assert fetch(health, Metrics(), "/livez") == [(503, "kafka/main has stopped\nkafka/other has stopped\n")]
    health.forget("kafka/main")
    health.tick("kafka/other")
    assert fetch(health, Metrics(), "/livez") == [(200, "ok\n")]


def test_it_is_ready_when_all_that_was_awaited_has_come() -> None:
    awaited = ["the first listing"]
    health = Health(30.0, [lambda: [], lambda: awaited])
    assert fetch(health, Metrics(), "/readyz", "/livez") == [(503, "waiting for the first listing\n"), (200, "ok\n")]
    awaited.clear()
    assert fetch(health, Metrics(), "/readyz") == [(200, "ok\n")]


def test_what_is_counted_can_be_scraped() -> None:
    metrics = Metrics()
    with metrics.reconciliation("kafka/main"):
        pass
    with pytest.raises(ApiServerError), metrics.reconciliation("kafka/main"):
        raise ApiServerError("not now")
    metrics.kafka_write("Alter")
    metrics.status_patch()
    ((status, text),) = fetch(Health(30.0, []), metrics, "/metrics")
    assert status == 200
    for line in (
        'kafka_reassign_reconciliations_total{kafka_cluster="kafka/main"} 2.0',
        'kafka_reassign_reconciliations_failed_total{kafka_cluster="kafka/main",reason="ApiServerUnavailable"} 1.0',
        'kafka_reassign_kafka_writes_total{kind="Alter"} 1.0',
        "kafka_reassign_status_patches_total 1.0",
    ):
        assert line in text.splitlines()


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    structlog.reset_defaults()


@pytest.mark.usefixtures("logs_as_before")
def test_our_records_and_those_of_libraries_are_json_lines_of_one_shape(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("INFO")
    structlog.get_logger("reassign.test").info("step", partition="orders-0")
    logging.getLogger("kopf.reactor").info("%s started", "a watch")
    logging.getLogger("kopf.objects").info("chatter")
    logging.getLogger("kopf.reactor").debug("detail")
    ours, theirs = map(json.loads, capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["level"], ours["logger"], ours["partition"]) == (
        "step",
        "info",
        "reassign.test",
        "orders-0",
    )
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("a watch started", "info", "kopf.reactor")
    assert ours.keys() - theirs.keys() == {"partition"}


@pytest.mark.usefixtures("logs_as_before")
def test_an_exception_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("INFO")
    try:
        raise ApiServerError("not now")
    except ApiServerError:
        logging.getLogger("kopf").exception("failed")
    (record,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert "ApiServerError: not now" in record["exception"]


def test_namespaces_to_watch_are_comma_separated_and_none_means_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().watch_namespaces == ()
    monkeypatch.setenv("REASSIGN_WATCH_NAMESPACES", "team-a, team-b,")
    assert Settings().watch_namespaces == ("team-a", "team-b")


def test_a_setting_that_makes_no_sense_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASSIGN_LOG_LEVEL", "LOUD")
    with pytest.raises(ValidationError, match="log_level"):
        Settings()


def test_the_identity_is_the_pods_name_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "operator-7c9")
    monkeypatch.setenv("POD_NAMESPACE", "kafka")
    assert (Settings().pod_name, Settings().pod_namespace) == ("operator-7c9", "kafka")
