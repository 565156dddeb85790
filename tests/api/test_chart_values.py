"""Every value of the chart: what it changes in the manifests, and that no value is documented without a test."""

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from localplatform.chart_readme import CHART, readme, values
from localplatform.controlplane import ApiServer
from tests.api.chart_values import (
    ALERTS,
    DASHBOARD,
    EVERYTHING,
    NOT_RENDERED,
    PAGE,
    PEER,
    POLICY,
    ROWS,
    TAKEN,
    Documents,
    alerts,
    page,
)
from tests.api.helm import NAME, Helm, flags, of_kind, rights
from tests.api.kubectl import RefusedError
from tests.e2e.chart_modes import MODES


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    return Helm(tmp_path)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Documents]:
    """What is rendered with values, as JSON, once for all tests."""
    helm = Helm(tmp_path_factory.mktemp("helm"))
    return cache(lambda values: helm.template(**json.loads(values)))


@pytest.mark.parametrize(("value", "setting", "look", "expected", "others"), ROWS, ids=[row[0] for row in ROWS])
def test_each_value_changes_what_it_says(
    helm: Helm,
    before: Callable[[str], Documents],
    value: str,
    setting: Any,
    look: Callable[[Documents], Any],
    expected: Any,
    others: dict[str, Any],
) -> None:
    assert look(before(json.dumps(others))) != expected
    assert look(helm.template(**others | {value: setting})) == expected


TOGETHER = {row[0]: row[1] for row in reversed(ROWS)}
APART = {
    "rbac.create",
    "crds.enabled",
    "protectRecords",
    "service.enabled",
    "serviceAccount.create",
    "snapshots.volume",
}
"""What leaves out objects that other values are about."""
UNKNOWN = ("PodMonitor", "PrometheusRule")
"""Their definitions are the Prometheus operator's."""


@pytest.fixture(scope="module")
def namespaces(api: ApiServer) -> ApiServer:
    """An API server with what the release does not make but has to be there."""
    for namespace in ("system", "kafka", "monitoring"):
        api.kubectl("create", "namespace", namespace)
    for account in ("mover", "default", NAME):
        api.kubectl("create", "serviceaccount", account, "--namespace=system")
    api.kubectl("create", "priorityclass", "high", "--value=1")
    return api


MOST = {name: TOGETHER[name] for name in TOGETHER.keys() - APART}
EACH_MODE = {mode: MOST | values for mode, values in MODES.items()} | {"apart": TOGETHER}


@pytest.mark.parametrize("values", EACH_MODE.values(), ids=EACH_MODE)
def test_the_api_server_takes_each_mode_with_all_other_values(
    helm: Helm, namespaces: ApiServer, values: dict[str, Any]
) -> None:
    documents = [found for found in helm.template(**values) if found["kind"] not in UNKNOWN]
    text = "\n---\n".join(map(json.dumps, documents))
    told = namespaces.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", input=text)
    assert told.count("(server dry run)") == len(documents)


NUMBERS: dict[str, Any] = {
    "nameOverride": "1e3",
    "fullnameOverride": "123",
    "commonLabels": {"team": "1"},
    "watchNamespaces": ["2026"],
    "serviceAccount.name": "12",
    "priorityClassName": "1",
    "tmpSizeLimit": "100000000",
    "service.enabled": False,  # no name of a Service is a number
    "snapshots.clusters": [{"namespace": "2026", "name": "1", "secrets": ["5"]}],
    "snapshots.claim.size": "10",
    "snapshots.claim.storageClassName": "9",
}


def not_strings(found: Any) -> list[Any]:
    """What is no string where Kubernetes wants one: names, namespaces, sizes, and labels."""
    if isinstance(found, list):
        return [wrong for item in found for wrong in not_strings(item)]
    if not isinstance(found, dict):
        return []
    named = [
        found[key] for key in found if key.lower().endswith(("name", "namespace", "storage", "sizelimit", "value"))
    ]
    lists = [found.get(key, []) for key in ("resourceNames", "matchNames", "values")]
    labels = [list(found.get(key, {}).values()) for key in ("labels", "matchLabels")]
    here = [wrong for wrong in [*named, *chain.from_iterable(lists + labels)] if not isinstance(wrong, str)]
    return here + not_strings(list(found.values()))


def test_a_name_that_looks_like_a_number_is_a_name(helm: Helm) -> None:
    values = EVERYTHING | {"rbac.aggregateRoles": True} | NUMBERS
    text = helm("template", "7", str(CHART), "--namespace=2026", *flags(values))
    documents = [found for found in yaml.safe_load_all(text) if found and found["kind"] != "CustomResourceDefinition"]
    assert len(documents) > 15
    assert {document["metadata"].get("namespace") for document in documents} == {"2026", None}
    assert not_strings(documents) == []


def test_every_documented_value_is_tested_and_every_default_is_documented() -> None:
    assert {value.path for value in values()} == {row[0] for row in ROWS} | NOT_RENDERED
    assert (CHART / "README.md").read_text() == readme()
    assert PAGE.read_text() == page()


def test_helms_test_may_reach_the_port_as_the_description_says(helm: Helm) -> None:
    (meaning,) = (value.meaning for value in values() if value.path == "networkPolicy.metricsFrom")
    (peer,) = re.findall(r"`helm test` has to be among them, as by `(.*?)`", meaning)
    documents = helm.template(**POLICY | {"networkPolicy.metricsFrom": [PEER, yaml.safe_load(peer)]})
    (policy,), (pod,) = of_kind(documents, "NetworkPolicy"), of_kind(documents, "Pod")
    assert {"podSelector": {}} in policy["spec"]["ingress"][0]["from"]
    assert policy["metadata"]["namespace"] == pod["metadata"]["namespace"]


def test_alerts_are_the_files_and_a_standby_is_missed_only_where_one_is(helm: Helm) -> None:
    (group,) = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    named = {rule["alert"]: rule for rule in group["rules"]}
    assert alerts(helm.template(**ALERTS, replicas=2)) == named
    assert named.keys() - alerts(helm.template(**ALERTS)).keys() == {"KafkaReassignStandbyMissing"}


def test_the_dashboard_is_the_file(helm: Helm) -> None:
    (config_map,) = of_kind(helm.template(**DASHBOARD), "ConfigMap")
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["data"]["kafka-reassign.json"] == (CHART / "files" / "dashboard.json").read_text().rstrip("\n")


def test_a_value_that_there_is_not_is_refused(helm: Helm) -> None:
    with pytest.raises(RefusedError, match="additional properties 'replica' not allowed"):
        helm.template(replica=2)


def test_a_value_that_is_null_is_left_out_or_refused_by_its_name(helm: Helm) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    needed = {
        f"{path}{name}"
        for path, found in [("", schema), *((f"{name}.", found) for name, found in schema["properties"].items())]
        for name in found.get("required", [])
    } | {f"snapshots.claim.{name}" for name in ("size", "accessModes")}
    rest = {value.path for value in values() if value.default is not None} - needed
    assert len(rest) > 50
    on = {f"{name}.enabled": True for name in ("networkPolicy", "podMonitor", "prometheusRule", "dashboard")}
    assert helm.template(**dict.fromkeys(rest) | on | TAKEN)
    for name in schema["required"]:
        with pytest.raises(RefusedError, match=f"missing property '{name}'"):
            helm.template(**{name: None})


def test_without_cluster_rights_nothing_is_cluster_wide(helm: Helm) -> None:
    documents = helm.template(watchNamespaces=["kafka"], crds={"enabled": False}, protectRecords=False)
    assert all(document["metadata"].get("namespace") in ("system", "kafka") for document in documents)


def test_people_of_a_release_have_roles_of_its_name(helm: Helm) -> None:
    roles = of_kind(helm.template(rbac={"aggregateRoles": True}), "ClusterRole")
    named = {role["metadata"]["name"]: {verb for _, _, verb in rights(role)} for role in roles}
    assert named[f"{NAME}-view"] == {"get", "list", "watch"}


def test_the_chart_is_a_dependency_with_a_condition(helm: Helm, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    (parent / "charts").mkdir(parents=True)
    (parent / "charts" / NAME).symlink_to(CHART)
    dependency = f"{{name: {NAME}, version: '>=0.0.0', condition: {NAME}.enabled}}"
    (parent / "Chart.yaml").write_text(f"apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies: [{dependency}]\n")
    for enabled in (True, False):
        text = helm("template", "r", str(parent), f"--set={NAME}.enabled={str(enabled).lower()}")
        assert ("kind: Deployment" in text) is enabled
