"""What the quickstarts show, with the addresses, the password and the certificates of real brokers in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from localplatform.brokers import Brokers
from localplatform.certificates import issue, make_authority
from localplatform.processes import run
from reassign.api.kafka_cluster import KafkaCluster
from reassign.inspect.connect import connection_of
from reassign.kafka.connection import Connection
from tests.pages import manifests, of_program

Secrets = Mapping[str, Mapping[str, bytes]]

RESOURCES = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
OPERATIONS = {name.replace("_", "").lower(): operation for name, operation in AclOperation.__members__.items()}


class Namespace:
    """In place of an API server: the Secrets of a namespace."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        assert namespace == "kafka"
        return self._secrets[name]


def manifest(page: str, kind: str) -> dict[str, Any]:
    """The only one of a kind on a page."""
    (found,) = (found for block, found in manifests() if block.page == page and found.get("kind") == kind)
    return found


def connection(page: str, bootstrap_servers: str, secrets: Secrets) -> Connection:
    """What the operator makes of the page's KafkaCluster and these Secrets, at another address."""
    shown = manifest(page, "KafkaCluster")
    shown["spec"]["bootstrapServers"] = bootstrap_servers
    return asyncio.run(connection_of(KafkaCluster.parse(shown), Namespace(secrets)))  # type: ignore[arg-type]


def run_tools(page: str, brokers: Brokers, **names: str) -> None:
    """Run the page's commands of Kafka's tools with what stands there for a user's names."""
    for command in of_program("kafka-acls.sh", "kafka-configs.sh"):
        if command.page == page:
            tool, server, address, *words = command.words
            assert (server, address) == ("--bootstrap-server", "HOST:PORT")
            for name, value in names.items():
                words = [word.replace(name, value) for word in words]
            brokers.tool(tool.removeprefix("kafka-").removesuffix(".sh"), *words)


def acls_of(user: dict[str, Any]) -> list[AclBinding]:
    """The ACLs that Strimzi's User Operator makes of a KafkaUser with a certificate."""
    principal = f"User:CN={user['metadata']['name']}"
    bindings = []
    for acl in user["spec"]["authorization"]["acls"]:
        resource = acl["resource"]
        named = (
            RESOURCES[resource["type"]],
            resource.get("name", "kafka-cluster"),
            PATTERNS[resource.get("patternType", "literal")],
        )
        for operation in acl["operations"]:
            wanted = OPERATIONS[operation.lower()]
            bindings.append(AclBinding(*named, principal, "*", wanted, AclPermissionType.ALLOW))
    return bindings


def strimzi_secrets(brokers: Brokers, cluster: str, user: str, folder: Path) -> Secrets:
    """The Secrets that Strimzi's operators write of a cluster and of a user with a certificate.

    The user's has the authority of clients. The one that signed the brokers' certificates is the cluster's.
    """
    issue(brokers.certificates, user)
    certificate, key = (brokers.certificates / f"{user}.{end}" for end in ("crt", "key"))
    authority, p12 = brokers.certificates / "ca.crt", folder / "user.p12"
    run(["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-out", p12, "-passout", "pass:secret"])
    clients = make_authority(folder / "clients")
    return {
        f"{cluster}-cluster-ca-cert": {
            "ca.crt": authority.read_bytes(),
            "ca.p12": p12.read_bytes(),
            "ca.password": b"secret",
        },
        user: {
            "ca.crt": clients.read_bytes(),
            "user.crt": certificate.read_bytes(),
            "user.key": key.read_bytes(),
            "user.p12": p12.read_bytes(),
            "user.password": b"secret",
        },
    }
