"""Record what the core does in 300 random histories, and compare two such files.

python -m tests.benchmarks.histories record FILE
python -m tests.benchmarks.histories compare BEFORE AFTER [--without-messages]

A history is driven by `random.Random(seed)` over the simulator of the tests: kills, lost and late answers, metadata
that lags, other clients, edits, deletions, log directories, throttles, cordons, the brake. After each tick a line has
the steps with their outcomes, and of each resource that has changed its record and its status. Nothing depends on the
order of a set or on the machine: two files of one commit are equal, and so are those of two commits that behave alike.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from enum import Enum
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import Execution, Limits, NamespaceLimits
from reassign.api.partition_reassignment import RecordState, Throttle
from reassign.core.cluster import brake_of
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.configs import Change, ConfigResource, put
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.record import write_record
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Outcome, Result, Step
from reassign.core.tick import Decision, kept, recorded
from reassign.errors import Reason
from tests.unit import sim
from tests.unit.configs import broker, copy, topic
from tests.unit.sim import START, Driver, ReplicationFactorGuard, SimKafka, refused, resource, without_record

SEEDS = 300
Line = dict[str, Any]


class KilledError(Exception):
    """The process ends within a tick."""


@dataclass
class Kafka(SimKafka):
    """Brokers whose answers to some steps are given; what was sent to them is noted."""

    answers: dict[tuple[str, TopicPartition], Outcome] = field(default_factory=dict)
    """By the kind of a step, and its partition."""
    taken: list[tuple[Step, Outcome]] = field(default_factory=list)

    def perform(self, step: Step) -> Outcome:
        outcome = self.answers.get((type(step).__name__, step.tp)) or self._checked(step) or super().perform(step)
        self.taken.append((step, outcome))
        return outcome

    def _checked(self, step: Step) -> Outcome | None:
        if isinstance(step, Alter) and (move := self.reassignments.get(step.tp)) and move.target != set(step.replicas):
            return refused(Reason.IN_FLIGHT_ELSEWHERE)
        if isinstance(step, AlterLogDirs) and any(path not in self.log_dirs[b] for b, path in step.dirs):
            return refused(Reason.UNKNOWN_LOG_DIR)
        return None

    def place(self) -> None:
        for tp in self.replicas:
            self._place(tp)


class Resources(dict[str, Resource]):
    """The resources, of which the API server lets some not be written."""

    refused: set[str]

    def __setitem__(self, uid: str, resource: Resource) -> None:
        if uid not in self.refused:
            super().__setitem__(uid, resource)

    def __delitem__(self, uid: str) -> None:
        if uid not in self.refused:
            super().__delitem__(uid)


@dataclass
class World(Driver):
    """A driver that can be killed after any of a tick's steps, whose records, copies and configurations can fail.

    The steps before a kill are the first in the order of their text, so that it does not matter in which order they
    were decided.
    """

    dies: int | None = None
    patient: bool = False
    """Whether it is killed only where something begins."""
    not_kept: Problem | None = None
    edited: bool = False
    """Whether the KafkaCluster is changed while a tick goes on."""
    failing: dict[ConfigResource, Outcome] = field(default_factory=dict)
    """What becomes of changes of these configurations. One without an answer is made."""
    unreadable: set[ConfigResource] = field(default_factory=set)
    hides_down: bool = False
    """Whether brokers that are down do not tell their configurations."""
    changed: list[tuple[str, str]] = field(default_factory=list)
    _begins: bool = False

    def reconcile(self, **options: Any) -> None:
        """One tick, with all that may happen within."""
        changed = set(self.resources) if self.edited else set()
        with patch.object(sim, "recorded", self._recorded), patch.object(sim, "kept", self._kept):
            try:
                self.tick(changed=changed, **options)
            except KilledError:
                self.restart()

    def _recorded(self, decision: Decision, resources: Mapping[str, Resource]) -> Decision:
        self._begins = any(verdict.starts for verdict in decision.verdicts)
        assert isinstance(resources, Resources)
        unwritten = {v.resource.uid for v in decision.verdicts if v.must_record} & resources.refused
        problem = Problem(Reason.API_SERVER_UNAVAILABLE, "the API server does not answer")
        written = {uid: r for uid, r in resources.items() if uid not in unwritten}
        return recorded(decision, written, dict.fromkeys(sorted(unwritten), problem))

    def _kept(self, decision: Decision, _: Problem | None) -> Decision:
        decision = kept(decision, self.not_kept)
        if self.dies is None or (self.patient and not self._begins):
            return decision
        for step in sorted(decision.steps, key=repr)[: self.dies]:
            self.kafka.perform(step)
        raise KilledError

    def read_configs(self) -> ConfigRead:
        problem = Problem(Reason.REQUEST_FAILED, "the broker does not answer")
        deleted = {r: None for r in sorted(self.configs) if r.type == "topic" and not self._exists(r.name)}
        down = {r for r in self.configs if self.hides_down and self._is_of_broker_down(r)}
        found = {**copy(self.configs), **deleted, **dict.fromkeys(sorted(self.unreadable), problem)}
        return ConfigRead(self.now, {r: read for r, read in found.items() if r not in down})

    def _exists(self, name: str) -> bool:
        return any(tp.topic == name for tp in self.kafka.replicas)

    def change_configs(self, decision: Decision) -> dict[Change, Outcome]:
        met = {}
        for change in decision.throttle.changes:
            outcome = met[change] = self.failing.get(change.key.resource, APPLIED)
            if outcome.result in (Result.APPLIED, Result.UNKNOWN):
                put(self.configs[change.key.resource], change)
            self.changed.append((str(change), outcome.result))
        return met


class History:
    """One random history, tick by tick."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = Random(seed)
        self.directories, self.throttled, self.cordoned = seed % 3 == 1, seed % 4 == 2, seed % 5 == 1
        self.brokers = list(range(rng.randint(5, 7)))
        self.topics = {name: rng.randint(1, 3) for name in ("orders", "team-logs")}
        factor = rng.choice((2, 3, 3))
        replicas = {tp: tuple(rng.sample(self.brokers, factor)) for tp in self._tps()}
        self.original = dict(replicas)
        self.kafka = Kafka(
            replicas,
            brokers={b: Broker(b, f"r{b % 3}") for b in self.brokers},
            min_insync=rng.choice((1, 1, 2)),
            sizes=None if rng.random() < 0.5 else {tp: self._sizes(r) for tp, r in replicas.items()},
            guard=rng.choice((ReplicationFactorGuard.NATIVE,) * 3 + (ReplicationFactorGuard.EMULATED,)),
            log_dirs=self._log_dirs() if self.directories else {},
        )
        if self.directories:
            self.kafka.place()
        resources = Resources()
        resources.refused = set()
        self.driver = World(self.kafka, resources, limits=self._limits(), hides_down=self.cordoned)
        if rng.random() < 0.7:
            allowed = {"kafka": ("*",), "team": ("orders", "team-*")}
            self.driver.permission = Permission(allowed, owner="kafka")
        if self.throttled:
            rates = {"inter_broker": 5_000_000, "log_dir": 2_000_000 if self.directories else None}
            self.driver.throttle = replace(self.driver.throttle, default=Throttle(**rates))
        self.driver.configs = {topic(name): {} for name in self.topics} | {broker(b): {} for b in self.brokers}
        self.lines: list[Line] = []
        self._seen: dict[str, tuple[object, object]] = {}
        self.made = 0
        for _ in range(rng.randint(1, 3)):
            self._make()

    def lived(self) -> list[Line]:
        """Let 40 to 80 things happen, and return what became of it, a line for each tick."""
        weights = ACTIONS | (CORDONS if self.cordoned else {})
        actions = [action for action, weight in weights.items() for _ in range(weight)]
        for _ in range(self.rng.randint(40, 80)):
            action = self.rng.choice(actions)
            for uid in self._uids():
                self._put(uid, has_finalizer=True)
            try:
                action(self)
                self._tick(action.__name__)
            except Exception as error:
                self.lines.append({"did": action.__name__, "raised": repr(error)})
                break
        return self.lines

    # what the lines say

    def _tick(self, did: str, **options: Any) -> None:
        self.kafka.taken.clear()
        self.driver.changed.clear()
        self.driver.reconcile(**options)
        line: Line = {"did": did, "at": self.driver.now}
        if taken := [[_plain(step), _plain(outcome)] for step, outcome in self.kafka.taken]:
            line["steps"] = sorted(taken, key=json.dumps)
        if self.driver.changed:
            line["configs"] = sorted(self.driver.changed)
        seen = {uid: (r.record, r.status) for uid, r in self.driver.resources.items()}
        seen["throttles"] = (self.driver.throttle.record, None)
        changed = {uid: pair for uid, pair in sorted(seen.items()) if self._seen.get(uid) != pair}
        line["now"] = {uid: _shown(*pair) for uid, pair in changed.items()}
        line["now"] |= dict.fromkeys(sorted(self._seen.keys() - seen.keys()))
        self._seen = seen
        self.lines.append(line)

    # what a history is made of

    def _tps(self) -> list[TopicPartition]:
        return [TopicPartition(name, n) for name, count in sorted(self.topics.items()) for n in range(count)]

    def _uids(self) -> list[str]:
        return sorted(self.driver.resources)

    def _moving(self) -> list[TopicPartition]:
        return sorted(self.kafka.reassignments)

    def _one(self, among: Sequence[Any]) -> Any:
        """One of them, or None where there is none."""
        return self.rng.choice(among) if among else None

    def _put(self, uid: str, **update: Any) -> None:
        dict.__setitem__(self.driver.resources, uid, replace(self.driver.resources[uid], **update))

    def _sizes(self, replicas: Iterable[int]) -> dict[int, int]:
        return dict.fromkeys(replicas, self.rng.choice((1000, 5_000_000, 300_000_000)))

    def _log_dirs(self) -> dict[int, dict[str, LogDir]]:
        return {b: {path: LogDir(logs={}, futures={}) for path in ("/a", "/b", "/c")} for b in self.brokers}

    def _limits(self) -> Limits:
        shared = NamespaceLimits(partitions_in_flight=self._one((1, 2))) if self.rng.random() < 0.3 else None
        return Limits(
            partitions_in_flight=self.rng.randint(1, 5),
            moves_per_broker=self.rng.randint(1, 4),
            small_move_bytes=self._one(("0", "1Mi")),
            per_namespace=shared,
        )

    def _make(self) -> None:
        uid = "abcdefgh"[self.made]
        self.made += 1
        mode = "DryRun" if self.rng.random() < 0.1 else "Execute"
        made = resource({}, uid, partitions=self._entries(), mode=mode, **self._options())
        self.driver.resources[uid] = replace(
            made,
            namespace=self._one(("kafka", "team")),
            created=START + timedelta(seconds=self.driver.now - self._one((0, 0, 500))),
            status=made.status.model_copy(update={"observed_generation": self._one((None, 1))}),
            has_finalizer=self.rng.random() < 0.7,
        )

    def _entries(self) -> list[dict[str, Any]]:
        tps = self._tps()
        return [self._entry(tp) for tp in sorted(self.rng.sample(tps, self.rng.randint(1, len(tps))))]

    def _entry(self, tp: TopicPartition) -> dict[str, Any]:
        there = self.kafka.replicas.get(tp, self.original[tp])
        size, kind = len(self.original[tp]), self.rng.random()
        replicas = tuple(self.rng.sample(self.brokers, size))
        if kind < 0.15:
            replicas = there[:size]
        elif kind < 0.3:
            replicas = tuple(self.rng.sample(there, len(there)))
        elif kind < 0.45 and (move := self.kafka.reassignments.get(tp)):
            replicas = move.final
        elif kind < 0.55:
            replicas = replicas[:-1] or replicas
        elif kind < 0.6:
            replicas = self.original[tp]
        entry: dict[str, Any] = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        if self.directories and self.rng.random() < 0.7:
            entry["logDirs"] = [self._one(("/a", "/b", "any", "any")) for _ in replicas]
        if self.rng.random() < 0.05:
            entry["expectedReplicas"] = list(self.original[tp])
        return entry

    def _options(self) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {"whenInFlight": self._one(("Wait", "Fail", "Supersede", "Supersede"))}
        maybe = {
            "admission": (0.1, "WhenIdle"),
            "deadlineSeconds": (0.15, self._one((5, 15, 100))),
            "suspend": (0.05, True),
            "replicationFactorChange": (0.4, "Allow"),
            "preferredLeader": (0.3, "Keep"),
            "deletionPolicy": (0.15, "Orphan"),
            "deletionDeadlineSeconds": (0.2, self._one((2, 8, 30))),
            "stallTimeoutSeconds": (0.4, self._one((1, 5, 20))),
            "concurrency": (0.15, {"partitions": self._one((1, 2))}),
            "throttle": (0.4 if self.throttled else 0, {"interBroker": self._one((1_000_000, "9Mi"))}),
        }
        return found | {name: value for name, (chance, value) in maybe.items() if rng.random() < chance}

    def _fall_behind(self, tp: TopicPartition, number: int) -> None:
        """Take a replica out of sync; the last one stays, without a leader."""
        kafka, left = self.kafka, self.kafka.isr[tp] - {number}
        kafka.isr[tp] = left or kafka.isr[tp]
        if kafka.leader[tp] == number:
            kafka.leader[tp] = min(left, default=None)

    def _catch_up(self) -> None:
        kafka = self.kafka
        up = {b.id for b in kafka.brokers.values() if not b.fenced}
        for tp, replicas in kafka.replicas.items():
            move = kafka.reassignments.get(tp)
            kafka.isr[tp] = (frozenset(replicas) - frozenset(move.adding if move else ())) & up or kafka.isr[tp]
            if kafka.leader[tp] not in kafka.isr[tp]:
                kafka.leader[tp] = min(kafka.isr[tp] & up, default=None)

    # what may happen; a tick follows each

    def time_passes(self) -> None:
        for _ in range(self.rng.randint(0, 6)):
            self._tick("time_passes")

    def much_time_passes(self) -> None:
        self.driver.now += self._one((4, 10, 80, 700))

    def moves_end(self) -> None:
        for tp in self._moving():
            move = self.kafka.reassignments[tp]
            up = all(b in self.kafka.brokers and not self.kafka.brokers[b].fenced for b in move.target)
            if up and not move.hangs and self.rng.random() < 0.6:
                self.kafka.copy(tp)
                if self.kafka.sizes is not None:
                    self.kafka.sizes[tp] = self._sizes(self.kafka.replicas[tp])
                if self.rng.random() < 0.3:
                    self._fall_behind(tp, self.kafka.replicas[tp][0])

    def moves_copy(self) -> None:
        if self.kafka.sizes is not None and (tp := self._one(self._moving())):
            for number in self.kafka.reassignments[tp].adding:
                self.kafka.sizes.setdefault(tp, {})[number] = self.rng.randint(0, 1000)

    def copies_between_directories_end(self) -> None:
        if tp := self._one(sorted(self.kafka.replicas)):
            self.kafka.copy_between_dirs(tp)

    def it_is_killed(self) -> None:
        self.driver.dies = self.rng.randint(0, 3)
        self._tick("it_is_killed")
        self.driver.dies = None

    def it_restarts(self) -> None:
        self.driver.restart()

    def it_is_killed_as_a_move_begins(self) -> None:
        self.an_entry_is_edited()
        self.driver.dies, self.driver.patient = self.rng.randint(0, 1), True
        for _ in range(6):
            self._tick("it_is_killed_as_a_move_begins")
        self.driver.dies, self.driver.patient = None, False
        self._one(
            (
                self.a_resource_is_deleted,
                self.an_entry_is_edited,
                self.an_entry_is_removed,
                self.another_client_moves,
                self.a_topic_is_deleted,
                self.moves_end,
            )
        )()
        if self.rng.random() < 0.5:
            self.much_time_passes()

    def answers_are_lost(self) -> None:
        self._tick("answers_are_lost", lose_answers=True)

    def answers_are_late(self) -> None:
        self._tick("answers_are_late", lands_after=self._one((1, 3, 6, 12, 50)))
        if self.rng.random() < 0.5:
            self.driver.restart()

    def metadata_lags(self) -> None:
        self.driver.lag = self.rng.randint(0, 2)

    def a_broker_is_silent(self) -> None:
        self.driver.silent = set(self.rng.sample(self.brokers, self.rng.randint(0, 2)))

    def directories_are_not_told(self) -> None:
        self.kafka.silent = set(self.rng.sample(self.brokers, self.rng.randint(0, len(self.brokers))))

    def another_client_moves(self) -> None:
        tp = self._one(sorted(self.kafka.replicas.keys() - self.kafka.reassignments.keys()))
        if tp is None:
            return
        wanted = [r.wanted[tp] for _, r in sorted(self.driver.resources.items()) if tp in r.wanted]
        replicas = tuple(self.rng.sample(sorted(self.kafka.brokers), 2))
        if wanted and self.rng.random() < 0.4:
            replicas = self._one(wanted)
        if set(replicas) <= self.kafka.brokers.keys():
            self.kafka.move_as_another(tp, replicas)

    def another_client_moves_what_is_held(self) -> None:
        """Cancel a move of ours, and begin another one."""
        if tp := self._one(self._moving()):
            self.kafka.perform_as_another(tp)
            self.kafka.move_as_another(tp, tuple(self.rng.sample(sorted(self.kafka.brokers), 2)))

    def another_client_cancels(self) -> None:
        if tp := self._one(self._moving()):
            self.kafka.perform_as_another(tp)

    def another_client_copies(self) -> None:
        tp, number = self._one(sorted(self.kafka.replicas)), self._one(self.brokers)
        if self.directories and tp and self.kafka.directory(tp, number) not in (None, "/c"):
            for directory in self.kafka.log_dirs[number].values():
                directory.futures.pop(tp, None)  # type: ignore[attr-defined]
            self.kafka.log_dirs[number]["/c"].futures[tp] = 0  # type: ignore[index]

    def another_client_changes_throttles(self) -> None:
        found = self._one(sorted(self.driver.configs))
        if self.throttled and (config := self._one(sorted(self.driver.configs[found]))):
            self.driver.configs[found][config] = "1234"

    def brokers_are_to_be_cordoned(self) -> None:
        self.driver.cordons = frozenset(self.rng.sample(self.brokers, self.rng.randint(0, 2)))
        for _ in range(self.rng.randint(0, 5)):
            self._tick("brokers_are_to_be_cordoned")

    def another_client_cordons(self) -> None:
        configs = self.driver.configs[broker(self._one(self.brokers))]
        configs.pop(CORDONED_LOG_DIRS, None)
        if (text := self._one((None, "", "/a", "*"))) is not None:
            configs[CORDONED_LOG_DIRS] = text

    def cordons_have_no_effect(self) -> None:
        self.kafka.without_effect = set(self.rng.sample(self.brokers, self.rng.randint(0, 2)))

    def a_resource_is_made(self) -> None:
        if self.made < 8:
            self._make()

    def a_resource_is_edited(self) -> None:
        if uid := self._one(self._uids()):
            self._edit(uid, self._entries(), self._options())

    def an_entry_is_edited(self) -> None:
        self._change_one(lambda entry: self._entry(TopicPartition(entry["topic"], entry["partition"])))

    def an_entry_is_removed(self) -> None:
        self._change_one(lambda _: None)

    def directories_are_edited(self) -> None:
        def change(entry: dict[str, Any]) -> dict[str, Any]:
            return entry | {"logDirs": [self._one(("/a", "/b", "any")) for _ in entry["replicas"]]}

        if self.directories:
            self._change_one(change)

    def _change_one(self, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        uid = self._one(self._uids())
        if uid is None:
            return
        entries = self.driver.resources[uid].spec.wire()["partitions"]
        number = self.rng.randrange(len(entries))
        entries[number : number + 1] = [entry for entry in [change(entries[number])] if entry]
        if entries:
            self._edit(uid, entries, {})

    def options_are_edited(self) -> None:
        if uid := self._one(self._uids()):
            self._edit(uid, self.driver.resources[uid].spec.wire()["partitions"], self._options())

    def _edit(self, uid: str, entries: list[dict[str, Any]], options: dict[str, Any]) -> None:
        before = self.driver.resources[uid]
        kept = before.spec.wire() if not options else {"mode": before.spec.mode}
        wire = {**kept, **options, "partitions": entries}
        wire.pop("clusterRef", None)
        self.driver.resources.refused.discard(uid)  # type: ignore[attr-defined]
        self.driver.edit(uid, {}, **wire)

    def a_resource_is_deleted(self) -> None:
        there = [uid for uid in self._uids() if not self.driver.resources[uid].deleted]
        if uid := self._one(there):
            self._put(uid, deleted=self.driver.time)

    def a_dry_run_is_executed(self) -> None:
        dry = [uid for uid in self._uids() if self.driver.resources[uid].dry_run]
        if uid := self._one(dry):
            spec = self.driver.resources[uid].spec.wire()
            self._edit(uid, spec["partitions"], {**spec, "mode": "Execute"})

    def a_record_is_lost(self) -> None:
        if uid := self._one(self._uids()):
            before = self.driver.resources[uid]
            lost = without_record(before)
            if self.rng.random() < 0.3:
                lost = replace(lost, record=dict(sorted(before.record.items())[1:]))
            dict.__setitem__(self.driver.resources, uid, lost)

    def records_are_refused(self) -> None:
        self.an_entry_is_edited()
        self.driver.resources.refused = set(  # type: ignore[attr-defined]
            self.rng.sample(self._uids(), min(len(self._uids()), self.rng.randint(0, 2)))
        )
        for _ in range(self.rng.randint(0, 3)):
            self._tick("records_are_refused")
        if self.rng.random() < 0.6:
            self.driver.resources.refused = set()  # type: ignore[attr-defined]

    def the_cluster_is_edited_meanwhile(self) -> None:
        self.an_entry_is_edited()
        self.driver.edited = True
        for _ in range(self.rng.randint(1, 6)):
            self._tick("the_cluster_is_edited_meanwhile")
        self.driver.edited = False

    def the_brake_is_set(self) -> None:
        self._pull(self._one((Execution.PAUSE, Execution.CANCEL_OURS, Execution.CANCEL_ALL, Execution.CANCEL_ALL)))
        if self.rng.random() < 0.5:
            self.driver.not_kept = Problem(Reason.API_SERVER_UNAVAILABLE, "the copy cannot be written")
        for _ in range(self.rng.randint(0, 5)):
            self._tick("the_brake_is_set")
        if self.rng.random() < 0.7:
            self._pull(Execution.RUN)
        self.driver.not_kept = None

    def the_brake_is_released(self) -> None:
        self._pull(Execution.RUN)

    def _pull(self, execution: Execution) -> None:
        self.driver.hold, self.driver.execution = brake_of(execution), execution

    def limits_are_edited(self) -> None:
        self.driver.limits = self._limits()

    def a_broker_is_fenced(self) -> None:
        if len(self.kafka.brokers) > 3 and (number := self._one(sorted(self.kafka.brokers))) is not None:
            self.kafka.brokers[number] = replace(self.kafka.brokers[number], fenced=True)
            for tp in sorted(self.kafka.replicas):
                self._fall_behind(tp, number)

    def a_broker_goes_away(self) -> None:
        if len(self.kafka.brokers) > 4:
            number = self._one(sorted(self.kafka.brokers))
            del self.kafka.brokers[number]
            for tp in sorted(self.kafka.replicas):
                self._fall_behind(tp, number)

    def all_brokers_are_back(self) -> None:
        self.kafka.brokers = {b: Broker(b, f"r{b % 3}") for b in self.brokers}
        self._catch_up()

    def a_replica_falls_behind(self) -> None:
        if tp := self._one(sorted(self.kafka.replicas)):
            self._fall_behind(tp, self._one(self.kafka.replicas[tp]))

    def another_broker_leads(self) -> None:
        if tp := self._one(sorted(self.kafka.replicas)):
            self.kafka.leader[tp] = self._one(sorted(self.kafka.isr[tp]))

    def min_insync_replicas_change(self) -> None:
        self.kafka.min_insync = self.rng.randint(1, 3)

    def a_topic_is_deleted(self) -> None:
        kafka, name = self.kafka, self._one(sorted(self.topics))
        for tp in [tp for tp in kafka.replicas if tp.topic == name]:
            for by_partition in (kafka.replicas, kafka.isr, kafka.leader, kafka.reassignments):
                by_partition.pop(tp, None)  # type: ignore[attr-defined]
            for directories in kafka.log_dirs.values():
                for directory in directories.values():
                    directory.logs.pop(tp, None)  # type: ignore[attr-defined]
                    directory.futures.pop(tp, None)  # type: ignore[attr-defined]
        for _ in range(self._one((0, 1, 5))):
            self._tick("a_topic_is_deleted")
        if self.rng.random() < 0.7:
            self.topics_are_made_again()

    def topics_are_made_again(self) -> None:
        kafka = self.kafka
        for name in sorted({tp.topic for tp in self._tps() if tp not in kafka.replicas}):
            kafka.topic_ids[name] += "'"
            for tp in (tp for tp in self._tps() if tp.topic == name):
                kafka.replicas[tp] = tuple(self.rng.sample(sorted(kafka.brokers), len(self.original[tp])))
                kafka.isr[tp], kafka.leader[tp] = frozenset(kafka.replicas[tp]), kafka.replicas[tp][0]
        if self.directories:
            kafka.place()

    def cancels_are_unsafe(self) -> None:
        tps = self._tps()
        self.kafka.unsafe = set(self.rng.sample(tps, self.rng.randint(0, len(tps))))

    def a_topic_is_denied(self) -> None:
        tps = self._tps()
        self.kafka.denied = (
            set(self.rng.sample(tps, self.rng.randint(0, len(tps)))) if self.rng.random() < 0.5 else set()
        )

    def brokers_refuse(self) -> None:
        kinds, reasons = ("Alter", "Cancel", "Elect", "AlterLogDirs"), list(REFUSALS)
        for _ in range(self.rng.randint(1, 4)):
            self.kafka.answers[self._one(kinds), self._one(self._tps())] = self._one(reasons)
        for _ in range(self.rng.randint(0, 4)):
            self._tick("brokers_refuse")
        if self.rng.random() < 0.7:
            self.brokers_refuse_no_more()

    def brokers_refuse_no_more(self) -> None:
        self.kafka.answers = {}

    def configurations_cannot_be_changed(self) -> None:
        found = sorted(self.driver.configs)
        outcomes = (refused(Reason.NOT_AUTHORIZED), Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "lost"))
        self.driver.failing = {one: self._one(outcomes) for one in self.rng.sample(found, self.rng.randint(0, 4))}

    def configurations_cannot_be_read(self) -> None:
        found = sorted(self.driver.configs)
        self.driver.unreadable = set(self.rng.sample(found, self.rng.randint(0, 2)))


REFUSALS = (
    refused(Reason.INVALID_REPLICA_ASSIGNMENT),
    refused(Reason.IN_FLIGHT_ELSEWHERE),
    refused(Reason.TOPIC_RECREATED),
    refused(Reason.NOT_AUTHORIZED),
    refused(Reason.NO_REASSIGNMENT_IN_PROGRESS),
    Outcome(Result.NOT_SENT, Reason.REQUEST_FAILED, "no connection"),
    Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "lost"),
)
ACTIONS: dict[Callable[[History], None], int] = {
    History.time_passes: 20,
    History.much_time_passes: 3,
    History.moves_end: 10,
    History.moves_copy: 2,
    History.copies_between_directories_end: 4,
    History.it_is_killed: 4,
    History.it_is_killed_as_a_move_begins: 3,
    History.it_restarts: 2,
    History.answers_are_lost: 4,
    History.answers_are_late: 3,
    History.metadata_lags: 3,
    History.a_broker_is_silent: 1,
    History.directories_are_not_told: 1,
    History.another_client_moves: 5,
    History.another_client_moves_what_is_held: 2,
    History.another_client_cancels: 3,
    History.another_client_copies: 2,
    History.another_client_changes_throttles: 1,
    History.a_resource_is_made: 4,
    History.a_resource_is_edited: 4,
    History.an_entry_is_edited: 6,
    History.an_entry_is_removed: 2,
    History.directories_are_edited: 3,
    History.options_are_edited: 2,
    History.a_resource_is_deleted: 4,
    History.a_dry_run_is_executed: 1,
    History.a_record_is_lost: 2,
    History.records_are_refused: 3,
    History.the_cluster_is_edited_meanwhile: 3,
    History.the_brake_is_set: 3,
    History.the_brake_is_released: 2,
    History.limits_are_edited: 1,
    History.a_broker_is_fenced: 2,
    History.a_broker_goes_away: 1,
    History.all_brokers_are_back: 5,
    History.a_replica_falls_behind: 3,
    History.another_broker_leads: 3,
    History.min_insync_replicas_change: 1,
    History.a_topic_is_deleted: 1,
    History.topics_are_made_again: 1,
    History.cancels_are_unsafe: 1,
    History.a_topic_is_denied: 1,
    History.brokers_refuse: 3,
    History.brokers_refuse_no_more: 2,
    History.configurations_cannot_be_changed: 1,
    History.configurations_cannot_be_read: 1,
}
CORDONS: dict[Callable[[History], None], int] = {
    History.brokers_are_to_be_cordoned: 10,
    History.another_client_cordons: 5,
    History.cordons_have_no_effect: 1,
}
"""Beside these, in some histories."""


def _plain(value: Any) -> Any:
    """A value as JSON has it: the sets sorted, of a step its kind too."""
    if is_dataclass(value):
        found = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {"": type(value).__name__, **found}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _shown(record: Any, status: Any) -> Line:
    if status is None:  # the throttles
        return {"record": record and record.wire()}
    entries = {}
    for one in (part.wire() for part in write_record(record)):
        for entry in one.pop("partitions"):
            entries[f"{one['topic']}-{entry['partition']}"] = {**one, **entry}
    return {"record": entries, "status": status.wire()}


def _lived(seed: int) -> str:
    lines = [json.dumps({"seed": seed, **line}, sort_keys=True, default=str) for line in History(seed).lived()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return "\n".join([*lines, json.dumps({"seed": seed, "digest": digest})]) + "\n"


def record(file: Path) -> None:
    """Record all histories; the first line has the states that a record knows."""
    whole, raised, ticks = hashlib.sha256(), [], 0
    with gzip.open(file, "wt", compresslevel=3) as out, ProcessPoolExecutor() as pool:
        out.write(json.dumps({"states": [state.value for state in RecordState]}) + "\n")
        for seed, text in enumerate(pool.map(_lived, range(SEEDS), chunksize=5)):
            out.write(text)
            whole.update(text.encode())
            ticks += text.count("\n") - 1
            raised += [seed] if '"raised"' in text else []
    print(f"{SEEDS} histories, {ticks} ticks, {len(raised)} ended by an exception {raised}: {whole.hexdigest()[:16]}")


def _read(file: Path) -> Iterator[tuple[int, list[Line]]]:
    """The lines of each seed; the states as they are named today."""
    with gzip.open(file, "rt") as lines:
        old = "Settling" not in json.loads(next(lines))["states"]
        found: list[Line] = []
        for line in map(json.loads, lines):
            if "digest" in line:
                yield line["seed"], found
                found = []
                continue
            records = [shown["record"] for shown in line.get("now", {}).values() if shown and "status" in shown]
            for entry in (entry for record in records for entry in record.values()):
                if old:
                    entry["state"] = _named(entry)
                if entry["state"] == "Superseding":
                    entry.pop("reason", None)
            found.append(line)


def _named(entry: Line) -> str:
    """The state of an entry from when Superseding and Settling had no name."""
    if entry["state"] == "Cancelling" and entry.get("reason") == "Superseding":
        return "Superseding"
    moved = entry["originalReplicas"] != entry["targetReplicas"] or entry.get("logDirs") or entry.get("reason")
    return "Settling" if entry["state"] == "InFlight" and not moved else str(entry["state"])


def compare(before: Path, after: Path, *, messages: bool = True) -> int:
    """Print where each history first differs; return in how many it does."""
    differing = 0
    for pair in zip_longest(_read(before), _read(after)):
        (seed, old), (_, new) = (one or (-1, []) for one in pair)
        known: tuple[Line, Line] = ({}, {})
        for number, lines in enumerate(zip_longest(old, new, fillvalue={})):
            for all_known, line in zip(known, lines, strict=True):
                all_known.update(line.pop("now", {}))
                line["now"] = all_known
            a, b = (dict(_flat(line, messages=messages)) for line in lines)
            if a != b:
                differing += 1
                print(f"seed {seed}, tick {number} ({b.get('did', a.get('did'))}):")
                paths = [path for path in {**a, **b} if a.get(path) != b.get(path)]
                for path in paths[:12]:
                    print(f"  {path}\n    before: {a.get(path)}\n    after:  {b.get(path)}")
                print(f"  and {len(paths) - 12} more" if len(paths) > 12 else "")
                break
    print(f"{differing} histories differ")
    return differing


def _flat(value: Any, path: str = "", *, messages: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in sorted(value.items()):
            if messages or key not in ("message", "summary"):
                yield from _flat(item, f"{path}.{key}".lstrip("."), messages=messages)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{path}[{number}]", messages=messages)
    else:
        yield path, value


if __name__ == "__main__":
    commands = {"record": record, "compare": partial(compare, messages="--without-messages" not in sys.argv)}
    files = [Path(arg) for arg in sys.argv[2:] if not arg.startswith("--")]
    sys.exit(bool(commands[sys.argv[1]](*files)))
