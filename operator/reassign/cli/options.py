"""Options that several commands share, kubectl's own among them, and parsers of their values.

Nothing heavy is imported here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reassign.api.limits import MAX_DECOMMISSION_NAME_CHARACTERS, MAX_TOPIC_NAME_CHARACTERS
from reassign.api.names import NAMESPACE_NAME, OBJECT_NAME, TOPIC_NAME
from reassign.cli import candidates
from reassign.cli.refs import SHORT, TYPES, Kube, Ref
from reassign.kube.login import Login
from reassign.text import own_words

if TYPE_CHECKING:
    from reassign.api.common import Model

MAX_DIGITS = 10
SHOWN = 50


class Output(StrEnum):
    """How a result is written, in kubectl's words. Where a table has no more columns, wide is the same table."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


class PlanOutput(StrEnum):
    """How a plan is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    MANIFESTS = "manifests"


class ListOutput(StrEnum):
    """How PartitionReassignments are written; reassignment-json is the stock tool's, of what is in flight."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    REASSIGNMENT_JSON = "reassignment-json"


class ManifestOutput(StrEnum):
    """How manifests are written."""

    YAML = "yaml"
    JSON = "json"


class AssignmentOutput(StrEnum):
    """How an assignment is written: the stock tool's JSON, or kafka-topics.sh's --replica-assignment."""

    JSON = "json"
    TOPICS = "kafka-topics"


class Brake(StrEnum):
    """Whether the brake of a KafkaCluster is set."""

    ON = "on"
    OFF = "off"


class Cancels(StrEnum):
    """What the brake cancels: the moves of PartitionReassignments, or those of other clients too."""

    OURS = "ours"
    ALL = "all"


class Fenced(StrEnum):
    """What becomes of replicas on fenced brokers."""

    KEEP = "keep"
    REPLACE = "replace"


class Scope(StrEnum):
    """Which replicas a goal may move."""

    ALL = "all"
    DRAINED = "drained"


class Racks(StrEnum):
    """How replicas are spread over racks."""

    TREE = "tree"
    FLAT = "flat"
    NONE = "none"


def rate(value: str) -> str:
    """Check a quantity of bytes per second, and return it as given."""
    from reassign.api.common import bytes_per_second

    return _checked(bytes_per_second, value)


def quantity(value: str) -> str:
    """Check a quantity of bytes, and return it as given."""
    from reassign.api.common import bytes_of

    return _checked(bytes_of, value)


def object_name(value: str) -> str:
    """Check the name of an object."""
    return _matching(OBJECT_NAME, value, "a name of lower-case letters, digits, - and ., such as drain-5")


def namespace_name(value: str) -> str:
    """Check the name of a namespace."""
    return _matching(NAMESPACE_NAME, value, "a name of lower-case letters, digits and -, such as kafka")


def decommission_name(value: str) -> str:
    """Check the name of a BrokerDecommission."""
    most = MAX_DECOMMISSION_NAME_CHARACTERS
    if len(object_name(value)) > most:
        raise typer.BadParameter(f"{value[:SHOWN]!r}… has more than {most} characters, and plans are named after it")
    return value


def topic_name(value: str) -> str:
    """Check the name of a topic."""
    return _matching(
        TOPIC_NAME, value, f"a name of letters, digits, ., _ and -, with {MAX_TOPIC_NAME_CHARACTERS} at most"
    )


def ref(value: str) -> Ref:
    """Parse NAME or TYPE/NAME, with kubectl's names of the types."""
    type, slash, name = value.rpartition("/")
    if slash and type not in TYPES:
        raise typer.BadParameter(f"{type[:SHOWN]!r} is no type that has verbs here; there are: {', '.join(SHORT)}")
    return Ref(TYPES[type] if slash else None, object_name(name))


def ref_text(value: str) -> str:
    """Check NAME or TYPE/NAME, and return it as given."""
    ref(value)
    return value


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


def items(values: list[str]) -> list[str]:
    """Return the items of a list, separated by commas or given one per option."""
    return [item for value in values for item in value.split(",")]


def broker_ids(option: str, values: list[str] | None) -> frozenset[int] | None:
    """Parse the broker ids of an option; None where it is not given."""
    if values is None:
        return None
    for item in items(values):
        if not (item.isascii() and item.isdigit() and len(item) <= MAX_DIGITS and int(item) < 2**31):
            raise typer.BadParameter(f"{item[:SHOWN]!r} is not a broker id, such as 5", param_hint=f"'{option}'")
    found = [*map(int, items(values))]
    if len(set(found)) < len(found):
        message = f"{','.join(values)[:SHOWN]} names a broker more than once"
        raise typer.BadParameter(message, param_hint=f"'{option}'")
    return frozenset(found)


def patterns(values: list[str] | None) -> tuple[str, ...] | None:
    """Return patterns of topics; one that is empty stands for none."""
    if values is None:
        return None
    return () if values == [""] else tuple(items(values))


def path(value: str) -> Path:
    """Return a path; an empty one, such as of a variable that is not set, is refused."""
    return Path(filled(value))


def filled(value: str) -> str:
    """Refuse an empty value, such as of a variable that is not set."""
    if not value:
        raise typer.BadParameter("it is empty: give a value, or leave it out")
    return value


def needed(value: str) -> str:
    """Refuse an empty value of an option that cannot be left out."""
    if not value:
        raise typer.BadParameter("it is empty: give a value")
    return value


def needed_path(value: str) -> Path:
    """Return a path that cannot be left out; an empty one is refused."""
    return Path(needed(value))


def changed_path(value: str) -> Path:
    """Return the path of a file that is to be changed; standard input is none."""
    if value == "-":
        raise typer.BadParameter("- is standard input, which cannot be changed: name the file")
    return path(value)


def given(ctx: typer.Context, *names: str) -> list[str]:
    """Return those of a command's options that its user has written."""
    options = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    sources = {name: ctx.get_parameter_source(name) for name in names}
    return [options[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def refuse(options: Iterable[str], why: str) -> None:
    """Raise a usage error for options that have no effect here."""
    for option in options:
        raise typer.BadParameter(f"it has no effect {why}; leave it out", param_hint=f"'{option}'")


def checked(option: str, model: type[Model], **fields: Any) -> None:
    """Raise a usage error for what these fields of a resource cannot have, in the words of the resource."""
    try:
        model(**fields)
    except ValueError as error:  # pydantic's, which is not imported before it has something to say
        first = error.errors()[0]  # type: ignore[attr-defined]
        given = f"{first['input'][:SHOWN]!r}: " if isinstance(first["input"], str) else ""
        raise typer.BadParameter(f"{given}{own_words(first['msg'])}", param_hint=f"'{option}'") from None


def cluster_ref(name: str | None) -> dict[str, Any]:
    """Return a reference to the KafkaCluster of that name; manifests need one."""
    if name is None:
        raise typer.BadParameter("manifests refer to a KafkaCluster: name it with --cluster", param_hint="'--cluster'")
    return {"name": name}


def template(throttle: str | None) -> dict[str, Any]:
    """Return the options of a spec."""
    return {"throttle": {"interBroker": throttle}} if throttle else {}


Cluster = Annotated[
    str | None,
    typer.Option(
        parser=object_name,
        metavar="NAME",
        help="The KafkaCluster resource to connect by, read with your kubeconfig, and the Secrets that it names.",
        autocompletion=candidates.clusters,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        parser=namespace_name,
        metavar="NAME",
        help="The namespace; by default that of the kubeconfig's context.",
        autocompletion=candidates.namespaces,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        parser=filled,
        metavar="NAME",
        help="The context of the kubeconfig; by default its current one.",
        autocompletion=candidates.contexts,
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(parser=path, metavar="FILE", help="The kubeconfig; by default KUBECONFIG's."),
]
BootstrapServer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT,...", help="Brokers to connect to without TLS or credentials, and no KafkaCluster."
    ),
]
SnapshotFolder = Annotated[
    Path | None,
    typer.Option(parser=path, metavar="FOLDER", help="Look at a snapshot that was taken, not at a live cluster."),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(parser=quantity, metavar="BYTES", help="Bytes that one wave copies, such as 500Gi."),
]
Throttle = Annotated[
    str | None,
    typer.Option(parser=rate, metavar="RATE", help="Bytes per second between brokers, such as 50Mi."),
]
File = Annotated[
    Path, typer.Option("--file", "-f", parser=needed_path, metavar="FILE", help="What to read; - for stdin.")
]


def _kube(namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> Kube:
    return Kube(namespace, Login(str(kubeconfig) if kubeconfig else None, context))


def with_kube(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command kubectl's --namespace, --context and --kubeconfig, which it gets as its argument `kube`."""
    own, added = (inspect.signature(function, eval_str=True).parameters for function in (command, _kube))
    parameters = [*(own[name] for name in own if name != "kube"), *added.values()]

    @wraps(command)
    def run(**values: Any) -> None:
        kube = _kube(**{name: values.pop(name) for name in added})
        if kube.login.context is not None:
            from reassign.cli.kubeconfig import context_of

            context_of(kube.login)
        command(kube=kube, **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([each.replace(kind=keyword) for each in parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    return run
