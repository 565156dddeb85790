"""The claim on a cluster as a membership of a consumer group, by the classic protocol, without any topic.

The membership is static (KIP-345): the next process of the same installation takes it over without a rebalance, and it
ends SESSION_SECONDS after the last heartbeat. It has a thread and a connection of its own, because a JoinGroup that
waits for other members holds up whatever is behind it. So no reconciliation waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from kafka import errors
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from reassign.core.claim import SESSION_SECONDS, Claim, ClaimState, own_since, preceding, unreadable
from reassign.core.model.problem import Problem, bug_problem
from reassign.errors import Reason
from reassign.kafka.errors import needs_user
from reassign.kafka.wire import READ_SECONDS, Node, Wire
from reassign.text import cut, printable

log = structlog.get_logger()

GROUP_PREFIX = "kafka-reassign-operator-"
PROTOCOL_TYPE, PROTOCOL = "kafka-reassign-operator", "claim"
"""Another type than `consumer`: the brokers let no application join by accident, nor us its group."""
REBALANCE_SECONDS = 30.0
"""How long a join waits for the other members."""
HEARTBEAT_SECONDS, RETRY_SECONDS, REFUSED_SECONDS = 10.0, 1.0, 60.0
LEFT = (errors.UnknownMemberIdError, errors.FencedInstanceIdError, errors.IllegalGenerationError)
"""The membership has ended, or is another process's: begin anew."""


class Member(NamedTuple):
    """A membership of this process, in one generation of the group."""

    id: str
    generation: int


@dataclass(slots=True)
class Membership:
    """The claim of one installation on one cluster, kept once there is a line to the cluster.

    Several KafkaClusters of one installation have a membership each, named by their uid.
    """

    installation: str
    kafka_cluster: str
    cluster_id: str
    before_write: Callable[[], None]
    """Called before each request that makes or keeps the claim; when it raises, the request is not sent."""
    state: ClaimState = field(default_factory=lambda: ClaimState(time.monotonic()))
    """What is known of the claim."""
    _wire: Wire | None = None
    _coordinator: Node | None = None
    _member: Member | None = None
    _claim: Claim | None = None
    _unread: Problem | None = None
    """Which members' claims could not be read when they were looked at last."""
    _looked: bool = False
    """Whether the members have been read since this process joined: one that joined at the same time may precede it."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def group(self) -> str:
        return f"{GROUP_PREFIX}{self.cluster_id}"

    @property
    def _instance(self) -> str:
        return f"{self.installation}.{self.kafka_cluster}"

    def keep(self, wire: Wire) -> None:
        """Keep the claim over this line from now on, in a thread that ends with it."""
        if wire is not self._wire:
            self._wire, self._coordinator, self.state = wire, None, self.state.connected()
            threading.Thread(target=self._run, args=[wire], name="claim", daemon=True).start()

    def stop(self) -> None:
        """Send no more heartbeats. The claim stays for the next process until its session ends."""
        self._stopped.set()

    def leave(self) -> None:
        """Give the claim up at once: nothing needs it any more. Blocks for READ_SECONDS at most."""
        self.stop()
        wire, coordinator = self._wire, self._coordinator
        if wire is None or coordinator is None or self._member is None:
            return
        try:
            self._leave(wire, coordinator)
        except (errors.KafkaError, RuntimeError) as error:
            log.warning("claim not given up", group=self.group, error=str(error))

    def _run(self, wire: Wire) -> None:
        pause = 0.0
        while not self._stopped.wait(pause) and wire is self._wire:
            pause = self._safe_round(wire)

    def _safe_round(self, wire: Wire) -> float:
        """Keep the claim, or see whose it is; return in how many seconds to do so again."""
        before, pause = self.state, HEARTBEAT_SECONDS
        try:
            other = self._round(wire)
            self.state = before.read(other, time.monotonic(), self._unread)
        except errors.KafkaError as error:
            if wire is not self._wire:
                return pause
            self._coordinator = None
            lasts = needs_user(error)
            self.state = before.failed(self._problem(error), time.monotonic(), lasts=lasts)
            pause = REFUSED_SECONDS if lasts else HEARTBEAT_SECONDS if self.state.problem else RETRY_SECONDS
        except RuntimeError:
            return pause  # the line was closed, or this process may not write
        except Exception as error:
            if wire is not self._wire:
                return pause
            log.exception("the claim failed unexpectedly", group=self.group)
            problem = bug_problem(error, "the claim from being made")
            self.state = before.failed(problem, time.monotonic(), lasts=True)
        now = self.state
        if (before.other, before.unclaimed) != (now.other, now.unclaimed):
            log.info("claim", group=self.group, other=now.other, problem=now.problem, unread=now.unread)
        return pause

    def _round(self, wire: Wire) -> Claim | None:
        """Return another installation's claim that precedes ours; without one, this process is a member afterwards."""
        coordinator = self._coordinator or wire.coordinator(self.group)
        self._coordinator = coordinator
        if self._member:
            try:
                self._beat(wire, coordinator, self._member)
                if self._looked:
                    return self.state.other
            except errors.RebalanceInProgressError:
                pass
            except LEFT:
                self._member = None
        claims = () if self._member else self._described(wire, coordinator)
        if other := preceding(claims, self.installation):
            self._claim = None
            return other
        self._claim = self._claim or Claim(self.installation, own_since(claims, self.installation, datetime.now(UTC)))
        self._looked = False
        self._join(wire, coordinator, self._claim)
        claims = self._described(wire, coordinator)
        self._looked = True
        if other := preceding(claims, self.installation):
            self._leave(wire, coordinator)  # both joined at once
            self._claim = None
        return other

    def _described(self, wire: Wire, coordinator: Node) -> tuple[Claim, ...]:
        """Return the claims of all members; raise RebalanceInProgressError while the brokers do not show them."""
        request = DescribeGroupsRequest(groups=[self.group], include_authorized_operations=False)
        [group] = wire.read_from(coordinator, request, READ_SECONDS).groups
        if group.error_code != errors.GroupIdNotFoundError.errno:  # there is none yet
            _raise_for(group.error_code)
        if not group.members:
            self._unread = None
            return ()
        if group.protocol_type != PROTOCOL_TYPE:
            raise errors.InconsistentGroupProtocolError(f"its members are of the type {group.protocol_type}")
        if group.group_state != "Stable":
            raise errors.RebalanceInProgressError(f"the group is {group.group_state}")
        claims = [
            (member.client_host, Claim.read(member.member_metadata, member.client_host)) for member in group.members
        ]
        self._unread = unreadable(self.group, [host for host, claim in claims if claim is None])
        return tuple(claim for _, claim in claims if claim)

    def _join(self, wire: Wire, coordinator: Node, claim: Claim) -> None:
        """Join, or join again. The leader of the group has nothing to assign."""
        if self._stopped.is_set():
            raise RuntimeError("the claim was given up")
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=claim.metadata)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=int(SESSION_SECONDS * 1000),
            rebalance_timeout_ms=int(REBALANCE_SECONDS * 1000),
            member_id=self._member.id if self._member else "",
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        self.before_write()
        joined = wire.read_from(coordinator, request, REBALANCE_SECONDS + READ_SECONDS)
        self._ended(joined.error_code)
        member = Member(joined.member_id, joined.generation_id)
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=member.generation,
            member_id=member.id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=[],
        )
        synced = wire.read_from(coordinator, sync, REBALANCE_SECONDS + READ_SECONDS)
        self._member = member  # a rebalance that goes on is joined by the same member
        self._ended(synced.error_code)

    def _beat(self, wire: Wire, coordinator: Node, member: Member) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=member.generation,
            member_id=member.id,
            group_instance_id=self._instance,
        )
        self.before_write()
        _raise_for(wire.read_from(coordinator, request, READ_SECONDS).error_code)

    def _leave(self, wire: Wire, coordinator: Node) -> None:
        member = self._member
        assert member
        self._member = None
        identity = LeaveGroupRequest.MemberIdentity(member_id=member.id, group_instance_id=self._instance)
        request = LeaveGroupRequest(group_id=self.group, members=[identity], min_version=3)
        _raise_for(wire.read_from(coordinator, request, READ_SECONDS).error_code)

    def _ended(self, code: int) -> None:
        """Raise the error of a code; forget the membership where that says that it has ended."""
        try:
            _raise_for(code)
        except LEFT:
            self._member = None
            raise

    def _problem(self, error: Exception) -> Problem:
        if isinstance(error, errors.AuthorizationError):
            return Problem(Reason.NOT_AUTHORIZED, f"the Kafka user needs READ on the group {self.group}")
        if isinstance(error, errors.InvalidSessionTimeoutError):
            minutes = f"{SESSION_SECONDS / 60:.0f} minutes"
            return Problem(Reason.REQUEST_FAILED, f"raise group.max.session.timeout.ms of the brokers to {minutes}")
        said = printable(cut(str(error) or type(error).__name__))
        if isinstance(error, errors.InconsistentGroupProtocolError):
            return Problem(
                Reason.REQUEST_FAILED, f"the group {self.group} is another application's: end that one ({said})"
            )
        return Problem(Reason.REQUEST_FAILED, f"the group {self.group} could not be joined or read: {said}")


def _raise_for(code: int) -> None:
    if code:
        raise errors.for_code(code)()
