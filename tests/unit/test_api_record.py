"""The ReassignmentRecord: records of earlier versions stay as they are, to the byte, beside what is added."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from reassign.api.crd import definitions
from reassign.api.reassignment_record import OwnerKind, ReassignmentRecordSpec, RecordedDecommission, RecordedPolicy

SCHEMA = definitions()["kafka.reassign.dev_reassignmentrecords.yaml"]["spec"]["versions"][0]["schema"][
    "openAPIV3Schema"
]["properties"]["spec"]
NOW = "2026-01-02T03:04:05Z"
DIGEST = f"sha256:{'a' * 64}"

WRITTEN_BEFORE = {
    "the least": '{"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0, "deletionPolicy": "Cancel", '
    '"topics": [], "foreignCancels": false}',
    "a part of a reassignment": '{"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0, "parts": 2, '
    '"deletionPolicy": "Orphan", "deletionDeadlineSeconds": 60, "topics": [{"topic": "orders", "topicId": "id", '
    '"partitions": [{"partition": 0, "originalReplicas": [1, 2], "targetReplicas": [3, 2], "state": "InFlight", '
    '"reason": "OrderUnknown", "logDirs": ["any", "/data"], "via": 1, "sentAt": "2026-01-02T03:04:05Z", '
    '"startTime": "2026-01-02T03:04:05Z", "waitedFor": "BrokerFenced"}]}], "foreignCancels": false}',
    "of a cluster": '{"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0, "deletionPolicy": "Cancel", '
    '"topics": [], "clusterId": "c", "foreignCancels": true, '
    '"throttle": {"interBroker": 1024, "users": [{"namespace": "kafka", "name": "move", "uid": "u"}], '
    '"brokers": [{"broker": 1, "configs": [{"name": "leader.replication.throttled.rate", "value": "1024", '
    '"prior": ""}], "copying": [{"topic": "orders", "partitions": [0]}]}], "topics": [{"topic": "orders", "configs": '
    '[{"name": "leader.replication.throttled.replicas", "value": "0:1"}]}]}}',
}


def decommission() -> dict[str, Any]:
    timer = {"seconds": 61, "observedAt": NOW}
    return {
        "plan": {
            "number": 2,
            "name": "old-2",
            "uid": "u",
            "specDigest": DIGEST,
            "waves": {"digest": DIGEST, "bytes": [100, 0]},
            "approved": True,
            "begunWaves": 1,
            "retired": False,
        },
        "approval": {"digest": DIGEST, "bytes": 100, "begunBytes": 50},
        "nextPlan": {"seconds": 120, "until": NOW},
        "failures": 3,
        "nextAttempt": {"seconds": 3600, "until": NOW},
        "generation": 4,
        "brokers": [
            {
                "id": 5,
                "down": timer,
                "seenEmpty": True,
                "seenUnregistered": True,
                "unregisterSentAt": NOW,
                "unregisterVia": 1,
            }
        ],
        "excluded": DIGEST,
    }


def of_decommission(**changes: Any) -> dict[str, Any]:
    least = json.loads(WRITTEN_BEFORE["the least"])
    return {**least, "ownerKind": "BrokerDecommission", "decommission": {**decommission(), **changes}}


@pytest.mark.parametrize("text", WRITTEN_BEFORE.values(), ids=WRITTEN_BEFORE.keys())
def test_a_record_of_an_earlier_version_is_written_back_to_the_byte(text: str) -> None:
    read = ReassignmentRecordSpec.parse(json.loads(text))
    assert json.dumps(read.wire()) == text
    assert (read.owner_kind, read.decommission, read.policy) == (None, None, None)
    jsonschema.validate(json.loads(text), SCHEMA)


def test_what_is_added_to_records_has_no_default_that_is_stored() -> None:
    """The API server writes defaults into objects that it reads: a record of an earlier version would change."""
    added = {"ownerKind", "decommission", "policy"}
    assert all("default" not in SCHEMA["properties"][field] for field in added)
    assert added.isdisjoint(SCHEMA["required"])


def test_the_record_of_a_decommission_is_read_and_written_back_the_same() -> None:
    jsonschema.validate(of_decommission(), SCHEMA)
    read = ReassignmentRecordSpec.parse(of_decommission())
    assert read.wire() == of_decommission()
    assert read.owner_kind is OwnerKind.BROKER_DECOMMISSION


def test_the_record_of_a_decommission_begins_empty() -> None:
    empty = of_decommission() | {"decommission": {}}
    jsonschema.validate(empty, SCHEMA)
    assert ReassignmentRecordSpec.parse(empty).decommission == RecordedDecommission()


def policy() -> dict[str, Any]:
    timer = {"seconds": 61, "observedAt": NOW}
    plan = {**decommission()["plan"], "trigger": "lost", "kind": "brokerLost", "brokers": [5]}
    return {
        "number": 3,
        "plan": {**plan, "returned": timer},
        "waiting": {**plan, "moment": NOW},
        "approval": {**decommission()["approval"], "trigger": "lost", "brokers": [5]},
        "endedAt": NOW,
        "brokers": [{"id": 5, "down": timer}, {"id": 6, "cordoned": timer}],
        "added": {"brokers": [7, 8], "timer": timer},
        "settled": {"timer": timer, "up": [1, 2], "fenced": [5]},
        "triggers": [
            {
                "name": "saturday",
                "schedule": {"cron": "0 2 * * 6", "timeZone": "Etc/UTC", "last": NOW},
                "failures": 2,
                "lastFailure": "a wave failed",
                "nextAttempt": {"seconds": 1200, "until": NOW},
                "generation": 4,
                "nextPlan": {"seconds": 60, "until": NOW},
                "saw": DIGEST,
            }
        ],
        "liftsCordons": True,
    }


def of_policy(**changes: Any) -> dict[str, Any]:
    least = json.loads(WRITTEN_BEFORE["the least"])
    return {**least, "ownerKind": "ReassignmentPolicy", "policy": {**policy(), **changes}}


def test_the_record_of_a_policy_is_read_and_written_back_the_same() -> None:
    jsonschema.validate(of_policy(), SCHEMA)
    read = ReassignmentRecordSpec.parse(of_policy())
    assert read.wire() == of_policy()
    assert read.owner_kind is OwnerKind.REASSIGNMENT_POLICY


def test_the_record_of_a_policy_begins_empty() -> None:
    empty = of_policy() | {"policy": {}}
    jsonschema.validate(empty, SCHEMA)
    assert ReassignmentRecordSpec.parse(empty).policy == RecordedPolicy()


BAD = {
    "a kind that has no record": of_decommission() | {"ownerKind": "ReassignmentPlan"},
    "a timer below 0": of_decommission(brokers=[{"id": 5, "down": {"seconds": -1, "observedAt": NOW}}]),
    "a timer that was never observed": of_decommission(brokers=[{"id": 5, "down": {"seconds": 1}}]),
    "a plan without a digest": of_decommission(plan={"number": 1, "name": "old-1"}),
    "a plan before the first": of_decommission(plan={"number": 0, "name": "old-0", "specDigest": DIGEST}),
    "an approval of no bytes that are known": of_decommission(approval={"digest": DIGEST}),
    "a plan of no trigger": of_policy(plan=decommission()["plan"]),
    "an approval of no trigger": of_policy(approval=decommission()["approval"]),
    "11 triggers": of_policy(triggers=[{"name": f"t{number}"} for number in range(11)]),
    "1001 brokers": of_policy(brokers=[{"id": number} for number in range(1001)]),
    "51 brokers": of_decommission(brokers=[{"id": number} for number in range(51)]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_no_record_can_be_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SCHEMA)
    with pytest.raises(ValidationError):
        ReassignmentRecordSpec.parse(bad)
