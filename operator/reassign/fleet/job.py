"""The task of a run, by its options: known before Spark is there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reassign.errors import PlanningError, Reason
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


def take_one(root: str) -> str:
    return f"take one with `kubectl kafka-reassign snapshot --into {root.rstrip('/')} --cluster main`"


def not_there(root: str) -> PlanningError:
    """Return the error for a folder of snapshots that does not exist."""
    why = f"there is no {root}: name the folder that has the snapshots, or {take_one(root)}"
    return PlanningError(Reason.INVALID_SNAPSHOT, why)
