"""The fleet without Spark: `python -m tests.benchmarks.fleet_loop SNAPSHOTS MANIFESTS` plans one cluster after another.

The same files, the same kernel, the same manifests; neither checks, nor assessment, nor a report.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from reassign.files.snapshots import tables_in
from reassign.files.tables import snapshot_of
from reassign.files.whole import write
from reassign.fleet.emit import rendered
from reassign.fleet.policy import FleetPolicy
from reassign.manifests.objects import without_entries
from reassign.manifests.waves import entries, waves_of
from reassign.planning.plan import make


def main(snapshots: Path, manifests: Path, policy: FleetPolicy) -> None:
    newest = {folder.name.removeprefix("cluster="): folder for folder in sorted(snapshots.glob("date=*/cluster=*"))}
    for name, folder in sorted(newest.items()):
        about, tables = tables_in(folder)
        terms, cluster = policy.terms(name), snapshot_of(folder, about.cluster_id, about.taken_at, tables).cluster
        plan = make(cluster, terms.planner_goal(), terms.waves.max_partitions, terms.max_bytes, terms.rate)
        waves = [entries(cluster, plan, those) for those in waves_of(plan)]
        heads = [*map(without_entries, terms.manifests(name, waves))]
        for file, text in rendered(heads, [[*map(json.dumps, wave)] for wave in waves]).items():
            write(manifests / "clusters" / name / file, text.encode())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]), FleetPolicy())
