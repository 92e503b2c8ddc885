"""An Apache Kafka with logins and rules: one broker, PLAIN and SCRAM, and a listener without
logins.

How:    `bench/kafka/cluster` starts it; what differs from its defaults are properties."""

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import clusters

from differential.access.subjects import ADMIN, ANONYMOUS, SUPER_USERS
from differential.peer import Connection
from strandline.protocol.apis import APIS
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.protocol.table import Message

HOST = "127.0.0.1"
PAUSE_S = 0.05
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def properties(
    ports: dict[str, int], users: Iterable[str], *, open_without_rules: bool, creates_topics: bool
) -> list[str]:
    """The broker's properties, as `key=value`."""
    plain = f'{_PLAIN} username="{ADMIN}" password="{ADMIN}" '
    plain += " ".join(f'user_{one}="{one}"' for one in users) + ";"
    listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
    return [
        f"listeners={listeners}",
        f"advertised.listeners={listeners.rpartition(',')[0]}",
        "listener.security.protocol.map="
        "SASL:SASL_PLAINTEXT,OPEN:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name=SASL",
        f"controller.quorum.voters=1@{HOST}:{ports['CONTROLLER']}",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "sasl.mechanism.controller.protocol=PLAIN",
        "listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.controller.sasl.enabled.mechanisms=PLAIN",
        f"listener.name.sasl.plain.sasl.jaas.config={plain}",
        f"listener.name.controller.plain.sasl.jaas.config={plain}",
        f"listener.name.sasl.scram-sha-256.sasl.jaas.config={_SCRAM}",
        f"listener.name.sasl.scram-sha-512.sasl.jaas.config={_SCRAM}",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users={';'.join(f'User:{one}' for one in SUPER_USERS)}",
        f"allow.everyone.if.no.acl.found={str(open_without_rules).lower()}",
        f"auto.create.topics.enable={str(creates_topics).lower()}",
        "group.initial.rebalance.delay.ms=0",
    ]


def free_ports(*names: str) -> dict[str, int]:
    """{name: a port that is free now}"""
    sockets = {name: socket.create_server((HOST, 0)) for name in names}
    ports = {name: one.getsockname()[1] for name, one in sockets.items()}
    for one in sockets.values():
        one.close()
    return ports


@contextmanager
def secure_kafka(
    directory: Path,
    users: Iterable[str],
    *,
    open_without_rules: bool = False,
    creates_topics: bool = False,
) -> Iterator["KafkaTarget"]:
    """A broker that runs; each user's password is its name."""
    ports = free_ports("SASL", "OPEN", "CONTROLLER")
    configs = properties(
        ports, users, open_without_rules=open_without_rules, creates_topics=creates_topics
    )
    with clusters.kafka(directory, brokers=1, configs=tuple(configs)):
        target = KafkaTarget(ports["SASL"], ports["OPEN"])
        yield target
        target.close()


class KafkaTarget:
    """A `Target` over sockets, one connection for each user."""

    def __init__(self, port: int, open_port: int) -> None:
        self.port = port
        self._open_port = open_port
        self._connections: dict[str, Connection] = {}

    def ask(self, user: str, request: Message, version: int) -> Message | None:
        """See `Target`."""
        if user not in self._connections:
            self._connections[user] = self._connect(user)
        answer = KafkaLine(self._connections[user]).ask(request, version)
        if answer is None:
            del self._connections[user]
        return answer

    def pause(self) -> None:
        """See `Target`."""
        time.sleep(PAUSE_S)

    def connect(self) -> "KafkaLine":
        """A connection that has not logged in."""
        return KafkaLine(Connection(HOST, self.port))

    def close(self) -> None:
        """Hang up."""
        for one in self._connections.values():
            one.close()

    def _connect(self, user: str) -> Connection:
        if user == ANONYMOUS:
            return Connection(HOST, self._open_port)
        connection = Connection(HOST, self.port)
        connection.send(SaslHandshakeRequest("PLAIN"), 1)
        assert not connection.receive(SaslHandshakeResponse, 1).error_code
        connection.send(SaslAuthenticateRequest(f"\0{user}\0{user}".encode()), 2)
        assert not connection.receive(SaslAuthenticateResponse, 2).error_code
        return connection


class KafkaLine:
    """One connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, request: Message, version: int) -> Message | None:
        """The answer; None if Kafka hangs up."""
        try:
            self._connection.send(request, version)
            return self._connection.receive(APIS[request.API_KEY].response, version)
        except ConnectionError:
            self._connection.close()
            return None
