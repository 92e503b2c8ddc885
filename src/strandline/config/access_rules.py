"""Relations between the keys of a broker's file that are about its ports.

Why:    a port that any machine may use must be open by decision, and a port with TLS needs all its
        files; a broker finds out when it starts.
Source: docs/decisions/0069-access.md."""

from collections.abc import Iterator

from strandline.config.addresses import format_address, is_loopback, is_wildcard
from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import (
    NO_CERTIFICATES,
    OAUTHBEARER,
    PLAIN,
    REQUIRED,
    Listener,
    ListenerEntry,
)
from strandline.config.other_ports import NONE, OFF, READ, REQUIRE

_IF_WANTED = "or write `insecure = true` under [security] if every machine may"


def broken_access_rules(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Every rule that does not hold: (`[section] key`, reason)."""
    yield from _entries(config)
    for listener in config.listeners:
        if listener.entry is not None:
            yield from _files(listener, listener.entry)
    yield from _tokens(config)
    yield from _peers(config)
    yield from _monitoring(config)
    if not config.security.insecure:
        yield from _open_ports(config)


def _entries(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    listeners = config.listeners
    if config.listener_entries and config.listener != type(config.listener)():
        yield (
            "[listener]",
            "stands beside [[listener]], which takes its place: give one of the two",
        )
    names = [one.name for one in listeners]
    for name in sorted({one for one in names if names.count(one) > 1}):
        yield f"[[listener]] {name}", "stands twice: each listener has a name of its own"
    for listener in listeners:
        if is_wildcard(listener.advertised.host):
            key = "advertised_host" if listener.entry is None else "advertised"
            own = "kafka_host" if listener.entry is None else "bind"
            bound = listener.bind.host if listener.entry is None else format_address(listener.bind)
            yield (
                f"{listener.place} {key}",
                f"must be given when {own} is {bound}: no client can reach that",
            )


def _files(listener: Listener, entry: ListenerEntry) -> Iterator[tuple[str, str]]:
    place = listener.place
    if not listener.is_tls:
        for name in ("certificate", "private_key", "trust", "more_certificates"):
            if getattr(entry, name):
                yield f"{place} {name}", f"means nothing with protocol = {entry.protocol!r}"
        if entry.client_certificates != NO_CERTIFICATES:
            yield (
                f"{place} client_certificates",
                f"means nothing with protocol = {entry.protocol!r}",
            )
        return
    for name in ("certificate", "private_key"):
        if not getattr(entry, name):
            yield f"{place} {name}", f'must be given with protocol = "{entry.protocol}": a PEM file'
    if entry.client_certificates != NO_CERTIFICATES and not entry.trust:
        yield (
            f"{place} trust",
            f'must be given with client_certificates = "{entry.client_certificates}": a PEM file '
            "with the certificates of the authority that clients' certificates are of",
        )


def _tokens(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """What logins by tokens need."""
    entries = [one.entry for one in config.listeners if one.entry is not None and one.has_logins]
    users = [
        f"[[listener]] {one.name} has {OAUTHBEARER} in sasl_mechanisms"
        for one in entries
        if OAUTHBEARER in one.sasl_mechanisms
    ]
    if config.metrics.port and config.metrics.oauthbearer:
        users.append("[metrics] oauthbearer is true")
    section = config.oauthbearer
    needed = (
        "jwks_endpoint_url",
        "expected_issuer",
        "expected_audience",
        "sub_claim_name",
        "algorithms",
    )
    for name in needed:
        if users and not getattr(section, name):
            yield (
                f"[oauthbearer] {name}",
                f"must be given: {users[0]}",
            )


def _peers(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    rpc = config.rpc
    for name in ("certificate", "private_key", "trust"):
        if rpc.tls == OFF and getattr(rpc, name):
            yield f"[rpc] {name}", 'means nothing with tls = "off"'
        if rpc.tls != OFF and not getattr(rpc, name):
            yield f"[rpc] {name}", f'must be given with tls = "{rpc.tls}": a PEM file'
    if rpc.tls != OFF and not config.cluster.id:
        yield (
            "[cluster] id",
            f'must be given with [rpc] tls = "{rpc.tls}": the certificates of brokers name it',
        )


def _monitoring(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    metrics = config.metrics
    if bool(metrics.certificate) != bool(metrics.private_key):
        missing = "private_key" if metrics.certificate else "certificate"
        yield f"[metrics] {missing}", "must be given too: TLS needs both files"
    if metrics.client_certificates != NO_CERTIFICATES:
        for name in ("certificate", "trust"):
            if not getattr(metrics, name):
                yield (
                    f"[metrics] {name}",
                    f'must be given with client_certificates = "{metrics.client_certificates}": a '
                    "PEM file",
                )
    shows_certificates = metrics.client_certificates != NO_CERTIFICATES
    if metrics.anonymous == NONE and not metrics.takes_tokens and not shows_certificates:
        yield (
            "[metrics] anonymous",
            "must not be none if no client can prove who it is: write tokens_file, or "
            "client_certificates and trust",
        )


def _open_ports(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Ports that other machines reach, and whose clients need not authenticate."""
    for listener in config.listeners:
        if is_loopback(listener.bind.host):
            continue
        if listener.is_authenticated:
            yield from _secrets_in_the_clear(listener)
            continue
        advice = (
            'write protocol = "SASL_SSL", or client_certificates = "required"'
            if listener.is_tls
            else 'write a [[listener]] with protocol = "SASL_SSL", or with protocol = "SSL" and '
            'client_certificates = "required"'
        )
        key = "kafka_host" if listener.entry is None else "bind"
        yield (
            f"{listener.place} {key}",
            f"{format_address(listener.bind)} is open to other machines, and clients need not "
            f"authenticate: {advice}, {_IF_WANTED}",
        )
    if not is_loopback(config.rpc.host) and config.rpc.tls != REQUIRE:
        yield (
            "[rpc] host",
            f"{format_address(config.rpc_bind)} is open to other machines, and brokers need not "
            f'authenticate: write tls = "require" and its certificates, {_IF_WANTED}',
        )
    yield from _open_monitoring(config)


def _open_monitoring(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """The HTTP port, if other machines reach it."""
    metrics = config.metrics
    if not metrics.port or is_loopback(metrics.host):
        return
    if metrics.client_certificates != REQUIRED and metrics.anonymous_right == READ:
        yield (
            "[metrics] host",
            f"{metrics.host} is open to other machines, and clients need not authenticate: "
            "write a certificate and tokens_file, or a certificate and client_certificates = "
            f'"required", {_IF_WANTED}',
        )
    if metrics.takes_tokens and not metrics.certificate:
        yield (
            "[metrics] certificate",
            "must be given too: without TLS, clients send their tokens in the clear to "
            f"{metrics.host}, {_IF_WANTED}",
        )


def _secrets_in_the_clear(listener: Listener) -> Iterator[tuple[str, str]]:
    """Logins that anyone on the network could read and use."""
    if listener.entry is None or listener.is_tls:
        return
    for mechanism in (PLAIN, OAUTHBEARER):
        if mechanism in listener.entry.sasl_mechanisms:
            yield (
                f"{listener.place} sasl_mechanisms",
                f"{mechanism} sends secrets in the clear over {listener.protocol}: write protocol "
                f'= "SASL_SSL" and its certificates, {_IF_WANTED}',
            )
