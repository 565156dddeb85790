"""What a run keeps in its work folder, and reads back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.fleet.kept import FOLDER, Kept, Made

ROWS = pa.table({"cluster": ["a", "b", "c"], "text": ["one", "two", "three"]})
PARTS = [ROWS.slice(number, 1) for number in range(3)]


def tables(*parts: pa.Table) -> Callable[[], Made]:
    return lambda: iter([("plans", ROWS), ("manifests", iter(parts))])


def never() -> Made:
    raise AssertionError


def changed(file: Path, at: int) -> None:
    """One byte is another one, and nothing beside the file says so."""
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


def test_what_was_made_is_read_and_its_parts_one_after_another(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (Kept(spark, str(tmp_path)) for _ in range(2))
    assert first.tables("key", tables(*PARTS)) == {"plans": ROWS}
    assert [*first.parts("manifests")] == PARTS
    assert second.tables("key", never) == {"plans": ROWS}
    parts = second.parts("manifests")
    assert next(parts) == PARTS[0]
    (tmp_path / FOLDER / "manifests" / "1.parquet").unlink()
    with pytest.raises(PlanningError, match=r"1.parquet has changed meanwhile: run it again") as error:
        next(parts)
    assert error.value.reason is Reason.CANNOT_BE_WRITTEN


def test_of_parts_that_were_more_none_is_left(spark: SparkSession, tmp_path: Path) -> None:
    Kept(spark, str(tmp_path)).tables("key", tables(*PARTS))
    Kept(spark, str(tmp_path)).tables("another", tables(PARTS[0]))
    assert [file.name for file in tmp_path.glob(f"{FOLDER}/manifests/*.parquet")] == ["0.parquet"]


@pytest.mark.parametrize("name", ["plans", "manifests/1"])
def test_a_changed_byte_has_all_made_anew(spark: SparkSession, tmp_path: Path, name: str) -> None:
    Kept(spark, str(tmp_path)).tables("key", tables(*PARTS))
    file = tmp_path / FOLDER / f"{name}.parquet"
    text = file.read_bytes()
    for at in range(0, len(text), 20):
        changed(file, at)
        with pytest.raises(AssertionError):
            Kept(spark, str(tmp_path)).tables("key", never)
        file.write_bytes(text)
    kept = Kept(spark, str(tmp_path))
    changed(file, len(text) // 2)
    assert kept.tables("key", tables(*PARTS)) == {"plans": ROWS}
    assert [*kept.parts("manifests")] == PARTS
