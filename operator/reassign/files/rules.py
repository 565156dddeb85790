"""Quality rules on the rows of a snapshot, each of one kind: a fault or a note.

A fault could make a plan wrong: rows that contradict each other, or that no cluster can have. It quarantines the
cluster. A note, such as a broker that is down, is nothing that the planner cannot handle.

Each group of rules is about rows that columns of one length describe (`Rows`). A rule says which rows it matches, and
how one is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reassign.api.limits import MAX_IN_FLIGHT_REPLICAS
from reassign.api.names import TOPIC_NAME
from reassign.files.columns import LEAST, bools, codes, lists, numbers, pairs, times, unpaired
from reassign.files.schema import SCHEMAS
from reassign.files.tables import unseen_of
from reassign.planning.problem.measures import or_means
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes
from reassign.planning.problem.problem import MOST_BYTES, MOST_REPLICA_BYTES
from reassign.planning.problem.racks import MAX_DEPTH, names_of, readable
from reassign.planning.unseen import logs_named, unseen_notes

MOST_REJECTED = 1_000
"""Rows with a fault that are kept of each kind."""
CHUNK = 10_000
"""Rows that are put into words at once."""
Tables = Mapping[str, pa.Table]
Columns = Mapping[str, Any]


class Rows(NamedTuple):
    """The subject of rules: columns, and the row of the table that each of their values belongs to."""

    columns: Columns
    table: pa.Table
    row: Bytes | None = None  # None: the first is of the first, and so on
    beside: tuple[str, ...] = ()  # columns that an example shows beside those of the table

    def first(self, which: Bytes) -> Bytes:
        """Return the rows, among these, whose example begins first, if they are partitions."""
        if "partition" not in self.table.schema.names:
            return which
        of = self.table.select(["topic", "partition"]).take(pa.array(self._at(which)))
        begins = pc.binary_join_element_wise(of["topic"], pc.cast(of["partition"], pa.string()), "-")
        begins = pc.binary_join_element_wise(begins, ": ", "")
        are_first: Bools = pc.equal(begins, pc.min(begins)).to_numpy()
        return which[are_first]

    def _at(self, which: Bytes) -> Bytes:
        return which if self.row is None else self.row[which]

    def shown(self, which: Bytes) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield the table's row for each of these, and the values that an example may show."""
        for chunk in np.split(which, range(CHUNK, len(which), CHUNK)):
            rows = self.table.take(pa.array(self._at(chunk))).to_pylist()
            for at, row in zip(chunk.tolist(), rows, strict=True):
                yield row, row | {name: self.columns[name][at] for name in self.beside}


class Rule(NamedTuple):
    """One rule: the rows that it matches, and how an example is written."""

    kind: str
    matches: Callable[[Columns], Bools]
    shown: str
    """The text of an example, as a format of the columns of its row."""
    fault: bool = True


class Group(NamedTuple):
    """Rules on one kind of rows; verdicts name the table."""

    table: str
    rows: Callable[[Tables], Rows]
    rules: tuple[Rule, ...]


class Match(NamedTuple):
    """What a rule matches in a table."""

    table: str
    kind: str
    fault: bool
    number: int  # of all rows
    example: str  # the first, in words
    rows: tuple[tuple[str, str], ...]
    """The first rows of a fault, MOST_REJECTED at most, in words and as JSON."""


def _note(kind: str, matches: Callable[[Columns], Bools], shown: str) -> Rule:
    return Rule(kind, matches, shown, fault=False)


# --- how rows are shown ---

_BROKER = "broker {broker}"
_RACK = "broker {broker} is in {rack}"
_DIRECTORY = "broker {broker} {path}"
_VOLUME = "broker {broker} {path}: {usable_bytes} of {total_bytes} bytes are usable"
_REPLICAS = "{topic}-{partition}: replicas {replicas}"
_ISR = "{topic}-{partition}: replicas {replicas}, in sync {isr}"
_LEADER = "{topic}-{partition}: leader {leader}, in sync {isr}"
_SIZE = "{topic}-{partition}: {size_bytes} bytes"
_PLACE = "{topic}-{partition}: broker {member} {place}"
_UNSEEN = "broker {broker}: {logs} logs of {topic} with {bytes} bytes"


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join('null' if each is None else str(each) for each in value)}]"
    return "unknown" if value is None else str(value)


# --- what rows are made of ---


def brokers(tables: Tables) -> Rows:
    table = tables["brokers"]
    racks = [rack or "" for rack in table["rack"].to_pylist()]
    names = [names_of(rack) for rack in racks]
    path = np.array([rack.startswith("/") for rack in racks], np.bool_)
    columns = {
        "broker": numbers(table["broker"])[0],
        "times": times(numbers(table["broker"])[0]),
        "alive": bools(table["alive"]),
        "path": path,
        "name": np.array([bool(rack) for rack in racks], np.bool_) & ~path,
        "rackless": np.array([not rack for rack in racks], np.bool_),
        "readable": np.array(
            [not rack or (len(of) <= MAX_DEPTH and readable(of)) for rack, of in zip(racks, names, strict=True)],
            np.bool_,
        ),
    }
    return Rows(columns, table)


def log_dirs(tables: Tables) -> Rows:
    table = tables["log_dirs"]
    broker, path = numbers(table["broker"])[0], codes(table["path"])[0]
    total, total_known = numbers(table["total_bytes"])
    usable, usable_known = numbers(table["usable_bytes"])
    columns = {
        "times": times(pairs(np.unique(broker, return_inverse=True)[1], path)),
        "known": _index(tables, broker) >= 0,
        "total": total,
        "usable": usable,
        "says": total_known & usable_known,
        "online": bools(table["online"]),
    }
    return Rows(columns, table)


def partitions(tables: Tables) -> Rows:
    table = tables["partitions"]
    replicas, isr = lists(table["replicas"]), lists(table["isr"])
    leader, led = numbers(table["leader"])
    size, size_known = numbers(table["size_bytes"])
    rows, (others, _) = len(table), isr.without(replicas)
    columns = {
        "partition": numbers(table["partition"])[0],
        "replicas": replicas.counts,
        "distinct": np.bincount(unpaired(replicas.keys())[0], minlength=rows),
        "directories": pc.list_value_length(table["log_dirs"]).to_numpy(),
        "in_sync": isr.counts,
        "others": np.bincount(others, minlength=rows),  # in sync beside the replicas
        "leader_out_of_sync": isr.lacks(leader, led),
        "leader_elsewhere": replicas.lacks(leader, led),
        "led": led,
        "size": size,
        "size_known": size_known,
        "settled": ~bools(table["in_flight"]),
    }
    return Rows(columns, table)


def replicas(tables: Tables) -> Rows:
    """Return a row for each replica: `member` is its broker, `place` its directory, null where it is not known."""
    table = tables["partitions"]
    of, directories = lists(table["replicas"]), table["log_dirs"]
    counts = pc.list_value_length(directories).to_numpy().astype(np.int64)
    slot = np.arange(len(of.row)) - (np.cumsum(of.counts) - of.counts)[of.row]
    has = slot < counts[of.row]
    at = pa.array((np.cumsum(counts) - counts)[of.row] + slot, pa.int64(), mask=~has)
    flat = pc.list_flatten(directories)
    flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
    place = flat.take(at)
    names = pc.unique(pc.drop_null(pa.chunked_array([*tables["log_dirs"]["path"].chunks, flat])))
    member, null = _index(tables, of.value), of.value > np.iinfo(np.int32).max
    described = pairs(
        _index(tables, numbers(tables["log_dirs"]["broker"])[0]) + 1, _code(tables["log_dirs"]["path"], names)
    )
    columns = {
        "null": null & (counts <= of.counts)[of.row],
        "unknown": (member < 0) & ~null,
        "undescribed": (member >= 0)
        & bools(pc.is_valid(place))
        & ~np.isin(pairs(member + 1, np.maximum(_code(place, names), 0)), described),
        "member": of.value,
        "place": place,
    }
    return Rows(columns, table, of.row, ("member", "place"))


def elsewhere(tables: Tables) -> Rows:
    """Return a row for each broker in sync that is no replica: a partition in flight leaves it."""
    table = tables["partitions"]
    row, member = lists(table["isr"]).without(lists(table["replicas"]))
    null = member > np.iinfo(np.int32).max
    return Rows({"null": null, "unknown": (_index(tables, member) < 0) & ~null}, table, row)


def topics(tables: Tables) -> Rows:
    table = tables["partitions"]
    topic, names = codes(table["topic"])
    number = numbers(table["partition"])[0]
    greatest = np.full(len(names), np.iinfo(np.int64).min)
    np.maximum.at(greatest, topic, number)
    there = np.unique(pairs(topic, number - number.min(initial=0)))
    counted = pa.table(
        {
            "topic": pa.array(names, pa.string()),
            "partitions": np.bincount(topic, minlength=len(names)),
            "distinct": np.bincount(unpaired(there)[0], minlength=len(names)),
            "greatest": greatest,
        }
    )
    columns = {name: counted[name].to_numpy() for name in ("partitions", "distinct", "greatest")}
    legal = np.array([TOPIC_NAME.fullmatch(name) is not None for name in names], np.bool_)
    return Rows(columns | {"legal": legal}, counted)


def whole(tables: Tables) -> Rows:
    """Return one row for the cluster: `mebibytes` of all replicas, rounded down for each topic."""
    table = tables["partitions"]
    topic, names = codes(table["topic"])
    size, known = numbers(table["size_bytes"])
    size = or_means(np.where(known, np.clip(size, 0, MOST_REPLICA_BYTES), UNKNOWN), topic.astype(np.int32), len(names))
    size = np.clip(size, 0, MOST_REPLICA_BYTES)
    count = pc.list_value_length(table["replicas"]).to_numpy().astype(np.int64)
    rest = np.zeros(len(names), np.int64)
    np.add.at(rest, topic, (size & ((1 << 20) - 1)) * count)
    mebibytes = np.array([int(((size >> 20) * count).sum()) + int((rest >> 20).sum())])
    return Rows({"mebibytes": mebibytes}, pa.table({"mebibytes": mebibytes}))


def unseen(tables: Tables) -> Rows:
    """Return a row for each thing that was not seen; `said` has all logs and topics in words."""
    table = tables.get("unseen", SCHEMAS["unseen"].empty_table())
    (broker, of_broker), of_topic = numbers(table["broker"]), bools(pc.is_valid(table["topic"]))
    topic, names = codes(pc.fill_null(table["topic"], ""))
    legal = np.array([TOPIC_NAME.fullmatch(name) is not None for name in names], np.bool_)
    (logs, counted), (size, summed) = numbers(table["logs"]), numbers(table["bytes"])
    found = unseen_of(table)
    columns = {
        "times": times(pairs(topic, np.where(of_broker, broker, -1) - LEAST)),
        "legal": legal[topic] | ~of_topic,
        "unknown": of_broker & (_index(tables, broker) < 0),
        "negative": (logs < 0) | (size < 0),
        "missing": ~(of_broker | of_topic) | (counted != (of_broker & of_topic)) | (counted != summed),
        "topic": of_topic,
        "silent": of_broker & ~of_topic,
        "said": np.full(len(table), logs_named(found.logs, unread=found.unread), np.object_),
    }
    return Rows(columns, table, beside=("said",))


def unsaid(tables: Tables) -> Rows:
    """Return one row for the cluster: whether the snapshot does not say what was not seen, and that in words."""
    return Rows({"unsaid": np.array(["unseen" not in tables])}, pa.table({"said": [*unseen_notes(None)]}))


def _index(tables: Tables, ids: Bytes) -> Bytes:
    """Return each broker's index among the ids that are described; -1 where it has none."""
    known = np.unique(numbers(tables["brokers"]["broker"])[0])
    index = np.searchsorted(known, ids)
    there = known.take(index, mode="clip") == ids if len(known) else np.zeros(len(ids), np.bool_)
    return np.where(there, index, -1)


def _code(column: Any, names: pa.Array) -> Bytes:
    found: Bytes = pc.fill_null(pc.index_in(column, names), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


# --- the rules ---

GROUPS = (
    Group(
        "brokers",
        brokers,
        (
            Rule("BrokerTwice", lambda of: of["times"] > 1, _BROKER),
            Rule("NegativeNumber", lambda of: of["broker"] < 0, _BROKER),
            _note("BrokerDown", lambda of: ~of["alive"], _BROKER),
            _note("UnreadableRack", lambda of: ~of["readable"], _RACK),
            _note("MixedRacks", lambda of: of["path"] & of["name"].any(), _RACK),
            _note("MissingRack", lambda of: of["alive"] & of["rackless"] & (of["path"] | of["name"]).any(), _BROKER),
        ),
    ),
    Group(
        "log_dirs",
        log_dirs,
        (
            Rule("DirectoryTwice", lambda of: of["times"] > 1, _DIRECTORY),
            Rule("UnknownBroker", lambda of: ~of["known"], _DIRECTORY),
            Rule("NegativeNumber", lambda of: (of["total"] < 0) | (of["usable"] < 0), _VOLUME),
            Rule("UsableAboveTotal", lambda of: of["says"] & (of["usable"] > of["total"]), _VOLUME),
            _note("DirectoryOffline", lambda of: ~of["online"], _DIRECTORY),
            _note("CapacityUnknown", lambda of: of["online"] & ~of["says"], _VOLUME),
        ),
    ),
    Group(
        "partitions",
        partitions,
        (
            Rule("NoReplicas", lambda of: of["replicas"] == 0, _REPLICAS),
            Rule("TooManyReplicas", lambda of: of["replicas"] > MAX_IN_FLIGHT_REPLICAS, _REPLICAS),
            Rule("BrokerTwiceInPartition", lambda of: of["distinct"] < of["replicas"], _REPLICAS),
            Rule("DirectoryCount", lambda of: of["directories"] != of["replicas"], _REPLICAS),
            Rule("LeaderOutsideIsr", lambda of: of["leader_out_of_sync"], _LEADER),
            Rule("LeaderOutsideReplicas", lambda of: of["settled"] & of["leader_elsewhere"], _LEADER),
            Rule("IsrOutsideReplicas", lambda of: of["settled"] & (of["others"] > 0), _ISR),
            Rule("NegativeNumber", lambda of: (of["partition"] < 0) | (of["size"] < 0), _SIZE),
            Rule("AbsurdSize", lambda of: of["size"] > MOST_REPLICA_BYTES, _SIZE),
            _note("SizeUnknown", lambda of: ~of["size_known"], _SIZE),
            _note("NoLeader", lambda of: ~of["led"], _ISR),
            _note("OutOfSync", lambda of: of["settled"] & (of["in_sync"] < of["replicas"]), _ISR),
        ),
    ),
    Group(
        "partitions",
        replicas,
        (
            Rule("MissingValue", lambda of: of["null"], _REPLICAS),
            Rule("UnknownBroker", lambda of: of["unknown"], _REPLICAS),
            Rule("UnknownDirectory", lambda of: of["undescribed"], _PLACE),
        ),
    ),
    Group(
        "partitions",
        elsewhere,
        (
            Rule("MissingValue", lambda of: of["null"], _ISR),
            Rule("UnknownIsrBroker", lambda of: of["unknown"], _ISR),
        ),
    ),
    Group(
        "partitions",
        topics,
        (
            Rule(
                "PartitionTwice",
                lambda of: of["distinct"] < of["partitions"],
                "{topic}: {distinct} partitions in {partitions} rows",
            ),
            Rule(
                "PartitionGap",
                lambda of: of["distinct"] <= of["greatest"],
                "{topic}: {distinct} partitions up to {greatest}",
            ),
            Rule("TopicName", lambda of: ~of["legal"], "{topic}"),
        ),
    ),
    Group(
        "partitions",
        whole,
        (
            Rule(
                "TooManyBytes",
                lambda of: of["mebibytes"] > MOST_BYTES >> 20,
                "{mebibytes} MiB in all replicas",
            ),
        ),
    ),
    Group(
        "unseen",
        unseen,
        (
            Rule("UnseenTwice", lambda of: of["times"] > 1, _UNSEEN),
            Rule("TopicName", lambda of: ~of["legal"], "{topic}"),
            Rule("MissingValue", lambda of: of["missing"], _UNSEEN),
            Rule("NegativeNumber", lambda of: of["negative"], _UNSEEN),
            Rule("UnknownBroker", lambda of: of["unknown"], _UNSEEN),
            _note("TopicUnseen", lambda of: of["topic"], "{said}"),
            _note("BrokerSilent", lambda of: of["silent"], _BROKER),
        ),
    ),
    Group("unseen", unsaid, (_note("UnseenNotKnown", lambda of: of["unsaid"], "{said}"),)),
)
AGAIN = "take it again"
_REPORTED = "check what the brokers report of their log directories"
REMEDIES: Mapping[str, str] = {
    "TooManyReplicas": "give it fewer replicas",
    **dict.fromkeys(("AbsurdSize", "TooManyBytes", "UsableAboveTotal"), _REPORTED),
}
"""What to do about a fault, where a new snapshot does not help."""
FAULTS = frozenset(rule.kind for group in GROUPS for rule in group.rules if rule.fault)


def matching(tables: Tables) -> Iterator[Match]:
    """Yield what each rule matches in the tables of a snapshot."""
    for group in GROUPS:
        rows = group.rows(tables)
        for rule in group.rules:
            which = np.flatnonzero(rule.matches(rows.columns))
            if not len(which):
                continue
            shown = rows.shown(which if rule.fault else rows.first(which))
            found = first_of(((_written(rule, said), _json(row)) for row, said in shown), MOST_REJECTED)
            yield Match(group.table, rule.kind, rule.fault, len(which), found[0][0], found if rule.fault else ())


def first_of(rows: Iterator[tuple[str, str]], most: int) -> tuple[tuple[str, str], ...]:
    """Return the first `most` rows in order, each once, without holding all."""
    first = set[tuple[str, str]]()
    while chunk := {*islice(rows, CHUNK)}:
        first = {*sorted(first | chunk)[:most]}
    return tuple(sorted(first))


def _written(rule: Rule, said: Mapping[str, Any]) -> str:
    return rule.shown.format_map({name: _text(value) for name, value in said.items()})


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=_time, ensure_ascii=False, separators=(",", ":"))


def _time(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
