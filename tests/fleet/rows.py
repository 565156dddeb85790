"""Rows of a table, by what tells them apart."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def by(table: DataFrame, *keys: str) -> dict[Any, dict[str, Any]]:
    rows = [row.asDict() for row in table.collect()]
    found = {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows), "some rows are there twice"
    return found
