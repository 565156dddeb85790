"""Options that several commands have, and how what is given to them is read. Nothing heavy is imported here."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reassign.api.limits import MAX_TOPIC_NAME_CHARACTERS
from reassign.api.names import NAMESPACE_NAME, OBJECT_NAME, TOPIC_NAME

MAX_DIGITS = 10
SHOWN = 50


class Output(StrEnum):
    """How a result is written."""

    TEXT = "text"
    JSON = "json"


class PlanOutput(StrEnum):
    """How a plan is written."""

    TEXT = "text"
    JSON = "json"
    MANIFESTS = "manifests"


class AssignmentOutput(StrEnum):
    """How an assignment is written: the stock tool's JSON, or kafka-topics.sh's --replica-assignment."""

    JSON = "json"
    TOPICS = "kafka-topics"


class Racks(StrEnum):
    """How far racks count."""

    TREE = "tree"
    FLAT = "flat"
    NONE = "none"


def rate(value: str) -> str:
    """A quantity of bytes per second, as it was given."""
    from reassign.api.common import bytes_per_second

    return _checked(bytes_per_second, value)


def quantity(value: str) -> str:
    """A quantity of bytes, as it was given."""
    from reassign.api.common import bytes_of

    return _checked(bytes_of, value)


def object_name(value: str) -> str:
    """A name that an object can have."""
    return _matching(OBJECT_NAME, value, "a name of lower-case letters, digits, - and ., such as drain-5")


def namespace_name(value: str) -> str:
    """A name that a namespace can have."""
    return _matching(NAMESPACE_NAME, value, "a name of lower-case letters, digits and -, such as kafka")


def topic_name(value: str) -> str:
    """A name that a topic can have."""
    return _matching(
        TOPIC_NAME, value, f"a name of letters, digits, ., _ and -, with {MAX_TOPIC_NAME_CHARACTERS} at most"
    )


def _matching(pattern: re.Pattern[str], value: str, what: str) -> str:
    if not pattern.fullmatch(value):
        raise typer.BadParameter(f"{value[:SHOWN]!r} is not {what}")
    return value


def _checked(read: Callable[[str], int], value: str) -> str:
    try:
        read(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return value


def broker_ids(values: list[str]) -> frozenset[int]:
    """Ids, separated by commas, or each with an option of its own."""
    found = [item for value in values for item in value.split(",")]
    for item in found:
        if not (item.isascii() and item.isdigit() and len(item) <= MAX_DIGITS and int(item) < 2**31):
            raise typer.BadParameter(f"{item[:SHOWN]!r} is not a broker id, such as 5")
    return frozenset(map(int, found))


Cluster = Annotated[
    str | None,
    typer.Option(
        parser=object_name,
        metavar="NAME",
        help="The KafkaCluster resource to connect by, read with your kubeconfig, and the Secrets that it names.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        parser=namespace_name,
        metavar="NAME",
        help="Its namespace; by default that of the kubeconfig's context.",
    ),
]
BootstrapServer = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,...", help="Brokers to connect to without TLS or credentials, and no KafkaCluster."
    ),
]
SnapshotFolder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Look at a snapshot that was taken, not at a live cluster.", file_okay=False),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(parser=quantity, metavar="BYTES", help="Bytes that one wave copies, such as 500Gi."),
]
Throttle = Annotated[
    str | None,
    typer.Option(parser=rate, metavar="RATE", help="Bytes per second between brokers, such as 50Mi."),
]
File = Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="What to read; - for stdin.")]
