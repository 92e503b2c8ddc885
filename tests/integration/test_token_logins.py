"""Clients log in by OAUTHBEARER, with the tokens of an identity provider (decision 0069).

How:    one broker, whose listener takes tokens over TLS; a provider that serves its keys over TLS
        on loopback. The tests sign the tokens."""

import asyncio
import base64
import contextlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from joserfc import jwk, jwt
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.integration.conftest import COMMAND
from tests.integration.ports import free_ports
from tests.integration.secure_cluster import secure_cluster, tls_listener, wait

from strandline.security.authority import Files

pytestmark = pytest.mark.integration

ISSUER, AUDIENCE = "https://id.example/", "kafka"
TIMEOUT_S = 60
DELIVERY_MS, REFUSED_MS = 50_000, 8_000
"""How long a record waits for a login: one that succeeds in the end, and one that may not."""
TOPIC = "tokens"
CREDENTIALS = "Basic " + base64.b64encode(b"reader:s3cret").decode()


@dataclass
class Provider:
    """An identity provider: the keys that it publishes."""

    keys: list[jwk.Key] = field(default_factory=list)
    fetch_count: int = 0
    is_away: bool = False
    # Tokens given for a name and a secret, and for how long they hold.
    given_count: int = 0
    given_seconds: float = 600

    def rotate(self) -> None:
        """Publish a new key, and sign by it."""
        name = f"key-{len(self.keys)}"
        self.keys.append(jwk.RSAKey.generate_key(2_048, {"kid": name}))

    def token(
        self,
        user: str,
        *,
        seconds: float = 600,
        audience: str = AUDIENCE,
        groups: Sequence[str] = (),
    ) -> str:
        """A token of a user."""
        key, now = self.keys[-1], int(time.time())
        claims: dict[str, object] = {"iss": ISSUER, "aud": audience, "sub": user, "iat": now}
        claims |= {"exp": now + seconds, "groups": list(groups)}
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


@contextlib.contextmanager
def served(provider: Provider, files: Files) -> Iterator[str]:
    """The URL of the provider's keys."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.fetch_count += 1
            keys = [one.as_dict(private=False) for one in provider.keys]
            self.send_response(503 if provider.is_away else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": keys}).encode())

        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            is_right = self.headers["Authorization"] == CREDENTIALS
            self.send_response(200 if is_right else 401)
            self.end_headers()
            answer: dict[str, object] = {"error": "invalid_client"}
            if is_right and asked["grant_type"] == ["client_credentials"]:
                provider.given_count += 1
                token = provider.token("app", seconds=provider.given_seconds)
                answer = {"access_token": token, "expires_in": provider.given_seconds}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}/keys"
        server.shutdown()


@dataclass
class Secured:
    """The broker, its provider, and what a client needs."""

    address: str
    files: Files
    provider: Provider
    log: Path
    token_url: str
    http_url: str

    def settings(self, token: str) -> dict[str, object]:
        """What librdkafka needs to log in by this token."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files.trust),
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 300),
            "log_level": 0,
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("tokens")
    with secure_cluster(directory, listeners=1) as cluster:
        broker, files = cluster.brokers[1], cluster.authority.issue("localhost")
        provider = Provider()
        provider.rotate()
        (http_port,) = free_ports(1)
        with served(provider, files) as url:
            broker.sections = (
                tls_listener(
                    "TOKENS", broker.ports[0], files, 'sasl_mechanisms = ["OAUTHBEARER"]'
                ).replace('protocol = "SSL"', 'protocol = "SASL_SSL"')
                + f'[oauthbearer]\njwks_endpoint_url = "{url}"\n'
                f'jwks_endpoint_trust = "{files.trust}"\nexpected_issuer = "{ISSUER}"\n'
                f'expected_audience = ["{AUDIENCE}"]\n'
                f'[metrics]\nport = {http_port}\ncertificate = "{files.certificate}"\n'
                f'private_key = "{files.key}"\noauthbearer = true\n'
                '[access]\nenforce_rules = true\nsuper_users = ["User:admin", "User:app"]\n'
            )
            cluster.start()
            log = broker.directory / "broker.log"
            found = Secured(
                cluster.bootstrap(0),
                files,
                provider,
                log,
                url.replace("/keys", "/token"),
                f"https://localhost:{http_port}",
            )
            admin = AdminClient(found.settings(provider.token("admin")))
            for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
                future.result(TIMEOUT_S)
            yield found


def produce(settings: dict[str, object], *, within_ms: int = DELIVERY_MS) -> None:
    """Produce, and fail as the broker says."""
    errors: list[object] = []
    producer = Producer({**settings, "message.timeout.ms": within_ms})
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    if errors[0]:
        raise KafkaException(errors[0])


def test_confluent_kafka_is_the_user_of_its_token(secured: Secured) -> None:
    produce(secured.settings(secured.provider.token("app")))
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        produce(secured.settings(secured.provider.token("guest")))


def test_rules_of_groups_count_from_each_login_on(secured: Secured) -> None:
    """One producer, on one connection: its tokens name other groups, one after the other."""
    admin = AdminClient(secured.settings(secured.provider.token("admin")))
    rules = [
        AclBinding(
            ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL,
            principal, "*", AclOperation.WRITE, permission,
        )
        for principal, permission in (
            ("Group:writers", AclPermissionType.ALLOW),
            ("Group:interns", AclPermissionType.DENY),
        )
    ]  # fmt: skip
    for future in admin.create_acls(rules).values():
        future.result(TIMEOUT_S)
    groups = [["writers"]]

    def hand(_: str) -> tuple[str, float]:
        return secured.provider.token("mia", seconds=6, groups=groups[0]), time.time() + 6

    settings = {**secured.settings(""), "oauth_cb": hand, "message.timeout.ms": DELIVERY_MS}
    producer = Producer({**settings, "topic.metadata.refresh.interval.ms": 200})

    def outcome() -> str:
        errors: list[object] = []
        try:
            producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))
        except KafkaException as error:
            producer.poll(0.1)
            return str(error)
        assert producer.flush(TIMEOUT_S) == 0
        return str(errors[0])

    for now, expected in (
        (["writers", "others"], "None"),
        (["writers", "interns"], "TOPIC_AUTHORIZATION_FAILED"),
        (["writers"], "None"),
        ([], "TOPIC_AUTHORIZATION_FAILED"),
    ):
        groups[0] = now
        wait(
            lambda expected=expected: expected in outcome(),  # type: ignore[misc]
            lambda now=now: f"{now}: {secured.log.read_text()}",  # type: ignore[misc]
        )


class Tokens(AbstractTokenProvider):
    """kafka-python's."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def token(self) -> str:
        return self.text


class AioTokens(AioTokenProvider):
    """aiokafka's."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def token(self) -> str:
        return self.text


def test_kafka_python_and_aiokafka_log_in(secured: Secured) -> None:
    shared = {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
    }
    token = secured.provider.token("app")
    cafile = str(secured.files.trust)
    producer = KafkaProducer(ssl_cafile=cafile, sasl_oauth_token_provider=Tokens(token), **shared)
    first = producer.send(TOPIC, b"one").get(TIMEOUT_S).offset
    producer.close()

    async def produce_async() -> int:
        other = AIOKafkaProducer(
            ssl_context=create_ssl_context(cafile=cafile),
            sasl_oauth_token_provider=AioTokens(token),
            **shared,
        )
        await other.start()
        try:
            return int((await other.send_and_wait(TOPIC, b"two")).offset)
        finally:
            await other.stop()

    assert asyncio.run(produce_async()) == first + 1


def test_a_token_that_does_not_hold_gets_nowhere(secured: Secured) -> None:
    other = Provider()
    other.rotate()
    wrong = {
        "expired": secured.provider.token("app", seconds=-60),
        "for another service": secured.provider.token("app", audience="mail"),
        "of another provider": other.token("app"),
    }
    for what, token in wrong.items():
        errors: list[str] = []
        client = AdminClient(
            {
                **secured.settings(token),
                "error_cb": lambda error, errors=errors: errors.append(str(error)),
            }
        )

        def is_told(client: AdminClient = client, errors: list[str] = errors) -> bool:
            client.poll(0.2)
            return any("invalid user credentials" in one for one in errors)

        wait(is_told, lambda what=what, errors=errors: f"{what}: {errors}")  # type: ignore[misc]
        assert token not in secured.log.read_text()


def test_a_session_ends_with_its_token_and_goes_on_with_the_next_one(secured: Secured) -> None:
    """librdkafka logs in again on the same connection, before the end that it is told."""
    handed: list[str] = []

    def hand(_: str) -> tuple[str, float]:
        handed.append(secured.provider.token("app", seconds=6))
        return handed[-1], time.time() + 6

    settings = {**secured.settings(""), "oauth_cb": hand, "message.timeout.ms": DELIVERY_MS}
    producer = Producer(settings)
    outcomes: list[object] = []

    def is_renewed() -> bool:
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        return len(handed) >= 4

    wait(is_renewed, lambda: f"{len(handed)} tokens")
    assert not any(outcomes)


def test_a_new_key_is_taken_and_the_last_keys_stay_while_the_provider_is_away(
    secured: Secured,
) -> None:
    """The broker asks for keys at the first token of a new one, at most once per 10 s."""
    old = secured.provider.token("app")
    secured.provider.rotate()

    def is_taken() -> bool:
        with contextlib.suppress(KafkaException):
            produce(secured.settings(secured.provider.token("app")), within_ms=REFUSED_MS)
            return True
        return False

    wait(is_taken, lambda: secured.log.read_text())
    produce(secured.settings(old))
    secured.provider.is_away = True
    unknown = Provider(list(secured.provider.keys))
    unknown.rotate()
    with pytest.raises(KafkaException):
        produce(secured.settings(unknown.token("app")), within_ms=REFUSED_MS)
    produce(secured.settings(secured.provider.token("app")))
    assert secured.provider.fetch_count < 12


def test_the_http_port_takes_the_same_tokens_by_the_same_rules(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.files.trust))

    def ask(token: str, path: str = "/metrics") -> int:
        request = urllib.request.Request(secured.http_url + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    admin = AdminClient(secured.settings(secured.provider.token("admin")))
    rule = AclBinding(
        ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL,
        "Group:watchers", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW,
    )  # fmt: skip
    for future in admin.create_acls([rule]).values():
        future.result(TIMEOUT_S)
    token = secured.provider.token
    wait(lambda: ask(token("mia", groups=["watchers"])) == 200, lambda: secured.log.read_text())
    assert ask(token("admin")) == 200
    assert ask(token("mia")) == 403 and ask(token("mia"), "/healthz") == 200
    assert ask("") == 401 and ask("", "/healthz") == 401
    assert ask(token("admin", audience="mail")) == 401
    assert ask(token("admin", seconds=-60)) == 401


# ---- commands ----------------------------------------------------------------------------------


def client_file(secured: Secured, directory: Path, *lines: str) -> dict[str, str]:
    """The environment of a command that logs in by tokens."""
    path = directory / "client.conf"
    shared = (
        f"bootstrap.servers={secured.address}",
        "security.protocol=SASL_SSL",
        f"ssl.ca.location={secured.files.trust}",
        "sasl.mechanism=OAUTHBEARER",
    )
    path.write_text("\n".join((*shared, *lines)) + "\n")
    return os.environ | {"STRANDLINE_CLIENT_CONFIG": str(path)}


def run(*words: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )


def test_commands_log_in_by_a_token_in_a_file(secured: Secured, tmp_path: Path) -> None:
    path = tmp_path / "token"
    environment = client_file(
        secured, tmp_path, f"sasl.oauthbearer.token.endpoint.url=file://{path}"
    )
    missing = run("topic", "list", environment=environment)
    assert missing.returncode == 1
    assert missing.stderr == f"error: {path}: cannot read the token: No such file or directory\n"
    path.write_text(secured.provider.token("app") + "\n")
    listed = run("topic", "list", environment=environment)
    assert listed.returncode == 0 and TOPIC in listed.stdout, listed.stderr
    path.write_text(secured.provider.token("app", seconds=-60))
    refused = run("topic", "list", environment=environment)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: {secured.address}: the login of the token of {path} failed: Authentication "
        "failed: invalid user credentials\n"
    )


def test_a_command_gets_its_tokens_from_the_provider_and_logs_in_again_before_they_end(
    secured: Secured, tmp_path: Path
) -> None:
    environment = client_file(
        secured,
        tmp_path,
        "sasl.oauthbearer.method=oidc",
        f"sasl.oauthbearer.token.endpoint.url={secured.token_url}",
        "sasl.oauthbearer.client.id=reader",
        "sasl.oauthbearer.client.secret=s3cret",
        f"https.ca.location={secured.files.trust}",
    )
    secured.provider.given_count, secured.provider.given_seconds = 0, 5
    produce(secured.settings(secured.provider.token("app")))
    lines = tmp_path / "lines"
    with (
        lines.open("wb") as out,
        subprocess.Popen(
            [COMMAND, "consume", TOPIC], stdout=out, stderr=subprocess.STDOUT, env=environment
        ) as reading,
    ):
        try:
            wait(lambda: secured.provider.given_count >= 5, lambda: lines.read_text())
            before = lines.read_bytes().count(b"x")
            produce(secured.settings(secured.provider.token("app")))
            wait(lambda: lines.read_bytes().count(b"x") == before + 1, lambda: lines.read_text())
            assert reading.poll() is None
        finally:
            reading.terminate()
    assert "end of its login" not in secured.log.read_text(), "no connection was cut"
    wrong = environment | {"STRANDLINE_CLIENT_CONFIG": str(tmp_path / "wrong.conf")}
    text = (tmp_path / "client.conf").read_text().replace("s3cret", "guess")
    (tmp_path / "wrong.conf").write_text(text)
    refused = run("topic", "list", environment=wrong)
    assert refused.stderr == (
        f"error: no token: {secured.token_url}: it answers 401: invalid_client\n"
    )
