"""A snapshot's files: what is written is read again, and what is not whole or not ours is refused with a sentence."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.survey import survey
from reassign.errors import PlanningError, Reason
from reassign.files.schema import METADATA_KEY, SCHEMAS
from reassign.files.snapshots import place, tables_in, write
from reassign.files.tables import Snapshot, snapshot_of
from reassign.planning.problem.model import Cluster, Directories
from tests.snapshots import as_of_version_2, as_of_version_3, in_sync
from tests.unit.examples import examples
from tests.unit.sim import SimKafka

TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def cluster() -> Cluster:
    sim = SimKafka(
        {A0: (3, 5, 7), A1: (5, 3), B0: (7,)},
        brokers={3: Broker(3, "/x/1"), 5: Broker(5), 7: Broker(7, "/y/1", fenced=True)},
        sizes={A0: {3: 100}, A1: {5: 2**40}},
        log_dirs={
            3: {"/d1": LogDir(total=2**50, usable=7, logs={A0: 100}), "/d2": LogDir(online=False)},
            5: {"/d1": LogDir(cordoned=True, logs={A0: 100, A1: 2**40, TopicPartition("hidden", 4): 9})},
        },
    )
    sim.move_as_another(B0, (3,))
    withheld = {"withheld": Problem(Reason.NOT_AUTHORIZED, "its configuration is withheld")}
    return survey(replace(sim.snapshot(), unread_topics=withheld))


def same(one: Cluster, other: Cluster) -> bool:
    def plain(cluster: Cluster | Directories) -> list[object]:
        found = (getattr(cluster, name) for name in cluster.__slots__)
        return [
            (v.dtype.str, v.shape, v.tolist())
            if isinstance(v, np.ndarray)
            else plain(v)
            if isinstance(v, Directories)
            else v
            for v in found
        ]

    return plain(one) == plain(other)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "snapshot", in_sync(cluster(), TAKEN))
    return tmp_path / "snapshot"


def read(folder: Path) -> Snapshot:
    """A snapshot by what its tables say, whose rows are not checked by the rules."""
    about, tables = tables_in(folder)
    return snapshot_of(folder, about.cluster_id, about.taken_at, tables)


def refusal(folder: Path) -> str:
    with pytest.raises(PlanningError) as error:
        read(folder)
    assert error.value.reason is Reason.INVALID_SNAPSHOT
    assert "\n" not in error.value.message
    return error.value.message


def test_what_is_written_is_read_again(folder: Path) -> None:
    found = read(folder)
    assert same(found.cluster, cluster())
    assert found.taken_at == TAKEN


def test_the_time_is_read_as_utc_wherever_it_was_taken(tmp_path: Path) -> None:
    write(tmp_path / "s", in_sync(cluster(), TAKEN.astimezone(timezone(timedelta(hours=-5)))))
    assert read(tmp_path / "s").taken_at.isoformat() == "2026-01-31T12:00:00+00:00"


def test_a_cluster_without_topics_or_directories_is_kept_too(tmp_path: Path) -> None:
    empty = survey(SimKafka({}, brokers={1: Broker(1)}, log_dirs={1: {}}).snapshot())
    write(tmp_path / "empty", in_sync(empty, TAKEN))
    assert same(read(tmp_path / "empty").cluster, empty)


HIDDEN = st.dictionaries(st.integers(0, 9), st.integers(0, 2**40), max_size=2)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    brokers = draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6, unique=True))
    names = draw(st.lists(st.text("abAB.-_9", min_size=1, max_size=4), max_size=4, unique=True))
    sim = SimKafka(
        {
            TopicPartition(name, number): tuple(
                draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=4, unique=True))
            )
            for name in names
            for number in draw(st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=3))
        },
        brokers={b: Broker(b, draw(st.sampled_from([None, "r", "/a/ü"])), draw(st.booleans())) for b in brokers},
    )
    sim.log_dirs = {
        b: {
            path: LogDir(
                online=draw(st.booleans()),
                total=draw(st.none() | st.integers(0, 2**62)),
                logs={tp: 1 for tp, held in sim.replicas.items() if b in held and draw(st.booleans())}
                | {TopicPartition("hidden", n): size for n, size in draw(HIDDEN).items()},
            )
            for path in draw(st.sets(st.sampled_from(["/a", "/b", "/c"])))
        }
        for b in brokers
    }
    sim.sizes = {tp: {held[0]: draw(st.integers(0, 2**62))} for tp, held in sim.replicas.items() if draw(st.booleans())}
    return survey(sim.snapshot())


@given(clusters())
@examples(60)
def test_any_cluster_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, found: Cluster) -> None:
    folder = tmp_path_factory.mktemp("any") / "s"
    write(folder, in_sync(found, TAKEN))
    assert same(read(folder).cluster, found)


def test_the_same_cluster_is_written_as_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(tmp_path / name, in_sync(cluster(), TAKEN))
    for name in SCHEMAS:
        one, other = ((tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("one", "other"))
        assert one == other


def test_columns_are_plain_and_each_row_has_its_cluster_and_time(folder: Path) -> None:
    rows = pq.ParquetFile(folder / "partitions.parquet").read().to_pylist()
    assert rows[0] == {
        "cluster_id": "sim",
        "taken_at": TAKEN,
        "topic": "a",
        "partition": 0,
        "replicas": [3, 5, 7],
        "log_dirs": ["/d1", "/d1", None],
        "size_bytes": 100,
        "in_flight": False,
        "leader": 3,
        "isr": [3, 5, 7],
    }
    assert (rows[2]["replicas"], rows[2]["size_bytes"], rows[2]["in_flight"]) == ([3], None, True)


def test_snapshots_are_one_table_with_folders_of_dates_and_clusters(tmp_path: Path) -> None:
    for day in ("2026-01-30", "2026-01-31"):
        write(tmp_path / f"date={day}" / "cluster=main", in_sync(cluster(), TAKEN))
    paths = sorted(map(str, tmp_path.glob("date=*/cluster=*/partitions.parquet")))
    found = pa.dataset.dataset(paths, partitioning="hive", partition_base_dir=str(tmp_path)).to_table()
    assert found.num_rows == 6
    assert set(found["date"].to_pylist()) == {"2026-01-30", "2026-01-31"}


def test_no_files_are_left_beside_a_snapshot_written_or_failed(tmp_path: Path) -> None:
    write(tmp_path / "s", in_sync(cluster(), TAKEN))
    with pytest.raises(PlanningError, match="there already"):
        write(tmp_path / "s", in_sync(cluster(), TAKEN))
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "s", tmp_path / ("n" * 1000)):
        with pytest.raises(PlanningError, match=f"{folder} cannot be written: ") as caught:
            write(folder, in_sync(cluster(), TAKEN))
        assert caught.value.reason is Reason.CANNOT_BE_WRITTEN
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "s"]


def test_a_table_that_cannot_be_read_is_no_damaged_one(tmp_path: Path) -> None:
    write(tmp_path / "s", in_sync(cluster(), TAKEN))
    brokers = tmp_path / "s" / "brokers.parquet"
    brokers.unlink()
    brokers.symlink_to(brokers)
    with pytest.raises(PlanningError, match=r"it cannot be read \(Too many levels of symbolic links\); let this pro"):
        read(tmp_path / "s")


def test_a_file_in_place_of_a_snapshot_has_no_tables(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    with pytest.raises(PlanningError, match=f"{tmp_path / 's'} is no snapshot that can be used: there is no brokers"):
        read(tmp_path / "s")


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, names = pq.write_table, []

    def fail_at_the_last(table: pa.Table, path: Path, **options: object) -> None:
        names.append(path.parent.name)
        if len(names) == len(SCHEMAS):
            raise OSError(28, "No space left on device")
        whole(table, path, **options)

    monkeypatch.setattr(pq, "write_table", fail_at_the_last)
    with pytest.raises(PlanningError, match="No space left on device"):
        write(tmp_path / "s", in_sync(cluster(), TAKEN))
    assert "s" not in names
    assert list(tmp_path.iterdir()) == []


# --- an earlier one of the day ---


def test_below_a_root_a_snapshot_is_of_the_day_in_utc(tmp_path: Path) -> None:
    late = datetime(2026, 1, 31, 22, tzinfo=timezone(timedelta(hours=-5)))
    assert place(tmp_path, "main", late) == tmp_path / "date=2026-02-01" / "cluster=main"


def test_an_earlier_snapshot_is_replaced_and_nothing_is_left_of_it(folder: Path) -> None:
    (folder / "more").touch()
    write(folder, in_sync(cluster(), TAKEN + timedelta(hours=1)), replace=True)
    assert read(folder).taken_at == TAKEN + timedelta(hours=1)
    assert list(folder.parent.iterdir()) == [folder]
    assert {path.name for path in folder.iterdir()} == {f"{name}.parquet" for name in SCHEMAS}


def test_a_reader_during_a_replacement_gets_one_snapshot_or_is_refused(folder: Path) -> None:
    def of(number: int) -> Snapshot:
        """Its number is in two of its files."""
        sizes = np.full(3, number, np.int64)
        directories = replace(cluster().directories, total=sizes)
        return in_sync(replace(cluster(), sizes=sizes, directories=directories), TAKEN + timedelta(hours=number))

    def replace_again_and_again() -> None:
        for number in range(20):
            write(folder, of(number), replace=True)

    write(folder, of(0), replace=True)
    found, refused = [], set()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace_again_and_again)
        while not writing.done():
            try:
                found.append(read(folder).cluster)
            except PlanningError as error:
                refused.add(error.message)
        writing.result()
    assert all((one.sizes == one.directories.total).all() for one in found)
    assert all("different snapshots" in message or "there is no" in message for message in refused)
    assert read(folder).cluster.sizes.tolist() == [19, 19, 19]


def test_an_earlier_snapshot_that_is_broken_is_replaced(folder: Path) -> None:
    (folder / "brokers.parquet").write_bytes(b"PAR1")
    write(folder, in_sync(cluster(), TAKEN), replace=True)
    read(folder)


def test_a_snapshot_of_another_cluster_is_never_replaced(folder: Path) -> None:
    other = in_sync(replace(cluster(), id="another"), TAKEN)
    with pytest.raises(PlanningError, match=r"another cluster \(sim\); choose another name, or remove it"):
        write(folder, other, replace=True)
    assert same(read(folder).cluster, cluster())


@pytest.mark.parametrize("failing", ["write_table", "rename"])
def test_an_earlier_snapshot_stays_when_the_new_one_cannot_be_written(
    failing: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    rename = Path.rename
    if failing == "rename":
        monkeypatch.setattr(
            Path, "rename", lambda self, to: fail() if to == folder and "earlier" not in self.name else rename(self, to)
        )
    else:
        monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(PlanningError, match="No space left on device"):
        write(folder, in_sync(cluster(), TAKEN + timedelta(hours=1)), replace=True)
    assert read(folder).taken_at == TAKEN
    assert list(folder.parent.iterdir()) == [folder]


# --- what is refused ---


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no brokers.parquet" in refusal(tmp_path / "no-such")
    assert "File name too long" in refusal(tmp_path / ("n" * 1000))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_that_is_missing(folder: Path, name: str) -> None:
    (folder / f"{name}.parquet").unlink()
    assert f"there is no {name}.parquet" in refusal(folder)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_length_that_a_file_is_cut_to(folder: Path, name: str) -> None:
    path = folder / f"{name}.parquet"
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refusal(folder)
    path.write_bytes(whole)
    read(folder)


def test_a_byte_that_is_changed_is_refused_or_does_not_matter(folder: Path) -> None:
    path = folder / "partitions.parquet"
    whole = path.read_bytes()
    refused = 0
    for at in range(0, len(whole), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found = read(folder)
        except PlanningError:
            refused += 1
        else:
            assert same(found.cluster, cluster()), f"byte {at}"
    assert refused > len(whole) / 5 / 3


def test_a_parquet_file_of_something_else(folder: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), folder / "brokers.parquet")
    assert "something else has written it" in refusal(folder)


def rewrite(folder: Path, name: str, table: pa.Table | None = None, **about: object) -> None:
    """The table in place of a file's, with that one's metadata but for `about`."""
    path = folder / f"{name}.parquet"
    before = pq.ParquetFile(path).read()
    said = json.loads(before.schema.metadata[METADATA_KEY]) | about
    table = before if table is None else table
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(said)}), path)


def test_another_version(folder: Path) -> None:
    for name in SCHEMAS:
        rewrite(folder, name, version=1)
    assert "it is of version 1, this program reads versions 2, 3 and 4" in refusal(folder)


def test_what_was_not_seen_is_a_plain_table(folder: Path) -> None:
    rows = pq.ParquetFile(folder / "unseen.parquet").read(columns=["broker", "topic", "logs", "bytes"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (5, "hidden", 1, 9),
        (None, "withheld", None, None),
        (3, None, None, None),
        (7, None, None, None),
    ]


def test_of_an_earlier_version_it_is_not_known_what_was_seen(folder: Path) -> None:
    as_of_version_2(folder)
    assert same(read(folder).cluster, replace(cluster(), unseen=None, registered=cluster().alive))


def test_a_fenced_broker_is_told_from_one_that_is_not_registered(tmp_path: Path) -> None:
    sim = SimKafka({A0: (3, 5, 7)}, brokers={3: Broker(3), 5: Broker(5, fenced=True)})
    write(tmp_path / "s", in_sync(survey(sim.snapshot()), TAKEN))
    found = read(tmp_path / "s").cluster
    assert (found.registered.tolist(), found.alive.tolist()) == ([True, True, False], [True, False, False])


def test_a_broker_down_in_an_earlier_version_counts_as_not_registered(folder: Path) -> None:
    as_of_version_3(folder)
    assert same(read(folder).cluster, replace(cluster(), registered=cluster().alive))


def test_a_table_with_columns_of_another_version_is_refused(folder: Path) -> None:
    as_of_version_3(folder)
    for name in SCHEMAS:
        rewrite(folder, name, version=4)
    assert "its columns are others" in refusal(folder)


def test_a_table_that_its_version_does_not_have_is_of_another_snapshot(folder: Path) -> None:
    unseen = (folder / "unseen.parquet").read_bytes()
    as_of_version_2(folder)
    (folder / "unseen.parquet").write_bytes(unseen)
    assert "different snapshots" in refusal(folder)


def test_a_table_that_says_it_has_a_version_without_it_is_refused(folder: Path) -> None:
    rows = pq.ParquetFile(folder / "unseen.parquet").read()
    as_of_version_2(folder)
    about = pq.ParquetFile(folder / "brokers.parquet").schema_arrow.metadata
    pq.write_table(rows.replace_schema_metadata(about), folder / "unseen.parquet", write_page_checksum=True)
    assert "snapshots of its version have no such table" in refusal(folder)


def test_files_of_two_snapshots(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", in_sync(cluster(), TAKEN + timedelta(seconds=1)))
    (tmp_path / "other" / "brokers.parquet").replace(folder / "brokers.parquet")
    assert "different snapshots" in refusal(folder)


@pytest.mark.parametrize(
    "about", [{"rows": {}}, {"rows": None}, {"taken_at": "yesterday"}, {"taken_at": None}, {"cluster_id": None}]
)
def test_incomplete_metadata_is_refused(folder: Path, about: dict[str, object]) -> None:
    for name in SCHEMAS:
        rewrite(folder, name, **about)
    assert "not complete" in refusal(folder)


def partitions(folder: Path) -> pa.Table:
    return pq.ParquetFile(folder / "partitions.parquet").read()


def test_rows_that_are_missing(folder: Path) -> None:
    rewrite(folder, "partitions", partitions(folder).slice(0, 2))
    assert "it has 2 rows of 3" in refusal(folder)


def test_columns_that_are_missing_or_of_another_type(folder: Path) -> None:
    whole = partitions(folder)
    rewrite(folder, "partitions", whole.drop_columns(["in_flight"]))
    assert "its columns are others" in refusal(folder)
    rewrite(folder, "partitions", whole.set_column(3, "partition", whole["partition"].cast(pa.int64())))
    assert "its columns are others" in refusal(folder)


def test_sizes_below_nothing_are_not_known(folder: Path) -> None:
    whole = partitions(folder)
    field = whole.schema.field("size_bytes")
    sizes = pa.chunked_array([pa.array([-(2**63), -1, 5], field.type)])
    rewrite(folder, "partitions", whole.set_column(whole.schema.get_field_index("size_bytes"), field, sizes))
    assert read(folder).cluster.sizes.tolist() == [-1, -1, 5]


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("replicas", [[3, 5, 7], [9, 3], [7]], "brokers that it does not describe"),
        ("replicas", [[3, 5, 7], [5, 5], [3]], "two replicas of one partition"),
        ("replicas", [[3, None, 7], [5, 3], [3]], "a broker is missing"),
        ("replicas", [[3, 5], [5, 3], [3]], "more log directories than replicas"),
        ("log_dirs", [["/d1", "/no", None], ["/d1", None], [None]], "log directories that it does not describe"),
        ("log_dirs", [["/d1", "/d2", None], ["/d1", None], [None]], "log directories that it does not describe"),
        ("topic", ["b", "a", "a"], "not each there once, in order"),
        ("partition", [0, 0, 0], "not each there once, in order"),
        ("cluster_id", ["sim", "sim", "other"], "rows of several clusters"),
    ],
)
def test_rows_that_contradict_each_other(folder: Path, column: str, values: list[object], why: str) -> None:
    changed = {"log_dirs": [[None] * 3, [None] * 2, [None]], column: values}
    whole = partitions(folder)
    for name, cells in changed.items():
        field = whole.schema.field(name)
        whole = whole.set_column(
            whole.schema.get_field_index(name), field, pa.chunked_array([pa.array(cells, field.type)])
        )
    rewrite(folder, "partitions", whole)
    assert why in refusal(folder)
