"""`kubectl kafka-reassign fleet`: snapshots of many clusters become plans, manifests and a report, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reassign.cli.options import filled, needed, needed_path, path

EXITS = (
    "Exit codes: 0 done; 1 done, and some clusters were left out; 2 the command or what it was given is wrong; "
    "3 Spark has failed or does not start, or all snapshots went away; "
    "4 something cannot be written; 130 it was interrupted."
)

Snapshots = Annotated[
    str,
    typer.Option(
        parser=needed, metavar="FOLDER", help="Snapshots as date=…/cluster=…; any file system that Spark knows."
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        parser=path, metavar="FILE", help="What is wanted of which cluster; by default all are to be in balance."
    ),
]
Work = Annotated[
    str,
    typer.Option(
        parser=needed, metavar="FOLDER", help="Where a run leaves its tables, and finds those of a run before."
    ),
]
Manifests = Annotated[
    Path, typer.Option(parser=needed_path, metavar="FOLDER", help="The tree of manifests, such as a checkout of Git.")
]
Report = Annotated[Path, typer.Option(parser=needed_path, metavar="FILE", help="The report, one HTML file.")]
Master = Annotated[
    str | None,
    typer.Option(
        parser=filled, metavar="URL", help="Spark's master; by default spark-submit's, else all cores of this machine."
    ),
]

fleet = typer.Typer(
    help="Plan whole fleets from snapshots, on Spark. Each command makes what the ones before it make, and skips what "
    "is there already.",
    epilog=EXITS,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@fleet.command(epilog=EXITS)
def assess(snapshots: Snapshots, work: Work, policy: PolicyFile = None, master: Master = None) -> None:
    """Check the snapshots, and say where load and racks are wrong.

    Also say what grows, and what was left behind.

    Example: kubectl kafka-reassign fleet assess --snapshots ./snapshots --work ./work
    """
    _run(snapshots, work, policy, master, plans=False)


@fleet.command(epilog=EXITS)
def plan(snapshots: Snapshots, work: Work, policy: PolicyFile = None, master: Master = None) -> None:
    """Plan every cluster as the policy wants it.

    Example: kubectl kafka-reassign fleet plan --snapshots ./snapshots --policy policy.yaml --work ./work
    """
    _run(snapshots, work, policy, master)


@fleet.command(epilog=EXITS)
def emit(
    snapshots: Snapshots, work: Work, manifests: Manifests, policy: PolicyFile = None, master: Master = None
) -> None:
    """Write the plans as manifests, for Argo CD.

    There is a folder for each cluster, and a file for each wave.

    Example: kubectl kafka-reassign fleet emit --snapshots ./snapshots --policy policy.yaml --work ./work
    --manifests ./fleet
    """
    _run(snapshots, work, policy, master, manifests=manifests)


@fleet.command(epilog=EXITS)
def report(snapshots: Snapshots, work: Work, report: Report, policy: PolicyFile = None, master: Master = None) -> None:
    """Write the report: one HTML file that opens without a network.

    Example: kubectl kafka-reassign fleet report --snapshots ./snapshots --work ./work --report fleet.html
    """
    _run(snapshots, work, policy, master, report=report)


@fleet.command(epilog=EXITS)
def run(
    snapshots: Snapshots,
    work: Work,
    manifests: Manifests,
    report: Report,
    policy: PolicyFile = None,
    master: Master = None,
) -> None:
    """Run all stages: check, assess, plan, manifests, report.

    Example: kubectl kafka-reassign fleet run --snapshots ./snapshots --policy policy.yaml --work ./work
    --manifests ./fleet --report fleet.html
    """
    _run(snapshots, work, policy, master, manifests=manifests, report=report)


def _run(
    snapshots: str,
    work: str,
    policy: Path | None,
    master: str | None,
    *,
    manifests: Path | None = None,
    report: Path | None = None,
    plans: bool = True,
) -> None:
    from reassign.cli.fleet_run import run as run_all

    if not run_all(snapshots, work, policy, master, manifests, report, plans):
        raise typer.Exit(1)
