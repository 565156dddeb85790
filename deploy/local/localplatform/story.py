"""What the demos share: how one is begun and how it ends, and how an assignment is read from the stock tool."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.table import Table

from localplatform import kind, parts
from localplatform.brokers import Brokers, rack
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes
from localplatform.machine import LOCAL

Assignment = dict[tuple[str, int], list[int]]
Held = dict[tuple[str, int], dict[int, int]]
"""The bytes of every partition on each broker."""


class Story(Protocol):
    """A demo on a platform that is up."""

    def run(self) -> None:
        """All of it; what it made is gone afterwards. A PlatformError or TimeoutError says why it failed."""


def tell(story: Callable[[ApiServer, Brokers, Console], Story]) -> int:
    """Run a demo on the platform there is; its exit code."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        server, cluster = (kind if kind.chosen() else parts).running()
        with _alone():
            story(server, cluster, console).run()
    except AnotherDemoError as error:
        console.print(str(error))
        return 2
    except (PlatformError, TimeoutError) as error:
        console.print(f"[red]the demo failed:[/] {'; '.join([str(error), *_notes(error)])}")
        return 1
    except KeyboardInterrupt as interrupt:
        left = "; ".join(_notes(interrupt)) or "what the demo made is removed"
        console.print(f"interrupted: {left}; the platform still runs (`make down` stops it)")
        return 130
    console.rule("[green]done")
    console.print("the platform still runs: `source .local/env` lets kubectl reach it, `make down` stops it")
    return 0


class AnotherDemoError(PlatformError):
    """Two demos would disturb each other."""


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of demos, which ends with the process, while the block runs."""
    LOCAL.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (LOCAL / "demo.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AnotherDemoError(f"another demo runs (process {file.read()}): wait for its end, or stop it") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def removed_afterwards(remove: Callable[[], None]) -> Iterator[None]:
    """Remove what an earlier run left, and after the block what it made, also where it fails."""
    remove()
    try:
        yield
    except BaseException as first:
        try:
            remove()
        except (PlatformError, TimeoutError, KeyboardInterrupt) as error:
            why = "it was interrupted again" if isinstance(error, KeyboardInterrupt) else str(error)
            first.add_note(f"not all that the demo made is removed: {why}; the next run removes it")
        raise
    remove()


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def replicas_of(described: str) -> Assignment:
    """The replicas of each partition, in order, as `kafka-topics --describe` prints them."""
    found: Assignment = {}
    for text in described.splitlines():
        fields = {key.strip(): value.strip() for key, _, value in (f.partition(":") for f in text.split("\t"))}
        if "Partition" in fields:
            found[fields["Topic"], int(fields["Partition"])] = [int(b) for b in fields["Replicas"].split(",")]
    return found


def held_by(cluster: Brokers) -> Held:
    """What lies where, as the stock tool has it."""
    printed = cluster.tool("org.apache.kafka.tools.LogDirsCommand", "--describe")
    described = json.loads(next(text for text in printed.splitlines() if text.startswith("{")))
    found: Held = defaultdict(dict)
    for broker in described["brokers"]:
        for directory in broker["logDirs"]:
            for partition in directory["partitions"]:
                topic, _, number = partition["partition"].rpartition("-")
                found[topic, int(number)][broker["broker"]] = partition["size"]
    return found


def by_broker(assignment: Assignment, held: Held) -> dict[str, Counter[int]]:
    """The bytes, replicas and preferred leaders of each broker."""
    bytes_, replicas, leaders = Counter[int](), Counter[int](), Counter[int]()
    for tp, ids in assignment.items():
        leaders[ids[0]] += 1
        for broker in ids:
            replicas[broker] += 1
            bytes_[broker] += held[tp].get(broker, 0)
    return {"bytes": bytes_, "replicas": replicas, "leaders": leaders}


def load_table(cluster: Brokers, loads: dict[str, Counter[int]]) -> Table:
    """The loads of the brokers as a table."""
    table = Table("broker", "rack", "bytes", "replicas", "preferred leaders")
    for broker in cluster.ids:
        counts = [str(loads[what][broker]) for what in ("replicas", "leaders")]
        table.add_row(str(broker), rack(broker), megabytes(loads["bytes"][broker]), *counts)
    return table


def check_even(console: Console, loads: dict[str, Counter[int]], brokers_: Sequence[int], tolerance: int) -> None:
    """Say how far these brokers are from their mean; an error beyond the tolerance, in percent."""
    for what, of in loads.items():
        mean = sum(of[broker] for broker in brokers_) / len(brokers_)
        off = max(abs(of[broker] / mean - 1) for broker in brokers_) * 100
        slack = 0 if what == "bytes" else 100 / mean  # a replica is not divided
        if off > tolerance + slack:
            raise PlatformError(f"{what} are {off:.1f} % off, not within {tolerance} %")
        counted = "" if what == "bytes" else f"; they count whole, and one is {slack:.1f} %"
        console.print(f"{what}: no broker is more than {off:.1f} % from the mean{counted}")
