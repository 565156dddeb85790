"""What working out a plan for a BrokerDecommission comes to, from one look at a whole cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reassign.controller.plans.job import worked_out
from reassign.core.model.snapshot import LogDir, Snapshot, TopicPartition
from reassign.core.survey import survey
from tests.unit.planning_job import job
from tests.unit.sim import SimKafka

A0 = TopicPartition("a", 0)
ONLINE, OFFLINE = {"/d": LogDir()}, {"/d": LogDir(), "/e": LogDir(online=False)}
SPEC: dict[str, Any] = {"goal": {"drainBrokers": [1], "scope": "Drained"}, "racks": {}, "template": {}}


def seen(broker: dict[str, LogDir] | None) -> Snapshot:
    """A cluster of three brokers, of which broker 1 answers so when it is asked for its logs."""
    others = {2: ONLINE, 3: ONLINE}
    return replace(SimKafka({A0: (1, 2)}).snapshot(), log_dirs=others if broker is None else others | {1: broker})


@pytest.mark.parametrize("broker", [ONLINE, OFFLINE])
def test_an_offline_log_directory_keeps_no_broker_from_being_emptied(broker: dict[str, LogDir]) -> None:
    snapshot = seen(broker)
    found = worked_out(job(**SPEC), snapshot, survey(snapshot))
    assert (found.incomplete, len(found.planned.waves)) == ((), 1)


def test_a_broker_that_does_not_answer_is_waited_for() -> None:
    snapshot = seen(None)
    found = worked_out(job(**SPEC), snapshot, survey(snapshot))
    assert found.incomplete == ("it is not known what broker 1 has of topics that could not be read",)
