"""The verbs on resources: those that make or change one, and list, top, watch, explain and report.

Each acts in the name of its user: what the user may not do is refused by the API server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reassign.cli import candidates, options
from reassign.cli.options import Brake, Cancels, ListOutput, ManifestOutput, Output
from reassign.cli.refs import Kube

EXITS = (
    "Exit codes: 0 yes, or done; 1 the answer is no; 2 the command or what it was given is wrong; "
    "3 the cluster or the API server cannot be reached, or refuses us; "
    "4 the answer cannot be written; 130 it was interrupted."
)
NO = 1
NAMED = "NAME, kpr/NAME, krp/NAME, kbd/NAME or krpol/NAME."

AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces, in place of --namespace.")
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        parser=options.object_name,
        metavar="NAME",
        help="Those that refer to this KafkaCluster.",
        autocompletion=candidates.clusters,
    ),
]
Name = Annotated[
    str,
    typer.Argument(parser=options.ref_text, metavar="NAME", help=NAMED, autocompletion=candidates.resources),
]
_NAMES = typer.Argument(parser=options.ref_text, metavar="NAME", help=NAMED, autocompletion=candidates.resources)
Names = Annotated[list[str], _NAMES]
MaybeNames = Annotated[list[str] | None, _NAMES]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Let the API server check it and store nothing, and say what would be done.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Words = Annotated[Output, typer.Option("--output", "-o", help="How to write it.")]

verbs = typer.Typer()


@verbs.command("list", epilog=EXITS)
@options.with_kube
def list_(
    kube: Kube,
    cluster: OfCluster = None,
    all_namespaces: AllNamespaces = False,
    output: Annotated[
        ListOutput,
        typer.Option("--output", "-o", help="How to write it; reassignment-json: what is in flight on the brokers."),
    ] = ListOutput.TABLE,
) -> None:
    """List what moves partitions, or makes plans.

    That is PartitionReassignments, BrokerDecommissions and ReassignmentPolicies, each with its state.

    With -o reassignment-json it writes what is in flight on a cluster, as the stock tool's JSON. That includes moves of
    other clients.

    Example: kubectl kafka-reassign list -A --cluster main
    """
    from reassign.cli.listing import run

    run(kube, all_namespaces, cluster, output)


@verbs.command(epilog=EXITS)
@options.with_kube
def decommission(
    kube: Kube,
    brokers: Annotated[list[str], typer.Argument(metavar="BROKER", help="Ids of the brokers.")],
    cluster: Annotated[
        str,
        typer.Option(
            parser=options.object_name,
            metavar="NAME",
            help="The KafkaCluster that the brokers belong to, in the namespace.",
            autocompletion=candidates.clusters,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            parser=options.decommission_name, metavar="NAME", help="Its name; by default decommission- and the ids."
        ),
    ] = None,
    unregister: Annotated[
        bool, typer.Option("--unregister", help="Unregister each broker once it is empty and down.")
    ] = False,
    output: Annotated[
        ManifestOutput | None, typer.Option("--output", "-o", help="Write the manifest, and make nothing.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Make a BrokerDecommission: brokers are to be emptied.

    Its plan is worked out, and nothing is cordoned or moved before it is approved.

    Example: kubectl kafka-reassign decommission 5 6 --cluster main -n kafka
    """
    from reassign.cli.decommissioning import run

    ids = options.broker_ids("BROKER...", brokers)
    assert ids is not None
    run(kube, ids, cluster, name, unregister, output, dry_run)


@verbs.command(epilog=EXITS)
@options.with_kube
def approve(
    kube: Kube,
    name: Annotated[
        str,
        typer.Argument(
            parser=options.ref_text,
            metavar="NAME",
            help="A ReassignmentPlan, a BrokerDecommission or a ReassignmentPolicy.",
            autocompletion=candidates.approvable,
        ),
    ],
    digest: Annotated[
        str | None,
        typer.Option(
            parser=options.filled,
            metavar="sha256:…",
            help="The plan that was read: another one is refused, and nothing is asked.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            parser=options.changed_path,
            metavar="FILE",
            help="Write the digest to the manifest in this file, to be committed, and nothing to the API server.",
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Approve a plan by its digest.

    Of a plan that was made for a BrokerDecommission or a ReassignmentPolicy, name that one.

    Exits with 1 when the plan is another one by now, or is not made yet.

    With --file one line of a manifest is changed, and all else in it stays as it is.

    Example: kubectl kafka-reassign approve drain-5 -n kafka
    """
    from reassign.cli.approving import approve

    approve(kube, options.ref(name), digest, file, yes, dry_run)


@verbs.command(epilog=EXITS)
@options.with_kube
def suspend(kube: Kube, names: Names, dry_run: DryRun = False) -> None:
    """Suspend one or more resources.

    They are PartitionReassignments, plans, BrokerDecommissions or ReassignmentPolicies. Nothing new starts, and moves
    in flight continue.

    Example: kubectl kafka-reassign suspend first-move -n kafka
    """
    from reassign.cli.changing import suspend

    suspend(kube, [*map(options.ref, names)], True, dry_run)


@verbs.command(epilog=EXITS)
@options.with_kube
def resume(kube: Kube, names: Names, dry_run: DryRun = False) -> None:
    """Resume what is suspended.

    Example: kubectl kafka-reassign resume first-move -n kafka
    """
    from reassign.cli.changing import suspend

    suspend(kube, [*map(options.ref, names)], False, dry_run)


@verbs.command(epilog=EXITS)
@options.with_kube
def cancel(
    kube: Kube,
    names: MaybeNames = None,
    topic: Annotated[
        str | None,
        typer.Option(parser=options.topic_name, metavar="NAME", help="All that move partitions of this topic."),
    ] = None,
    cluster: OfCluster = None,
    all_namespaces: AllNamespaces = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Cancel resources by deleting them.

    They are PartitionReassignments, plans or BrokerDecommissions. What is in flight goes back. A ReassignmentPolicy is
    refused: suspend it, and cancel its plan. Exits with 1 when one that is named has nothing to cancel, or when it is
    not confirmed.

    Example: kubectl kafka-reassign cancel --topic orders -n kafka --dry-run
    """
    from reassign.cli.cancelling import Selection, run

    if bool(names) == bool(topic or cluster):
        raise typer.BadParameter("name resources, or select them by --topic, --cluster or both")
    if names and all_namespaces:
        raise typer.BadParameter("names are of one namespace: see --namespace", param_hint="'--all-namespaces'")
    selection = Selection(tuple(map(options.ref, names or ())), topic, cluster, all_namespaces)
    if not run(kube, selection, yes, dry_run):
        raise typer.Exit(NO)


@verbs.command(epilog=EXITS)
@options.with_kube
def brake(
    kube: Kube,
    position: Annotated[Brake, typer.Argument(metavar="on|off", help="Whether the brake is set.")],
    cluster: Annotated[
        str,
        typer.Argument(
            parser=options.object_name,
            metavar="CLUSTER",
            help="A KafkaCluster.",
            autocompletion=candidates.clusters,
        ),
    ],
    cancel: Annotated[
        Cancels | None,
        typer.Option(help="Also cancel what is in flight: of PartitionReassignments, or of other clients too."),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Set the brake of a KafkaCluster, or release it.

    Nothing new starts until it is off. A brake that is set never stops less than before: set it to off first.

    Example: kubectl kafka-reassign brake on main -n kafka --cancel ours
    """
    from reassign.cli.changing import brake

    brake(kube, position, cluster, cancel, yes, dry_run)


@verbs.command(epilog=EXITS)
@options.with_kube
def top(
    kube: Kube, cluster: OfCluster = None, all_namespaces: AllNamespaces = False, output: Words = Output.TABLE
) -> None:
    """Show what moves on clusters, brokers and resources.

    All of it is from their statuses.

    Example: kubectl kafka-reassign top -n kafka
    """
    from reassign.cli.top import run

    run(kube, all_namespaces, cluster, output)


@verbs.command(epilog=EXITS)
@options.with_kube
def watch(kube: Kube, name: Name, output: Words = Output.TABLE) -> None:
    """Show a resource until it ends.

    That is a PartitionReassignment, a plan or a BrokerDecommission. It shows bars on a terminal, else a line for each
    change. Exits with 0 when it succeeded, and with 1 when it failed or was deleted. A BrokerDecommission ends when its
    brokers are empty, with 0, or when it is stalled, with 1. A ReassignmentPolicy is shown until it is deleted.

    Example: kubectl kafka-reassign watch first-move -n kafka
    """
    from reassign.cli.watching import run

    if not run(kube, options.ref(name), output):
        raise typer.Exit(NO)


@verbs.command(epilog=EXITS)
@options.with_kube
def explain(
    kube: Kube,
    name: Annotated[
        str,
        typer.Argument(
            parser=options.ref_text,
            metavar="NAME",
            help="A ReassignmentPolicy.",
            autocompletion=candidates.policies,
        ),
    ],
    output: Words = Output.TABLE,
) -> None:
    """Explain a ReassignmentPolicy.

    It says of each trigger what it sees, what holds it, and when it acts next. All of it is from the status, as the
    operator wrote it.

    Example: kubectl kafka-reassign explain main -n kafka
    """
    from reassign.cli.explaining import run

    run(kube, options.ref(name), output)


@verbs.command(epilog=EXITS)
@options.with_kube
def report(
    kube: Kube,
    name: Annotated[
        str,
        typer.Argument(
            parser=options.ref_text,
            metavar="NAME",
            help="A PartitionReassignment.",
            autocompletion=candidates.reassignments,
        ),
    ],
) -> None:
    """Write an HTML file about a PartitionReassignment.

    It has a time line, bytes, throttle, waits and events. It opens in a browser without a network. What cannot be read
    is left out, and named on the page and on stderr.

    Example: kubectl kafka-reassign report first-move -n kafka > first-move.html
    """
    from reassign.cli.report.reading import run

    run(kube, options.ref(name))
