"""What docs/fleets/manifests.md and docs/concepts/decommissions.md say of Argo CD, against the real one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from localplatform import argocd as platform
from localplatform.argocd import Object, confirm
from localplatform.console import PlatformError
from reassign.fleet.emit import SYNC_WAVE
from tests.argocd.application import act, approve_is_offered, operation, seen
from tests.argocd.conftest import Site
from tests.benchmarks.apart import API, CLUSTER, NAMESPACE

SLOW = {"throttle": {"interBroker": "2Mi"}}
SIZE = 4 * 2**20
"""More than a first fetch brings, which no throttle holds back."""


@pytest.mark.parametrize("server_side", [True, False], ids=["server-side", "client-side"])
def test_a_commit_is_carried_out_wave_by_wave_without_a_flap(site: Site, server_side: bool) -> None:
    site.topic(3, SIZE)
    site.commit(site.wave(1, 0, 1, **SLOW), site.wave(2, 2))
    site.application(server_side)
    seen: list[str] = []

    def done() -> bool:
        synced, health = site.state()
        if health and (not seen or seen[-1] != health):
            seen.append(health)
        if site.found(2):
            assert site.succeeded(1)
        return site.succeeded(2) and (synced, health) == ("Synced", "Healthy")

    site.eventually("both waves have succeeded", done)
    assert "Degraded" not in seen
    assert seen.count("Healthy") <= 2  # an Application without resources is Healthy
    site.ends_at(*[[0, 2]] * 3)


def test_a_correction_is_applied_after_a_wave_that_stalls(site: Site) -> None:
    site.topic()
    site.commit(site.wave(1, 0, to=(0, 99)), site.wave(2, 1))
    site.application()
    site.eventually("it is Degraded", lambda: site.state()[1] == "Degraded")
    why = (
        "UnknownBroker: 0 of 1 partitions are at their target; "
        f"{site.name}-0: broker 99 is not registered in the cluster; choose from 0, 1, 2, 3"
    )
    site.eventually("it says why", lambda: site.argocd.health_of(site.name, f"{site.name}-1") == ("Degraded", why))
    site.commit(site.wave(1, 0))
    site.eventually("it is corrected", lambda: site.succeeded(2) and site.state() == ("Synced", "Healthy"))


def test_an_entry_removed_in_flight_is_cancelled_alone(site: Site) -> None:
    site.topic(2, SIZE)
    site.commit(site.wave(1, 0, 1, throttle={"interBroker": "16Ki"}))
    site.application()
    site.eventually("both move", lambda: len(site.bench.admin.list_partition_reassignments()) == 2)
    site.commit(site.wave(1, 1, throttle={"interBroker": "100Mi"}))
    site.eventually("the other one has moved", lambda: site.succeeded(1) and site.state() == ("Synced", "Healthy"))
    site.ends_at([0, 1], [0, 2])


def test_the_last_manifest_is_pruned_and_cancelled_once_confirmed(site: Site) -> None:
    site.topic(1, SIZE)
    site.commit(site.wave(1, 0, throttle={"interBroker": "4Ki"}))
    made = platform.application_set(site.argocd.repository)
    made["spec"]["generators"][0]["git"]["directories"] = [{"path": site.folder}]
    template = made["spec"]["template"]["spec"]
    template["destination"]["name"], template["syncPolicy"] = platform.CLUSTER, site.policy()
    site.argocd.server.apply(made)
    site.eventually("its Application is made", lambda: found_by(site))
    site.eventually("it moves", site.in_flight)
    site.commit(remove=(f"{site.name}-1",))
    site.eventually("Argo CD asks", lambda: asks(site))
    assert site.in_flight()
    confirm(site.argocd, site.name)
    site.eventually("it is cancelled and gone", lambda: not site.in_flight() and site.found(1) is None)
    site.ends_at([0, 1])
    annotations = site.argocd.application(site.name)["metadata"].get("annotations", {})
    assert "argocd.argoproj.io/deletion-approved" in annotations


def test_a_revert_waits_for_the_running_sync_and_terminate_op_ends_that(site: Site) -> None:
    site.topic(2, SIZE)
    site.commit(site.wave(1, 0, throttle={"interBroker": "4Ki"}), site.wave(2, 1))
    site.application()
    site.eventually("it moves", site.in_flight)
    revert = site.commit(remove=(f"{site.name}-1", f"{site.name}-2"))

    site.eventually("Argo CD has seen the revert", lambda: seen(site, revert))
    state = operation(site)
    assert (state["phase"], state["syncResult"]["revision"] == revert) == ("Running", False)
    site.argocd.terminate(site.name)
    site.eventually("Argo CD asks", lambda: asks(site))
    confirm(site.argocd, site.name)
    site.eventually("it is cancelled and gone", lambda: not site.in_flight() and site.found(1) is None)
    site.ends_at([0, 1], [0, 1])


def test_a_thousand_entries_are_synced_without_a_difference(site: Site) -> None:
    site.topic(1000)
    site.commit(site.wave(1, *range(1000)))
    site.application()
    site.eventually("all have moved", lambda: site.succeeded(1) and site.state() == ("Synced", "Healthy"))
    site.ends_at(*[[0, 2]] * 1000)


def test_a_sync_by_hand_removes_what_git_removed_after_server_side_apply(site: Site) -> None:
    site.topic(2)
    site.commit(site.wave(1, 0, 1, to=(0, 1)))
    site.application(server_side=False)
    site.eventually("it is done", lambda: site.succeeded(1) and site.state() == ("Synced", "Healthy"))
    site.application(server_side=True)
    site.eventually("Argo CD has compared with that option", site.compared_since(datetime.now(UTC)))
    after = site.commit(site.wave(1, 0, to=(0, 1)))

    site.eventually("Argo CD has seen the commit", lambda: seen(site, after))
    assert site.state() == ("Synced", "Healthy")
    assert partitions(site) == [0, 1]
    site.argocd.ask("POST", f"/api/v1/applications/{site.name}/sync", {"revision": "main"})
    site.eventually("it is gone", lambda: partitions(site) == [0])


def test_a_plan_waits_for_approval_and_a_commit_approves_it(site: Site) -> None:
    site.topic(4)
    plan = goal(site, drainBrokers=[0])
    site.commit(plan)
    site.application()
    site.eventually("it waits for approval", lambda: site.state()[1] == "Suspended")
    digest = planned(site)["status"]["digest"]
    assert f"copy status.digest, {digest}," in site.argocd.health_of(site.name, site.name)[1]
    plan["spec"]["approvedDigest"] = digest
    site.commit(plan)
    site.eventually("it is carried out", lambda: site.state() == ("Synced", "Healthy"))
    site.eventually("broker 0 is empty", lambda: not any(0 in replicas for replicas in site.replicas()))


def test_a_sync_with_waves_after_a_plan_sees_no_approval_until_it_ends(site: Site) -> None:
    site.topic(2)
    plan = goal(site, drainBrokers=[0])
    site.commit(plan, site.wave(1, 0, to=(1, 0)))
    site.application()
    site.eventually("it is planned", lambda: "digest" in (planned(site).get("status") or {}))
    plan["spec"]["approvedDigest"] = planned(site)["status"]["digest"]
    approval = site.commit(plan)
    site.eventually("Argo CD has seen the approval", lambda: seen(site, approval))
    assert "approvedDigest" not in planned(site)["spec"]
    site.argocd.terminate(site.name)
    site.eventually("it is approved", lambda: "approvedDigest" in planned(site)["spec"])


def test_users_of_argo_cd_suspend_resume_and_approve(site: Site) -> None:
    site.topic(4)
    site.commit(goal(site, drainBrokers=[0]))
    site.application()
    site.eventually("it waits for approval", lambda: "digest" in (planned(site).get("status") or {}))
    site.eventually("Argo CD has it", lambda: site.argocd.health_of(site.name, site.name)[0] == "Suspended")
    act(site, "suspend", "ReassignmentPlan", site.name)
    assert planned(site)["spec"]["suspend"] is True
    act(site, "resume", "ReassignmentPlan", site.name)
    assert planned(site)["spec"]["suspend"] is False
    act(site, "approve", "ReassignmentPlan", site.name)
    site.eventually("it is carried out", lambda: site.argocd.health_of(site.name, site.name)[0] == "Healthy")
    site.eventually("broker 0 is empty", lambda: not any(0 in replicas for replicas in site.replicas()))


def test_a_wave_after_a_decommission_is_applied_when_that_is_empty(site: Site) -> None:
    site.topic(2, SIZE, on=(3, 0))
    wish = decommission(site, site.name, approval="NotRequired", template=SLOW)
    wish["metadata"]["annotations"] = {SYNC_WAVE: "0"}
    node_pool = {"name": f"{site.name}-pool", "namespace": NAMESPACE, "annotations": {SYNC_WAVE: "1"}}
    site.commit(wish, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": node_pool})
    site.application()
    seen: list[str] = []

    def scaled_in() -> bool:
        if found := site.bench.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{node_pool['name']}"):
            assert site.bench.condition(site.name, "Empty", "brokerdecommission")
        if (health := site.argocd.health_of(site.name, site.name)[0]) not in seen[-1:]:
            seen.append(health)
        return bool(found) and site.state() == ("Synced", "Healthy")

    site.eventually("it is at work", lambda: site.cordoned(3))
    site.eventually("the next wave is applied", scaled_in)
    assert seen == ["Progressing", "Healthy"]
    assert not any(3 in replicas for replicas in site.replicas())
    site.commit(remove=(site.name, str(node_pool["name"])))
    leaves_nothing(site)


def test_a_decommission_waits_for_approval_and_a_commit_approves_it(site: Site) -> None:
    site.topic(on=(3, 0))
    wish = decommission(site, site.name)
    site.commit(wish)
    site.application()
    site.eventually("it waits for approval", lambda: site.state() == ("Synced", "Suspended"))
    site.eventually("the sync has ended", lambda: operation(site).get("phase") == "Succeeded")
    digest = decommissioned(site)["status"]["digest"]
    assert f"copy status.digest, {digest}," in site.argocd.health_of(site.name, site.name)[1]
    assert approve_is_offered(site, "BrokerDecommission", site.name)
    plan = f"{site.name}-1"
    site.eventually("its plan is below it", lambda: site.argocd.health_of(site.name, plan)[0] == "Suspended")
    assert not approve_is_offered(site, "ReassignmentPlan", plan)
    with pytest.raises(PlatformError, match=f"approve the BrokerDecommission {site.name}"):
        act(site, "approve", "ReassignmentPlan", plan)
    assert not site.cordoned(3)
    assert site.replicas() == [[3, 0]] * 2
    wish["spec"]["approvedDigest"] = digest
    site.commit(wish)
    site.eventually("it is empty", lambda: site.state() == ("Synced", "Healthy"))
    assert not any(3 in replicas for replicas in site.replicas())
    site.commit(remove=(site.name,))
    leaves_nothing(site)


def test_a_decommission_that_stalls_is_degraded_until_git_removes_it(site: Site) -> None:
    site.topic(on=(3, 0))
    wrong = f"{site.name}-wrong"
    site.commit(decommission(site, wrong, brokers=[99]))
    site.application()
    unknown = "UnknownBroker: broker 99 is not registered, and no replica names it"
    why = f"{unknown}: delete this one, and make another with the right brokers"
    site.eventually("it says why", lambda: site.argocd.health_of(site.name, wrong) == ("Degraded", why))
    site.eventually("so does the Application", lambda: site.state() == ("Synced", "Degraded"))
    site.commit(decommission(site, site.name), remove=(wrong,))
    site.eventually("another one waits in its place", lambda: site.state() == ("Synced", "Suspended"))
    assert decommissioned(site, wrong) == {}
    act(site, "approve", "BrokerDecommission", site.name)
    site.eventually("it is empty", lambda: site.state() == ("Synced", "Healthy"))
    assert not any(3 in replicas for replicas in site.replicas())
    site.commit(remove=(site.name,))
    leaves_nothing(site)


def asks(site: Site) -> bool:
    """Whether Argo CD waits for confirmation; an earlier one does not count for it."""
    return str(operation(site).get("message")).startswith("Waiting for pruning confirmation")


def found_by(site: Site) -> bool:
    """Whether the ApplicationSet has made the Application; told to look at Git, which it does every 3 minutes."""
    annotation = "argocd.argoproj.io/application-set-refresh=true"
    annotate = ["annotate", "--overwrite", "applicationset", "--all", annotation]
    site.argocd.server.kubectl("-n", platform.NAMESPACE, *annotate)
    return bool(site.argocd.application(site.name))


def partitions(site: Site) -> list[int]:
    """The partitions of the first wave, as the API server has it."""
    return [entry["partition"] for entry in (site.found(1) or {})["spec"]["partitions"]]


def goal(site: Site, **goal: Any) -> dict[str, Any]:
    """A ReassignmentPlan of the topic."""
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "ReassignmentPlan",
        "metadata": {"name": site.name, "namespace": NAMESPACE},
        "spec": {"clusterRef": {"name": CLUSTER}, "topics": {"include": [site.name]}, "goal": goal},
    }


def planned(site: Site) -> dict[str, Any]:
    return site.bench.api.get(f"{API}/reassignmentplans/{site.name}") or {}


def decommission(site: Site, name: str, **spec: Any) -> Object:
    """A BrokerDecommission of the last broker, if no other is named."""
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "BrokerDecommission",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterRef": {"name": CLUSTER}, "brokers": [3], **spec},
    }


def decommissioned(site: Site, name: str = "") -> dict[str, Any]:
    return site.bench.api.get(f"{API}/brokerdecommissions/{name or site.name}") or {}


def leaves_nothing(site: Site) -> None:
    """Once Git has it no more: neither the decommission nor its plan, no cordon, nothing in flight."""
    site.eventually("it is gone", lambda: not decommissioned(site))
    assert site.bench.api.get(f"{API}/reassignmentplans/{site.name}-1") is None
    site.eventually("no cordon is left", lambda: not site.cordoned(3))
    assert not site.bench.admin.list_partition_reassignments()
