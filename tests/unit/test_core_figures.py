"""What is measured of throttles, cordons and decommissions, and of plans that their windows do not suffice for."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import Execution
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import WaveState
from reassign.api.reassignment_record import BrokerConfigs, RecordedConfig, RecordedConfigs
from reassign.api.window import Window
from reassign.core.configs.cordons import CordonReason, CordonState
from reassign.core.configs.desired import WantedConfigs
from reassign.core.configs.stage import ConfigDecision, ConfigRead
from reassign.core.figures import automation_figures, figures_of, is_past_windows
from reassign.core.model.configs import ConfigKey, ConfigResource, ConfigResourceType
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.core.plans.model import PlanResource
from reassign.core.tick import Decision, Memory
from tests.unit.automation_sim import UNREACHABLE, Decommissions, orders
from tests.unit.plan_sim import approved
from tests.unit.sim import START, SimKafka

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


def test_a_cordon_that_nothing_wants_any_more_is_left_over() -> None:
    cordon = (RecordedConfig(name=CORDONED_LOG_DIRS, value="*"),)
    record = RecordedConfigs(brokers=tuple(BrokerConfigs(broker=b, configs=cordon) for b in (1, 2, 99)))
    throttle = ConfigDecision(record, cordons={1: CordonState(CordonReason.IN_FORCE, "is cordoned", held=True)})
    assert figures_of(decision(throttle)).cordons_left_over == 1
    assert figures_of(decision(replace(throttle, cordons={}))).cordons_left_over == 2
    assert figures_of(decision(replace(throttle, cordons={}, untouched=True))).cordons_left_over == 0


# --- Decommissions ---


def left(run: Decommissions) -> int:
    return automation_figures(run.decide()).replicas_left


def test_replicas_left_count_from_the_approval_until_all_have_left() -> None:
    run = Decommissions(orders((5, 1), (2, 5), (5, 3), (1, 2)))
    it = run.apply()
    run.until("AwaitingApproval")
    assert left(run) == 0
    it.approve()
    run.tick()
    assert left(run) == 3
    it.edit(suspend=True)
    run.tick()
    assert left(run) == 0
    it.edit(suspend=False)
    run.until("Empty")
    assert left(run) == 0


def test_replicas_left_stay_while_kafka_is_unreachable() -> None:
    run = Decommissions(orders((5, 1), (2, 5), (1, 2)))
    run.apply(approval="NotRequired")
    run.until("WaveInFlight")
    run.problem = UNREACHABLE
    run.tick()
    assert left(run) == 2


# --- Windows ---

NIGHTLY = Window(cron="0 22 * * *", duration_seconds=3600)
NIGHT = timedelta(days=1)
FIRST_NIGHT = START.replace(hour=22) + timedelta(minutes=1)


def begun() -> tuple[PlanResource, list[Resource]]:
    """A plan of two waves, of which the first began in the first night and the second has not begun."""
    plan = approved()
    plan.tick()
    plan.begin()
    plan.tick()
    first, *others = (wave.resource() for wave in plan.waves.values())
    status = PartitionReassignmentStatus(start_time=FIRST_NIGHT)
    return plan.plan, [replace(first, status=status), *others]


@pytest.mark.parametrize(("nights", "past"), [(0, False), (1, False), (2, False), (3, True), (30, True)])
def test_a_plan_is_past_its_windows_when_they_have_closed_three_times(nights: int, past: bool) -> None:
    plan, waves = begun()
    now = FIRST_NIGHT + nights * NIGHT - timedelta(hours=1)
    assert is_past_windows(plan, waves, [NIGHTLY], now) is past


def test_a_wave_of_an_earlier_plan_says_nothing_of_when_this_one_began() -> None:
    plan, waves = begun()
    earlier = replace(waves[0], name="earlier", status=PartitionReassignmentStatus(start_time=START - 30 * NIGHT))
    assert not is_past_windows(plan, [*waves, earlier], [NIGHTLY], FIRST_NIGHT + NIGHT)


def test_a_plan_that_is_done_or_has_no_windows_is_not_past_them() -> None:
    plan, waves = begun()
    now = FIRST_NIGHT + 30 * NIGHT
    assert not is_past_windows(plan, waves, [], now)
    assert not is_past_windows(replace(plan, deleted=True), waves, [NIGHTLY], now)
    done = [wave.model_copy(update={"state": WaveState.SUCCEEDED}) for wave in plan.status.waves]
    status = plan.status.model_copy(update={"waves": tuple(done)})
    assert not is_past_windows(replace(plan, status=status), waves, [NIGHTLY], now)


def test_the_begin_of_a_wave_is_known_when_only_its_summary_is_kept() -> None:
    plan, waves = begun()
    first = waves[0]
    settled = Settled(
        first.uid, 1, "kafka", first.name, first.age_key, first.digest, 1, True, START, None, True, FIRST_NIGHT
    )
    assert is_past_windows(plan, [settled, *waves[1:]], [NIGHTLY], FIRST_NIGHT + 4 * NIGHT)
