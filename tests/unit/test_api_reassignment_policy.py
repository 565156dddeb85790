"""The ReassignmentPolicy resource: what it is filled in with, and that schema, rules and model refuse the same."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reassign.api.crd import definitions
from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_plan import Approval
from reassign.api.reassignment_policy import (
    ReassignmentPolicy,
    ReassignmentPolicySpec,
    ReassignmentPolicyStatus,
    TriggerKind,
    TriggerState,
)

DEFINITION = definitions()["kafka.reassign.dev_reassignmentpolicies.yaml"]
[VERSION] = DEFINITION["spec"]["versions"]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]
TRIGGERS = SPEC["properties"]["triggers"]
DIGEST = f"sha256:{'a' * 64}"
NOW = "2026-01-02T03:04:05Z"
BALANCE = {"goal": {"balance": {"by": ["Disk"], "tolerancePercent": 10}}}
SATURDAY = {"cron": "0 2 * * 6"}

FULL = {
    "clusterRef": {"name": "main"},
    "suspend": True,
    "triggers": [
        {
            "name": "lost",
            "brokerLost": {"afterSeconds": 60, "maxBrokers": 2},
            "approval": "NotRequired",
            "windows": [],
        },
        {"name": "scale-in", "brokersCordoned": {"afterSeconds": 86400}},
        {"name": "scale-out", "brokersAdded": {"afterSeconds": 60, "belowPercent": 80}},
        {
            "name": "saturday",
            "schedule": {"cron": "0 2 * * 6", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 60},
            "windows": [{"cron": "0 1 * * *", "durationSeconds": 300, "timeZone": "Etc/UTC"}],
        },
        {
            "name": "sunday",
            "schedule": {"cron": "0 2 * * 0", "timeZone": "Etc/UTC", "startingDeadlineSeconds": 3600},
        },
    ],
    "approval": "NotRequired",
    "windows": [{"cron": "0 22 * * *", "durationSeconds": 21600, "timeZone": "Europe/Berlin"}],
    "approvedDigest": DIGEST,
    "maxBytes": "2Ti",
    "planTemplate": {
        "topics": {"include": ["a*"], "exclude": ["ab"]},
        "goal": {"brokers": [0, 1, 2], "scope": "All", "fencedBrokers": "Keep", **BALANCE["goal"]},
        "racks": {"awareness": "Flat"},
        "waves": {"maxPartitions": 10, "maxBytes": "1Gi"},
        "template": {"throttle": {"interBroker": "50Mi"}},
    },
    "settleSeconds": 3600,
    "cooldownSeconds": 0,
}


def spec(*triggers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    named = [{"name": f"t{number}", **trigger} for number, trigger in enumerate(triggers)]
    return {"clusterRef": {"name": "main"}, "triggers": named or [lost()], **changes}


def lost(**changes: Any) -> dict[str, Any]:
    return {"name": "lost", "brokerLost": changes}


def policy(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kafka", "uid": "u", "generation": 1}
    return {"metadata": metadata, "spec": spec()}


def rules(schema: dict[str, Any]) -> dict[str, str]:
    """The CEL rules of a part of the schema, with their messages."""
    return {rule["rule"]: rule["message"] for rule in schema.get("x-kubernetes-validations", ())}


def test_a_minimal_spec_gets_the_defaults_of_the_contract() -> None:
    made = spec({"brokerLost": {}}, {"brokersCordoned": {}}, {"brokersAdded": {}}, {"schedule": SATURDAY})
    read = ReassignmentPolicySpec.parse({**made, "planTemplate": BALANCE})
    assert (read.suspend, read.approval, read.windows, read.max_bytes) == (False, Approval.REQUIRED, (), None)
    assert (read.settle_seconds, read.cooldown_seconds) == (600, 3600)
    assert [trigger.kind for trigger in read.triggers] == [*TriggerKind]
    assert {(trigger.approval, trigger.windows) for trigger in read.triggers} == {(None, None)}
    first, second, third, fourth = read.triggers
    assert first.broker_lost
    assert second.brokers_cordoned
    assert third.brokers_added
    assert fourth.schedule
    assert (first.broker_lost.after_seconds, first.broker_lost.max_brokers) == (1800, 1)
    assert second.brokers_cordoned.after_seconds == 300
    assert (third.brokers_added.after_seconds, third.brokers_added.below_percent) == (600, 20)
    assert (fourth.schedule.time_zone, fourth.schedule.starting_deadline_seconds) == ("Etc/UTC", 3600)


def test_a_full_spec_is_read_and_written_back_the_same() -> None:
    jsonschema.validate(FULL, SPEC)
    assert ReassignmentPolicySpec.parse(FULL).wire() == FULL


def test_a_full_status_is_read_and_written_back_the_same() -> None:
    made = {"name": "main-lost-1", "digest": DIGEST, "bytes": 9, "lowerBoundBytes": 8, "replicas": 3}
    times = {"startTime": NOW, "completionTime": NOW}
    status = {
        "observedGeneration": 1,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": NOW, "reason": "PlanInProgress", "message": "…"}
            for kind in ("Ready", "ApprovalNeeded", "Reconciling", "Stalled")
        ],
        "summary": "main-lost-1: wave 2/4",
        "plan": {"name": "main-lost-1", "trigger": "lost"},
        "digest": DIGEST,
        "lastScheduleTime": NOW,
        "nextScheduleTime": NOW,
        "triggers": [
            {"name": state.lower(), "state": state.value, "since": NOW, "brokers": [5], "reason": "R", "message": "m"}
            for state in TriggerState
        ],
        "plans": [{**made, **times, "outcome": outcome.value, "trigger": "lost"} for outcome in PlanOutcome],
    }
    jsonschema.validate(status, SCHEMA["properties"]["status"])
    assert ReassignmentPolicyStatus.parse(status).wire() == status


@pytest.mark.parametrize("status", [{}, {"observedGeneration": -1}])
def test_a_status_never_written_has_no_observed_generation(status: dict[str, int]) -> None:
    jsonschema.validate(status, SCHEMA["properties"]["status"])
    assert ReassignmentPolicyStatus.parse(status) == ReassignmentPolicyStatus()
    assert SCHEMA["properties"]["status"]["default"] == {"observedGeneration": -1}


def on(**schedule: Any) -> dict[str, Any]:
    return spec({"schedule": {**SATURDAY, **schedule}}, planTemplate=BALANCE)


BAD = {
    "no cluster": {"triggers": [lost()]},
    "no triggers": {"clusterRef": {"name": "main"}},
    "an empty list of triggers": {"clusterRef": {"name": "main"}, "triggers": []},
    "11 triggers": spec(*[{"schedule": SATURDAY}] * 11, planTemplate=BALANCE),
    "a trigger without a name": {"clusterRef": {"name": "main"}, "triggers": [{"brokerLost": {}}]},
    "a name of 16 characters": spec({"name": "a" * 16, "brokerLost": {}}),
    "a name in capitals": spec({"name": "Lost", "brokerLost": {}}),
    "a name that ends with a dash": spec({"name": "lost-", "brokerLost": {}}),
    "a minute less a second": spec(lost(afterSeconds=59)),
    "a day and a second": spec({"brokersCordoned": {"afterSeconds": 86401}}),
    "no broker at most": spec(lost(maxBrokers=0)),
    "11 brokers at most": spec(lost(maxBrokers=11)),
    "below nothing": spec({"brokersAdded": {"belowPercent": 0}}, planTemplate=BALANCE),
    "below 81 percent": spec({"brokersAdded": {"belowPercent": 81}}, planTemplate=BALANCE),
    "no cron": spec({"schedule": {}}, planTemplate=BALANCE),
    "another approval": spec(approval="Given"),
    "another approval of a trigger": spec({"brokerLost": {}, "approval": "Given"}),
    "a window of four minutes": spec(windows=[{"cron": "0 22 * * *", "durationSeconds": 240}]),
    "a window of a trigger of four minutes": spec(
        {"brokerLost": {}, "windows": [{"cron": "0 22 * * *", "durationSeconds": 240}]}
    ),
    "a digest that is none": spec(approvedDigest="sha256:abc"),
    "a template without a goal": spec(planTemplate={}),
    "settled for less than a minute": spec(settleSeconds=59),
    "settled for more than an hour": spec(settleSeconds=3601),
    "a cooldown below nothing": spec(cooldownSeconds=-1),
    "a cooldown of more than a week": spec(cooldownSeconds=604801),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_the_schema_refuses_the_model_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SPEC)
    with pytest.raises(ValidationError):
        ReassignmentPolicySpec.parse(bad)


TEMPLATE = SPEC["properties"]["planTemplate"]
SCHEDULE = TRIGGERS["items"]["properties"]["schedule"]["properties"]
FIVE_FIELDS = (
    "must be five fields with spaces between, such as 0 22 * * 1-5: minute, hour, day of the month, month and day of "
    "the week"
)
ADDED = {"brokersAdded": {}}
ONE_KIND = "a trigger has exactly one of brokerLost, brokersCordoned, brokersAdded, schedule"
BY_RULE = {
    "no kind": (ONE_KIND, spec({}), TRIGGERS["items"]),
    "a kind that is not there": (ONE_KIND, spec({"imbalance": {"percent": 20}}), TRIGGERS["items"]),
    "two kinds": (ONE_KIND, spec({"brokerLost": {}, "brokersCordoned": {}}), TRIGGERS["items"]),
    "brokerLost twice": ("at most one trigger has brokerLost", spec({"brokerLost": {}}, {"brokerLost": {}}), TRIGGERS),
    "brokersCordoned twice": (
        "at most one trigger has brokersCordoned",
        spec({"brokersCordoned": {}}, {"brokersCordoned": {}}),
        TRIGGERS,
    ),
    "brokersAdded twice": (
        "at most one trigger has brokersAdded",
        spec(ADDED, ADDED, planTemplate=BALANCE),
        TRIGGERS,
    ),
    "a schedule without a plan": (
        "schedule and brokersAdded need planTemplate",
        spec({"schedule": SATURDAY}),
        SPEC,
    ),
    "added without a plan": ("schedule and brokersAdded need planTemplate", spec(ADDED), SPEC),
    "added without balance": (
        "brokersAdded needs a planTemplate whose goal has balance",
        spec(ADDED, planTemplate={"goal": {"replicationFactor": 3}}),
        SPEC,
    ),
    "a drain": (
        "the goal of planTemplate cannot have drainBrokers: make a BrokerDecommission instead",
        spec(planTemplate={"goal": {"drainBrokers": [5]}}),
        TEMPLATE,
    ),
    **{
        f"the cron {cron}": (FIVE_FIELDS, on(cron=cron), SCHEDULE["cron"])
        for cron in ("0 0 2 * * 6", "TZ=Europe/Berlin 0 2 * * 6", "TZ=UTC 2 * * 6", "CRON_TZ=UTC 0 2 * *", "@weekly")
    },
    "a time zone by its offset": (
        "must be the name of a time zone in the IANA database, such as Europe/Berlin",
        on(timeZone="+02:00"),
        SCHEDULE["timeZone"],
    ),
    "a bound below the least": (
        "must be a quantity of bytes from 1Ki to 1Pi, such as 500Gi",
        spec(maxBytes="1"),
        SPEC["properties"]["maxBytes"],
    ),
}


@pytest.mark.parametrize(("message", "bad", "where"), BY_RULE.values(), ids=BY_RULE.keys())
def test_what_a_rule_refuses_the_model_refuses(message: str, bad: dict[str, Any], where: dict[str, Any]) -> None:
    jsonschema.validate(bad, SPEC)  # no more than the rule is against it
    assert message in rules(where).values()
    with pytest.raises(ValidationError):
        ReassignmentPolicySpec.parse(bad)


def test_schedules_may_be_several_and_a_template_need_not_balance() -> None:
    both = spec({"schedule": SATURDAY}, {"schedule": SATURDAY}, planTemplate={"goal": {"replicationFactor": 3}})
    assert len(ReassignmentPolicySpec.parse(both).triggers) == 2


def test_triggers_are_keyed_by_their_names() -> None:
    assert (TRIGGERS["x-kubernetes-list-type"], TRIGGERS["x-kubernetes-list-map-keys"]) == ("map", ["name"])


def test_a_name_has_at_most_forty_characters() -> None:
    [message] = rules(SCHEMA).values()
    assert "size(self.metadata.name) <= 40" in rules(SCHEMA)
    assert ReassignmentPolicy.parse(policy("a" * 40)).metadata.name == "a" * 40
    with pytest.raises(ValidationError, match=message):
        ReassignmentPolicy.parse(policy("a" * 41))


def test_the_cluster_cannot_be_changed() -> None:
    assert rules(SPEC["properties"]["clusterRef"])["self == oldSelf"].startswith("clusterRef cannot be changed")
    assert "namespace" not in SPEC["properties"]["clusterRef"]["properties"]


def test_the_columns_are_those_of_the_contract() -> None:
    columns = VERSION["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if "priority" not in column]
    wide = [column["name"] for column in columns if column.get("priority") == 1]
    assert shown == ["Ready", "Reason", "Plan", "Next", "Age"]
    assert wide == ["Cluster", "Trigger", "Message"]
    assert DEFINITION["spec"]["names"]["shortNames"] == ["krpol"]


KINDS = {"brokerLost": {}, "brokersCordoned": {}, "brokersAdded": {}, "schedule": SATURDAY}


@given(
    st.lists(st.sets(st.sampled_from(sorted(KINDS)), max_size=2), max_size=4),
    st.sampled_from([None, {"balance": {}}, {"replicationFactor": 3}, {"balance": {}, "drainBrokers": [1]}]),
)
def test_the_model_takes_what_schema_and_rules_take(kinds: list[set[str]], goal: dict[str, Any] | None) -> None:
    made = spec(*({kind: KINDS[kind] for kind in each} for each in kinds))
    made |= {"planTemplate": {"goal": goal}} if goal else {}
    made["triggers"] = made["triggers"] if kinds else []
    flat = [kind for each in kinds for kind in each]
    allowed = bool(kinds) and all(len(each) == 1 for each in kinds) and "drainBrokers" not in (goal or {})
    allowed &= all(flat.count(kind) <= 1 for kind in KINDS if kind != "schedule")
    allowed &= goal is not None or not {"schedule", "brokersAdded"} & {*flat}
    allowed &= "brokersAdded" not in flat or "balance" in (goal or {})
    try:
        ReassignmentPolicySpec.parse(made)
    except ValidationError:
        assert not allowed
    else:
        assert allowed
