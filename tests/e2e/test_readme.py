"""The README's words, carried out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localplatform.machine import CHECKOUT
from localplatform.processes import run
from tests.e2e.world import World

EXAMPLE, REPLICAS, BYTES = "orders", [[0, 1, 2], [1, 2, 3]], 32 * 2**20
MOVE, PLAN, WAVES = "first-move", "drain-3", "kafka.reassign.dev/plan=drain-3"


@pytest.fixture
def example(world: World) -> Iterator[World]:
    """The topic that `make up` has made is as it made it, before and after."""

    def clean() -> None:
        world.kubectl("delete", "reassignmentplan", PLAN, "--ignore-not-found", "--timeout=5m")
        world.kubectl("delete", "partitionreassignment", f"--selector={WAVES}", "--timeout=5m")
        world.kubectl("delete", "partitionreassignment", MOVE, "--ignore-not-found", "--timeout=5m")
        world.kafka.delete([EXAMPLE])
        world.kafka.create(EXAMPLE, REPLICAS, BYTES)

    clean()
    yield world
    clean()


def carry_out(section: str, names: str) -> None:
    """Run the commands of a section of the README, those of the block that has this name."""
    story = (CHECKOUT / "README.md").read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (commands,) = (block.removeprefix("sh\n") for block in story.split("```")[1::2] if names in block)
    run(["bash", "-euo", "pipefail", "-c", f"cd {CHECKOUT}\n{commands}"])


def test_the_first_move_and_plan_run_as_the_readme_says(example: World) -> None:
    world = example
    carry_out("A first move", f"kpr/{MOVE}")
    assert world.kafka.replicas(EXAMPLE) == {0: [3, 1, 2], 1: [0, 2, 3]}
    carry_out("A first plan", f"krp/{PLAN}")
    replicas = world.kafka.replicas(EXAMPLE)
    assert all(3 not in of for of in replicas.values())
    assert world.condition(PLAN, "Succeeded", "reassignmentplan")["reason"] == "Completed"
    assert world.condition(PLAN, "GoalMet", "reassignmentplan")["status"] == "True"
    assert len({of[0] for of in replicas.values()}) == 2
