"""What is said of snapshots in a folder, by the function that Spark gives them to, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from reassign.fleet import choose
from reassign.fleet.choose import Checked, File, Folder, Verdict
from reassign.fleet.cluster import file_of, outcome_of
from reassign.fleet.outcomes import batch_of, of_kind
from reassign.fleet.policy import FleetPolicy


class Judged(NamedTuple):
    """The rows of all snapshots, and what they leave of them."""

    rows: pa.Table
    checked: Checked


def judged(root: Path, policy: FleetPolicy | None = None) -> Judged:
    """Ask of each snapshot below the root, of the newest of each cluster all of it."""
    files = {str(file.relative_to(root)): file for file in sorted(root.rglob("*.parquet"))}
    now = datetime.now(UTC)
    wanted = choose.wanted((File(path, file.stat().st_size) for path, file in files.items()), now)
    newest = choose.presumed(wanted)
    rows = pa.concat_tables(ask(root, folder, folder in newest, policy) for folder in wanted)
    read = {file.path: file for file in map(file_of, of_kind(rows, "files").to_pylist())}
    listed = (read.get(path) or File(path, file.stat().st_size) for path, file in files.items())
    chosen = choose.choose(listed, now)
    good = {one.folder for one in chosen.newest}
    verdicts = (Verdict(**row) for row in of_kind(rows, "verdicts").to_pylist())
    by_rows = [one for one in verdicts if Folder(one.date, one.cluster) in good]
    return Judged(rows, choose.checked(chosen, (*chosen.verdicts, *by_rows)))


def ask(root: Path, folder: Folder, newest: bool = True, policy: FleetPolicy | None = None) -> pa.Table:
    """The row of OUTCOMES about one snapshot."""
    place = root / f"date={folder.date}" / f"cluster={folder.cluster}"
    contents = {str(file.relative_to(root)): pa.py_buffer(file.read_bytes()) for file in place.glob("*.parquet")}
    return pa.Table.from_batches([batch_of([outcome_of(folder, contents, policy or FleetPolicy(), newest)])])
