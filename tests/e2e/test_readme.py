"""The README's words, carried out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localplatform.machine import CHECKOUT
from localplatform.processes import run
from tests.e2e.world import World

EXAMPLE, REPLICAS, BYTES = "orders", [[0, 1, 2], [1, 2, 3]], 32 * 2**20
PLAN, WAVES = "drain-3", "kafka.reassign.dev/plan=drain-3"


@pytest.fixture
def example(world: World) -> Iterator[World]:
    """The topic that `make up` has made is as it made it, before and after."""

    def clean() -> None:
        world.kubectl("delete", "reassignmentplan", PLAN, "--ignore-not-found", "--timeout=60s")
        world.kubectl("delete", "partitionreassignment", f"--selector={WAVES}", "--timeout=60s")
        world.kafka.delete([EXAMPLE])
        world.kafka.create(EXAMPLE, REPLICAS, BYTES)

    clean()
    yield world
    clean()


def test_the_first_plan_is_read_approved_and_run_as_the_readme_says(example: World) -> None:
    world = example
    story = (CHECKOUT / "README.md").read_text().partition("## A first plan")[2]
    (commands,) = (block for block in story.split("```")[1::2] if f"krp/{PLAN}" in block)
    run(["bash", "-euo", "pipefail", "-c", f"cd {CHECKOUT}\n{commands}"])
    assert all(3 not in replicas for replicas in world.kafka.replicas(EXAMPLE).values())
    assert world.condition(PLAN, "Succeeded", "reassignmentplan")["reason"] == "Completed"
