"""An assessment of the clusters of a fleet before planning: loads, skew, violations, growth, bounds.

Expressions only, over the rows of snapshots. The rules are those of the planner, which plans from the same rows; what
it counts as load counts here. Sums are whole numbers, so that the same rows give the same tables.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from reassign.fleet.assess import bounds, growth, leftovers, loads, places, sizes, summary, targets
from reassign.fleet.tables import Tables, gathered


class Assessed(NamedTuple):
    """See docs/fleets/checks.md for their columns."""

    broker_load: DataFrame
    rack_load: DataFrame
    directory_load: DataFrame
    cluster_load: DataFrame
    topic_growth: DataFrame
    disk_growth: DataFrame
    leftovers: DataFrame


def assess(newest: Tables, history: Tables, terms: DataFrame) -> Assessed:
    """`newest` are the newest snapshots of some clusters, `history` all of theirs with these, `terms` rows of TERMS.

    The sizes of topics stay in the session's cache.
    """
    topics = sizes.topic_sizes(newest, history).cache()
    width = topics.where("newest").agg(sf.max("width")).head()
    brokers, named = gathered(places.places(newest, terms), sizes.newest_topics(topics, terms))
    lying = loads.Lying(*gathered(*loads.lying(newest, brokers, terms, named, (width[0] if width else None) or 1)))
    by_broker = summary.by_broker(brokers, lying.replicas)
    [by_broker] = gathered(by_broker.join(targets.targets(by_broker, lying.partitions), ["cluster", "broker"], "left"))
    return Assessed(
        summary.broker_load(by_broker),
        summary.rack_load(by_broker),
        summary.directory_load(newest, lying.replicas),
        summary.cluster_load(by_broker, topics, lying.partitions, bounds.bounds(by_broker, lying.partitions, terms)),
        growth.topic_growth(topics),
        growth.disk_growth(history, brokers),
        leftovers.leftovers(history, topics),
    )
