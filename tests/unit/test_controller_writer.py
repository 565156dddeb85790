"""How often progress is written: the API server and the clock in memory, the writer as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.controller.writing import write_budget, writer
from reassign.controller.writing.writer import PROGRESS_BYTES_PER_SECOND, PROGRESS_SECONDS
from tests.unit.world import LATER, Object, World


class Reporting:
    """A resource that moves, whose status changes, and a clock that goes on by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        self.now = time.monotonic()
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(writer, "time", clock)
        monkeypatch.setattr(write_budget, "time", clock)
        self.pass_seconds(2 * PROGRESS_SECONDS)  # what was written before counts no more

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds

    def progress(self, name: str = "move") -> bool:
        """Report progress alone; whether that was written."""
        return self._write(name, lambda status: {"summary": f"{status.summary}+"})

    def another_reason(self, name: str = "move") -> bool:
        """Report another reason of each condition; whether that was written."""
        changed = {"reason": "Another"}
        return self._write(
            name, lambda status: {"conditions": tuple(c.model_copy(update=changed) for c in status.conditions)}
        )

    def _write(self, name: str, update: Callable[[PartitionReassignmentStatus], Object]) -> bool:
        resource, before = self.world.store.resource(f"uid-{name}"), self.world.kube.objects[f"uid-{name}"]
        assert resource
        status = resource.status.model_copy(update=update(resource.status))
        asyncio.run(self.world.loop.writer.write(resource, status))
        return self.world.kube.objects[f"uid-{name}"] is not before


@pytest.fixture
def reporting(monkeypatch: pytest.MonkeyPatch) -> Reporting:
    return Reporting(monkeypatch)


def test_progress_alone_is_written_once_in_five_seconds(reporting: Reporting) -> None:
    assert PROGRESS_SECONDS == 5
    assert reporting.progress()
    assert not reporting.progress()
    reporting.pass_seconds(PROGRESS_SECONDS - 0.1)
    assert not reporting.progress()
    reporting.pass_seconds(0.1)
    assert reporting.progress()


def test_a_changed_condition_is_written_at_once(reporting: Reporting) -> None:
    assert reporting.progress()
    assert reporting.another_reason()
    assert not reporting.progress(), "it was written just now"


def test_progress_of_all_resources_keeps_within_its_bytes_per_second(reporting: Reporting) -> None:
    assert PROGRESS_BYTES_PER_SECOND == 1_000_000
    names = ["one", "two", "three", "four"]
    for name in names:
        reporting.world.add(name, LATER, (4, 2, 3))
        reporting.world.change(name, lambda obj: obj["metadata"].update(annotations={"large": "x" * 600_000}))
    reporting.world.tick(2)
    reporting.pass_seconds(2 * PROGRESS_SECONDS)
    assert [reporting.progress(name) for name in names] == [True, True, False, False]
    assert reporting.another_reason("four"), "what is more than progress has no budget"
    reporting.pass_seconds(1)
    assert [reporting.progress(name) for name in names] == [False, False, True, False]
