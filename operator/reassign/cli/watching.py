"""The command `watch`: a resource until its end, as bars on a terminal, else as a line for each change.

What is shown, and when it has ended, are pure functions of statuses. Rates of partitions and brokers come from the
statuses of the last minute.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.made_plan import PlanOutcome
from reassign.api.partition_reassignment import PartitionReassignmentStatus, PartitionState
from reassign.api.reassignment_plan import ReassignmentPlanStatus, WaveState
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.listing import without_managers
from reassign.cli.objects import Item, find
from reassign.cli.options import Output
from reassign.cli.refs import Kube, Ref
from reassign.core.model.progress import WINDOW_SECONDS, duration, rate
from reassign.errors import ApiServerError, Reason
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient
from reassign.text import amount, listed, printable

POLL_SECONDS = 1.0
PATIENCE = 12
"""How often in a row the API server may fail to answer."""
MIN_ROWS, OTHER_ROWS = 3, 8
NUMBERS_WIDTH = 47
"""What the columns of numbers take beside a name and its bar, with the space between."""
WAVE_WIDTH = 38
"""What the other columns of a wave take beside its name."""


class End(NamedTuple):
    """How a resource ended."""

    succeeded: bool
    message: str


class Bar(NamedTuple):
    """What is copied of a partition, or to a broker."""

    name: str
    copied: int
    total: int


class View(NamedTuple):
    """A resource, and of a plan, or of the plan that was made for it, the wave that runs."""

    item: Item
    wave: Item | None = None

    @property
    def moving(self) -> Item | None:
        """The PartitionReassignment whose partitions are shown."""
        return self.item if self.item.is_reassignment else self.wave

    @property
    def version(self) -> tuple[str, ...]:
        return tuple(each.obj["metadata"]["resourceVersion"] for each in self if each)


Samples = Mapping[str, Sequence[tuple[float, int]]]
"""(seconds, bytes copied) of each bar, by its name."""


def end_of(item: Item | None) -> End | None:
    """Return how a resource has ended; None while it has not. One that is gone was cancelled; no policy ends."""
    if item is None:
        return End(False, "it was deleted")
    if item.deleted:
        return None
    checked = item.condition("Checked") if item.up_to_date else None
    if checked:
        return End(item.says("Checked"), f"{checked.reason}: {checked.message}")
    ready = item.ready
    message = f"{ready.reason}: {ready.message}" if ready else ""
    if item.is_decommission:
        said = next((type for type in ("Ready", "Stalled") if item.says(type)), None)
        return End(said == "Ready", f"{said}, {message}") if said else None
    if item.says("Succeeded"):
        return End(True, message)
    wave_failed = item.up_to_date and ready is not None and ready.reason == Reason.WAVE_FAILED
    return End(False, message) if item.says("Failed") or wave_failed else None


def line(view: View) -> str:
    """Return the state of a resource as one line."""
    item = view.item
    summary = item.status.summary or "not begun"
    parts = [summary]
    if view.wave and view.wave.status.summary:
        parts.append(f"{view.wave.name}: {view.wave.status.summary}")
    if (progress := view.moving and view.moving.progress) and progress.bytes_per_second:
        parts.append(f"{amount(progress.bytes_per_second)}/s")
    ready = item.ready
    why = ready.reason if ready else "Pending"
    if ready and ready.message != summary and (item.says("Stalled") or not item.says("Reconciling")):
        why += f": {ready.message.replace(f'; {summary}', '').replace(f'{summary}; ', '')}"
    return printable(f"{', '.join(parts)} ({'being deleted: ' if item.deleted else ''}{why})")


def partition_bars(item: Item) -> list[Bar]:
    """Return a bar for each partition in flight that its status describes."""
    assert isinstance(item.status, PartitionReassignmentStatus)
    return [
        Bar(f"{detail.topic}-{detail.partition}", detail.bytes_copied or 0, detail.bytes_total or 0)
        for detail in item.status.partitions
        if detail.state is PartitionState.IN_FLIGHT
    ]


def broker_bars(item: Item) -> list[Bar]:
    """Return a bar for each broker that replicas are added to; these share the bytes of a partition equally."""
    assert isinstance(item.status, PartitionReassignmentStatus)
    copied: dict[int, int] = {}
    total: dict[int, int] = {}
    for detail in item.status.partitions:
        adding = detail.adding_replicas or () if detail.state is PartitionState.IN_FLIGHT else ()
        for broker in adding:
            copied[broker] = copied.get(broker, 0) + (detail.bytes_copied or 0) // len(adding)
            total[broker] = total.get(broker, 0) + (detail.bytes_total or 0) // len(adding)
    return [Bar(f"broker {broker}", copied[broker], total[broker]) for broker in sorted(total)]


def sampled(samples: Samples, bars: Iterable[Bar], now: float) -> Samples:
    """Add the bars as they are now; what is older than a minute goes, and so does what is shown no more."""
    result = {}
    for bar in bars:
        recent = [sample for sample in samples.get(bar.name, ()) if now - sample[0] <= WINDOW_SECONDS]
        same = recent and recent[-1][1] == bar.copied and len(recent) > 1
        result[bar.name] = recent if same else [*recent, (now, bar.copied)]
    return result


def bars_table(title: str, bars: Sequence[Bar], samples: Samples, width: int, more: int = 0) -> Table:
    """Return a row for each bar: how much is copied of what, at which rate, and the time left.

    A name that has no room in the width is cut in its middle: its end has the number of the partition.
    """
    table = out.table(title, "", "%", "COPIED", "OF", "RATE", "LEFT", numbers=("%", "COPIED", "OF", "RATE", "LEFT"))
    bar_width = max(10, min(30, width - 90))
    room = max(width - NUMBERS_WIDTH - bar_width, 10)
    table.columns[0].footer = f"and {more} more" if more else ""
    table.show_footer = bool(more)
    for bar in bars:
        speed = rate(samples.get(bar.name, ()))
        share = bar.copied / bar.total if bar.total else 0
        left = duration((bar.total - bar.copied) / speed) if speed else "-"
        shown = ProgressBar(total=1, completed=share, width=bar_width)
        speed_text = f"{amount(speed)}/s" if speed else "-"
        table.add_row(
            _cut(bar.name, room), shown, str(int(share * 100)), amount(bar.copied), amount(bar.total), speed_text, left
        )
    return table


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 9]}…{name[-8:]}"


def waves_table(status: ReassignmentPlanStatus, width: int) -> Table:
    """Return a row for each wave of a plan. A name that has no room in the width is cut in its middle."""
    table = out.table("WAVE", "STATE", "PARTITIONS", "BYTES", numbers=("PARTITIONS", "BYTES"))
    for wave in status.waves:
        name = _cut(wave.name, max(width - WAVE_WIDTH, 10))
        table.add_row(name, wave.state.value, str(wave.partitions), amount(wave.bytes))
    return table


def brokers_table(status: BrokerDecommissionStatus) -> Table:
    """Return a row for each broker of a BrokerDecommission; what is not known of it is empty."""
    table = out.table("BROKER", "STATE", "REPLICAS", "CORDONED", numbers=("REPLICAS",))
    for broker in status.brokers:
        replicas = "" if broker.replicas is None else str(broker.replicas)
        cordoned = "" if broker.cordoned is None else str(broker.cordoned)
        table.add_row(str(broker.id), broker.state.value, replicas, cordoned)
    return table


def triggers_table(status: ReassignmentPolicyStatus) -> Table:
    """Return a row for each trigger of a policy."""
    table = out.table("TRIGGER", "STATE", "BROKERS", "REASON")
    for trigger in status.triggers:
        brokers = listed(trigger.brokers, most=4, separator=",")
        table.add_row(trigger.name, trigger.state.value, brokers, trigger.reason or "")
    return table


def picture(view: View, samples: Samples, width: int, rows: int) -> RenderableType:
    """Return all that a terminal of this size shows; partitions that have no room are counted."""
    item = view.item
    parts: list[RenderableType] = [Text(f"{item.namespace}/{item.name}: {line(view)}")]
    if isinstance(item.status, ReassignmentPlanStatus) and item.status.waves:
        parts += ["", waves_table(item.status, width)]
        rows -= len(item.status.waves) + 2
    if isinstance(item.status, BrokerDecommissionStatus) and item.status.brokers:
        parts += ["", brokers_table(item.status)]
        rows -= len(item.status.brokers) + 2
    if isinstance(item.status, ReassignmentPolicyStatus) and item.status.triggers:
        parts += ["", triggers_table(item.status)]
        rows -= len(item.status.triggers) + 2
    if view.moving:
        brokers, partitions = broker_bars(view.moving), partition_bars(view.moving)
        room = max(rows - len(brokers) - OTHER_ROWS, MIN_ROWS)
        in_flight = view.moving.progress.partitions_in_flight
        shown = partitions[:room]
        if shown:
            parts += ["", bars_table("PARTITION", shown, samples, width, max(in_flight, len(partitions)) - len(shown))]
        if brokers:
            parts += ["", bars_table("BROKER", brokers, samples, width)]
    return Group(*parts)


def run(kube: Kube, name: Ref, output: Output) -> bool:
    """Show a resource until it has ended; return whether it succeeded."""
    with _screen(output) as show:
        end = asyncio.run(_follow(kube, name, show))
    if output not in (Output.JSON, Output.YAML):
        out.write_line(end.message)
    return end.succeeded


async def _follow(kube: Kube, name: Ref, show: Callable[[View], None]) -> End:
    async with live.api_server(kube.login) as server:
        item: Item | None = await find(server, namespace_of(kube), name)
        assert item
        kind, namespace, uid = item.kind, item.namespace, item.obj["metadata"]["uid"]
        failures = 0
        while True:
            try:
                if item:
                    show(View(item, await _wave(server, item)))
                if end := end_of(item):
                    return end
                await asyncio.sleep(POLL_SECONDS)
                obj = await server.get(kind, namespace, name.name)
                item = Item(obj) if obj and obj["metadata"]["uid"] == uid else None
                failures = 0
            except ApiServerError:
                failures += 1
                if failures == PATIENCE:
                    raise
                await asyncio.sleep(POLL_SECONDS)


async def _wave(server: KubeClient, item: Item) -> Item | None:
    """Return the wave that runs of a plan, or of the plan that was made for a resource and runs."""
    if isinstance(item.status, BrokerDecommissionStatus | ReassignmentPolicyStatus):
        plans = [plan.name for plan in item.status.plans if plan.outcome is PlanOutcome.RUNNING]
        plan = await server.get(Kind.REASSIGNMENT_PLAN, item.namespace, plans[-1]) if plans else None
        return await _wave(server, Item(plan)) if plan else None
    if not isinstance(item.status, ReassignmentPlanStatus):
        return None
    running = next((wave.name for wave in item.status.waves if wave.state is WaveState.RUNNING), None)
    obj = await server.get(Kind.PARTITION_REASSIGNMENT, item.namespace, running) if running else None
    return Item(obj) if obj else None


@contextmanager
def _screen(output: Output) -> Iterator[Callable[[View], None]]:
    """Yield what shows a view: in place on a terminal, else each change as a line, or as the object itself."""
    if output in (Output.TABLE, Output.WIDE) and sys.stdout and sys.stdout.isatty():
        with _redrawn() as show:
            yield show
        return
    last: list[object] = [None]

    def show_change(view: View) -> None:
        text = view.version if output in (Output.JSON, Output.YAML) else line(view)
        if text == last[0]:
            return
        last[0] = text
        if output is Output.YAML:
            out.write("---\n")
        if not out.write_value(without_managers(view.item.obj), output):
            out.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n")

    yield show_change


@contextmanager
def _redrawn() -> Iterator[Callable[[View], None]]:
    console = Console(highlight=False, markup=False, emoji=False)
    samples: Samples = {}

    def show(view: View) -> None:
        nonlocal samples
        bars = [*partition_bars(view.moving), *broker_bars(view.moving)] if view.moving else []
        samples = sampled(samples, bars, time.monotonic())
        screen.update(out.Printable(picture(view, samples, console.width, console.height)), refresh=True)

    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as screen:
        yield show
