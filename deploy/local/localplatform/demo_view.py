"""How the demo shows a PartitionReassignment: a live table, or without a terminal a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from localplatform.console import PlatformError

Object = dict[str, Any]

COLOURS = {"Completed": "green", "InFlight": "yellow", "Cancelling": "magenta", "Blocked": "red", "Failed": "red"}
LINE_SECONDS = 3.0
WIDE = 100
"""Columns of a terminal with room for every column of the table."""


def follow(
    console: Console, read: Callable[[], Object | None], done: Callable[[Object | None], bool], seconds: float
) -> Object | None:
    """Show the object until it is as it should be, and return it; None is an object that is gone."""
    deadline = time.monotonic() + seconds
    told = 0.0
    with Live(console=console, auto_refresh=False, transient=False) as live:
        try:
            while True:
                obj = read()
                if obj and console.is_terminal:
                    live.update(table(obj, console.width), refresh=True)
                elif obj and (time.monotonic() - told > LINE_SECONDS or done(obj)):
                    told = time.monotonic()
                    console.print(line(obj))
                if done(obj):
                    return obj
                if time.monotonic() > deadline:
                    raise PlatformError(f"not done within {seconds:.0f} s: {reasons(obj)}")
                time.sleep(0.5)
        except KeyboardInterrupt:
            live.update("")  # else the table is drawn once more below the ^C
            raise


def table(obj: Object, width: int) -> RenderableType:
    """All partitions, then the whole; where there is little room, without the brokers to remove."""
    status = obj.get("status") or {}
    partitions = sorted(status.get("partitions", ()), key=lambda p: (p["topic"], p["partition"]))
    topics = {p["topic"] for p in partitions}
    of_topic = f", topic {next(iter(topics))}" if len(topics) == 1 else ""
    shown = Table(title=f"PartitionReassignment {obj['metadata']['name']}{of_topic}", title_justify="left")
    shown.add_column("partition", overflow="fold")
    replicas = {"replicas": "currentReplicas", "target": "targetReplicas", "adding": "addingReplicas"}
    if width >= WIDE:
        replicas["removing"] = "removingReplicas"
    for name in ("state", *replicas, "copied", "of"):
        shown.add_column(name, justify="right" if name in ("copied", "of") else "left", no_wrap=True)
    for p in partitions:
        shown.add_row(
            str(p["partition"]) if of_topic else f"{p['topic']}-{p['partition']}",
            Text(p["state"], COLOURS.get(p["state"], "")),
            *(_ids(p.get(key)) for key in replicas.values()),
            *(megabytes(p.get(key)) for key in ("bytesCopied", "bytesTotal")),
        )
    percent = (status.get("progress") or {}).get("percent") or 0
    whole = Table.grid()
    whole.add_row(ProgressBar(total=100, completed=percent, width=60))
    whole.add_row(line(obj))
    return Group(shown, whole)


def line(obj: Object) -> str:
    """The whole in one line."""
    status = obj.get("status") or {}
    progress = status.get("progress") or {}
    speed = progress.get("bytesPerSecond")
    parts = [
        f"{progress.get('partitionsCompleted', 0)}/{progress.get('partitionsTotal', '?')} partitions",
        f"{progress.get('percent', 0) or 0:3d} %",
        f"adding {status.get('adding', 0)}, removing {status.get('removing', 0)}",
    ]
    if total := progress.get("bytesTotal"):
        parts.insert(2, f"{megabytes(progress.get('bytesCopied'))} of {megabytes(total)}")
    if speed:
        parts.append(f"{speed / 1e6:.1f} MB/s")
    parts += [words for words in status.get("summary", "").split(", ") if words.startswith("about ")]  # the time left
    return " · ".join(parts)


def reasons(obj: Object | None) -> str:
    """What its conditions say."""
    conditions = ((obj or {}).get("status") or {}).get("conditions", ())
    return "; ".join(f"{c['type']}={c['status']} {c['reason']}: {c['message']}" for c in conditions) or "no status yet"


def megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:.1f} MB"


def _ids(replicas: list[int] | None) -> str:
    return ",".join(map(str, replicas or ()))
