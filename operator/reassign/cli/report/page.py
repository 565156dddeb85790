"""The page: a time line with a row for each partition, folded by topic, and what else is known; pure.

It has no script: folds are <details>, and each picture repeats what a table beside it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reassign.api.common import bytes_per_second
from reassign.api.partition_reassignment import PartitionState, Throttle
from reassign.cli.report.history import WAITING, History, Row
from reassign.core.model.progress import duration
from reassign.errors import Reason
from reassign.page import numbers
from reassign.page.document import rendered
from reassign.text import listed

UNFOLDED = 100
"""Partitions of all topics together that are shown unfolded."""
FOLD = 500
"""Partitions of one topic that unfold together."""
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
STEPS = [
    timedelta(seconds=seconds)
    for unit, counts in ((1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 3, 6, 12)))
    for seconds in (unit * count for count in counts)
]
"""Steps of an axis of time below a day."""
MARKS = 6
LEAST_PERCENT = 0.2
"""The least width of what took no second."""
CHART_HEIGHT = 150


class Mark(NamedTuple):
    """A place on an axis, in percent or pixels, and what is written there."""

    at: str
    text: str


class Bar(NamedTuple):
    """A part of the time line: from where, how wide, in percent."""

    kind: str
    x: str
    width: str


class Line(NamedTuple):
    """A row of the time line, with what is drawn and written for it."""

    row: Row
    bars: Sequence[Bar]
    waited: timedelta | None
    took: timedelta | None


class Topic(NamedTuple):
    """The partitions of one topic, or a part of many."""

    name: str
    part: str
    """Which part of the topic's partitions; empty for all."""
    lines: Sequence[Line]
    counts: Sequence[tuple[str, int]]
    """Partitions by state."""
    bars: Sequence[Bar]
    """From the first beginning to the last end."""


class Wait(NamedTuple):
    """Partitions that wait, or have waited, for one thing."""

    what: str
    rows: Sequence[Row]
    longest: timedelta | None
    message: str | None


class Axis:
    """The time of the page from left to right."""

    def __init__(self, began: datetime, ended: datetime) -> None:
        self.began = began
        self.span = max(ended - began, timedelta(seconds=1))

    def percent(self, time: datetime) -> float:
        return min(max((time - self.began) / self.span, 0), 1) * 100

    def bar(self, kind: str, began: datetime, ended: datetime) -> Bar:
        left = min(self.percent(began), 100 - LEAST_PERCENT)
        return Bar(kind, _short(left), _short(max(self.percent(ended) - left, LEAST_PERCENT)))

    @property
    def marks(self) -> list[Mark]:
        """Round times since the beginning."""
        day = timedelta(days=1)
        days = next(day * 2**n for n in range(32) if self.span / (day * 2**n) <= MARKS)
        step = next((step for step in STEPS if self.span / step <= MARKS), days)
        times = [step * i for i in range(int(self.span / step) + 1)]
        return [Mark(_short(time / self.span * 100), _elapsed(time, step)) for time in times]


def render(history: History, version: str) -> str:
    """Return the page as one HTML document."""
    axis = Axis(history.began, history.ended)
    lines = [_line(row, history, axis) for row in history.rows]
    parts = rendered(
        "reassign.cli.report",
        history=history,
        ready=next((c for c in history.status.conditions if c.type == "Ready"), None),
        progress=history.status.progress,
        marks=axis.marks,
        topics=_topics(lines, axis),
        unfolded=len(lines) <= UNFOLDED,
        waits_now=_waits_now(() if history.dry_run else history.rows),
        waits_before=_waits_before(lines),
        chart=_chart(history, axis),
        throttle=_throttle(history),
        warnings=[_short(axis.percent(time)) for time in _warned(history)],
        clock=_clock(history),
        took=_took,
        lasted=_lasted(history),
        ids=lambda ids: ",".join(map(str, ids)),
        stands=lambda row: _stands(row) and not history.dry_run,
        listed=listed,
        version=version,
    )
    return "".join(parts)


def _short(percent: float) -> str:
    return f"{percent:.2f}".rstrip("0").rstrip(".")


def _elapsed(time: timedelta, step: timedelta) -> str:
    """Return a time in the unit of its axis."""
    size, unit = next((size, unit) for size, unit in UNITS if not step.total_seconds() % size)
    return f"{time.total_seconds() / size:.0f}{numbers.NO_BREAK}{unit}" if time else "0"


def _took(time: timedelta | None) -> str:
    return "" if time is None else duration(time.total_seconds()).replace(" ", numbers.NO_BREAK)


def _clock(history: History) -> Callable[[datetime | None], str]:
    """Return what writes times: without the day, where all that is shown is of one day."""
    ends = [history.began, history.now, *(event.first for event in history.events if event.first)]
    form = "%H:%M:%S" if len({end.astimezone(UTC).date() for end in ends}) == 1 else f"%m-%d{numbers.NO_BREAK}%H:%M:%S"
    return lambda time: f"{time.astimezone(UTC):{form}}" if time else ""


def _lasted(history: History) -> timedelta | None:
    """Since the start, until the end or now."""
    start, end = history.status.start_time, history.status.completion_time or history.now
    return end - start if start and start <= end else None


def _line(row: Row, history: History, axis: Axis) -> Line:
    """Return a row with its bars."""
    until = _waited_until(row, history.now)
    since = history.could_begin
    waited = until - since if since and until and since <= until and row.waited_for != Reason.SUSPENDED else None
    ended = row.ended or (history.now if row.began and row.state not in WAITING else None)
    bars = [axis.bar("wait", since, until)] if since and until and waited else []
    if row.state and ended:
        bars.append(axis.bar(row.state, row.began or ended, ended))
    return Line(row, bars, waited, ended - row.began if row.began and ended else None)


def _waited_until(row: Row, now: datetime) -> datetime | None:
    if row.state in WAITING:
        return now
    return row.ended if row.began is None and row.reason == Reason.DEADLINE_EXCEEDED else row.began


def _topics(lines: Iterable[Line], axis: Axis) -> list[Topic]:
    """Return the topics in the order in which their first partitions began, as are the partitions of each."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.row.tp.topic, []).append(line)
    return [
        _topic(name, _part(at, len(of)), of[at : at + FOLD], axis)
        for name, of in found.items()
        for at in range(0, len(of), FOLD)
    ]


def _part(at: int, total: int) -> str:
    """Say which partitions of a topic one fold has, where the topic has several."""
    last = numbers.count(min(at + FOLD, total))
    return f"{numbers.count(at + 1)} to {last} of {numbers.count(total)}" if total > FOLD else ""


def _topic(name: str, part: str, lines: Sequence[Line], axis: Axis) -> Topic:
    counts = Counter(line.row.state.value if line.row.state else "not known" for line in lines)
    drawn = [bar for line in lines for bar in line.bars if bar.kind != "wait"]
    left = min((float(bar.x) for bar in drawn), default=0)
    right = max((float(bar.x) + float(bar.width) for bar in drawn), default=0)
    bars = [Bar("topic", _short(left), _short(right - left))] if drawn else []
    return Topic(name, part, lines, counts.most_common(), bars)


def _waits_now(rows: Iterable[Row]) -> list[Wait]:
    """Return what partitions wait for, that of the most first."""
    found: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if _stands(row):
            found.setdefault((row.reason or "its turn", row.message), []).append(row)
    waits = [Wait(what, of, None, message) for (what, message), of in found.items()]
    return sorted(waits, key=lambda wait: -len(wait.rows))


def _stands(row: Row) -> bool:
    """Whether it waits, or is in flight and says why it does not come nearer."""
    in_flight = row.state in (PartitionState.IN_FLIGHT, PartitionState.CANCELLING)
    return row.state in WAITING or (in_flight and row.reason is not None)


def _waits_before(lines: Iterable[Line]) -> list[Wait]:
    """Return what partitions had waited for when they began, the longest first."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        if line.row.began and line.row.waited_for:
            found.setdefault(line.row.waited_for, []).append(line)
    waits = [Wait(what, [line.row for line in of], _longest(of), None) for what, of in found.items()]
    return sorted(waits, key=lambda wait: wait.longest or timedelta(), reverse=True)


def _longest(lines: Sequence[Line]) -> timedelta | None:
    """None where one of the waits is not known: that one may be the longest."""
    known = [line.waited for line in lines if line.waited is not None]
    return max(known) if len(known) == len(lines) else None


class Chart(NamedTuple):
    """Bytes over time: a line through the samples, in thousandths and percent of the picture from its left top."""

    points: str
    dots: Sequence[tuple[str, str]]
    marks: Sequence[Mark]
    unit: str
    total: str | None
    label: str
    samples: Sequence[tuple[datetime, str]]
    height: int = CHART_HEIGHT


def _chart(history: History, axis: Axis) -> Chart | None:
    samples, progress = history.status.samples, history.status.progress
    if not samples:
        return None
    total = (progress.bytes_total if progress else None) or 0
    greatest = max(total, *(sample.bytes_copied for sample in samples), 1)
    unit = numbers.column_unit(greatest)
    steps = numbers.steps(greatest / 1024**unit)
    top = steps[-1] * 1024**unit

    def y(size: float) -> str:
        return _short(CHART_HEIGHT - CHART_HEIGHT * size / top)

    places = [(_short(axis.percent(sample.time)), y(sample.bytes_copied)) for sample in samples]
    copied = numbers.size(samples[-1].bytes_copied)
    return Chart(
        points=" ".join(f"{_short(float(x) * 10)},{height}" for x, height in places),
        dots=places,
        marks=[Mark(y(step * 1024**unit), f"{step:g}") for step in steps],
        unit=numbers.UNITS[unit],
        total=y(total) if total else None,
        label=f"Bytes copied over time: {copied} of {numbers.size(total)}. The table of samples has each of them.",
        samples=[(sample.time, numbers.size(sample.bytes_copied)) for sample in samples],
    )


def _throttle(history: History) -> list[tuple[str, str]]:
    """Return what is known of rates, as names and values."""
    spec, cluster, status = history.spec, history.cluster, history.status
    facts = [("Asked for by this resource", _rates(spec.throttle) if spec else "not known")]
    if cluster:
        facts.append(("Default of the KafkaCluster", _rates(cluster.spec.throttle)))
        now = cluster.status.throttle
        set_now = [f"{_rate(rate)} {between}" for rate, between in _set(now.inter_broker, now.log_dir)] if now else []
        facts.append(("Set on the brokers now", ", ".join(set_now) or "none"))
        if now and now.users:
            ours = history.uid in {user.uid for user in now.users}
            others = numbers.counted(len(now.users) - ours, "other")
            facts.append(("Set for", f"this one and {others}" if ours else others))
    if status.progress and status.progress.bytes_per_second:
        facts.append(("Copied now", _rate(status.progress.bytes_per_second)))
    if len(status.samples) > 1:
        first, last = status.samples[0], status.samples[-1]
        seconds = (last.time - first.time).total_seconds()
        if seconds > 0 and last.bytes_copied > first.bytes_copied:
            facts.append(("Copied on average", _rate((last.bytes_copied - first.bytes_copied) / seconds)))
    return facts


def _rates(throttle: Throttle | None) -> str:
    """Return the rates that a spec asks for."""
    if throttle is None:
        return "none"
    asked = _set(
        *(bytes_per_second(rate) if rate is not None else None for rate in (throttle.inter_broker, throttle.log_dir))
    )
    return ", ".join(f"{_rate(rate)} {between}" for rate, between in asked) or "none"


def _set(inter_broker: int | None, log_dir: int | None) -> list[tuple[int, str]]:
    both = ((inter_broker, "between brokers"), (log_dir, "between log directories"))
    return [(rate, between) for rate, between in both if rate is not None]


def _rate(rate: float) -> str:
    return f"{numbers.size(rate)}/s"


def _warned(history: History) -> list[datetime]:
    times = [event.first for event in history.events if event.warning and event.first]
    return [time for time in times if history.began <= time <= history.ended]
