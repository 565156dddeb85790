"""The stage of a decision for throttles and cordons: what to record, change and read next, and what waits for that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.cordons import (
    CordonMemory,
    CordonNews,
    CordonReason,
    CordonState,
    ReadCordons,
    cordon_key,
    judge_cordons,
    news,
)
from reassign.core.configs.desired import (
    ThrottledMove,
    WantedConfigs,
    desired,
    left_moves,
    log_dir_moves_of,
    rate_keys,
    wanted_configs,
)
from reassign.core.configs.diff import Diff, fit, from_record, to_record
from reassign.core.configs.gate import ThrottleState, Unthrottled, hold_back
from reassign.core.configs.unrecorded import unrecorded
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Configs, Observed
from reassign.core.model.forwarding import Write
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.row import BLOCKED, SayingKind
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition, live_brokers
from reassign.core.model.steps import Outcome, Result
from reassign.core.model.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ConfigRead:
    """What a read met at each resource: its configurations, None for a topic that is gone, or why it failed."""

    began: float = 0.0
    results: Mapping[ConfigResource, Configs | Problem | None] = field(default_factory=dict)

    @property
    def observed(self) -> Observed:
        return {resource: r for resource, r in self.results.items() if not isinstance(r, Problem)}

    @property
    def problems(self) -> dict[ConfigResource, Problem]:
        return {resource: r for resource, r in self.results.items() if isinstance(r, Problem)}


@dataclass(frozen=True, slots=True)
class ConfigMemory:
    """What this process remembers of the throttles and cordons of a cluster."""

    recent: RecentChanges
    problems: Mapping[ConfigResource, Problem] = field(default_factory=dict)
    """Why the last changes were refused."""
    compared: bool = False
    """Whether what is set has been compared with the record once."""
    cordons: CordonMemory = field(default_factory=CordonMemory)


@dataclass(frozen=True, slots=True)
class ConfigDecision:
    """What to record of the throttles and cordons of a cluster, what to change, and what to read next."""

    record: RecordedConfigs | None = None
    """The record from now on: it is written before the changes are made."""
    before: RecordedConfigs | None = None
    """The record that it was decided by."""
    changes: tuple[Change, ...] = ()
    """In the order in which they are to be made."""
    reads: frozenset[ConfigResource] = frozenset()
    """Whose configurations to read at the next observation."""
    awaited: bool = False
    """Whether a move waits for the next read."""
    untouched: bool = False
    """Whether record and throttles are to be left as they are."""
    warnings: tuple[Problem, ...] = ()
    """Warnings for events."""
    drift: Problem | None = None
    """What another client has changed."""
    drifted: frozenset[ConfigKey] = frozenset()
    """Configurations that another client has changed and that are set again now."""
    moves: Sequence[ThrottledMove] = ()
    """All moves that have to be throttled."""
    kept: Sequence[ThrottledMove] = ()
    """The moves that the record has room for."""
    aim: WantedConfigs = field(default_factory=WantedConfigs)
    """What the kept moves need."""
    live: frozenset[int] = frozenset()
    """The brokers whose configurations can be changed now."""
    cordons: Mapping[int, CordonState] = field(default_factory=dict)
    """The state of each cordon that is wanted, by broker. None is known where the configurations are `untouched`."""
    news: tuple[CordonNews, ...] = ()
    """What has become of cordons, for events."""

    @property
    def cordons_awaited(self) -> bool:
        """Whether a cordon is still to be in force."""
        return any(cordon.reason is CordonReason.NOT_YET for cordon in self.cordons.values())


class Extent(Enum):
    """What may be done about the throttles of a cluster."""

    SET = "set and restore"
    RESTORE = "only restore"
    NOTHING = "nothing"


def decide_configs(
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
    read: ConfigRead,
    memory: ConfigMemory,
    recent: Recent,
    rules: ConfigRules,
) -> tuple[list[Verdict], ConfigDecision, ConfigMemory]:
    """Decide how throttles and cordons become what is wanted, and hold back the moves that have to wait for it."""
    memory = replace(memory, recent=_recent_changes(memory.recent, read, recent, rules.record))
    extent = _extent(snapshot, recent, rules)
    verdicts = _held_by_others(verdicts, snapshot, recent, rules)
    if extent is Extent.NOTHING:
        return list(verdicts), ConfigDecision(rules.record, untouched=True), memory
    live, wanted = live_brokers(snapshot.brokers), rules.cordons if extent is Extent.SET else frozenset[int]()
    met = {**memory.problems, **read.problems}
    memory = replace(memory, cordons=memory.cordons.observe(wanted, rules.record, snapshot, met, recent.now))
    moves = desired(verdicts if extent is Extent.SET else (), snapshot, rules, recent)
    reads = _to_read(moves, live)
    unread = [move for move, resources in reads.items() if not resources <= read.results.keys()]
    if unread:
        verdicts = _held_until_read(verdicts, unread, snapshot, recent)
        moves = desired(verdicts if extent is Extent.SET else (), snapshot, rules, recent)
    recorded = frozenset(key.resource for key in from_record(rules.record) if _can_be_set(key.resource, live))
    to_cordon = _resources(map(cordon_key, wanted), live)
    cordons, after = judge_cordons(
        memory.cordons, rules.record, snapshot, _cordon_read(read, memory, wanted, rules), recent
    )
    decision = _fitting(moves, cordons, read, memory, recent, rules, live)
    decision = replace(
        decision,
        reads=recorded.union(to_cordon, *reads.values()),
        awaited=bool(unread or to_cordon - read.results.keys()),
        cordons=cordons,
        news=news(rules.record, decision.record, cordons, memory.cordons),
    )
    memory = replace(memory, cordons=after)
    if not (memory.compared or unread or recorded - read.results.keys() or read.problems):
        decision = replace(decision, warnings=_unrecorded(moves, snapshot, read, rules.record))
        memory = replace(memory, compared=True)
    return list(verdicts), decision, memory


def _cordon_read(read: ConfigRead, memory: ConfigMemory, wanted: Set[int], rules: ConfigRules) -> ReadCordons:
    """Return what a read shows of the cordons that are wanted."""
    recorded = from_record(rules.record).keys()
    settled = memory.recent.settled([*map(cordon_key, wanted)], recorded)
    return ReadCordons(read.began, memory.recent.over(read.observed), settled, read.problems)


def _recent_changes(
    changes: RecentChanges, read: ConfigRead, recent: Recent, record: RecordedConfigs | None
) -> RecentChanges:
    """Add what a read shows; a new process takes the last write from the record.

    It may have been sent as late as when this process began. The recorded time is by a clock that may have been set
    since: were it believed, a write could land when nothing names it any more.
    """
    if record and not changes.now:
        changes = replace(changes, earlier=Write(record.via, changes.started))
    return changes.observe(read.began, recent.forwarding)


def _extent(snapshot: Snapshot, recent: Recent, rules: ConfigRules) -> Extent:
    """Say what may be done. Beside an older KafkaCluster or a claim, throttles stay until their moves have ended.

    Nothing may be done while a younger KafkaCluster restores, or while our throttled moves run beside a claim.
    """
    if rules.younger or (rules.yields and desired((), snapshot, rules, recent)):
        return Extent.NOTHING
    return Extent.RESTORE if rules.older or rules.yields else Extent.SET


def _held_by_others(
    verdicts: Sequence[Verdict], snapshot: Snapshot, recent: Recent, rules: ConfigRules
) -> Sequence[Verdict]:
    """Hold back all throttled moves while another KafkaCluster or installation throttles these brokers."""
    waits = rules.older or rules.younger or rules.yields
    if waits is None:
        return verdicts
    moves = desired(verdicts, snapshot, rules, recent)
    return hold_back(verdicts, [Unthrottled(move, waits, True) for move in moves], snapshot)


def _held_until_read(
    verdicts: Sequence[Verdict], unread: Sequence[ThrottledMove], snapshot: Snapshot, recent: Recent
) -> list[Verdict]:
    """Hold back the moves whose configurations are read first."""
    held = hold_back(verdicts, [Unthrottled(move, None, False) for move in unread], snapshot)
    tps = {move.tp for move in unread}
    return [_as_refused(verdict, tps, recent) for verdict in held]


def _to_read(moves: Sequence[ThrottledMove], live: frozenset[int]) -> Mapping[ThrottledMove, frozenset[ConfigResource]]:
    """Return what has to be read before each move can be throttled."""
    return {
        move: frozenset() if move.rate is None else _resources((*move.items(), *rate_keys(move)), live)
        for move in moves
    }


def _fitting(
    moves: Sequence[ThrottledMove],
    cordons: Mapping[int, CordonState],
    read: ConfigRead,
    memory: ConfigMemory,
    recent: Recent,
    rules: ConfigRules,
    live: frozenset[int],
) -> ConfigDecision:
    """Decide for the cordons, and the moves whose throttles fit into the record."""
    record = rules.record
    diff, kept = fit(record, moves, read.observed, memory.recent, cordons)
    if rules.yields:
        diff = replace(diff, record=_with_overwritten(record, diff.record, read.observed))
    return ConfigDecision(
        record=_with_problem(_sent(diff, record, memory.recent, recent), {**memory.problems, **read.problems}),
        before=record,
        changes=diff.changes,
        # what could not be set is not another client's doing
        drift=None if memory.problems else diff.drift,
        drifted=frozenset() if memory.problems else diff.drifted,
        moves=moves,
        kept=kept,
        aim=wanted_configs(kept, record, cordons),
        live=live,
    )


def _unrecorded(
    moves: Sequence[ThrottledMove], snapshot: Snapshot, read: ConfigRead, record: RecordedConfigs | None
) -> tuple[Problem, ...]:
    """Return a warning of throttles that are set and not recorded."""
    lost = unrecorded(moves, snapshot.reassignments.keys(), record, read.observed) if moves or record else None
    return (lost,) if lost else ()


def _sent(diff: Diff, before: RecordedConfigs | None, changes: RecentChanges, recent: Recent) -> RecordedConfigs | None:
    """Add the broker that the changes of topics go to, and the time; without changes both stay as they were.

    Where another broker may still apply an earlier change, no broker is named: then only time ends the doubt.
    """
    if diff.record is None:
        return None
    via, sent_at = (before.via, before.sent_at) if before else (None, None)
    if diff.changes:
        via = None if changes.may_land_elsewhere(recent.forwarding.via) else recent.forwarding.via
        sent_at = recent.clock.of(recent.clock.monotonic)
    return diff.record.model_copy(update={"via": via, "sent_at": sent_at})


def _as_refused(verdict: Verdict, unread: Set[TopicPartition], recent: Recent) -> Verdict:
    """Keep what was refused before as Blocked, for that reason, while its configurations are read once more."""
    waits = (tp for tp in unread if tp in verdict.rows and verdict.rows[tp].waits)
    refused = {tp: recent.refused.get((tp, verdict.resource.wanted[tp])) for tp in waits}
    return verdict.with_rows(
        {
            tp: replace(verdict.rows[tp], waits=BLOCKED).with_saying(SayingKind.PROBLEM, refusal.problem)
            for tp, refusal in refused.items()
            if refusal
        }
    )


def remember_configs(
    memory: ConfigMemory, decision: ConfigDecision, outcomes: Mapping[Change, Outcome], at: float
) -> ConfigMemory:
    """Return what is remembered after the changes; `at` is when they ended."""
    return replace(
        memory,
        recent=memory.recent.remember(outcomes, at).drifted(decision.drifted & {c.key for c in outcomes}, at),
        cordons=memory.cordons.remember(outcomes, at),
        problems={r: problem for r, problem in _failed(outcomes).items() if _can_be_set(r, decision.live)},
    )


def gate_throttles(
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
    read: ConfigRead,
    decision: ConfigDecision,
    recent: RecentChanges,
    outcomes: Mapping[Change, Outcome],
) -> list[Verdict]:
    """Take out the steps whose throttle could not be set; `recent` has the changes that were made."""
    seen, problems = recent.over(read.observed), {**read.problems, **_failed(outcomes)}
    state = ThrottleState(decision.moves, decision.kept, decision.aim, seen, decision.live, problems, recent)
    return hold_back(verdicts, state.unthrottled, snapshot)


def _failed(outcomes: Mapping[Change, Outcome]) -> dict[ConfigResource, Problem]:
    return {change.key.resource: o.problem for change, o in outcomes.items() if o.result is not Result.APPLIED}


def readable(
    record: RecordedConfigs | None, reads: Iterable[ConfigResource], brokers: Mapping[int, Broker]
) -> set[ConfigResource]:
    """Return what is recorded, or was asked for by a decision, and can be read."""
    live = live_brokers(brokers)
    recorded = (key.resource for key in from_record(record))
    return {resource for resource in (*recorded, *reads) if _can_be_set(resource, live)}


def left_to_restore(
    record: RecordedConfigs | None, brokers: Mapping[int, Broker], cordons: Set[int] = frozenset()
) -> bool:
    """Whether a record has something to restore; on brokers that are no longer registered it cannot be.

    The `cordons` of these brokers are not waited for: they are wanted, or the broker is down for too long.
    """
    if record is None:
        return False
    to_restore = (
        b.broker for b in record.brokers for c in b.configs if c.name != CORDONED_LOG_DIRS or b.broker not in cordons
    )
    return bool(record.topics) or any(broker in brokers for broker in to_restore)


def left_in_flight(record: RecordedConfigs | None, snapshot: Snapshot) -> Collection[TopicPartition]:
    """Return the moves in flight that a record has throttles for, with and without a resource."""
    if record is None:
        return ()
    between_brokers = {move.tp for move in left_moves(record, frozenset(), snapshot)}
    return between_brokers.union(*log_dir_moves_of(record).values())


def needed(record: RecordedConfigs | None, snapshot: Snapshot) -> bool:
    """Whether moves in flight need the throttles of a record: those that can be seen, also between log directories."""
    if record is None:
        return False
    return bool(left_moves(record, frozenset(), snapshot)) or any(
        tp in directory.futures
        for number, tps in log_dir_moves_of(record).items()
        if (broker := snapshot.brokers.get(number)) and not broker.fenced and number not in snapshot.unread_log_dirs
        for directory in snapshot.log_dirs.get(number, {}).values()
        for tp in tps
    )


def _resources(keys: Iterable[ConfigKey], live: frozenset[int]) -> frozenset[ConfigResource]:
    return frozenset(key.resource for key in keys if _can_be_set(key.resource, live))


def _can_be_set(resource: ConfigResource, live: frozenset[int]) -> bool:
    return resource.type is ConfigResourceType.TOPIC or int(resource.name) in live


def _with_problem(record: RecordedConfigs | None, problems: Mapping[ConfigResource, Problem]) -> RecordedConfigs | None:
    """Add to a record the first problem of reading or changing."""
    if record is None:
        return None
    first = problems[min(problems)] if problems else None
    update = {"reason": first and first.reason, "message": first and first.message[:1024]}
    return record.model_copy(update=update)


def _with_overwritten(
    before: RecordedConfigs | None, after: RecordedConfigs | None, observed: Observed
) -> RecordedConfigs | None:
    """Keep in the record the rates that another installation, or another KafkaCluster, has set over ours.

    When it is done it sets our rates again, since it found them; or the other KafkaCluster takes the record over.
    """
    old, new = from_record(before), from_record(after)
    for key, ours in old.items():
        there = (observed.get(key.resource) or {}).get(key.config)
        if key.resource.type is ConfigResourceType.BROKER and there not in (None, ours.prior):
            new.setdefault(key, ours)
    return to_record(new, WantedConfigs()) if new else None
