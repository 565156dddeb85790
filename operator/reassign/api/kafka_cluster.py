"""The KafkaCluster resource: a connection, the budgets on it, and the brake."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from reassign.api.common import (
    BrokerId,
    ByteLimit,
    Conditions,
    Count,
    CustomResource,
    Model,
    NamespaceName,
    ObjectName,
    ObservedGeneration,
    ObservedReplicas,
    ObservedTopic,
    PartitionId,
    Rate,
    RecordedTime,
    Rule,
    Schema,
    SecretKey,
    SecretKeyRef,
    ShortText,
    Time,
    TopicPattern,
    rule,
)
from reassign.api.limits import (
    MAX_ALLOWED_NAMESPACES,
    MAX_BOOTSTRAP_CHARACTERS,
    MAX_BROKERS,
    MAX_CREDENTIAL_CHARACTERS,
    MAX_FOREIGN,
    MAX_ID_CHARACTERS,
    MAX_MOVES_PER_BROKER,
    MAX_PARTITIONS_IN_FLIGHT,
    MAX_PATTERNS,
    MAX_REASON_CHARACTERS,
    MAX_SHORT_TEXT_CHARACTERS,
    MAX_URL_CHARACTERS,
    MAX_USERS,
)
from reassign.api.partition_reassignment import Throttle


class Mechanism(StrEnum):
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    PLAIN = "PLAIN"
    OAUTHBEARER = "OAUTHBEARER"


class Execution(StrEnum):
    RUN = "Run"
    PAUSE = "Pause"
    CANCEL_OURS = "CancelOurs"
    CANCEL_ALL = "CancelAll"


class ThrottleDeletionPolicy(StrEnum):
    RESTORE = "Restore"
    ORPHAN = "Orphan"


class PauseWhen(StrEnum):
    UNDER_MIN_ISR = "UnderMinIsr"
    UNDER_REPLICATED = "UnderReplicated"
    NEVER = "Never"


class Pacing(StrEnum):
    FIXED = "Fixed"
    ADAPTIVE = "Adaptive"


class ReplicationFactorGuard(StrEnum):
    NATIVE = "Native"
    EMULATED = "Emulated"


class CertificateSecretRef(Model):
    """A Secret with a client certificate and its key, both PEM."""

    name: ObjectName
    """Name of the Secret."""
    certificate_key: SecretKey = "tls.crt"
    """Key of the certificate within the Secret."""
    private_key_key: SecretKey = "tls.key"
    """Key of the private key within the Secret."""


class Tls(Model):
    """How to speak TLS with the brokers. An empty object means TLS with the system's certificate
    authorities."""

    ca_secret_ref: SecretKeyRef | None = None
    """The certificate authorities, PEM, that brokers must be signed by. Unset: the system's."""
    certificate_secret_ref: CertificateSecretRef | None = None
    """The certificate to present, where brokers ask for one."""


TokenEndpointUrl = Annotated[
    str,
    Field(
        max_length=MAX_URL_CHARACTERS,
        pattern=r"^(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?)([/?][^\s#]*)?$",
    ),
]


class OAuth(Model):
    """Where and how to obtain OAuth access tokens, by the client credentials grant."""

    token_endpoint_url: TokenEndpointUrl
    """Address of the token endpoint: https, since the client's secret is sent there; http only to localhost,
    127.0.0.1 or [::1]."""
    client_id: Annotated[str, Field(min_length=1, max_length=MAX_CREDENTIAL_CHARACTERS)]
    """The client's id."""
    client_secret_ref: SecretKeyRef
    """The client's secret; sent by HTTP Basic authentication."""
    scope: Annotated[str, Field(min_length=1, max_length=MAX_SHORT_TEXT_CHARACTERS)] | None = None
    """Scope to ask for; several are separated by spaces."""
    ca_secret_ref: SecretKeyRef | None = None
    """The certificate authorities, PEM, of the token endpoint. Unset: the system's."""


class Sasl(Model):
    """How to authenticate to the brokers."""

    RULES: ClassVar = (
        rule(
            "self.mechanism == 'OAUTHBEARER' || has(self.username) != has(self.usernameSecretRef)",
            "sasl needs exactly one of username and usernameSecretRef with this mechanism",
        ),
        rule(
            "self.mechanism == 'OAUTHBEARER' || has(self.passwordSecretRef)",
            "sasl needs passwordSecretRef with this mechanism",
        ),
        rule(
            "(self.mechanism == 'OAUTHBEARER') == has(self.oauth)",
            "sasl needs oauth with mechanism OAUTHBEARER, and takes it with no other",
        ),
        rule(
            "self.mechanism != 'OAUTHBEARER' || !has(self.username) && !has(self.usernameSecretRef)"
            " && !has(self.passwordSecretRef)",
            "sasl takes neither user name nor password with mechanism OAUTHBEARER",
        ),
    )

    mechanism: Mechanism
    """SASL mechanism that the listener asks for."""
    username: Annotated[str, Field(min_length=1, max_length=MAX_CREDENTIAL_CHARACTERS)] | None = None
    """User name, in plain text; or use usernameSecretRef."""
    username_secret_ref: SecretKeyRef | None = None
    """User name, from a Secret."""
    password_secret_ref: SecretKeyRef | None = None
    """Password, from a Secret."""
    oauth: OAuth | None = None
    """Where tokens come from, with mechanism OAUTHBEARER."""
    allow_plaintext: bool = False
    """Whether SASL may be used without tls. Everything is then sent unencrypted; with PLAIN and OAUTHBEARER that
    includes the password or the token."""


class NamespaceLimits(Model):
    """How much the PartitionReassignments of one namespace may move at once, within the limits of the KafkaCluster."""

    partitions_in_flight: Annotated[int, Field(ge=1, le=MAX_PARTITIONS_IN_FLIGHT)] | None = None
    """Partitions of one namespace in flight at once. Unset: no bound but the KafkaCluster's."""
    moves_per_broker: Annotated[int, Field(ge=1, le=MAX_MOVES_PER_BROKER)] | None = None
    """Replicas that one namespace adds to any one broker at once. Unset: no bound but the KafkaCluster's."""


class Limits(Model):
    """Bounds on what all PartitionReassignments of this cluster do together."""

    RULES: ClassVar = (
        rule(
            "!has(self.minThrottle) || !has(self.maxThrottle)"
            " || quantity(string(self.minThrottle)).compareTo(quantity(string(self.maxThrottle))) <= 0",
            "minThrottle is above maxThrottle: lower the one, or raise the other",
            ".minThrottle",
        ),
    )

    partitions_in_flight: Annotated[int, Field(ge=1, le=MAX_PARTITIONS_IN_FLIGHT)] = 200
    """Partitions in flight at once."""
    pacing: Pacing = Pacing.FIXED
    """Whether partitionsInFlight is the bound (Fixed), or its maximum (Adaptive). Adaptive halves the bound when
    partitions that are not being moved lose in-sync replicas, and raises it by one at a time when they are back. Only
    new moves are bounded: moves in flight go on. status.pacing shows the bound."""
    moves_per_broker: Annotated[int, Field(ge=1, le=MAX_MOVES_PER_BROKER)] = 5
    """Replicas being added to any one broker at once; never above. Brokers that are copied from count when a
    move is admitted."""
    small_move_bytes: ByteLimit = "1Mi"
    """A move that copies no more bytes is small. It counts towards partitionsInFlight alone, and towards no
    movesPerBroker. A move of unknown size is not small. 0: no move is small."""
    per_namespace: NamespaceLimits | None = None
    """Bounds for each of the allowedNamespaces, each by itself. The KafkaCluster's own namespace has none. Unset: no
    bounds but those above."""
    max_throttle: Rate | None = None
    """The highest rate, between brokers or between log directories, that a PartitionReassignment may ask for, bytes
    per second; one that asks for more is refused (ThrottleAboveMaximum). One that asks for none gets throttle, if
    that is set. Unset: no bound."""
    min_throttle: Rate | None = None
    """The lowest such rate; one that asks for less is refused (ThrottleBelowMinimum). Brokers have one rate for all
    moves, so one PartitionReassignment with a low rate slows all others. Unset: no bound."""
    min_free_disk_percent: Annotated[int, Field(ge=0, le=100)] = 10
    """A move is blocked when it would leave less than this free on the volumes of a broker that gets a replica. Copies
    in flight to that broker count. A volume of unknown size is taken to have room."""


class AllowedNamespace(Model):
    """A namespace whose PartitionReassignments may refer to this KafkaCluster."""

    name: NamespaceName
    """Name of the namespace."""
    topics: Annotated[tuple[TopicPattern, ...], Field(min_length=1, max_length=MAX_PATTERNS)]
    """Topics that they may move: names, with * for any characters and ? for one."""


_HOST_PORT = r"([a-zA-Z0-9._-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"
NO_PORT = ":(0+|6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4})(,|$)"
"""A number in bootstrapServers that can be no port, which are from 1 to 65535."""


def _within_maximum(rate: str) -> Rule:
    """Return the rule that a default rate is not above the maximum, unless both are stored already."""
    return rule(
        f"!has(self.limits.maxThrottle) || !has(self.throttle) || !has(self.throttle.{rate})"
        f" || quantity(string(self.throttle.{rate})).compareTo(quantity(string(self.limits.maxThrottle))) <= 0"
        f" || oldSelf.?throttle.?{rate}.orValue('') == self.throttle.{rate}"
        " && oldSelf.?limits.?maxThrottle.orValue('') == self.limits.maxThrottle",
        f"throttle.{rate} is above limits.maxThrottle: lower it, or raise the maximum",
        f".throttle.{rate}",
        optional_old_self=True,
    )


def _within_minimum(rate: str) -> Rule:
    """Return the rule that a default rate is not below the minimum."""
    return rule(
        f"!has(self.limits.minThrottle) || !has(self.throttle) || !has(self.throttle.{rate})"
        f" || quantity(string(self.throttle.{rate})).compareTo(quantity(string(self.limits.minThrottle))) >= 0",
        f"throttle.{rate} is below limits.minThrottle: raise it, or lower the minimum",
        f".throttle.{rate}",
    )


class KafkaClusterSpec(Model):
    """How to reach a Kafka cluster, and what the operator may do to it."""

    RULES: ClassVar = (
        # what an older version stored stays: an edit of anything else, such as execution, must not be refused
        rule(
            "!has(self.sasl) || has(self.tls) || self.sasl.allowPlaintext"
            " || oldSelf.hasValue() && !has(oldSelf.value().tls)"
            " && has(oldSelf.value().sasl) && oldSelf.value().sasl == self.sasl",
            "sasl without tls is not encrypted: set tls, or sasl.allowPlaintext: true",
            ".sasl",
            optional_old_self=True,
        ),
        rule(
            f"!self.bootstrapServers.matches('{NO_PORT}')"
            " || oldSelf.hasValue() && oldSelf.value().bootstrapServers == self.bootstrapServers",
            "a port is from 1 to 65535",
            ".bootstrapServers",
            optional_old_self=True,
        ),
        _within_maximum("interBroker"),
        _within_maximum("logDir"),
        _within_minimum("interBroker"),
        _within_minimum("logDir"),
    )

    bootstrap_servers: Annotated[
        str, Field(min_length=3, max_length=MAX_BOOTSTRAP_CHARACTERS, pattern=rf"^{_HOST_PORT}(,{_HOST_PORT})*$")
    ]
    """Bootstrap brokers: host:port, several separated by commas. The other brokers are discovered from these."""
    tls: Tls | None = None
    """TLS to the brokers. Unset: plain text. An empty object: TLS with the system's certificate
    authorities."""
    sasl: Sasl | None = None
    """Authentication by SASL. Unset: none, or the certificate of tls."""
    execution: Execution = Execution.RUN
    """The emergency brake. Run: carry out what is declared. Pause: start nothing new. CancelOurs: roll back
    what this operator has in flight. CancelAll: also roll back every other move between brokers, and
    keep a copy of it in ConfigMaps beside this KafkaCluster, as the stock tool's JSON. Copies between log directories
    that others began go on. With Run, the declared moves start again."""
    limits: Limits = Limits()
    """Bounds on what all PartitionReassignments of this cluster do together."""
    throttle: Throttle | None = None
    """Rates for PartitionReassignments that name none, each by itself; neither above limits.maxThrottle nor below
    limits.minThrottle. Unset: not throttled."""
    pause_when: PauseWhen = PauseWhen.UNDER_MIN_ISR
    """Start no new moves while partitions outside our own moves are UnderMinIsr (fewer in sync than
    min.insync.replicas, or no leader) or UnderReplicated; or Never pause. Our own moves are those in flight
    and those that a PartitionReassignment still waits for. Checked every 15 seconds while something waits."""
    allowed_namespaces: Annotated[
        tuple[AllowedNamespace, ...],
        Field(max_length=MAX_ALLOWED_NAMESPACES),
        Schema(list_map_keys=("name",)),
    ] = ()
    """Other namespaces whose PartitionReassignments may refer to this KafkaCluster. Its own always may."""
    deletion_policy: ThrottleDeletionPolicy = ThrottleDeletionPolicy.RESTORE
    """What deleting this KafkaCluster does to throttles that are still set: Restore waits until every registered broker
    and every topic has its prior values back. Orphan leaves the throttles, and names them in an event. It can be
    changed during the deletion, where a broker is down for good. Both wait for what is in flight."""


class BrokerStatus(Model):
    """One broker, as the cluster reports it."""

    id: BrokerId
    """The broker's id."""
    rack: Annotated[str, Field(max_length=MAX_SHORT_TEXT_CHARACTERS)] | None = None
    """Its broker.rack, cut where it is longer."""
    fenced: bool = False
    """Registered, but not in service."""
    cordoned: bool | None = None
    """Whether all its log directories are cordoned, by any client: it takes no new replicas. As the broker reported it
    last; absent where it was not asked, or its version does not say."""


class ForeignPartition(Model):
    """A partition that another client is moving."""

    topic: ObservedTopic
    """Name of the topic."""
    partition: PartitionId
    """Number of the partition."""
    adding_replicas: ObservedReplicas = ()
    """Brokers whose replica is being added."""
    removing_replicas: ObservedReplicas = ()
    """Brokers whose replica is being removed."""


class ForeignInFlight(Model):
    """Moves on the cluster that others began, not a PartitionReassignment of this operator."""

    count: Count = 0
    """How many partitions; exact."""
    partitions: Annotated[tuple[ForeignPartition, ...], Field(max_length=MAX_FOREIGN)] = ()
    """At most 100 of them."""


class ThrottleUser(Model):
    """A PartitionReassignment that a throttle is set for."""

    namespace: NamespaceName
    """Its namespace."""
    name: ObjectName
    """Its name."""
    uid: Annotated[str, Field(max_length=MAX_ID_CHARACTERS)]
    """Its uid."""


class ThrottleStatus(Model):
    """Throttles that are set on the cluster, and for which resources."""

    inter_broker: Count | None = None
    """Rate between brokers, bytes per second."""
    log_dir: Count | None = None
    """Rate between log directories, bytes per second."""
    users: Annotated[tuple[ThrottleUser, ...], Field(max_length=MAX_USERS)] = ()
    """PartitionReassignments that they are set for, at most 1000; restored after the last."""
    via: BrokerId | None = None
    """The broker that the last changes of topics went to; those of a broker go to that broker."""
    sent_at: RecordedTime | None = None
    """When the last changes were sent."""
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARACTERS)] | None = None
    """Why a throttle cannot be set or restored now, as one word."""
    message: Annotated[str, Field(max_length=MAX_SHORT_TEXT_CHARACTERS)] | None = None
    """The same as a sentence."""


class PacingStatus(Model):
    """The bound that limits.pacing Adaptive sets within limits.partitionsInFlight."""

    partitions_in_flight: Annotated[int, Field(ge=1, le=MAX_PARTITIONS_IN_FLIGHT)]
    """Partitions that may be in flight at once now."""
    last_halved_time: Time | None = None
    """When it was halved last; absent when it is at the limit."""
    message: ShortText | None = None
    """Why, and what to do, as a sentence."""


ClusterId = Annotated[str, Field(max_length=MAX_ID_CHARACTERS)]


class KafkaClusterStatus(Model):
    """The observed state of the cluster."""

    observed_generation: ObservedGeneration = None
    """The metadata.generation that this status is about; -1 before the first one is written."""
    conditions: Conditions = ()
    """Ready: the cluster is reached and served. Paused while True: nothing new starts, by execution or
    pauseWhen. Unclaimed while True: another installation of the operator on the same brokers would not be noticed, or
    has a claim that cannot be read. ThrottleDrift while True: another client changes throttles in use again and again.
    Reconciling while it connects, or cannot be reached for less than 10 minutes. Stalled while True: the message says
    what is wrong, and what to do."""
    cluster_id: ClusterId | None = None
    """Kafka's id of the cluster. A ReassignmentRecord has it since the first connection: when it changes, nothing more
    is done."""
    brokers: Annotated[tuple[BrokerStatus, ...], Field(max_length=MAX_BROKERS)] = ()
    """The registered brokers, at most 1000, by id."""
    replication_factor_guard: ReplicationFactorGuard | None = None
    """Who forbids a change of the replication factor: Native, the brokers (Kafka 4.1 and later), or
    Emulated, the operator right before each alter."""
    in_flight: Count | None = None
    """Partitions in flight that PartitionReassignments of this operator move."""
    foreign_in_flight: ForeignInFlight | None = None
    """Moves that others began."""
    pacing: PacingStatus | None = None
    """How many partitions may be in flight now, with limits.pacing Adaptive. A restarted operator continues from it."""
    throttle: ThrottleStatus | None = None
    """The rates that are set, and for which PartitionReassignments. What was there before is in a
    ReassignmentRecord."""


class KafkaCluster(CustomResource):
    """A Kafka cluster whose partitions may be moved: how to reach it, how much may move at once, and the
    emergency brake."""

    KIND = "KafkaCluster"
    PLURAL = "kafkaclusters"
    SHORT_NAMES = ("kcl",)

    spec: KafkaClusterSpec
    """How to reach the cluster, and what the operator may do to it."""
    status: KafkaClusterStatus = KafkaClusterStatus()
    """The observed state of the cluster. Written by the operator."""
