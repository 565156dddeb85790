"""An outage of a Kafka cluster: since when it cannot be observed, logged once when it begins and once when it ends."""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog

from reassign.controller.metrics import Metrics
from reassign.core.model.problem import Problem
from reassign.errors import Reason

log = structlog.get_logger()

PATIENCE_SECONDS = 10.0
"""How long a cluster that was seen may be unreachable before statuses say so: one lost answer is no news."""


@dataclass(slots=True)
class Outage:
    """What the observations of one Kafka cluster met lately."""

    cluster: str
    metrics: Metrics
    _seen: bool = False
    """Whether it was ever observed."""
    _since: float | None = None
    """When the first of the observations began that failed since the last one."""
    _logged: bool = False

    def begin(self) -> None:
        """Note that an observation begins."""
        if self._since is None:
            self._since = time.monotonic()

    def observed(self) -> None:
        """Note that the observation has succeeded."""
        self.metrics.kafka_up.labels(self.cluster).set(1)
        if self._logged and self._since is not None:
            seconds = round(time.monotonic() - self._since, 1)
            log.info("outage ended: Kafka can be observed again", seconds=seconds)
        self._seen, self._since, self._logged = True, None, False

    def failed(self, problem: Problem) -> bool:
        """Note that the observation has failed; return whether statuses are to say so."""
        self.metrics.kafka_up.labels(self.cluster).set(0)
        lasts = time.monotonic() - self._since if self._since is not None else 0.0
        if problem.reason is Reason.CLUSTER_UNREACHABLE and self._seen and lasts < PATIENCE_SECONDS:
            return False
        if not self._logged:
            log.warning("outage began: Kafka cannot be observed", reason=problem.reason, error=problem.message)
        self._logged = True
        return True
