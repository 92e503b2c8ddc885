"""DIR/secure: what a local cluster with `--secure` and its clients need.

How:        DIR/secure/ca.pem, ca.key             an authority of its own
            DIR/secure/broker-1.pem, .key         the certificate of a broker, for its clients and
                                                  for other brokers
            DIR/secure/users.jsonl                the users app and admin, for [access] users_file
            DIR/secure/http-tokens.jsonl          for [metrics] tokens_file, if there is such a port
            DIR/secure/http.token                 the token that it has the hash of
            DIR/secure/app.properties, app.conf   how clients log in as app: Java's syntax, and
                                                  librdkafka's, as `kcat -F` reads it
            DIR/secure/admin.properties, .conf    the same as admin
        Files that are there stay: passwords and certificates are made once.
Owns:   the directory.
Source: decision 0069; docs/operating/security.md."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.cli.dev.plan import LOOPBACK, Plan, PlannedBroker
from strandline.client.wire.transport import Transport

ADMIN, APP = USERS = ("admin", "app")
MECHANISM = "SCRAM-SHA-512"
LISTENER = "CLIENTS"
PASSWORD_BYTES = 18
CERTIFICATE_DAYS = 3_650


@dataclass(frozen=True, slots=True)
class SecureFiles:
    """Where they are."""

    directory: Path

    @property
    def trust(self) -> Path:
        """The authority's certificate."""
        return self.directory / "ca.pem"

    @property
    def users(self) -> Path:
        """The users that brokers know from the start."""
        return self.directory / "users.jsonl"

    @property
    def http_tokens(self) -> Path:
        """The tokens that HTTP ports take."""
        return self.directory / "http-tokens.jsonl"

    @property
    def http_token(self) -> Path:
        """The one token that is there from the start."""
        return self.directory / "http.token"

    def certificate(self, broker: PlannedBroker) -> Path:
        """A broker's certificate; its key lies beside it."""
        return self.directory / f"broker-{broker.id}.pem"

    def client(self, user: str) -> Path:
        """How commands and librdkafka log in as a user."""
        return self.directory / f"{user}.conf"

    def java_client(self, user: str) -> Path:
        """How Java's clients log in as a user."""
        return self.directory / f"{user}.properties"

    def make(self, plan: Plan) -> None:
        """Make what is missing; clients' files name the present brokers. Raises OperatorError."""
        from strandline.security.authority import Authority
        from strandline.security.http_tokens import create_token
        from strandline.security.peers import IDENTITY
        from strandline.security.sasl.secrets import secret_from_password
        from strandline.security.sasl.users_file import write_users

        try:
            authority = Authority(self.directory)
            self.directory.chmod(0o700)
            for broker in plan.brokers:
                if not self.certificate(broker).exists():
                    identity = IDENTITY.format(cluster=plan.cluster_id, broker=broker.id)
                    authority.issue(f"broker-{broker.id}", uris=(identity,), days=CERTIFICATE_DAYS)
            for user in USERS:
                password = self._password(user)
                if password is None:
                    password = secrets.token_urlsafe(PASSWORD_BYTES)
                    write_users(self.users, [secret_from_password(user, MECHANISM, password)])
                self._write_clients(plan, user, password)
            if not (self.http_token.exists() and self.http_tokens.exists()):
                _write_secret(self.http_token, [create_token(self.http_tokens, ADMIN)])
        except OSError as error:
            raise OperatorError(f"{error.filename}: cannot write: {error.strerror}") from error

    def transport(self) -> Transport:
        """Connections as admin. Raises OperatorError."""
        from strandline.client.client_config import read_client_config
        from strandline.client.wire.transport import TcpTransport

        config = read_client_config(self.client(ADMIN))
        return TcpTransport(config.tls, login=config.login)

    def sections(self, broker: PlannedBroker, *, has_http: bool) -> dict[str, dict[str, object]]:
        """The sections of the broker's configuration; `[[listener]]` is an array. `has_http`:
        whether it has an HTTP port."""
        certificate = str(self.certificate(broker))
        private_key = str(self.certificate(broker).with_suffix(".key"))
        shown = {"certificate": certificate, "private_key": private_key}
        monitoring: dict[str, object] = {
            **shown,
            "tokens_file": str(self.http_tokens),
            "anonymous": "health",
        }
        return {
            **({"metrics": monitoring} if has_http else {}),
            "[listener]": {
                "name": LISTENER,
                "bind": broker.address,
                "protocol": "SASL_SSL",
                **shown,
            },
            "rpc": {
                "host": LOOPBACK,
                "port": broker.rpc_port,
                "tls": "require",
                **shown,
                "trust": str(self.trust),
            },
            "access": {
                "enforce_rules": True,
                "super_users": [f"User:{ADMIN}"],
                "users_file": str(self.users),
            },
        }

    def _password(self, user: str) -> str | None:
        """The password that the user's file has; None if there is none."""
        try:
            lines = self.client(user).read_text().splitlines()
        except FileNotFoundError:
            return None
        return next(
            (one.split("=", 1)[1] for one in lines if one.startswith("sasl.password=")), None
        )

    def _write_clients(self, plan: Plan, user: str, password: str) -> None:
        shared = [f"bootstrap.servers={plan.bootstrap}", "security.protocol=SASL_SSL"]
        _write_secret(
            self.client(user),
            [
                *shared,
                f"sasl.mechanism={MECHANISM}",
                f"sasl.username={user}",
                f"sasl.password={password}",
                f"ssl.ca.location={self.trust}",
            ],
        )
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        _write_secret(
            self.java_client(user),
            [
                *shared,
                f"sasl.mechanism={MECHANISM}",
                f'sasl.jaas.config={module} required username="{user}" password="{password}";',
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={self.trust}",
            ],
        )


def let_app_in(transport: Transport, plan: Plan) -> None:
    """Rules for app: every topic and every group. Raises ApiError and ClientError."""
    from strandline.client.cluster import Client
    from strandline.client.operations.rules import add_rules
    from strandline.config.addresses import parse_bootstrap
    from strandline.model.access import WILDCARD, Kind, Operation, PatternType, Permission, Rule

    rules = [
        Rule(
            kind,
            PatternType.LITERAL,
            WILDCARD,
            f"User:{APP}",
            WILDCARD,
            Operation.ALL,
            Permission.ALLOW,
        )
        for kind in (Kind.TOPIC, Kind.GROUP)
    ]
    with Client(parse_bootstrap(plan.bootstrap), transport=transport) as client:
        add_rules(client, rules)


def _write_secret(path: Path, lines: list[str]) -> None:
    scratch = path.with_name(f"{path.name}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    scratch.replace(path)
