"""The configurations of brokers and topics, those that throttle first: read, change them (DescribeConfigs, KIP-339).

A broker answers for, and changes, its own configurations only; any broker those of topics. What is not set at the
broker or topic itself (a default, a static value, one of the whole cluster) reads as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from reassign.core.changes import Change, Configs, Kind, Op, Place
from reassign.core.model import APPLIED, Outcome, Problem, Result
from reassign.core.throttled import LISTS, LOG_DIR_RATE, RATES
from reassign.errors import Reason
from reassign.kafka.errors import (
    AMBIGUOUS,
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_TOPIC,
    NONE,
    REFUSALS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    cluster_error,
    name_of,
)
from reassign.kafka.requests import MIN_INSYNC_REPLICAS
from reassign.kafka.wire import AnswerLostError, Wire

BATCH = 200
"""Topics in one request."""
BROKER_SECONDS = 2.0
"""For one broker's answer: one that is down or slow delays a look by no more."""
RESOURCE_TYPES = {Kind.TOPIC: 2, Kind.BROKER: 4}
SET_AT = {Kind.TOPIC: 1, Kind.BROKER: 2}
"""DescribeConfigs' sources DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""
THROTTLES = {Kind.TOPIC: LISTS, Kind.BROKER: (*RATES, LOG_DIR_RATE)}
KEPT = {Kind.TOPIC: (MIN_INSYNC_REPLICAS, *LISTS), Kind.BROKER: THROTTLES[Kind.BROKER]}
"""What a snapshot keeps."""
OPERATIONS = {Op.SET: 0, Op.DELETE: 1, Op.APPEND: 2, Op.SUBTRACT: 3}

RIGHTS = "the Kafka user needs DESCRIBE_CONFIGS and ALTER_CONFIGS on"

Read = dict[Place, Configs | Problem | None]
"""What a read met at each place: its configurations, why they could not be read, or None for a topic that is gone."""


def batches(places: Collection[Place]) -> Iterator[list[Place]]:
    """Groups that one request can carry: some topics, or one broker."""
    yield from ([place] for place in places if place.kind is Kind.BROKER)
    topics = [place for place in places if place.kind is Kind.TOPIC]
    yield from (topics[n : n + BATCH] for n in range(0, len(topics), BATCH))


def by_place(changes: Iterable[Change]) -> dict[Place, list[Change]]:
    """The changes of each broker and topic, in their order."""
    found: dict[Place, list[Change]] = {}
    for one in changes:
        found.setdefault(one.spot.place, []).append(one)
    return found


def read(wire: Wire, places: Sequence[Place], names: Mapping[Kind, Sequence[str]] = THROTTLES) -> Read:
    """The configurations of these names, of one of the `batches`; never raises."""
    of_place = DescribeConfigsRequest.DescribeConfigsResource

    def request() -> Any:
        resources = [
            of_place(resource_type=RESOURCE_TYPES[p.kind], resource_name=p.name, configuration_keys=list(names[p.kind]))
            for p in places
        ]
        return DescribeConfigsRequest(resources=resources)

    first = places[0]
    try:
        if first.kind is Kind.BROKER:
            answer = wire.read_from(int(first.name), request(), BROKER_SECONDS)
        else:
            answer = wire.read(request)
    except KafkaError as error:
        said = cluster_error(error)
        reason = said.reason if said.reason is Reason.NOT_AUTHORIZED else Reason.REQUEST_FAILED
        problem = Problem(reason, f"the configurations of {first} could not be read: {said.message}")
        return dict.fromkeys(places, problem)
    return {Place(first.kind, result.resource_name): _configs(first.kind, result) for result in answer.results}


def _configs(kind: Kind, result: Any) -> Configs | Problem | None:
    place, code = Place(kind, result.resource_name), result.error_code
    if code == NONE:
        return {c.name: c.value for c in result.configs if c.config_source == SET_AT[kind] and c.value is not None}
    if kind is Kind.TOPIC and code in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
        return None
    return _refused(place, code, result.error_message).problem


def change(wire: Wire, changes: Sequence[Change], before_write: Callable[[], None]) -> dict[Change, Outcome]:
    """Carry out changes of one of the `batches`, of no configuration two; a place is changed as a whole or not."""
    of_place = IncrementalAlterConfigsRequest.AlterConfigsResource
    places = by_place(changes)
    request = IncrementalAlterConfigsRequest(
        resources=[
            of_place(
                resource_type=RESOURCE_TYPES[place.kind],
                resource_name=place.name,
                configs=[
                    of_place.AlterableConfig(
                        name=c.spot.config,
                        config_operation=OPERATIONS[c.op],
                        value=None if c.op is Op.DELETE else c.value,
                    )
                    for c in those
                ],
            )
            for place, those in places.items()
        ],
        validate_only=False,
    )
    first = changes[0].spot.place
    broker = int(first.name) if first.kind is Kind.BROKER else None
    try:
        answer = wire.write(request, before_write, broker)
    except AnswerLostError as error:
        lost = Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, f"{first}: the answer was lost: {error}")
        return dict.fromkeys(changes, lost)
    except KafkaError as error:
        refused = Outcome(Result.REFUSED, Reason.REQUEST_FAILED, f"{first}: {cluster_error(error).message}")
        return dict.fromkeys(changes, refused)
    outcomes: dict[Change, Outcome] = {}
    for answered in answer.responses:
        place = Place(first.kind, answered.resource_name)
        outcome = _refused(place, answered.error_code, answered.error_message) if answered.error_code else APPLIED
        outcomes |= dict.fromkeys(places[place], outcome)
    return outcomes


def _refused(place: Place, code: int, message: str | None) -> Outcome:
    if code == CLUSTER_AUTHORIZATION_FAILED:
        said = f"{RIGHTS} the cluster"
    elif code == TOPIC_AUTHORIZATION_FAILED:
        said = f"{RIGHTS} the {place}"
    else:
        said = f"{place}: {message or f'the brokers answered {name_of(code)}'}"
    if code in AMBIGUOUS:
        return Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, said)
    return Outcome(Result.REFUSED, REFUSALS.get(code, Reason.REQUEST_FAILED), said)
