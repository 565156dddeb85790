"""What the demos share: how one is begun and how it ends, and how an assignment is read from the stock tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rich.console import Console

from localplatform import brokers, machine, parts
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer


class Story(Protocol):
    """A demo on a platform that is up."""

    def run(self) -> None:
        """All of it; what it made is gone afterwards. A PlatformError or TimeoutError says why it failed."""


def tell(story: Callable[[ApiServer, Brokers, Console], Story]) -> int:
    """Run a demo on the platform there is; its exit code."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        server = ApiServer.load(parts.API)
        if server is None:
            raise PlatformError("the platform is not up: make up")
        story(server, brokers.load(machine.processes(), parts.BROKERS), console).run()
    except (PlatformError, TimeoutError) as error:
        console.print(f"[red]the demo failed:[/] {error}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    console.rule("[green]done")
    return 0


def replicas_of(described: str) -> dict[tuple[str, int], list[int]]:
    """The replicas of each partition, in order, as `kafka-topics --describe` prints them."""
    found: dict[tuple[str, int], list[int]] = {}
    for text in described.splitlines():
        fields = {key.strip(): value.strip() for key, _, value in (f.partition(":") for f in text.split("\t"))}
        if "Partition" in fields:
            found[fields["Topic"], int(fields["Partition"])] = [int(b) for b in fields["Replicas"].split(",")]
    return found
