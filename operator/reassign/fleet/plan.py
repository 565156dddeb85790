"""Plans for all clusters of a fleet: the planner's kernel, once for each of them, spread over Spark's tasks.

The rows of a cluster's brokers, log directories and partitions come together in one table as wide as all of them, since
a group is of one table. What comes out are rows again: one about the plan, and one for each partition that changes.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from reassign.errors import PlanningError, Reason
from reassign.files import tables as snapshot_tables
from reassign.files.schema import SCHEMAS
from reassign.fleet.policy import Policy, Terms
from reassign.fleet.tables import Tables, spark_schema
from reassign.manifests.objects import without_entries
from reassign.manifests.waves import entries, waves_of
from reassign.planning.plan import make_of
from reassign.planning.problem.assignments import added
from reassign.planning.problem.model import Cluster, Plan
from reassign.planning.problem.problem import RESOURCES, Problem, online_replicas, pose
from reassign.planning.waves.moves import moves_of
from reassign.planning.waves.split import makespan

INPUT = {"brokers": ("broker",), "log_dirs": ("broker", "path"), "partitions": ("topic", "partition")}
"""The tables that a plan is made from, and by what their rows are sorted there."""
NOT_NEEDED = {"leader", "isr"}

PLANNED = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("wave", pa.int32(), nullable=False),  # from 1; 0: the row about the plan
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("entry", pa.string()),  # of a PartitionReassignment's spec, as JSON
        pa.field("summary", pa.string()),  # of the whole plan, as JSON
    ]
)
"""What a plan's rows have."""
ENTRY = json.JSONEncoder(check_circular=False)
"""No entry holds itself; checking that takes a third of the time."""
TASKS_PER_CORE = 4
"""Few enough to be started quickly, and enough that what is left at the end is little."""


def plan(spark: SparkSession, tables: Tables, policy: Policy, sizes: Mapping[str, int]) -> DataFrame:
    """A plan for each cluster, as rows of PLANNED; a cluster that cannot be planned has a row that says why.

    `sizes` are the partitions of each cluster, by which they are packed into tasks.
    """
    tasks = min(max(1, len(sizes)), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    task_of = packed(sizes, tasks)
    of_cluster = spark.createDataFrame(
        pa.table({"cluster": pa.array(task_of, pa.string()), "task": pa.array(task_of.values(), pa.int32())})
    )
    rows = _wide(tables).join(sf.broadcast(of_cluster), "cluster")
    packed_rows = rows.repartitionById(tasks, "task")
    return packed_rows.groupBy("task", "cluster_id").applyInArrow(
        _planner(policy.model_dump_json(by_alias=True, exclude_unset=True)), from_arrow_schema(PLANNED)
    )


def summaries_of(rows: pa.Table) -> dict[str, Any]:
    """Return the summary of each cluster's plan, from rows of PLANNED."""
    about = rows.filter(pc.equal(rows["wave"], 0))
    texts = zip(about["cluster"].to_pylist(), about["summary"].to_pylist(), strict=True)
    return {cluster: json.loads(text) for cluster, text in sorted(texts)}


def packed(sizes: Mapping[str, int], tasks: int) -> dict[str, int]:
    """Return a task for each cluster: the largest first, each to the task that has least so far."""
    heap = [(0, task) for task in range(tasks)]
    task_of = {}
    for cluster, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        load, task = heapq.heappop(heap)
        task_of[cluster] = task
        heapq.heappush(heap, (load + size + 1, task))
    return task_of


def _wide(tables: Tables) -> DataFrame:
    """All rows that a plan is made from, with the columns of all their tables; `table` says which one a row is of."""
    schemas = {name: spark_schema(name) for name in INPUT}
    columns = {f.name: f for schema in schemas.values() for f in schema.fields if f.name not in NOT_NEEDED | {"date"}}

    def widened(name: str, rows: DataFrame) -> DataFrame:
        has = set(schemas[name].names)
        selected = [
            sf.col(c) if c in has else sf.lit(None).cast(field.dataType).alias(c) for c, field in columns.items()
        ]
        return rows.select(sf.lit(name).alias("table"), *selected)

    first, *rest = (widened(name, getattr(tables, name)) for name in INPUT)
    for other in rest:
        first = first.unionAll(other)
    return first


def _planner(policy: str) -> Callable[[pa.Table], pa.Table]:
    """The function that plans a group, in Python's workers; it carries the policy as text."""

    def of_group(rows: pa.Table) -> pa.Table:
        return plan_rows(rows, _begun(policy))

    return of_group


@cache
def _begun(policy: str) -> Policy:
    """Prepare a worker, once."""
    return Policy.model_validate_json(policy)


def plan_rows(rows: pa.Table, policy: Policy) -> pa.Table:
    """Plan the cluster of these rows (see `_wide`), as rows of PLANNED."""
    name = rows["cluster"][0].as_py()
    cluster_id = rows["cluster_id"][0].as_py()
    terms = policy.terms(name)
    try:
        return planned(name, cluster_of(name, cluster_id, rows), terms)
    except PlanningError as error:
        problem = {"reason": error.reason.value, "message": error.message}
    except Exception as error:  # a bug, or no memory: the other clusters go on
        message = f"the planner has failed ({type(error).__name__}: {error}); please report it"
        problem = {"reason": Reason.PLANNING_FAILED.value, "message": message}
    return _as_rows(name, [], {"cluster_id": cluster_id, "problem": problem})


def cluster_of(name: str, cluster_id: str, rows: pa.Table) -> Cluster:
    """Return the cluster of these rows, which come in any order."""
    if pc.count_distinct(rows["taken_at"]).as_py() > 1:
        raise PlanningError(
            Reason.INVALID_SNAPSHOT, "another snapshot has taken the place of this one meanwhile; run it again"
        )
    tables = {}
    for table, by in INPUT.items():
        schema = pa.schema([field for field in SCHEMAS[table] if field.name not in NOT_NEEDED])
        of_table = rows.select(schema.names).filter(pc.equal(rows["table"], table)).cast(schema)
        tables[table] = of_table.take(_order(of_table, by))
    return snapshot_tables.cluster_of(Path(name), cluster_id, tables)


def planned(name: str, cluster: Cluster, terms: Terms) -> pa.Table:
    """Plan a cluster, as rows of PLANNED."""
    goal = terms.planner_goal()
    problem = pose(cluster, goal)
    made = make_of(problem, cluster, goal, terms.waves.max_partitions, terms.max_bytes, terms.rate)
    waves = [entries(cluster, made, those) for those in waves_of(made)]
    # what no object can hold is an error here, which leaves out this cluster alone
    manifests = terms.manifests(name, waves)
    about = {**summary(cluster, problem, made, terms.rate), "manifests": [*map(without_entries, manifests)]}
    return _as_rows(name, waves, about)


def summary(cluster: Cluster, problem: Problem, plan: Plan, rate: int | None) -> dict[str, Any]:
    """Return the summary of a plan as plain JSON values. Lists are in the order of the brokers."""
    certificate = plan.certificate
    after = problem.loads(plan.target)
    return {
        "cluster_id": cluster.id,
        "problem": None,
        "racks": list(cluster.racks),
        "before": {by.value: problem.load[row].tolist() for row, by in enumerate(RESOURCES)},
        "after": {by.value: after[row].tolist() for row, by in enumerate(RESOURCES)},
        "target": {by.value: problem.target[row].tolist() for row, by in enumerate(RESOURCES)},
        "balance": [
            {
                "by": one.by.value,
                "before": one.before,
                "after": one.after,
                "reachable": one.reachable,
                "band": one.band,
            }
            for one in certificate.balance
        ],
        "waves": _waves(cluster, problem, plan, rate),
        "bytes": certificate.bytes,
        "bytes_bound": certificate.bytes_bound,
        "moves": certificate.moves,
        "moves_bound": certificate.moves_bound,
        "leaders": certificate.leaders,
        "waves_bound": certificate.waves_bound,
        "makespan": certificate.makespan,
        "makespan_bound": certificate.makespan_bound,
        "unmet": [one._asdict() for one in certificate.unmet],
    }


def _waves(cluster: Cluster, problem: Problem, plan: Plan, rate: int | None) -> list[dict[str, Any]]:
    """Of each wave the partitions that change, the bytes that are copied, and seconds, where there is a rate."""
    of = np.flatnonzero(plan.wave >= 0)
    number = int(plan.wave.max(initial=-1)) + 1
    copies = np.zeros(number, np.int64)
    np.add.at(copies, plan.wave[of], added(cluster.replicas[of], plan.target[of]).sum(axis=1) * problem.size[of])
    seconds: tuple[float | None, ...] = (None,) * number
    if rate is not None:
        moves = moves_of(cluster.replicas, plan.target, problem.size, online_replicas(cluster))
        seconds = makespan(moves, plan.wave, rate).waves
    counts = np.bincount(plan.wave[of], minlength=number)
    rows = zip(counts.tolist(), copies.tolist(), seconds, strict=True)
    return [{"partitions": count, "bytes": copied, "seconds": lasts} for count, copied, lasts in rows]


def _as_rows(name: str, waves: list[list[dict[str, Any]]], about: dict[str, Any]) -> pa.Table:
    entries = [(number, each) for number, wave in enumerate(waves, 1) for each in wave]
    return pa.Table.from_arrays(
        [
            pa.repeat(pa.scalar(name), 1 + len(entries)),
            pa.array([0, *(number for number, _ in entries)], pa.int32()),
            pa.array([None, *(each["topic"] for _, each in entries)], pa.string()),
            pa.array([None, *(each["partition"] for _, each in entries)], pa.int32()),
            pa.array([None, *(ENTRY.encode(each) for _, each in entries)], pa.string()),
            pa.array([json.dumps(about), *(None for _ in entries)], pa.string()),
        ],
        schema=PLANNED,
    )


def _order(table: pa.Table, by: tuple[str, ...]) -> pa.Array:
    """Names are sorted once each, not once a row."""
    keys = []
    for name in reversed(by):
        column = table[name]
        if pa.types.is_string(column.type):
            codes = column.combine_chunks().dictionary_encode()
            names = codes.dictionary
            rank = np.empty(len(names), np.int64)
            rank[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
            keys.append(rank[codes.indices.to_numpy(zero_copy_only=False)] if len(names) else rank)
        else:
            keys.append(column.to_numpy(zero_copy_only=False))
    return pa.array(np.lexsort(keys))
