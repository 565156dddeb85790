"""What rows of snapshots must not say, and what of them is worth knowing: rules in Spark SQL, each of one kind.

A fault is what could make a plan wrong: rows that contradict each other, or that no cluster can have. The cluster is
quarantined for it. What is only not well, such as a broker that is down, is a note: the planner knows what to do then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from reassign.api.limits import MAX_IN_FLIGHT_REPLICAS
from reassign.api.names import TOPIC_NAME
from reassign.files.schema import SCHEMAS
from reassign.fleet.tables import Tables
from reassign.planning.problem.problem import MOST_BYTES, MOST_REPLICA_BYTES
from reassign.planning.problem.racks import MAX_DEPTH


class Rule(NamedTuple):
    """Rows of one kind: those of which the condition is true. `shown` is what an example says of one, in SQL."""

    kind: str
    condition: str
    shown: str
    fault: bool = True


def _note(kind: str, condition: str, shown: str) -> Rule:
    return Rule(kind, condition, shown, fault=False)


_BROKER = "concat('broker ', broker)"
_RACK = "concat('broker ', broker, ' is in ', rack)"
_DIRECTORY = "concat('broker ', broker, ' ', path)"
_VOLUME = (
    "concat('broker ', broker, ' ', path, ': ', coalesce(string(usable_bytes), 'unknown'), "
    "' of ', coalesce(string(total_bytes), 'unknown'), ' bytes are usable')"
)
_REPLICAS = "concat(topic, '-', partition, ': replicas ', string(replicas))"
_ISR = "concat(topic, '-', partition, ': replicas ', string(replicas), ', in sync ', string(isr))"
_LEADER = "concat(topic, '-', partition, ': leader ', leader, ', in sync ', string(isr))"
_SIZE = "concat(topic, '-', partition, ': ', coalesce(string(size_bytes), 'unknown'), ' bytes')"
_PLACE = "concat(topic, '-', partition, ': broker ', member, ' ', place)"
_NAMES = "if(startswith(rack, '/'), split(substr(rack, 2), '/'), array(rack))"

BROKERS = (
    Rule("BrokerTwice", "times > 1", _BROKER),
    Rule("NegativeNumber", "broker < 0", _BROKER),
    _note("BrokerDown", "not alive", _BROKER),
    _note(
        "UnreadableRack",
        f"rack <> '' and (size({_NAMES}) > {MAX_DEPTH} or exists({_NAMES}, name -> name rlike r'(?U)^$|^\\s|\\s$'))",
        _RACK,
    ),
    _note("MixedRacks", "startswith(rack, '/') and names > 0", _RACK),
)
LOG_DIRS = (
    Rule("DirectoryTwice", "times > 1", _DIRECTORY),
    Rule("UnknownBroker", "paths is null", _DIRECTORY),
    Rule("NegativeNumber", "total_bytes < 0 or usable_bytes < 0", _VOLUME),
    Rule("UsableAboveTotal", "usable_bytes > total_bytes", _VOLUME),
    _note("DirectoryOffline", "not online", _DIRECTORY),
    _note("CapacityUnknown", "online and (total_bytes is null or usable_bytes is null)", _VOLUME),
)
PARTITIONS = (
    Rule("NoReplicas", "size(replicas) = 0", _REPLICAS),
    Rule("TooManyReplicas", f"size(replicas) > {MAX_IN_FLIGHT_REPLICAS}", _REPLICAS),
    Rule("BrokerTwiceInPartition", "size(array_distinct(replicas)) < size(replicas)", _REPLICAS),
    Rule("DirectoryCount", "size(log_dirs) <> size(replicas)", _REPLICAS),
    Rule("LeaderOutsideIsr", "not array_contains(isr, leader)", _LEADER),
    Rule("LeaderOutsideReplicas", "not in_flight and not array_contains(replicas, leader)", _LEADER),
    Rule("IsrOutsideReplicas", "not in_flight and size(array_except(isr, replicas)) > 0", _ISR),
    Rule("NegativeNumber", "partition < 0 or size_bytes < 0", _SIZE),
    Rule("AbsurdSize", f"size_bytes > {MOST_REPLICA_BYTES}", _SIZE),
    _note("SizeUnknown", "size_bytes is null", _SIZE),
    _note("NoLeader", "leader is null", _ISR),
    _note("OutOfSync", "not in_flight and size(isr) < size(replicas)", _ISR),
)
"""On each partition by itself."""
REPLICAS = (
    Rule("MissingValue", "member is null and size(log_dirs) <= size(replicas)", _REPLICAS),
    Rule("UnknownBroker", "known is null and member is not null", _REPLICAS),
    Rule("UnknownDirectory", "not array_contains(paths, place)", _PLACE),
)
"""On each replica: `member` is its broker, `place` its directory, `paths` are those that the broker describes."""
ELSEWHERE = (
    Rule("MissingValue", "member is null", _ISR),
    Rule("UnknownIsrBroker", "known is null and member is not null", _ISR),
)
"""On what is in sync beside the replicas: while a partition is in flight, those that it leaves."""
TOPICS = (
    Rule(
        "PartitionTwice",
        "distinct < partitions",
        "concat(topic, ': ', distinct, ' partitions in ', partitions, ' rows')",
    ),
    Rule("PartitionGap", "distinct <= greatest", "concat(topic, ': ', distinct, ' partitions up to ', greatest)"),
    Rule("TopicName", f"not topic rlike r'^(?:{TOPIC_NAME.pattern})$'", "topic"),
)
CLUSTER = (Rule("TooManyBytes", f"mebibytes > {MOST_BYTES >> 20}", "concat(mebibytes, ' MiB in all replicas')"),)

FAULTS = frozenset(
    rule.kind
    for rules in (BROKERS, LOG_DIRS, PARTITIONS, REPLICAS, ELSEWHERE, TOPICS, CLUSTER)
    for rule in rules
    if rule.fault
)

ROW = ("cluster", "date", "table", "kind", "example", "row")


def found(tables: Tables) -> DataFrame:
    """All rows that a rule tells of, as ROW: `example` shows it, `row` is JSON of it; once for each rule."""
    directories = tables.log_dirs.groupBy("cluster", "broker").agg(sf.collect_set("path").alias("paths"))
    known = tables.brokers.select("cluster", "broker").distinct().join(directories, ["cluster", "broker"], how="left")
    known = sf.broadcast(
        known.select("cluster", sf.col("broker").alias("known"), sf.coalesce("paths", sf.array()).alias("paths"))
    )
    parts = (
        _brokers(tables),
        _log_dirs(tables, known),
        _told("partitions", tables.partitions, PARTITIONS),
        _replicas(tables, known),
        _elsewhere(tables, known),
        _topics(tables),
    )
    return reduce(DataFrame.unionByName, parts)


def _brokers(tables: Tables) -> DataFrame:
    of_cluster = Window.partitionBy("cluster")
    rows = tables.brokers.select(
        "*",
        sf.count("*").over(Window.partitionBy("cluster", "broker")).alias("times"),
        sf.count_if(sf.expr("rack <> '' and not startswith(rack, '/')")).over(of_cluster).alias("names"),
    )
    return _told("brokers", rows, BROKERS)


def _log_dirs(tables: Tables, known: DataFrame) -> DataFrame:
    rows = tables.log_dirs.select(
        "*",
        sf.col("broker").alias("member"),
        sf.count("*").over(Window.partitionBy("cluster", "broker", "path")).alias("times"),
    )
    return _told("log_dirs", _described(rows, known), LOG_DIRS)


def _replicas(tables: Tables, known: DataFrame) -> DataFrame:
    zipped = sf.inline(sf.arrays_zip("replicas", "log_dirs")).alias("member", "place")
    return _told("partitions", _described(tables.partitions.select("*", zipped), known), REPLICAS)


def _elsewhere(tables: Tables, known: DataFrame) -> DataFrame:
    others = sf.array_except("isr", "replicas")
    rows = tables.partitions.where(sf.size(others) > 0).select("*", sf.explode(others).alias("member"))
    return _told("partitions", _described(rows, known), ELSEWHERE)


def _described(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Each row with what its `member` is known by; nulls where it is not."""
    same = (rows["cluster"] == known["cluster"]) & (rows["member"] == known["known"])
    return rows.join(known, same, how="left").drop(known["cluster"])


def _topics(tables: Tables) -> DataFrame:
    """What is told of a topic's partitions together, and of all of a cluster's."""
    size = f"if(size_bytes is null, 0, least(size_bytes, {MOST_REPLICA_BYTES}))"  # of null and a number `least` is that
    held = f"shiftright({size}, 20) * size(replicas)"
    by_topic = tables.partitions.groupBy("cluster", "date", "topic").agg(
        sf.collect_list("partition").alias("numbers"), sf.sum(sf.expr(held)).alias("mebibytes")
    )
    counted = by_topic.select(
        "cluster",
        "date",
        "topic",
        sf.size("numbers").alias("partitions"),
        sf.size(sf.array_distinct("numbers")).alias("distinct"),
        sf.array_max("numbers").alias("greatest"),
        "mebibytes",
    )
    by_cluster = counted.groupBy("cluster", "date").agg(
        sf.sum("mebibytes").alias("mebibytes"),
        sf.flatten(sf.collect_list(_told_of(TOPICS, ("topic", "partitions", "distinct", "greatest")))).alias("told"),
    )
    told = sf.inline(sf.concat("told", _told_of(CLUSTER, ("mebibytes",))))
    return by_cluster.select("cluster", "date", sf.lit("partitions").alias("table"), told)


def _told(table: str, rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """What these rules tell of each row; the many of which none is true are left out at once."""
    some = rows.where(reduce(or_, (sf.expr(rule.condition) for rule in rules)))
    told = sf.inline(_told_of(rules, SCHEMAS[table].names))
    return some.select("cluster", "date", sf.lit(table).alias("table"), told)


def _told_of(rules: Sequence[Rule], columns: Sequence[str]) -> Column:
    row = sf.to_json(sf.struct(*columns), {"ignoreNullFields": "false"})
    told = (
        sf.struct(sf.lit(rule.kind).alias("kind"), sf.expr(rule.shown).alias("example"), row.alias("row"))
        for rule in rules
    )
    return sf.array_compact(
        sf.array(*(sf.when(sf.expr(rule.condition), one) for rule, one in zip(rules, told, strict=True)))
    )
