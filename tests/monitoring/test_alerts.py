"""The alerts by Prometheus' own tool: each fires for what it says after its time, and not for less."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from localplatform.machine import CHECKOUT
from localplatform.prometheus import promtool
from reassign.controller.metrics import Metrics
from tests.monitoring.rules import ALERTS, alerts, metrics, queries
from tests.unit.metrics import documented

RUNBOOKS = CHECKOUT / "docs" / "operations" / "runbooks.md"
MAIN, LEASE = 'kafka_cluster="kafka/main"', 'lease="operator/writer"'
POD = 'pod="a"'
"""A label that the scrape adds."""


class Case(NamedTuple):
    """Series by minute, of which an alert fires `at` minutes with labels, and not a minute before."""

    alert: str
    series: dict[str, str]
    at: int
    labels: dict[str, str]


MAIN_LABELS, LEASE_LABELS = {"kafka_cluster": "kafka/main"}, {"lease": "operator/writer"}
RESOURCES = f'kafka_reassign_resources{{{MAIN},{POD},kind="PartitionReassignment",condition='
FAILED = f"kafka_reassign_reconciliations_failed_total{{{MAIN},{POD},reason="
LEFT = f"kafka_reassign_decommission_replicas_left{{{MAIN}"
POLICY = f'kafka_reassign_resources{{{MAIN},{POD},kind="ReassignmentPolicy",condition='
TRIGGER = f"kafka_reassign_policy_trigger{{{MAIN}"
LOST = f"kafka_reassign_brokers_lost{{{MAIN},{POD}}}"
FIRING = [
    Case("OperatorDown", {}, 5, {}),
    Case("OperatorDown", {f"kafka_reassign_lease_held{{{LEASE},{POD}}}": "1 0x20"}, 6, LEASE_LABELS),
    Case("KafkaUnreachable", {f"kafka_reassign_kafka_up{{{MAIN},{POD}}}": "1 0x20"}, 6, MAIN_LABELS),
    Case("Stalled", {RESOURCES + '"Stalled"}': "0 2x20"}, 6, MAIN_LABELS | {"kind": "PartitionReassignment"}),
    Case(
        "Blocked",
        {f'kafka_reassign_partitions_blocked{{{MAIN},{POD},reason="UnknownBroker"}}': "0 3x80"},
        61,
        MAIN_LABELS | {"reason": "UnknownBroker"},
    ),
    Case("ThrottleLeftBehind", {f"kafka_reassign_throttles_left_over{{{MAIN},{POD}}}": "0 2x30"}, 16, MAIN_LABELS),
    Case("CordonLeftBehind", {f"kafka_reassign_cordons_left_over{{{MAIN},{POD}}}": "0 1x30"}, 16, MAIN_LABELS),
    Case(
        "DecommissionNotEmpty",
        {f'{LEFT},pod="a"}}': "0 312x700 stale", f'{LEFT},pod="b"}}': "_x705 0 40x800"},
        24 * 60 + 1,
        MAIN_LABELS,
    ),
    Case("PolicyStalled", {POLICY + '"Stalled"}': "0 1x20"}, 6, MAIN_LABELS),
    Case(
        "TooManyBrokersLost",
        {LOST: "0 1 2x20", f'{TRIGGER},{POD},kind="brokerLost",state="Held"}}': "0 0 0 1x20"},
        8,
        MAIN_LABELS,
    ),
    Case(
        "TriggerHeld",
        {
            f'{TRIGGER},pod="a",kind="brokersAdded",state="Held"}}': "0 1x700 stale",
            f'{TRIGGER},pod="b",kind="brokersAdded",state="Held"}}': "_x705 0 1x800",
        },
        24 * 60 + 1,
        MAIN_LABELS | {"kind": "brokersAdded"},
    ),
    Case(
        "TooManyBrokersLost",
        {LOST: "0 2x20", f'{TRIGGER},{POD},kind="brokerLost",state="Suspended"}}': "0 1x20"},
        6,
        MAIN_LABELS,
    ),
    Case("PlanPastWindows", {f"kafka_reassign_plans_past_windows{{{MAIN},{POD}}}": "0 1x30"}, 16, MAIN_LABELS),
    Case(
        "Drift",
        {RESOURCES + '"Drifted"}': "0 1x30"},
        16,
        MAIN_LABELS | {"kind": "PartitionReassignment", "condition": "Drifted"},
    ),
    Case("InternalError", {FAILED + '"InternalError"}': "1 1 2x20"}, 2, MAIN_LABELS),
    Case(
        "LeaseFlapping",
        {
            f'kafka_reassign_lease_transitions{{{LEASE},pod="a"}}': "7 7 7 8 9 stale",
            f'kafka_reassign_lease_transitions{{{LEASE},pod="b"}}': "_x5 10 11x90",
        },
        6,
        LEASE_LABELS,
    ),
    Case("StandbyMissing", {f"kafka_reassign_standby_ready{{{LEASE},{POD}}}": "1 0x30"}, 16, LEASE_LABELS),
]
WRITES = {f"kafka_reassign_lease_held{{{LEASE},{POD}}}": "1x90"}
QUIET = [
    # a new pod takes over within the time, and nothing fails but a request now and then
    {
        f'kafka_reassign_lease_held{{{LEASE},pod="a"}}': "1 1 stale",
        f'kafka_reassign_lease_held{{{LEASE},pod="b"}}': "0 0 0 1x90",
        f'kafka_reassign_lease_transitions{{{LEASE},pod="b"}}': "NaN 41 41 42x90",
        f'kafka_reassign_standby_ready{{{LEASE},pod="b"}}': "1 1 1 0 0 0 1x90",
        f"kafka_reassign_kafka_up{{{MAIN},{POD}}}": "1 0 0 0 0 1x90",
        RESOURCES + '"Ready"}': "1x90",
        FAILED + '"ClusterUnreachable"}': "1+1x90",
        f"kafka_reassign_throttles_left_over{{{MAIN},{POD}}}": "0 4 4 0x90",
        f'kafka_reassign_partitions_blocked{{{MAIN},{POD},reason="BrokerFenced"}}': "3x50 0x40",
        f"kafka_reassign_cordons_left_over{{{MAIN},{POD}}}": "0 1 1 0x90",
        f"{LEFT},{POD}}}": "312x60 0x40",
        f"kafka_reassign_plans_past_windows{{{MAIN},{POD}}}": "0x90",
    },
    # one broker is lost and its retry is due later; a policy waits for approval, and a schedule is held for an hour
    WRITES
    | {
        LOST: "0 1x90",
        f'{TRIGGER},{POD},kind="brokerLost",state="Held"}}': "0 0 1x40 0x50",
        f'{TRIGGER},{POD},kind="schedule",state="Held"}}': "1x60 0x30",
        POLICY + '"ApprovalNeeded"}': "1x90",
    },
    # two brokers are lost and are replaced; another cluster's trigger is held
    WRITES
    | {
        LOST: "0 2x90",
        f'{TRIGGER},{POD},kind="brokerLost",state="Active"}}': "0 1x90",
        f'{TRIGGER},{POD},kind="brokerLost",state="Held"}}': "0x90",
        f'{TRIGGER.replace("main", "other")},{POD},kind="brokerLost",state="Held"}}': "1x90",
    },
    # the Lease is deleted, and made again
    WRITES | {f"kafka_reassign_lease_transitions{{{LEASE},{POD}}}": "9x30 0x60"},
]
QUIET_MINUTES = range(0, 90, 5)


def firing(labels: dict[str, str], alert: str) -> str:
    rule = next(rule for rule in alerts() if rule["alert"] == alert)
    named = {"alertname": alert, "alertstate": "firing"} | rule["labels"] | labels
    return "{" + ",".join(f'{name}="{value}"' for name, value in named.items()) + "}"


def query(expr: str, minute: int, samples: list[str]) -> dict[str, Any]:
    found = [{"labels": labels, "value": 1} for labels in samples]
    return {"expr": expr, "eval_time": f"{minute}m", "exp_samples": found}


def check(directory: Path, series: dict[str, str], tests: list[dict[str, Any]]) -> None:
    """Have promtool evaluate the rules over these series, a sample each minute."""
    given = [{"series": name, "values": values} for name, values in series.items()]
    group = {"interval": "1m", "input_series": given, "promql_expr_test": tests}
    file = directory / "test.json"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [group]}))
    promtool("test", "rules", str(file))


def test_the_rules_pass_promtools_check() -> None:
    assert f"SUCCESS: {len(alerts())} rules found" in promtool("check", "rules", "--lint-fatal", str(ALERTS))


@pytest.mark.parametrize("case", FIRING, ids=[f"{case.alert}-{case.at}" for case in FIRING])
def test_an_alert_fires_after_its_time_and_not_before(tmp_path: Path, case: Case) -> None:
    name = f"KafkaReassign{case.alert}"
    mine = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    fires = query(mine, case.at, [f"ALERTS{firing(case.labels, name)}"])
    check(tmp_path, case.series, [query(mine, case.at - 1, []), fires])


@pytest.mark.parametrize("series", QUIET)
def test_no_alert_fires_for_what_passes_by_itself(tmp_path: Path, series: dict[str, str]) -> None:
    check(tmp_path, series, [query('ALERTS{alertstate="firing"}', minute, []) for minute in QUIET_MINUTES])


def test_no_alert_fires_for_a_trigger_that_a_user_suspended(tmp_path: Path) -> None:
    held, suspended = (f'{TRIGGER},{POD},kind="schedule",state="{state}"}}' for state in ("Held", "Suspended"))
    series = {f"kafka_reassign_lease_held{{{LEASE},{POD}}}": "1x3000", held: "0x3000", suspended: "1x3000"}
    check(tmp_path, series, [query('ALERTS{alertstate="firing"}', minute, []) for minute in range(0, 3000, 240)])


def test_a_stalled_policy_has_an_alert_of_its_own(tmp_path: Path) -> None:
    both = 'ALERTS{alertname=~"KafkaReassign(Policy)?Stalled",alertstate="firing"}'
    mine = f"ALERTS{firing(MAIN_LABELS, 'KafkaReassignPolicyStalled')}"
    check(tmp_path, {POLICY + '"Stalled"}': "1x20"}, [query(both, 15, [mine])])


def test_every_alert_has_a_test() -> None:
    assert {f"KafkaReassign{case.alert}" for case in FIRING} == {rule["alert"] for rule in alerts()}


def test_series_of_the_tests_are_those_of_the_operator() -> None:
    known = documented()
    for series in (*(case.series for case in FIRING), *QUIET):
        for text in series:
            name, _, labels = text.partition("{")
            assert known[name][1] == set(re.findall(r"(\w+)=", labels)) - {"pod"}, text


def test_every_metric_of_rules_and_dashboard_is_one_of_the_operator() -> None:
    exposed = set(re.findall(r"^# TYPE (\w+) ", Metrics().text().decode(), re.MULTILINE))
    named = [metrics(expr) for expr in (*(rule["expr"] for rule in alerts()), *queries())]
    assert all(named)
    assert set().union(*named) <= exposed


def test_prometheus_parses_the_dashboards_queries(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(queries())]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", str(file))


def test_each_alert_says_what_it_means_and_has_a_section_of_the_runbooks() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)
    assert sections == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/operations/runbooks.md#{rule['alert'].lower()}"
