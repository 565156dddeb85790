"""A snapshot of a cluster, the planner's input, as a folder of Parquet files: one for each table of `schema`.

Each file's metadata has the version of the schema and the number of rows of each table. So a snapshot that was cut
short, or mixed from two, is noticed; checksums show damage. The folder is renamed from another name when it is whole.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reassign.errors import PlanningError, Reason
from reassign.files import checks, rules
from reassign.files.schema import METADATA_KEY, SCHEMAS, VERSION
from reassign.files.tables import Snapshot, refuse, snapshot_of, tables_of
from reassign.text import cut, listed

EARLIER = ".earlier"
REPLACED = re.compile(rf"\.(?P<folder>.+)\.[^.]+{re.escape(EARLIER)}")
"""The name of a folder while another one is put in its place."""
ROW_GROUP = 65_536
"""Rows: what reads one file of a large cluster with several processes at once gives each some of these groups."""


def place(root: Path, name: str, taken_at: datetime) -> Path:
    """Return the folder of a cluster's snapshot among those of a fleet: one for each day (UTC)."""
    return root / f"date={taken_at.astimezone(UTC):%Y-%m-%d}" / f"cluster={name}"


def write(folder: Path, snapshot: Snapshot, *, replace: bool = False) -> None:
    """Write a snapshot into a new folder, or in place of an earlier one of the cluster.

    Raises PlanningError for a folder that must not be replaced, or cannot be written.
    """
    tables = tables_of(snapshot)
    metadata = {METADATA_KEY: _metadata({name: table.num_rows for name, table in tables.items()}, snapshot)}
    try:
        if folder.exists() and (why := _must_stay(folder, snapshot) if replace else "is there already"):
            raise PlanningError(Reason.INVALID_SNAPSHOT, f"{folder} {why}; choose another name, or remove it")
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, table in tables.items():
                pq.write_table(
                    table.replace_schema_metadata(metadata),
                    unfinished / f"{name}.parquet",
                    row_group_size=ROW_GROUP,
                    compression="snappy",  # a sixth more bytes than zstd, and small tables open in half of the time
                    write_page_checksum=True,
                )
            unfinished.chmod(0o755)
            _put(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as error:
        why = f"{folder} cannot be written: {error.strerror or error}; name another folder, or correct that"
        raise PlanningError(Reason.CANNOT_BE_WRITTEN, why) from None


def _must_stay(folder: Path, snapshot: Snapshot) -> str | None:
    """Return why the existing folder is not replaced; a broken snapshot always is."""
    try:
        brokers = folder / "brokers.parquet"
        other = checks.metadata_of(brokers, checks.opened(brokers, brokers)).cluster_id
    except PlanningError:
        return None
    return f"has a snapshot of another cluster ({other})" if other != snapshot.cluster.id else None


def _put(unfinished: Path, folder: Path) -> None:
    """Rename a snapshot over an earlier one, if any; for an instant there is neither, and never half of each."""
    if not folder.exists():
        unfinished.rename(folder)
        return
    earlier = unfinished.with_name(f"{unfinished.name}{EARLIER}")
    folder.rename(earlier)
    try:
        unfinished.rename(folder)
    except OSError:
        earlier.rename(folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def read(folder: Path) -> Snapshot:
    """Read a snapshot.

    Raises PlanningError for one that is not whole or not ours, or has rows that could make a plan wrong (`rules`).
    """
    try:
        about, tables = tables_in(folder)
    except checks.UnusableFileError as error:
        if error.kind is checks.Kind.MISSING and (newest := _newest_below(folder)):
            refuse(folder, f"it has snapshots below; name one of them, the newest: {listed(newest)}")
        raise
    if not about.rows["brokers"]:
        refuse(folder, f"it has no brokers; {rules.AGAIN}")
    if faults := [match for match in rules.matching(tables) if match.fault]:
        todo = rules.REMEDIES.get(faults[0].kind, rules.AGAIN)
        refuse(folder, f"{listed((f'{of.kind} in {of.table} ({cut(of.example)})' for of in faults), most=3)}; {todo}")
    return snapshot_of(folder, about.cluster_id, about.taken_at, tables)


def _newest_below(folder: Path) -> list[Path]:
    """Return the snapshots of the newest day below a root, or below a day."""
    found = sorted(
        path.parent for depth in ("", "date=*/") for path in folder.glob(f"{depth}cluster=*/brokers.parquet")
    )
    return [path for path in found if path.parent.name == found[-1].parent.name]


def tables_in(folder: Path) -> tuple[checks.Metadata, dict[str, pa.Table]]:
    """Return the tables of a snapshot whose rows are not checked; raises PlanningError as `read`."""
    paths = {name: folder / f"{name}.parquet" for name in SCHEMAS}
    files, about = {}, None
    for name, path in paths.items():
        if about is None or name in about.rows or path.exists():
            files[name] = checks.opened(path, path)
            found = checks.metadata_of(path, files[name])
            if about not in (None, found):
                refuse(folder, "its files are of different snapshots; take it again")
            about = found
    assert about is not None  # there are tables
    return about, {name: checks.table(paths[name], name, file, about) for name, file in files.items()}


def _metadata(rows: dict[str, int], snapshot: Snapshot) -> bytes:
    about = {
        "version": VERSION,
        "cluster_id": snapshot.cluster.id,
        "taken_at": snapshot.taken_at.astimezone(UTC).isoformat(),
        "rows": rows,
    }
    return json.dumps(about, sort_keys=True).encode()
