"""The goals of a fleet's clusters: a file of defaults, and of overrides by patterns of clusters' names."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from reassign.api.common import EachOnce, Model, NamespaceName, bytes_of
from reassign.api.digest import hashed
from reassign.api.limits import MAX_NAME_CHARACTERS
from reassign.api.names import matches
from reassign.api.partition_reassignment import ClusterRef
from reassign.api.reassignment_plan import BalanceGoal, Goal, Racks, Template, Topics, WaveLimits
from reassign.core.configs.desired import rates_of
from reassign.core.model.cluster_rules import ConfigRules
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import Manifest
from reassign.manifests.text import load
from reassign.manifests.waves import manifests_of
from reassign.planning.problem import goals, model
from reassign.text import first_error

ClusterPattern = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[a-z0-9.*?-]+$")]


class Terms(Model):
    """The goal of one cluster, with the fields of a ReassignmentPlan."""

    namespace: NamespaceName = "default"
    """Of the PartitionReassignments."""
    cluster_ref: ClusterRef | None = None
    """The KafkaCluster. Unset: the one that is named as the cluster is, in that namespace."""
    topics: Topics = Topics()
    """The topics whose replicas may be moved."""
    goal: Goal = Goal(balance=BalanceGoal())
    """What is wanted of the cluster. Unset: disk, replicas and leaders in balance."""
    racks: Racks = Racks()
    """How replicas are spread over racks."""
    waves: WaveLimits = WaveLimits()
    """How much one PartitionReassignment moves at most."""
    template: Template = Template()
    """Options of the PartitionReassignments."""
    min_free_disk_percent: Annotated[int, Field(ge=0, le=99)] = 10
    """What stays free of each volume."""

    @model_validator(mode="after")
    def _is_no_contradiction(self) -> Self:
        goal = self.goal
        if not goal.asks:
            raise ValueError("goal needs at least one of drainBrokers, brokers, replicationFactor and balance")
        if both := sorted(set(goal.drain_brokers or ()) & set(goal.brokers or ())):
            raise ValueError(f"broker {both[0]} cannot be emptied and hold replicas: take it out of one list")
        return self

    def planner_goal(self) -> model.PlacementGoal:
        return goals.goal_of(self.goal, self.topics, self.racks, self.min_free_disk_percent)

    def manifests(self, cluster: str, waves: Sequence[Sequence[Manifest]]) -> list[Manifest]:
        """Return a cluster's PartitionReassignments for the entries of its waves; raises PlanningError."""
        reference = self.cluster_ref or ClusterRef(name=cluster)
        template = {**self.template.wire(), "clusterRef": reference.wire()}
        return manifests_of(waves, name=cluster, namespace=self.namespace, template=template)

    @property
    def max_bytes(self) -> int | None:
        """Bytes that one wave copies at most."""
        return None if self.waves.max_bytes is None else bytes_of(self.waves.max_bytes)

    @property
    def rate(self) -> int | None:
        """Bytes per second of each broker; None where nothing is throttled."""
        return rates_of(self.template.throttle, ConfigRules()).inter_broker


class Override(Terms):
    """Other terms for some clusters; a field that is unset stays as it was."""

    clusters: Annotated[
        tuple[ClusterPattern, ...], Field(min_length=1, max_length=1000), EachOnce("names a pattern twice")
    ]
    """Names of clusters, with * for any characters and ? for one."""

    def matches(self, cluster: str) -> bool:
        return matches(cluster, self.clusters)


class FleetPolicy(Model):
    """The goals of a fleet. Overrides count in their order: the later one wins."""

    defaults: Terms = Terms()
    """Of every cluster."""
    overrides: Annotated[tuple[Override, ...], Field(max_length=1000)] = ()
    """Of some clusters."""

    def terms(self, cluster: str) -> Terms:
        """Return the goal of one cluster."""
        terms = {name: getattr(self.defaults, name) for name in Terms.model_fields}
        for override in self.overrides:
            if override.matches(cluster):
                terms |= {name: getattr(override, name) for name in override.model_fields_set - {"clusters"}}
        return Terms(**terms)

    def check_patterns(self, clusters: Iterable[str]) -> None:
        """Raise PlanningError for a pattern that matches none of these clusters: it is misspelt, or left over."""
        names = list(clusters)
        for override in self.overrides:
            for pattern in override.clusters:
                if not any(matches(name, [pattern]) for name in names):
                    raise PlanningError(
                        Reason.INVALID_GOAL,
                        f"the policy's pattern {pattern} matches none of the {len(names)} clusters that have "
                        "snapshots: correct it, or take it out",
                    )

    def unmatched(self, matched: Mapping[str, Collection[str]]) -> list[str]:
        """Return a note for each pattern of topics that matches no topic in any of its clusters.

        `matched` are the patterns that match a topic, by cluster; clusters whose topics are not known are not in it.
        """
        clusters = dict[tuple[str, str], list[str]]()
        found = set[tuple[str, str]]()
        for cluster, matching in matched.items():
            topics = self.terms(cluster).topics
            for field, patterns in (("include", topics.include), ("exclude", topics.exclude or ())):
                for pattern in set(patterns) - {"*"}:
                    clusters.setdefault((field, pattern), []).append(cluster)
                    if pattern in matching:
                        found.add((field, pattern))
        return [
            f"no topic matches {pattern} of topics.{field} in {_named(sorted(of))}: correct it, or take it out"
            for (field, pattern), of in sorted(clusters.items())
            if (field, pattern) not in found
        ]

    @property
    def digest(self) -> str:
        """The digest of all fields that are set: an override with a default differs from one without."""
        return hashed(self.model_dump(mode="json", exclude_unset=True))


def _named(clusters: Sequence[str]) -> str:
    return f"any of its {len(clusters)} clusters" if len(clusters) > 1 else f"its cluster {clusters[0]}"


def parse(text: str, file: str) -> FleetPolicy:
    """Return the policy in a file of YAML or JSON; raises PlanningError for what is none."""
    try:
        return FleetPolicy.model_validate_json(_json(text), strict=True, extra="forbid", by_alias=True, by_name=False)
    except ValidationError as error:
        why = first_error(error)
    except ValueError as error:
        why = str(error)
    raise PlanningError(Reason.CANNOT_BE_READ, f"{file} is no policy: {why}; correct it")


def _json(text: str) -> str:
    documents = load(text)
    if len(documents) > 1:
        raise ValueError("it has several documents")
    try:
        return json.dumps(documents[0] if documents else {})
    except (TypeError, ValueError, RecursionError):
        raise ValueError("it is nothing that JSON can hold") from None
