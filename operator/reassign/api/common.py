"""The parts of the resources: names, types with their bounds, conditions, references.

The rule of this package: a model defines everything once. Its fields, bounds, defaults and docstrings are the
CustomResourceDefinition's schema (`reassign.api.crd` writes it out), and the same model parses what the API
server sends. Python names are snake_case, names on the wire camelCase. Fields that this version does not
know are ignored when read, so a newer CRD does not stop an older operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from reassign.api.limits import (
    MAX_CONDITIONS,
    MAX_LABEL_CHARACTERS,
    MAX_MESSAGE_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_OBSERVED_REPLICAS,
    MAX_QUANTITY_CHARACTERS,
    MAX_REPLICAS,
    MAX_SHORT_TEXT_CHARACTERS,
    MAX_TOPIC_NAME_CHARACTERS,
)
from reassign.text import cut

GROUP = "kafka.reassign.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
FINALIZER = f"{GROUP}/cancel"
TRACKED_BY_ARGO_CD = "argocd.argoproj.io/tracking-id"
"""Annotation of an object that Argo CD makes again, or sets back, as Git has it."""

INT32_MAX = 2**31 - 1
YEAR_SECONDS = 365 * 24 * 3600
VALIDATIONS = "x-kubernetes-validations"

Rule = dict[str, str | bool]


def rule(expression: str, message: str, field_path: str = "", *, optional_old_self: bool = False) -> Rule:
    """Return a CEL rule of a schema; `field_path`, such as `.logDirs`, is the field that the API server names.

    With `optional_old_self` the rule is checked on creation too, and its `oldSelf` is an optional.
    """
    made: Rule = {"rule": expression, "message": message}
    if field_path:
        made["fieldPath"] = field_path
    return made | ({"optionalOldSelf": True} if optional_old_self else {})


class Schema:
    """Adds keywords of Kubernetes to the schema of the annotated type."""

    def __init__(self, *rules: Rule, list_map_keys: tuple[str, ...] = ()) -> None:
        self._keywords: dict[str, Any] = {}
        if rules:
            self._keywords[VALIDATIONS] = list(rules)
        if list_map_keys:
            self._keywords["x-kubernetes-list-type"] = "map"
            self._keywords["x-kubernetes-list-map-keys"] = list(list_map_keys)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), **self._keywords}


class EachOnce:
    """Forbids that a list has an item twice: in the schema, and when it is read."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), VALIDATIONS: [rule("self.all(x, self.exists_one(y, y == x))", self._message)]}

    def _check(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(items)) < len(items):
            raise ValueError(self._message)
        return items


class Model(BaseModel):
    """A value that cannot change, read from and written to Kubernetes' JSON."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules that the API server checks on objects of this type."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if cls.RULES:
            handler.resolve_ref_schema(schema)[VALIDATIONS] = list(cls.RULES)
        return schema

    def wire(self) -> dict[str, Any]:
        """Return the value as the API server wants it: camelCase, plain JSON types, absent rather than null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Read the value in an object from the API server; raises pydantic's `ValidationError`, a `ValueError`."""
        return cls.model_validate(dict(value))


# --- Quantities ---

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?")
_FACTORS: dict[str | None, Fraction] = {
    None: Fraction(1),
    **{name: Fraction(1000) ** power for power, name in enumerate("num", -3)},
    **{name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", 1)},
    **{f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}
_FARTHEST_POWER = 99
"""With what MAX_QUANTITY_CHARACTERS can hold, any power of ten beyond is as far outside of the bounds as this one."""
LEAST_RATE, GREATEST_RATE = 2**10, 2**40
LEAST_BYTES, GREATEST_BYTES = 2**10, 2**50


def bytes_per_second(quantity: int | str) -> int:
    """Return a Kubernetes quantity such as `50Mi`, `1.5G` or `1048576` in bytes per second, rounded up.

    Raises ValueError for what is no quantity, or is outside 1Ki to 1Ti, of which Kubernetes judges in whole
    billionths, rounded up (apimachinery's ParseQuantity).
    """
    return _number(quantity, LEAST_RATE, GREATEST_RATE, "between 1Ki and 1Ti bytes per second")


def bytes_of(quantity: int | str) -> int:
    """Return a quantity in bytes, as `bytes_per_second` reads it; from 1Ki to 1Pi."""
    return _number(quantity, LEAST_BYTES, GREATEST_BYTES, "between 1Ki and 1Pi bytes")


@lru_cache(maxsize=64)
def byte_limit_of(quantity: int | str) -> int:
    """Return a quantity in bytes, as `bytes_per_second` reads it; from 0 to 1Pi."""
    return _number(quantity, 0, GREATEST_BYTES, "between 0 and 1Pi bytes")


def _number(quantity: int | str, least: int, greatest: int, bounds: str) -> int:
    if len(str(quantity)) > MAX_QUANTITY_CHARACTERS:
        raise ValueError(f"a quantity has at most {MAX_QUANTITY_CHARACTERS} characters")
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is not a quantity such as 50Mi")
    number, suffix, exponent = match.groups()
    power = max(-_FARTHEST_POWER, min(int(exponent or 0), _FARTHEST_POWER))
    billionths = ceil(Fraction(number) * _FACTORS[suffix] * Fraction(10) ** power * 10**9)
    if not least * 10**9 <= billionths <= greatest * 10**9:
        raise ValueError(f"{quantity!r} is not {bounds}")
    return ceil(Fraction(billionths, 10**9))


def _checked_rate(quantity: int | str) -> int | str:
    bytes_per_second(quantity)
    return quantity


def _checked_bytes(quantity: int | str) -> int | str:
    bytes_of(quantity)
    return quantity


def _checked_byte_limit(quantity: int | str) -> int | str:
    byte_limit_of(quantity)
    return quantity


def _quantity_schema(least: int, greatest: int, ends: tuple[str, str], message: str) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": MAX_QUANTITY_CHARACTERS,
            "x-kubernetes-int-or-string": True,
            VALIDATIONS: [
                rule(
                    f"type(self) == int ? (self >= {least} && self <= {greatest})"
                    f" : (isQuantity(self) && quantity(self).compareTo(quantity('{ends[0]}')) >= 0"
                    f" && quantity(self).compareTo(quantity('{ends[1]}')) <= 0)",
                    message,
                )
            ],
        }
    )


Rate = Annotated[
    int | str,
    AfterValidator(_checked_rate),
    _quantity_schema(
        LEAST_RATE,
        GREATEST_RATE,
        ("1Ki", "1Ti"),
        "must be a quantity of bytes per second from 1Ki to 1Ti, such as 50Mi",
    ),
]
"""Bytes per second as an integer or a quantity, 1Ki to 1Ti; `bytes_per_second` gives the number."""
ByteQuantity = Annotated[
    int | str,
    AfterValidator(_checked_bytes),
    _quantity_schema(
        LEAST_BYTES, GREATEST_BYTES, ("1Ki", "1Pi"), "must be a quantity of bytes from 1Ki to 1Pi, such as 500Gi"
    ),
]
"""Bytes as an integer or a quantity, 1Ki to 1Pi; `bytes_of` gives the number."""
ByteLimit = Annotated[
    int | str,
    AfterValidator(_checked_byte_limit),
    _quantity_schema(0, GREATEST_BYTES, ("0", "1Pi"), "must be a quantity of bytes from 0 to 1Pi, such as 1Mi"),
]
"""Bytes as an integer or a quantity, 0 to 1Pi; `byte_limit_of` gives the number."""


# --- Kafka's names ---

BrokerId = Annotated[int, Field(ge=0, le=INT32_MAX)]
PartitionId = Annotated[int, Field(ge=0, le=INT32_MAX)]
TopicName = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TOPIC_NAME_CHARACTERS, pattern=r"^[a-zA-Z0-9._-]+$"),
    Schema(rule("self != '.' && self != '..'", "a topic cannot be named '.' or '..'")),
]
Replicas = Annotated[
    tuple[BrokerId, ...],
    Field(min_length=1, max_length=MAX_REPLICAS),
    Schema(rule("self.all(r, self.exists_one(s, s == r))", "names a broker more than once")),
]
"""Broker ids, each once; the first is the preferred leader."""
TopicPattern = Annotated[str, Field(min_length=1, max_length=MAX_TOPIC_NAME_CHARACTERS, pattern=r"^[a-zA-Z0-9._*?-]+$")]
"""A name of topics, with * for any characters and ? for one."""
ObservedTopic = Annotated[str, Field(max_length=MAX_TOPIC_NAME_CHARACTERS)]
ObservedReplicas = Annotated[tuple[BrokerId, ...], Field(max_length=MAX_OBSERVED_REPLICAS)]
"""Names and broker ids as Kafka reported them; this API does not validate them."""

Count = Annotated[int, Field(ge=0)]

NEVER_WRITTEN = -1
"""The observedGeneration of a status that the operator has not written, or that was wiped: the schema's default.

kstatus then calls a new object InProgress. The models read it as None.
"""
ObservedGeneration = Annotated[
    Count | None,
    BeforeValidator(lambda generation: None if generation == NEVER_WRITTEN else generation),
    Field(json_schema_extra={"minimum": NEVER_WRITTEN, "default": NEVER_WRITTEN}),
]


def _cut(limit: int) -> BeforeValidator:
    return BeforeValidator(lambda text: cut(text, limit) if isinstance(text, str) else text)


Text = Annotated[str, _cut(MAX_MESSAGE_CHARACTERS), Field(max_length=MAX_MESSAGE_CHARACTERS)]
ShortText = Annotated[str, _cut(MAX_SHORT_TEXT_CHARACTERS), Field(max_length=MAX_SHORT_TEXT_CHARACTERS)]
"""Sentences of a status. One that is too long is cut, so that the status can still be written."""
Seconds = Annotated[int, Field(ge=1, le=YEAR_SECONDS)]
TtlSeconds = Annotated[int, Field(ge=0, le=YEAR_SECONDS)]
"""How long an object stays that has come to its end; 0 is not at all."""


# --- Kubernetes' shapes ---


def _whole_seconds(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC).replace(microsecond=0)
    except OverflowError as error:
        raise ValueError("in UTC it is not within the years 1 to 9999") from error


Time = Annotated[AwareDatetime, AfterValidator(_whole_seconds)]
"""UTC in whole seconds, as Kubernetes writes it, so that a value that was written equals the one read back."""
RecordedTime = Annotated[Time, Field(json_schema_extra={"maxLength": 40})]
"""The same in a spec, whose strings all have a bound."""

NamespaceName = Annotated[
    str, Field(min_length=1, max_length=MAX_LABEL_CHARACTERS, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]
ObjectName = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
SecretKey = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[-._a-zA-Z0-9]+$")]


class SecretKeyRef(Model):
    """One key of a Secret in the namespace of the resource that refers to it."""

    name: ObjectName
    """Name of the Secret."""
    key: SecretKey
    """Key within the Secret."""


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One part of the resource's state, in the common shape of Kubernetes' conditions."""

    type: Annotated[str, Field(min_length=1, max_length=316, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """What the condition is about, such as Ready."""
    status: ConditionStatus
    """True, False or Unknown."""
    observed_generation: Count | None = None
    """The metadata.generation that this condition was judged on."""
    last_transition_time: Time
    """When the status last changed from one value to another."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Why, as one CamelCase word that programs can match."""
    message: Text
    """Why, as a sentence for people, with what to do about it."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=MAX_CONDITIONS),
    Schema(list_map_keys=("type",)),
]


class OwnerReference(Model):
    """The object that an object belongs to, in the same namespace."""

    kind: str
    name: str
    uid: str


class ObjectMeta(Model):
    """The part of an object's metadata that the operator reads."""

    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class CustomResource(Model):
    """One object of a kind of ours; subclasses add its `spec`, and its `status` if it has one."""

    KIND: ClassVar[str]
    PLURAL: ClassVar[str]
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ()

    metadata: ObjectMeta
