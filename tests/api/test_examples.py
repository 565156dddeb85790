"""The manifests that a newcomer is told to apply."""

from pathlib import Path

import pytest
import yaml

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import ReassignmentPlan
from tests.api.kubectl import Kubectl

EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").glob("*.yaml"))


@pytest.fixture(scope="module", autouse=True)
def namespace(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "kafka")


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_an_example_is_accepted_and_can_be_read(kubectl: Kubectl, path: Path) -> None:
    kubectl("apply", "-f", str(path), "--dry-run=server", "--validate=strict", "--namespace=kafka")
    example = yaml.safe_load(path.read_text())
    match example["kind"]:
        case KafkaCluster.KIND:
            assert KafkaCluster.parse(example).spec.bootstrap_servers
        case PartitionReassignment.KIND:
            assert PartitionReassignment.parse(example).spec.partitions
        case ReassignmentPlan.KIND:
            assert ReassignmentPlan.parse(example).spec.goal.drain_brokers
        case kind:
            pytest.fail(f"{kind} is no kind of ours")
