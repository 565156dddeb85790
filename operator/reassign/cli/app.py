"""`kubectl kafka-reassign`: plans, assignments and checks from the command line, and verbs on the resources.

What a command needs is imported when it runs: help starts no client, and compiles nothing. Completion starts a client
for names alone.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from reassign import __version__
from reassign.api.goal import By
from reassign.api.limits import MAX_PARTITIONS, MAX_REPLICAS, MAX_WAVE_PARTITIONS, WAVE_PARTITIONS
from reassign.cli import candidates, options
from reassign.cli import output as out
from reassign.cli.fleet import fleet
from reassign.cli.options import AssignmentOutput, Fenced, ManifestOutput, Output, PlanOutput, Racks, Scope
from reassign.cli.refs import Kube
from reassign.cli.verbs import EXITS, NO, verbs
from reassign.errors import ApiServerError, ClusterError, Reason, ReassignError
from reassign.text import own_words

PROGRAM = "kubectl-kafka_reassign"
AWAY = (Reason.NOT_AUTHORIZED, Reason.SPARK_FAILED)
DENIED = (Reason.APPROVED_DIGEST_MISMATCH, Reason.PLANNING, Reason.PLAN_STALE, Reason.CONFLICT)
"""What a verb finds otherwise than its user has seen it: the answer is no."""
WRONG, UNREACHABLE, UNWRITABLE, INTERRUPTED = 2, 3, 4, 130


class RootContext(typer.Context):
    """Names the program in usage and errors as users type it; completion needs the file's name."""

    @property
    def command_path(self) -> str:
        return "kubectl kafka-reassign"


class Commands(TyperGroup):
    """Prints an error as one line on stderr, and exits with its code."""

    context_class = RootContext

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except typer.TyperException as error:
            raise _refused(error) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            raise _refused(error) from None
        except ReassignError as error:
            out.say(f"error: {error.message.rstrip('.')} ({error.reason})")
            if error.reason is Reason.CANNOT_BE_WRITTEN:
                raise typer.Exit(UNWRITABLE) from None
            if error.reason in DENIED:
                raise typer.Exit(NO) from None
            away = isinstance(error, ClusterError | ApiServerError) or error.reason in AWAY
            raise typer.Exit(UNREACHABLE if away else WRONG) from None
        except OSError as error:
            if error.filename is None:  # of stdout or stderr
                raise
            out.say(f"error: {error.filename} cannot be used: {error.strerror} ({Reason.CANNOT_BE_READ})")
            raise typer.Exit(WRONG) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except out.UnwritableError as error:
            if not isinstance(error.__cause__, BrokenPipeError):  # as of `| head`, which has what it wanted
                out.say(f"error: stdout cannot be written: {error} ({Reason.CANNOT_BE_WRITTEN})")
            raise typer.Exit(UNWRITABLE) from None


def _refused(error: typer.TyperException) -> Exception:
    """Say what is wrong with the words of a command, and its usage below; return how the program ends."""
    context = getattr(error, "ctx", None)
    if context is not None and error.message == context.get_help():  # of a command without words
        return error
    error.message = own_words(error.message)  # typer checks by pydantic
    if context is not None and (option := getattr(error, "option_name", None)) and _of_commands(context, option):
        error.message += f"; it goes after the command: {context.command_path} COMMAND {option} …"
    out.say(f"error: {' '.join(error.format_message().split()).rstrip('.')} ({Reason.INVALID_ARGUMENT})")
    if context is not None:
        typer.echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.", err=True)
    return typer.Exit(WRONG)


def _of_commands(context: Any, option: str) -> bool:
    """Whether the commands of a group have an option, which the group itself has not."""
    commands = getattr(context.command, "commands", {})
    return any(option in parameter.opts for command in commands.values() for parameter in command.params)


app = typer.Typer(
    cls=Commands,
    help="Plan and check the moves of Kafka partitions, and follow, approve and stop those of resources.",
    epilog=EXITS,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kafka-reassign {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    pass


@app.command(epilog=EXITS)
@options.with_kube
def plan(
    ctx: typer.Context,
    kube: Kube,
    cluster: options.Cluster = None,
    bootstrap_server: options.BootstrapServer = None,
    snapshot: options.SnapshotFolder = None,
    drain_broker: Annotated[
        list[str] | None, typer.Option(metavar="ID,...", help="Brokers that no replica stays on.")
    ] = None,
    broker: Annotated[
        list[str] | None, typer.Option(metavar="ID,...", help="The brokers that may have replicas; by default all.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_REPLICAS, help="How many replicas each partition has; by default as many as now."),
    ] = None,
    balance: Annotated[
        list[str] | None,
        typer.Option(metavar=",".join(map(str.lower, By)), help="What is to lie evenly on the brokers."),
    ] = None,
    tolerance: Annotated[
        int, typer.Option(min=1, max=100, help="How far a broker's share may be from the best reachable, in percent.")
    ] = 10,
    racks: Annotated[
        Racks, typer.Option(help="Spread over racks as paths level by level, as plain names, or not at all.")
    ] = Racks.TREE,
    scope: Annotated[
        Scope, typer.Option(help="Whether all replicas may move, or only those on drained brokers.")
    ] = Scope.ALL,
    avoid_broker: Annotated[
        list[str] | None,
        typer.Option(metavar="ID,...", help="Brokers that get no new replica; what they have may stay."),
    ] = None,
    fenced_brokers: Annotated[
        Fenced, typer.Option(help="Whether replicas on brokers that are fenced stay, or get another broker.")
    ] = Fenced.KEEP,
    include: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN,...", help="Topics to plan; by default all.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN,...",
            help="Topics that stay as they are, none for ''. By default __* are not balanced, but are drained.",
        ),
    ] = None,
    min_free_disk: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=99,
            metavar="PERCENT",
            help="What stays free of a disk; by default the KafkaCluster's limit, or 10.",
        ),
    ] = None,
    max_partitions: Annotated[
        int, typer.Option(min=1, max=MAX_WAVE_PARTITIONS, help="Partitions of one wave.")
    ] = WAVE_PARTITIONS,
    max_bytes: options.MaxBytes = None,
    throttle: options.Throttle = None,
    output: Annotated[PlanOutput, typer.Option("--output", "-o", help="How to write the plan.")] = PlanOutput.TABLE,
    name: Annotated[
        str, typer.Option(parser=options.object_name, metavar="NAME", help="What the manifests' names begin with.")
    ] = "plan",
) -> None:
    """Plan the moves that reach a goal.

    It shows their cost beside the least possible, and each broker's load. A goal is one or more of --drain-broker,
    --broker, --replication-factor and --balance.

    Exits with 1 when the plan does not reach the whole goal; the plan says the nearest that it reaches.

    Manifests are suspended PartitionReassignments for the KafkaCluster that --cluster names, one for each wave.

    Example: kubectl kafka-reassign plan --cluster main -n kafka --drain-broker 5 --balance disk,leaders
    """
    from reassign.cli import planning
    from reassign.cli.source import where_of

    goal = planning.goal_of(
        drain=options.broker_ids("--drain-broker", drain_broker),
        brokers=options.broker_ids("--broker", broker),
        replication_factor=replication_factor,
        balance=balance,
        tolerance=tolerance,
        racks=racks,
        include=options.patterns(include),
        exclude=options.patterns(exclude),
        scope=scope,
        avoid=options.broker_ids("--avoid-broker", avoid_broker),
        fenced_brokers=fenced_brokers,
    )
    if balance is None:
        options.refuse(options.given(ctx, "tolerance"), "without --balance")
    if output is not PlanOutput.MANIFESTS:
        for option in options.given(ctx, "name", *(["cluster"] if snapshot else [])):
            out.say(f"note: {option} has no effect here without -o manifests")
    wanted = planning.Wanted(goal, min_free_disk, max_partitions, max_bytes, throttle, name)
    if not planning.run(where_of(cluster, kube, bootstrap_server, snapshot), wanted, output):
        raise typer.Exit(NO)


@app.command(epilog=EXITS)
@options.with_kube
def assign(
    kube: Kube,
    topic: Annotated[
        str, typer.Option(parser=options.topic_name, metavar="NAME", help="The topic that is to be made.")
    ],
    partitions: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many partitions it has.")],
    replication_factor: Annotated[
        int, typer.Option(min=1, max=MAX_REPLICAS, help="How many replicas each of them has.")
    ],
    cluster: options.Cluster = None,
    bootstrap_server: options.BootstrapServer = None,
    snapshot: options.SnapshotFolder = None,
    broker: Annotated[
        list[str] | None, typer.Option(metavar="ID,...", help="The brokers to choose from; by default all that are up.")
    ] = None,
    force_simple: Annotated[bool, typer.Option("--force-simple", help="Let racks not count.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="Repeats an assignment; by default it starts at a random broker.")
    ] = None,
    output: Annotated[
        AssignmentOutput, typer.Option("--output", "-o", help="The stock tool's JSON, or kafka-topics.sh's string.")
    ] = AssignmentOutput.JSON,
) -> None:
    """Assign the replicas of a new topic over racks (KIP-879).

    Racks may lie in racks, as paths.

    Example: kafka-topics.sh --create --topic orders --replica-assignment "$(kubectl kafka-reassign assign
    --cluster main --topic orders --partitions 12 --replication-factor 3 -o kafka-topics)"
    """
    from reassign.cli import assigning
    from reassign.cli.source import where_of

    asked = assigning.Asked(topic, partitions, replication_factor, force_simple, seed)
    chosen = options.broker_ids("--broker", broker)
    if snapshot is not None and cluster is not None:
        raise typer.BadParameter("it is another cluster than --cluster names: give one", param_hint="'--snapshot'")
    assigning.run(where_of(cluster, kube, bootstrap_server, snapshot), asked, chosen, output)


@app.command(epilog=EXITS)
@options.with_kube
def convert(
    ctx: typer.Context,
    kube: Kube,
    file: options.File,
    cluster: Annotated[
        str | None,
        typer.Option(
            parser=options.object_name, metavar="NAME", help="The KafkaCluster that manifests are for; they need one."
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            parser=options.object_name,
            metavar="NAME",
            help="The manifest's name; of several, what their names begin with.",
        ),
    ] = "move",
    max_partitions: Annotated[
        int, typer.Option(min=1, max=MAX_PARTITIONS, help="Partitions of one manifest.")
    ] = MAX_WAVE_PARTITIONS,
    throttle: options.Throttle = None,
) -> None:
    """Convert the stock tool's JSON to manifests, or the reverse.

    The file says which: it has JSON of the stock tool, or PartitionReassignments.

    Example: kubectl kafka-reassign convert -f reassignment.json --cluster main -n kafka
    """
    from reassign.cli.converting import run

    of_manifests = options.given(ctx, "cluster", "name", "max_partitions", "throttle")
    run(file, cluster, kube, name, max_partitions, throttle, of_manifests)


@app.command(epilog=EXITS)
@options.with_kube
def rollback(
    kube: Kube,
    name: Annotated[
        str | None,
        typer.Argument(
            parser=options.object_name,
            metavar="NAME",
            help="A live PartitionReassignment.",
            autocompletion=candidates.reassignments,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", parser=options.path, metavar="FILE", help="One with its status, in place of a live one."
        ),
    ] = None,
    output: Annotated[ManifestOutput, typer.Option("--output", "-o", help="How to write it.")] = ManifestOutput.YAML,
) -> None:
    """Write the PartitionReassignment that undoes another one.

    It is made from the record in the status of that one.

    Example: kubectl kafka-reassign rollback drain-5-a6cb0b-56bb107f-1 -n kafka | kubectl apply --server-side -f -
    """
    from reassign.cli.converting import roll_back

    if name is not None and file is not None:
        raise typer.BadParameter("a PartitionReassignment and a file are given: leave one of them out")
    if name is None and file is None:
        raise typer.BadParameter("name a PartitionReassignment, or a file with --file")
    roll_back(name, kube, file, output)


@app.command(epilog=EXITS)
@options.with_kube
def snapshot(
    kube: Kube,
    folder: Annotated[
        Path | None, typer.Argument(parser=options.path, metavar="FOLDER", help="A folder that is not there yet.")
    ] = None,
    cluster: options.Cluster = None,
    bootstrap_server: options.BootstrapServer = None,
    into: Annotated[
        Path | None,
        typer.Option(
            parser=options.path,
            metavar="ROOT",
            help="In place of FOLDER: ROOT/date=DAY/cluster=NAME, where one of the same day (UTC) is replaced.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            parser=options.object_name,
            metavar="NAME",
            help="The cluster's name below ROOT; by default the KafkaCluster's.",
        ),
    ] = None,
) -> None:
    """Keep a live cluster's state as Parquet files.

    They are for `plan --snapshot` and for Spark.

    Example: kubectl kafka-reassign snapshot --cluster main -n kafka --into ./snapshots
    """
    from reassign.cli.source import keep, where_of

    where = where_of(cluster, kube, bootstrap_server)
    if folder is not None and into is None and name is None:
        keep(where, folder)
    elif into is not None and folder is None and (named := name or cluster):
        keep(where, into, named)
    elif into is not None and folder is None:
        raise typer.BadParameter("needed beside --into where no KafkaCluster is named", param_hint="'--name'")
    else:
        raise typer.BadParameter("give a folder, or --into and, if need be, --name")


@app.command(epilog=EXITS)
@options.with_kube
def verify(
    kube: Kube,
    file: options.File,
    cluster: options.Cluster = None,
    bootstrap_server: options.BootstrapServer = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")] = Output.TABLE,
) -> None:
    """Make the operator's checks on manifests, and write nothing.

    It makes every check of PartitionReassignments against the live cluster. The cluster is the KafkaCluster that they
    refer to, or the one that is named. Exits with 1 when anything in them
    would be blocked.

    Example: kubectl kafka-reassign verify -n kafka -f waves.yaml
    """
    from reassign.cli.source import where_of
    from reassign.cli.verifying import run

    if not run(file, where_of(cluster, kube, bootstrap_server), output):
        raise typer.Exit(NO)


app.add_typer(verbs)
app.add_typer(fleet, name="fleet")


def main() -> None:
    """Run the program."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it was while this was imported
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger().addHandler(logging.NullHandler())  # what libraries warn of, errors say
    out.as_utf8()
    try:
        app(prog_name=PROGRAM)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # of help; typer has caught it, and says 1
            end.code = UNWRITABLE
        raise
    except OSError:  # of help, or of stderr: there is no way left to say it
        out.drop()
        sys.exit(UNWRITABLE)
