"""Every cap and size of an object, once: what the schemas allow, and the bytes that an object may come to.

The API server stores at most 1.5 MiB of one object. Every list and text is bounded, so that an object with its status
stays below that. This module holds numbers only and imports nothing.
"""

from __future__ import annotations

MAX_OBJECT_BYTES = 1_400_000
"""One object with its status; etcd takes 1.5 MiB, and conditions and metadata need some of that."""
MAX_DOCUMENT_BYTES = 1_000_000
"""The data of one ConfigMap; the API server takes 1 MiB."""
MAX_NOTE_BYTES = 1024
"""The note of an event."""
MAX_BRAKE_COPIES = 100
"""ConfigMaps of one KafkaCluster that hold what CancelAll has undone."""

# --- Names ---

MAX_LABEL_CHARACTERS = 63
"""The value of a label, the name of a namespace, and the name of a plan, since its waves are labelled with it."""
MAX_NAME_CHARACTERS = 253
"""The name of an object, or a key of a Secret."""
MAX_TOPIC_NAME_CHARACTERS = 249
MAX_LOG_DIR_CHARACTERS = 1024
MAX_DIRECTED_CHARACTERS = 214
"""The name of a topic and the number of a partition together, where a log directory can be named. A broker copies a
replica into a folder TOPIC-NUMBER.32HEX-future, which has at most 255 bytes (KAFKA-4893)."""

MAX_QUANTITY_CHARACTERS = 32
"""A quantity of bytes, or of bytes per second."""

# --- PartitionReassignment ---

MAX_PARTITIONS = 2000
"""Entries of one PartitionReassignment."""
MAX_REPLICAS = 16
"""Replicas that a partition may be given."""
MAX_IN_FLIGHT_REPLICAS = 2 * MAX_REPLICAS
"""Replicas of a partition while it moves: those being added and those being removed."""
MAX_TOPIC_CHARACTERS = 160_000
"""Topic names of all entries together are shorter than this."""
MAX_PARTITIONS_IN_FLIGHT = 10_000
MAX_MOVES_PER_BROKER = 1000
MAX_DETAILS = 100
"""Partitions that status describes one by one."""
MAX_SAMPLES = 30
"""Samples of bytes copied that status keeps."""

# --- ReassignmentRecord ---

MAX_PART_PARTITIONS = 100
"""Partitions in one part of a record: what one write of it costs at most."""
MAX_PARTS = (MAX_PARTITIONS + MAX_PARTITIONS_IN_FLIGHT) // MAX_PART_PARTITIONS
"""Parts of one record: it has what the spec names, and what is still in flight after edits."""

# --- PartitionReassignment: the largest status that a resource can come to, in bytes ---

DETAIL_BYTES = 1_000
"""One partition in status.partitions, without its topic's name."""

# --- A planned wave: the largest object for any names and ids, in bytes ---

WAVE_DETAIL_BYTES = 3_000
"""One partition in status.partitions, with the longest topic name and message."""
WAVE_ENTRY_BYTES = 640
"""One entry in the spec, in managedFields and in the record, without names and ids."""
WAVE_BROKER_BYTES = 11
"""The longest broker id."""

# --- ReassignmentPlan ---

MAX_PLAN_PARTITIONS = 20_000
"""Partitions that the plans which the operator keeps may change; a larger plan belongs in Git."""
MAX_WAVE_PARTITIONS = 500
MAX_WAVES = 1000
MAX_PLAN_BROKERS = 300
MAX_PATTERNS = 100
"""Topic patterns of one list."""
MAX_UNMET = 100

# --- Windows ---

MAX_WINDOWS = 10
MAX_CRON_CHARACTERS = 128
MAX_TIME_ZONE_CHARACTERS = 64
MIN_WINDOW_SECONDS = 300
MAX_WINDOW_SECONDS = 604_800

# --- BrokerDecommission ---

MAX_DECOMMISSION_NAME_CHARACTERS = 50
"""The name of a BrokerDecommission: its plans have it with a number, in at most MAX_LABEL_CHARACTERS."""
MAX_DECOMMISSIONED_BROKERS = 50
MAX_PAST_PLANS = 10
"""Plans that status lists of one resource that makes plans."""

# --- ReassignmentPolicy ---

MAX_POLICY_NAME_CHARACTERS = 40
"""The name of a ReassignmentPolicy: its plans have it with the trigger's name and a number, in at most
MAX_LABEL_CHARACTERS."""
MAX_TRIGGER_NAME_CHARACTERS = 15
MAX_TRIGGERS = 10
MAX_LOST_BROKERS = 10
"""Brokers that a policy replaces at once."""
MIN_TRIGGER_SECONDS = 60
MAX_TRIGGER_SECONDS = 86_400
MAX_SETTLE_SECONDS = 3600
MAX_COOLDOWN_SECONDS = 604_800

# --- KafkaCluster ---

MAX_BOOTSTRAP_CHARACTERS = 4096
MAX_CREDENTIAL_CHARACTERS = 256
MAX_URL_CHARACTERS = 2048
MAX_ALLOWED_NAMESPACES = 100
MAX_BROKERS = 1000
MAX_FOREIGN = 100
"""Moves of others that status lists."""
MAX_USERS = 1000
"""PartitionReassignments that status names as users of a throttle."""
MAX_THROTTLED_BROKERS = 1000
MAX_THROTTLED_TOPICS = 2000
MAX_THROTTLE_CONFIGS = 8
"""Throttle configurations of one broker or topic."""
MAX_COPIED_PARTITIONS = 100_000
MAX_THROTTLE_RECORD_BYTES = 800_000
"""The record of all throttles."""
MAX_CONFIG_CHARACTERS = 32_767
"""One configuration that the operator sets: brokers take no more."""
MAX_STORED_CONFIG_CHARACTERS = 262_144
"""One configuration as the record keeps it."""

# --- Texts of a status ---

MAX_MESSAGE_CHARACTERS = 32_768
MAX_SHORT_TEXT_CHARACTERS = 1024
MAX_REASON_CHARACTERS = 128
MAX_ID_CHARACTERS = 64
"""A uid, the id of a topic or of a cluster."""
MAX_OBSERVED_REPLICAS = 1000
MAX_CONDITIONS = 32
WAVE_PARTITIONS = 200
"""Partitions of one wave where nothing else is asked for."""
