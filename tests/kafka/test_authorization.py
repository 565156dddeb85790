"""What is reported to a Kafka user with too few rights. The brokers deny what no ACL allows."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from localplatform.brokers import USER, Brokers, running
from reassign.api.config_keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Op
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Elect, Result
from reassign.core.plans.goal import not_known
from reassign.core.plans.model import PlanResource
from reassign.errors import ClusterError, Reason
from reassign.inspect.snapshot import snapshot
from reassign.kafka import claim
from reassign.kafka.connection import Connection, Sasl, Tls
from tests.kafka import quickstarts
from tests.kafka.harness import Kafka, eventually
from tests.unit.throttling import Operator

CLUSTER, TOPIC = (ResourceType.BROKER, "kafka-cluster"), (ResourceType.TOPIC, "*")
DESCRIBE, DESCRIBE_CONFIGS, ALTER = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("strict"), brokers=2, secure=True, authorizer=True, controllers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def superuser(strict: Brokers) -> Iterator[Kafka]:
    found = Kafka(strict)
    yield found
    found.close()


@pytest.fixture
def mover(strict: Brokers) -> Iterator[Kafka]:
    tls = Tls(ca_pem=(strict.certificates / "ca.crt").read_text())
    found = Kafka(strict, Connection(strict.scram_bootstrap_servers, tls, Sasl(USER, strict.password)))
    yield found
    found.close()


@pytest.fixture
def rights(superuser: Kafka, request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives the user the rights that the test names, until it ends."""
    terms = [
        (kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        for (kind, name), operation in request.param
    ]
    superuser.workload.ask(lambda admin: admin.create_acls([AclBinding(*term) for term in terms]))
    yield
    superuser.workload.ask(lambda admin: admin.delete_acls([AclBindingFilter(*term) for term in terms]))


def may_observe(user: Kafka) -> bool:
    try:
        user.observe()
    except ClusterError:
        return False
    return True


def test_no_rights_at_all(mover: Kafka) -> None:
    with pytest.raises(ClusterError, match="needs DESCRIBE") as caught:
        mover.observe()
    assert caught.value.reason is Reason.NOT_AUTHORIZED


@pytest.mark.parametrize("rights", [[(CLUSTER, DESCRIBE)]], indirect=True, ids=["describe on the cluster"])
@pytest.mark.usefixtures("rights")
def test_topics_that_the_user_may_not_see(mover: Kafka, superuser: Kafka) -> None:
    name = superuser.topic([0, 1])
    eventually(lambda: may_observe(mover))
    snapshot = mover.observe(name)
    assert {t: problem.reason for t, problem in snapshot.unread_topics.items()} == {name: Reason.NOT_AUTHORIZED}
    assert snapshot.topics == {}


@pytest.mark.parametrize("rights", [[(CLUSTER, DESCRIBE)]], indirect=True, ids=["describe on the cluster"])
@pytest.mark.usefixtures("rights")
def test_a_drain_names_the_logs_that_metadata_does_not_show(mover: Kafka, superuser: Kafka) -> None:
    name = superuser.topic([0, 1], megabytes=1)
    goal = {"clusterRef": {"name": "main"}, "topics": {"include": [name]}, "goal": {"drainBrokers": [0]}}
    spec, status = ReassignmentPlanSpec.parse(goal), ReassignmentPlanStatus()
    eventually(lambda: may_observe(mover))
    layout = asyncio.run(mover.client.observe_layout(lambda _: {0}))
    assert name not in layout.factors
    [part] = not_known(PlanResource("uid", 1, "kafka", "drain", 1, spec, status, False), layout, ["*"])
    assert part.what.startswith("1 log (")
    assert part.what.endswith(f"could not be read: {name}")


def test_the_claim_needs_read_on_its_group_and_service_goes_on_without(
    mover: Kafka, superuser: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEARTBEAT_SECONDS", "REFUSED_SECONDS"):
        monkeypatch.setattr(claim, name, 0.3)
    membership = claim.Membership("installation", "uid", "id", lambda: None)
    kind = ResourceType.GROUP, claim.GROUP_PREFIX, ResourcePatternType.PREFIXED
    term = (*kind, f"User:{USER}", "*", AclOperation.READ, AclPermissionType.ALLOW)

    def refused() -> bool:
        problem = membership.state.problem
        return problem is not None and problem.reason is Reason.NOT_AUTHORIZED and membership.group in problem.message

    mover.client.keep(membership)
    eventually(refused)
    assert membership.state.claimed is None
    superuser.workload.ask(lambda admin: admin.create_acls([AclBinding(*term)]))
    eventually(lambda: membership.state.decided and membership.state.problem is None)
    superuser.workload.ask(lambda admin: admin.delete_acls([AclBindingFilter(*term)]))
    eventually(refused)
    assert membership.state.claimed is None
    membership.stop()


@pytest.mark.parametrize(
    "rights", [[(CLUSTER, DESCRIBE), (TOPIC, DESCRIBE)]], indirect=True, ids=["describe on cluster and topics"]
)
@pytest.mark.usefixtures("rights")
def test_topics_whose_configs_the_user_may_not_see(mover: Kafka, superuser: Kafka) -> None:
    name = superuser.topic([0, 1])
    eventually(lambda: may_observe(mover))
    eventually(lambda: mover.observe(name).unread_topics.keys() == {name})


@pytest.mark.parametrize(
    "rights",
    [[(CLUSTER, DESCRIBE), (TOPIC, DESCRIBE), (TOPIC, DESCRIBE_CONFIGS)]],
    indirect=True,
    ids=["all but alter"],
)
@pytest.mark.usefixtures("rights")
def test_observing_is_allowed_and_moving_is_not(mover: Kafka, superuser: Kafka) -> None:
    tp = TopicPartition(superuser.topic([0, 1]), 0)
    eventually(lambda: may_observe(mover))
    for step in (Alter(tp, (1, 0)), Elect(tp)):
        [outcome] = mover.perform(step)
        assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.NOT_AUTHORIZED)
        assert outcome.message
    assert superuser.settled(tp, [0, 1])


@pytest.mark.parametrize(
    "rights",
    [[(CLUSTER, DESCRIBE), (CLUSTER, ALTER), (TOPIC, DESCRIBE), (TOPIC, DESCRIBE_CONFIGS)]],
    indirect=True,
    ids=["describe, describe configs, alter"],
)
@pytest.mark.usefixtures("rights")
def test_the_documented_rights_are_enough_to_observe_and_move(mover: Kafka, superuser: Kafka) -> None:
    tp = TopicPartition(superuser.topic([0, 1], megabytes=1), 0)
    eventually(lambda: may_observe(mover))
    eventually(lambda: tp.topic in mover.observe(tp.topic).topics)
    eventually(lambda: mover.perform(Alter(tp, (1, 0)), Elect(tp)) == [APPLIED, APPLIED])
    sizes = mover.observe(tp.topic, sizes_of=[tp]).sizes
    assert sizes is not None
    assert set(sizes[tp]) == {0, 1}


@pytest.mark.parametrize(
    "rights",
    [[(CLUSTER, DESCRIBE), (TOPIC, DESCRIBE), (TOPIC, DESCRIBE_CONFIGS)]],
    indirect=True,
    ids=["no broker configs"],
)
@pytest.mark.usefixtures("rights")
def test_a_snapshot_without_the_right_to_broker_configs_notes_it(mover: Kafka, superuser: Kafka) -> None:
    name = superuser.topic([0, 1], min_insync_replicas="2")
    eventually(lambda: may_observe(mover))
    eventually(lambda: name in mover.observe(name).topics)
    taken, notes = asyncio.run(snapshot(mover.client, None))
    assert notes == ["the configurations of brokers are left out (0, 1): grant DESCRIBE_CONFIGS on the cluster"]
    assert ("topic", name, "min.insync.replicas", "2") in taken.configs


@pytest.mark.parametrize(
    "rights",
    [
        [(CLUSTER, DESCRIBE), (CLUSTER, ALTER), (TOPIC, DESCRIBE), (TOPIC, DESCRIBE_CONFIGS)],
        [
            (CLUSTER, DESCRIBE),
            (CLUSTER, ALTER),
            (CLUSTER, DESCRIBE_CONFIGS),
            (TOPIC, DESCRIBE),
            (TOPIC, DESCRIBE_CONFIGS),
        ],
    ],
    indirect=True,
    ids=["broker configs not readable", "no configs writable"],
)
@pytest.mark.usefixtures("rights")
def test_throttles_without_the_right_to_them_are_refused_by_name(mover: Kafka, superuser: Kafka) -> None:
    tp = TopicPartition(superuser.topic([0]), 0)
    eventually(lambda: may_observe(mover))
    eventually(lambda: tp.topic in mover.observe(tp.topic).topics)
    operator = Operator(mover.client)
    operator.know(mover.observe(tp.topic))
    operator.grow_up()

    def refused() -> bool:
        verdict = operator.verdict("a", {tp: ([0], [1])}, "5Ki")
        operator.tick(mover.observe(tp.topic), [verdict])
        left = operator.after(verdict)
        assert left.steps == ()
        problem = left.rows[tp].said(SayingKind.PROBLEM)
        assert problem is not None
        return problem.reason is Reason.NOT_AUTHORIZED and "ALTER_CONFIGS" in problem.message

    eventually(refused)
    for place in (
        ConfigResource(ConfigResourceType.BROKER, "0"),
        ConfigResource(ConfigResourceType.BROKER, "1"),
        ConfigResource(ConfigResourceType.TOPIC, tp.topic),
    ):
        assert superuser.configs(place) == {place: {}}


def may_do_everything(user: Kafka, superuser: Kafka) -> None:
    """Observe, snapshot, throttle, move, elect and claim."""
    tp = TopicPartition(superuser.topic([0, 1], megabytes=1), 0)
    eventually(lambda: tp.topic in user.observe(tp.topic).topics)
    _, notes = asyncio.run(snapshot(user.client, None))
    assert notes == []
    topic, broker = ConfigResource(ConfigResourceType.TOPIC, tp.topic), ConfigResource(ConfigResourceType.BROKER, "0")
    wanted = {ConfigKey(topic, LEADER_REPLICAS): "0:0", ConfigKey(broker, LEADER_RATE): "5000"}
    for key, value in wanted.items():
        assert user.change(Change(key, Op.SET, value)).result is Result.APPLIED
    eventually(lambda: user.configs(topic, broker) == {topic: {LEADER_REPLICAS: "0:0"}, broker: {LEADER_RATE: "5000"}})
    for key in wanted:
        assert user.change(Change(key, Op.DELETE)).result is Result.APPLIED
    assert user.perform(Alter(tp, (1, 0)), Elect(tp)) == [APPLIED, APPLIED]
    membership = claim.Membership("installation", "uid", "id", lambda: None)
    user.client.keep(membership)
    eventually(lambda: membership.state.decided)
    assert membership.state.problem is None
    membership.stop()


@contextmanager
def connected(strict: Brokers, connection: Connection) -> Iterator[Kafka]:
    found = Kafka(strict, connection)
    eventually(lambda: may_observe(found))
    yield found
    found.close()


@pytest.fixture
def no_acls_left(superuser: Kafka) -> Iterator[None]:
    yield
    anything = ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    superuser.workload.ask(lambda admin: admin.delete_acls([AclBindingFilter(*anything)]))


@pytest.mark.usefixtures("no_acls_left")
def test_the_quickstarts_with_passwords_give_all_that_is_needed(
    strict: Brokers, superuser: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, authority = "docs/quickstart/plain.md", strict.certificates / "ca.crt"
    quickstarts.run_tools(page, strict, PASSWORD=strict.password)
    secrets = {"kafka-ca": {"ca.crt": authority.read_bytes()}, "kafka-mover": {"password": strict.password.encode()}}
    with connected(strict, quickstarts.connection(page, strict.scram_bootstrap_servers, secrets)) as user:
        may_do_everything(user, superuser)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))  # in place of the authorities that a system trusts
    secrets = {"msk-mover": {"username": USER.encode(), "password": strict.password.encode()}}
    connection = quickstarts.connection("docs/quickstart/msk.md", strict.scram_bootstrap_servers, secrets)
    with connected(strict, connection) as user:
        may_do_everything(user, superuser)


@pytest.mark.usefixtures("no_acls_left")
def test_the_secrets_and_the_user_of_strimzi_are_taken_as_they_are(
    strict: Brokers, superuser: Kafka, tmp_path: Path
) -> None:
    page = "docs/quickstart/strimzi.md"
    user = quickstarts.manifest(page, "KafkaUser")
    superuser.workload.ask(lambda admin: admin.create_acls(quickstarts.acls_of(user)))
    cluster = quickstarts.manifest(page, "Kafka")["metadata"]["name"]
    secrets = quickstarts.strimzi_secrets(strict, cluster, user["metadata"]["name"], tmp_path)
    with connected(strict, quickstarts.connection(page, strict.mutual_tls_bootstrap_servers, secrets)) as found:
        may_do_everything(found, superuser)


def test_throttles_that_are_left_are_deleted_as_the_page_says(strict: Brokers, superuser: Kafka) -> None:
    name = superuser.topic([0])
    topic, broker = ConfigResource(ConfigResourceType.TOPIC, name), ConfigResource(ConfigResourceType.BROKER, "0")
    left = {topic: (LEADER_REPLICAS, FOLLOWER_REPLICAS), broker: (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)}
    for resource, configs in left.items():
        for config in configs:
            value = "0:0" if resource is topic else "5000"
            assert superuser.change(Change(ConfigKey(resource, config), Op.SET, value)).result is Result.APPLIED
    eventually(
        lambda: {key: {*found} for key, found in superuser.configs(*left).items()} == {k: {*v} for k, v in left.items()}
    )
    quickstarts.run_tools("docs/concepts/throttles.md", strict, TOPIC=name, ID="0")
    eventually(lambda: superuser.configs(*left) == {topic: {}, broker: {}})
