"""The broker that is attacked, what it keeps secret, and what must be the same afterwards.

Owns:   the broker's process and its directory."""

import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.clusters import STRANDLINE

from fuzz.access_targets import AUDIENCE, ISSUER
from fuzz.hostile.provider import Provider
from strandline.base.errors import StrandlineError
from strandline.client.admin import NewTopic, create_topic
from strandline.client.client_config import read_client_config
from strandline.client.cluster import Client
from strandline.client.operations.rules import add_rules, list_rules
from strandline.client.operations.users import list_users, set_password
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import TcpTransport
from strandline.model.access import WILDCARD, Kind, Operation, PatternType, Permission, Rule
from strandline.model.cluster import Address
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.table import NO_ID
from strandline.records.record import Record, build_batch
from strandline.security.acls.rule_filter import RuleFilter
from strandline.security.authority import Authority
from strandline.security.http_tokens import create_token
from strandline.security.sasl.secrets import secret_from_password
from strandline.security.sasl.users_file import write_users

HOST = "127.0.0.1"
ADMIN, NOBODY = "admin", "nobody"
PASSWORDS = {ADMIN: "correct horse", NOBODY: "battery staple"}
MECHANISM = "SCRAM-SHA-256"
TOPIC, GROUP, USER, RECORD = "secret-topic", "secret-group", "secret-user", "SECRET-RECORD"
BY_TOKEN = "-by-token"
HTTP_TOKENS = "http-tokens.jsonl"
START_S = 180
TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Ports:
    """LOGIN has TLS and logins, OPEN logins without TLS, CERTIFICATES TLS with certificates, TOKENS
    TLS and OAUTHBEARER, HTTP pages over TLS for tokens."""

    login: int
    open: int
    certificates: int
    rpc: int
    tokens: int
    http: int


@dataclass(frozen=True, slots=True)
class SecureBroker:
    """See the module. `topic_id`: of the secret topic, as it crosses the network; `http_token`: one
    that may see every page."""

    directory: Path
    ports: Ports
    pid: int
    authority: Authority
    topic_id: bytes
    provider: Provider
    http_token: str

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What no answer to a client without a right has, unless its request had it."""
        return (*(one.encode() for one in (TOPIC, GROUP, USER, RECORD)), self.topic_id)

    def tls(self) -> ssl.SSLContext:
        """For a client without a certificate."""
        return ssl.create_default_context(cafile=str(self.authority.trust))

    def connect(self, user: str, *, by_token: bool = False) -> Connection:
        """A connection that has logged in. Raises ClientError."""
        return _connect(self.directory, self.ports, user, by_token=by_token)

    def state(self) -> list[str]:
        """What must be the same afterwards, as the administrator sees it."""
        with _administrator(self.directory, self.ports) as client:
            cluster = client.metadata(deadline_ms=client.deadline())
            rules = list_rules(client, RuleFilter())
            users = list_users(client)
        connection = self.connect(ADMIN)
        records = connection.call(_fetch(), FetchResponse, TIMEOUT_MS)
        connection.close()
        topics = [f"{one.name} {one.id} {len(one.partitions)}" for one in cluster.topics.values()]
        part = records.responses[0].partitions[0]
        assert isinstance(part.records, bytes | bytearray | memoryview)
        kept = f"{part.high_watermark} {bytes(part.records).count(RECORD.encode())}"
        return [*sorted(topics), *map(str, rules), *map(str, users), kept]

    def descriptors(self) -> int:
        """Files and sockets that the broker has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def log(self) -> str:
        """What it has said."""
        return (self.directory / "broker.log").read_text(errors="replace")


@contextmanager
def secure_broker(directory: Path) -> Iterator[SecureBroker]:
    """A broker with a secret, ended afterwards."""
    ports = Ports(*_free_ports(6))
    authority, provider = Authority(directory), Provider(directory)
    http_token = create_token(directory / HTTP_TOKENS, "monitor")
    authority.issue("server")
    write_users(
        directory / "users.jsonl",
        [secret_from_password(user, MECHANISM, word) for user, word in PASSWORDS.items()],
    )
    _write_client_files(directory, ports, provider)
    config = directory / "broker.toml"
    config.write_text(_config(directory, ports))
    with ExitStack() as stack:
        log = stack.enter_context(open(directory / "broker.log", "wb"))
        process = subprocess.Popen(
            [STRANDLINE, "serve", "--config", str(config)], stdout=log, stderr=log
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        _wait_for(directory, ports)
        topic_id = _keep_secrets(directory, ports)
        yield SecureBroker(directory, ports, process.pid, authority, topic_id, provider, http_token)


def _write_client_files(directory: Path, ports: Ports, provider: Provider) -> None:
    """For each user one with its password, and one with a token."""
    shared = f"security.protocol=SASL_SSL\nssl.ca.location={directory}/ca.pem\n"
    for user, password in PASSWORDS.items():
        (directory / f"{user}.conf").write_text(
            f"{shared}bootstrap.servers={HOST}:{ports.login}\nsasl.mechanism={MECHANISM}\n"
            f"sasl.username={user}\nsasl.password={password}\n"
        )
        token = directory / f"{user}.token"
        token.write_text(provider.token(user))
        (directory / f"{user}{BY_TOKEN}.conf").write_text(
            f"{shared}bootstrap.servers={HOST}:{ports.tokens}\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url=file://{token}\n"
        )


@contextmanager
def _administrator(directory: Path, ports: Ports) -> Iterator[Client]:
    config = read_client_config(directory / f"{ADMIN}.conf")
    transport = TcpTransport(config.tls, login=config.login)
    with Client((Address(HOST, ports.login),), transport=transport) as client:
        yield client


def _keep_secrets(directory: Path, ports: Ports) -> bytes:
    """A topic with a record, a group, a user and a rule; the topic's id."""
    rule = Rule(
        Kind.TOPIC,
        PatternType.LITERAL,
        TOPIC,
        f"User:{USER}",
        WILDCARD,
        Operation.ALL,
        Permission.ALLOW,
    )
    with _administrator(directory, ports) as client:
        topic_id = create_topic(client, NewTopic(TOPIC, 1, 1)).id
        set_password(client, USER, "long and secret", mechanisms=(MECHANISM,), iterations=4_096)
        add_rules(client, [rule])
    connection = _connect(directory, ports, ADMIN)
    _until_done(lambda: _produce(connection))
    _until_done(lambda: _commit(connection))
    connection.close()
    return topic_id.bytes


def _produce(connection: Connection) -> int:
    """Write the secret record; the error code."""
    batch = bytes(build_batch([Record(0, 1_700_000_000_000, None, RECORD.encode())]))
    data = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])
    request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[data])
    answer = connection.call(request, ProduceResponse, TIMEOUT_MS)
    return answer.responses[0].partition_responses[0].error_code


def _commit(connection: Connection) -> int:
    """Commit an offset of the group; the error code. The topic of the offsets is made at the first
    request for a coordinator."""
    connection.call(FindCoordinatorRequest(GROUP), FindCoordinatorResponse, TIMEOUT_MS)
    partition = OffsetCommitRequestPartition(committed_offset=1)
    topic = OffsetCommitRequestTopic(TOPIC, NO_ID, [partition])
    answer = connection.call(
        OffsetCommitRequest(GROUP, topics=[topic]), OffsetCommitResponse, TIMEOUT_MS
    )
    return answer.topics[0].partitions[0].error_code


def _fetch() -> FetchRequest:
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(TOPIC, partitions=[partition])])


def _until_done(attempt: Callable[[], int]) -> None:
    """Try until there is no error."""
    until = time.monotonic() + START_S
    while code := attempt():
        assert time.monotonic() < until, f"the error {code} stays"
        time.sleep(0.2)


def _connect(directory: Path, ports: Ports, user: str, *, by_token: bool = False) -> Connection:
    name = f"{user}{BY_TOKEN if by_token else ''}.conf"
    config = read_client_config(directory / name)
    transport = TcpTransport(config.tls, login=config.login)
    address = Address(HOST, ports.tokens if by_token else ports.login)
    return Connection(transport, address, client_id="fuzz", timeout_ms=TIMEOUT_MS)


def _wait_for(directory: Path, ports: Ports) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            _connect(directory, ports, ADMIN).close()
            return
        except StrandlineError:
            assert time.monotonic() < until, f"no broker within {START_S} s; see {directory}"
            time.sleep(0.2)


def _config(directory: Path, ports: Ports) -> str:
    files = f'certificate = "{directory}/server.pem"\nprivate_key = "{directory}/server.key"\n'
    return (
        f'[broker]\nid = 1\ndata_directory = "{directory}/data"\n'
        f'[cluster]\nid = "fuzz"\nseeds = ["1@{HOST}:{ports.rpc}"]\n[rpc]\nport = {ports.rpc}\n'
        f'[[listener]]\nname = "LOGIN"\nbind = "{HOST}:{ports.login}"\nprotocol = "SASL_SSL"\n'
        f'{files}sasl_mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]\n'
        f'[[listener]]\nname = "OPEN"\nbind = "{HOST}:{ports.open}"\n'
        'protocol = "SASL_PLAINTEXT"\n'
        f'[[listener]]\nname = "CERTIFICATES"\nbind = "{HOST}:{ports.certificates}"\n'
        f'protocol = "SSL"\n{files}trust = "{directory}/ca.pem"\n'
        'client_certificates = "required"\n'
        f'[[listener]]\nname = "TOKENS"\nbind = "{HOST}:{ports.tokens}"\n'
        f'protocol = "SASL_SSL"\n{files}sasl_mechanisms = ["OAUTHBEARER"]\n'
        f'[oauthbearer]\njwks_endpoint_url = "file://{directory}/keys.json"\n'
        f'expected_issuer = "{ISSUER}"\nexpected_audience = ["{AUDIENCE}"]\n'
        f'[metrics]\nport = {ports.http}\n{files}tokens_file = "{directory}/{HTTP_TOKENS}"\n'
        'oauthbearer = true\nanonymous = "health"\n'
        f'[access]\nenforce_rules = true\nsuper_users = ["User:{ADMIN}"]\n'
        f'users_file = "{directory}/users.jsonl"\naudit_file = "{directory}/audit.jsonl"\n'
    )


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind((HOST, 0))
        return [sock.getsockname()[1] for sock in socks]
