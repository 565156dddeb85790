"""Throttles on real brokers: set before the move, asserted again, and byte for byte gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigSource, ResourceType
from confluent_kafka.admin import ConfigResource as AdminResource

from reassign.api.config_keys import (
    CORDONED_LOG_DIRS,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
)
from reassign.api.limits import MAX_CONFIG_CHARACTERS
from reassign.core.configs.cordons import CordonReason, recorded_cordons
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Op
from reassign.core.model.snapshot import TopicPartition, cordoned
from reassign.core.model.steps import APPLIED, AlterLogDirs, Cancel, Result
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason
from tests.kafka.harness import MEGABYTE, Kafka, eventually
from tests.kafka.log_dirs import copied, directory, other_directory
from tests.kafka.throttles import begin, tick
from tests.unit.throttling import Operator, ended, with_steps

THEIRS = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)
BROKERS = range(4)
OPS = {Op.SET: AlterConfigOpType.SET, Op.DELETE: AlterConfigOpType.DELETE, Op.APPEND: AlterConfigOpType.APPEND}


def topic(name: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, name)


def broker(number: int) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, str(number))


def resource_of(resource: ConfigResource, **options: object) -> AdminResource:
    kind = ResourceType.TOPIC if resource.type is ConfigResourceType.TOPIC else ResourceType.BROKER
    return AdminResource(kind, resource.name, **options)


def configs(kafka: Kafka, *resources: ConfigResource) -> dict[ConfigKey, str]:
    """What is set at these resources, as another client reads it."""
    found = {}
    for resource in resources:
        [described] = kafka.workload.ask(lambda admin, p=resource: admin.describe_configs([resource_of(p)])).values()
        found |= {
            ConfigKey(resource, name): entry.value
            for name, entry in described.items()
            if entry.source in [source.value for source in THEIRS]
        }
    return found


def everything(kafka: Kafka, *topics: str) -> dict[ConfigKey, str]:
    return configs(kafka, *map(topic, topics), *map(broker, BROKERS))


def edit(kafka: Kafka, resource: ConfigResource, config: str, op: Op, value: str | None = None) -> None:
    """As somebody beside the operator would, seen by all before it returns."""
    entry = ConfigEntry(config, value, incremental_operation=OPS[op])
    before = configs(kafka, resource)
    kafka.workload.ask(
        lambda admin: admin.incremental_alter_configs([resource_of(resource, incremental_configs=[entry])])
    )
    if op is not Op.APPEND:
        eventually(lambda: configs(kafka, resource).get(ConfigKey(resource, config)) == value)
    else:
        eventually(lambda: configs(kafka, resource) != before)


@pytest.fixture
def operator(kafka: Kafka) -> Iterator[Operator]:
    """One whose process is not new any more."""
    found = Operator(kafka.client)
    found.grow_up()
    yield found
    restore(found, kafka)


def restore(operator: Operator, kafka: Kafka, *verdicts: Verdict) -> None:
    over = [ended(verdict) for verdict in verdicts]
    eventually(lambda: not tick(operator, kafka, *over))
    assert operator.api.recorded is None


def test_a_prior_rate_and_a_foreign_list_are_byte_for_byte_what_they_were(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=3)
    try:
        edit(kafka, broker(1), LEADER_RATE, Op.SET, "123456789")
        edit(kafka, topic(name), FOLLOWER_REPLICAS, Op.SET, "*")
        edit(kafka, topic(name), LEADER_REPLICAS, Op.SET, "7:1,8:2")
        before = everything(kafka, name)
        verdict = begin(operator, kafka, name, [0, 1], [0, 2], "1Ki")
        during = everything(kafka, name)
        assert kafka.in_flight(TopicPartition(name, 0))
        assert during[ConfigKey(topic(name), LEADER_REPLICAS)] == "7:1,8:2,0:0,0:1"
        assert during[ConfigKey(topic(name), FOLLOWER_REPLICAS)] == "*"
        assert [during.get(ConfigKey(broker(b), LEADER_RATE)) for b in BROKERS] == ["1024", "1024", "1024", None]
        assert kafka.perform(Cancel(TopicPartition(name, 0), (0, 2))) == [APPLIED]
        restore(operator, kafka, verdict)
        eventually(lambda: everything(kafka, name) == before)
    finally:
        edit(kafka, broker(1), LEADER_RATE, Op.DELETE)


def test_a_prior_list_with_duplicates_is_what_it_was(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=3)
    kafka.brokers.tool(
        "configs", "--alter", "--topic", name, "--add-config", f"{LEADER_REPLICAS}=[7:1,8:2,7:1],{FOLLOWER_REPLICAS}=*"
    )
    before = everything(kafka, name)
    assert before[ConfigKey(topic(name), LEADER_REPLICAS)].startswith("7:1,8:2")
    verdict = begin(operator, kafka, name, [0, 1], [0, 2], "1Ki")
    assert {"0:0", "0:1"} <= set(everything(kafka, name)[ConfigKey(topic(name), LEADER_REPLICAS)].split(","))
    assert kafka.perform(Cancel(TopicPartition(name, 0), (0, 2))) == [APPLIED]
    restore(operator, kafka, verdict)
    eventually(lambda: everything(kafka, name) == before)


def test_a_rate_that_is_the_default_of_all_brokers_is_in_force_again(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=3)
    of_all = ("configs", "--alter", "--entity-type", "brokers", "--entity-default")
    kafka.brokers.tool(*of_all, "--add-config", f"{LEADER_RATE}=123456789")
    try:
        eventually(lambda: rates(kafka) == ["123456789"] * len(BROKERS))
        before = everything(kafka, name)
        verdict = begin(operator, kafka, name, [0, 1], [0, 2], "1Ki")
        eventually(lambda: rates(kafka) == ["1024", "1024", "1024", "123456789"])
        assert kafka.perform(Cancel(TopicPartition(name, 0), (0, 2))) == [APPLIED]
        restore(operator, kafka, verdict)
        eventually(lambda: rates(kafka) == ["123456789"] * len(BROKERS))
        eventually(lambda: everything(kafka, name) == before)
    finally:
        kafka.brokers.tool(*of_all, "--delete-config", LEADER_RATE)


def rates(kafka: Kafka) -> list[str | None]:
    """The rate of leaders that each broker has in force, set on it or on all; 4.4.0 shows none that is not set."""
    found = []
    for number in BROKERS:
        wanted = [resource_of(broker(number))]
        [described] = kafka.workload.ask(lambda admin, w=wanted: admin.describe_configs(w)).values()
        found.append(described[LEADER_RATE].value if LEADER_RATE in described else None)
    return found


@pytest.mark.parametrize("prior", [None, ""], ids=["absent", "empty"])
def test_absent_and_empty_are_distinguished(kafka: Kafka, operator: Operator, prior: str | None) -> None:
    name = kafka.topic([0, 1])
    if prior is not None:
        edit(kafka, topic(name), FOLLOWER_REPLICAS, Op.SET, prior)
        edit(kafka, topic(name), LEADER_REPLICAS, Op.SET, prior)
    before = everything(kafka, name)
    verdict = begin(operator, kafka, name, [0, 1], [0, 2], "10Mi")
    eventually(lambda: everything(kafka, name)[ConfigKey(topic(name), FOLLOWER_REPLICAS)] == "0:2")
    eventually(lambda: kafka.settled(TopicPartition(name, 0), [0, 2]))
    restore(operator, kafka, verdict)
    eventually(lambda: everything(kafka, name) == before)


def test_a_killed_operator_and_three_moves_leave_nothing(kafka: Kafka, operator: Operator) -> None:
    names = [kafka.topic([0, 1], megabytes=2) for _ in range(3)]
    before = everything(kafka, *names)
    moving = [begin(operator, kafka, names[0], [0, 1], [3, 1], "5Ki")]
    operator.restart()
    for name, rate in ((names[1], "1Ki"), (names[2], "3Ki")):
        moving.append(begin(operator, kafka, name, [0, 1], [3, 1], rate))

    def set_rate(*verdicts: Verdict) -> str | None:
        tick(operator, kafka, *verdicts)
        return configs(kafka, broker(3)).get(ConfigKey(broker(3), FOLLOWER_RATE))

    eventually(lambda: set_rate(*moving) == "1024")
    kafka.perform(Cancel(TopicPartition(names[1], 0), (1, 3)))
    eventually(lambda: set_rate(moving[0], ended(moving[1]), moving[2]) == "3072")
    operator.restart()
    for name in (names[0], names[2]):
        kafka.perform(Cancel(TopicPartition(name, 0), (1, 3)))
    restore(operator, kafka, *moving)
    eventually(lambda: everything(kafka, *names) == before)


def test_removed_list_items_are_set_again_at_the_next_reconciliation(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=2)
    verdict = begin(operator, kafka, name, [0, 1], [2, 1], "1Ki")
    key = ConfigKey(topic(name), FOLLOWER_REPLICAS)

    def seen_by_all() -> bool:
        tick(operator, kafka, verdict)
        return not operator.memory.recent.sent

    eventually(seen_by_all)
    edit(kafka, key.resource, key.config, Op.DELETE)
    tick(operator, kafka, verdict)
    eventually(lambda: configs(kafka, key.resource).get(key) == "0:2")
    assert ["had lost 0:2" in tell.note for tell in operator.api.told] == [True]
    kafka.perform(Cancel(TopicPartition(name, 0), (1, 2)))
    restore(operator, kafka, verdict)


def test_a_throttle_stays_on_an_orphaned_move_until_it_ends(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=2)
    before = everything(kafka, name)
    begin(operator, kafka, name, [0, 1], [2, 1], "1Ki")
    during = everything(kafka, name)
    operator.restart()
    for _ in range(3):
        assert tick(operator, kafka)
    assert everything(kafka, name) == during
    kafka.perform(Cancel(TopicPartition(name, 0), (1, 2)))
    restore(operator, kafka)
    eventually(lambda: everything(kafka, name) == before)


class Copy:
    """A resource that has a replica on broker 0 copied to its other directory, looked at as often as is asked."""

    def __init__(self, kafka: Kafka, operator: Operator, name: str) -> None:
        self.kafka, self.operator, self.tp = kafka, operator, TopicPartition(name, 0)
        self.here, self.there = directory(kafka, self.tp, 0), other_directory(kafka, self.tp, 0)
        self.step = AlterLogDirs(self.tp, ((0, self.there),))
        operator.know(kafka.observe(name))

    def reconcile(self, rate: str, *steps: AlterLogDirs) -> Verdict:
        named = {0: self.there}
        verdict = self.operator.verdict("dirs", {self.tp: ([0, 1], [0, 1])}, None, begun=True, log_dir=rate, dirs=named)
        verdict = with_steps(verdict, *steps)
        seen = self.kafka.observe(self.tp.topic, sizes_of=[self.tp], doubts=self.operator.doubts)
        self.operator.tick(seen, [verdict])
        return self.operator.after(verdict)

    def begin(self, rate: str) -> None:
        """Look until it may be copied, copy it, and wait until that shows."""
        eventually(lambda: bool(self.reconcile(rate, self.step).steps))
        assert self.kafka.perform(self.step) == [APPLIED]
        eventually(lambda: self.bytes > 0)

    @property
    def bytes(self) -> int:
        return copied(self.kafka, self.tp, 0).get(self.there, 0)

    @property
    def done(self) -> bool:
        return directory(self.kafka, self.tp, 0) == self.there and self.bytes == 0


def test_a_log_dir_copy_has_its_rate_and_the_prior_one_is_restored(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=4)
    rate = ConfigKey(broker(0), LOG_DIR_RATE)
    edit(kafka, broker(0), LOG_DIR_RATE, Op.SET, "123456789")
    try:
        before = everything(kafka, name)
        copy = Copy(kafka, operator, name)
        copy.begin("1Ki")
        eventually(lambda: everything(kafka, name) == {**before, rate: "1024"})
        operator.restart()
        operator.grow_up()
        copy.reconcile("1Ki")
        assert 0 < copy.bytes < 4 * MEGABYTE
        eventually(lambda: bool(copy.reconcile("1Gi")) and configs(kafka, broker(0))[rate] == str(2**30))
        eventually(lambda: copy.done)
        operator.restart()
        operator.grow_up()
        eventually(lambda: bool(copy.reconcile("1Gi")) and operator.api.recorded is None)
        eventually(lambda: everything(kafka, name) == before)
    finally:
        edit(kafka, broker(0), LOG_DIR_RATE, Op.DELETE)


def test_an_orphaned_log_dir_copy_stays_throttled_until_it_ends(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=4)
    before = everything(kafka, name)
    copy = Copy(kafka, operator, name)
    copy.begin("1Ki")
    during = everything(kafka, name)
    operator.restart()

    def reconcile() -> bool:
        tps = operator.copied_between_dirs()
        return operator.tick(kafka.observe(*{tp.topic for tp in tps}, sizes_of=tps, doubts=operator.doubts))

    rate = ConfigKey(broker(0), LOG_DIR_RATE)
    eventually(lambda: reconcile() and bool(operator.memory.recent.settled([rate], [rate])))
    assert reconcile()
    assert everything(kafka, name) == during == {**before, rate: "1024"}
    assert kafka.perform(AlterLogDirs(copy.tp, ((0, copy.here),))) == [APPLIED]
    eventually(lambda: not reconcile())
    eventually(lambda: everything(kafka, name) == before)


def test_a_dead_broker_holds_no_other_up_and_is_restored_when_it_is_back(kafka: Kafka, operator: Operator) -> None:
    name = kafka.topic([0, 1], megabytes=2)
    before = everything(kafka, name)
    verdict = begin(operator, kafka, name, [0, 1], [3, 1], "2Ki")
    kafka.brokers.shut_down(3)
    eventually(lambda: kafka.observe().brokers[3].fenced)
    kafka.perform(Cancel(TopicPartition(name, 0), (1, 3)))

    def only_the_dead_one_is_left() -> bool:
        tick(operator, kafka, ended(verdict))
        left = operator.api.throttle("uid")
        return left is not None and not left.topics and [b.broker for b in left.brokers] == [3]

    try:
        eventually(only_the_dead_one_is_left)  # a lost answer may land for a minute
    finally:
        kafka.brokers.restart(3)
        eventually(lambda: not kafka.observe().brokers[3].fenced)
    restore(operator, kafka, verdict)
    eventually(lambda: everything(kafka, name) == before)


def test_a_change_has_the_same_effect_on_the_broker_as_in_the_model(kafka: Kafka) -> None:
    resource = topic(kafka.topic([0, 1]))
    key = ConfigKey(resource, LEADER_REPLICAS)
    text: str | None = None
    for op, value in [
        (Op.APPEND, "1:1,0:1"),
        (Op.APPEND, "0:1,2:1"),
        (Op.SUBTRACT, "1:1,5:5"),
        (Op.SET, "3:1,4:1,5:1"),
        (Op.APPEND, "0:1"),
        (Op.SUBTRACT, "0:1,3:1"),
        (Op.SET, ""),
        (Op.DELETE, ""),
        (Op.SUBTRACT, "0:1"),
    ]:
        change = Change(key, op, value)
        assert kafka.change(change).result is Result.APPLIED
        text = change.of(text)
        eventually(lambda text=text: configs(kafka, resource).get(key) == text)
    assert kafka.change(Change(key, Op.SET, "*")).result is Result.APPLIED
    assert kafka.change(Change(key, Op.APPEND, "0:1")).result is Result.REFUSED
    too_long = ",".join(f"{number}:1" for number in range(5000))
    assert len(too_long) > MAX_CONFIG_CHARACTERS
    assert kafka.change(Change(key, Op.SET, too_long)).result is not Result.APPLIED
    eventually(lambda: configs(kafka, resource)[key] == "*")


def test_a_missing_topic_reads_as_gone_and_a_missing_broker_as_a_problem(kafka: Kafka) -> None:
    found = kafka.configs(topic("no-such-topic"), broker(99), broker(0))
    assert found[topic("no-such-topic")] is None
    assert found[broker(0)] == {}
    assert getattr(found[broker(99)], "reason", None) is Reason.REQUEST_FAILED


def test_a_cordon_is_in_force_and_what_was_there_before_is_restored(kafka: Kafka, operator: Operator) -> None:
    """From Kafka 4.3 on; before, no broker says what is cordoned, and none is."""
    if is_cordoned(kafka) is None:
        assert cordon(kafka, operator, 2) is CordonReason.NOT_SUPPORTED
        assert configs(kafka, broker(2)) == {}
        return
    key, partial = ConfigKey(broker(2), CORDONED_LOG_DIRS), str(kafka.brokers.log_dirs(2)[0])
    edit(kafka, broker(2), CORDONED_LOG_DIRS, Op.SET, partial)
    try:
        eventually(lambda: cordon(kafka, operator, 2) is CordonReason.IN_FORCE)
        assert configs(kafka, broker(2)) == {key: "*"}
        assert is_cordoned(kafka)
        assert recorded_cordons(operator.api.recorded) == {2}
        operator.restart()
        eventually(lambda: cordon(kafka, operator) is None and operator.api.recorded is None)
        eventually(lambda: configs(kafka, broker(2)) == {key: partial})
        eventually(lambda: is_cordoned(kafka) is False)
    finally:
        edit(kafka, broker(2), CORDONED_LOG_DIRS, Op.DELETE)


def is_cordoned(kafka: Kafka) -> bool | None:
    """What broker 2 reports."""
    return cordoned(kafka.observe(sizes_of=[], destinations=[2]).log_dirs[2])


def cordon(kafka: Kafka, operator: Operator, *brokers: int) -> CordonReason | None:
    """Tick with these brokers to be cordoned; return the state of the first."""
    operator.tick(kafka.observe(sizes_of=[], destinations=[2]), cordons=frozenset(brokers))
    return operator.cordons[brokers[0]].reason if brokers else None
