"""What is wanted of each cluster of a fleet: a file of defaults, and of overrides by patterns of clusters' names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from reassign.api.common import Model, NamespaceName, bytes_of, bytes_per_second
from reassign.api.digest import hashed
from reassign.api.limits import MAX_NAME_CHARACTERS
from reassign.api.partition_reassignment import ClusterRef
from reassign.api.reassignment_plan import BalanceGoal, Goal, Racks, Template, Topics, Waves
from reassign.errors import PlanningError, Reason
from reassign.planning.manifests import Manifest, manifests_of
from reassign.planning.problem import goals, model

ClusterPattern = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[a-z0-9.*?-]+$")]


class Terms(Model):
    """What is wanted of one cluster, in the words of a ReassignmentPlan."""

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
    waves: Waves = Waves()
    """How much one PartitionReassignment moves at most."""
    template: Template = Template()
    """Options of the PartitionReassignments."""
    min_free_disk_percent: Annotated[int, Field(ge=0, le=99)] = 10
    """What stays free of each volume."""

    @model_validator(mode="after")
    def _is_no_contradiction(self) -> Self:
        goal = self.goal
        if goal == Goal():
            raise ValueError("goal needs at least one of drainBrokers, brokers, replicationFactor and balance")
        if both := sorted(set(goal.drain_brokers or ()) & set(goal.brokers or ())):
            raise ValueError(f"broker {both[0]} cannot be emptied and hold replicas: take it out of one list")
        return self

    def planner_goal(self) -> model.Goal:
        return goals.goal_of(self.goal, self.topics, self.racks, self.min_free_disk_percent)

    def manifests(self, cluster: str, waves: Sequence[Sequence[Manifest]]) -> list[Manifest]:
        """The PartitionReassignments of a cluster, for the entries of its waves; PlanningError for what they cannot
        have."""
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
        throttle = self.template.throttle
        return None if throttle is None or throttle.inter_broker is None else bytes_per_second(throttle.inter_broker)


class Override(Terms):
    """Other terms for some clusters; what it does not say stays as it was."""

    clusters: Annotated[tuple[ClusterPattern, ...], Field(min_length=1, max_length=1000)]
    """Names of clusters, with * for any characters and ? for one."""

    def matches(self, cluster: str) -> bool:
        return any(fnmatchcase(cluster, pattern) for pattern in self.clusters)


class Policy(Model):
    """What is wanted of a fleet. Overrides count in their order: of two that say the same, the later one."""

    defaults: Terms = Terms()
    """Of every cluster."""
    overrides: Annotated[tuple[Override, ...], Field(max_length=1000)] = ()
    """Of some clusters."""

    def terms(self, cluster: str) -> Terms:
        """What is wanted of one cluster."""
        said = {name: getattr(self.defaults, name) for name in Terms.model_fields}
        for override in self.overrides:
            if override.matches(cluster):
                said |= {name: getattr(override, name) for name in override.model_fields_set - {"clusters"}}
        return Terms(**said)

    def check_patterns(self, clusters: Iterable[str]) -> None:
        """Raises PlanningError for a pattern that matches none of these clusters: it is misspelt, or left over."""
        names = list(clusters)
        for override in self.overrides:
            for pattern in override.clusters:
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise PlanningError(
                        Reason.INVALID_GOAL,
                        f"the policy's pattern {pattern} matches none of the {len(names)} clusters that have "
                        "snapshots: correct it, or take it out",
                    )

    @property
    def digest(self) -> str:
        """Of all that it says: an override that says a default is another one than one that says nothing."""
        return hashed(self.model_dump(mode="json", exclude_unset=True))


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}" if mark else "it"


class _Loader(yaml.SafeLoader):
    """Refuses a field that is said twice. In Python: the loader in C ends the process where text is nested deeply."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is said twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def parse(text: str, file: str) -> Policy:
    """The policy in a file of YAML or JSON; raises PlanningError for what is none."""
    try:
        said = yaml.load(text, Loader=_Loader)
        return Policy.model_validate_json(
            json.dumps({} if said is None else said), strict=True, extra="forbid", by_alias=True, by_name=False
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        why = first["msg"].removeprefix("Value error, ")
    except yaml.constructor.ConstructorError as error:
        where, why = _line(error), str(error.problem)
    except yaml.YAMLError as error:
        where, why = _line(error), "this is neither YAML nor JSON"
    except (TypeError, ValueError, RecursionError):
        where, why = "it", "this is nothing that JSON can hold"
    raise PlanningError(Reason.CANNOT_BE_READ, f"{file} is no policy: {where}: {why}; correct it")
