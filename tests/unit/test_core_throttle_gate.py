"""What copies replicas between log directories is throttled from before its first byte to its last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reassign.api.config_keys import LOG_DIR_RATE
from reassign.core.configs.stage import ConfigMemory
from reassign.core.model.configs import Change
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.resource import Resource
from reassign.core.model.steps import AlterLogDirs, Cancel, Outcome
from reassign.core.tick import Decision
from reassign.errors import Reason
from tests.unit.configs import broker, copy, topic
from tests.unit.log_dirs import P0, asking, forgetful, with_dirs
from tests.unit.sim import Driver, SimKafka, detail, refused, resource, states, true_conditions

START = {topic(): {}, **{broker(b): {} for b in range(6)}, broker(0): {LOG_DIR_RATE: "123"}}
RATE = {"throttle": {"logDir": 7000}}
SHAPES = [((0, 1), ("/b", "any")), ((0, 1), ("/b", "/b")), ((0, 2), ("/b", "/b")), ((2, 3), ("/b", "any"))]


class KilledError(Exception):
    pass


class World:
    """The core ticks with its throttles; at each write a copy that goes unthrottled is an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
        self.driver, self.driver.configs = driver, copy(START)
        self.driver.memory = replace(driver.memory, throttle=ConfigMemory(RecentChanges(started=0.0)))
        self.dies: int | None = None
        self.copied: set[int] = set()
        perform, change, record = driver.kafka.perform, driver.change_configs, driver.record_throttles

        def watched(step: Any) -> Any:
            outcome = perform(step)
            self.check()
            return outcome

        def recorded(status: Any) -> None:
            if self.dies == 0:
                raise KilledError
            record(status)

        def changed(decision: Decision) -> Any:
            outcomes: dict[Change, Outcome] = {}
            for number, one in enumerate(decision.throttle.changes, 1):
                if number == self.dies:
                    raise KilledError
                outcomes |= change(replace(decision, throttle=replace(decision.throttle, changes=(one,))))
                self.check()
            if self.dies is not None:
                raise KilledError
            return outcomes

        monkeypatch.setattr(driver.kafka, "perform", watched)
        monkeypatch.setattr(driver, "change_configs", changed)
        monkeypatch.setattr(driver, "record_throttles", recorded)

    def check(self) -> None:
        for number, directories in self.driver.kafka.log_dirs.items():
            if any(P0 in directory.futures for directory in directories.values()):
                self.copied.add(number)
                assert self.driver.configs[broker(number)].get(LOG_DIR_RATE) == "7000"

    def killed(self, after: int) -> None:
        """While the throttles are changed, the record being the first step."""
        self.dies = after
        with pytest.raises(KilledError):
            self.driver.tick()
        self.dies = None
        self.driver.restart()

    def ends(self) -> None:
        self.driver.finish()
        self.driver.ticks(10)
        assert (self.driver.configs, self.driver.throttle.record) == (START, None)


@pytest.mark.parametrize("dies", range(4))
@pytest.mark.parametrize(("replicas", "dirs"), SHAPES)
def test_a_kill_at_any_step_copies_nothing_unthrottled(
    monkeypatch: pytest.MonkeyPatch, replicas: Sequence[int], dirs: Sequence[str], dies: int
) -> None:
    world = World(monkeypatch, asking(replicas, dirs, **RATE))
    for _ in range(4):
        world.driver.ticks(2)
        world.killed(dies)
        world.driver.tick(die_after=dies)
        world.driver.ticks(6)
    world.ends()
    assert states(world.driver) == {P0: "Completed"}
    assert world.copied == {b for b, path in zip(replicas, dirs, strict=True) if b in (0, 1) and path == "/b"}


@pytest.mark.parametrize(("replicas", "dirs"), SHAPES)
@pytest.mark.parametrize("policy", ["Cancel", "Orphan"])
@pytest.mark.parametrize("after", range(4, 9))
def test_a_deletion_at_any_moment_leaves_no_unthrottled_copy_and_no_rate(
    monkeypatch: pytest.MonkeyPatch, replicas: Sequence[int], dirs: Sequence[str], policy: str, after: int
) -> None:
    world = World(monkeypatch, asking(replicas, dirs, deletionPolicy=policy, **RATE))
    world.driver.ticks(after)
    world.driver.delete("a")
    world.driver.ticks(8)
    world.ends()
    assert world.driver.gone == {"a"}


def test_what_a_broker_forgot_is_copied_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = asking((2, 1), ("/b", "any"), **RATE)
    driver.kafka.perform = forgetful(driver.kafka)  # type: ignore[method-assign]
    world = World(monkeypatch, driver)
    driver.ticks(8)
    world.ends()
    assert world.copied == {2}


def test_another_directory_in_flight_stays_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, asking((0, 1), ("/b", "any"), **RATE))
    world.driver.ticks(8)
    world.driver.edit("a", {P0: (0, 1)}, **RATE)
    world.driver.resources["a"] = with_dirs(world.driver.resources["a"], ("/a", "any"))
    world.ends()
    steps = [step.dirs for step in world.driver.kafka.writes if isinstance(step, AlterLogDirs)]
    assert (steps, world.copied) == ([((0, "/b"),), ((0, "/a"),)], {0})


class Refusing(Driver):
    """Brokers refuse every change of a configuration."""

    def change_configs(self, decision: Decision) -> dict[Change, Outcome]:
        return dict.fromkeys(decision.throttle.changes, refused(Reason.NOT_AUTHORIZED))


def refusing(moved: Resource, kafka: SimKafka) -> Driver:
    configs = {topic(): {}, **{broker(b): {} for b in range(6)}}
    return Refusing(kafka, {moved.uid: moved}, configs=configs)


def test_a_move_is_not_cancelled_for_one_that_cannot_be_throttled() -> None:
    kafka = SimKafka({P0: (0, 1)})
    kafka.move_as_another(P0, (2, 1))
    driver = refusing(resource({P0: (3, 1)}, whenInFlight="Supersede", throttle={"interBroker": 5000}), kafka)
    for _ in range(3):
        driver.ticks(40)
        driver.restart()
    assert P0 in kafka.reassignments
    assert [step for step in kafka.writes if isinstance(step, Cancel)] == []


def test_a_move_that_cannot_be_throttled_is_never_recorded_and_is_stalled() -> None:
    kafka = SimKafka({P0: (0, 1)})
    driver = refusing(resource({P0: (3, 1)}, throttle={"interBroker": 5000}), kafka)
    seen = []
    for _ in range(60):
        driver.tick()
        seen.append((detail(driver, P0).reason, len(driver.resources["a"].record)))
    first = seen.index(("NotAuthorized", 0))
    assert set(seen[first:]) == {("NotAuthorized", 0)}
    assert true_conditions(driver) == {"Stalled": "NotAuthorized"}
    assert kafka.writes == []
