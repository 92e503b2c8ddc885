"""Loads the certificates that a broker's configuration names; checks its files of secrets.

Why:    a broker whose files are missing or do not match must say so before it joins.
Owns:   nothing.
Source: docs/decisions/0069-access.md."""

from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import Listener
from strandline.config.other_ports import OFF, REQUIRE
from strandline.security.http_tokens import HttpTokens
from strandline.security.peers import PeerTls
from strandline.security.sasl.users_file import read_users_file
from strandline.security.tls import Pair, ServerTls, TlsSettings
from strandline.tiered.objects.credentials import CredentialsFile


@dataclass(frozen=True, slots=True)
class Certificates:
    """The TLS of a broker's ports. `listeners`: {listener: ...}, of those that have it."""

    listeners: dict[str, ServerTls]
    peers: PeerTls | None
    monitoring: ServerTls | None

    @property
    def all(self) -> tuple[ServerTls | PeerTls, ...]:
        """All of them."""
        others = (self.peers, self.monitoring)
        return (*self.listeners.values(), *(one for one in others if one is not None))


def load_certificates(config: BrokerConfig) -> Certificates:
    """Load all. Raises OperatorError."""
    return Certificates(listeners_tls(config), peers_tls(config), monitoring_tls(config))


def certificate_mistakes(config: BrokerConfig) -> list[str]:
    """What is wrong with the files, in one line for each port, for those who only check."""
    mistakes = []
    for load in (peers_tls, monitoring_tls):
        try:
            load(config)
        except OperatorError as error:
            mistakes.append(str(error))
    for listener in config.listeners:
        try:
            if listener.is_tls:
                ServerTls(_settings(listener))
        except OperatorError as error:
            mistakes.append(str(error))
    return mistakes


def secret_mistakes(config: BrokerConfig) -> list[str]:
    """What is wrong with the files of users, tokens and credentials of buckets, one line each."""
    mistakes = []
    if config.access.users_file:
        try:
            read_users_file(Path(config.access.users_file))
        except OperatorError as error:
            mistakes.append(f"[access] users_file: {error}")
    try:
        http_tokens(config)
    except OperatorError as error:
        mistakes.append(str(error))
    credentials = CredentialsFile(config.tiered.credentials_file)
    found: dict[str, None] = {}
    for url in config.tiered.bucket_urls:
        try:
            credentials.read(url.name, url.scheme)
        except OperatorError as error:
            found[f"[tiered] credentials_file: {error}"] = None
    return [*mistakes, *found]


def listeners_tls(config: BrokerConfig) -> dict[str, ServerTls]:
    """The TLS of the listeners that have it: {listener: ...}. Raises OperatorError."""
    return {one.name: ServerTls(_settings(one)) for one in config.listeners if one.is_tls}


def peers_tls(config: BrokerConfig) -> PeerTls | None:
    """The TLS between brokers; None if it is off. Raises OperatorError."""
    rpc = config.rpc
    if rpc.tls == OFF:
        return None
    return PeerTls(
        certificate=Path(rpc.certificate),
        private_key=Path(rpc.private_key),
        trust=Path(rpc.trust),
        cluster=config.cluster.id,
        broker=config.broker_id,
        is_required=rpc.tls == REQUIRE,
    )


def monitoring_tls(config: BrokerConfig) -> ServerTls | None:
    """The TLS of the HTTP port; None if it has none. Raises OperatorError."""
    metrics = config.metrics
    if not metrics.port or not metrics.certificate:
        return None
    return ServerTls(
        TlsSettings(
            place="[metrics]",
            pairs=(Pair(Path(metrics.certificate), Path(metrics.private_key)),),
            trust=Path(metrics.trust) if metrics.trust else None,
            client_certificates=metrics.client_certificates,
        )
    )


def http_tokens(config: BrokerConfig) -> HttpTokens | None:
    """The tokens of the HTTP port; None if it has no file of them. Raises OperatorError."""
    metrics = config.metrics
    return HttpTokens(Path(metrics.tokens_file)) if metrics.port and metrics.tokens_file else None


def _settings(listener: Listener) -> TlsSettings:
    entry = listener.entry
    assert entry is not None
    pairs = [(entry.certificate, entry.private_key)]
    pairs += [(one.partition("=")[0], one.partition("=")[2]) for one in entry.more_certificates]
    return TlsSettings(
        place=listener.place,
        pairs=tuple(Pair(Path(certificate), Path(key)) for certificate, key in pairs),
        trust=Path(entry.trust) if entry.trust else None,
        client_certificates=entry.client_certificates,
        version_min=entry.tls_version_min,
    )
