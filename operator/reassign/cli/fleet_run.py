"""Runs the stages of a fleet, shows how far they are, and says what came of them."""

from __future__ import annotations

from pathlib import Path

import typer

from reassign.cli import output as out
from reassign.core.progress import amount
from reassign.errors import Reason, ReassignError
from reassign.fleet.policy import Policy, parse


def run(
    last: str,
    snapshots: str,
    work: str,
    policy: Path | None,
    master: str | None,
    manifests: Path | None,
    report: Path | None,
) -> bool:
    """Whether no cluster was left out."""
    wanted = parse(out.read(policy), str(policy)) if policy else Policy()
    try:
        from reassign.fleet import session, stages
    except ImportError as error:
        raise ReassignError(
            Reason.SPARK_FAILED, f"there is no {error.name} here, which fleets need: install the extra, '.[fleet]'"
        ) from None
    job = stages.Job(snapshots, wanted, work, manifests, report)
    names = ["starting Spark", *stages.of(job, stages.Stage(last))]
    with out.progress(*names) as next_step, session.started(master) as spark:
        result = stages.run(spark, job, stages.Stage(last), lambda _: next_step())
    for cluster, why in sorted(result.left_out.items()):
        typer.echo(f"left out: {cluster}: {why}", err=True)
    out.write(f"{result.clusters} clusters, {len(result.left_out)} left out\n")
    if result.summaries:
        planned = [each for each in result.summaries.values() if not each["problem"]]
        bytes_, bound = (sum(each[what] for each in planned) for what in ("bytes", "bytes_bound"))
        waves = sum(len(each["waves"]) for each in planned)
        out.write(f"{len(planned)} plans: {waves} waves copy {amount(bytes_)}; none copies less than {amount(bound)}\n")
    if result.emitted:
        written, unchanged, removed = result.emitted
        out.write(f"{manifests}: {written} files written, {unchanged} unchanged, {removed} removed\n")
    return not result.left_out
