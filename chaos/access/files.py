"""Authorities, certificates, users and clients' configuration files of one run.

How:    Clients trust both authorities of listeners from the start, so that certificates of
        brokers may move from one to the other. Brokers read one file of trust for each other: an
        authority is added, then certificates move, then the old one goes.
        A certificate and its key are one file, which takes its place by a rename: a broker that
        starts between two renames would find a key that is not of its certificate, and end.
Owns:   the directory `secure` of the run.
Source: docs/operating/security.md."""

import os
import secrets
from pathlib import Path

from chaos.hosts import BOOTSTRAP, BROKERS, KAFKA_PORT, RPC_PORT, Host, broker_host
from strandline.security.authority import Authority, Files
from strandline.security.peers import IDENTITY
from strandline.security.sasl.secrets import secret_from_password
from strandline.security.sasl.users_file import write_users

CLUSTER = "chaos"
ADMIN = "admin"
MECHANISM = "SCRAM-SHA-256"
SESSION_MS = 20_000
"""A login holds so long: all clients log in again many times in a run."""
PASSWORD_BYTES = 12
GENERATIONS = 2
"""Authorities that take turns."""


class SecureFiles:
    """See the module. `wrong`: an authority that no broker trusts."""

    def __init__(self, work: Path) -> None:
        self.directory = work / "secure"
        self._listeners = [Authority(self.directory, f"ca-{n}") for n in range(GENERATIONS)]
        self._peers = [Authority(self.directory, f"peers-{n}") for n in range(GENERATIONS)]
        self.wrong = Authority(self.directory / "wrong", "peers-0")
        self._generation = 0
        self.trust = self.directory / "ca.pem"
        self.peers_trust = self.directory / "peers.pem"
        self._put(self.trust, _joined(self._listeners))
        self._put(self.peers_trust, _joined(self._peers[:1]))
        for host in BROKERS:
            self.renew(host.broker)
        password = self.draw_password(ADMIN).read_text().strip()
        self.write_client(ADMIN)
        write_users(
            self.directory / "users.jsonl", [secret_from_password(ADMIN, MECHANISM, password)]
        )

    def client(self, user: str) -> Path:
        """How commands and clients log in as a user."""
        return self.directory / f"{user}.conf"

    def password_file(self, user: str) -> Path:
        """The password that a user is to get."""
        return self.directory / f"{user}.password"

    def draw_password(self, user: str) -> Path:
        """A new password in the user's password file; clients go on with theirs."""
        path = self.password_file(user)
        self._put(path, (secrets.token_urlsafe(PASSWORD_BYTES) + "\n").encode())
        return path

    def write_client(self, user: str) -> None:
        """Clients of a user take the password of its file from now on."""
        password = self.password_file(user).read_text().strip()
        lines = (
            f"bootstrap.servers={BOOTSTRAP}",
            "security.protocol=SASL_SSL",
            f"sasl.mechanism={MECHANISM}",
            f"sasl.username={user}",
            f"sasl.password={password}",
            f"ssl.ca.location={self.trust}",
        )
        self._put(self.client(user), "".join(f"{line}\n" for line in lines).encode())

    def renew(self, broker: int) -> None:
        """New certificates of one broker, of the present authorities."""
        address = broker_host(broker).address
        identity = IDENTITY.format(cluster=CLUSTER, broker=broker)
        self._move(
            self._listeners[self._generation].issue("new", dns=(), ips=(address,)),
            self.directory / "listener" / f"{broker}.pem",
        )
        self._move(
            self._peers[self._generation].issue("new", dns=(), ips=(), uris=(identity,)),
            self.directory / "peer" / f"{broker}.pem",
        )

    def forge(self, broker: int) -> Path:
        """A certificate between brokers that names this broker, of the wrong authority, and its
        key, in one file."""
        identity = IDENTITY.format(cluster=CLUSTER, broker=broker)
        made = self.wrong.issue(f"broker-{broker}", uris=(identity,))
        place = made.certificate.with_name(f"forged-{broker}.pem")
        self._put(place, made.certificate.read_bytes() + made.key.read_bytes())
        return place

    def trust_both(self) -> None:
        """Brokers trust the next authority, too."""
        self._put(self.peers_trust, _joined(self._peers))

    def move_to_next(self) -> None:
        """All brokers have certificates of the next authority."""
        self._generation = (self._generation + 1) % GENERATIONS
        for host in BROKERS:
            self.renew(host.broker)

    def trust_present(self) -> None:
        """The authority before is trusted no more."""
        self._put(self.peers_trust, _joined([self._peers[self._generation]]))

    def sections(self, host: Host) -> str:
        """The sections of a broker's configuration that say who may reach it."""
        listener = self.directory / "listener" / f"{host.broker}.pem"
        peer = self.directory / "peer" / f"{host.broker}.pem"
        return (
            f'[[listener]]\nname = "CLIENTS"\nbind = "{host.address}:{KAFKA_PORT}"\n'
            f'protocol = "SASL_SSL"\nsasl_session_ms = {SESSION_MS}\n'
            f"{_pair(listener)}\n" + self.peer_section(host.address, peer) + "[access]\n"
            f'enforce_rules = true\nsuper_users = ["User:{ADMIN}"]\n'
            f'users_file = "{self.directory}/users.jsonl"\n\n'
        )

    def peer_section(self, address: str, certificate: Path) -> str:
        """[rpc] with TLS. `certificate`: the file with it and its key."""
        return (
            f'[rpc]\nhost = "{address}"\nport = {RPC_PORT}\ntls = "require"\n'
            f'{_pair(certificate)}trust = "{self.peers_trust}"\n\n'
        )

    def _move(self, made: Files, place: Path) -> None:
        place.parent.mkdir(exist_ok=True)
        self._put(place, made.certificate.read_bytes() + made.key.read_bytes())

    def _put(self, path: Path, data: bytes) -> None:
        """Whole or not at all."""
        scratch = path.with_name(f"{path.name}.new")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        scratch.replace(path)


def _joined(authorities: list[Authority]) -> bytes:
    return b"".join(one.trust.read_bytes() for one in authorities)


def _pair(path: Path) -> str:
    return f'certificate = "{path}"\nprivate_key = "{path}"\n'
