"""The snapshots that Spark lists, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException

from reassign.fleet import inventory
from reassign.fleet.choose import choose

DAY = "date=2026-01-31"


class Storage:
    """A day with folders of clusters; one of them cannot be listed."""

    def __init__(self, spark: object) -> None:
        pass

    def names(self, folder: str) -> list[str]:
        return ["cluster=closed", "cluster=main", "cluster=a[b]"] if folder.endswith(DAY) else [DAY]

    def unlisted(self, base: str, folders: Sequence[str]) -> dict[str, str]:
        return {folder: "Permission denied" for folder in folders if folder.endswith("closed")}


def test_a_folder_that_is_a_pattern_to_spark_is_a_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def find(spark: object, base: str, ending: str, folders: Sequence[str] | None = None) -> Any:
        if folders is None:
            raise PySparkException("Permission denied")
        found.extend(folders)

    monkeypatch.setattr(inventory, "Storage", Storage)
    monkeypatch.setattr(inventory, "find", find)
    spark: Any = None
    _, folders, unread = inventory._found(spark, "s3a://bucket")
    assert found == folders == [f"{DAY}/cluster=main"]
    verdicts = choose([file for file, _ in unread]).verdicts
    assert {(verdict.cluster, verdict.kind) for verdict in verdicts} == {
        ("closed", "FileNotRead"),
        ("a[b]", "FolderName"),
    }
