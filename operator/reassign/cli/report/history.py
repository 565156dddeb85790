"""What is known of a PartitionReassignment over time, from its objects and events; pure.

Nothing is guessed: what no object says is None, and `missing` has a sentence about it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import (
    Mode,
    PartitionDetail,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
    PartitionState,
)
from reassign.api.reassignment_plan import PLAN_LABEL
from reassign.api.reassignment_record import ReassignmentRecord
from reassign.core.model.record import Entry, read_record
from reassign.core.model.row import STATUS
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from reassign.text import counted, first_error

Object = dict[str, Any]
WAITING = (PartitionState.PENDING, PartitionState.BLOCKED)
ENDED = (PartitionState.COMPLETED, PartitionState.CANCELLED, PartitionState.FAILED)
MAX_EVENTS = 500
EARLY = datetime.min.replace(tzinfo=UTC)
LATE = datetime.max.replace(tzinfo=UTC)
BEFORE_SECONDS, AFTER_SECONDS = 15, 2
"""A partition that waits for its turn begins so soon after another one has ended. It can begin a little earlier: a
partition is settled once its leader is elected, and leaves its place before that."""


@dataclass(frozen=True)
class Sources:
    """The objects, as the API server has them."""

    obj: Object
    records: Sequence[Object]
    events: Sequence[Object]
    cluster: Object | None
    now: datetime
    missing: tuple[str, ...] = ()
    """What could not be read."""


@dataclass(frozen=True)
class Row:
    """One partition."""

    tp: TopicPartition
    state: PartitionState | None
    """None where no object describes it."""
    original: tuple[int, ...] | None
    target: tuple[int, ...]
    began: datetime | None = None
    ended: datetime | None = None
    waited_for: str | None = None
    after: TopicPartition | None = None
    """The partition that ended when this one began."""
    reason: str | None = None
    message: str | None = None
    bytes_copied: int | None = None
    bytes_total: int | None = None

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that it is moved from or to."""
        return frozenset(self.target) ^ frozenset(self.original or ())


@dataclass(frozen=True)
class Event:
    """Something that happened to an object, at first and at last, where the times can be read."""

    first: datetime | None
    last: datetime | None
    count: int
    warning: bool
    reason: str
    note: str
    about: str


@dataclass(frozen=True)
class History:
    """All that the page shows."""

    namespace: str
    name: str
    plan: str | None
    now: datetime
    began: datetime
    """The start of the time line."""
    ended: datetime
    """The end of the time line: now, while moves go on."""
    could_begin: datetime | None
    """Since when each partition could begin, where that is known."""
    cluster_name: str
    spec: PartitionReassignmentSpec | None
    status: PartitionReassignmentStatus
    cluster: KafkaCluster | None
    rows: Sequence[Row]
    events: Sequence[Event]
    uid: str
    dry_run: bool
    """Whether it moves nothing, so that no partition waits."""
    deleted: datetime | None = None
    missing: Sequence[str] = field(default_factory=tuple)


def describes_all(obj: Object) -> bool:
    """Whether a status describes every partition, with its times, so that no record is needed."""
    status, _ = _status(obj)
    described = {(d.topic, d.partition) for d in status.partitions}
    return described >= {(entry["topic"], entry["partition"]) for entry in obj["spec"]["partitions"]}


def history(sources: Sources) -> History:
    """Return what is known."""
    obj, meta = sources.obj, sources.obj["metadata"]
    status, unread = _status(obj)
    records, lost = _records(sources.records, meta["uid"])
    rows = _in_order(_counted(_rows(obj["spec"], status, records), status))
    cluster, cluster_unread = _cluster(sources.cluster)
    created, ended = _time(meta["creationTimestamp"]) or sources.now, status.completion_time or sources.now
    known = [status.start_time, *(row.began for row in rows), *(row.ended for row in rows)]
    known += [sample.time for sample in status.samples]
    times = [time for time in known if time]
    dry_run = obj["spec"].get("mode") == Mode.DRY_RUN
    events, left_out = _events(sources.events)
    missing = [*sources.missing, *unread, *lost, *cluster_unread, *left_out, *(() if dry_run else _gaps(rows))]
    ref = obj["spec"]["clusterRef"]
    return History(
        namespace=meta["namespace"],
        name=meta["name"],
        plan=(meta.get("labels") or {}).get(PLAN_LABEL),
        now=sources.now,
        began=min(times, default=created),
        ended=max([ended, *times]),
        could_begin=_could_begin(status.start_time, obj, sources.cluster),
        cluster_name=f"{ref.get('namespace', meta['namespace'])}/{ref['name']}",
        spec=_spec(obj),
        status=status,
        cluster=cluster,
        rows=rows,
        events=events,
        uid=meta["uid"],
        dry_run=dry_run,
        deleted=_time(meta.get("deletionTimestamp")),
        missing=tuple(missing),
    )


def _time(*texts: str | None) -> datetime | None:
    """Return the first time that can be read: the API server keeps times of the years 0 and 10000, too."""
    for text in filter(None, texts):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(text).astimezone(UTC)
    return None


def _could_begin(start: datetime | None, *objects: Object | None) -> datetime | None:
    """Return the start, if nothing was edited since.

    An edit can add a partition, and an edit or the brake can cancel a move: since when that partition waits is recorded
    nowhere.
    """
    edits = [_edited(obj) for obj in objects]
    return start if start and all(edit and edit <= start for edit in edits) else None


def _edited(obj: Object | None) -> datetime | None:
    """Return when a spec was written last, as the API server keeps it for each client; None if it does not say."""
    writes = (obj or {}).get("metadata", {}).get("managedFields") or ()
    specs = [write for write in writes if "f:spec" in (write.get("fieldsV1") or {}) and not write.get("subresource")]
    times = [_time(write.get("time")) for write in specs]
    return max((time or LATE for time in times), default=None)


def _status(obj: Object) -> tuple[PartitionReassignmentStatus, list[str]]:
    """Return the status without fields that this version cannot read, and the names of these."""
    status: Object = obj.get("status") or {}
    try:
        return PartitionReassignmentStatus.parse(status), []
    except ValidationError as error:
        unread = {str(each["loc"][0]) for each in error.errors()}
        message = f"this version cannot read the status: {first_error(error)}; run the version that wrote it"
        left, further = _status({"status": {name: status[name] for name in status.keys() - unread}})
        return left, [message, *further]


def _spec(obj: Object) -> PartitionReassignmentSpec | None:
    try:
        return PartitionReassignmentSpec.parse(obj["spec"])
    except ValidationError:
        return None


def _cluster(obj: Object | None) -> tuple[KafkaCluster | None, list[str]]:
    try:
        return (KafkaCluster.parse(obj) if obj else None), []
    except ValidationError as error:
        return None, [f"this version cannot read the KafkaCluster: {first_error(error)}"]


def _records(objects: Iterable[Object], owner: str) -> tuple[dict[TopicPartition, Entry], list[str]]:
    """Return what the parts of a record say, and which parts cannot be read, or are lost."""
    found: dict[TopicPartition, Entry] = {}
    parts: set[int] = set()
    missing = []
    for obj in objects:
        if owner not in {each["uid"] for each in obj["metadata"].get("ownerReferences") or ()}:
            continue
        try:
            record = ReassignmentRecord.parse(obj)
        except ValidationError as error:
            missing.append(f"this version cannot read {obj['metadata']['name']}: {first_error(error)}")
            if isinstance(part := (obj.get("spec") or {}).get("part"), int):
                parts.add(part)
            continue
        parts.add(record.spec.part)
        found |= read_record(record.spec.topics)
    if lost := max(parts, default=-1) + 1 - len(parts):
        missing.append(f"{counted(lost, 'ReassignmentRecord')} of this resource cannot be found")
    return found, missing


def _rows(
    spec: Object, status: PartitionReassignmentStatus, record: Mapping[TopicPartition, Entry]
) -> dict[TopicPartition, Row]:
    """Return a row for each partition that is named, described or recorded. The status, being newer, goes before."""
    rows = {
        tp: Row(tp, None, None, tuple(entry["replicas"]))
        for entry in spec["partitions"]
        if (tp := TopicPartition(entry["topic"], entry["partition"]))
    }
    for tp, entry in record.items():
        reason = entry.problem.reason if entry.problem else None
        message = entry.problem.message if entry.problem else None
        times = entry.began, entry.ended, entry.waited_for
        rows[tp] = Row(tp, STATUS[entry.state], entry.original, entry.target, *times, None, reason, message)
    for detail in status.partitions:
        tp = TopicPartition(detail.topic, detail.partition)
        rows[tp] = _described(tp, detail, rows.get(tp))
    return rows


def _described(tp: TopicPartition, detail: PartitionDetail, row: Row | None) -> Row:
    return Row(
        tp,
        detail.state,
        detail.original_replicas or (row.original if row else None) or detail.current_replicas,
        detail.target_replicas or (row.target if row else ()),
        detail.start_time,
        detail.completion_time,
        detail.waited_for,
        None,
        detail.reason,
        detail.message,
        detail.bytes_copied,
        detail.bytes_total,
    )


def _counted(rows: Mapping[TopicPartition, Row], status: PartitionReassignmentStatus) -> Mapping[TopicPartition, Row]:
    """Give partitions that nothing describes their state, where the exact counts leave one state for all of them."""
    unknown = [row for row in rows.values() if row.state is None]
    if not unknown or not (progress := status.progress):
        return rows
    found = Counter(row.state for row in rows.values())
    counts = {
        PartitionState.COMPLETED: progress.partitions_completed,
        PartitionState.IN_FLIGHT: progress.partitions_in_flight,
        PartitionState.PENDING: progress.partitions_pending,
        PartitionState.BLOCKED: progress.partitions_blocked,
        PartitionState.FAILED: progress.partitions_failed,
    }
    left = [state for state, count in counts.items() if count - found[state] == len(unknown)]
    return {**rows, **{row.tp: replace(row, state=left[0]) for row in unknown}} if len(left) == 1 else rows


def _in_order(rows: Mapping[TopicPartition, Row]) -> list[Row]:
    """Return each row with the partition whose end made room for it; the first to begin first, and what waits last."""
    ended = sorted((row for row in rows.values() if row.began and row.ended), key=lambda row: (_end(row), row.tp))
    by_broker: dict[int, list[Row]] = {}
    for row in ended:
        for broker in row.brokers:
            by_broker.setdefault(broker, []).append(row)
    placed = [_placed(row, ended, by_broker) for row in rows.values()]

    def place(row: Row) -> tuple[bool, datetime, bool, TopicPartition]:
        time = row.began or row.ended
        return time is None, time or LATE, row.state is None, row.tp

    return sorted(placed, key=place)


def _end(row: Row) -> float:
    return (row.ended or LATE).timestamp()


def _placed(row: Row, ended: Sequence[Row], by_broker: Mapping[int, Sequence[Row]]) -> Row:
    """Return the row with the move, of its brokers or else of all, that ended nearest to when it began."""
    if row.began is None or row.waited_for != Reason.WAITING_FOR_BUDGET:
        return row
    began = row.began.timestamp()
    same = [other for broker in row.brokers for other in _near(row, began, by_broker.get(broker, ()))]
    near = same or _near(row, began, ended)
    nearest = min(near, key=lambda other: (abs(_end(other) - began), other.tp), default=None)
    return replace(row, after=nearest.tp) if nearest else row


def _near(row: Row, began: float, ended: Sequence[Row]) -> list[Row]:
    """Return the last moves to end before it began, and the first ones after, no more than the answer needs."""
    after = bisect_left(ended, began, key=_end)
    before = bisect_left(ended, _end(ended[after - 1]), key=_end) if after else 0
    near = [*ended[before : min(before + 2, after)], *ended[after : after + 2]]
    return [
        other for other in near if other is not row and began - BEFORE_SECONDS <= _end(other) <= began + AFTER_SECONDS
    ]


def _gaps(rows: Sequence[Row]) -> list[str]:
    """Return what no object says."""
    gaps = []
    if unknown := sum(row.state is None for row in rows):
        gaps.append(f"the state of {counted(unknown, 'partition')} is not known")
    moved = [row for row in rows if row.state in (PartitionState.IN_FLIGHT, PartitionState.CANCELLING, *ENDED)]
    if timeless := sum(row.began is None and row.ended is None for row in moved):
        gaps.append(f"the times of {counted(timeless, 'partition')} are not recorded")
    return gaps


def _events(objects: Iterable[Object]) -> tuple[list[Event], list[str]]:
    """Return the events in their order, and how many are left out: of too many the warnings stay, then the newest."""
    found = sorted(map(_event, objects), key=lambda event: (event.warning, event.last or EARLY), reverse=True)
    kept = sorted(found[:MAX_EVENTS], key=lambda event: (event.first or LATE, event.reason))
    left_out = len(found) - len(kept)
    message = f"{counted(left_out, 'event')} left out: {MAX_EVENTS} are shown, warnings before others, and the newest"
    return kept, [message] if left_out else []


def _event(obj: Object) -> Event:
    """Read an event in either of its forms, as core/v1 shows them."""
    series = obj.get("series") or {}
    made = obj["metadata"].get("creationTimestamp")
    first = _time(obj.get("eventTime"), obj.get("firstTimestamp"), obj.get("lastTimestamp"), made)
    about = obj.get("involvedObject") or {}
    return Event(
        first=first,
        last=_time(series.get("lastObservedTime"), obj.get("lastTimestamp")) or first,
        count=series.get("count") or obj.get("count") or 1,
        warning=obj.get("type") == "Warning",
        reason=obj.get("reason") or "",
        note=obj.get("message") or "",
        about=f"{about.get('kind', '')} {about.get('name', '')}",
    )
