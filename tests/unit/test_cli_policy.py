"""ReassignmentPolicies on the command line: how they are shown, explained, approved, suspended, and not cancelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reassign.cli import approving, cancelling, candidates, explaining, listing, watching
from reassign.cli import output as out
from reassign.cli.explaining import explain, lines
from reassign.cli.objects import Item
from reassign.core.automation.arbiter import HoldReason
from reassign.errors import Reason, ReassignError
from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.cli import ROOT, Live, error_of, run, sim
from tests.unit.policy_sim import Policies, SimPolicy
from tests.unit.verbs import (
    DIGEST,
    NOW,
    OTHER,
    Object,
    condition,
    ended,
    made,
    made_by,
    moving,
    plan,
    policy,
    trigger,
    wave_of,
)

DOCS = (ROOT / "docs" / "reference" / "command-line.md").read_text()
WAITS = policy()["status"]["digest"]


class Writable(Live):
    """An API server that keeps what is written."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(sim(), *objects)
        self.specs: list[tuple[str, Object]] = []
        self.deleted: list[str] = []

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


def text(parts: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in parts)


def explained(obj: Object) -> str:
    return text(lines(explain(Item(obj), NOW), NOW))


def block(obj: Object, name: str) -> list[str]:
    """What is said of one trigger, without its first line."""
    found = next(part for part in explained(obj).split("\n\n") if part.startswith(f"{name} ("))
    return [line.strip() for line in found.splitlines()[1:]]


def unseen() -> Object:
    return policy() | {"status": {"observedGeneration": -1}}


def edited() -> Object:
    obj = policy()
    obj["metadata"]["generation"] = 2
    return obj


def idle(**status: Any) -> Object:
    """A policy whose plan was retired, and that has nothing to do."""
    last = {"name": "main-lost-2", "trigger": "lost", "digest": WAITS, "outcome": "Retired"}
    last |= {"bytes": 1, "lowerBoundBytes": 1, "replicas": 1}
    known = {
        "conditions": [condition("Ready", "True", "Idle", "no plan is needed")],
        "summary": "no plan is needed",
        "plan": None,
        "digest": None,
        "triggers": [trigger("lost", "Idle", "no broker that has replicas is down")],
        "plans": [last],
    }
    return policy(**known | status)


# --- of the loop itself ---

LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 600}}
NIGHTLY = {"name": "nightly", "schedule": {"cron": "0 4 * * *"}}


def loop(*triggers: Object, **fields: Any) -> tuple[Policies, SimPolicy]:
    simulated = Policies(orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1)))
    it = simulated.policy(*triggers, **fields)
    simulated.rest(900)
    return simulated, it


def of_loop(it: SimPolicy) -> Object:
    """A policy of the loop, as the API server has it."""
    obj = made("ReassignmentPolicy", it.name, it.spec.wire(), it.status.wire(), generation=it.generation)
    obj["metadata"]["uid"] = it.uid
    return obj


def plans_of_loop(simulated: Policies, it: SimPolicy) -> list[Item]:
    objects = []
    for known in simulated.plans.values():
        seen = simulated.plan_seen(known).plan
        ref = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "ReassignmentPolicy", "controller": True}
        owner = ref | {"name": it.name, "uid": known.owner}
        spec, status = seen.spec.wire(), seen.status.wire()
        objects.append(made("ReassignmentPlan", known.name, spec, status, ownerReferences=[owner]))
    return [*map(Item, objects)]


@pytest.mark.parametrize("triggers", [(LOST,), (ADDED,)], ids=["evacuating", "balancing"])
def test_the_digest_of_a_policy_names_its_plan_that_waits(triggers: tuple[Object, ...]) -> None:
    simulated, it = loop(*triggers)
    simulated.brokers |= {5: FENCED} if triggers == (LOST,) else {6: UP}
    simulated.wait(lambda: it.status.digest)
    obj = Item(of_loop(it))
    (made_plan,) = plans_of_loop(simulated, it)
    assert approving.is_meant(made_plan, obj)
    assert approving.approval(obj, None) == {"approvedDigest": it.status.digest}
    assert explain(obj, simulated.now.time).approve == "kubectl kafka-reassign approve krpol/main -n kafka"
    it.approve()
    simulated.wait(lambda: "Running" in [outcome for _, outcome in it.outcomes])
    assert approving.approval(Item(of_loop(it)), None) == {}, "it is approved already"
    simulated.wait(lambda: "Succeeded" in [outcome for _, outcome in it.outcomes])
    assert refusal(of_loop(it))[0] is Reason.PLANNING


def test_what_the_loop_says_of_a_hold_is_shown_in_two_parts() -> None:
    simulated, it = loop(NIGHTLY, ADDED, LOST, approval="NotRequired")
    simulated.brokers[6] = UP
    simulated.users = ["drain-5"]
    simulated.wait(lambda: it.says("out")[0] == "Held")
    said = text(lines(explain(Item(of_loop(it)), simulated.now.time), simulated.now.time))
    assert "  sees: broker 6 has few replicas, the same ones for 600 s\n" in said
    simulated.wait(lambda: it.says("out")[1] == "PlanInProgress")
    assert block(of_loop(it), "out")[1:] == [
        "held: plans of users are under way: drain-5 (PlanInProgress)",
        "acts: once that is over",
    ]


def test_of_no_moment_of_a_life_a_time_to_come_is_past() -> None:
    simulated, it = loop(LOST, ADDED, NIGHTLY, cooldownSeconds=3600)
    states = set()

    def rest(seconds: int) -> None:
        for _ in range(seconds // 15):
            simulated.rest(15)
            for found in explain(Item(of_loop(it)), simulated.now.time).triggers:
                assert found.status
                states.add((found.name, found.status.state.value))
                assert found.acts_at is None or found.acts_at > simulated.now.time
                assert found.acts or found.status.state.value == "Active"

    simulated.brokers[6] = UP
    rest(1800)
    it.approve()
    rest(3600)
    simulated.brokers[5] = FENCED
    rest(2700)
    it.approve()
    rest(3600)
    simulated.brokers[5] = UP
    rest(6 * 3600)
    assert states >= {(name, state) for name in ("lost", "out") for state in ("Idle", "Waiting", "Active")}
    assert ("nightly", "Held") in states


def test_the_time_of_a_trigger_that_waits_is_that_of_its_plan() -> None:
    simulated, it = loop(LOST)
    simulated.brokers[5] = FENCED
    simulated.wait(lambda: it.says("lost")[0] == "Waiting")
    (found,) = explain(Item(of_loop(it)), simulated.now.time).triggers
    assert found.acts_at
    simulated.wait(lambda: it.says("lost")[0] == "Active")
    assert abs((simulated.now.time - found.acts_at).total_seconds()) <= 60


# --- explain ---


def test_the_page_shows_what_is_written_of_policies(capsys: pytest.CaptureFixture[str]) -> None:
    it = policy()
    out.write_tables([listing.policies([Item(it)], NOW)])
    for shown in (explained(it), capsys.readouterr().out, text(approving.shown(Item(it), Item(made_by(it))))):
        assert shown in DOCS


def test_a_policy_is_explained_by_its_name_and_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, policy(), policy("other"), made_by(policy()))
    ran = run("explain", "main", "-n", "kafka")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("krpol/main of the KafkaCluster main; its status was written ")
    for name in ("krpol/main", "reassignmentpolicy/main", "reassignmentpolicies/main"):
        assert run("explain", name, "-n", "kafka") == ran
    said = error_of(run("explain", "man", "-n", "kafka"), 2)
    assert "there is no ReassignmentPolicy man in namespace kafka; there are: main, other (NothingSelected)" in said
    assert "there is no ReassignmentPolicy main-lost-2" in error_of(run("explain", "main-lost-2", "-n", "kafka"), 2)
    ran = run("explain", "krp/main-lost-2", "-n", "kafka")
    assert (ran.code, ran.out) == (2, "")
    assert "ReassignmentPlan has no triggers: name a ReassignmentPolicy" in ran.err


def test_an_explanation_is_the_same_in_json_and_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, policy())
    said = {word: run("explain", "main", "-n", "kafka", "-o", word).out for word in ("table", "wide", "json", "yaml")}
    assert said["table"] == said["wide"]
    known = json.loads(said["json"])
    assert known == yaml.safe_load(said["yaml"])
    assert (known["name"], known["approve"]) == ("main", "kubectl kafka-reassign approve krpol/main -n kafka")
    assert [(found["name"], found["kind"], found["status"]["state"]) for found in known["triggers"]] == [
        ("lost", "brokerLost", "Active"),
        ("scale-in", "brokersCordoned", "Waiting"),
        ("scale-out", "brokersAdded", "Held"),
        ("saturday", "schedule", "Idle"),
    ]
    assert [found.get("actsAt") for found in known["triggers"]] == [
        None,
        "2026-01-31T12:10:00Z",
        None,
        known["triggers"][3]["actsAt"],
    ]


def test_a_policy_that_was_not_seen_is_explained_by_its_spec() -> None:
    said = explained(unseen())
    assert said.startswith("krpol/main of the KafkaCluster main; ")
    assert "note: the operator has not seen it yet\n" in said
    assert "\nlost (brokerLost): the operator has not seen it yet\n" in said
    assert "approve" not in said


def test_a_status_of_an_earlier_spec_says_so_and_approves_nothing() -> None:
    obj = edited()
    obj["spec"]["triggers"].append({"name": "sunday", "schedule": {"cron": "0 2 * * 0"}})
    said = explained(obj)
    assert "note: the spec was changed, and this is about the one before\n" in said
    assert "\nsunday (schedule): the operator has not seen it yet\n" in said
    assert "approve its plan" not in said


@pytest.mark.parametrize("reason", ["DuplicatePolicy", "ClusterUnreachable", "NotObserved", "InternalError"])
def test_triggers_that_are_not_judged_now_are_those_of_before(reason: str) -> None:
    said = explained(idle(conditions=[condition("Ready", "False", reason, "why")]))
    assert f"\nnot Ready, {reason}: why\nnote: its triggers are not judged now" in said


@pytest.mark.parametrize("reason", sorted(explaining.JUDGED))
def test_triggers_are_judged_while_a_policy_is_held_or_stalled(reason: str) -> None:
    said = explained(idle(conditions=[condition("Ready", "False", reason, "why")]))
    assert f"\nnot Ready, {reason}: why\n" in said
    assert "judged" not in said
    assert ("note: nothing acts while this lasts" in said) is (reason == "Suspended")


def held(name: str, reason: str) -> Object:
    return idle(triggers=[trigger(name, "Held", "it is true; something holds it", reason=reason)])


@pytest.mark.parametrize(
    ("name", "reason", "acts"),
    [
        ("lost", "Suspended", "once the brake of the KafkaCluster is off"),
        ("lost", "TooManyBrokersLost", "once fewer brokers are down: bring some back, or raise maxBrokers"),
        ("lost", "RackLost", "once a broker of that rack is up again"),
        ("scale-in", "ClusterUnsettled", "once no broker has come, gone or been fenced for 600 s"),
        ("scale-in", "PlanInProgress", "once that is over"),
        ("scale-in", "ForeignInFlight", "once these moves have ended"),
        ("scale-out", "Cooldown", "at that time"),
        ("lost", "Backoff", "at that time"),
        ("lost", "GainTooSmall", "at that time"),
        ("scale-out", "GainTooSmall", "once these change"),
        ("lost", "DrainIncomplete", "once that is over; it is tried again without an edit"),
    ],
)
def test_each_hold_says_what_ends_it(name: str, reason: str, acts: str) -> None:
    assert block(held(name, reason), name) == [
        "sees: it is true",
        f"held: something holds it ({reason})",
        f"acts: {acts}",
    ] + (["last: main-lost-2, Retired, 1 B (at least 1 B)"] if name == "lost" else [])


def test_every_reason_of_a_hold_has_an_end_of_its_own() -> None:
    for reason in HoldReason:
        acts = next(line for line in block(held("lost", reason), "lost") if line.startswith("acts: "))
        assert "tried again" not in acts


def test_a_policy_that_is_suspended_acts_once_it_is_resumed() -> None:
    obj = held("lost", "Suspended")
    obj["spec"]["suspend"] = True
    assert "acts: once the policy is resumed" in block(obj, "lost")


def test_a_schedule_that_is_held_may_miss_its_moment() -> None:
    obj = held("saturday", "Cooldown")
    (schedule,) = [each["schedule"] for each in obj["spec"]["triggers"] if each["name"] == "saturday"]
    schedule["startingDeadlineSeconds"] = 43_200
    assert block(obj, "saturday")[2] == (
        "acts: at that time, if that is before 2026-01-31 13:00 UTC; else at 2026-02-07 01:00 UTC"
    )
    assert "2026-01-31 13:00" not in " ".join(block(held("lost", "Cooldown"), "lost"))


@pytest.mark.parametrize(
    ("name", "acts"),
    [
        ("lost", "once a broker that has replicas was down for 1800 s"),
        ("scale-in", "once another client has cordoned a broker that is up and has replicas for 1800 s"),
        ("scale-out", "once the same brokers have had less than 20 % of the mean number of replicas for 600 s"),
        ("saturday", "at 2026-02-07 01:00 UTC"),
    ],
)
def test_an_idle_trigger_says_what_makes_it_true(name: str, acts: str) -> None:
    assert f"acts: {acts}" in block(idle(triggers=[trigger(name, "Idle", "nothing to do")]), name)


def test_a_trigger_that_cannot_become_true_says_what_that_takes() -> None:
    old = idle(triggers=[trigger("lost", "Idle", "the brokers do not list them", reason="NotSupported")])
    assert block(old, "lost")[:2] == [
        "sees: the brokers do not list them (NotSupported)",
        "acts: once the brokers run Kafka 4.0 or later",
    ]
    never = idle(triggers=[trigger("saturday", "Idle", "it has no time", reason="InvalidSchedule")])
    never["spec"]["triggers"][3]["schedule"]["cron"] = "0 0 30 2 *"
    assert "acts: once its schedule is corrected" in block(never, "saturday")
    never["spec"]["triggers"][3]["schedule"] |= {"cron": "0 0 * * *", "timeZone": "Mars/Olympus"}
    assert "acts: once its schedule is corrected" in block(never, "saturday")


def test_a_time_that_began_anew_is_not_told_as_past() -> None:
    late = trigger("lost", "Waiting", "broker 5 is down, for less than 1800 s") | {"since": "2026-01-31T11:00:00Z"}
    acts = "acts: once that has lasted for 1800 s, observed without a gap"
    assert acts in block(idle(triggers=[late]), "lost")
    del late["since"]
    assert acts in block(idle(triggers=[late]), "lost")


def test_a_plan_that_runs_or_is_made_acts_now() -> None:
    running = idle(triggers=[trigger("lost", "Active", "main-lost-3: 1/2 waves")])
    assert block(running, "lost")[0] == "plan: main-lost-3: 1/2 waves"
    assert not any(line.startswith("acts") for line in block(running, "lost"))


def test_a_hold_without_a_sentence_has_its_reason() -> None:
    assert "held: Cooldown" in block(idle(triggers=[trigger("lost", "Held", "it is true", reason="Cooldown")]), "lost")


def test_a_policy_that_is_being_deleted_says_so() -> None:
    obj = policy()
    obj["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    assert "note: it is being deleted, with its plans\n" in explained(obj)


def test_a_spec_that_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = policy()
    obj["spec"]["triggers"][0] = {"name": "later", "imbalance": {"percent": 10}}
    serve(monkeypatch, obj)
    said = error_of(run("explain", "main", "-n", "kafka"), 2)
    assert "the spec of krpol/main: triggers.0: a trigger has exactly one of brokerLost, " in said
    assert "(CannotBeRead)" in said


def test_a_status_that_cannot_be_read_is_not_seen() -> None:
    assert "note: the operator has not seen it yet\n" in explained(policy() | {"status": {"triggers": 7}})


def test_what_others_write_cannot_control_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "down\x1b[2J\nlost (brokerLost): Active"
    serve(monkeypatch, idle(triggers=[trigger("lost", "Idle", hostile)]))
    ran = run("explain", "main", "-n", "kafka")
    assert "  sees: down?[2J?lost (brokerLost): Active\n" in ran.out
    assert "\x1b" not in ran.out


# --- list and watch ---


def test_a_list_has_a_table_of_policies_below(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, moving(), policy(), unseen() | {"metadata": policy("new")["metadata"]})
    moves, rows = run("list", "-n", "kafka").out.split("\n\n")
    assert "krpol" not in moves
    assert rows.splitlines() == [
        "NAME  CLUSTER  READY    REASON            PLAN         NEXT                  AGE",
        "main  main     True     AwaitingApproval  main-lost-2  2026-02-07T01:00:00Z  0s",
        "new   main     Unknown  Pending                                              0s",
    ]
    wide = run("list", "-A", "-o", "wide").out.split("\n\n")[1]
    assert wide.splitlines()[0].endswith("AGE  TRIGGER  MESSAGE")
    assert wide.splitlines()[1].startswith("kafka      main  main     True     AwaitingApproval  main-lost-2 ")
    assert "0s   lost     main-lost-2: 2 waves" in wide
    kinds = [item["kind"] for item in json.loads(run("list", "-n", "kafka", "-o", "json").out)["items"]]
    assert sorted(kinds) == ["PartitionReassignment", "ReassignmentPolicy", "ReassignmentPolicy"]


@pytest.mark.parametrize("reason", [Reason.NOT_AUTHORIZED, Reason.REQUEST_FAILED])
def test_policies_that_may_not_be_listed_are_left_out(reason: Reason, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tenant(Writable):
        async def list(self, kind: str, namespace: str | None = None) -> list[Object]:
            if kind == "ReassignmentPolicy":
                raise ReassignError(reason, "no")
            return await super().list(kind, namespace)

    Tenant(moving()).serve(monkeypatch)
    ran = run("list", "-n", "kafka")
    assert (ran.code, ran.err) == (0, "note: ReassignmentPolicies are left out: no\n")
    assert run("cancel", "drain-5-wave", "-n", "kafka", "--yes").code == 0


def test_a_policy_is_watched_until_it_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    for obj in (policy(), idle(), idle(conditions=[condition("Ready", "False", "PlanFailed"), condition("Stalled")])):
        assert watching.end_of(Item(obj)) is None
    gone = serve(monkeypatch, idle())
    monkeypatch.setattr(watching, "POLL_SECONDS", 0)

    async def get(kind: str, namespace: str, name: str) -> Object | None:
        found, gone.objects = gone.objects, ()
        return next((obj for obj in found if obj["kind"] == kind), None)

    monkeypatch.setattr(gone, "get", get)
    ran = run("watch", "krpol/main", "-n", "kafka")
    shown, end = ran.out.splitlines()
    assert (ran.code, end) == (1, "it was deleted")
    assert shown.endswith("Z no plan is needed (Idle)")


def test_a_terminal_shows_each_trigger_and_the_wave_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    obj = policy("p" * 40)
    obj["status"]["triggers"] += [
        trigger("n" * 15, "Waiting", "down", reason="TooManyBrokersLost", brokers=[*range(1000, 1050)])
    ]
    out.write_tables([watching.picture(watching.View(Item(obj), Item(moving())), {}, 80, 30)])
    shown = capsys.readouterr().out.splitlines()
    header = next(number for number, line in enumerate(shown) if line.startswith("TRIGGER"))
    assert [line.split() for line in shown[header : header + 6]] == [
        ["TRIGGER", "STATE", "BROKERS", "REASON"],
        ["lost", "Active", "5"],
        ["scale-in", "Waiting", "3"],
        ["scale-out", "Held", "6", "PlanInProgress"],
        ["saturday", "Idle"],
        ["n" * 15, "Waiting", "1000,1001,1002,1003", "and", "46", "more", "TooManyBrokersLost"],
    ]
    assert max(map(len, shown[header:])) <= 80
    assert any(line.startswith("orders-0 ") for line in shown)


def test_watch_of_a_policy_finds_the_wave_of_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    made_plan = {"name": "main-lost-2", "trigger": "lost", "digest": DIGEST, "outcome": "Running"}
    it = idle(
        plans=[made_plan | {"bytes": 1, "lowerBoundBytes": 1, "replicas": 1}],
        plan={"name": "main-lost-2", "trigger": "lost"},
    )
    running = made_by(it)
    running["status"]["waves"][0]["state"] = "Running"
    serve(monkeypatch, it, running, moving())
    monkeypatch.setattr(watching, "end_of", lambda _: watching.End(True, "end"))
    ran = run("watch", "main", "-n", "kafka")
    assert ran.out.splitlines()[0].endswith(
        "no plan is needed, drain-5-wave: 4/12 partitions, 40 %, about 9 min left, 52 MiB/s (Idle)"
    )


# --- approve ---


def test_an_approval_shows_the_trigger_and_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    it = policy()
    server = serve(monkeypatch, it, made_by(it), plan())
    ran = run("approve", "krpol/main", "-n", "kafka", stdin="y\n")
    assert (ran.code, ran.err) == (0, "Approve krpol/main? [y/N] ")
    assert ran.out.splitlines() == [
        "krpol/main: the trigger lost, for broker 5",
        "  krp/main-lost-2: 2 waves, 15 partitions, 15 new replicas, 51 GiB, about 17 min",
        "    drain-5-wave: 12 partitions, 49 GiB",
        "    drain-5-wave-2: 3 partitions, 2.0 GiB",
        f"  {WAITS}",
        f"krpol/main approved, {WAITS}",
    ]
    assert server.specs == [("main", {"approvedDigest": WAITS})]


def test_a_trigger_may_ask_for_approval_where_its_policy_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    it = policy()
    it["spec"]["approval"] = "NotRequired"
    server = serve(monkeypatch, it, made_by(it))
    assert run("approve", "main", "-n", "kafka", "--digest", WAITS).code == 0
    assert server.specs == [("main", {"approvedDigest": WAITS})]


def refusal(obj: Object, digest: str | None = None) -> tuple[Reason, str]:
    with pytest.raises(ReassignError) as caught:
        approving.approval(Item(obj), digest)
    return caught.value.reason, caught.value.message


def test_a_policy_is_approved_only_while_a_plan_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = "nothing of krpol/main waits for approval: "
    assert refusal(idle()) == (Reason.PLANNING, f"{nothing}no plan is needed")
    assert refusal(unseen()) == (Reason.PLANNING, f"{nothing}the operator has not seen it")
    assert refusal(edited()) == (
        Reason.PLANNING,
        "the status of krpol/main is about an earlier spec; try again later",
    )
    assert refusal(policy(), OTHER)[0] is Reason.APPROVED_DIGEST_MISMATCH
    retired = idle()
    retired["spec"]["approvedDigest"] = WAITS
    assert refusal(retired) == (Reason.PLANNING, f"{nothing}no plan is needed")
    free = idle()
    free["spec"]["approval"] = "NotRequired"
    serve(monkeypatch, free)
    assert f"{nothing}no plan is needed (Planning)" in error_of(run("approve", "main", "-n", "kafka"), 1)


def test_a_plan_under_way_is_approved_already() -> None:
    it = idle()
    it["status"]["plans"][0]["outcome"] = "Running"
    it["spec"]["approvedDigest"] = WAITS
    assert approving.approval(Item(it), None) == {}
    assert refusal(it, OTHER)[0] is Reason.APPROVED_DIGEST_MISMATCH


def test_a_plan_of_another_policy_or_digest_is_not_shown() -> None:
    it = policy()
    assert approving.is_meant(Item(made_by(it)), Item(it))
    assert not approving.is_meant(Item(made_by(policy("other"))), Item(it))
    assert not approving.is_meant(Item(made_by(it, waves=[])), Item(it))
    assert not approving.is_meant(Item(plan()), Item(it))
    gone = policy(triggers=[], plan=None)
    assert next(approving.shown(Item(gone), None)) == "krpol/main"


def test_a_template_is_not_changed_for_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, policy(), made_by(policy()))
    file = tmp_path / "policy.yaml"
    file.write_text("kind: ReassignmentPolicy\nspec:\n  approvedDigest: {{ .Values.digest }}\n")
    said = error_of(run("approve", "main", "-n", "kafka", "--file", file, "--yes"), 2)
    assert "is a template ({{), and no manifest: set spec.approvedDigest by hand" in said


# --- suspend and cancel ---


@pytest.mark.parametrize("verb", ["approve", "suspend", "resume"])
def test_a_plan_that_was_made_for_a_trigger_names_its_policy(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    it = policy()
    server = serve(monkeypatch, it, made_by(it), wave_of(made_by(it)))
    said = error_of(run(verb, "main-lost-2", "-n", "kafka"), 2)
    if verb == "approve":
        assert (
            "krp/main-lost-2 has no approval of its own; approve the ReassignmentPolicy main, which has made it: "
            "kubectl kafka-reassign approve krpol/main -n kafka" in said
        )
    else:
        assert f"krp/main-lost-2 is a plan that the ReassignmentPolicy main has made; {verb} krpol/main" in said
        wave = f"a wave of krp/main-lost-2 that the ReassignmentPolicy main has made; {verb} krpol/main"
        assert wave in error_of(run(verb, "drain-5-wave", "-n", "kafka"), 2)
    assert (server.specs, server.deleted) == ([], [])


def test_a_policy_is_suspended_and_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    it = policy()
    it["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "main"}
    server = serve(monkeypatch, it)
    ran = run("suspend", "main", "-n", "kafka")
    assert ran.out == "krpol/main suspended; moves in flight continue\n"
    assert ran.err == "note: Argo CD sets krpol/main to what Git has; commit the change too\n"
    it["spec"]["suspend"] = True
    assert run("suspend", "main", "-n", "kafka").out == "krpol/main is suspended already\n"
    assert run("resume", "krpol/main", "-n", "kafka").out == "krpol/main resumed\n"
    assert server.specs == [("main", {"suspend": True}), ("main", {"suspend": False})]


def test_a_policy_is_not_cancelled_and_what_to_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch, policy(), idle() | {"metadata": policy("bare")["metadata"]}, ended())
    assert error_of(run("cancel", "main", "-n", "kafka", "--yes"), 2) == (
        "error: krpol/main stays in force until you suspend or delete it; suspend krpol/main, then cancel "
        "krp/main-lost-2; or kubectl delete krpol/main -n kafka, which cancels the moves of its plan too "
        "(NothingSelected)\n"
    )
    assert "suspend krpol/bare; or kubectl delete" in error_of(run("cancel", "bare", "-n", "kafka", "--yes"), 2)
    for selection in (("--cluster", "main"), ("--topic", "orders")):
        assert run("cancel", *selection, "-n", "kafka", "--yes").out == "there is nothing to cancel\n"
    assert server.deleted == []


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("selection", [("main-lost-2",), ("--topic", "orders"), ("--cluster", "main")])
def test_a_plan_of_a_policy_is_cancelled_alone(
    selection: tuple[str, ...], suspended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = policy()
    it["spec"]["suspend"] = suspended
    server = serve(monkeypatch, it, made_by(it), wave_of(made_by(it)))
    ran = run("cancel", *selection, "-n", "kafka", "--yes")
    consequence, _ = ran.out.splitlines()
    assert (ran.code, server.deleted) == (0, ["main-lost-2"])
    more = "" if suspended else "; krpol/main makes another plan later: suspend it before you answer"
    assert f"3 in flight go back, 4 completed stay{more}" in consequence
    assert ("makes another plan" in consequence) is not suspended


def test_a_wave_of_a_policys_plan_is_cancelled_with_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    it = policy()
    serve(monkeypatch, it, made_by(it), wave_of(made_by(it)))
    said = error_of(run("cancel", "drain-5-wave", "-n", "kafka", "--yes"), 2)
    assert "kpr/drain-5-wave is a wave of krp/main-lost-2; cancel krp/main-lost-2 (NothingSelected)" in said
    assert cancelling.selected([Item(it)], None, "main") == []


# --- completion ---


def test_names_of_policies_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"ReassignmentPolicy": ["main", "night"], "ReassignmentPlan": ["main-lost-2"]}
    monkeypatch.setattr(candidates, "_objects", lambda _, kind: names.get(kind, []))
    context: Any = None
    assert candidates.policies(context, "ma") == ["main"]
    assert candidates.approvable(context, "ma") == ["main-lost-2", "main"]
    assert candidates.resources(context, "krpol/n") == ["krpol/night"]
    assert candidates.resources(context, "reassignmentpolicies/m") == ["reassignmentpolicies/main"]
