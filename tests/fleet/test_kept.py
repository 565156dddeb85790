"""What a run keeps in its work folder, and reads back."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.fleet import kept
from reassign.fleet.kept import FOLDER, Kept, Made
from reassign.spark import storage

ROWS = pa.table({"cluster": ["a", "b", "c"], "text": ["one", "two", "three"]})
PARTS = [ROWS.slice(number, 1) for number in range(3)]


@pytest.fixture(autouse=True)
def _parts_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "PART_ROWS", 1)


def tables(spark: SparkSession, rows: pa.Table = ROWS) -> Callable[[], Made]:
    return lambda: iter([("plans", ROWS), ("manifests", spark.createDataFrame(rows).coalesce(1))])


def never() -> Made:
    raise AssertionError


def changed(file: Path, at: int) -> None:
    """One byte is another one, and nothing beside the file says so."""
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


def test_what_was_made_is_read_and_its_parts_one_after_another(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (Kept(spark, str(tmp_path)) for _ in range(2))
    assert first.tables("key", tables(spark)) == {"plans": ROWS}
    assert [*first.parts("manifests", ROWS.column_names)] == PARTS
    assert second.tables("key", never) == {"plans": ROWS}
    parts = second.parts("manifests", ROWS.column_names)
    assert next(parts) == PARTS[0]
    sorted(tmp_path.glob(f"{FOLDER}/manifests/*.parquet"))[1].unlink()
    with pytest.raises(PlanningError, match=r"c001\S*.parquet has changed meanwhile: run it again") as error:
        next(parts)
    assert error.value.reason is Reason.SPARK_FAILED
    with pytest.raises(AssertionError):  # the next run makes it anew, as that says
        Kept(spark, str(tmp_path)).tables("key", never)


@pytest.mark.parametrize("length", [0, 1, 3, 4, 10])
def test_a_file_is_read_as_it_was_written_in_however_many_pieces(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(storage, "PIECE", 4)
    place, content = tmp_path / "file", bytes(range(250, 256)) * 2
    storage.Storage(spark).write(str(place), content[:length])
    assert place.read_bytes() == content[:length]
    assert storage.Storage(spark).read(str(place)) == content[:length]


def test_of_a_file_a_piece_is_in_memory_beside_its_content(spark: SparkSession, tmp_path: Path) -> None:
    place, content = str(tmp_path / "file"), bytes(1 << 24)
    tracemalloc.start()
    try:
        storage.Storage(spark).write(place, content)
        assert storage.Storage(spark).read(place) == content
        assert tracemalloc.get_traced_memory()[1] < 4 * len(content)
    finally:
        tracemalloc.stop()


def test_a_file_that_ends_too_early_is_an_error(spark: SparkSession) -> None:
    shorter = Path("/sys/kernel/fscaps")
    assert len(shorter.read_bytes()) < shorter.stat().st_size
    with pytest.raises(Py4JJavaError, match="EOFException: Expected read size"):
        storage.Storage(spark).read(str(shorter))


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/work"])
def test_a_work_folder_that_cannot_be_written_is_noticed_first(spark: SparkSession, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PlanningError, match=r"the work folder \S+ cannot be used") as error:
        Kept(spark, str(tmp_path / place)).tables("key", never)
    assert error.value.reason is Reason.CANNOT_BE_WRITTEN
    assert (tmp_path / "file").read_text() == "mine"


def test_of_parts_only_the_columns_are_read_that_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    first = Kept(spark, str(tmp_path))
    first.tables("key", tables(spark))
    assert [*first.parts("manifests", ["text"])] == [part.select(["text"]) for part in PARTS]


def test_of_parts_that_were_more_none_is_left(spark: SparkSession, tmp_path: Path) -> None:
    Kept(spark, str(tmp_path)).tables("key", tables(spark))
    Kept(spark, str(tmp_path)).tables("another", tables(spark, PARTS[0]))
    assert len([*tmp_path.glob(f"{FOLDER}/manifests/*.parquet")]) == 1


def test_a_table_is_in_one_place_whoever_wrote_it_before(spark: SparkSession, tmp_path: Path) -> None:
    for key in ("one", "two"):
        Kept(spark, str(tmp_path)).tables(key, lambda: iter([("manifests", ROWS)]))
        assert [path.name for path in tmp_path.glob(f"{FOLDER}/manifests*")] == ["manifests.parquet"]
        Kept(spark, str(tmp_path)).tables(f"{key} by executors", tables(spark))
        assert [path.name for path in tmp_path.glob(f"{FOLDER}/manifests*")] == ["manifests"]


def test_what_cannot_be_removed_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    try:
        with pytest.raises(PlanningError, match="mounted cannot be removed") as error:
            storage.Storage(spark).remove(str(folder))
        assert error.value.reason is Reason.CANNOT_BE_WRITTEN
    finally:
        subprocess.run(["umount", folder], check=True)


def test_parts_of_another_run_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kept(spark, str(tmp_path / "other")).tables("key", tables(spark))
    [*others] = tmp_path.glob(f"other/{FOLDER}/manifests/*.parquet")
    listed = storage.Storage.names
    monkeypatch.setattr(storage.Storage, "names", lambda *at: [*listed(*at), others[0].name])
    with pytest.raises(PlanningError, match=r"another run writes to .*manifests too"):
        Kept(spark, str(tmp_path)).tables("key", tables(spark))
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        Kept(spark, str(tmp_path)).tables("key", never)


def test_a_failure_of_spark_is_none_of_the_work_folder(spark: SparkSession, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.write_text("x")
    rows = spark.read.format("binaryFile").load(str(gone))
    gone.unlink()
    with pytest.raises(PlanningError, match=r"a snapshot cannot be read: .*gone") as error:
        Kept(spark, str(tmp_path / "work")).tables("key", lambda: iter([("manifests", rows)]))
    assert error.value.reason is Reason.SPARK_FAILED


@pytest.mark.parametrize("name", ["plans.parquet", "manifests/*.parquet"])
def test_a_changed_byte_has_all_made_anew(spark: SparkSession, tmp_path: Path, name: str) -> None:
    Kept(spark, str(tmp_path)).tables("key", tables(spark))
    file, *_ = (tmp_path / FOLDER).glob(name)
    text = file.read_bytes()
    for at in range(0, len(text), 20):
        changed(file, at)
        with pytest.raises(AssertionError):
            Kept(spark, str(tmp_path)).tables("key", never)
        file.write_bytes(text)
    again = Kept(spark, str(tmp_path))
    changed(file, len(text) // 2)
    assert again.tables("key", tables(spark)) == {"plans": ROWS}
    assert [*again.parts("manifests", ROWS.column_names)] == PARTS
