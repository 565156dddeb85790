"""What CancelAll undoes is kept in ConfigMaps before it is cancelled: a bounded number of them for each KafkaCluster.

The operator may make ConfigMaps, and neither read, change nor delete any: their names are numbers that it tries. So it
never loses the only copy of a move. When all numbers are taken, what is new is not cancelled until a user deletes some.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog

from reassign.api.common import GROUP
from reassign.api.limits import MAX_BRAKE_COPIES, MAX_LABEL_CHARACTERS, MAX_NAME_CHARACTERS
from reassign.core.brake import TargetReplicas, documents
from reassign.core.model.problem import Problem
from reassign.errors import ConflictError, Reason, ReassignError
from reassign.kube.client import ClusterKey, KubeClient

log = structlog.get_logger()

LABEL = f"{GROUP}/cluster"
DOCUMENT = "reassignment.json"
AT_ONCE = 10
"""ConfigMaps that are made without delay. Number N after that waits for N - AT_ONCE seconds, and holds what began
meanwhile: a tool that begins moves again and again uses up no numbers by the second."""
RETRY_SECONDS = 60.0
"""How long after all numbers were found to be taken they are tried again."""


@dataclass(slots=True)
class BrakeCopies:
    """The ConfigMaps of one KafkaCluster. A process that is killed after it made one may keep those moves again."""

    key: ClusterKey
    kube: KubeClient
    _number: int = 1
    """The one to try next."""
    _made_at: float = float("-inf")
    _full_at: float = float("-inf")

    async def keep(self, moves: TargetReplicas) -> Problem | None:
        """Keep these moves; return why they could not be kept, so that they are not cancelled now."""
        if not moves:
            return None
        now = time.monotonic()
        if now < self._made_at + self._number - AT_ONCE:
            message = (
                f"moves begun lately that are not cancelled yet: {len(moves)}; {self._number - 1} ConfigMaps were "
                "made of what was cancelled before, so the next one waits for more; stop what begins these moves"
            )
            return Problem(Reason.CANCELLED_BY_BRAKE, message)
        if now < self._full_at + RETRY_SECONDS:
            return self._full()
        try:
            for document in documents(moves):
                if not await self._create(document):
                    self._full_at = now
                    return self._full()
        except ReassignError as error:
            log.warning("not kept, so not cancelled", error=error.message)
            message = (
                f"moves are not cancelled, since they could not be kept in a ConfigMap: {error.message}; "
                "fix that, or set execution: CancelOurs, which needs none"
            )
            return Problem(error.reason, message)
        return None

    async def _create(self, document: str) -> bool:
        """Make a ConfigMap under the next number that is free; return whether there was one."""
        namespace, cluster = self.key
        labels = {LABEL: cluster[:MAX_LABEL_CHARACTERS].rstrip(".-")}
        for _ in range(MAX_BRAKE_COPIES):
            name, self._number = self._name(self._number), self._number % MAX_BRAKE_COPIES + 1
            try:
                await self.kube.create_config_map(namespace, name, {DOCUMENT: document}, labels)
            except ConflictError:
                continue
            self._made_at = time.monotonic()
            log.info("kept what is cancelled", config_map=name)
            return True
        return False

    def _name(self, number: int) -> str:
        suffix = f"-cancelled-{number}"
        return self.key[1][: MAX_NAME_CHARACTERS - len(suffix)].rstrip(".-") + suffix

    def _full(self) -> Problem:
        message = (
            f"moves are not cancelled, since there are {MAX_BRAKE_COPIES} ConfigMaps of what was cancelled before "
            f"({self._name(1)} and so on): delete those that you no longer need, or set execution: CancelOurs"
        )
        return Problem(Reason.CONFLICT, message)
