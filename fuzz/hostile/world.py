"""What every attack is given: the broker, contexts of TLS, requests that aim at what is secret, and
the look at each answer.

Owns:   the connections that attacks leave open."""

import socket
import ssl
from collections import deque
from functools import cached_property
from pathlib import Path
from random import Random
from uuid import UUID

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

from fuzz import samples
from fuzz.access_targets import certificate_builder, certificate_key
from fuzz.hostile.cluster import ADMIN, GROUP, TOPIC, USER, Ports, SecureBroker
from fuzz.hostile.wire import FindingError
from strandline.client.wire.connection import Connection
from strandline.protocol.apis import Api
from strandline.security.authority import Authority

HELD_MAX = 200
"""Connections that do not go on, at one time."""
LEFT_MAX = 5
"""The same of those that have logged in and announced a large request."""
AUTHORIZED_NAMES = (TOPIC, GROUP, USER)


class World:
    """See the module."""

    def __init__(self, broker: SecureBroker) -> None:
        self.broker = broker
        self.ports: Ports = broker.ports
        self.tls = broker.tls()
        self.lax_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.lax_tls.check_hostname = False
        self.lax_tls.verify_mode = ssl.CERT_NONE
        self._held: deque[socket.socket] = deque()
        self._left: deque[Connection] = deque()
        self._words = samples.Words(
            texts=(TOPIC, GROUP, USER, f"User:{USER}", f"User:{ADMIN}", *samples.TEXTS),
            ids=(UUID(bytes=broker.topic_id),),
        )

    def aimed(self, random: Random, api: Api) -> bytes:
        """A request of an API that names what is secret."""
        return samples.request(random, api, self._words)

    def expect_no_secret(self, asked: bytes, got: bytes) -> None:
        """Raise FindingError if an answer has a secret that its request had not."""
        for secret in self.broker.secrets:
            if secret in got and secret not in asked:
                raise FindingError(f"{secret!r} in the answer to {asked[:200].hex()}")

    def hold(self, sock: socket.socket) -> None:
        """Leave a connection open; the oldest one ends beyond a bound."""
        self._held.append(sock)
        if len(self._held) > HELD_MAX:
            self._held.popleft().close()

    def leave(self, connection: Connection) -> None:
        """The same for one that has logged in."""
        self._left.append(connection)
        if len(self._left) > LEFT_MAX:
            self._left.popleft().close()

    def release(self) -> None:
        """End them all."""
        while self._left:
            self._left.popleft().close()
        while self._held:
            self._held.popleft().close()

    def certificate(self, random: Random) -> tuple[ssl.SSLContext, bool]:
        """A client's context with a certificate of a hostile subject, and whether the broker trusts
        its authority."""
        is_trusted = random.random() < 0.7
        authority = self.broker.authority if is_trusted else self._other
        key_of_authority = _key_of(authority)
        issuer = x509.load_pem_x509_certificate(authority.trust.read_bytes()).subject
        made = certificate_builder(random, issuer=issuer).sign(key_of_authority, SHA256())
        path = self.broker.directory / "client.pem"
        key = certificate_key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key)
        context = self.broker.tls()
        context.load_cert_chain(path)
        return context, is_trusted

    @cached_property
    def _other(self) -> Authority:
        return Authority(Path(self.broker.directory) / "other")


def _key_of(authority: Authority) -> EllipticCurvePrivateKey:
    data = authority.trust.with_suffix(".key").read_bytes()
    key = serialization.load_pem_private_key(data, password=None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return key


def errors_of(answer: msgspec.Struct, *, within: bool = False) -> list[tuple[str, int]]:
    """[(name, error code)] of the parts of an answer that are about something secret."""
    found: list[tuple[str, int]] = []
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    named = [value for value in fields.values() if value in AUTHORIZED_NAMES]
    is_secret = within or bool(named)
    code = fields.get("error_code")
    if is_secret and isinstance(code, int):
        found.append((str(named[0]) if named else "", code))
    for value in fields.values():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, msgspec.Struct):
                found += errors_of(one, within=is_secret)
    return found
