"""No log, page, answer, output of a command or snapshot in a bucket has a secret or a record.

How:    one broker that logs at `debug`, with every way to log in. Clients log in rightly and
        wrongly, change passwords, set a webhook, write records, and have bad files. Then all that
        was said is searched for all that is secret.
Source: decision 0069; docs/operating/security-rules.md, "Audit log"."""

import base64
import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S
from tests.integration.ports import free_ports
from tests.integration.secure_cluster import SecureBroker, secure_cluster, tls_listener, wait
from tests.integration.test_token_logins import AUDIENCE, ISSUER, Provider

from strandline.security.authority import Files

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
ADMIN, OLD, NEW, WRONG = (f"s3cret-{one}-horse" for one in ("admin", "old", "new", "wrong"))
HOOK, RECORD = "s3cret-hook-path", b"s3cret-record-content"
IN_FILE = "s3cret-in-a-file"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


@dataclass
class Run:
    """A broker, and all that was said so far: {where: text}."""

    directory: Path
    broker: SecureBroker
    files: Files
    secrets: set[str]
    said: dict[str, str] = field(default_factory=dict)

    def type_in(self, *arguments: str, given: str = "") -> str:
        """Run a command; it may fail."""
        done = subprocess.run(
            [COMMAND, *arguments],
            input=given, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
        )  # fmt: skip
        self.said[" ".join(arguments) + f" #{len(self.said)}"] = done.stdout + done.stderr
        return done.stdout

    def client(
        self, user: str, password: str, mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, object]:
        """The options of librdkafka."""
        return {
            "bootstrap.servers": f"localhost:{self.broker.ports[0]}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files.trust),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "broker.address.family": "v4",
            "log_level": 0,
        }

    def file(self, user: str, password: str) -> str:
        """The path of a file for `--client-config`."""
        path = self.directory / f"{user}-{password}.conf".replace(password, str(len(password)))
        options = self.client(user, password)
        keep = [one for one in options if one not in ("broker.address.family", "log_level")]
        path.write_text("".join(f"{one}={options[one]}\n" for one in keep))
        return str(path)

    def page(self, path: str, token: str) -> None:
        """Ask the HTTP port."""
        url = f"http://127.0.0.1:{self.broker.ports[1]}{path}"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
                self.said[f"{path} #{len(self.said)}"] = answer.read().decode()
        except urllib.error.HTTPError as error:
            self.said[f"{path} #{len(self.said)}"] = error.read().decode()


def logs_in(options: dict[str, object], *, within_s: float = 3) -> bool:
    """Whether a login gets an answer."""
    try:
        AdminClient(options).list_topics(timeout=within_s)
    except KafkaException:
        return False
    return True


@pytest.fixture
def hook() -> Iterator[tuple[str, list[str]]]:
    """A webhook, and what was posted there."""
    posted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(400)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{HOOK}?token={HOOK}", posted
        server.shutdown()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """The broker, serving."""
    with secure_cluster(tmp_path) as cluster:
        broker = cluster.brokers[1]
        files = cluster.authority.issue("b")
        (tmp_path / "password").write_text(ADMIN)
        users, tokens = tmp_path / "users.jsonl", tmp_path / "tokens.jsonl"
        provider = Provider()
        provider.rotate()
        (tmp_path / "keys.json").write_text(
            json.dumps({"keys": [one.as_dict(private=False) for one in provider.keys]})
        )
        run = Run(tmp_path, broker, files, {ADMIN, OLD, NEW, WRONG, HOOK, RECORD.decode(), IN_FILE})
        run.type_in("user", "create", "admin", "--file", str(users), "--password-file",
                    str(tmp_path / "password"))  # fmt: skip
        http_token = run.type_in("http-token", "create", "monitor", "--file", str(tokens)).strip()
        run.said.clear()  # The one time that a token is shown.
        run.secrets |= {http_token, provider.token("mia"), provider.token("mia", audience="other")}
        run.secrets |= secrets_of(users) | set(files.key.read_text().splitlines()[1:-1])
        (port,) = free_ports(1)
        broker.ports.append(port)
        broker.sections = "".join(
            (
                tls_listener("LOGIN", broker.ports[0], files).replace('"SSL"', '"SASL_SSL"'),
                f"sasl_mechanisms = {json.dumps([*MECHANISMS, 'OAUTHBEARER'])}\n",
                f'[oauthbearer]\njwks_endpoint_url = "file://{tmp_path}/keys.json"\n'
                f'expected_issuer = "{ISSUER}"\nexpected_audience = ["{AUDIENCE}"]\n',
                f'[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\n'
                f'users_file = "{users}"\naudit_file = "{tmp_path}/audit.jsonl"\n',
                f'[metrics]\nport = {port}\ntokens_file = "{tokens}"\n',
                '[security]\nwebhook_hosts = ["127.0.0.1"]\n[log]\nlevel = "debug"\n',
                f'[broker.labels]\nregion = "east"\n[tiered]\n'
                f'buckets = ["east=file://{tmp_path}/bucket"]\nexport_interval_ms = 100\n',
            )
        )
        cluster.start()
        run.page("/metrics", http_token)
        run.page("/metrics", WRONG)
        for path in ("/", "/topics", "/v1/outages", "/v1/brokers", "/v1/topics"):
            run.page(path, http_token)
        for token in (one for one in run.secrets if one.count(".") == 2):
            logs_in_by_token(run, token)
        yield run


def secrets_of(users: Path) -> set[str]:
    """The keys of a users file, as they stand there."""
    rows = [json.loads(one) for one in users.read_text().splitlines()]
    return {row[name] for row in rows for name in ("salt", "stored_key", "server_key")}


def logs_in_by_token(run: Run, token: str) -> bool:
    options = run.client("", "", "OAUTHBEARER")
    del options["sasl.username"], options["sasl.password"]
    return logs_in(options | {"oauth_cb": lambda _: (token, time.time() + 300)})


def test_nothing_that_is_secret_is_said(run: Run, hook: tuple[str, list[str]]) -> None:
    url, posted = hook
    admin = run.file("admin", ADMIN)
    for password in (OLD, NEW):
        run.type_in("user", "create", "mia", "--client-config", admin, given=password)
        wait(lambda given=password: logs_in(run.client("mia", given)), lambda: run.broker.log)  # type: ignore[misc]
    for mechanism in MECHANISMS:
        assert logs_in(run.client("mia", NEW, mechanism), within_s=TIMEOUT_S)
        assert not logs_in(run.client("mia", WRONG, mechanism))
    assert not logs_in(run.client("mia", OLD)) and not logs_in(run.client("nobody", WRONG))
    run.type_in("topic", "list", "--client-config", run.file("mia", WRONG))
    for key in (f"alarm.webhook.url={url}", f"alarm.webhook.url=http://other.invalid/{HOOK}"):
        run.type_in("cluster", "alter", "-c", key, "--client-config", admin)
    write_and_read(run)
    bad_files(run)
    see_all(run, admin)
    wait(lambda: any((run.directory / "bucket").rglob("*controller*")), lambda: "no export")
    search(run, posted)


def write_and_read(run: Run) -> None:
    """Records of the administrator, and those that mia may not write."""
    options = run.client("admin", ADMIN)
    admin = AdminClient(options)
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(TIMEOUT_S)
    producer = Producer(options)
    producer.produce("t", RECORD, key=RECORD, headers={"h": RECORD})
    assert producer.flush(TIMEOUT_S) == 0
    refused = Producer(run.client("mia", NEW) | {"message.timeout.ms": 2_000})
    refused.produce("t", RECORD)
    refused.flush(TIMEOUT_S)
    consumer = Consumer(options | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    wait(lambda: consumer.poll(0.2) is not None, lambda: "no record")
    consumer.close()


def bad_files(run: Run) -> None:
    """Files with a password where none belongs, or that cannot be read."""
    for number, text in enumerate(
        (
            f"security.protocol=SASL_SSL\nsasl.password {IN_FILE}\n",
            f"security.protocol=SASL_SSL\nssl.key.password={IN_FILE}\n",
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config=x password="{IN_FILE}\n',
            f"security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.password={IN_FILE}\n",
        )
    ):
        path = run.directory / f"bad-{number}.conf"
        path.write_text(text)
        run.type_in("topic", "list", "--client-config", str(path))
    least = '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@h:1"]\n'
    for number, text in enumerate(
        (
            f'{least}[access]\npassword = "{IN_FILE}"\n',
            f'{least}[metrics]\nkey_password = "{IN_FILE}"\n',
            f'{least}password = "{IN_FILE}\n',
        )
    ):
        path = run.directory / f"bad-{number}.toml"
        path.write_text(text)
        for command in (("config", "check"), ("serve", "--config"),
                        ("doctor", "security", "--config")):  # fmt: skip
            run.type_in(*command, str(path))
    users = run.directory / "bad-users.jsonl"
    users.write_text(json.dumps({"user": "x", "password": IN_FILE}) + "\n")
    users.chmod(0o600)
    run.type_in("user", "create", "y", "--file", str(users), given=NEW)


def see_all(run: Run, admin: str) -> None:
    """What commands and admin clients show."""
    for command in (
        ("cluster", "status"), ("topic", "describe", "t"), ("user", "list"), ("acl", "list"),
        ("doctor", "security"), ("doctor", "settings"), ("group", "describe", "g"),
        ("tiered", "status"),
        ("broker", "list"), ("zone", "status"),
    ):  # fmt: skip
        run.type_in(*command, "--json", "--client-config", admin)
    client = AdminClient(run.client("admin", ADMIN))
    for resource in (
        ConfigResource(ConfigResource.Type.BROKER, "1"),
        ConfigResource(ConfigResource.Type.TOPIC, "t"),
    ):
        found = client.describe_configs([resource])[resource].result(TIMEOUT_S)
        run.said[str(resource)] = str({one.name: one.value for one in found.values()})


def search(run: Run, posted: list[str]) -> None:
    """Look for every secret in everything."""
    said = {one: text.encode() for one, text in run.said.items()}
    said["log"] = run.broker.log.encode()
    said["audit"] = (run.directory / "audit.jsonl").read_bytes()
    said["posted"] = "".join(posted).encode()
    exports = [one for one in (run.directory / "bucket").rglob("*") if one.is_file()]
    said |= {str(one): one.read_bytes() for one in exports}
    assert b"mia" in said["audit"] and b'"result":"denied"' in said["audit"] and exports
    for secret in run.secrets:
        forms = {secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")}
        for where, text in said.items():
            assert not any(form in text for form in forms), f"{secret} is in {where}"
