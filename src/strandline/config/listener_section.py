"""The sections of a broker's file that are about the listeners for Kafka clients.

Why:    clients of different networks reach a broker at different addresses, with different
        protection; most brokers have one listener, and one short section for it.
How:    `[listener]` is one listener without protection; `[[listener]]`, once or several times, are
        several. `Listener` is either, with the addresses read.
Owns:   nothing.
Source: docs/decisions/0069-access.md; Kafka's `listeners` and `ssl.*`."""

import re
from dataclasses import dataclass

from strandline.config.addresses import check_host, is_wildcard, parse_address
from strandline.config.client_networks import parse_network
from strandline.config.keys import INT_MAX, LONG_MAX, Value, key, required
from strandline.config.principal_rules import check_principal_rules
from strandline.config.tls_keys import client_authorities_file, private_key_file
from strandline.model.cluster import ONLY_LISTENER, Address, Endpoint, NearAddress

PORT_MAX = 65_535
PLAINTEXT, SSL = "PLAINTEXT", "SSL"
SASL_PLAINTEXT, SASL_SSL = "SASL_PLAINTEXT", "SASL_SSL"
assert ONLY_LISTENER == PLAINTEXT, "Kafka names a listener after its protocol"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SASL_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", PLAIN, OAUTHBEARER)
NO_CERTIFICATES, REQUESTED, REQUIRED = CLIENT_CERTIFICATES = ("none", "requested", "required")
TLS_VERSIONS = ("1.2", "1.3")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


def _check_name(value: Value) -> str | None:
    if _NAME.fullmatch(str(value)):
        return None
    return f"must be at most 64 of A-Z a-z 0-9 . _ -, not {str(value)!r}"


def _check_address(value: Value) -> str | None:
    try:
        if value:
            parse_listener_address(str(value))
    except ValueError as error:
        return str(error)
    return None


def parse_near_address(text: str) -> NearAddress:
    """Read `network=host:port`; raises ValueError with the reason."""
    network, equals, address = (part.strip() for part in text.partition("="))
    if not (network and equals and address):
        raise ValueError(f"must look like 10.0.0.0/8=host:port, not {text!r}")
    found = parse_address(address)
    if is_wildcard(found.host):
        raise ValueError(f"gives {address}, which no client can reach")
    return NearAddress(str(parse_network(network)), found)


def _check_advertised_for(value: Value) -> str | None:
    assert isinstance(value, tuple)
    try:
        networks = [parse_near_address(one).network for one in value]
    except ValueError as error:
        return str(error)
    twice = next((one for one in networks if networks.count(one) > 1), None)
    return None if twice is None else f"gives the network {twice} twice"


def _check_protocol(value: Value) -> str | None:
    if value in PROTOCOLS:
        return None
    return f"must be {' or '.join(PROTOCOLS)}, not {str(value)!r}"


def check_pair(value: Value) -> str | None:
    """Whether every part is `certificate=key`."""
    assert isinstance(value, tuple)
    for part in value:
        certificate, equals, key_file = part.partition("=")
        if not (certificate and equals and key_file):
            return f"must be certificate=key, two PEM files, not {part!r}"
    return None


def parse_listener_address(text: str) -> Address:
    """Read `host:port`, where the host may be 0.0.0.0 or [::]; raises ValueError."""
    return parse_address(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSection:
    """[listener]: where Kafka clients connect, if one listener without TLS is enough."""

    kafka_host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all. With the default, only clients on this "
        "machine can connect.",
        check=check_host,
        example="0.0.0.0",
    )
    kafka_port: int = key(9092, "The port to listen on.", minimum=1, maximum=PORT_MAX)
    advertised_host: str = key(
        "",
        "The host that the broker tells clients to connect to; empty for `kafka_host`.",
        check=check_host,
        example="broker-1.example",
    )
    advertised_port: int = key(
        0,
        "The port that the broker tells clients to connect to; 0 for `kafka_port`.",
        minimum=0,
        maximum=PORT_MAX,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerEntry:
    """[[listener]]: where Kafka clients connect, once for each listener. It takes the place of
    `[listener]`. A client is told the addresses of the listener that it came to, so a listener has
    the same name on every broker. See docs/operating/security-tls.md."""

    name: str = required(
        "INTERNAL", "The listener's name, the same on every broker.", check=_check_name
    )
    bind: str = required("0.0.0.0:9093", "The address and port to listen on.", check=_check_address)
    advertised: str = key(
        "",
        "The address and port that the broker tells clients to connect to; empty for `bind`.",
        check=_check_address,
        example="broker-1.example:9093",
    )
    advertised_for: tuple[str, ...] = key(
        (),
        "What the broker and all others tell clients of certain networks instead of `advertised`, "
        "each as network=host:port, by the address that the client comes from. Of nested networks "
        "the narrowest counts.",
        check=_check_advertised_for,
        example="10.0.0.0/8=10.1.2.3:9093,2001:db8::/32=[2001:db8::3]:9093",
    )
    protocol: str = key(
        PLAINTEXT,
        "PLAINTEXT, SSL (TLS), SASL_PLAINTEXT (users log in) or SASL_SSL (they log in over TLS).",
        check=_check_protocol,
        example="SASL_SSL",
    )
    sasl_mechanisms: tuple[str, ...] = key(
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        "How users log in, if the protocol is SASL_PLAINTEXT or SASL_SSL. SCRAM and PLAIN know the "
        "same users. OAUTHBEARER takes tokens, as [oauthbearer] says. PLAIN sends the password "
        "itself, and OAUTHBEARER the token: other machines reach them by SASL_SSL only.",
        choices=SASL_MECHANISMS,
    )
    sasl_session_ms: int = key(
        0,
        "How long a login lasts; a client logs in again before, on the same connection (Kafka's "
        "`connections.max.reauth.ms`). 0: as long as the connection.",
        unit="ms",
        minimum=0,
        maximum=LONG_MAX,
    )
    certificate: str = key(
        "",
        "A PEM file: the certificate that the broker shows, and those between it and the "
        "authority. The broker reads it again when it changes.",
        example="/etc/strandline/broker-1.pem",
    )
    private_key: str = private_key_file("/etc/strandline/broker-1.key")
    trust: str = client_authorities_file("/etc/strandline/clients-ca.pem")
    more_certificates: tuple[str, ...] = key(
        (),
        "Further certificates with their keys, each as certificate=key. The broker shows the first "
        "one whose names have the host that the client asks for (SNI), `certificate` otherwise.",
        check=check_pair,
        example="/etc/strandline/public.pem=/etc/strandline/public.key",
    )
    client_certificates: str = key(
        NO_CERTIFICATES,
        "Whether clients show a certificate. One that a client shows must be of an authority in "
        "`trust`; it names the principal. A client without one is User:ANONYMOUS.",
        choices=CLIENT_CERTIFICATES,
    )
    principal_mapping_rules: str = key(
        "DEFAULT",
        "How the name in a client's certificate becomes a principal, as Kafka's "
        "`ssl.principal.mapping.rules`: rules with commas between, of which the first that matches "
        "the whole name decides. DEFAULT: the whole name.",
        check=check_principal_rules,
        example="RULE:^CN=(.*?),.*$/$1/L, DEFAULT",
    )
    connection_rate_max: int = key(
        INT_MAX,
        "The most connections per second that the listener accepts (Kafka's "
        "`listener.name.NAME.max.connection.creation.rate`); further clients wait.",
        minimum=1,
        maximum=INT_MAX,
    )
    tls_version_min: str = key(
        "1.2", "The oldest version of TLS that clients may use.", choices=TLS_VERSIONS
    )


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of either form: where it listens, where clients are told to connect."""

    name: str
    bind: Address
    advertised: Address
    entry: ListenerEntry | None = None
    """Its section, if it is a [[listener]]."""

    @property
    def protocol(self) -> str:
        """One of PROTOCOLS."""
        return PLAINTEXT if self.entry is None else self.entry.protocol

    @property
    def is_tls(self) -> bool:
        """Whether TLS protects it."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def has_logins(self) -> bool:
        """Whether its clients log in by SASL."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    @property
    def is_authenticated(self) -> bool:
        """Whether every client says who it is."""
        entry = self.entry
        return entry is not None and (
            self.has_logins or (self.is_tls and entry.client_certificates == REQUIRED)
        )

    @property
    def place(self) -> str:
        """How messages name it."""
        return "[listener]" if self.entry is None else f"[[listener]] {self.name}"

    @property
    def port_key(self) -> str:
        """The key of the port that it listens on."""
        return "[listener] kafka_port" if self.entry is None else f"{self.place} bind"

    @property
    def endpoint(self) -> Endpoint:
        """What the controller knows of it."""
        texts = () if self.entry is None else self.entry.advertised_for
        near = tuple(parse_near_address(one) for one in texts)
        return Endpoint(self.name, self.advertised, self.protocol, near)


def listener_of(entry: ListenerEntry) -> Listener:
    """The listener of a [[listener]]."""
    bind = parse_listener_address(entry.bind)
    advertised = parse_listener_address(entry.advertised) if entry.advertised else bind
    return Listener(entry.name, bind, advertised, entry)
