"""The choice of snapshots: the newest of each cluster, older ones as its history; and the faults of the others.

Pure: files in, verdicts out, sorted. A fault of the newest snapshot of a cluster quarantines that cluster and no other.
A fault of an older one removes it from the history.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from reassign.api.names import OBJECT_NAME
from reassign.files import checks, rules
from reassign.files.schema import SCHEMAS
from reassign.text import cut, listed, printable

IDENTITY = "brokers"
"""The table whose metadata counts where other tables have other metadata."""
FOLDER = re.compile(r"date=(?P<date>[^/]+)/cluster=(?P<cluster>[^/]+)")
DAY = re.compile(r"date=(?P<date>[^/]+)(?<!\.parquet)")
WHOLE = ""
"""The table of a verdict on all of a snapshot."""


class Kind(StrEnum):
    """What is wrong with a snapshot as a folder, beside what can be wrong with its files (`files.checks.Kind`)."""

    FOLDER_NAME = "FolderName"
    FOLDER_DATE = "FolderDate"
    FUTURE = "FutureSnapshot"
    OTHER_DATE = "OtherDate"
    MIXED = "MixedSnapshot"
    DUPLICATE = "DuplicateSnapshot"
    SHARED_ID = "SharedClusterId"
    NEW_ID = "NewClusterId"
    NO_BROKERS = "NoBrokers"
    NO_PARTITIONS = "NoPartitions"
    OLD = "OldSnapshot"
    NOT_READ = "FileNotRead"
    LOST = "WorkerLost"


REMEDIES: Mapping[str, str] = {
    checks.Kind.UNREADABLE: "take it again, or give Spark more memory",
    checks.Kind.DAMAGED: "take it again, and check the storage",
    checks.Kind.FOREIGN: "remove the folder",
    checks.Kind.VERSION: "take it again with this program",
    Kind.FOLDER_NAME: "rename the folder",
    Kind.FOLDER_DATE: "rename the folder",
    Kind.FUTURE: "remove the folder, and check the clock by which it was dated",
    Kind.OTHER_DATE: "move the folder to that date",
    Kind.DUPLICATE: "remove the copy",
    Kind.SHARED_ID: "remove the folders of one name",
    Kind.NOT_READ: "let this program read it, check the storage, and run it again",
    Kind.LOST: "give Spark's tasks more memory (`spark.executor.memoryOverhead` on Kubernetes), and run it again",
    **rules.REMEDIES,
}
"""What to do about a fault, where a new snapshot alone does not help."""

CLOCKS = timedelta(hours=1)
"""A snapshot may be dated later than now by so much: clocks that are kept differ by less than a second, and a time that
has not come is seldom nearer than a day."""
OLD_DAYS = 2
"""A snapshot that is older than the fleet's newest one by so much is noted: two daily snapshots were missed."""


class Folder(NamedTuple):
    """The folder of a snapshot below the root: `date=2026-01-31/cluster=main`."""

    date: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.date}/{self.cluster}"


class File(NamedTuple):
    """A file below the root; of one that has not been read only its path and length are known, or why it cannot be.

    The folder of a day that cannot be listed is one too.
    """

    path: str  # below the root
    length: int  # bytes
    sha256: str | None = None
    metadata: checks.Metadata | None = None
    kind: str | None = None  # of what is wrong with it
    problem: str | None = None  # in a sentence

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def cluster(self) -> str | None:
        """The cluster of a file that is in its place."""
        named = FOLDER.fullmatch(self.folder)
        return named["cluster"] if named else None

    @property
    def day(self) -> str | None:
        """The date of a day's folder."""
        named = DAY.fullmatch(self.path)
        return named["date"] if named else None

    @property
    def table(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".parquet")


class Snapshot(NamedTuple):
    """A snapshot that can be used."""

    folder: Folder
    cluster_id: str
    taken_at: datetime
    rows: Mapping[str, int]  # of each table


class Verdict(NamedTuple):
    """One kind of fault, or of note, in one table of one snapshot."""

    cluster: str
    date: str
    table: str  # WHOLE: all of them
    kind: str
    rows: int  # or files, or snapshots: as many as have it
    example: str
    quarantines: bool  # the cluster is left out because of it


class Chosen(NamedTuple):
    """What the names and the contents of files show. Sorted by cluster, then date."""

    newest: tuple[Snapshot, ...]
    history: tuple[Snapshot, ...]
    verdicts: tuple[Verdict, ...]


class Checked(NamedTuple):
    """The usable snapshots of a fleet, and its verdicts; all in the order of clusters."""

    newest: tuple[Snapshot, ...]  # of each cluster that can be planned
    history: tuple[Snapshot, ...]  # older ones of the same clusters
    quarantine: tuple[Verdict, ...]  # why the other clusters are left out
    notes: tuple[Verdict, ...]  # what else is worth knowing


class _Candidate(NamedTuple):
    """A folder with tables in it."""

    folder: Folder  # of one that is misplaced, its path and a slash instead of a cluster's name
    files: Mapping[str, File]  # by table
    misplaced: str | None = None  # what is wrong with its name

    @property
    def metadata(self) -> checks.Metadata | None:
        """The metadata of the first file that has any; IDENTITY comes first."""
        known = (self.files[name].metadata for name in (IDENTITY, *sorted(SCHEMAS)) if name in self.files)
        return next((metadata for metadata in known if metadata), None)

    @property
    def age(self) -> tuple[bool, str, str, Folder]:
        """A key that orders snapshots by time.

        Where folder and content have different dates, the later one counts: a cluster whose newest snapshot is unknown
        must not be planned from another.
        """
        taken = self.metadata.taken_at.isoformat() if self.metadata else ""
        return not _is_date(self.folder.date), max(self.folder.date, taken[:10]), taken, self.folder


class _Judged(NamedTuple):
    """Every folder, what is wrong with it by itself and beside the others, and the newest one of each cluster."""

    candidates: tuple[_Candidate, ...]
    faults: Mapping[Folder, list[Fault]]
    newest: Mapping[str, _Candidate]


Fault = tuple[str, str, int, str]
"""Table, kind, rows, example; see Verdict."""


def wanted(files: Iterable[File], now: datetime | None = None) -> dict[Folder, list[File]]:
    """Return the files to read: those of snapshots that may count (`choose`), as far as they can be read."""
    return {
        one.folder: [file for file in one.files.values() if file.kind is None]
        for one in _folders(files)
        if one.misplaced is None and _is_date(one.folder.date) and not _future(one, now)
    }


def later(files: Iterable[File], now: datetime) -> list[str]:
    """Return the dates of folders that have not come yet: when one comes, its snapshots count."""
    named = (FOLDER.fullmatch(file.folder) for file in files)
    return sorted({folder["date"] for folder in named if folder and is_later(folder["date"], now)})


def presumed(folders: Iterable[Folder]) -> set[Folder]:
    """Return the newest folder of each cluster by its name; its content may say otherwise."""
    return set({folder.cluster: folder for folder in sorted(folders)}.values())


def is_day(name: str) -> bool:
    """Whether this stands in a verdict for the folder of a day, and is no cluster's name."""
    return name.endswith("/") and DAY.fullmatch(name.removesuffix("/")) is not None


def digest(files: Iterable[Mapping[str, Any]]) -> str:
    """Return a hash of snapshots' files by path: their content, and the length of files that were not read."""
    content = hashlib.sha256()
    for file in (File(**row) for row in files):
        if file.table in SCHEMAS:
            content.update(f"{file.path}\0{file.length}\0{file.sha256}\n".encode())
    return f"sha256:{content.hexdigest()}"


def choose(files: Iterable[File], now: datetime | None = None) -> Chosen:
    """Judge each snapshot, from its files alone. A snapshot that is dated later than `now` is no candidate.

    Without `now`, no date is too late.
    """
    files = [*files]
    candidates, faults, newest = _judged(files, now)
    verdicts = [
        Verdict(f"date={day}/", day, WHOLE, Kind.NOT_READ, 1, f"date={day}: {problem}", quarantines=True)
        for day, problem in _unlisted(files)
    ]
    verdicts += [
        Verdict(one.folder.cluster, one.folder.date, *fault, quarantines=newest[one.folder.cluster] is one)
        for one in candidates
        for fault in faults[one.folder]
    ]
    usable = {cluster: _snapshot(one) for cluster, one in newest.items() if not faults[one.folder]}
    history: list[Snapshot] = []
    anew = defaultdict[str, list[Snapshot]](list)
    for one in candidates:
        current = usable.get(one.folder.cluster)
        if current is None or one.folder == current.folder or faults[one.folder]:
            continue
        older = _snapshot(one)
        (history if older.cluster_id == current.cluster_id else anew[one.folder.cluster]).append(older)
    verdicts += [
        _note(current, "partitions", Kind.NO_PARTITIONS, 1, "it has no partitions")
        for current in usable.values()
        if current.rows["partitions"] == 0
    ]
    newest_at = max((current.taken_at for current in usable.values()), default=None)
    for current in usable.values():
        if newest_at and (days := (newest_at - current.taken_at).days) >= OLD_DAYS:
            example = f"it was taken {days} days before the newest one of the fleet"
            verdicts.append(_note(current, WHOLE, Kind.OLD, 1, example))
    for cluster, others in anew.items():
        current, last = usable[cluster], others[-1]
        example = f"it was {last.cluster_id} on {last.folder.date}, and is {current.cluster_id} now"
        verdicts.append(_note(current, WHOLE, Kind.NEW_ID, len(others), example))
    return Chosen(tuple(usable.values()), tuple(history), tuple(sorted(verdicts)))


def checked(chosen: Chosen, verdicts: Iterable[Verdict]) -> Checked:
    """Return the chosen snapshots that these verdicts leave."""
    rows = sorted(
        Verdict(printable(cluster), printable(date), table, kind, rows, _example(example), quarantines)
        for cluster, date, table, kind, rows, example, quarantines in verdicts
    )
    left_out = {one.cluster for one in rows if one.quarantines}
    return Checked(
        tuple(one for one in chosen.newest if one.folder.cluster not in left_out),
        tuple(one for one in chosen.history if one.folder.cluster not in left_out),
        tuple(one for one in rows if one.quarantines),
        tuple(one for one in rows if not one.quarantines),
    )


def _example(text: str) -> str:
    return printable(cut(text.removesuffix(checks.AGAIN)))


def _note(one: Snapshot, table: str, kind: str, rows: int, example: str) -> Verdict:
    return Verdict(one.folder.cluster, one.folder.date, table, kind, rows, example, quarantines=False)


def _judged(files: Sequence[File], now: datetime | None) -> _Judged:
    candidates = _folders(files)
    faults = {one.folder: _faults(one, now) for one in candidates}
    spare = set()
    for copy, of in _copies(candidates, faults):
        if copy.folder.cluster == of.folder.cluster:
            spare.add(copy.folder)
        elif not faults[copy.folder]:  # either of the two may have it
            faults[of.folder] = [(WHOLE, Kind.DUPLICATE, 1, f"it is {_shown(copy.folder)} once more")]
        faults[copy.folder] = [(WHOLE, Kind.DUPLICATE, 1, f"it is {_shown(of.folder)} once more")]
    newest = _newest([one for one in candidates if one.folder not in spare], now)
    for day, problem in _unlisted(files):
        for one in newest.values():
            if not is_later(day, now) and (not _is_date(day), day) > one.age[:2]:
                why = f"a newer one may be in date={day}: {problem}"
                faults[one.folder].append((WHOLE, Kind.NOT_READ, 1, why))
    by_id = defaultdict(list)
    for one in newest.values():
        if one.metadata and not faults[one.folder]:
            by_id[one.metadata.cluster_id].append(one.folder)
    for id, folders in by_id.items():
        for folder in folders if len(folders) > 1 else []:
            others = listed([other.cluster for other in folders[:6] if other != folder], len(folders) - 1)
            faults[folder] = [(WHOLE, Kind.SHARED_ID, 1, f"{id} is the id of {others} too")]
    return _Judged(candidates, faults, newest)


def _newest(candidates: Iterable[_Candidate], now: datetime | None) -> dict[str, _Candidate]:
    """Return the newest candidate of each cluster; one that is dated too late where there is no other."""
    newest: dict[str, _Candidate] = {}
    for one in sorted(candidates, key=lambda one: (one.folder.cluster, _future(one, now) is None, one.age)):
        newest[one.folder.cluster] = one
    return newest


def _unlisted(files: Iterable[File]) -> Iterator[tuple[str, str]]:
    """Yield each day whose folder cannot be listed, and why."""
    yield from ((file.day, file.problem or "") for file in files if file.day)


def _folders(files: Iterable[File]) -> tuple[_Candidate, ...]:
    """Return the folders that have tables, sorted by cluster, then date."""
    by_folder = defaultdict[str, dict[str, File]](dict)
    for file in files:
        if file.table in SCHEMAS:
            by_folder[file.folder][file.table] = file
    candidates = [_placed(path, tables) for path, tables in by_folder.items()]
    return tuple(sorted(candidates, key=lambda one: (one.folder.cluster, one.folder.date)))


def _placed(path: str, files: Mapping[str, File]) -> _Candidate:
    named = FOLDER.fullmatch(path)
    if named is None:
        return _Candidate(
            Folder("", f"{path}/"), files, f"{path or 'the root'} is no folder date=2026-01-31/cluster=main"
        )
    folder = Folder(named["date"], named["cluster"])
    legal = OBJECT_NAME.fullmatch(folder.cluster)
    wrong = None if legal else f"{_shown(folder)} has a cluster's name with more than a-z, 0-9, - and . in it"
    return _Candidate(folder, files, wrong)


def _faults(one: _Candidate, now: datetime | None) -> list[Fault]:
    """Return the faults of a folder by itself."""
    if one.misplaced is not None:
        return [(WHOLE, Kind.FOLDER_NAME, 1, one.misplaced)]
    if not _is_date(one.folder.date):
        return [(WHOLE, Kind.FOLDER_DATE, 1, f"{one.folder.date} is no date such as 2026-01-31")]
    if future := _future(one, now):
        return [(WHOLE, Kind.FUTURE, 1, future)]
    faults: list[Fault] = []
    metadata = one.metadata
    for name in sorted(metadata.rows.keys() | one.files.keys() if metadata else SCHEMAS):
        file = one.files.get(name)
        if file is None:
            faults.append((name, checks.Kind.MISSING, 1, f"there is no {name}.parquet"))
        elif file.kind is not None:
            faults.append((name, file.kind, 1, file.problem or ""))
        elif file.length == 0:
            faults.append((name, checks.Kind.UNREADABLE, 1, "it is empty or gone"))
    if metadata and metadata.rows["brokers"] == 0:
        faults.append(("brokers", Kind.NO_BROKERS, 1, "it has no brokers"))
    others = [name for name, file in sorted(one.files.items()) if file.metadata not in (None, metadata)]
    if others:
        faults.append((WHOLE, Kind.MIXED, 1, f"{others[0]}.parquet is of another snapshot than its other files"))
    elif metadata and (day := metadata.taken_at.date().isoformat()) != one.folder.date:
        faults.append((WHOLE, Kind.OTHER_DATE, 1, f"it was taken on {day}"))
    return faults


def _future(one: _Candidate, now: datetime | None) -> str | None:
    """Return which date has not come yet, the folder's or the content's; None where both have."""
    if is_later(one.folder.date, now):
        return f"{one.folder.date} has not come yet"
    if now and one.metadata and one.metadata.taken_at > now + CLOCKS:
        return f"it says that it was taken at {one.metadata.taken_at:%Y-%m-%d %H:%M} UTC, which has not come yet"
    return None


def is_later(day: str, now: datetime | None) -> bool:
    """Whether a date has not come yet."""
    return now is not None and _is_date(day) and day > (now + CLOCKS).date().isoformat()


def _copies(
    candidates: Iterable[_Candidate], faults: Mapping[Folder, list[Fault]]
) -> list[tuple[_Candidate, _Candidate]]:
    """Return the snapshots that are there more than once: each one not to be used, with the one that is."""
    same = defaultdict(list)
    for one in candidates:
        if one.metadata:
            same[one.metadata.cluster_id, one.metadata.taken_at].append(one)
    copies = []
    for group in same.values():
        kept, *others = sorted(group, key=lambda one: (bool(faults[one.folder]), one.folder.cluster, one.folder.date))
        copies += [(other, kept) for other in others]
    return copies


def _snapshot(one: _Candidate) -> Snapshot:
    metadata = one.metadata
    assert metadata is not None  # or the folder would have a fault
    return Snapshot(one.folder, metadata.cluster_id, metadata.taken_at, metadata.rows)


def _shown(folder: Folder) -> str:
    return f"date={folder.date}/cluster={folder.cluster}"


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
