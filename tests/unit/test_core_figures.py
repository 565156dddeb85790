"""What is measured of throttles: the rates that are set, and those that no move needs any more."""

from __future__ import annotations

import time
from dataclasses import replace

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_record import BrokerConfigs, RecordedConfig, RecordedConfigs
from reassign.core.configs.desired import WantedConfigs
from reassign.core.configs.stage import ConfigDecision, ConfigRead
from reassign.core.figures import figures_of
from reassign.core.model.configs import ConfigKey, ConfigResource, ConfigResourceType
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.core.tick import Decision, Memory
from tests.unit.sim import SimKafka

RATE = "leader.replication.throttled.rate"


def decision(throttle: ConfigDecision) -> Decision:
    snapshot = SimKafka({TopicPartition("t", 0): (1, 2, 3)}).snapshot()
    return Decision(snapshot, ConfigRead(), Execution.RUN, (), Memory.begin(time.monotonic()), throttle)


def recorded(*brokers: int) -> RecordedConfigs:
    rate = (RecordedConfig(name=RATE, value="1000"),)
    return RecordedConfigs(inter_broker=1000, brokers=tuple(BrokerConfigs(broker=b, configs=rate) for b in brokers))


def test_a_throttle_that_no_move_needs_is_left_over() -> None:
    needed = ConfigKey(ConfigResource(ConfigResourceType.BROKER, "1"), RATE)
    throttle = ConfigDecision(recorded(1, 2), aim=WantedConfigs(values={needed: "1000"}))
    assert figures_of(decision(throttle)).left_over == 1
    assert figures_of(decision(replace(throttle, aim=WantedConfigs()))).left_over == 2
    assert figures_of(decision(replace(throttle, record=recorded(1)))).left_over == 0


def test_the_rate_in_use_is_that_of_the_record() -> None:
    assert figures_of(decision(ConfigDecision(recorded(1)))).throttles == {"interBroker": 1000, "logDir": 0}
    assert figures_of(decision(ConfigDecision())).throttles == {"interBroker": 0, "logDir": 0}


def test_brokers_with_our_cordon_count_and_are_no_throttle_left_over() -> None:
    cordon = (RecordedConfig(name=CORDONED_LOG_DIRS, value="*"),)
    record = RecordedConfigs(brokers=tuple(BrokerConfigs(broker=b, configs=cordon) for b in (1, 2, 99)))
    found = decision(ConfigDecision(record))
    log_dirs = {b: {"/a": LogDir(cordoned=b != 2)} for b in (1, 2, 3, 99)}
    found = replace(found, snapshot=replace(found.snapshot, log_dirs=log_dirs))
    assert (figures_of(found).cordoned, figures_of(found).left_over) == (1, 0)
