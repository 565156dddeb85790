"""The KafkaCluster resource: a connection, the budgets on it, and the brake."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from reassign.api.common import (
    BrokerId,
    Conditions,
    Count,
    Model,
    NamespaceName,
    ObjectName,
    ObservedReplicas,
    ObservedTopic,
    PartitionId,
    Rate,
    Resource,
    Schema,
    SecretKey,
    SecretKeyRef,
    ShortText,
    Time,
    TopicPattern,
    rule,
)
from reassign.api.partition_reassignment import Throttle

MAX_FOREIGN = 100


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
        max_length=2048,
        pattern=r"^(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?)([/?][^\s#]*)?$",
    ),
]


class OAuth(Model):
    """Where and how to obtain OAuth access tokens, by the client credentials grant."""

    token_endpoint_url: TokenEndpointUrl
    """Address of the token endpoint: https, since the client's secret is sent there; http only to localhost,
    127.0.0.1 or [::1]."""
    client_id: Annotated[str, Field(min_length=1, max_length=256)]
    """The client's id."""
    client_secret_ref: SecretKeyRef
    """The client's secret; sent by HTTP Basic authentication."""
    scope: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
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
    username: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """User name, in plain text; or use usernameSecretRef."""
    username_secret_ref: SecretKeyRef | None = None
    """User name, from a Secret."""
    password_secret_ref: SecretKeyRef | None = None
    """Password, from a Secret."""
    oauth: OAuth | None = None
    """Where tokens come from, with mechanism OAUTHBEARER."""


class Limits(Model):
    """Bounds on what all PartitionReassignments of this cluster do together."""

    partitions_in_flight: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Partitions in flight at once."""
    pacing: Pacing = Pacing.FIXED
    """Whether partitionsInFlight holds as it is (Fixed), or is only the most (Adaptive): then half of what is in
    flight is the bound when partitions that nobody moves lose replicas in sync, and when they have them back it
    grows by one at a time. It only bounds what starts: what is in flight goes on. status.pacing shows it."""
    moves_per_broker: Annotated[int, Field(ge=1, le=1000)] = 5
    """Replicas being added to any one broker at once; never above. Brokers that are copied from count when a
    move is admitted."""
    max_throttle: Rate | None = None
    """The highest rate, between brokers or between log directories, that a PartitionReassignment may ask for, bytes
    per second; one that asks for more is refused (ThrottleAboveMaximum). One that asks for none gets throttle, if
    that is set. Unset: no bound."""
    min_free_disk_percent: Annotated[int, Field(ge=0, le=100)] = 10
    """A move that would leave less than this free on the volumes of a broker that gets a replica is blocked,
    what is on its way there already counted. Volumes whose size is not known have room."""


class AllowedNamespace(Model):
    """A namespace whose PartitionReassignments may refer to this KafkaCluster."""

    name: NamespaceName
    """Name of the namespace."""
    topics: Annotated[tuple[TopicPattern, ...], Field(min_length=1, max_length=100)]
    """Topics that they may move: names, with * for any characters and ? for one."""


_HOST_PORT = r"([a-zA-Z0-9._-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}"


class KafkaClusterSpec(Model):
    """How to reach a Kafka cluster, and what may be done to it."""

    bootstrap_servers: Annotated[str, Field(min_length=3, max_length=4096, pattern=rf"^{_HOST_PORT}(,{_HOST_PORT})*$")]
    """Brokers to begin with: host:port, several separated by commas. All others are learnt from these."""
    tls: Tls | None = None
    """TLS to the brokers. Unset: plain text. An empty object: TLS with the system's certificate
    authorities."""
    sasl: Sasl | None = None
    """Authentication by SASL. Unset: none, or the certificate of tls."""
    execution: Execution = Execution.RUN
    """The emergency brake. Run: carry out what is declared. Pause: start nothing new. CancelOurs: roll back
    what this operator has in flight. CancelAll: roll back every move between brokers too, whoever began it,
    and keep a copy of it in ConfigMaps beside this KafkaCluster, as the stock tool's JSON; what others copy
    between log directories goes on. With Run, the declared moves start again."""
    limits: Limits = Limits()
    """Bounds on what all PartitionReassignments of this cluster do together."""
    throttle: Throttle | None = None
    """Rates for PartitionReassignments that name none, each by itself. Unset: not throttled."""
    pause_when: PauseWhen = PauseWhen.UNDER_MIN_ISR
    """Start no new moves while partitions outside our own moves are UnderMinIsr (fewer in sync than
    min.insync.replicas, or no leader) or UnderReplicated; or Never pause. Our own moves are those in flight
    and those that a PartitionReassignment still waits for. Looked at every 15 seconds while something waits."""
    allowed_namespaces: Annotated[
        tuple[AllowedNamespace, ...],
        Field(max_length=100),
        Schema(list_map_keys=("name",)),
    ] = ()
    """Other namespaces whose PartitionReassignments may refer to this KafkaCluster. Its own always may."""


class BrokerStatus(Model):
    """One broker, as the cluster reports it."""

    id: BrokerId
    """The broker's id."""
    rack: Annotated[str, Field(max_length=1024)] | None = None
    """Its broker.rack."""
    fenced: bool = False
    """Registered, but not in service."""


class ForeignPartition(Model):
    """A partition that someone else is moving."""

    topic: ObservedTopic
    """Name of the topic."""
    partition: PartitionId
    """Number of the partition."""
    adding_replicas: ObservedReplicas = ()
    """Brokers whose replica is being added."""
    removing_replicas: ObservedReplicas = ()
    """Brokers whose replica is being removed."""


class ForeignInFlight(Model):
    """Moves on the cluster that no PartitionReassignment of this operator began."""

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
    uid: Annotated[str, Field(max_length=64)]
    """Its uid."""


ConfigText = Annotated[str, Field(max_length=262_144)]


class ThrottleConfig(Model):
    """One throttle configuration that was set, and what it replaced."""

    name: Annotated[str, Field(min_length=1, max_length=249)]
    """Name of the configuration."""
    value: ConfigText
    """What was set, or for a list of replicas what was appended to it."""
    prior: ConfigText | None = None
    """What was there before: absent if there was nothing, empty if there was an explicit empty value."""
    replacing: ConfigText | None = None
    """The value set for the rate before this one, until this one has been seen on the broker."""


ThrottleConfigs = Annotated[tuple[ThrottleConfig, ...], Field(max_length=8)]


class CopiedTopic(Model):
    """Partitions of one topic that are copied from one log directory of a broker to another."""

    topic: ObservedTopic
    """Name of the topic."""
    partitions: Annotated[tuple[PartitionId, ...], Field(max_length=100_000)]
    """Numbers of the partitions."""


class BrokerThrottle(Model):
    """The throttle configurations set on one broker."""

    broker: BrokerId
    """The broker's id."""
    configs: ThrottleConfigs
    """What is set, and what was there before."""
    copying: Annotated[tuple[CopiedTopic, ...], Field(max_length=2000)] = ()
    """What the rate between log directories is set for."""


class TopicThrottle(Model):
    """The throttle configurations set on one topic."""

    topic: ObservedTopic
    """Name of the topic."""
    configs: ThrottleConfigs
    """What is set, and what was there before."""


class ThrottleStatus(Model):
    """Throttles that are set on the cluster, for whom, and what to restore afterwards. Written before they
    are set."""

    inter_broker: Count | None = None
    """Rate between brokers, bytes per second."""
    log_dir: Count | None = None
    """Rate between log directories, bytes per second."""
    users: Annotated[tuple[ThrottleUser, ...], Field(max_length=1000)] = ()
    """PartitionReassignments that they are set for, at most 1000; restored after the last."""
    brokers: Annotated[tuple[BrokerThrottle, ...], Field(max_length=1000)] = ()
    """Set on brokers."""
    topics: Annotated[tuple[TopicThrottle, ...], Field(max_length=2000)] = ()
    """Set on topics."""
    reason: Annotated[str, Field(max_length=128)] | None = None
    """What keeps a throttle from being set or restored now, as one word."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """The same as a sentence."""


class PacingStatus(Model):
    """What limits.pacing Adaptive makes of limits.partitionsInFlight."""

    partitions_in_flight: Annotated[int, Field(ge=1, le=10_000)]
    """Partitions that may be in flight at once now."""
    last_halved_time: Time | None = None
    """When it was halved last; absent when it is at the limit."""
    message: ShortText | None = None
    """Why, as a sentence, and what to do."""


class KafkaClusterStatus(Model):
    """The cluster as the operator finds it."""

    observed_generation: Count | None = None
    """The metadata.generation that this status is about."""
    conditions: Conditions = ()
    """Ready: the cluster is reached and served. Paused while True: nothing new starts, by execution or
    pauseWhen. Reconciling while it connects, or cannot be reached for less than 10 minutes. Stalled while True: the
    message says what is wrong, and what to do."""
    cluster_id: Annotated[str, Field(max_length=64)] | None = None
    """Kafka's id of the cluster, pinned at the first connection: when it changes, nothing more is done."""
    brokers: Annotated[tuple[BrokerStatus, ...], Field(max_length=1000)] = ()
    """The registered brokers."""
    replication_factor_guard: ReplicationFactorGuard | None = None
    """Who forbids a change of the replication factor: Native, the brokers (Kafka 4.1 and later), or
    Emulated, the operator right before each alter."""
    in_flight: Count | None = None
    """Partitions that PartitionReassignments of this operator have in flight."""
    foreign_in_flight: ForeignInFlight | None = None
    """Moves that someone else began."""
    pacing: PacingStatus | None = None
    """How many partitions may be in flight now, with limits.pacing Adaptive; what it goes on from after a restart."""
    throttle: ThrottleStatus | None = None
    """Throttles that are set, and what to restore afterwards."""


class KafkaCluster(Resource):
    """A Kafka cluster whose partitions may be moved: how to reach it, how much may move at once, and the
    emergency brake."""

    KIND = "KafkaCluster"
    PLURAL = "kafkaclusters"
    SHORT_NAME = "kcl"

    spec: KafkaClusterSpec
    """How to reach the cluster, and what may be done to it."""
    status: KafkaClusterStatus = KafkaClusterStatus()
    """The cluster as the operator finds it. Written by the operator."""
