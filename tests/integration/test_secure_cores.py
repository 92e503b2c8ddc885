"""A machine whose ports are protected: each broker's ports are as the file says, and so is the
machine's own.

Source: docs/operating/cores.md, docs/operating/security.md; decisions 0069 and 0071."""

import json
import socket
import ssl
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import COMMAND, wait_until
from tests.integration.machines import START_S, Machine, machines
from tests.integration.secure_cluster import CLUSTER_ID

from strandline.security.authority import Authority
from strandline.security.http_tokens import create_token

pytestmark = pytest.mark.integration

PASSWORD = "correct horse battery"
TIMEOUT_S = 30
FILE = """
[broker]
id = 100
data_directory = "{data}"
[broker.labels]
host = "node-1"
[cluster]
id = "{cluster}"
seeds = ["100@127.0.0.1:{rpc}"]
[[listener]]
name = "INNER"
bind = "127.0.0.1:{inner}"
protocol = "SSL"
client_certificates = "required"
certificate = "{files}/node-1.pem"
private_key = "{files}/node-1.key"
trust = "{files}/ca.pem"
[[listener]]
name = "USERS"
bind = "0.0.0.0:{users}"
advertised = "no-such-host.example:{users}"
advertised_for = ["127.0.0.0/8=localhost:{users}"]
protocol = "SASL_SSL"
certificate = "{files}/node-1.pem"
private_key = "{files}/node-1.key"
[rpc]
port = {rpc}
tls = "require"
certificate = "{files}/peer-{{id}}.pem"
private_key = "{files}/peer-{{id}}.key"
trust = "{files}/ca.pem"
[access]
enforce_rules = true
super_users = ["User:admin"]
users_file = "{files}/users.jsonl"
audit_file = "{files}/audit.jsonl"
[metrics]
port = {http}
certificate = "{files}/node-1.pem"
private_key = "{files}/node-1.key"
tokens_file = "{files}/tokens.jsonl"
anonymous = "health"
"""


@dataclass
class Secured:
    """The machine, and what its clients need."""

    machine: Machine
    files: Path
    token: str

    def client(self, password: str = PASSWORD) -> dict[str, object]:
        return {
            "bootstrap.servers": f"localhost:{self.machine.port(3)}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files / "ca.pem"),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "admin",
            "sasl.password": password,
            "broker.address.family": "v4",
            "log_level": 0,
        }

    def ask(self, port: int, path: str, token: str = "") -> int:
        """The status of a page; 0 if no broker or machine answers."""
        request = urllib.request.Request(f"https://localhost:{port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl.create_default_context(cafile=str(self.files / "ca.pem"))
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as found:
                return int(found.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("cores")
    files = directory / "files"
    authority = Authority(files)
    authority.issue("node-1")
    for broker in (100, 101):
        uri = f"strandline://{CLUSTER_ID}/broker/{broker}"
        authority.issue(f"peer-{broker}", dns=(), ips=(), uris=(uri,))
    subprocess.run(
        [COMMAND, "user", "create", "admin", "--file", str(files / "users.jsonl")],
        input=PASSWORD + "\n", text=True, check=True, capture_output=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    token = create_token(files / "tokens.jsonl", "prometheus")
    with machines(directory, 1) as (machine,):
        machine.text = FILE.format(
            data=machine.data,
            cluster=CLUSTER_ID,
            files=files,
            inner=machine.port(0),
            rpc=machine.port(1),
            http=machine.port(2),
            users=machine.port(3),
        )
        found = Secured(machine, files, token)
        machine.start()
        wait_until(
            lambda: found.ask(machine.http_port, "/readyz") == 200, what="it serves",
            timeout_s=START_S,
        )  # fmt: skip
        yield found


def test_users_log_in_at_every_broker_by_the_addresses_of_their_network(secured: Secured) -> None:
    admin = AdminClient(secured.client())
    first = secured.machine.port(3)
    expected = {100: ("localhost", first), 101: ("localhost", first + 1)}

    def told() -> dict[int, tuple[str, int]]:
        brokers = admin.list_topics(timeout=TIMEOUT_S).brokers
        return {one.id: (one.host, one.port) for one in brokers.values()}

    wait_until(lambda: told() == expected, what="both brokers to be named")
    admin.create_topics([NewTopic("t", 2, 1)])["t"].result(TIMEOUT_S)
    producer = Producer(secured.client())
    for partition in (0, 1):
        producer.produce("t", b"%d" % partition, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**secured.client(), "group.id": "g"})
    consumer.assign([TopicPartition("t", one, 0) for one in (0, 1)])
    read = [consumer.poll(TIMEOUT_S) for _ in (0, 1)]
    consumer.close()
    assert {one.value() for one in read if one is not None} == {b"0", b"1"}
    wrong = AdminClient({**secured.client("wrong"), "socket.timeout.ms": 3_000})
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=5)


def test_no_port_of_any_process_talks_in_the_clear_or_without_a_certificate(
    secured: Secured,
) -> None:
    machine = secured.machine
    ports = [machine.port(kind) + index for kind in (0, 1, 3) for index in (0, 1)]
    ports += [machine.http_port + index for index in (0, 1, 2)]
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = b""
            try:
                while part := plain.recv(4096):
                    answer += part
            except ConnectionError:
                pass
            # At most an alert of TLS.
            assert len(answer) < 32 and b"HTTP" not in answer, port
    context = ssl.create_default_context(cafile=str(secured.files / "ca.pem"))
    context.check_hostname = False
    for index in (0, 1):
        for kind in (0, 1):  # Both ask for a client's certificate.
            with (
                socket.create_connection(("127.0.0.1", machine.port(kind) + index)) as raw,
                pytest.raises(OSError),
                context.wrap_socket(raw) as secure,
            ):
                secure.sendall(b"\0\0\0\x0c\0\x12\0\0\0\0\0\x01\0\x01x\0")
                if not secure.recv(100):
                    raise ConnectionResetError


def test_the_machine_s_pages_are_under_the_same_tokens_as_a_broker_s(secured: Secured) -> None:
    machine = secured.machine
    ports = [machine.http_port + index for index in (0, 1, 2)]
    for port in ports:
        assert secured.ask(port, "/healthz") == secured.ask(port, "/readyz") == 200
        assert secured.ask(port, "/metrics") == 401
        assert secured.ask(port, "/metrics", secured.token) == 200
    assert secured.ask(ports[0], "/v1/machine") == 401
    assert secured.ask(ports[0], "/v1/machine", secured.token) == 200
    # A broker judges it, and its audit log has a line.
    assert secured.ask(ports[0], "/v1/machine", "guessed") == 401
    audit = secured.files / "audit-100.jsonl"

    def refused() -> list[dict[str, object]]:
        lines = [json.loads(one) for one in audit.read_bytes().splitlines()]
        return [one for one in lines if one.get("listener") == "[metrics]"]

    wait_until(lambda: bool(refused()), what="a line of the audit log")
    assert refused()[0]["address"] == "127.0.0.1"


def test_files_of_a_machine_are_closed_to_other_users(secured: Secured) -> None:
    data = secured.machine.data
    for path in (data, data / "broker-100", data / "broker-101"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    for path in (*data.rglob("*"), *secured.files.glob("audit-*.jsonl")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o007, path
    assert not (secured.files / "audit.jsonl").exists()
    log = secured.machine.log
    assert PASSWORD not in log and secured.token not in log and "guessed" not in log
