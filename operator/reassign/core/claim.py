"""The claim on a Kafka cluster: which installation of the operator serves it, where several have a KafkaCluster for it.

Installations in different Kubernetes clusters see nothing of each other but Kafka. Each one that serves a cluster is a
member of one group there, and its member metadata is its claim. The older claim wins. One that sees another's claim
stays out of the group, so clocks matter only between two that join at once.

Whatever keeps the group from being read is a warning, and stops nothing. Without the group's coordinator no other
installation can make a claim either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from reassign.core.model.problem import Problem
from reassign.errors import Reason
from reassign.text import cut, listed, printable

SESSION_SECONDS = 300.0
"""How long a claim outlives the last sign of its installation: longer than a restart, or a takeover by another pod."""
PATIENCE_SECONDS = 15.0
"""How long the group may be unreadable before that is a problem, and how long a first answer is waited for."""
MAX_CLAIM_BYTES = 1024
"""More than any claim has: what others send is not even decoded."""
INSTALLATION = re.compile("[A-Za-z0-9-]{1,64}")
"""The uid of a Lease."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of an installation, as it is in its membership, with the host that Kafka reports."""

    installation: str
    since: datetime
    host: str = field(default="an unknown host", compare=False)

    @property
    def metadata(self) -> bytes:
        """The claim in bytes, with no more than the decision needs: anyone who may describe the group can read it."""
        return json.dumps({"installation": self.installation, "since": self.since.isoformat()}).encode()

    @classmethod
    def read(cls, metadata: bytes, host: str) -> Claim | None:
        """Return the claim of a member; None for metadata that is no claim. Anyone may have written it."""
        if len(metadata) > MAX_CLAIM_BYTES:
            return None
        try:
            fields = json.loads(metadata)
            installation, since = fields["installation"], datetime.fromisoformat(fields["since"])
            since = since.astimezone(UTC) if since.tzinfo else since.replace(tzinfo=UTC)
            return cls(installation, since, _shown(host)) if INSTALLATION.fullmatch(installation) else None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None


def _shown(host: str) -> str:
    """Return a member's host, as the brokers tell it, for a message."""
    return printable(cut(host.lstrip("/"), 100)) or "an unknown host"


def unreadable(group: str, hosts: Collection[str]) -> Problem | None:
    """Return the problem of members of the group whose claims cannot be read, by their hosts, if there are any."""
    if not hosts:
        return None
    return Problem(
        Reason.CANNOT_BE_READ,
        f"the group {group} has members whose claims this version of the operator cannot read, at "
        f"{listed(map(_shown, hosts))}. Where that is another installation of the operator, it is not noticed: "
        "run the same version there, or delete one of the two KafkaClusters. Where it is not, end it, and let no "
        "other Kafka user join that group",
    )


def preceding(claims: Iterable[Claim], installation: str) -> Claim | None:
    """Return another installation's claim that precedes ours, if any; of two equally old ones the smaller uid does."""
    first = min(claims, key=lambda claim: (claim.since, claim.installation), default=None)
    return first if first and first.installation != installation else None


def own_since(claims: Iterable[Claim], installation: str, now: datetime) -> datetime:
    """Return since when this installation has its claim: an earlier process may have left one."""
    return min((claim.since for claim in claims if claim.installation == installation), default=now)


@dataclass(frozen=True, slots=True)
class ClaimState:
    """What is known of the claim."""

    seen: float
    """When the group was last read, or first asked for, by a monotonic clock."""
    decided: bool = False
    """Whether anything is known at all."""
    other: Claim | None = None
    """Another installation's claim."""
    problem: Problem | None = None
    """What keeps the group from being read."""
    failing: float | None = None
    """Since when the group cannot be read."""
    unread: Problem | None = None
    """Which claims cannot be read."""

    def connected(self) -> ClaimState:
        """Return the state over a new line: failures of the last line do not count."""
        return replace(self, failing=None)

    def read(self, other: Claim | None, at: float, unread: Problem | None = None) -> ClaimState:
        """Return the state after the group was read; of some members the claims may be `unread`."""
        return ClaimState(at, True, other, unread=unread)

    def failed(self, problem: Problem, at: float, *, lasts: bool) -> ClaimState:
        """Return the state after the group could not be read.

        Another installation's claim counts for as long as it may outlive its installation.
        """
        failing = at if self.failing is None else self.failing
        if not lasts and at - failing < PATIENCE_SECONDS:
            return replace(self, failing=failing)
        other = self.other if at - self.seen < SESSION_SECONDS else None
        return replace(self, decided=True, other=other, problem=problem, failing=failing)

    @property
    def claimed(self) -> Problem | None:
        """Why nothing new starts, if another installation has the claim."""
        if self.other is None:
            return None
        return Problem(
            Reason.CLUSTER_CLAIMED,
            "another installation of the operator serves the same Kafka cluster: nothing new starts here, and what is "
            "in flight goes on, or is undone when it is deleted",
        )

    @property
    def holder(self) -> str:
        """Who has the claim, and what to do, for those who may see the KafkaCluster."""
        if self.other is None:
            return ""
        return (
            f"It is at {self.other.host} since {self.other.since:%Y-%m-%d %H:%M:%S} UTC, and its "
            f"Lease has the uid {self.other.installation}. Use that one, or delete its KafkaCluster; "
            f"{SESSION_SECONDS / 60:.0f} minutes after its end this one takes over"
        )

    def by(self, now: float) -> ClaimState:
        """Return the state at this moment: the first answer is waited for, but not for ever."""
        return self if now - self.seen < PATIENCE_SECONDS else replace(self, decided=True)

    @property
    def undecided(self) -> Problem | None:
        """Why nothing starts yet, if the group has not answered."""
        if self.decided:
            return None
        return Problem(Reason.CONNECTING, "asking whether another installation of the operator serves the cluster")

    @property
    def unclaimed(self) -> Problem | None:
        """The warning that no claim is kept, or that one cannot be read."""
        if self.problem is None:
            return self.unread
        message = f"{self.problem.message}; until then no other installation of the operator on this Kafka is noticed"
        return Problem(self.problem.reason, message)
