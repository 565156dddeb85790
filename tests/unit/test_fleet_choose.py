"""Which snapshots of a fleet count, from the names of files and what they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reassign.files.checks import Metadata
from reassign.files.schema import SCHEMAS
from reassign.fleet.choose import Chosen, File, Folder, Verdict, checked, choose, digest, later, presumed, wanted

ROWS = dict.fromkeys(SCHEMAS, 3)
ROWS_OF_VERSION_2 = {name: 3 for name in SCHEMAS if name != "unseen"}


def snapshot(
    cluster: str,
    day: str,
    id: str | None = None,
    *,
    taken: str | None = None,
    read: bool = True,
    rows: dict[str, int] = ROWS,
    **wrong: str,
) -> list[File]:
    """Its files; `wrong`: by table the kind of its fault, or "" where it is missing."""
    metadata = Metadata(
        id or f"id-{cluster}", datetime.fromisoformat(f"{taken or day}T12:00").replace(tzinfo=UTC), rows
    )
    return [
        File(f"date={day}/cluster={cluster}/{name}.parquet", 100, "0f", metadata, wrong.get(name), wrong.get(name))
        if read or name == "brokers"
        else File(f"date={day}/cluster={cluster}/{name}.parquet", 100)
        for name in SCHEMAS
        if wrong.get(name) != ""
    ]


def newest(chosen: Chosen) -> list[Folder]:
    return [one.folder for one in chosen.newest]


def history(chosen: Chosen) -> list[Folder]:
    return [one.folder for one in chosen.history]


def verdicts_of(chosen: Chosen) -> list[tuple[str, str, str, bool]]:
    return [(one.cluster, one.date, one.kind, one.quarantines) for one in chosen.verdicts]


def test_the_newest_snapshot_of_a_cluster_counts_and_others_are_history() -> None:
    found = choose(
        [
            *snapshot("b", "2026-01-03"),
            *snapshot("a", "2026-01-02"),
            *snapshot("a", "2026-01-01", read=False),
        ]
    )
    assert newest(found) == [Folder("2026-01-02", "a"), Folder("2026-01-03", "b")]
    assert history(found) == [Folder("2026-01-01", "a")]
    assert found.verdicts == ()


def test_a_snapshot_has_the_tables_of_its_version() -> None:
    found = choose([*snapshot("a", "2026-01-01", unseen="", rows=ROWS_OF_VERSION_2), *snapshot("a", "2026-01-02")])
    assert (newest(found), history(found)) == ([Folder("2026-01-02", "a")], [Folder("2026-01-01", "a")])
    lost = choose(snapshot("a", "2026-01-02", unseen=""))
    assert verdicts_of(lost) == [("a", "2026-01-02", "MissingTable", True)]


def test_a_broken_newest_snapshot_is_not_replaced_by_an_older_one() -> None:
    found = choose([*snapshot("a", "2026-01-02", log_dirs="DamagedPage"), *snapshot("a", "2026-01-01")])
    assert (newest(found), history(found)) == ([], [])
    assert found.verdicts == (Verdict("a", "2026-01-02", "log_dirs", "DamagedPage", 1, "DamagedPage", True),)


def test_a_broken_older_snapshot_only_leaves_the_history() -> None:
    found = choose([*snapshot("a", "2026-01-02"), *snapshot("a", "2026-01-01", read=False, partitions="")])
    assert newest(found) == [Folder("2026-01-02", "a")]
    assert history(found) == []
    assert verdicts_of(found) == [("a", "2026-01-01", "MissingTable", False)]


def test_a_copy_within_a_cluster_is_left_out_by_its_date() -> None:
    files = [*snapshot("a", "2026-01-02"), *snapshot("a", "2026-01-03", taken="2026-01-02")]
    found = choose(files)
    assert newest(found) == [Folder("2026-01-02", "a")]
    assert verdicts_of(found) == [("a", "2026-01-03", "DuplicateSnapshot", False)]
    assert choose(reversed(files)) == found


def test_a_copy_under_another_clusters_name_quarantines_both() -> None:
    found = choose([*snapshot("a", "2026-01-02"), *snapshot("b", "2026-01-02", "id-a"), *snapshot("b", "2026-01-01")])
    assert newest(found) == []
    assert verdicts_of(found) == [(name, "2026-01-02", "DuplicateSnapshot", True) for name in ("a", "b")]


def test_two_clusters_with_one_id_are_both_quarantined() -> None:
    found = choose([*snapshot("a", "2026-01-02"), *snapshot("b", "2026-01-03", "id-a"), *snapshot("c", "2026-01-03")])
    assert newest(found) == [Folder("2026-01-03", "c")]
    assert [one.example for one in found.verdicts] == ["id-a is the id of b too", "id-a is the id of a too"]


def test_a_broken_snapshot_does_not_quarantine_others_with_its_id() -> None:
    found = choose([*snapshot("a", "2026-01-02"), *snapshot("b", "2026-01-03", "id-a", configs="UnreadableFile")])
    assert newest(found) == [Folder("2026-01-02", "a")]
    assert verdicts_of(found) == [("b", "2026-01-03", "UnreadableFile", True)]


def test_what_was_before_a_cluster_was_made_anew_is_no_history_of_it() -> None:
    found = choose(
        [
            *snapshot("a", "2026-01-03", "new"),
            *snapshot("a", "2026-01-02", "new"),
            *snapshot("a", "2026-01-01", "old"),
        ]
    )
    assert newest(found) == [Folder("2026-01-03", "a")]
    assert history(found) == [Folder("2026-01-02", "a")]
    assert found.verdicts == (
        Verdict("a", "2026-01-03", "", "NewClusterId", 1, "it was old on 2026-01-01, and is new now", False),
    )


def test_a_cluster_that_is_no_longer_snapshotted_is_noted() -> None:
    found = choose([*snapshot("a", "2026-01-05"), *snapshot("b", "2026-01-04"), *snapshot("c", "2026-01-02")])
    assert newest(found) == [Folder("2026-01-05", "a"), Folder("2026-01-04", "b"), Folder("2026-01-02", "c")]
    [note] = found.verdicts
    assert note == Verdict(
        "c", "2026-01-02", "", "OldSnapshot", 1, "it was taken 3 days before the newest one of the fleet", False
    )


def test_a_later_date_than_its_folders_quarantines_a_snapshot() -> None:
    found = choose([*snapshot("a", "2026-01-01", taken="2026-01-04"), *snapshot("a", "2026-01-03")])
    assert newest(found) == []
    assert verdicts_of(found) == [("a", "2026-01-01", "OtherDate", True)]


NOW = datetime(2026, 1, 31, 22, 30, tzinfo=UTC)


def test_a_snapshot_of_the_future_is_noted_and_an_older_one_counts() -> None:
    files = [*snapshot("a", "2026-01-31"), *snapshot("a", "2026-01-30"), *snapshot("a", "2062-01-31", read=False)]
    found = choose(files, NOW)
    assert (newest(found), history(found)) == ([Folder("2026-01-31", "a")], [Folder("2026-01-30", "a")])
    [note] = found.verdicts
    assert note == Verdict("a", "2062-01-31", "", "FutureSnapshot", 1, "2062-01-31 has not come yet", False)
    assert wanted(files, NOW).keys() == {Folder("2026-01-31", "a"), Folder("2026-01-30", "a")}


def test_a_snapshot_that_says_it_was_taken_in_the_future_does_not_count() -> None:
    found = choose([*snapshot("a", "2026-01-30"), *snapshot("a", "2026-01-31", taken="2026-02-02")], NOW)
    assert newest(found) == [Folder("2026-01-30", "a")]
    [note] = found.verdicts
    assert (note.kind, note.date, note.quarantines) == ("FutureSnapshot", "2026-01-31", False)
    assert note.example == "it says that it was taken at 2026-02-02 12:00 UTC, which has not come yet"


def test_a_cluster_that_has_only_a_snapshot_of_the_future_is_left_out() -> None:
    found = choose([*snapshot("a", "2026-02-02"), *snapshot("b", "2026-01-31")], NOW)
    assert newest(found) == [Folder("2026-01-31", "b")]
    assert verdicts_of(found) == [("a", "2026-02-02", "FutureSnapshot", True)]


def test_an_older_broken_snapshot_is_not_hidden_by_one_of_the_future() -> None:
    found = choose([*snapshot("a", "2062-01-31"), *snapshot("a", "2026-01-31", configs="DamagedPage")], NOW)
    assert newest(found) == []
    assert ("a", "2026-01-31", "DamagedPage", True) in verdicts_of(found)


@pytest.mark.parametrize(("minutes", "usable"), [(60, True), (61, False)])
def test_clocks_may_differ_by_an_hour(minutes: int, usable: bool) -> None:
    files = snapshot("a", "2026-02-01")  # taken at noon
    found = choose(files, datetime(2026, 2, 1, 12, tzinfo=UTC) - timedelta(minutes=minutes))
    assert bool(newest(found)) is usable


def test_a_day_is_of_the_future_until_an_hour_before_it_begins() -> None:
    files = [File("date=2026-02-01/cluster=a/brokers.parquet", 1)]
    assert wanted(files, NOW) == {}
    assert wanted(files, NOW + timedelta(minutes=30)).keys() == {Folder("2026-02-01", "a")}


def test_a_day_of_the_future_is_named_until_it_comes() -> None:
    files = [*snapshot("a", "2026-02-01"), *snapshot("b", "2062-01-31"), *snapshot("c", "2026-01-31")]
    assert later(files, NOW) == ["2026-02-01", "2062-01-31"]
    assert later(files, NOW + timedelta(minutes=30)) == ["2062-01-31"]


UNLISTED = File("date=2026-01-02", 0, kind="FileNotRead", problem="it cannot be read (Permission denied)")


def test_a_day_that_cannot_be_read_leaves_out_clusters_that_may_be_in_it() -> None:
    found = choose([*snapshot("a", "2026-01-01"), *snapshot("b", "2026-01-03"), *snapshot("b", "2026-01-01"), UNLISTED])
    assert (newest(found), history(found)) == ([Folder("2026-01-03", "b")], [Folder("2026-01-01", "b")])
    why = "it cannot be read (Permission denied)"
    assert found.verdicts == (
        Verdict("a", "2026-01-01", "", "FileNotRead", 1, f"a newer one may be in date=2026-01-02: {why}", True),
        Verdict("date=2026-01-02/", "2026-01-02", "", "FileNotRead", 1, f"date=2026-01-02: {why}", True),
    )


def test_a_day_of_the_future_that_cannot_be_read_leaves_out_no_cluster() -> None:
    found = choose([*snapshot("a", "2026-01-01"), UNLISTED._replace(path="date=2062-01-02")], NOW)
    assert newest(found) == [Folder("2026-01-01", "a")]


@pytest.mark.parametrize("day", ["2026-02-30", "20260131", "today"])
def test_a_folder_that_is_of_no_date_may_be_the_newest(day: str) -> None:
    found = choose([*snapshot("a", "2026-01-03"), File(f"date={day}/cluster=a/brokers.parquet", 1)])
    assert newest(found) == []
    assert ("a", day, "FolderDate", True) in verdicts_of(found)


@pytest.mark.parametrize("folder", ["", "a", "cluster=a/date=2026-01-01", "date=2026-01-01/cluster=a/old"])
def test_tables_in_a_folder_of_another_shape_are_reported(folder: str) -> None:
    path = f"{folder}/brokers.parquet".lstrip("/")
    found = choose([*snapshot("a", "2026-01-03"), File(path, 1), File(f"{path}/other.parquet", 1)])
    assert newest(found) == [Folder("2026-01-03", "a")]
    assert verdicts_of(found) == [(f"{folder}/", "", "FolderName", True)]


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254, "a*", "a b", "ä"])
def test_a_cluster_is_named_as_objects_are(name: str) -> None:
    files = [File(f"date=2026-01-01/cluster={name}/{table}.parquet", 1) for table in SCHEMAS]
    assert verdicts_of(choose(files)) == [(name, "2026-01-01", "FolderName", True)]
    assert wanted(files) == {}


def test_all_files_of_snapshots_in_their_place_are_read_and_no_others() -> None:
    placed = [
        File(f"date={day}/cluster=a/{name}.parquet", 1) for day in ("2026-01-01", "2026-01-02") for name in SCHEMAS
    ]
    others = [File(f"{folder}/brokers.parquet", 1) for folder in ("x", "date=*/cluster=a", "date=2026-01-01/cluster=A")]
    read = wanted([*placed, *others])
    half = len(SCHEMAS)
    assert read == {Folder("2026-01-01", "a"): placed[:half], Folder("2026-01-02", "a"): placed[half:]}
    assert presumed([*read, Folder("2026-01-01", "b")]) == {Folder("2026-01-02", "a"), Folder("2026-01-01", "b")}


def test_the_digest_is_of_content_names_and_lengths() -> None:
    first, *others = [*snapshot("a", "2026-01-02"), *snapshot("a", "2026-01-01", read=False)]
    rows = [each._asdict() for each in others]
    for changed in (
        first._replace(sha256="1"),
        first._replace(path=f"x/{first.table}.parquet"),
        first._replace(length=1),
    ):
        assert digest([changed._asdict(), *rows]) != digest([first._asdict(), *rows])
    assert digest([File("notes.parquet", 1)._asdict(), *rows]) == digest(rows)


def test_names_from_a_snapshot_cannot_steer_a_terminal() -> None:
    verdict = Verdict("a", "2026-01-31", "brokers", "UnreadableRack", 1, "broker 1 is in /a\x1b[2J\n/b", False)
    [note] = checked(choose([]), [verdict]).notes
    assert note.example == "broker 1 is in /a?[2J?/b"


def test_an_example_is_short_whatever_is_in_a_snapshot() -> None:
    verdict = Verdict("a", "2026-01-31", "brokers", "UnreadableRack", 1, f"broker 1 is in {'/a' * 100_000}", False)
    [note] = checked(choose([]), [verdict]).notes
    assert len(note.example) == 500
    assert note.example.startswith("broker 1 is in /a/a")


def test_a_file_that_cannot_be_read_quarantines_its_cluster() -> None:
    first, *others = snapshot("a", "2026-01-01")
    large = File(first.path, 1 << 31, kind="UnreadableFile", problem="it is too large")
    assert wanted([large, *others]) == {Folder("2026-01-01", "a"): others}
    [verdict] = choose([large, *others]).verdicts
    assert (verdict.kind, verdict.example, verdict.quarantines) == ("UnreadableFile", "it is too large", True)
