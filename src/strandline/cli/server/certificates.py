"""Loads the certificates that a broker's configuration names.

Why:    a broker whose files are missing or do not match must say so before it joins.
Owns:   nothing.
Source: docs/decisions/0069-access.md."""

from pathlib import Path

from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import Listener
from strandline.security.tls import Pair, ServerTls, TlsSettings


def listeners_tls(config: BrokerConfig) -> dict[str, ServerTls]:
    """The TLS of the listeners that have it: {listener: ...}. Raises OperatorError."""
    return {one.name: ServerTls(_settings(one)) for one in config.listeners if one.is_tls}


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
