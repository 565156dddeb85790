"""What an approval covers: no plan that passes touches more than was approved, and each rule holds alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reassign.api.reassignment_record import RecordedApproval
from reassign.core.automation.scope import NOT_KNOWN, beyond
from reassign.core.plans.model import Manifest
from tests.unit.examples import examples

Entry = Mapping[str, Any]

DIGEST = f"sha256:{'a' * 64}"
DRAINED = frozenset({5, 6, 7})
OTHERS = frozenset({1, 2, 3, 4, 8, 9})


def entry(before: Sequence[int] | None, after: Sequence[int], number: int = 0, **more: Any) -> Entry:
    expected = {} if before is None else {"expectedReplicas": [*before]}
    return {"topic": "orders", "partition": number, "replicas": [*after], **expected, **more}


def manifest(entries: Sequence[Entry]) -> Manifest:
    return {
        "metadata": {"name": "old-2-1", "namespace": "kafka"},
        "spec": {"clusterRef": {"name": "main"}, "suspend": True, "partitions": [*entries]},
    }


Plan = tuple[list[Manifest], list[int]]
"""The waves of a plan, and how many bytes each copies."""


def planned(*waves: Sequence[Entry], bytes: Sequence[int] = ()) -> Plan:
    """A plan with these entries in its waves, which copy so many bytes each."""
    return [*map(manifest, waves)], [*bytes, *[0] * (len(waves) - len(bytes))]


def judged(plan: Plan, approved: int = 100, begun: int = 0, brokers: frozenset[int] = DRAINED) -> list[str]:
    manifests, copied = plan
    return beyond(manifests, brokers, RecordedApproval(digest=DIGEST, bytes=approved, begun_bytes=begun), copied)


# --- Sentences ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([5, 1, 2], [3, 1, 2]),
        ([1, 5, 2], [1, 3, 2]),
        ([5, 6, 7], [1, 2, 3]),
        ([5], [1]),
        ([1, 5, 2, 6], [1, 8, 2, 3]),
    ],
)
def test_replicas_that_are_replaced_in_their_places_are_covered(before: list[int], after: list[int]) -> None:
    assert judged(planned([entry(before, after)])) == []


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (entry(None, [3, 1]), "orders-0 does not say where its replicas are"),
        (entry([1, 2], [1, 3]), "orders-0 has no replica on brokers 5, 6 and 7"),
        (entry([1, 2], [1, 2]), "orders-0 has no replica on brokers 5, 6 and 7"),
        (entry([5, 1], [6, 1]), "orders-0 is to be on broker 6"),
        (entry([5, 6], [1, 6]), "orders-0 is to be on broker 6"),
        (entry([5, 1], [5, 1]), "orders-0 is to be on broker 5"),
        (entry([5, 1, 2], [1, 2]), "orders-0 has 3 replicas, and is to have 2"),
        (entry([5, 1], [3, 1, 2]), "orders-0 has 2 replicas, and is to have 3"),
        (entry([5, 1, 2], [1, 1, 2]), "orders-0 has 3 replicas, and is to have 2"),
        (entry([5, 1, 2], [3, 4, 2]), "orders-0 is to leave broker 1"),
        (
            entry([5, 1, 2], [3, 2, 1]),
            "orders-0 is on [5, 1, 2], and is to be on [3, 2, 1]: replicas that stay change their places",
        ),
        (
            entry([5, 1], [1, 3]),
            "orders-0 is on [5, 1], and is to be on [1, 3]: replicas that stay change their places",
        ),
        (
            entry([5, 1], [3, 1], logDirs=["any", "/data"]),
            "orders-0 is to change the log directory of a replica that stays",
        ),
    ],
)
def test_an_entry_that_does_more_is_not_covered(made: Entry, why: str) -> None:
    assert judged(planned([made])) == [why]


def test_a_new_replica_may_go_to_a_directory_that_is_named() -> None:
    assert judged(planned([entry([5, 1], [3, 1], logDirs=["/data", "any"])])) == []


@pytest.mark.parametrize(
    ("approved", "begun", "bytes", "covered"),
    [
        (100, 0, [110], True),
        (100, 0, [111], False),
        (100, 50, [30, 30], True),
        (100, 50, [30, 31], False),
        (100, 111, [0], False),
        (2**60, 2**60, [2**60 // 10], True),
        (2**60, 2**60, [2**60 // 10 + 1], False),
        (0, 0, [0], True),
        (0, 0, [1], False),
    ],
)
def test_all_plans_copy_at_most_a_tenth_more(approved: int, begun: int, bytes: list[int], covered: bool) -> None:
    plan = planned(*([entry([5, 1], [3, 1], number)] for number in range(len(bytes))), bytes=bytes)
    assert (judged(plan, approved, begun) == []) == covered


def test_a_plan_whose_bytes_are_not_known_is_not_covered() -> None:
    manifests, _ = planned([entry([5, 1], [3, 1])])
    assert judged((manifests, [])) == [NOT_KNOWN]


def test_too_many_bytes_are_told() -> None:
    [why] = judged(planned([entry([5, 1], [3, 1])], bytes=[2**31]), 2**30, 2**30)
    assert why == "with it 3.0 GiB are copied, more than 110 % of the 1.0 GiB that were approved"


def test_the_first_few_reasons_are_told() -> None:
    assert len(judged(planned([entry([1, 2], [1, 3], number) for number in range(9)]))) == 5


def test_each_wave_is_judged() -> None:
    waves = [[entry([5, 1], [3, 1], 0)], [entry([6, 1], [3, 1], 1)], [entry([1, 5], [3, 2], 2)]]
    assert judged(planned(*waves)) == ["orders-2 is to leave broker 1"]


# --- Random plans ---

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=4)
DIRECTORIES = st.sampled_from(["any", "/data"])


@st.composite
def any_entry(draw: st.DrawFn) -> Entry:
    """Any entry at all, often near one that is covered."""
    before = draw(BROKERS)
    near = st.tuples(*(st.just(broker) | st.integers(0, 9) for broker in before)).map(list)
    after = draw(near | BROKERS)
    directories = {"logDirs": [draw(DIRECTORIES) for _ in after]} if draw(st.booleans()) else {}
    return entry(draw(st.just(before) | st.none()), after, draw(st.integers(0, 99)), **directories)


@examples(2000)
@given(
    st.lists(st.lists(any_entry(), min_size=1, max_size=2), max_size=2),
    st.sets(st.integers(0, 9), min_size=1),
    st.lists(st.integers(0, 60), min_size=2, max_size=2),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_no_plan_that_passes_touches_more_than_was_approved(
    waves: list[list[Entry]], brokers: set[int], bytes: list[int], approved: int, begun: int
) -> None:
    plan = planned(*waves, bytes=bytes[: len(waves)])
    if judged(plan, approved, begun, frozenset(brokers)):
        return
    assert begun + sum(bytes[: len(waves)]) <= approved * 1.1 + 1e-9
    for each in (each for wave in waves for each in wave):
        before, after = each["expectedReplicas"], each["replicas"]
        assert brokers & {*before}, "a partition elsewhere"
        assert not brokers & {*after}, "one stays, or lands"
        assert sorted({*after}) == sorted(after), "a broker twice"
        assert len(after) == len(before), "another replication factor"
        stay = {broker: place for place, broker in enumerate(before) if broker not in brokers}
        assert all(after[place] == broker for broker, place in stay.items()), "another place"
        named = {broker for broker, path in zip(after, each.get("logDirs", ()), strict=False) if path != "any"}
        assert not named & stay.keys(), "another directory"


@st.composite
def evacuation(draw: st.DrawFn, number: int = 0) -> Entry:
    """An entry that is covered: some of DRAINED are replaced, and at least two others stay."""
    leaving = draw(st.lists(st.sampled_from(sorted(DRAINED)), min_size=1, unique=True))
    others = draw(st.permutations(sorted(OTHERS)))
    staying = draw(st.integers(2, 3))
    before = draw(st.permutations([*leaving, *others[:staying]]))
    new = iter(others[staying:])
    return entry(before, [next(new) if broker in DRAINED else broker for broker in before], number)


def changed(made: Entry, after: Sequence[int]) -> Entry:
    return {**made, "replicas": [*after]}


def staying(made: Entry) -> list[int]:
    return [place for place, broker in enumerate(made["replicas"]) if broker in made["expectedReplicas"]]


def at(made: Entry, place: int, broker: int) -> Entry:
    after = [*made["replicas"]]
    after[place] = broker
    return changed(made, after)


def swapped(made: Entry) -> Entry:
    after = [*made["replicas"]]
    one, other = staying(made)[:2]
    after[one], after[other] = after[other], after[one]
    return changed(made, after)


def leaving(made: Entry) -> int:
    return next(place for place, broker in enumerate(made["expectedReplicas"]) if broker in DRAINED)


BROKEN: dict[str, tuple[Callable[[Entry], Entry], str]] = {
    "another replica leaves": (lambda made: at(made, staying(made)[0], 99), "is to leave"),
    "a replica stays on a drained broker": (
        lambda made: at(made, leaving(made), made["expectedReplicas"][leaving(made)]),
        "is to be on",
    ),
    "fewer replicas": (lambda made: changed(made, [b for n, b in enumerate(made["replicas"]) if n]), "and is to have"),
    "more replicas": (lambda made: changed(made, [*made["replicas"], 99]), "and is to have"),
    "one broker twice": (lambda made: at(made, leaving(made), made["replicas"][staying(made)[0]]), "and is to have"),
    "two that stay are swapped": (swapped, "change their places"),
    "no guard": (lambda made: {k: v for k, v in made.items() if k != "expectedReplicas"}, "does not say where"),
    "another directory": (
        lambda made: {
            **made,
            "logDirs": ["/d" if n == staying(made)[0] else "any" for n, _ in enumerate(made["replicas"])],
        },
        "log directory",
    ),
    "elsewhere": (
        lambda made: {**made, "expectedReplicas": [*made["replicas"]]},
        "has no replica on",
    ),
}


@pytest.mark.parametrize(("break_", "why"), BROKEN.values(), ids=BROKEN.keys())
@examples(60)
@given(data=st.data())
def test_each_rule_that_is_broken_alone_is_refused(
    break_: Callable[[Entry], Entry], why: str, data: st.DataObject
) -> None:
    entries = [data.draw(evacuation(number)) for number in range(data.draw(st.integers(1, 4)))]
    assert judged(planned(entries)) == []
    which = data.draw(st.integers(0, len(entries) - 1))
    [said] = judged(planned([*entries[:which], break_(entries[which]), *entries[which + 1 :]]))
    assert said.startswith(f"orders-{which} ")
    assert why in said


@given(st.lists(evacuation(), min_size=1, max_size=3), *[st.integers(0, 10**15)] * 2)
def test_one_byte_more_than_is_covered_is_refused(entries: list[Entry], approved: int, begun: int) -> None:
    most = approved * 11 // 10
    assume(begun <= most)
    waves, others = [[one] for one in entries], [0] * (len(entries) - 1)
    assert judged(planned(*waves, bytes=[most - begun, *others]), approved, begun) == []
    assert len(judged(planned(*waves, bytes=[most - begun + 1, *others]), approved, begun)) == 1
