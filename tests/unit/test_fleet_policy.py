"""A fleet's policy: what counts for which cluster, and what is refused with a sentence."""

from __future__ import annotations

import pytest

from reassign.api.goal import Awareness, By, FencedBrokers, Scope
from reassign.api.limits import MAX_LABEL_CHARACTERS
from reassign.api.names import OBJECT_NAME
from reassign.api.reassignment_plan import PLAN_LABEL
from reassign.errors import PlanningError, Reason
from reassign.fleet.policy import FleetPolicy, parse

TEXT = """
defaults:
  namespace: kafka
  goal: {balance: {by: [Disk], tolerancePercent: 5}}
  template: {throttle: {interBroker: 50Mi}}
overrides:
- clusters: [prod-*]
  waves: {maxPartitions: 50}
- clusters: [prod-7, test-1]
  goal: {drainBrokers: [3]}
  racks: {awareness: Flat}
  clusterRef: {name: main}
"""


def refusal(text: str) -> str:
    with pytest.raises(PlanningError) as error:
        parse(text, "policy.yaml")
    assert error.value.reason is Reason.CANNOT_BE_READ
    assert "\n" not in error.value.message
    return error.value.message


def test_without_a_file_every_cluster_is_to_be_in_balance() -> None:
    goal = FleetPolicy().terms("any").planner_goal()
    assert (goal.balance, goal.tolerance, goal.exclude) == (frozenset(By), 0.1, None)
    assert goal.excluded == ("__*",)


def test_unset_fields_of_an_override_stay_and_a_later_one_counts() -> None:
    policy = parse(TEXT, "policy.yaml")
    other, prod, both = (policy.terms(name) for name in ("other", "prod-1", "prod-7"))
    assert (other.namespace, other.waves.max_partitions, other.rate) == ("kafka", 200, 50 * 2**20)
    assert (prod.waves.max_partitions, prod.planner_goal().tolerance) == (50, 0.05)
    assert (both.waves.max_partitions, both.planner_goal().drain) == (50, {3})
    assert both.planner_goal().balance == frozenset()
    assert both.planner_goal().awareness is Awareness.FLAT
    entry = {"topic": "t", "partition": 0, "replicas": [1], "expectedReplicas": [2]}
    made = [terms.manifests(name, [[entry]])[0] for terms, name in ((both, "prod-7"), (prod, "prod-1"))]
    assert [each["spec"]["clusterRef"] for each in made] == [{"name": "main"}, {"name": "prod-1"}]
    assert [each["metadata"]["namespace"] for each in made] == ["kafka", "kafka"]


@pytest.mark.parametrize("cluster", ["a" * 253, f"{'a.' * 30}b-c", f"{'a' * 62}.b"])
def test_what_is_named_after_a_cluster_may_be_an_objects_name(cluster: str) -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1], "expectedReplicas": [2]}
    made = FleetPolicy().terms(cluster).manifests(cluster, [[entry]] * 12)
    assert all(OBJECT_NAME.fullmatch(each["metadata"]["name"]) for each in made)
    assert len({each["metadata"]["name"] for each in made}) == 12
    label = made[0]["metadata"]["labels"][PLAN_LABEL]
    assert len(label) <= MAX_LABEL_CHARACTERS
    assert OBJECT_NAME.fullmatch(label)


def test_a_pattern_that_matches_no_topic_of_its_clusters_is_noted() -> None:
    policy = parse(
        """
        defaults: {topics: {include: [orders*, payments, "*"], exclude: [tmp-*]}}
        overrides: [{clusters: [c], topics: {include: [alone]}}]
        """,
        "policy.yaml",
    )
    assert policy.unmatched({"a": ["orders*"], "b": ["*", "tmp-*"], "c": ["orders*", "payments"]}) == [
        "no topic matches alone of topics.include in its cluster c: correct it, or take it out",
        "no topic matches payments of topics.include in any of its 2 clusters: correct it, or take it out",
    ]
    assert FleetPolicy().unmatched({"a": [], "b": ["*"]}) == []


def test_a_policy_may_drain_alone_and_avoid_brokers() -> None:
    text = "defaults: {goal: {drainBrokers: [5], scope: Drained, avoidBrokers: [6]}}"
    goal = parse(text, "policy.yaml").terms("any").planner_goal()
    assert (goal.drain, goal.scope, goal.avoid) == ({5}, Scope.DRAINED, {6})


def test_a_policy_may_have_fenced_brokers_replaced() -> None:
    terms = parse("defaults: {goal: {balance: {}, fencedBrokers: Replace}}", "policy.yaml").terms("any")
    assert terms.planner_goal().fenced_brokers is FencedBrokers.REPLACE
    assert FleetPolicy().terms("any").planner_goal().fenced_brokers is FencedBrokers.KEEP


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    policy = parse(TEXT, "policy.yaml")
    policy.check_patterns(["prod-7", "test-1"])
    with pytest.raises(PlanningError, match=r"pattern test-1 matches none of the 2 clusters"):
        policy.check_patterns(["prod-7", "prod-8"])


BOMB = "\n".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(8))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("defaults: {goals: {}}", "defaults.goals: there is no such field"),
        ("defaults: {goal: {balance: {by: [Disc]}}}", "defaults.goal.balance.by.0: it is none of 'Disk'"),
        ("defaults: {goal: {}}", "goal needs at least one of"),
        ("defaults: {goal: {fencedBrokers: Replace}}", "goal needs at least one of"),
        ("defaults: {goal: {avoidBrokers: [1]}}", "goal needs at least one of"),
        ("defaults: {goal: {balance: {}, scope: Drained}}", "defaults.goal: scope Drained needs drainBrokers"),
        ("defaults: {goal: {drainBrokers: [1], avoidBrokers: [2, 1]}}", "defaults.goal: a broker that is drained"),
        ("defaults: {goal: {drainBrokers: [1], avoidBrokers: [2, 2]}}", "avoidBrokers: names a broker more than once"),
        ("overrides: [{clusters: [a], goal: {drainBrokers: [1], brokers: [1, 2]}}]", "broker 1 cannot be emptied"),
        ("overrides: [{goal: {drainBrokers: [1]}}]", "overrides.0.clusters: it is missing"),
        ("overrides: [{clusters: []}]", "overrides.0.clusters: it is empty"),
        ("defaults: {minFreeDiskPercent: '10'}", "defaults.minFreeDiskPercent: it is no whole number"),
        ("defaults: {waves: {maxPartitions: 501}}", "it is more than 500"),
        ("defaults: {template: {throttle: {interBroker: 5 MB}}}", "'5 MB' is not a quantity"),
        ("defaults: {waves: {maxBytes: 1}}", "1 is not between 1Ki and 1Pi bytes"),
        (f"defaults: {{waves: {{maxBytes: {'0' * 31}1Gi}}}}", "a quantity has at most 32 characters"),
        ("defaults: {topics: {include: ['orders[0-9]']}}", "defaults.topics.include.0: it has other characters than"),
        ("defaults: {topics: {include: [a, b, a]}}", "defaults.topics.include: names a pattern twice"),
        ("defaults: {topics: {exclude: [__*, __*]}}", "defaults.topics.exclude: names a pattern twice"),
        ("defaults: {goal: {drainBrokers: [1, 2, 1]}}", "defaults.goal.drainBrokers: names a broker more than once"),
        ("defaults: {goal: {brokers: [1, 2, 2]}}", "defaults.goal.brokers: names a broker more than once"),
        (
            "defaults: {goal: {balance: {by: [Disk, Disk]}}}",
            "defaults.goal.balance.by: names a resource more than once",
        ),
        ("overrides: [{clusters: [a, a]}]", "overrides.0.clusters: names a pattern twice"),
        ("- 1", "is no policy: it is no map of fields"),
        ("{", "it is neither JSON nor YAML at line 2, column 1"),
        ("defaults:\n  namespace: a\n  namespace: b", "namespace is repeated at line 3"),
        ("[" * 100_000, "it is nested too deeply"),
        (f"a0: &a0 [1]\n{BOMB}", "its aliases stand for too many values"),
        ("a: !!binary aGk=", "a value has a tag, which nothing here needs at line 1, column 4"),
        ("a: .inf", ".inf is no number that JSON can hold at line 1, column 4"),
        ("~: a", "a field has no name at line 1, column 1"),
        ("defaults: {namespace: 1e3}", "defaults.namespace: it is no text"),
        ("overrides: [{clusters: [on]}]", "overrides.0.clusters.0: it is no text"),
        (
            "defaults: {topics: {exclude: ['orders,payments']}}",
            "defaults.topics.exclude.0: it has other characters than",
        ),
        ("defaults: {topics: {include: ['']}}", "defaults.topics.include.0: it is empty"),
        ("{}\n---\n{}", "it has several documents"),
        ("&a [*a]", "nothing that JSON can hold"),
    ],
)
def test_what_is_no_policy(text: str, why: str) -> None:
    assert why in refusal(text)


def test_the_digest_is_of_what_it_says_an_override_back_to_a_default_too() -> None:
    assert parse(f"# a comment\n{TEXT}", "").digest == parse(TEXT, "").digest
    assert parse(TEXT.replace("Flat", "None"), "").digest != parse(TEXT, "").digest
    assert parse(TEXT.replace("Flat", "Tree"), "").digest != parse(TEXT.replace("awareness: Flat", ""), "").digest
