"""Configurations that cannot be read or changed: each topic is told of itself alone, and of no broker's address."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import KafkaConnectionError

from reassign.api.config_keys import FOLLOWER_REPLICAS
from reassign.core.model.configs import Change, ConfigKey, Op
from reassign.core.model.problem import Audience, Problem, render
from reassign.kafka.throttles import change, read
from reassign.kafka.wire import AnswerLostError
from tests.unit.configs import topic

THEIRS, MINE = topic("theirs"), topic("mine")
TENANT, OWNER = Audience("team-a", ("mine",)), Audience("kafka", ("*",), owner=True)


class Wire:
    """Brokers that do not answer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def read(self, _: object) -> object:
        raise self.error

    def write(self, *_: object) -> object:
        raise self.error


def test_a_failed_read_names_each_topic_alone_and_no_address() -> None:
    wire: Any = Wire(KafkaConnectionError("b0.example:9092"))
    problem = read(wire, [THEIRS, MINE])[MINE]
    assert isinstance(problem, Problem)
    assert "b0.example:9092" in render(problem, OWNER).message
    assert render(problem, TENANT).message == (
        "the configurations of topic mine could not be read: the brokers did not answer"
    )


@pytest.mark.parametrize("error", [KafkaConnectionError("b0.example:9092"), AnswerLostError("b0.example:9092")])
def test_a_failed_change_names_each_topic_alone_and_no_address(error: Exception) -> None:
    wire: Any = Wire(error)
    changes = [Change(ConfigKey(where, FOLLOWER_REPLICAS), Op.APPEND, "0:1") for where in (THEIRS, MINE)]
    outcomes = change(wire, changes, lambda: None)
    said = outcomes[changes[1]].problem
    assert "b0.example:9092" in render(said, OWNER).message
    assert render(said, TENANT).message == "the brokers did not answer; they are asked again"
    assert all("theirs" not in render(outcomes[changes[1]].problem, who).message for who in (OWNER, TENANT))
