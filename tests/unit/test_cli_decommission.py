"""BrokerDecommissions on the command line: how they are made, shown, approved, watched and cancelled."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from reassign.api.broker_decommission import BrokerDecommission
from reassign.cli import approving, cancelling, listing, watching
from reassign.cli import output as out
from reassign.cli.decommissioning import default_name
from reassign.cli.objects import Item
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import ConflictError, Reason, ReassignError
from tests.unit.automation_sim import Decommissions, orders
from tests.unit.cli import ROOT, Live, error_of, kafka_cluster, run, sim
from tests.unit.verbs import (
    DIGEST,
    NOW,
    OTHER,
    Object,
    condition,
    decommission,
    empty,
    made,
    made_by,
    moving,
    plan,
    wave_of,
)

DOCS = (ROOT / "docs" / "reference" / "command-line.md").read_text()
MAKE = ("decommission", "--cluster", "main", "-n", "kafka")


class Writable(Live):
    """An API server that keeps what is made and what is written."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(sim(), *objects)
        self.made: list[tuple[Object, bool]] = []
        self.specs: list[tuple[str, Object]] = []
        self.deleted: list[str] = []

    async def create(self, obj: Object, manager: str, *, dry_run: bool) -> Object:
        if await self.get(obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]):
            raise ConflictError("already exists")
        self.made.append((obj, dry_run))
        return obj

    async def write_spec(self, obj: Object, spec: Object, manager: str, *, dry_run: bool) -> Object:
        self.specs.append((obj["metadata"]["name"], spec))
        return obj

    async def delete(self, obj: Object, *, dry_run: bool) -> Object:
        self.deleted.append(obj["metadata"]["name"])
        return obj


def serve(monkeypatch: pytest.MonkeyPatch, *objects: Object) -> Writable:
    server = Writable(*objects)
    server.serve(monkeypatch)
    return server


def lines(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


# --- decommission ---


def test_the_page_shows_what_the_commands_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    it = decommission()
    serve(monkeypatch, kafka_cluster())
    out.write_tables([listing.decommissions([Item(it), Item(empty())], NOW)])
    end = watching.end_of(Item(empty()))
    shown = lines(*approving.shown(Item(it), Item(made_by(it))))
    for text in (run(*MAKE, 5).out, capsys.readouterr().out, lines(end.message if end else ""), shown):
        assert text in DOCS


def test_a_decommission_is_made_and_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch, kafka_cluster())
    ran = run(*MAKE, 6, 5)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "kbd/decommission-5-6 is made: brokers 5 and 6 of the KafkaCluster main",
        "its plan is worked out now; nothing is cordoned or moved before you approve it: "
        "kubectl kafka-reassign approve kbd/decommission-5-6 -n kafka",
    ]
    ((obj, dry_run),) = server.made
    assert not dry_run
    assert obj["metadata"] == {"name": "decommission-5-6", "namespace": "kafka"}
    assert obj["spec"] == {"clusterRef": {"name": "main"}, "brokers": [5, 6]}


def test_a_broker_that_the_cluster_does_not_list_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [{"id": broker, "fenced": False} for broker in range(6)]
    server = serve(monkeypatch, {**kafka_cluster(), "status": {"brokers": listed}})
    assert run(*MAKE, 5).err == ""
    ran = run(*MAKE, 5, 9, "--name", "two")
    assert (ran.code, len(server.made)) == (0, 2), "it may be gone, and have replicas left"
    assert ran.err == (
        "note: broker 9 is not among the brokers of main: check the ids, unless they are gone and have replicas left\n"
    )


def test_a_dry_run_of_a_decommission_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch, kafka_cluster())
    ran = run(*MAKE, "5,6", "--dry-run")
    assert ran == (0, "kbd/decommission-5-6 is made: brokers 5 and 6 of the KafkaCluster main (dry run)\n", "")
    assert [dry_run for _, dry_run in server.made] == [True]


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_a_manifest_of_a_decommission_needs_no_api_server(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    ran = run(*MAKE, 5, "--unregister", "--name", "retire", "-o", output)
    assert (ran.code, ran.err) == (0, "")
    obj = yaml.safe_load(ran.out) if output == "yaml" else json.loads(ran.out)
    read = BrokerDecommission.parse(obj)
    assert (read.metadata.name, read.metadata.namespace, read.spec.brokers) == ("retire", "kafka", (5,))
    assert obj["spec"]["unregister"] == "WhenDown"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument 'BROKER'"),
        (("b5",), "'b5' is not a broker id, such as 5"),
        ((5, 6, 5), "5,6,5 names a broker more than once"),
        ((*range(51),), "it has more than 50 items"),
        ((5, "--name", "a" * 51), "has more than 50 characters, and plans are named after it"),
        ((5, "--name", "A"), "'A' is not a name"),
    ],
)
def test_a_decommission_that_cannot_be_is_refused_unasked(
    arguments: tuple[object, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(monkeypatch, kafka_cluster())
    ran = run(*MAKE, *arguments)
    assert (ran.code, ran.out, server.made) == (2, "", [])
    assert said in ran.err.splitlines()[0]


def test_a_decommission_of_that_name_or_no_cluster_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, kafka_cluster(), decommission())
    assert "there is kbd/decommission-5 already" in error_of(run(*MAKE, 5), 1)
    serve(monkeypatch, kafka_cluster())
    said = error_of(run("decommission", 5, "--cluster", "man", "-n", "kafka"), 2)
    assert "there is no KafkaCluster man in namespace kafka; there are: main (ClusterNotFound)" in said


def test_who_may_not_read_clusters_makes_a_decommission(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tenant(Writable):
        async def get(self, kind: str, namespace: str, name: str) -> Object | None:
            if kind == "KafkaCluster":
                raise ReassignError(Reason.NOT_AUTHORIZED, "no")
            return await super().get(kind, namespace, name)

    server = Tenant()
    server.serve(monkeypatch)
    assert run(*MAKE, 5).code == 0
    assert len(server.made) == 1


def test_the_default_name_has_the_ids_that_fit() -> None:
    assert default_name([5]) == "decommission-5"
    assert default_name([5, 6]) == "decommission-5-6"
    assert default_name(range(1000, 1050)) == "decommission" + "".join(f"-{id}" for id in range(1000, 1007))


# --- list and watch ---


def test_a_list_has_a_table_of_decommissions_below(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, kafka_cluster(), moving(), decommission(), empty())
    moves, brokers = run("list", "-n", "kafka").out.split("\n\n")
    assert "kbd" not in moves
    assert brokers.splitlines() == [
        "NAME            CLUSTER  READY  REASON            BROKERS  LEFT  PROGRESS                      AGE",
        "decommission-5  main     False  AwaitingApproval  5          15  15 replicas left on broker 5  0s",
        "decommission-6  main     True   Empty             6           0  0 replicas left on broker 6   0s",
    ]
    wide = run("list", "-n", "kafka", "-o", "wide").out
    assert "CORDONED  MESSAGE" in wide
    assert "True      broker 6 is empty, and can be stopped" in wide
    kinds = [item["kind"] for item in json.loads(run("list", "-n", "kafka", "-o", "json").out)["items"]]
    assert sorted(kinds) == ["BrokerDecommission", "BrokerDecommission", "PartitionReassignment"]


def test_a_list_of_decommissions_alone_has_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = decommission("new")
    unseen["status"] = {"observedGeneration": -1}
    serve(monkeypatch, unseen)
    header, row = run("list", "-n", "kafka", "-o", "wide").out.splitlines()
    assert header.split()[:4] == ["NAME", "CLUSTER", "READY", "REASON"]
    assert row.split()[:5] == ["new", "main", "Unknown", "Pending", "5"]
    assert row.endswith("  the operator has not seen it yet")


@pytest.mark.parametrize("reason", [Reason.NOT_AUTHORIZED, Reason.REQUEST_FAILED])
def test_decommissions_that_may_not_be_listed_are_left_out(reason: Reason, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tenant(Writable):
        async def list(self, kind: str, namespace: str | None = None) -> list[Object]:
            if kind == "BrokerDecommission":
                raise ReassignError(reason, "no")
            return await super().list(kind, namespace)

    Tenant(kafka_cluster(), moving()).serve(monkeypatch)
    ran = run("list", "-n", "kafka")
    assert (ran.code, ran.err) == (0, "note: BrokerDecommissions are left out: no\n")
    assert "drain-5-wave" in ran.out
    assert run("cancel", "drain-5-wave", "-n", "kafka", "--yes").code == 0


def test_a_kind_that_may_not_be_read_does_not_hide_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tenant(Writable):
        async def get(self, kind: str, namespace: str, name: str) -> Object | None:
            if kind == "BrokerDecommission":
                raise ReassignError(Reason.NOT_AUTHORIZED, "no")
            return await super().get(kind, namespace, name)

    Tenant(moving()).serve(monkeypatch)
    assert run("suspend", "drain-5-wave", "-n", "kafka").code == 0
    assert "no (NotAuthorized)" in error_of(run("suspend", "other", "-n", "kafka"), 3)


def ending(*conditions: Object) -> Item:
    return Item(decommission(conditions=[*conditions]))


@pytest.mark.parametrize(
    ("item", "end"),
    [
        (Item(decommission()), None),
        (Item(empty()), watching.End(True, "Ready, Empty: broker 6 is empty, and can be stopped")),
        (
            ending(condition("Ready", "True", "Gone", "it is gone"), condition("Succeeded")),
            watching.End(True, "Ready, Gone: it is gone"),
        ),
        (
            ending(condition("Ready", "False", "NotEnoughBrokers", "add some"), condition("Stalled")),
            watching.End(False, "Stalled, NotEnoughBrokers: add some"),
        ),
        (ending(condition("Ready", "False", "WaveInFlight"), condition("Reconciling")), None),
        (ending(condition("Ready", "False", "Suspended")), None),
    ],
)
def test_a_decommission_ends_ready_or_stalled(item: Item, end: watching.End | None) -> None:
    assert watching.end_of(item) == end


def test_an_end_is_not_that_of_an_earlier_spec() -> None:
    obj = empty()
    obj["metadata"]["generation"] = 2
    assert watching.end_of(Item(obj)) is None


def test_watch_of_a_decommission_shows_the_wave_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"name": "decommission-5-1", "digest": DIGEST, "bytes": 1, "lowerBoundBytes": 1, "replicas": 1}
    stalled = [condition("Ready", "False", "NotEnoughBrokers", "add some"), condition("Stalled")]
    it = decommission(plans=[made | {"outcome": "Running"}], conditions=stalled)
    running = made_by(it)
    running["status"]["waves"][0]["state"] = "Running"
    serve(monkeypatch, it, running, moving())
    ran = run("watch", "decommission-5", "-n", "kafka")
    assert (ran.code, ran.err) == (1, "")
    line, end = ran.out.splitlines()
    assert line.endswith(
        "15 replicas left on broker 5, drain-5-wave: 4/12 partitions, 40 %, about 9 min left, 52 MiB/s "
        "(NotEnoughBrokers: add some)"
    )
    assert end == "Stalled, NotEnoughBrokers: add some"


def test_a_terminal_shows_each_broker_of_a_decommission(capsys: pytest.CaptureFixture[str]) -> None:
    obj = decommission()
    obj["status"]["brokers"].append({"id": 6, "state": "Down"})
    out.write_tables([watching.picture(watching.View(Item(obj), Item(moving())), {}, 200, 30)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == ["BROKER  STATE    REPLICAS  CORDONED", "5       Serving        15  False", "6       Down"]
    assert any(line.startswith("orders-0 ") for line in lines)


# --- approve ---


def test_an_approval_shows_the_brokers_and_the_plan_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    it = decommission()
    it["spec"]["unregister"] = "WhenDown"
    server = serve(monkeypatch, it, made_by(it), plan())
    digest = it["status"]["digest"]
    ran = run("approve", "decommission-5", "-n", "kafka", stdin="y\n")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "kbd/decommission-5: broker 5, with 15 replicas",
        "  broker 5 is cordoned at once, where Kafka can do that, and unregistered once empty and down",
        "  krp/decommission-5-1: 2 waves, 15 partitions, 15 new replicas, 51 GiB, about 17 min",
        "    drain-5-wave: 12 partitions, 49 GiB",
        "    drain-5-wave-2: 3 partitions, 2.0 GiB",
        f"  {digest}",
        f"kbd/decommission-5 approved, {digest}",
    ]
    assert server.specs == [("decommission-5", {"approvedDigest": digest})]


def test_a_plan_that_the_digest_does_not_name_is_not_shown() -> None:
    it = decommission()
    assert approving.is_meant(Item(made_by(it)), Item(it))
    assert not approving.is_meant(Item(made_by(decommission("other"))), Item(it))
    assert not approving.is_meant(Item(plan()), Item(it))
    assert not approving.is_meant(Item(made_by(it, waves=[])), Item(it))
    it["spec"]["cordon"] = "Never"
    assert [*approving.shown(Item(it), None)] == [
        "kbd/decommission-5: broker 5, with 15 replicas",
        "  decommission-5-1: 2 waves, 15 partitions; copy it",
        f"  {it['status']['digest']}",
    ]


def refusal(obj: Object, digest: str | None = None) -> tuple[Reason, str]:
    with pytest.raises(ReassignError) as caught:
        approving.approval(Item(obj), digest)
    return caught.value.reason, caught.value.message


def test_a_decommission_is_approved_only_while_a_digest_waits() -> None:
    assert refusal(empty()) == (
        Reason.PLANNING,
        "nothing of kbd/decommission-6 waits for approval: broker 6 is empty, and can be stopped",
    )
    edited = decommission()
    edited["metadata"]["generation"] = 2
    assert refusal(edited)[0] is Reason.PLANNING
    assert refusal(decommission(), OTHER)[0] is Reason.APPROVED_DIGEST_MISMATCH


def test_a_decommission_under_way_is_approved_already() -> None:
    made = {"name": "decommission-5-1", "digest": DIGEST, "bytes": 1, "lowerBoundBytes": 1, "replicas": 1}
    it = decommission(digest=None, plans=[made | {"outcome": "Running"}])
    it["spec"]["approvedDigest"] = DIGEST
    assert approving.approval(Item(it), None) == {}
    assert refusal(it, OTHER)[0] is Reason.APPROVED_DIGEST_MISMATCH
    free = decommission()
    free["spec"]["approval"] = "NotRequired"
    assert approving.approval(Item(free), None) == {}


def test_a_further_plan_that_was_approved_is_approved_already() -> None:
    simulated = Decommissions(orders((5, 1), (2, 5)))
    it = simulated.apply(cordon="Never")

    def of_loop() -> Item:
        return Item(made("BrokerDecommission", it.name, it.spec.wire(), it.status.wire(), generation=it.generation))

    for number in (1, 2):
        simulated.until("AwaitingApproval")
        assert approving.approval(of_loop(), None) == {"approvedDigest": it.status.digest}
        it.approve()
        simulated.until("WaveInFlight")
        simulated.tick()
        assert approving.approval(of_loop(), None) == {}
        simulated.until("Empty")
        assert approving.approval(of_loop(), None) == {}
        simulated.replicas[TopicPartition("late", number)] = (5, 1)
    assert simulated.created == ["old-1", "old-2"]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (
            "approve",
            "krp/decommission-5-1 has no approval of its own; approve the BrokerDecommission decommission-5, which has "
            "made it: kubectl kafka-reassign approve kbd/decommission-5 -n kafka",
        ),
        *(
            (
                verb,
                f"krp/decommission-5-1 is a plan that the BrokerDecommission decommission-5 has made; {verb} "
                "kbd/decommission-5",
            )
            for verb in ("suspend", "resume", "cancel")
        ),
    ],
)
def test_a_plan_that_was_made_for_brokers_names_its_owner(
    verb: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = decommission()
    server = serve(monkeypatch, it, made_by(it), wave_of(made_by(it)))
    assert said in error_of(run(verb, "krp/decommission-5-1", "-n", "kafka"), 2)
    if verb != "approve":
        wave = f"is a wave of krp/decommission-5-1 that the BrokerDecommission decommission-5 has made; {verb} kbd/"
        assert wave in error_of(run(verb, "drain-5-wave", "-n", "kafka"), 2)
    assert (server.specs, server.deleted) == ([], [])


@pytest.mark.parametrize("change", [{"controller": False}, {"kind": "Other"}, {"apiVersion": "v1"}])
def test_an_owner_of_another_kind_does_not_count(change: dict[str, Any]) -> None:
    obj = made_by(decommission())
    obj["metadata"]["ownerReferences"][0] |= change
    assert approving.approval(Item(obj), None) == {"approvedDigest": DIGEST}


# --- suspend and cancel ---


def test_a_decommission_is_suspended_and_cancelled_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    it = decommission()
    server = serve(monkeypatch, it, made_by(it), wave_of(made_by(it)))
    assert run("suspend", "kbd/decommission-5", "-n", "kafka").code == 0
    assert server.specs == [("decommission-5", {"suspend": True})]
    ran = run("cancel", "brokerdecommission/decommission-5", "-n", "kafka", "--yes")
    assert ran.out.splitlines() == [
        "kbd/decommission-5, with 1 wave not at an end: of 12 partitions, 3 in flight go back, 4 completed stay; "
        "its cordons are lifted",
        "kbd/decommission-5 is cancelled",
    ]
    assert server.deleted == ["decommission-5"]


def test_a_selection_takes_a_decommission_for_its_plan_and_waves() -> None:
    it = decommission()
    made = made_by(it)
    items = [Item(obj) for obj in (wave_of(made), made, it, empty())]
    assert [str(item) for item in cancelling.selected(items, "orders", None)] == ["kbd/decommission-5"]
    assert [str(item) for item in cancelling.selected(items, None, "main")] == ["kbd/decommission-5"]
    assert cancelling.selected(items[:2], "orders", None) == [Item(made)]


def test_an_empty_decommission_is_cancelled_by_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch, empty())
    assert run("cancel", "--cluster", "main", "-n", "kafka", "--yes").out == "there is nothing to cancel\n"
    assert run("cancel", "decommission-6", "-n", "kafka", "--yes").code == 0
    assert server.deleted == ["decommission-6"]


def test_a_list_row_has_no_control_characters() -> None:
    hostile = Item(decommission(summary="\x1b[2J"))
    table = listing.decommissions([hostile], NOW)
    assert [*table.columns[6].cells] == ["?[2J"]
