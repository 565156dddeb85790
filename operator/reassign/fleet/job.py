"""What a run is to do, by its options: known before Spark is there."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from reassign.fleet.policy import Policy


class Stage(StrEnum):
    PASS = "check, assess, plan"
    EMIT = "emit"
    REPORT = "report"


class Job(NamedTuple):
    """The input and output of a run: `snapshots` and `work` are folders of any file system that Spark knows."""

    snapshots: str
    policy: Policy
    work: str
    manifests: Path | None = None
    report: Path | None = None
    plans: bool = True  # whether the output shows plans, and clusters without one

    @property
    def stages(self) -> list[Stage]:
        wanted = {Stage.PASS: True, Stage.EMIT: self.manifests is not None, Stage.REPORT: self.report is not None}
        return [stage for stage in Stage if wanted[stage]]
