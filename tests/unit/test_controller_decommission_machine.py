"""Whatever befalls decommissions, the brokers and the process: nothing unapproved, nothing too early, nothing left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from tests.unit.configs import broker
from tests.unit.decommission_trouble import GREATEST_AGE, TICK, Failure, Troubled
from tests.unit.examples import examples
from tests.unit.world import Object

BROKERS = {"old": (1,), "next": (2,), "both": (3, 5)}
NAMES, NUMBERS = st.sampled_from(sorted(BROKERS)), st.integers(0, 5)
TICKS = st.integers(0, 4)
ROWS = st.permutations(range(6)).map(lambda order: tuple(order[:2]))
TOPICS = st.sampled_from(["a", "b", "c", "late", "canary"])
CHOICE = st.integers(0, 5)
OPTIONS = st.fixed_dictionaries(
    {"approval": st.sampled_from(["NotRequired", "Required"])},
    optional={
        "cordon": st.just("Never"),
        "unregister": st.just("WhenDown"),
        "template": st.sampled_from([{"throttle": {"interBroker": "1Mi"}}, {"stallTimeoutSeconds": 60}]),
        "waves": st.just({"maxPartitions": 1}),
    },
)
EDITS = st.sampled_from(
    [
        {"suspend": True},
        {"suspend": False},
        {"waves": {"maxPartitions": 1}},
        {"waves": {"maxPartitions": 7}},
        {"template": {"throttle": {"interBroker": "2Mi"}}},
        {"excludeTopics": ["canary"], "unregister": "Never"},
        {"approval": "Required"},
        {"approval": "NotRequired"},
        {"cordon": "Never"},
        {"cordon": "WhereSupported"},
    ]
)


class Decommissions(RuleBasedStateMachine):
    """Decommissions of brokers 1, 2, 3 and 5 of six. At the end all is well again, and nothing of them may be left."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.run = Troubled(self.patch)
        self.run.kube.starts = self.judge_start
        self.run.brokers.begins = self.judge_move
        self.run.brokers.cordons = self.judge_cordon
        self.wrong = self.run.kube.wrong
        self.digests: list[str] = []
        """All that statuses have shown."""
        self.touched: set[str] = set()
        """Waves that users have edited."""
        self.approved_at: dict[str, float] = {}
        """Since when decommissions are approved."""
        self.might_cordon: set[int] = set()
        """The brokers whose cordons were wanted when the tick began."""
        self.empty_at: dict[tuple[str, int], float] = {}
        """When brokers were truly empty last, or could not be seen."""
        self.begun: dict[str, dict[str, int]] = {}
        """The bytes of the waves that began under the approval of a decommission, by name."""
        self.counted: dict[str, tuple[Any, int]] = {}
        """The approval of each decommission, and the bytes that were counted for it."""
        self.lets_end = False

    def go(self, ticks: int, seconds: float = TICK) -> None:
        for _ in range(ticks):
            self.might_cordon = self._cordons_wanted()
            self.run.tick(seconds=seconds)
            self._look()

    def _look(self) -> None:
        now, run = self.run.clock.seconds, self.run
        blind = not run.brokers.held.is_set() or not run.brokers.reachable
        for it in run.objects("BrokerDecommission"):
            self._count(it)
            uid, status = it["metadata"]["uid"], it["status"]
            if (digest := status.get("digest")) and digest not in self.digests:
                self.digests.append(digest)
            if run.is_approved(it):
                self.approved_at.setdefault(uid, now)
            else:
                self.approved_at.pop(uid, None)
            for number in it["spec"]["brokers"]:
                if blind or run.is_empty(it, number):
                    self.empty_at[uid, number] = now

    def _cordons_wanted(self) -> set[int]:
        wanted = [it["spec"]["brokers"] for it in self.run.objects("BrokerDecommission") if self.run.wants_cordon(it)]
        return {number for numbers in wanted for number in numbers}

    # --- What is judged when it is done ---

    def judge_start(self, wave: Object) -> None:
        if why := self.run.why_not_start(wave):
            self.wrong.append(f"{wave['metadata']['name']} starts, and {why}")
        if found := self.run.owner_of(wave):
            plan, it = found
            name = wave["metadata"]["name"]
            size = next(w["bytes"] for w in plan["status"]["waves"] if w["name"] == name)
            self._count(it)
            self.begun.setdefault(it["metadata"]["uid"], {})[name] = size

    def _count(self, it: Object) -> None:
        """Forget the waves of earlier plans when another plan is approved by itself."""
        uid, record = it["metadata"]["uid"], self.run.record_of(it["metadata"]["uid"])
        approval, plan = record.get("approval") or {}, record.get("plan") or {}
        its, counted = (approval.get("digest"), approval.get("bytes")), approval.get("begunBytes", 0)
        before, most = self.counted.get(uid, (its, 0))
        if its != before or counted < most:
            prefix = f"{plan.get('name')}-"
            self.begun[uid] = {name: size for name, size in self.begun.get(uid, {}).items() if name.startswith(prefix)}
        self.counted[uid] = its, counted

    def judge_cordon(self, number: int) -> None:
        if number not in self.might_cordon | self._cordons_wanted():
            self.wrong.append(f"broker {number} is cordoned, and nobody has approved that")

    def judge_move(self, tp: TopicPartition, move: Reassignment) -> None:
        """No move of a plan fills a broker that another decommission empties."""
        closed = set[int]()
        for it in self.run.objects("BrokerDecommission"):
            since = self.approved_at.get(it["metadata"]["uid"])
            ends = it["metadata"].get("deletionTimestamp") or self.run.is_finished(it)
            if since is not None and self.run.clock.seconds - since > 4 * TICK and not ends:
                closed |= {*it["spec"]["brokers"]}
        for holder in self.run.holders(tp):
            ours = "labels" in holder["metadata"] and holder["metadata"]["uid"] not in self.touched
            if ours and closed & {*move.adding}:
                self.wrong.append(f"{holder['metadata']['name']} moves {tp} to {closed & {*move.adding}}")

    # --- Users ---

    @initialize(options=OPTIONS, refuses=st.booleans(), ends=st.booleans())
    def begin(self, options: Object, refuses: bool, ends: bool) -> None:
        self.run.brokers.refuses_cordoned, self.lets_end = refuses, ends
        self.run.make("BrokerDecommission", "old", brokers=[*BROKERS["old"]], **options)

    @rule(times=st.integers(1, 12), seconds=st.sampled_from([5, 5, 20, 60]))
    def time_passes(self, times: int, seconds: float) -> None:
        self.go(times, seconds)

    @rule(name=NAMES, reason=st.sampled_from(["AwaitingApproval", "WaveInFlight", "Empty", "Empty"]))
    def it_goes_on(self, name: str, reason: str) -> None:
        """While a user looks on, who approves what is shown."""
        for _ in range(30):
            it = self.run.obj("BrokerDecommission", name)
            if it is None or self.run.reason(name) == reason:
                break
            if self.run.reason(name) == "AwaitingApproval":
                self.run.edit_spec(it, approvedDigest=it["status"]["digest"])
            self.go(1)

    @rule(ticks=TICKS)
    def all_is_well(self, ticks: int) -> None:
        self._mend()
        self.go(ticks)

    @rule(name=NAMES, ticks=st.integers(0, 30))
    def brokers_that_are_empty_stop(self, name: str, ticks: int) -> None:
        it = self.run.obj("BrokerDecommission", name)
        if it and _is_true(it, "Empty"):
            self.run.down(*(self.run.kafka.brokers.keys() & {*it["spec"]["brokers"]}))
            self.go(ticks)

    @rule(name=NAMES, options=OPTIONS, ticks=TICKS)
    def apply(self, name: str, options: Object, ticks: int) -> None:
        if self.run.obj("BrokerDecommission", name) is None:
            self.run.make("BrokerDecommission", name, brokers=[*BROKERS[name]], **options)
            self.go(ticks)

    @rule(name=NAMES, old=st.booleans(), ticks=TICKS)
    def approve(self, name: str, old: bool, ticks: int) -> None:
        """By the digest that is shown, or by the one that was shown first."""
        it = self.run.obj("BrokerDecommission", name)
        shown = self.digests[:1] if old else [it["status"].get("digest")] if it else []
        if it and shown and shown[0]:
            self.run.edit_spec(it, approvedDigest=shown[0])
            self.go(ticks)

    @rule(name=NAMES, edit=EDITS, ticks=TICKS)
    def edit(self, name: str, edit: Object, ticks: int) -> None:
        if it := self.run.obj("BrokerDecommission", name):
            if "excludeTopics" in {*it["spec"], *edit}:
                edit = edit | {"unregister": "Never"}
            self.run.edit_spec(it, **edit)
            self.go(ticks)

    @rule(name=NAMES, hours=st.sampled_from([0, 1, 2]), some=st.booleans(), ticks=TICKS)
    def edit_windows(self, name: str, hours: int, some: bool, ticks: int) -> None:
        if it := self.run.obj("BrokerDecommission", name):
            hour = (self.run.clock.now().hour + hours) % 24
            windows = [{"cron": f"0 {hour} * * *", "durationSeconds": 3600}] if some else []
            self.run.edit_spec(it, windows=windows)
            self.go(ticks)

    @rule(name=NAMES, foreground=st.booleans(), ticks=TICKS)
    def delete(self, name: str, foreground: bool, ticks: int) -> None:
        if self.run.obj("BrokerDecommission", name):
            self.run.delete(name, foreground=foreground)
            self.go(ticks)

    @rule(choice=CHOICE, foreground=st.booleans(), ticks=TICKS)
    def delete_a_plan(self, choice: int, foreground: bool, ticks: int) -> None:
        if plans := self.run.plans():
            self.run.delete(plans[choice % len(plans)], "ReassignmentPlan", foreground=foreground)
            self.go(ticks)

    @rule(choice=CHOICE, row=st.none() | ROWS, ticks=TICKS)
    def edit_or_delete_a_wave(self, choice: int, row: tuple[int, int] | None, ticks: int) -> None:
        """Without a row it is deleted."""
        waves = [wave for wave in self.run.waves() if "labels" in wave["metadata"]]
        if not waves:
            return
        wave = waves[choice % len(waves)]
        self.touched.add(wave["metadata"]["uid"])
        if row is None:
            self.run.delete(wave["metadata"]["name"], "PartitionReassignment")
        else:
            first, *others = wave["spec"]["partitions"]
            entry = {"topic": first["topic"], "partition": first["partition"], "replicas": [*row]}
            self.run.edit_spec(wave, partitions=[entry, *others])
        self.go(ticks)

    @rule(choice=CHOICE, row=ROWS, throttled=st.booleans(), ticks=TICKS)
    def move_by_a_reassignment(self, choice: int, row: tuple[int, int], throttled: bool, ticks: int) -> None:
        if tps := sorted(self.run.kafka.replicas):
            tp = tps[choice % len(tps)]
            entry = {"topic": tp.topic, "partition": tp.partition, "replicas": [*row]}
            options = {"throttle": {"interBroker": "3Mi"}} if throttled else {}
            self.run.make("PartitionReassignment", f"mine-{self.run.number}", partitions=[entry], **options)
            self.go(ticks)

    @rule(choice=CHOICE, ticks=TICKS)
    def delete_a_reassignment(self, choice: int, ticks: int) -> None:
        mine = [obj for obj in self.run.waves() if obj["metadata"]["name"].startswith("mine")]
        if mine:
            self.run.delete(mine[choice % len(mine)]["metadata"]["name"], "PartitionReassignment")
            self.go(ticks)

    # --- The KafkaCluster ---

    @rule(execution=st.sampled_from(["Run", "Run", "Pause", "CancelOurs", "CancelAll"]), ticks=TICKS)
    def brake(self, execution: str, ticks: int) -> None:
        self.run.edit_spec(self.run.kube.objects["uid-main"], execution=execution)
        self.go(ticks)

    # --- Brokers and other clients ---

    @rule(name=TOPICS, row=ROWS, ticks=TICKS)
    def a_partition_is_made(self, name: str, row: tuple[int, int], ticks: int) -> None:
        """Of a topic that is there, or with it."""
        numbers = [tp.partition for tp in self.run.kafka.replicas if tp.topic == name]
        if len(numbers) < 3 and self.run.brokers.may_get(row):
            self.run.brokers.make(TopicPartition(name, max(numbers, default=-1) + 1), row)
            self.go(ticks)

    @rule(name=TOPICS, ticks=TICKS)
    def a_topic_is_deleted(self, name: str, ticks: int) -> None:
        self.run.brokers.delete_topic(name)
        self.go(ticks)

    @rule(number=NUMBERS, ticks=TICKS)
    def a_broker_goes_down(self, number: int, ticks: int) -> None:
        if number in self.run.kafka.brokers:
            self.run.down(number)
            self.go(ticks)

    @rule(number=NUMBERS, ticks=TICKS)
    def a_broker_comes_up(self, number: int, ticks: int) -> None:
        self.run.kafka.brokers[number] = Broker(number, f"r{number}")
        self.go(ticks)

    @rule(number=NUMBERS, ticks=TICKS)
    def a_broker_is_gone(self, number: int, ticks: int) -> None:
        self.run.kafka.brokers.pop(number, None)
        self.go(ticks)

    @rule(numbers=st.sets(NUMBERS, max_size=2), ticks=TICKS)
    def brokers_are_silent(self, numbers: set[int], ticks: int) -> None:
        self.run.brokers.silent = self.run.kafka.silent = numbers
        self.go(ticks)

    @rule(choice=CHOICE, row=ROWS, ticks=TICKS)
    def another_client_moves(self, choice: int, row: tuple[int, int], ticks: int) -> None:
        tps = sorted(self.run.kafka.replicas.keys() - self.run.kafka.reassignments.keys())
        if tps and self.run.brokers.may_get(row):
            self.run.kafka.move_as_another(tps[choice % len(tps)], row)
            self.go(ticks)

    @rule(choice=CHOICE, ticks=TICKS)
    def another_client_cancels(self, choice: int, ticks: int) -> None:
        if moving := sorted(self.run.kafka.reassignments):
            self.run.kafka.perform_as_another(moving[choice % len(moving)])
            self.go(ticks)

    @rule(number=NUMBERS, ticks=TICKS)
    def another_client_removes_a_cordon(self, number: int, ticks: int) -> None:
        self.run.brokers.client.store[broker(number)].pop(CORDONED_LOG_DIRS, None)
        self.go(ticks)

    @rule(copies=st.booleans(), ticks=TICKS)
    def moves_take_long(self, copies: bool, ticks: int) -> None:
        self.run.copies = copies
        self.go(ticks)

    @rule(ticks=st.integers(1, 4))
    def a_reading_is_old(self, ticks: int) -> None:
        """What has been read is taken over later, when all may be different."""
        self.run.brokers.held.clear()
        self.go(ticks)
        self.run.brokers.held.set()

    @rule(ticks=st.integers(1, 8), seconds=st.sampled_from([5, 60]))
    def no_broker_answers(self, ticks: int, seconds: float) -> None:
        self.run.brokers.reachable = False
        self.go(ticks, seconds)
        self.run.brokers.reachable = True

    # --- The process ---

    @rule(ticks=TICKS)
    def restart(self, ticks: int) -> None:
        self.run.restart()
        self.go(ticks)

    @rule(
        failure=st.sampled_from([f for f in Failure if f is not Failure.CHANGED]),
        after=st.integers(1, 12),
        ticks=st.integers(1, 4),
    )
    def a_write_fails(self, failure: Failure, after: int, ticks: int) -> None:
        self.run.kube.fail(failure, after)
        self.go(ticks)

    @rule(after=st.integers(1, 8), name=NAMES, edit=EDITS, ticks=st.integers(1, 4))
    def a_user_edits_in_between(self, after: int, name: str, edit: Object, ticks: int) -> None:
        def change() -> None:
            if it := self.run.obj("BrokerDecommission", name):
                self.run.edit_spec(it, **({} if "excludeTopics" in edit or "excludeTopics" in it["spec"] else edit))

        self.run.kube.fail(Failure.CHANGED, after, change)
        self.go(ticks)

    @rule(ticks=st.integers(1, 3))
    def watches_lag(self, ticks: int) -> None:
        self.run.lags = ticks
        self.go(ticks)

    # --- What holds ---

    @invariant()
    def nothing_goes_wrong(self) -> None:
        assert not self.wrong
        assert not self.run.errors, "\n".join(self.run.errors)

    @invariant()
    def begun_bytes_are_counted(self) -> None:
        for it in self.run.objects("BrokerDecommission"):
            uid = it["metadata"]["uid"]
            (_, approved), counted = self.counted.get(uid, ((None, 0), 0))
            # an approval of a plan whose bytes are not known covers nothing else
            assert not approved or counted >= sum(self.begun.get(uid, {}).values())

    @invariant()
    def no_two_records_hold_a_partition(self) -> None:
        assert not self.run.held_twice()

    @invariant()
    def what_is_said_to_be_empty_is_empty(self) -> None:
        now = self.run.clock.seconds
        for it in self.run.objects("BrokerDecommission"):
            true = {c["type"] for c in it["status"].get("conditions", ()) if c["status"] == "True"}
            if "Empty" in true and "Succeeded" not in true:
                for number in it["spec"]["brokers"]:
                    assert now - self.empty_at.get((it["metadata"]["uid"], number), -1e9) <= GREATEST_AGE, number

    # --- The end ---

    def teardown(self) -> None:
        try:
            if not self.wrong and not self.run.errors:
                self._come_to_rest()
        finally:
            self.run.close()
            self.patch.undo()

    def _come_to_rest(self) -> None:
        run = self.run
        self._mend()
        for obj in run.waves():  # what users have made of waves that were done is theirs
            if obj["metadata"]["name"].startswith("mine") or obj["metadata"]["uid"] in self.touched:
                run.delete(obj["metadata"]["name"], "PartitionReassignment")
        if self.lets_end:
            self._let_end()
        for it in run.objects("BrokerDecommission"):
            run.delete(it["metadata"]["name"])
        self._until(lambda: not run.objects("BrokerDecommission"))
        gone = {number for number in range(6) if number not in run.kafka.brokers}
        ours = {"KafkaCluster main", *(["ReassignmentRecord uid-main-0"] if gone else ())}
        self._until(lambda: run.held() <= ours and not run.kafka.reassignments)
        self.go(5)
        self.nothing_goes_wrong()
        run.assert_nothing_left(unregistered=gone)
        assert not any(wave["spec"].get("suspend") for wave in run.waves() if "completionTime" not in wave["status"])
        run.delete("main", "KafkaCluster")
        self._until(lambda: "uid-main" not in run.kube.objects)

    def _mend(self) -> None:
        run = self.run
        run.kube.after, run.lags, run.copies = -1, 0, True
        run.brokers.silent = run.kafka.silent = set()
        run.kafka.brokers = {number: Broker(number, f"r{number}") for number in range(6)}
        run.edit_spec(run.kube.objects["uid-main"], execution="Run")

    def _let_end(self) -> None:
        run = self.run
        those = run.objects("BrokerDecommission")
        # what two of them share neither of their plans moves while both are cordoned
        cordon = "WhereSupported" if len(those) == 1 else "Never"
        for it in those:
            run.edit_spec(it, suspend=False, approval="NotRequired", windows=[], cordon=cordon)
        self._until(lambda: self._all_are("Ready"), seconds=60)
        for it in run.objects("BrokerDecommission"):
            for number in it["spec"]["brokers"]:
                run.kafka.brokers.pop(number, None)
        self._until(lambda: self._all_are("Succeeded"))

    def _all_are(self, kind: str) -> bool:
        """Whether a condition of all decommissions is True, those aside that are being deleted."""
        those = self.run.objects("BrokerDecommission")
        return all(_is_true(it, kind) or it["metadata"].get("deletionTimestamp") for it in those)

    def _until(self, true: Any, seconds: float = 20) -> None:
        for _ in range(400):
            if true():
                return
            self.go(1, seconds)
            self.nothing_goes_wrong()
            self.what_is_said_to_be_empty_is_empty()
        those = self.run.objects("BrokerDecommission")
        ready = [(it["metadata"], [c for c in it["status"]["conditions"] if c["type"] == "Ready"]) for it in those]
        raise AssertionError([*ready, self.run.held(), self.run.kafka.reassignments])


def _is_true(it: Object, kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in it["status"].get("conditions", ()))


TestDecommissions = Decommissions.TestCase
TestDecommissions.settings = examples(20, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
