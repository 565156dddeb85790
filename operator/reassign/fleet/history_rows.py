"""The part of a snapshot that counts in its cluster's history: the bytes of topics and volumes, and what was begun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reassign.api.config_keys import BROKER_RATES, LISTS
from reassign.files.columns import bools, codes, numbers
from reassign.fleet.outcomes import Row
from reassign.planning.problem.directories import volumes
from reassign.planning.problem.measures import or_means
from reassign.planning.problem.model import UNKNOWN, Bools, Directories
from reassign.planning.problem.problem import MOST_REPLICA_BYTES

MOST = float(1 << 63)
THROTTLE, REASSIGNMENT = "Throttle", "Reassignment"

KEYS = {"broker": BROKER_RATES, "topic": LISTS}
"""The keys of throttles by kind."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "brokers": (),
    "log_dirs": ("broker", "path", "total_bytes", "usable_bytes", "online"),
    "partitions": ("topic", "partition", "replicas", "size_bytes", "in_flight"),
    "configs": ("kind", "name", "key", "value"),
    "unseen": (),
}
"""The columns that the rows are made from, by table."""


def history_rows(tables: Mapping[str, pa.Table], directories: Directories | None) -> dict[str, list[Row]]:
    """Return the rows of HISTORY of a snapshot; `directories`, which only the newest has, tell volumes apart."""
    in_flight = bools(tables["partitions"]["in_flight"])
    begun = _reassignments(tables["partitions"], in_flight) if in_flight.any() else _throttles(tables["configs"])
    sizes = chain(_topics(tables["partitions"]), _volumes(tables["log_dirs"], directories))
    return {"sizes": list(sizes), "begun": list(begun)}


def _topics(partitions: pa.Table) -> Iterator[Row]:
    """Yield the bytes of each topic's replicas; None where no size is known, or no number can hold them."""
    topic, names = codes(partitions["topic"])
    size, known = numbers(partitions["size_bytes"])
    known &= size >= 0
    size = or_means(np.where(known, np.minimum(size, MOST_REPLICA_BYTES), UNKNOWN), topic.astype(np.int32), len(names))
    count = pc.list_value_length(partitions["replicas"]).to_numpy().astype(np.int64)
    total, roughly = np.zeros(len(names), np.int64), np.zeros(len(names))
    np.add.at(total, topic, size * count)
    np.add.at(roughly, topic, size.astype(np.float64) * count)
    told = (np.bincount(topic[known], minlength=len(names)) > 0) & (roughly < MOST)
    for name, bytes_, is_told in zip(names, total.tolist(), told.tolist(), strict=True):
        yield {"name": name, "bytes": bytes_ if is_told else None, "first": True}


def _volumes(log_dirs: pa.Table, directories: Directories | None) -> Iterator[Row]:
    """Yield a row for each log directory; `first` marks one for each volume that says how full it is."""
    first = set[int]()
    if directories is not None:
        says = directories.online & (directories.total != UNKNOWN) & (directories.usable != UNKNOWN)
        _, one = np.unique(volumes(directories), return_index=True)
        first = {int(i) for i in one if says[i]}
    columns = log_dirs.select(["broker", "path", "total_bytes", "usable_bytes", "online"]).to_pydict().values()
    for i, (broker, path, total, usable, online) in enumerate(zip(*columns, strict=True)):
        row = {"broker": broker, "name": path, "first": i in first}
        if online and total is not None and usable is not None:
            used = total - usable
            row |= {"bytes": used if abs(used) < MOST else None, "total_bytes": total, "usable_bytes": usable}
        yield row


def _throttles(configs: pa.Table) -> Iterator[Row]:
    """Yield the throttles of a cluster that has nothing in flight: they may have been left behind."""
    if not configs.num_rows:
        return
    is_set = pc.and_(pc.is_in(configs["key"], pa.array([*BROKER_RATES, *LISTS])), pc.not_equal(configs["value"], ""))
    for row in configs.filter(is_set).to_pylist():
        if row["key"] in KEYS.get(row["kind"], ()):
            yield {"kind": THROTTLE, "what": f"{row['key']} of {row['kind']} {row['name']}"}


def _reassignments(partitions: pa.Table, in_flight: Bools) -> Iterator[Row]:
    for row in partitions.select(["topic", "partition", "replicas"]).filter(pa.array(in_flight)).to_pylist():
        replicas = ", ".join(str(broker) for broker in row["replicas"] if broker is not None)
        yield {"kind": REASSIGNMENT, "what": f"{row['topic']}-{row['partition']} to {replicas}"}
