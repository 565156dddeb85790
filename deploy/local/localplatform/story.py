"""What the demos share: how one is begun and how it ends, and how an assignment is read from the stock tool."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table

from localplatform import kind, parts
from localplatform.brokers import Brokers, rack
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes

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
        story(server, cluster, console).run()
    except (PlatformError, TimeoutError) as error:
        console.print(f"[red]the demo failed:[/] {error}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    console.rule("[green]done")
    return 0


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
