"""A KafkaCluster: its identity, permission and rules, what keeps it from being served, and its status."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import (
    BrokerStatus,
    Execution,
    ForeignInFlight,
    ForeignPartition,
    KafkaCluster,
    KafkaClusterStatus,
    PacingStatus,
)
from reassign.api.limits import MAX_BROKERS, MAX_FOREIGN, MAX_SHORT_TEXT_CHARACTERS
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.brake import foreign, partitions_held_by
from reassign.core.claim import ClaimState
from reassign.core.configs.stage import left_in_flight, needed
from reassign.core.duplicates import Peer, duplicate_of, not_yet_stopped, peers_throttles
from reassign.core.model.cluster_rules import ClusterRules, ConfigRules
from reassign.core.model.permission import Permission, not_readable
from reassign.core.model.problem import Audience, Name, Names, Problem, ids, private, render
from reassign.core.model.read_back import DeclaredCluster
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition, cordoned
from reassign.core.report.conditions import ConditionState, conditions, unready
from reassign.core.report.events import Event, Happened
from reassign.errors import ClusterError, Reason
from reassign.text import counted, listed


def hold_of(
    cluster: DeclaredCluster,
    unsettled: Collection[str],
    throttle: RecordedConfigs | None = None,
    orphaned: Collection[TopicPartition] = (),
) -> Problem | None:
    """Return why a KafkaCluster that is being deleted is not served; moves in flight go on.

    `unsettled` are the objects on it that have not ended. `orphaned` are the moves that keep their throttles without a
    resource.
    """
    if not cluster.metadata.deletion_timestamp:
        return None
    deleted = f"the KafkaCluster {cluster.metadata.namespace}/{cluster.metadata.name} is being deleted"
    if not unsettled:
        moves = tuple(Name(str(tp), tp.topic) for tp in sorted(orphaned))
        waits = ("; they stay until these orphaned moves end: ", Names(moves, "moves of other topics")) if moves else ()
        return Problem(
            Reason.RESTORING_THROTTLES,
            f"{deleted}: it goes when its throttles are restored",
            private(f" ({where_throttled(throttle)})", ""),
            *waits,
            "; deletionPolicy: Orphan leaves them as they are, such as on a broker that is down for good",
        )
    names = tuple(Name(name, namespaces=frozenset({name.split("/")[0]})) for name in sorted(unsettled))
    return Problem(
        Reason.CLUSTER_DELETED,
        f"{deleted}: nothing new starts on it, and it goes when all that refers to it has ended or is deleted; "
        "it waits for ",
        Names(names, f"{counted(len(names), 'resource')} of other namespaces"),
    )


def where_throttled(record: RecordedConfigs | None) -> str:
    """Return the brokers and topics on which a record has throttles, in words."""
    brokers = [f"broker {throttle.broker}" for throttle in record.brokers if throttle.configs] if record else []
    topics = [f"topic {throttle.topic}" for throttle in record.topics] if record else []
    return listed([*brokers, *topics])


def orphaned_throttles(throttle: RecordedConfigs) -> Event:
    """Return the event of a KafkaCluster that leaves throttles behind."""
    where = where_throttled(throttle)
    note = f"deletionPolicy is Orphan: throttles and cordons stay set on {where}; restore them with kafka-configs.sh"
    return Event(True, Happened.THROTTLES_ORPHANED, note)


def cordons_left(throttle: RecordedConfigs | None) -> Event | None:
    """Return the event of a KafkaCluster that goes before brokers that are down had their cordons lifted, if any."""
    left = {
        throttle.broker: "absent" if config.prior is None else f'"{config.prior}"'
        for throttle in (throttle.brokers if throttle else ())
        for config in throttle.configs
        if config.name == CORDONED_LOG_DIRS
    }
    if not left:
        return None
    where = listed(f"broker {broker} (before: {prior})" for broker, prior in left.items())
    note = (
        f"{CORDONED_LOG_DIRS} stays set on {where}: only a broker that is up can change it. When it is back, restore "
        "what was there with kafka-configs.sh"
    )
    return Event(True, Happened.CORDONS_LEFT, note)


def check_identity(pinned: str | None, cluster_id: str) -> None:
    """Raise ClusterError when the brokers are of another cluster than the one that is pinned, if one is."""
    if pinned and pinned != cluster_id:
        raise ClusterError(
            Reason.CLUSTER_ID_CHANGED,
            f"the brokers are of cluster {cluster_id}, but this KafkaCluster stands for {pinned}; "
            "correct bootstrapServers, or make another KafkaCluster for the other cluster",
        )


def permission_of(cluster: DeclaredCluster) -> Permission:
    """Return who may move what: its own namespace everything, others what spec.allowedNamespaces says."""
    others = {allowed.name: allowed.topics for allowed in cluster.spec.allowed_namespaces}
    owner = cluster.metadata.namespace
    return Permission(others | {owner: ("*",)}, owner)


def unread_namespaces(cluster: DeclaredCluster, unreadable: Collection[str]) -> Problem | None:
    """Return which allowed namespaces cannot be read now: nothing new of theirs is served."""
    names = sorted(namespace for namespace in permission_of(cluster).allowed if namespace in unreadable)
    if not names:
        return None
    return Problem(
        Reason.NOT_AUTHORIZED,
        f"the operator cannot read {', '.join(names)}: nothing new begins for them; create the namespace with the "
        "chart's Role and RoleBinding, or remove it from spec.allowedNamespaces",
    )


@dataclass(frozen=True, slots=True)
class ClusterHold:
    """How a cluster is served now."""

    hold: Problem | None = None
    """Why the cluster is not served at all."""
    pause: Problem | None = None
    """Why nothing new starts."""
    pauses: Mapping[str, Problem | None] = field(default_factory=dict)
    """The same for the waves of plans that evacuate lost brokers, by the uid of the plan."""
    stuck: Problem | None = None
    """Why the brake has not undone everything."""
    left: Problem | None = None
    """Why throttles that another KafkaCluster has left are not taken over."""
    pacing: PacingStatus | None = None
    """The budget, where fewer moves may be in flight than the limit allows."""
    older: Problem | None = None
    """Why another KafkaCluster is served in its place."""
    younger: Problem | None = None
    """Why its throttles are left alone."""
    restoring: Problem | None = None
    """Why it sets no throttles."""
    keeps: bool = False
    """Whether the throttles that it has set have to stay for now."""
    claim: ClaimState | None = None
    """What is known of other installations on the same brokers."""
    drift: Problem | None = None
    """Which throttles another client changes again and again."""
    unread: Problem | None = None
    """Which of its namespaces cannot be read."""
    unseen: Problem | None = None
    """Why its own namespace cannot be read."""
    unreadable: Collection[str] = ()
    """All namespaces that cannot be read."""

    @property
    def claimed(self) -> Problem | None:
        """Why another installation serves the cluster, if one does."""
        return self.claim.claimed if self.claim else None

    @property
    def named(self) -> Problem | None:
        """`hold` as the KafkaCluster itself says it: its resources say less."""
        if self.claim and self.hold and self.hold == self.claimed:
            return Problem(self.hold.reason, f"{self.hold.message}. {self.claim.holder}")
        return self.hold


def hold_now(
    cluster: DeclaredCluster,
    snapshot: Snapshot,
    peers: Collection[Peer],
    unsettled: Collection[str],
    throttle: RecordedConfigs | None,
    now: float,
    claim: ClaimState | None = None,
    unreadable: Collection[str] = (),
) -> ClusterHold:
    """Return how a cluster is served, by what is not settled on it and by its `peers` on the same brokers.

    `throttle` is the record of what is set for it.

    A KafkaCluster in an `unreadable` namespace may have changed unseen: nothing new begins, and its throttles stay.
    """
    unseen = not_readable(cluster.metadata.namespace) if cluster.metadata.namespace in unreadable else None
    older = duplicate_of(cluster, snapshot.cluster_id, peers, now)
    restoring, younger = peers_throttles(cluster, snapshot, peers, now)
    return ClusterHold(
        hold=hold_of(cluster, unsettled, throttle, left_in_flight(throttle, snapshot))
        or older
        or (claim.claimed if claim else None)
        or unseen,
        pause=not_yet_stopped(cluster, snapshot.cluster_id, peers, now),
        older=older,
        younger=younger or unseen,
        restoring=restoring,
        keeps=needed(throttle, snapshot) or bool(claim and claim.claimed),
        claim=claim,
        unread=unread_namespaces(cluster, unreadable),
        unseen=unseen,
        unreadable=unreadable,
    )


def unknown_hold(problem: Problem) -> ClusterHold:
    """Return how a cluster is served of which that cannot be found: only what is ours goes back, whatever the brake."""
    return ClusterHold(hold=problem, older=problem, younger=problem)


def rules_of(
    cluster: DeclaredCluster,
    hold: ClusterHold,
    throttle: RecordedConfigs | None = None,
    cordons: frozenset[int] = frozenset(),
) -> ClusterRules:
    """Return the rules for the cluster's resources now; `throttle` is the record of what is set.

    `cordons` are the brokers to cordon. A KafkaCluster that is being deleted, or is not served, wants none.
    """
    unserved = cluster.metadata.deletion_timestamp or hold.older or hold.claimed
    limits = cluster.spec.limits
    if hold.pacing:
        limits = limits.model_copy(update={"partitions_in_flight": hold.pacing.partitions_in_flight})
    execution = cluster.spec.execution
    undecided = hold.claim.undecided if hold.claim else None
    if (hold.older or hold.claimed or hold.unseen) and execution is Execution.CANCEL_ALL:
        execution = Execution.CANCEL_OURS  # other clients' moves are the older one's, or of one that serves meanwhile
    return ClusterRules(
        limits=limits,
        hold=hold.hold or hold.pause or undecided,
        holds={uid: hold.hold or pause or undecided for uid, pause in hold.pauses.items()},
        execution=execution,
        permission=permission_of(cluster),
        throttle=replace(
            ConfigRules.of(cluster.spec, throttle),
            older=hold.older,
            younger=hold.younger,
            yields=hold.claimed or hold.restoring,
        ),
        unreadable=hold.unreadable,
        cordons=frozenset() if unserved else cordons,
    )


def brake_of(execution: Execution) -> Problem | None:
    """Return why nothing new starts, by the brake that people set."""
    if execution is Execution.RUN:
        return None
    if execution is Execution.PAUSE:
        return Problem(
            Reason.PAUSED, "spec.execution of the KafkaCluster is Pause: nothing new starts until it is Run again"
        )
    return Problem(
        Reason.CANCELLED_BY_BRAKE,
        f"spec.execution of the KafkaCluster is {execution}: what is in flight goes back to its original replicas, "
        "and nothing starts until it is Run again",
    )


def cluster_status(
    cluster: KafkaCluster,
    snapshot: Snapshot,
    resources: Sequence[Resource],
    hold: ClusterHold,
    now: datetime,
    throttle: RecordedConfigs | None = None,
) -> KafkaClusterStatus:
    """Return the status of a cluster that can be seen; of its throttles only the rates, and for whom they are set."""
    others = foreign(partitions_held_by(resources), snapshot)
    audience = permission_of(cluster).audience(cluster.metadata.namespace)
    serving = _serving(snapshot, hold, audience)
    status = unready_status(cluster, hold.named, now) if hold.named else _judged(cluster, serving, now)
    return status.model_copy(
        update={
            "cluster_id": snapshot.cluster_id,
            "brokers": tuple(
                BrokerStatus(
                    id=b.id,
                    rack=b.rack and b.rack[:MAX_SHORT_TEXT_CHARACTERS],
                    fenced=b.fenced,
                    cordoned=cordoned(snapshot.log_dirs.get(b.id, {})),
                )
                for b in sorted(snapshot.brokers.values(), key=lambda b: b.id)[:MAX_BROKERS]
            ),
            "replication_factor_guard": snapshot.guard,
            "pacing": hold.pacing,
            "throttle": throttle and throttle.shown,
            "in_flight": len(snapshot.reassignments) - len(others),
            "foreign_in_flight": ForeignInFlight(
                count=len(others),
                partitions=tuple(
                    ForeignPartition(
                        topic=tp.topic,
                        partition=tp.partition,
                        adding_replicas=snapshot.reassignments[tp].adding,
                        removing_replicas=snapshot.reassignments[tp].removing,
                    )
                    for tp in others[:MAX_FOREIGN]
                ),
            ),
        }
    )


def _serving(snapshot: Snapshot, hold: ClusterHold, audience: Audience) -> list[ConditionState]:
    states = [ConditionState("Ready", True, "Connected", _registered(snapshot))]
    kinds = {
        "Paused": hold.pause,
        "Stalled": hold.stuck or hold.left,
        "Unclaimed": hold.claim.unclaimed if hold.claim else None,
        "NamespaceUnreadable": hold.unread,
    }
    for kind, problem in kinds.items():
        if problem:
            states.append(ConditionState(kind, True, problem.reason, render(problem, audience).message))
    if hold.drift:
        states.append(ConditionState("ThrottleDrift", True, "Repeated", hold.drift.message))
    return states


def _registered(snapshot: Snapshot) -> str:
    brokers = snapshot.brokers.values()
    fenced = [b.id for b in brokers if b.fenced]
    down = f", {len(fenced)} of them fenced (down or still starting): {ids(fenced)}" if fenced else ""
    return f"{counted(len(brokers), 'broker')} registered{down}"


def unready_status(cluster: KafkaCluster, problem: Problem, now: datetime) -> KafkaClusterStatus:
    """Return the status of a cluster that cannot be used now: what was known stays."""
    audience = permission_of(cluster).audience(cluster.metadata.namespace)
    return _judged(cluster, unready(problem.reason, render(problem, audience).message), now)


def _judged(cluster: KafkaCluster, states: Sequence[ConditionState], now: datetime) -> KafkaClusterStatus:
    generation = cluster.metadata.generation
    return cluster.status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions(cluster.status.conditions, states, generation, now),
        }
    )
