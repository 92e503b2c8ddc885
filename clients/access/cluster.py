"""Three brokers that enforce rules: certificates among themselves, and a listener for each login.

How:        PASSWORDS     SASL_SSL with SCRAM-SHA-256 and SCRAM-SHA-512
            SESSIONS      the same; a login holds for SESSION_MS
            CERTIFICATES  SSL with certificates that a rule maps to principals
            TOKENS        SASL_SSL with OAUTHBEARER, keys from a provider
        The user is `app` at each of them; it may use what begins with `allowed-`. `admin` has a
        certificate and is a super user."""

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.clusters import STRANDLINE
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from clients.access.login import Login, by_certificate, by_password, by_token
from clients.access.provider import AUDIENCE, CLIENT_ID, CLIENT_SECRET, ISSUER, USER, Provider
from clients.access.provider import served as provider_served
from clients.observer import Observer
from strandline.cli.dev.plan import is_port_free
from strandline.security.authority import Authority, Files

COUNT, LISTENERS = 3, 4
PASSWORDS, SESSIONS, CERTIFICATES, TOKENS = range(LISTENERS)
SESSION_MS = 3_000
CLUSTER_ID = "access"
PASSWORD = "correct horse, battery = staple"
ALLOWED = "allowed-"
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
ITERATIONS = 4_096
START_S, ANSWER_S, POLL_S = 180, 60, 0.05
PORTS_FIRST, PORTS_COUNT, PORTS_STEP = 31_000, 1_500, 100
"""Above those of the clusters of `tests.integration`, which may run beside these."""
RULE = 'principal_mapping_rules = "RULE:^CN=(.*?),OU=clients,O=example$/$1/, DEFAULT"'
Port = Callable[[], int]


@dataclass
class Broker:
    """One broker: its directory, its ports and its process."""

    id: int
    directory: Path
    rpc_port: int
    ports: list[int]
    files: Files
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start its process."""
        with open(self.directory / "broker.log", "ab") as log:
            self.process = subprocess.Popen(
                [STRANDLINE, "serve", "--config", str(self.directory / "broker.toml")],
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(START_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def log(self) -> str:
        """What it has logged."""
        path = self.directory / "broker.log"
        return path.read_text() if path.exists() else ""

    def logged(self, text: str) -> int:
        """How often it has logged a text."""
        return self.log().count(text)

    def restart(self) -> None:
        """Stop and start it; returns when it serves."""
        before = self.served()
        self.stop()
        self.start()
        self.wait(lambda: self.served() >= before + LISTENERS, "it serves again")

    def served(self) -> int:
        """How many listeners it has opened so far, in all its lives."""
        return self.logged("serves Kafka clients on")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; a bound, not a measurement."""
        deadline = time.monotonic() + START_S
        while not condition():
            if time.monotonic() > deadline or (self.process and self.process.poll() is not None):
                raise RuntimeError(f"broker {self.id}: not so: {what}: {self.log()[-2_000:]}")
            time.sleep(POLL_S)


@dataclass
class AccessCluster:
    """The brokers, the authority of their certificates, and the provider of tokens."""

    directory: Path
    authority: Authority
    provider: Provider
    brokers: list[Broker] = field(default_factory=list)

    def bootstrap(self, listener: int) -> str:
        """The addresses of each broker's listener of this number."""
        return ",".join(f"127.0.0.1:{one.ports[listener]}" for one in self.brokers)

    def password(self, mechanism: str = "SCRAM-SHA-512", *, listener: int = PASSWORDS) -> Login:
        """`app` by its password."""
        where = self.bootstrap(listener)
        return by_password(where, self.authority.trust, mechanism, USER, PASSWORD)

    def certificate(self) -> Login:
        """`app` by its certificate."""
        files = self.authority.issue("app", subject="CN=app,OU=clients,O=example")
        return by_certificate(self.bootstrap(CERTIFICATES), files)

    def token(self) -> Login:
        """`app` by tokens."""
        return by_token(
            self.bootstrap(TOKENS),
            self.authority.trust,
            self.provider.token_url,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
        )

    def admin(self) -> Login:
        """The super user, by its certificate."""
        files = self.authority.issue("admin", subject="CN=admin,OU=clients,O=example")
        return by_certificate(self.bootstrap(CERTIFICATES), files)

    def observer(self) -> Observer:
        """The client that checks, as super user."""
        login = self.admin()
        return Observer(login.bootstrap, login=login)

    def audited(self, **fields: str) -> int:
        """How many lines of the audit logs have these fields."""
        lines: list[dict[str, object]] = []
        for broker in self.brokers:
            path = broker.directory / "audit.jsonl"
            if path.exists():
                lines += map(json.loads, path.read_text().splitlines())
        wanted = fields.items()
        return sum(all(line.get(key) == value for key, value in wanted) for line in lines)

    def renew(self, broker: Broker) -> None:
        """Give a broker another certificate and key, and wait until handshakes use them."""
        done = "new TLS handshakes use the changed files"
        before = broker.logged(done)
        new = _issue(self.authority, f"renewed-{broker.id}", broker.id)
        broker.files.certificate.write_bytes(new.certificate.read_bytes())
        broker.files.key.write_bytes(new.key.read_bytes())
        broker.wait(lambda: broker.logged(done) >= before + LISTENERS, "changed files in use")

    def start(self) -> None:
        """Start all, and wait until all serve."""
        seeds = ", ".join(f'"{one.id}@127.0.0.1:{one.rpc_port}"' for one in self.brokers)
        for broker in self.brokers:
            (broker.directory / "broker.toml").write_text(self._configuration(broker, seeds))
            broker.start()
        for broker in self.brokers:
            broker.wait(partial(_serves, broker), "it serves")

    def let_app_in(self) -> None:
        """The user's password, and the rules of what it may."""
        login = self.admin()
        admin = AdminClient({"bootstrap.servers": login.bootstrap, **login.librdkafka()})
        changes = [
            UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(one, ITERATIONS), PASSWORD.encode()
            )
            for one in MECHANISMS.values()
        ]
        for change in changes:
            for future in admin.alter_user_scram_credentials([change]).values():
                future.result(ANSWER_S)
        rules = [
            AclBinding(
                kind,
                ALLOWED,
                ResourcePatternType.PREFIXED,
                f"User:{USER}",
                "*",
                AclOperation.ALL,
                AclPermissionType.ALLOW,
            )
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        ]
        for future in admin.create_acls(rules).values():
            future.result(ANSWER_S)

    def _configuration(self, broker: Broker, seeds: str) -> str:
        own = (
            f'certificate = "{broker.files.certificate}"\n'
            f'private_key = "{broker.files.key}"\ntrust = "{broker.files.trust}"\n'
        )
        passwords = 'protocol = "SASL_SSL"\nsasl_mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512"]\n'
        tokens = 'protocol = "SASL_SSL"\nsasl_mechanisms = ["OAUTHBEARER"]\n'
        kinds = {
            "PASSWORDS": passwords,
            "SESSIONS": f"{passwords}sasl_session_ms = {SESSION_MS}\n",
            "CERTIFICATES": f'protocol = "SSL"\nclient_certificates = "required"\n{RULE}\n',
            "TOKENS": tokens,
        }
        listeners = "".join(
            f'[[listener]]\nname = "{name}"\nbind = "127.0.0.1:{port}"\n{lines}{own}'
            for (name, lines), port in zip(kinds.items(), broker.ports, strict=True)
        )
        return (
            f'[broker]\nid = {broker.id}\ndata_directory = "{broker.directory / "data"}"\n'
            f'[cluster]\nid = "{CLUSTER_ID}"\nseeds = [{seeds}]\n'
            f'[rpc]\nport = {broker.rpc_port}\ntls = "require"\n{own}{listeners}'
            f'[access]\nenforce_rules = true\nsuper_users = ["User:admin"]\n'
            f'audit_file = "{broker.directory / "audit.jsonl"}"\n'
            f'[oauthbearer]\njwks_endpoint_url = "{self.provider.keys_url}"\n'
            f'jwks_endpoint_trust = "{self.authority.trust}"\n'
            f'expected_issuer = "{ISSUER}"\nexpected_audience = ["{AUDIENCE}"]\n'
        )


def _issue(authority: Authority, name: str, broker: int) -> Files:
    """A broker's certificate. `localhost` is not among its names: a client that asks for it finds
    another host's certificate."""
    identity = f"strandline://{CLUSTER_ID}/broker/{broker}"
    return authority.issue(name, dns=(), uris=(identity,))


def _free_port() -> Port:
    """Ports on which nothing listens, below those that the kernel gives to clients."""
    first = PORTS_FIRST + os.getpid() * PORTS_STEP % PORTS_COUNT
    ports = (port for port in itertools.count(first) if is_port_free(port))
    return lambda: next(ports)


def _serves(broker: Broker) -> bool:
    return broker.served() >= LISTENERS


@contextmanager
def access_cluster(directory: Path) -> Iterator[AccessCluster]:
    """The brokers, running and with their rules; stopped at the end."""
    directory.mkdir(parents=True, exist_ok=True)
    authority, port = Authority(directory / "ca"), _free_port()
    with provider_served(authority.issue("provider")) as provider:
        cluster = AccessCluster(directory, authority, provider)
        for number in range(1, COUNT + 1):
            own = directory / f"broker-{number}"
            own.mkdir()
            files = _issue(authority, f"broker-{number}", number)
            ports = [port() for _ in range(LISTENERS)]
            cluster.brokers.append(Broker(number, own, port(), ports, files))
        try:
            cluster.start()
            cluster.let_app_in()
            yield cluster
        finally:
            for broker in cluster.brokers:
                broker.stop()
