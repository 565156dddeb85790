"""The configurations of brokers and topics that throttle replication (KIP-73) and copies between log directories
(KIP-113), or cordon a broker (KIP-1066)."""

from __future__ import annotations

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = (LEADER_RATE, FOLLOWER_RATE)
"""Rates of a broker, between brokers."""
LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Lists of a topic's replicas that these rates hold for."""
BROKER_RATES = (*RATES, LOG_DIR_RATE)
"""All rates of a broker."""
CORDONED_LOG_DIRS = "cordoned.log.dirs"
"""The directories of a broker that take no new replicas, between commas, or `*` for all (KIP-1066)."""
