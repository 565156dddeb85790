"""Kafka brokers with racks for the platform and the tests: KRaft controllers, and brokers 0, 1, 2, ...

Nothing survives: a start wipes the data. Every broker listens without security on loopback; on request also
for pods on a bridge, and with TLS: one listener for SCRAM users, one for the other SASL mechanisms, one for client
certificates.
"""

import json
import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from localplatform import cache
from localplatform.certificates import issue, make_authority, write_private
from localplatform.console import PlatformError, say
from localplatform.java import DEFAULT_VERSION, JVM, LOGGING, libs, run_java, tool_class
from localplatform.ports import LOOPBACK, free_base_port, refuse_taken
from localplatform.processes import Process, Processes, run
from localplatform.signing import AUDIENCE, ISSUER, make_signing_key

__all__ = [
    "DEFAULT_VERSION",
    "PLATFORM_PORT",
    "USER",
    "Brokers",
    "class_archive",
    "libs",
    "load",
    "running",
    "start",
]

PLATFORM_PORT = 9092
ARCHIVE, QUIET = "kafka.jsa", ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""Warnings go to stderr: a JVM that cannot use its archive says so on stdout, which is the tool's output."""
FIRST_CONTROLLER = 100
CONTROLLERS = 3
"""How many there are by default: dedicated nodes, as in production, so that one may die with no broker."""
USER = "mover"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer"


@dataclass(frozen=True)
class Brokers:
    """A cluster that runs, or can: where it is, and how to reach and disturb it."""

    directory: Path
    processes: Processes
    version: str
    count: int
    base_port: int
    """Broker i listens on base_port + i, with TLS 100 and 150 (SASL) and 200 (certificates) above,
    for pods without security 300 above; the controllers 40 to 42 above."""
    bridge: str | None = None
    """The address of a bridge that pods reach: without security, and there the SCRAM listener as well."""
    secure: bool = False
    authorizer: bool = False
    """Deny what no ACL allows, except to who comes without security on loopback or the bridge."""
    jvm: Sequence[str] = ()
    """JVM options of nodes and tools, besides the common ones."""
    controller_count: int = CONTROLLERS

    @property
    def ids(self) -> range:
        return range(self.count)

    @property
    def controllers(self) -> range:
        """The ids of the controllers' quorum."""
        return range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.controller_count)

    @property
    def bootstrap_servers(self) -> str:
        return self._servers(LOOPBACK, 0)

    @property
    def controller_servers(self) -> str:
        """The controllers' listeners, which no client is to name as bootstrap servers."""
        return ",".join(f"{host}:{port}" for host, port in self._controller_addresses.values())

    @property
    def bridge_bootstrap_servers(self) -> str:
        """Without security, for pods."""
        if not self.bridge:
            raise PlatformError("these brokers do not listen on a bridge")
        return self._servers(self.bridge, 300)

    @property
    def scram_bootstrap_servers(self) -> str:
        """TLS and SCRAM-SHA-512, for USER with `password`; on the bridge if there is one, or loopback."""
        return self._servers(self.bridge or LOOPBACK, 100)

    @property
    def other_sasl_bootstrap_servers(self) -> str:
        """TLS and SCRAM-SHA-256 or PLAIN, for USER with `password`, or OAUTHBEARER, for whom `signing` signs a token
        for; on loopback."""
        return self._servers(LOOPBACK, 150)

    @property
    def mutual_tls_bootstrap_servers(self) -> str:
        """TLS with a client certificate (client.crt, client.key in `certificates`), on loopback."""
        return self._servers(LOOPBACK, 200)

    @property
    def certificates(self) -> Path:
        """The folder with ca.crt, client.crt and client.key, and what `signing` signs tokens with."""
        return self.directory / "certificates"

    @property
    def _jwks(self) -> str:
        """Where brokers find what tokens must be signed with."""
        return (self.certificates / "jwks.json").as_uri()

    @property
    def password(self) -> str:
        """USER's password."""
        return (self.directory / "password").read_text()

    @property
    def libs(self) -> Path:
        return libs(self.version)

    def log_dirs(self, node: int) -> tuple[Path, ...]:
        """A broker has two log directories; a controller has one."""
        data = self.directory / "data" / str(node)
        return (data / "a",) if node in self.controllers else (data / "a", data / "b")

    def tool(self, name: str, *arguments: str) -> str:
        """What one of Kafka's stock tools (one of TOOLS, or a class) prints; a failure is a PlatformError."""
        servers = ("--bootstrap-server", self.bootstrap_servers)
        after_verb = name == "cluster"
        arguments = (*arguments, *servers) if after_verb else (*servers, *arguments)
        return run_java(self.libs, tool_class(name, self.version), arguments, jvm=self.jvm, quiet=True)

    def start(self) -> None:
        """Start all with empty data, and return when all brokers are there."""
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.secure:
            make_authority(self.certificates)
            addresses = [LOOPBACK, *([self.bridge] if self.bridge else [])]
            issue(self.certificates, "broker", addresses=addresses)
            issue(self.certificates, "client")
            make_signing_key(self.certificates)
        self._format()
        started = [self._start_node(node) for node in (*self.controllers, *self.ids)]
        self.processes.wait("Kafka", lambda: set(self.ids) <= self.registered(), *started)
        description = asdict(self) | {"directory": None, "processes": None}
        (self.directory / "brokers.json").write_text(json.dumps(description))

    def stop(self) -> None:
        """Stop all. They are killed: their data is wiped anyway, and a proper end takes much longer."""
        for node in (*self.ids, *self.controllers):
            self.kill(node)

    def registered(self, asked: int | None = None) -> set[int]:
        """The brokers that are up and not fenced, as one broker or any sees it; empty while none answers."""
        servers = self.bootstrap_servers if asked is None else f"{LOOPBACK}:{self.base_port + asked}"
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        try:
            return set(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return set()

    def alive(self, node: int) -> bool:
        """Whether its process runs."""
        return self.processes.find(_name(node)) is not None

    def kill(self, node: int) -> None:
        """End a node's process at once (SIGKILL); the controllers fence a broker after six seconds."""
        if process := self.processes.find(_name(node)):
            os.kill(process.pid, signal.SIGKILL)
            process.stop()

    def shut_down(self, broker: int) -> None:
        """End a broker in its own time: it hands its leaders over, and is fenced when it is gone."""
        self.processes.stop(_name(broker))

    def restart(self, node: int) -> None:
        """Start a node, after ending it if it runs, with the data it has; return when a broker is there."""
        self.kill(node)
        process = self._start_node(node)
        if node not in self.controllers:
            self.processes.wait(f"broker {node}", lambda: node in self.registered(asked=node), process)

    def add(self, broker: int) -> None:
        """Start a broker with empty disks, under a new id or one that is free; return when it is there."""
        known = (self.log_dirs(self.controllers[0])[0] / "meta.properties").read_text()
        cluster = next(line for line in known.splitlines() if line.startswith("cluster.id="))
        shutil.rmtree(self.directory / "data" / str(broker), ignore_errors=True)
        self._identify(broker, cluster.partition("=")[2])
        self.restart(broker)

    def remove(self, broker: int) -> None:
        """End a broker in its own time, if it runs, and take its registration away, if it has one."""
        self.shut_down(broker)
        if broker in self.known():
            self.tool("cluster", "unregister", "--id", str(broker))

    def known(self) -> set[int]:
        """The brokers that are registered, those that are fenced too."""
        listed = self.tool("cluster", "list-endpoints", "--include-fenced-brokers").splitlines()
        return {int(line.split()[0]) for line in listed if line[:1].isdigit()}

    def active_controller(self) -> int:
        """The controller that leads the quorum, as the brokers see it."""
        status = self.tool("metadata-quorum", "describe", "--status")
        return int(next(line for line in status.splitlines() if line.startswith("LeaderId")).split()[-1])

    @contextmanager
    def frozen(self, *nodes: int) -> Iterator[None]:
        """Stop the processes of nodes without ending them (SIGSTOP): connections stand, answers do not come.

        One that is killed meanwhile stays dead.
        """

        def resume(process: Process) -> None:
            if process.alive:
                os.kill(process.pid, signal.SIGCONT)

        with ExitStack() as stack:
            for node in nodes:
                process = self.processes.find(_name(node))
                if not process:
                    raise PlatformError(f"node {node} does not run")
                os.kill(process.pid, signal.SIGSTOP)
                stack.callback(resume, process)
            yield

    def _servers(self, address: str, offset: int) -> str:
        return ",".join(f"{address}:{self.base_port + offset + broker}" for broker in self.ids)

    def _listeners(self, broker: int) -> dict[str, tuple[str, int]]:
        """Address and port by the listener's name."""
        port = self.base_port + broker
        found = {"LOCAL": (LOOPBACK, port)}
        if self.bridge:
            found["BRIDGE"] = (self.bridge, port + 300)
        if self.secure:
            found["SCRAM"] = (self.bridge or LOOPBACK, port + 100)
            found["OTHER"] = (LOOPBACK, port + 150)
            found["MUTUAL"] = (LOOPBACK, port + 200)
        return found

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Every address and port that it listens on."""
        nodes = [address for broker in self.ids for address in self._listeners(broker).values()]
        return [*self._controller_addresses.values(), *nodes]

    @property
    def _controller_addresses(self) -> dict[int, tuple[str, int]]:
        return {node: (LOOPBACK, self.base_port + 40 + number) for number, node in enumerate(self.controllers)}

    def _start_node(self, node: int) -> Process:
        command: list[str | Path] = [
            "java",
            *JVM,
            *self.jvm,
            *LOGGING,
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._jwks}",
            "-cp",
            f"{self.libs}/*",
            "kafka.Kafka",
            self._configuration(node),
        ]
        return self.processes.start(_name(node), command)

    def _configuration(self, node: int) -> Path:
        """Write the node's server.properties. Controllers and brokers read many of the same ones."""
        voters = (f"{node}@{host}:{port}" for node, (host, port) in self._controller_addresses.items())
        protocols = "CONTROLLER:PLAINTEXT,LOCAL:PLAINTEXT,BRIDGE:PLAINTEXT,SCRAM:SASL_SSL,OTHER:SASL_SSL,MUTUAL:SSL"
        lines = [
            f"node.id={node}",
            f"log.dirs={','.join(map(str, self.log_dirs(node)))}",
            f"controller.quorum.voters={','.join(voters)}",
            "controller.listener.names=CONTROLLER",
            f"listener.security.protocol.map={protocols}",
            f"offsets.topic.replication.factor={min(3, self.count)}",
            "offsets.topic.num.partitions=1",  # a broker asks each one that it follows twice a second
            f"transaction.state.log.replication.factor={min(3, self.count)}",
            "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1",
            "num.partitions=1",
            f"default.replication.factor={min(3, self.count)}",
            "auto.create.topics.enable=false",
            "auto.leader.rebalance.enable=false",  # leaders move when the operator says so
            "group.initial.rebalance.delay.ms=0",
            "broker.session.timeout.ms=6000",  # a dead broker is fenced soon
            "broker.heartbeat.interval.ms=1000",
            "log.cleaner.dedupe.buffer.size=2097152",  # the default does not fit the heap
            "num.network.threads=2",
            "num.io.threads=3",
        ]
        if self.authorizer:
            lines += [
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users=User:ANONYMOUS",
            ]
        if node in self.controllers:
            host, port = self._controller_addresses[node]
            lines += ["process.roles=controller", f"listeners=CONTROLLER://{host}:{port}"]
        else:
            listeners = ",".join(f"{n}://{host}:{port}" for n, (host, port) in self._listeners(node).items())
            lines += [
                "process.roles=broker",
                f"broker.rack={rack(node)}",
                f"listeners={listeners}",
                "inter.broker.listener.name=LOCAL",
            ]
        if self.secure and node not in self.controllers:
            lines += [
                "ssl.keystore.type=PEM",
                f"ssl.keystore.location={self.certificates / 'broker.pem'}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={self.certificates / 'ca.crt'}",
                "listener.name.mutual.ssl.client.auth=required",
                "listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512",
                f"listener.name.scram.scram-sha-512.sasl.jaas.config={SCRAM_LOGIN};",
                "listener.name.other.sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN,OAUTHBEARER",
                f"listener.name.other.scram-sha-256.sasl.jaas.config={SCRAM_LOGIN};",
                f'listener.name.other.plain.sasl.jaas.config={PLAIN_LOGIN} user_{USER}="{self.password}";',
                f"listener.name.other.oauthbearer.sasl.jaas.config={OAUTH}.OAuthBearerLoginModule required;",
                "listener.name.other.oauthbearer.sasl.server.callback.handler.class"
                f"={OAUTH}.OAuthBearerValidatorCallbackHandler",
                "listener.name.other.oauthbearer.connections.max.reauth.ms=6000",  # they ask for tokens again, soon
                f"listener.name.other.sasl.oauthbearer.jwks.endpoint.url={self._jwks}",
                f"listener.name.other.sasl.oauthbearer.expected.issuer={ISSUER}",
                f"listener.name.other.sasl.oauthbearer.expected.audience={AUDIENCE}",
            ]
        path = self.directory / f"{_name(node)}.properties"
        write_private(path, "\n".join([*lines, ""]))
        return path

    def _format(self) -> None:
        """Give every node an empty data folder of one new cluster.

        The tool formats one controller's, which carries the SCRAM user; the others get copies of it. A broker's needs
        only its identity.
        """
        first, *others = self.controllers
        # the tool takes an id that begins with a dash for an option
        cluster = f"k{secrets.token_urlsafe(16)[:21]}"
        arguments = ["format", "-t", cluster, "-c", str(self._configuration(first))]
        if self.secure:
            write_private(self.directory / "password", secrets.token_urlsafe(24))
            for mechanism in ("SCRAM-SHA-512", "SCRAM-SHA-256"):
                arguments += ["--add-scram", f"{mechanism}=[name={USER},password={self.password}]"]
        run_java(self.libs, "kafka.tools.StorageTool", arguments, jvm=self.jvm, scratch=self.directory)
        for node in (*others, *self.ids):
            if node in self.controllers:
                shutil.copytree(self.log_dirs(first)[0], self.log_dirs(node)[0])
            self._identify(node, cluster)

    def _identify(self, node: int, cluster: str) -> None:
        for data in self.log_dirs(node):
            data.mkdir(parents=True, exist_ok=True)
            (data / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\n")


def start(
    processes: Processes,
    directory: Path,
    *,
    version: str = DEFAULT_VERSION,
    brokers: int = 4,
    base_port: int | None = None,
    bridge: str | None = None,
    secure: bool = False,
    authorizer: bool = False,
    controllers: int = CONTROLLERS,
) -> Brokers:
    """Start a cluster with data, settings and secrets in the directory; without a base port on free ports."""
    if not shutil.which("java"):
        raise PlatformError("Java 17 is needed to run the brokers: apt-get install openjdk-17-jre-headless")
    libs(version)
    jvm: tuple[str, ...] = ()
    try:
        jvm = (f"-XX:SharedArchiveFile={class_archive(version)}", *QUIET)
    except PlatformError as error:
        say(f"the brokers start without an archive of their classes, which takes longer: {error}")
    base_port = base_port or free_base_port()
    cluster = Brokers(directory, processes, version, brokers, base_port, bridge, secure, authorizer, jvm, controllers)
    refuse_taken(cluster.addresses)
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def class_archive(version: str = DEFAULT_VERSION) -> Path:
    """Return an archive of the classes that nodes and tools load, which saves 40 % of a JVM's start (JEP 310).

    It is built once, from the classes that one broker, its controller and some tools load.
    """
    jars = libs(version)

    def build(place: Path) -> None:
        say(f"archiving the classes of Kafka {version}: once, half a minute")
        work = place / "work"
        processes = Processes(work / "processes", work / "logs", end_with_us=True)
        lists = (f"-XX:DumpLoadedClassList={work}/%p.list",)
        cluster = Brokers(work, processes, version, 1, free_base_port(), secure=True, jvm=lists, controller_count=1)
        try:
            cluster.start()
            cluster.tool("topics", "--describe")
            cluster.tool("configs", "--describe", "--entity-type", "brokers")
            cluster.active_controller()
        finally:
            cluster.stop()
        lines = [line for file in work.glob("*.list") for line in file.read_text().splitlines(keepends=True)]
        classes = work / "classes"
        classes.write_text("".join(dict.fromkeys(lines)))
        dump = ["-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={place / ARCHIVE}"]
        run(["java", *JVM, *dump, "-cp", f"{jars}/*"])
        shutil.rmtree(work)

    files = [(jar, jar.stat()) for jar in sorted(jars.glob("*.jar"))]  # the JVM compares them with the archive's
    pins = [*JVM, run(["java", "--version"]), *(f"{jar} {of.st_size} {of.st_mtime_ns}" for jar, of in files)]
    return cache.entry("kafka-classes", pins, build) / ARCHIVE


def load(processes: Processes, directory: Path) -> Brokers:
    """The cluster that an earlier command started there."""
    try:
        description = json.loads((directory / "brokers.json").read_text())
    except FileNotFoundError:
        raise PlatformError(f"no brokers were started in {directory}") from None
    return Brokers(**description | {"directory": directory, "processes": processes})


@contextmanager
def running(
    directory: Path,
    version: str = DEFAULT_VERSION,
    brokers: int = 4,
    *,
    bridge: str | None = None,
    secure: bool = False,
    authorizer: bool = False,
    controllers: int = CONTROLLERS,
) -> Iterator[Brokers]:
    """A cluster for a test, on free ports: there when the block begins, gone when it ends, come what may."""
    processes = Processes(directory / "processes", directory / "logs", end_with_us=True)
    cluster = start(
        processes,
        directory,
        version=version,
        brokers=brokers,
        bridge=bridge,
        secure=secure,
        authorizer=authorizer,
        controllers=controllers,
    )
    try:
        yield cluster
    finally:
        cluster.stop()


def rack(broker: int) -> str:
    """The path of a broker's rack (KIP-879): two sites, in each of which every broker has a rack of its own."""
    return f"/{'ab'[broker % 2]}/{broker // 2 + 1}"


def _name(node: int) -> str:
    return f"kafka-controller-{node}" if node >= FIRST_CONTROLLER else f"kafka-{node}"
