"""The brokers of each cluster: their place among the racks, their volumes, and what may lie on them.

The same rules as the planner's, as expressions: `problem.racks.levels`, `problem.directories.volumes`, and of
`problem.problem` the weight of a broker, its room, and whether it may hold replicas.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

from reassign.fleet.tables import Tables
from reassign.planning.problem.problem import MOST_VOLUME_BYTES, UNLIMITED
from reassign.planning.problem.racks import MAX_DEPTH
from reassign.planning.problem.volume import SAME_VOLUME_BYTES

VOLUMES = f"""
aggregate(
  directories,
  cast(array() as array<struct<
    path string, total_bytes bigint, usable_bytes bigint, online boolean, takes boolean, says boolean, volume int>>),
  (found, d) -> concat(found, array(struct(
    d.path, d.total_bytes, d.usable_bytes, d.online, d.takes, d.says,
    coalesce(
      try_element_at(
        filter(found, o -> o.says and d.says and o.total_bytes = d.total_bytes
          and abs(o.usable_bytes - d.usable_bytes) < {SAME_VOLUME_BYTES}),
        -1
      ).volume,
      size(found)
    ) as volume
  )))
)"""
"""The directories of a broker, sorted, each with the place of the first one of its volume."""

CAPACITY = f"""
if(
  exists(volumes, d -> d.online and d.total_bytes is null), null,
  aggregate(
    filter(volumes, (d, i) -> d.volume = i and d.online), 0L,
    (sum, d) -> sum + least(d.total_bytes, {MOST_VOLUME_BYTES})
  )
)"""

FREE = f"""
case
  when coalesce(size(volumes), 0) = 0 or exists(volumes, d -> d.takes and not d.says) then {UNLIMITED}
  else aggregate(
    filter(volumes, d -> d.takes),
    struct(0L as sum, cast(array() as array<int>) as seen),
    (found, d) -> if(
      array_contains(found.seen, d.volume), found,
      struct(
        found.sum + greatest(0L, least(
          {MOST_VOLUME_BYTES}, d.usable_bytes - cast(ceil(min_free * d.total_bytes) as bigint)
        )) as sum,
        concat(found.seen, array(d.volume)) as seen
      )
    ),
    found -> found.sum
  )
end"""
"""Bytes that may come to a broker."""

UNREADABLE = f"""
size(names) > {MAX_DEPTH} or exists(names, name -> name = '' or name rlike r'(?U)^\\s|\\s$')"""

BROKER = (
    "cluster", "broker", "rack", "alive", "emptied", "allowed", "weight", "capacity", "free", "volumes", "readable",
)  # fmt: skip

NAMES = """
case
  when awareness = 'None' or coalesce(rack, '') = '' then cast(array() as array<string>)
  when awareness = 'Tree' and startswith(rack, '/') then split(substring(rack, 2), '/')
  else array(rack)
end"""

KEYS = """
transform(array_repeat(0, depth), (x, i) -> struct(
  concat(if(awareness = 'Tree' and startswith(rack, '/'), '/', ''), array_join(slice(names, 1, i + 1), '/')) as path,
  if(i < size(names), null, broker) as alone
))"""
"""What the rack of a broker is known by on each level: its path, or where the path has ended the broker itself."""


def places(newest: Tables, terms: DataFrame) -> DataFrame:
    """One row for each broker, with the columns of its cluster's terms.

    `steps` are its racks from the top down: `path`, `alone` (the broker, where it is a child by itself), `node` (the
    least broker of the rack), `brokers` and `usable` (of those that may hold replicas, how many are in the rack), and
    `open` (racks beside it, and itself, with such brokers). Without racks, or where they cannot be read (`readable`),
    there are none. `like` is the least broker in the same rack with the same `allowed`.
    """
    cluster = Window.partitionBy("cluster")
    directories = newest.log_dirs.groupBy("cluster", "broker").agg(
        sf.array_sort(
            sf.collect_list(
                sf.struct(
                    "path",
                    "total_bytes",
                    "usable_bytes",
                    "online",
                    (sf.col("online") & ~sf.col("cordoned")).alias("takes"),
                    sf.expr("online and total_bytes is not null and usable_bytes is not null").alias("says"),
                )
            )
        ).alias("directories")
    )
    found = (
        newest.brokers.select("cluster", "cluster_id", "taken_at", "broker", "rack", "alive")
        .join(directories, ["cluster", "broker"], "left")
        .join(sf.broadcast(terms), "cluster")
        .withColumn("volumes", sf.expr(VOLUMES))
        .withColumn("capacity", sf.nullif(sf.expr(CAPACITY), sf.lit(0)))
        .withColumn("free", sf.expr(FREE))
        .withColumn(
            "emptied", sf.expr("array_contains(drain, broker) or not coalesce(array_contains(brokers, broker), true)")
        )
        .withColumn("allowed", sf.col("alive") & ~sf.col("emptied"))
        .withColumn("names", sf.expr(NAMES))
        .repartition("cluster")
    )
    mixed = _any(sf.expr("startswith(rack, '/')"), cluster) & _any(
        sf.expr("rack <> '' and not startswith(rack, '/')"), cluster
    )
    found = (
        found.withColumn("equal", _any(sf.expr("allowed and capacity is null"), cluster))
        .withColumn("weight", sf.expr("if(equal, 1L, coalesce(capacity, 0L))"))
        .withColumn("readable", (sf.col("awareness") != "Tree") | ~(mixed | _any(sf.expr(UNREADABLE), cluster)))
        .withColumn("depth", sf.when(sf.col("readable"), sf.max(sf.size("names")).over(cluster)).otherwise(0))
        .withColumn("keys", sf.expr(KEYS))
    )
    return found.select(*BROKER, "keys", sf.posexplode_outer("keys").alias("level", "key")).transform(_with_steps)


def _with_steps(levels: DataFrame) -> DataFrame:
    """From a row for each broker and level to one for each broker."""
    rack, beside = (Window.partitionBy("cluster", "level", key) for key in ("key", "above"))
    step = sf.struct("level", "key.path", "key.alone", "node", "brokers", "usable", "open")
    innermost = sf.expr("try_element_at(steps, -1).node")
    return (
        levels.withColumn("above", sf.expr("if(level > 0, keys[level - 1], null)"))
        .withColumn("node", sf.min("broker").over(rack))
        .withColumn("brokers", sf.count("broker").over(rack).cast("int"))
        .withColumn("usable", sf.count_if("allowed").over(rack).cast("int"))
        .withColumn("open", sf.size(sf.collect_set(sf.expr("if(usable > 0, node, null)")).over(beside)))
        .groupBy("cluster", "broker")
        .agg(
            *(sf.first(name).alias(name) for name in BROKER if name not in ("cluster", "broker")),
            sf.array_sort(sf.collect_list(sf.when(sf.col("level").isNotNull(), step))).alias("steps"),
        )
        .withColumn("like", sf.min("broker").over(Window.partitionBy("cluster", innermost, "allowed")))
    )


def _any(condition: Column, window: WindowSpec) -> Column:
    return sf.coalesce(sf.max(condition).over(window), sf.lit(False))
