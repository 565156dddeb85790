"""What the API server refuses, and that its answer names the field."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from reassign.api.common import bytes_per_second
from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.api.limits import MAX_PLAN_BROKERS, MAX_WINDOWS
from reassign.api.partition_reassignment import PartitionReassignmentSpec
from reassign.api.reassignment_plan import ReassignmentPlanSpec
from tests.api.kubectl import Kubectl, Object, RefusedError, by, cluster, entry, plan, reassignment

Edit = Callable[[Object], Any]


def entries(*items: Object) -> Edit:
    return lambda spec: spec.update(partitions=list(items))


def set_to(**fields: Any) -> Edit:
    return lambda spec: spec.update(fields)


BAD_REASSIGNMENTS: dict[str, tuple[Edit, str]] = {
    "no clusterRef": (lambda spec: spec.pop("clusterRef"), "spec.clusterRef: Required value"),
    "a cluster name that no object can have": (set_to(clusterRef={"name": "Main_"}), "spec.clusterRef.name"),
    "no list of partitions": (lambda spec: spec.pop("partitions"), "spec.partitions: Required value"),
    "no partitions": (entries(), "spec.partitions"),
    "more than 2000 partitions": (
        entries(*(entry(partition=number) for number in range(2001))),
        "spec.partitions: Too many: 2001: must have at most 2000 items",
    ),
    "topic names that are too long together": (
        entries(*(entry(topic="t" * 80, partition=number) for number in range(2000))),
        "the topic names in partitions together have 160000 characters or more",
    ),
    "the same partition twice": (
        entries(entry(), entry(replicas=[4, 5, 6])),
        "spec.partitions[1]: Duplicate value",
    ),
    "no replicas": (entries(entry(replicas=[])), "spec.partitions[0].replicas"),
    "a missing list of replicas": (
        entries({"topic": "orders", "partition": 0}),
        "spec.partitions[0].replicas: Required value",
    ),
    "more than 16 replicas": (
        entries(entry(replicas=list(range(17)))),
        "spec.partitions[0].replicas: Too many: 17: must have at most 16 items",
    ),
    "a broker twice in the replicas": (
        entries(entry(), entry(partition=1, replicas=[1, 2, 1])),
        "spec.partitions[1].replicas: Invalid value",
    ),
    "a negative broker id": (entries(entry(replicas=[1, -1])), "spec.partitions[0].replicas[1]"),
    "a broker id that is no number": (entries(entry(replicas=["one"])), "spec.partitions[0].replicas[0]"),
    "a broker twice in what is expected": (
        entries(entry(expectedReplicas=[1, 1])),
        "spec.partitions[0].expectedReplicas: Invalid value",
    ),
    "a negative partition": (entries(entry(partition=-1)), "spec.partitions[0].partition"),
    "an empty topic name": (entries(entry(topic="")), "spec.partitions[0].topic"),
    "a topic name with a character that Kafka forbids": (entries(entry(topic="a b")), "spec.partitions[0].topic"),
    "a topic name with a line break": (entries(entry(topic="a\n")), "spec.partitions[0].topic"),
    "a topic name of 250 characters": (entries(entry(topic="t" * 250)), "spec.partitions[0].topic"),
    "a topic named with one dot": (entries(entry(topic=".")), "spec.partitions[0].topic"),
    "a topic named with two dots": (entries(entry(topic="..")), "spec.partitions[0].topic"),
    "fewer log directories than replicas": (
        entries(entry(logDirs=["any", "any"])),
        "spec.partitions[0].logDirs: Invalid value",
    ),
    "more log directories than replicas": (
        entries(entry(logDirs=["any"] * 4)),
        "logDirs must have as many items as replicas",
    ),
    "a log directory that is no absolute path": (
        entries(entry(logDirs=["any", "data", "any"])),
        "spec.partitions[0].logDirs[1]",
    ),
    "an unknown replicationFactorChange": (
        set_to(replicationFactorChange="Maybe"),
        "spec.replicationFactorChange: Unsupported value",
    ),
    "an unknown whenInFlight": (set_to(whenInFlight="Hope"), "spec.whenInFlight: Unsupported value"),
    "an unknown admission": (set_to(admission="Sometimes"), "spec.admission: Unsupported value"),
    "an unknown preferredLeader": (set_to(preferredLeader="elect"), "spec.preferredLeader: Unsupported value"),
    "an unknown deletionPolicy": (set_to(deletionPolicy="Delete"), "spec.deletionPolicy: Unsupported value"),
    "an unknown mode": (set_to(mode="Dry"), "spec.mode: Unsupported value"),
    "a suspend that is no boolean": (set_to(suspend="yes"), "spec.suspend"),
    "a stall time-out of nothing": (set_to(stallTimeoutSeconds=0), "spec.stallTimeoutSeconds"),
    "a negative deadline": (set_to(deadlineSeconds=-1), "spec.deadlineSeconds"),
    "a negative time to live": (set_to(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished"),
    "a negative deletion deadline": (set_to(deletionDeadlineSeconds=-1), "spec.deletionDeadlineSeconds"),
    "a concurrency of no partitions": (set_to(concurrency={"partitions": 0}), "spec.concurrency.partitions"),
    "a concurrency of no moves": (set_to(concurrency={"movesPerBroker": 0}), "spec.concurrency.movesPerBroker"),
    "an unknown field": (set_to(supsend=True), 'unknown field "spec.supsend"'),
}

SECRET = {"name": "user", "key": "password"}
OAUTH = {
    "tokenEndpointUrl": "https://id.example.org/token",
    "clientId": "mover",
    "clientSecretRef": {"name": "oauth", "key": "secret"},
}


def sasl(mechanism: str = "SCRAM-SHA-512", **fields: Any) -> Edit:
    return set_to(sasl={"mechanism": mechanism, **fields})


BAD_CLUSTERS: dict[str, tuple[Edit, str]] = {
    "no bootstrapServers": (lambda spec: spec.pop("bootstrapServers"), "spec.bootstrapServers: Required value"),
    "bootstrap servers without a port": (set_to(bootstrapServers="b0"), "spec.bootstrapServers"),
    "bootstrap servers with a scheme": (set_to(bootstrapServers="kafka://b0:9092"), "spec.bootstrapServers"),
    "bootstrap servers that end in a comma": (set_to(bootstrapServers="b0:9092,"), "spec.bootstrapServers"),
    "a port above 65535": (set_to(bootstrapServers="b0:9092,b1:99999"), "spec.bootstrapServers"),
    "port 0": (set_to(bootstrapServers="b0:0"), "spec.bootstrapServers"),
    "an unknown execution": (set_to(execution="Stop"), "spec.execution: Unsupported value"),
    "an unknown deletionPolicy": (set_to(deletionPolicy="Cancel"), "spec.deletionPolicy: Unsupported value"),
    "an unknown pauseWhen": (set_to(pauseWhen="Always"), "spec.pauseWhen: Unsupported value"),
    "an unknown mechanism": (sasl("GSSAPI"), "spec.sasl.mechanism: Unsupported value"),
    "sasl without tls": (
        sasl(username="mover", passwordSecretRef=SECRET),
        "spec.sasl: Invalid value: sasl without tls is not encrypted: set tls, or sasl.allowPlaintext: true",
    ),
    "a throttle above the maximum": (
        set_to(limits={"maxThrottle": "50Mi"}, throttle={"interBroker": "51Mi"}),
        "spec.throttle.interBroker: Invalid value: throttle.interBroker is above limits.maxThrottle",
    ),
    "a throttle of log directories above the maximum": (
        set_to(limits={"maxThrottle": 1048576}, throttle={"interBroker": "1Mi", "logDir": 1048577}),
        "spec.throttle.logDir: Invalid value: throttle.logDir is above limits.maxThrottle",
    ),
    "a number above the maximum": (
        set_to(limits={"maxThrottle": "1.5Mi"}, throttle={"interBroker": 1572865}),
        "throttle.interBroker is above limits.maxThrottle",
    ),
    "a throttle below the minimum": (
        set_to(limits={"minThrottle": "50Mi"}, throttle={"interBroker": "49Mi"}),
        "spec.throttle.interBroker: Invalid value: throttle.interBroker is below limits.minThrottle",
    ),
    "a number of log directories below the minimum": (
        set_to(limits={"minThrottle": "1Mi"}, throttle={"interBroker": 1048576, "logDir": 1048575}),
        "spec.throttle.logDir: Invalid value: throttle.logDir is below limits.minThrottle",
    ),
    "a minimum above the maximum": (
        set_to(limits={"minThrottle": "2Mi", "maxThrottle": 1048576}),
        "spec.limits.minThrottle: Invalid value: minThrottle is above maxThrottle",
    ),
    "both a username and a usernameSecretRef": (
        sasl(username="mover", usernameSecretRef=SECRET, passwordSecretRef=SECRET),
        "sasl needs exactly one of username and usernameSecretRef",
    ),
    "no user name": (sasl(passwordSecretRef=SECRET), "sasl needs exactly one of username and usernameSecretRef"),
    "no password": (sasl(username="mover"), "sasl needs passwordSecretRef"),
    "no oauth with its mechanism": (sasl("OAUTHBEARER"), "sasl needs oauth with mechanism OAUTHBEARER"),
    "oauth with another mechanism": (
        sasl("PLAIN", username="mover", passwordSecretRef=SECRET, oauth=OAUTH),
        "sasl needs oauth with mechanism OAUTHBEARER, and takes it with no other",
    ),
    "a password beside oauth": (
        sasl("OAUTHBEARER", oauth=OAUTH, passwordSecretRef=SECRET),
        "sasl takes neither user name nor password with mechanism OAUTHBEARER",
    ),
    "a token endpoint over plain http": (
        sasl("OAUTHBEARER", oauth={**OAUTH, "tokenEndpointUrl": "http://id.example.org/token"}),
        "spec.sasl.oauth.tokenEndpointUrl",
    ),
    "a token endpoint with a password in its address": (
        sasl("OAUTHBEARER", oauth={**OAUTH, "tokenEndpointUrl": "https://user:password@id.example.org/token"}),
        "spec.sasl.oauth.tokenEndpointUrl",
    ),
    "a client without an id": (sasl("OAUTHBEARER", oauth={**OAUTH, "clientId": ""}), "spec.sasl.oauth.clientId"),
    "a Secret's name that no Secret can have": (
        set_to(tls={"caSecretRef": {"name": "_", "key": "ca.crt"}}),
        "spec.tls.caSecretRef.name",
    ),
    "a Secret without a key": (set_to(tls={"caSecretRef": {"name": "ca"}}), "spec.tls.caSecretRef.key"),
    "no partitions in flight": (set_to(limits={"partitionsInFlight": 0}), "spec.limits.partitionsInFlight"),
    "no moves per broker": (set_to(limits={"movesPerBroker": 0}), "spec.limits.movesPerBroker"),
    "more free disk than there is": (set_to(limits={"minFreeDiskPercent": 101}), "spec.limits.minFreeDiskPercent"),
    "a highest throttle that is no quantity": (set_to(limits={"maxThrottle": "fast"}), "spec.limits.maxThrottle"),
    "small moves of less than nothing": (set_to(limits={"smallMoveBytes": -1}), "spec.limits.smallMoveBytes"),
    "small moves of a size that is no quantity": (
        set_to(limits={"smallMoveBytes": "tiny"}),
        "spec.limits.smallMoveBytes",
    ),
    "an allowed namespace without topics": (
        set_to(allowedNamespaces=[{"name": "team-a"}]),
        "spec.allowedNamespaces[0].topics: Required value",
    ),
    "an allowed namespace twice": (
        set_to(allowedNamespaces=[{"name": "a", "topics": ["*"]}, {"name": "a", "topics": ["b"]}]),
        "spec.allowedNamespaces[1]: Duplicate value",
    ),
}


DIGEST = f"sha256:{'0a' * 32}"


def goal(**fields: Any) -> Edit:
    return set_to(goal=fields)


WINDOW = {"cron": "0 22 * * 1-5", "durationSeconds": 21600, "timeZone": "Europe/Berlin"}


def windows(**fields: Any) -> Edit:
    return set_to(windows=[WINDOW | fields])


BAD_PLANS: dict[str, tuple[Edit, str]] = {
    "no clusterRef": (lambda spec: spec.pop("clusterRef"), "spec.clusterRef: Required value"),
    "no goal": (lambda spec: spec.pop("goal"), "spec.goal: Required value"),
    "a goal that names nothing": (goal(), "goal needs at least one of drainBrokers, brokers, replicationFactor"),
    "no brokers to drain": (goal(drainBrokers=[]), "spec.goal.drainBrokers"),
    "a broker drained twice": (goal(drainBrokers=[5, 4, 5]), "spec.goal.drainBrokers: Invalid value"),
    "a broker twice among those that may have replicas": (goal(brokers=[1, 1]), "spec.goal.brokers: Invalid value"),
    "a negative broker id": (goal(brokers=[1, -1]), "spec.goal.brokers[1]"),
    "too many brokers": (goal(brokers=list(range(MAX_PLAN_BROKERS + 1))), "spec.goal.brokers: Too many"),
    "a broker that is drained and may have replicas": (
        goal(brokers=[1, 2, 5], drainBrokers=[5]),
        "a broker that is drained cannot be one of brokers",
    ),
    "a broker that is drained and avoided": (
        goal(drainBrokers=[5], avoidBrokers=[6, 5]),
        "a broker that is drained cannot be one of avoidBrokers",
    ),
    "a broker that is left out and avoided": (
        goal(brokers=[1, 2], avoidBrokers=[2, 3]),
        "a broker that is drained cannot be one of avoidBrokers",
    ),
    "a broker avoided twice": (goal(drainBrokers=[5], avoidBrokers=[6, 6]), "spec.goal.avoidBrokers: Invalid value"),
    "brokers that are avoided for no goal": (goal(avoidBrokers=[6]), "goal needs at least one of"),
    "a narrow scope without a drain": (goal(brokers=[1, 2], scope="Drained"), "scope Drained needs drainBrokers"),
    "a narrow scope with a balance": (goal(drainBrokers=[5], balance={}, scope="Drained"), "excludes balance"),
    "a narrow scope with a factor": (goal(drainBrokers=[5], replicationFactor=3, scope="Drained"), "excludes balance"),
    "an unknown scope": (goal(drainBrokers=[5], scope="Some"), "spec.goal.scope: Unsupported value"),
    "an unknown way with fenced brokers": (
        goal(drainBrokers=[5], fencedBrokers="Move"),
        "spec.goal.fencedBrokers: Unsupported value",
    ),
    "no replicas": (goal(replicationFactor=0), "spec.goal.replicationFactor"),
    "17 replicas": (goal(replicationFactor=17), "spec.goal.replicationFactor"),
    "a balance by nothing": (goal(balance={"by": []}), "spec.goal.balance.by"),
    "a balance by one thing twice": (goal(balance={"by": ["Disk", "Disk"]}), "names a resource more than once"),
    "a balance by what is unknown": (goal(balance={"by": ["Cpu"]}), "spec.goal.balance.by[0]: Unsupported value"),
    "a tolerance of nothing": (goal(balance={"tolerancePercent": 0}), "spec.goal.balance.tolerancePercent"),
    "a tolerance that is no integer": (goal(balance={"tolerancePercent": 2.5}), "spec.goal.balance.tolerancePercent"),
    "no topics": (set_to(topics={"include": []}), "spec.topics.include"),
    "a topic pattern twice": (set_to(topics={"exclude": ["a*", "a*"]}), "spec.topics.exclude: Invalid value"),
    "a topic pattern with brackets": (set_to(topics={"include": ["[ab]*"]}), "spec.topics.include[0]"),
    "an unknown awareness": (set_to(racks={"awareness": "Some"}), "spec.racks.awareness: Unsupported value"),
    "waves of nothing": (set_to(waves={"maxPartitions": 0}), "spec.waves.maxPartitions"),
    "waves of more than 500 partitions": (set_to(waves={"maxPartitions": 501}), "spec.waves.maxPartitions"),
    "waves of less than a kibibyte": (set_to(waves={"maxBytes": 1023}), "spec.waves.maxBytes"),
    "waves of bytes that are no quantity": (set_to(waves={"maxBytes": "500GB"}), "spec.waves.maxBytes"),
    "an unknown approval": (set_to(approval="Perhaps"), "spec.approval: Unsupported value"),
    "an approval that is no digest": (set_to(approvedDigest="yes"), "spec.approvedDigest"),
    "an approval cut short": (set_to(approvedDigest=DIGEST[:-1]), "spec.approvedDigest"),
    "a suspend that is no boolean": (set_to(suspend="yes"), "spec.suspend"),
    "a throttle in the template that is too low": (
        set_to(template={"throttle": {"interBroker": "1"}}),
        "spec.template.throttle.interBroker",
    ),
    "a window of six fields": (
        windows(cron="0 0 22 * * *"),
        "must be five fields with",
    ),
    "a window with a macro": (windows(cron="@daily"), "spec.windows[0].cron"),
    "a window with a time zone in its cron": (windows(cron="TZ=Etc/UTC 0 * * *"), "spec.windows[0].cron"),
    "a window of a time zone that is a path": (windows(timeZone="../UTC"), "must be the name of a time zone"),
    "a window of less than five minutes": (windows(durationSeconds=299), "spec.windows[0].durationSeconds"),
    "a window of more than a week": (windows(durationSeconds=604801), "spec.windows[0].durationSeconds"),
    "a window without a duration": (set_to(windows=[{"cron": "0 22 * * *"}]), "spec.windows[0].durationSeconds"),
    "too many windows": (set_to(windows=[WINDOW] * (MAX_WINDOWS + 1)), "spec.windows: Too many"),
    "a mode in the template": (set_to(template={"mode": "DryRun"}), 'unknown field "spec.template.mode"'),
}


@pytest.mark.parametrize(("edit", "answer"), BAD_PLANS.values(), ids=BAD_PLANS.keys())
def test_a_bad_plan_is_refused_and_its_field_named(sandbox: Kubectl, edit: Edit, answer: str) -> None:
    manifest = plan()
    edit(manifest["spec"])
    with pytest.raises(RefusedError) as refusal:
        sandbox.apply(manifest, "--dry-run=server")
    assert answer in str(refusal.value)


def test_a_plan_whose_name_is_no_label_is_refused(sandbox: Kubectl) -> None:
    sandbox.apply(plan("p" * 63), "--dry-run=server")
    with pytest.raises(RefusedError, match="the name of a plan has at most 63 characters"):
        sandbox.apply(plan("p" * 64), "--dry-run=server")


def test_the_largest_plan_is_within_the_cost_budget_of_the_rules(sandbox: Kubectl) -> None:
    many = list(range(MAX_PLAN_BROKERS))
    drained = list(range(MAX_PLAN_BROKERS, 2 * MAX_PLAN_BROKERS))
    sandbox.apply(plan(goal={"brokers": many, "drainBrokers": drained, "avoidBrokers": many}), "--dry-run=server")


def test_a_plan_is_of_one_cluster_for_ever(sandbox: Kubectl) -> None:
    sandbox.apply(plan())
    with pytest.raises(RefusedError, match="clusterRef cannot be changed"):
        sandbox.apply(plan(clusterRef={"name": "other"}))


def test_a_plan_that_uses_every_field_is_accepted_whole(sandbox: Kubectl) -> None:
    wanted = {
        "clusterRef": {"name": "main", "namespace": "kafka"},
        "topics": {"include": ["orders-*", "p?yments"], "exclude": []},
        "goal": {
            "drainBrokers": [5],
            "brokers": [0, 1, 2, 3, 4, 6],
            "replicationFactor": 3,
            "balance": {"by": ["Leaders", "Disk"], "tolerancePercent": 5},
            "scope": "All",
            "avoidBrokers": [6],
            "fencedBrokers": "Replace",
        },
        "racks": {"awareness": "Flat"},
        "waves": {"maxPartitions": 500, "maxBytes": "1Pi"},
        "approval": "NotRequired",
        "approvedDigest": DIGEST,
        "suspend": True,
        "windows": [WINDOW, WINDOW | {"cron": "*/5 0-6,22 L JAN,DEC SUN#1", "timeZone": "America/Port-au-Prince"}],
        "template": {
            "throttle": {"interBroker": "50Mi", "logDir": 20971520},
            "concurrency": {"partitions": 100, "movesPerBroker": 5},
            "whenInFlight": "Supersede",
            "admission": "WhenIdle",
            "preferredLeader": "Keep",
            "deletionPolicy": "Orphan",
            "deletionDeadlineSeconds": 3600,
            "stallTimeoutSeconds": 60,
            "deadlineSeconds": 86400,
            "ttlSecondsAfterFinished": 0,
        },
        "ttlSecondsAfterFinished": 604800,
    }
    sandbox.apply(plan(**wanted), *by("tester"))
    stored = sandbox.read("krp", "drain")["spec"]
    assert stored == wanted
    assert ReassignmentPlanSpec.parse(stored).wire() == wanted


def test_the_api_server_fills_in_the_defaults_of_a_plan(sandbox: Kubectl) -> None:
    window = {"cron": "0 22 * * *", "durationSeconds": 300}
    sandbox.apply(plan(goal={"balance": {}}, windows=[window]))
    stored = sandbox.read("krp", "drain")["spec"]
    minimal = {"clusterRef": {"name": "main"}, "goal": {"balance": {}}, "windows": [window]}
    assert stored == ReassignmentPlanSpec.parse(minimal).wire()
    assert stored["topics"] == {"include": ["*"]}
    assert stored["windows"] == [window | {"timeZone": "Etc/UTC"}]


@pytest.mark.parametrize(("edit", "answer"), BAD_REASSIGNMENTS.values(), ids=BAD_REASSIGNMENTS.keys())
def test_a_bad_reassignment_is_refused_and_its_field_named(sandbox: Kubectl, edit: Edit, answer: str) -> None:
    manifest = reassignment()
    edit(manifest["spec"])
    with pytest.raises(RefusedError) as refusal:
        sandbox.apply(manifest, "--dry-run=server")
    assert answer in str(refusal.value)


@pytest.mark.parametrize(("edit", "answer"), BAD_CLUSTERS.values(), ids=BAD_CLUSTERS.keys())
def test_a_bad_cluster_is_refused_and_its_field_named(sandbox: Kubectl, edit: Edit, answer: str) -> None:
    manifest = cluster()
    edit(manifest["spec"])
    with pytest.raises(RefusedError) as refusal:
        sandbox.apply(manifest, "--dry-run=server")
    assert answer in str(refusal.value)


@pytest.mark.parametrize("quantity", ["50m", 0, "0", "50MB", 1023, "1025Gi", "-1Mi", "fast", "1" * 33])
@pytest.mark.parametrize("field", ["interBroker", "logDir"])
def test_a_throttle_that_is_no_quantity_or_out_of_bounds_is_refused(
    sandbox: Kubectl, quantity: int | str, field: str
) -> None:
    with pytest.raises(RefusedError, match=rf"spec\.throttle\.{field}"):
        sandbox.apply(reassignment(throttle={field: quantity}), "--dry-run=server")


def test_every_accepted_quantity_is_a_number_to_the_operator(sandbox: Kubectl) -> None:
    for quantity in (1024, "1Ki", "50Mi", "1.5Gi", "1e6", "1e0005", "2k", "1Ti", 2**40):
        sandbox.apply(reassignment(throttle={"interBroker": quantity}), "--dry-run=server")
        bytes_per_second(quantity)


BAD_CHANGES: dict[str, tuple[Edit, Edit, str]] = {
    "another cluster": (set_to(), set_to(clusterRef={"name": "other"}), "clusterRef cannot be changed"),
    "another namespace of the cluster": (
        set_to(),
        set_to(clusterRef={"name": "main", "namespace": "other"}),
        "clusterRef cannot be changed",
    ),
    "Execute turned into DryRun": (
        set_to(),
        set_to(mode="DryRun"),
        "mode cannot be changed from Execute to DryRun",
    ),
}


@pytest.mark.parametrize(("before", "after", "answer"), BAD_CHANGES.values(), ids=BAD_CHANGES.keys())
def test_a_change_that_cannot_be_is_refused(sandbox: Kubectl, before: Edit, after: Edit, answer: str) -> None:
    manifest = reassignment()
    before(manifest["spec"])
    sandbox.apply(manifest)
    after(manifest["spec"])
    with pytest.raises(RefusedError) as refusal:
        sandbox.apply(manifest)
    assert f"spec.{answer.split()[0]}: Invalid value" in str(refusal.value)
    assert answer in str(refusal.value)


def test_a_dry_run_can_be_turned_into_the_real_thing(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment(mode="DryRun"))
    sandbox.apply(reassignment(mode="Execute"))
    assert sandbox.read("kpr", "move")["spec"]["mode"] == "Execute"


def test_an_entry_and_an_option_can_be_changed_in_flight(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.apply(reassignment(partitions=[entry(replicas=[4, 5, 6])], suspend=True, deletionPolicy="Orphan"))
    spec = sandbox.read("kpr", "move")["spec"]
    assert spec["partitions"][0]["replicas"] == [4, 5, 6]
    assert spec["deletionPolicy"] == "Orphan"


def test_a_spec_that_uses_every_field_is_accepted_whole(sandbox: Kubectl) -> None:
    wanted = {
        "clusterRef": {"name": "main", "namespace": "kafka"},
        "partitions": [entry(expectedReplicas=[0, 1, 2], logDirs=["any", "any", "/data/b"])],
        "replicationFactorChange": "Allow",
        "whenInFlight": "Supersede",
        "admission": "WhenIdle",
        "throttle": {"interBroker": "50Mi", "logDir": 20971520},
        "concurrency": {"partitions": 100, "movesPerBroker": 5},
        "preferredLeader": "Keep",
        "deletionPolicy": "Orphan",
        "deletionDeadlineSeconds": 3600,
        "mode": "DryRun",
        "suspend": True,
        "stallTimeoutSeconds": 60,
        "deadlineSeconds": 86400,
        "ttlSecondsAfterFinished": 604800,
    }
    sandbox.apply(reassignment(**wanted), *by("tester"))
    stored = sandbox.read("kpr", "move")["spec"]
    assert stored == wanted
    assert PartitionReassignmentSpec.parse(stored).wire() == wanted


def test_a_cluster_that_uses_every_field_is_accepted_whole(sandbox: Kubectl) -> None:
    wanted = {
        "bootstrapServers": "b0.kafka:9092,10.0.0.1:9093,[::1]:9094",
        "deletionPolicy": "Orphan",
        "tls": {
            "caSecretRef": {"name": "kafka-ca", "key": "ca.crt"},
            "certificateSecretRef": {"name": "client", "certificateKey": "user.crt", "privateKeyKey": "user.key"},
        },
        "sasl": {
            "mechanism": "OAUTHBEARER",
            "oauth": {**OAUTH, "scope": "kafka", "caSecretRef": {"name": "id-ca", "key": "ca.crt"}},
            "allowPlaintext": True,
        },
        "execution": "CancelOurs",
        "limits": {
            "partitionsInFlight": 10,
            "movesPerBroker": 1,
            "smallMoveBytes": 0,
            "maxThrottle": "200Mi",
            "minThrottle": "1Mi",
            "perNamespace": {"partitionsInFlight": 5, "movesPerBroker": 1},
            "minFreeDiskPercent": 0,
            "pacing": "Adaptive",
        },
        "throttle": {"interBroker": "50Mi", "logDir": "20Mi"},
        "pauseWhen": "Never",
        "allowedNamespaces": [{"name": "team-a", "topics": ["team-a-*"]}],
    }
    sandbox.apply(cluster(**wanted), *by("tester"))
    stored = sandbox.read("kcl", "main")["spec"]
    assert stored == wanted
    assert KafkaClusterSpec.parse(stored).wire() == wanted


def test_the_api_server_fills_in_the_defaults_that_the_models_have(sandbox: Kubectl) -> None:
    minimal = {"clusterRef": {"name": "main"}, "partitions": [entry()]}
    sandbox.apply(reassignment())
    sandbox.apply(cluster())
    stored = sandbox.read("kpr", "move")["spec"]
    assert stored == PartitionReassignmentSpec.parse(minimal).wire()
    stored = sandbox.read("kcl", "main")["spec"]
    filled = KafkaClusterSpec.parse({"bootstrapServers": stored["bootstrapServers"]})
    assert KafkaClusterSpec.parse(deepcopy(stored)) == filled
    assert stored["limits"] == filled.limits.wire()


PLAINTEXT_SASL = {"mechanism": "PLAIN", "username": "mover", "passwordSecretRef": SECRET}


@pytest.mark.parametrize(
    "spec",
    [
        {"sasl": PLAINTEXT_SASL | {"allowPlaintext": True}},
        {"sasl": PLAINTEXT_SASL, "tls": {}},
        {"limits": {"maxThrottle": "50Mi"}, "throttle": {"interBroker": 50 * 2**20, "logDir": "51200Ki"}},
        {"limits": {"maxThrottle": "50Mi"}, "throttle": {}},
        {"limits": {"minThrottle": "1Mi", "maxThrottle": 1048576}, "throttle": {"interBroker": "1024Ki"}},
        {"throttle": {"interBroker": "1Ti"}},
    ],
)
def test_a_cluster_within_the_rules_is_accepted(sandbox: Kubectl, spec: dict[str, Any]) -> None:
    sandbox.apply(cluster(**spec), "--dry-run=server")


def test_an_edit_that_breaks_a_rule_of_a_cluster_is_refused(sandbox: Kubectl) -> None:
    sandbox.apply(cluster(sasl=PLAINTEXT_SASL, tls={}, limits={"maxThrottle": "2Mi"}, throttle={"logDir": "1Mi"}))
    for change, refused in (
        ({"tls": None}, "sasl without tls"),
        ({"throttle": {"logDir": "3Mi"}}, "above limits.maxThrottle"),
        ({"limits": {"maxThrottle": "1000Ki"}}, "above limits.maxThrottle"),
    ):
        with pytest.raises(RefusedError, match=refused):
            sandbox.patch("kcl", "main", {"spec": change})


def test_empty_tls_stays_and_a_client_certificate_gets_its_usual_keys(sandbox: Kubectl) -> None:
    sandbox.apply(cluster(tls={}))
    assert sandbox.read("kcl", "main")["spec"]["tls"] == {}
    sandbox.apply(cluster(tls={"certificateSecretRef": {"name": "client"}}))
    assert sandbox.read("kcl", "main")["spec"]["tls"]["certificateSecretRef"] == {
        "name": "client",
        "certificateKey": "tls.crt",
        "privateKeyKey": "tls.key",
    }
