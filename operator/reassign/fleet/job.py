"""The task of a run, by its options: known before Spark is there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reassign.fleet.policy import FleetPolicy


class Job(NamedTuple):
    """The input and output of a run."""

    snapshots: str
    """A folder of any file system that Spark knows."""
    policy: FleetPolicy
    work: str
    """The work folder, of any file system that Spark knows."""
    manifests: Path | None = None
    report: Path | None = None  # where links lead to
    plans: bool = True  # whether the output shows plans, and clusters without one

    @property
    def stages(self) -> list[str]:
        """The stages of the run, in order."""
        outputs = {"emit": self.manifests, "report": self.report}
        return ["check, assess, plan", *(stage for stage, place in outputs.items() if place)]
