"""The last check: whether the API server still has what was judged, right before something begins.

A watch can be behind, and the records of many moves take a while to write. So the KafkaCluster is read before each
batch of steps, and each resource once, before the first batch that has a step of it. Where either has changed, what is
left is not sent, and is judged again. What brings moves back waits for none of this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from reassign.controller.writing.attempts import Attempts
from reassign.controller.writing.writer import Writer
from reassign.core.model.problem import Problem
from reassign.core.model.steps import Step
from reassign.core.model.verdict import Verdict
from reassign.errors import ReassignError
from reassign.kube.client import Object


@dataclass(slots=True)
class LastCheck:
    """What of one decision still holds."""

    writer: Writer
    attempts: Attempts
    cluster: Object
    """The KafkaCluster that was decided by."""
    verdicts: Mapping[str, Verdict]
    """By the uid of the resource, as it was judged."""
    _ended: bool = False
    """Whether the KafkaCluster has changed, or cannot be read: nothing begins any more."""
    _read: set[str] = field(default_factory=set)
    _unchanged: set[str] = field(default_factory=set)
    """The resources that have been read, and those of them that are as they were judged, by uid."""

    @property
    def refused(self) -> Mapping[str, Problem]:
        """Why resources could not be read, by uid."""
        return {uid: problem for uid, problem in self.attempts.refused.items() if uid in self._read}

    async def still_valid(self, batch: Sequence[Step], owners: Mapping[Step, str]) -> Collection[Step]:
        """Return the steps of a batch that may be sent; `owners` are the uids of their resources."""
        self._ended = self._ended or not await self.writer.is_unchanged(self.cluster)
        self.attempts.conflict |= self._ended
        if self._ended:
            return ()
        new = {owners[step] for step in batch} - self._read
        self._read |= new
        try:
            await self.attempts.each([self.verdicts[uid] for uid in sorted(new)], self._check)
        except ReassignError:  # the API server seems to be down
            self._ended = True
        return [step for step in batch if owners[step] in self._unchanged]

    async def _check(self, verdict: Verdict) -> None:
        await self.writer.check_unchanged(verdict.resource)
        self._unchanged.add(verdict.resource.uid)
