"""The record of throttles as this process saw it last, for when the status of the KafkaCluster has lost it.

Without a record, what is set looks like somebody else's, and stays for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from reassign.api.kafka_cluster import KafkaCluster, ThrottleStatus


@dataclass(slots=True)
class Memory:
    """What this process knows of the throttles of one KafkaCluster; one made anew under its name is another."""

    record: ThrottleStatus | None = None
    """Cleared before the status is: an answer that was lost is no loss."""
    looked: bool = False
    """Whether what is set has been compared with the record once."""
    _uid: str = ""

    def lost(self, cluster: KafkaCluster) -> ThrottleStatus | None:
        """The record that the status has lost, if so; otherwise take note of what it has."""
        if cluster.metadata.uid != self._uid:
            self.record, self.looked, self._uid = None, False, cluster.metadata.uid
        if recorded := cluster.status.throttle:
            self.record = recorded
            return None
        return self.record
