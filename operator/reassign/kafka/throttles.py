"""Reads and changes configurations of brokers and topics, throttles and cordons above all (DescribeConfigs, KIP-339).

Only the broker itself reads and changes a broker's configurations; any broker does a topic's. What is not set at the
broker or topic itself (a default, a static value, a value for the whole cluster) reads as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from reassign.api.config_keys import BROKER_RATES, CORDONED_LOG_DIRS, LISTS
from reassign.core.model.configs import Change, ConfigResource, ConfigResourceType, Configs, Op
from reassign.core.model.problem import Problem, private
from reassign.core.model.steps import APPLIED, Outcome, Result
from reassign.errors import Reason
from reassign.kafka.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GONE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    cluster_error,
    refusal,
)
from reassign.kafka.requests import MIN_INSYNC_REPLICAS
from reassign.kafka.wire import READ_SECONDS, AnswerLostError, Wire

BATCH = 200
"""Topics in one request."""
BROKER_SECONDS = 2.0
"""For one broker's answer: one that is down or slow delays a snapshot by no more."""
RESOURCE_TYPES = {ConfigResourceType.TOPIC: 2, ConfigResourceType.BROKER: 4}
SET_AT = {ConfigResourceType.TOPIC: 1, ConfigResourceType.BROKER: 2}
"""DescribeConfigs' sources DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""
HELD = {ConfigResourceType.TOPIC: LISTS, ConfigResourceType.BROKER: (*BROKER_RATES, CORDONED_LOG_DIRS)}
"""What is set and restored."""
KEPT = {ConfigResourceType.TOPIC: (MIN_INSYNC_REPLICAS, *LISTS), ConfigResourceType.BROKER: BROKER_RATES}
"""What a snapshot keeps."""
OPERATIONS = {Op.SET: 0, Op.DELETE: 1, Op.APPEND: 2, Op.SUBTRACT: 3}

RIGHTS = "the Kafka user needs DESCRIBE_CONFIGS and ALTER_CONFIGS on"

Read = dict[ConfigResource, Configs | Problem | None]
"""By resource: its configurations, why they could not be read, or None for a topic that is gone."""


def batches(resources: Collection[ConfigResource]) -> Iterator[list[ConfigResource]]:
    """Yield groups that one request can carry: some topics, or one broker."""
    yield from ([resource] for resource in resources if resource.type is ConfigResourceType.BROKER)
    topics = [resource for resource in resources if resource.type is ConfigResourceType.TOPIC]
    yield from (topics[n : n + BATCH] for n in range(0, len(topics), BATCH))


def by_resource(changes: Iterable[Change]) -> dict[ConfigResource, list[Change]]:
    """Return the changes of each broker and topic, in their order."""
    grouped: dict[ConfigResource, list[Change]] = {}
    for one in changes:
        grouped.setdefault(one.key.resource, []).append(one)
    return grouped


def read(
    wire: Wire,
    resources: Sequence[ConfigResource],
    names: Mapping[ConfigResourceType, Sequence[str]] = HELD,
    via: int | None = None,
) -> Read:
    """Return these configurations of one of the `batches`, each problem in place of an error.

    Topics are read from the broker `via`, or from any (None).
    """
    described = DescribeConfigsRequest.DescribeConfigsResource

    def request() -> Any:
        asked = [
            described(
                resource_type=RESOURCE_TYPES[r.type], resource_name=r.name, configuration_keys=list(names[r.type])
            )
            for r in resources
        ]
        return DescribeConfigsRequest(resources=asked)

    first = resources[0]
    try:
        if first.type is ConfigResourceType.BROKER:
            answer = wire.read_from(int(first.name), request(), BROKER_SECONDS)
        else:
            answer = wire.read(request) if via is None else wire.read_from(via, request(), READ_SECONDS)
    except KafkaError as error:
        cause = cluster_error(error)
        reason = cause.reason if cause.reason is Reason.NOT_AUTHORIZED else Reason.REQUEST_FAILED
        why = private(cause.message, "the brokers did not answer")
        return {r: Problem(reason, f"the configurations of {r} could not be read: ", why) for r in resources}
    return {ConfigResource(first.type, result.resource_name): _configs(first.type, result) for result in answer.results}


def _configs(kind: ConfigResourceType, result: Any) -> Configs | Problem | None:
    resource, code = ConfigResource(kind, result.resource_name), result.error_code
    if code == NONE:
        return {c.name: c.value for c in result.configs if c.config_source == SET_AT[kind] and c.value is not None}
    if kind is ConfigResourceType.TOPIC and code in GONE:
        return None
    return _refused(resource, code, result.error_message).problem


def change(
    wire: Wire, changes: Sequence[Change], before_write: Callable[[], None], via: int | None = None
) -> dict[Change, Outcome]:
    """Carry out changes of one of the `batches`, no two of one configuration; return what each change met.

    A resource is changed as a whole or not at all. Changes of topics are sent to the broker `via`, or to any (None).
    """
    altered = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = by_resource(changes)
    request = IncrementalAlterConfigsRequest(
        resources=[
            altered(
                resource_type=RESOURCE_TYPES[resource.type],
                resource_name=resource.name,
                configs=[
                    altered.AlterableConfig(
                        name=c.key.config,
                        config_operation=OPERATIONS[c.op],
                        value=None if c.op is Op.DELETE else c.value,
                    )
                    for c in those
                ],
            )
            for resource, those in resources.items()
        ],
        validate_only=False,
    )
    first = changes[0].key.resource
    broker = int(first.name) if first.type is ConfigResourceType.BROKER else via
    try:
        answer = wire.write(request, before_write, broker)
    except AnswerLostError as error:
        return {c: _not_done(c, Result.UNKNOWN, f"the answer was lost: {error}") for c in changes}
    except KafkaError as error:
        return {c: _not_done(c, Result.REFUSED, cluster_error(error).message) for c in changes}
    outcomes: dict[Change, Outcome] = {}
    for answered in answer.responses:
        resource = ConfigResource(first.type, answered.resource_name)
        outcome = _refused(resource, answered.error_code, answered.error_message) if answered.error_code else APPLIED
        outcomes |= dict.fromkeys(resources[resource], outcome)
    return outcomes


def _not_done(change: Change, result: Result, message: str) -> Outcome:
    return Outcome(result, Reason.REQUEST_FAILED, f"{change.key.resource}: {message}", private=True)


def _refused(resource: ConfigResource, code: int, message: str | None) -> Outcome:
    found = refusal(code, message)
    if code == CLUSTER_AUTHORIZATION_FAILED:
        return replace(found, message=f"{RIGHTS} the cluster")
    if code == TOPIC_AUTHORIZATION_FAILED:
        return replace(found, message=f"{RIGHTS} the {resource}")
    return replace(found, message=f"{resource}: {found.message}")
