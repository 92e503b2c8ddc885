"""How commands reach a cluster with TLS and logins: a client's configuration file.

Why:    operators have such a file already, for Kafka's tools or for librdkafka's.
How:    `name=value` lines. Both spellings are known: Java's (`ssl.truststore.location`, with
        `ssl.truststore.type=PEM`; `ssl.keystore.location`, a PEM file with certificate and key) and
        librdkafka's (`ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`). Keys that
        are about neither the cluster nor its security are of no concern to commands.
Owns:   nothing.
Source: Kafka's client configuration; librdkafka's CONFIGURATION.md; decision 0069."""

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.client.wire.login import MECHANISMS, Login

PLAINTEXT, SSL = "plaintext", "ssl"
SASL_PLAINTEXT, SASL_SSL = "sasl_plaintext", "sasl_ssl"
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_KNOWN = frozenset(
    (
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.location",
        "ssl.truststore.type",
    )
)
_STORES = ("ssl.truststore", "ssl.keystore")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a file says. `bootstrap`: empty if it does not say; `tls`: None without TLS; `login`:
    None without one."""

    bootstrap: str = ""
    tls: ssl.SSLContext | None = None
    login: Login | None = None


def read_client_config(path: Path) -> ClientConfig:
    """Read a file; raises OperatorError."""
    values = _values(path)
    protocol = values.pop("security.protocol", PLAINTEXT).lower()
    bootstrap = values.pop("bootstrap.servers", "")
    if protocol not in _PROTOCOLS:
        known = ", ".join(_PROTOCOLS).upper()
        raise OperatorError(
            f"{path}: security.protocol is {protocol.upper()!r}, not one of {known}"
        )
    if protocol == PLAINTEXT:
        return ClientConfig(bootstrap)
    for name in values:
        if name.startswith(("ssl.", "sasl.")) and name not in _KNOWN:
            raise OperatorError(f"{path}: {name}: commands do not know this key; take it out")
    for store in _STORES:
        kind = values.get(f"{store}.type", "JKS")
        if f"{store}.location" in values and kind.upper() != "PEM":
            raise OperatorError(
                f"{path}: {store}.location: commands read PEM files only: write {store}.type=PEM"
            )
    login = _login(path, values) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None
    tls = _context(path, values) if protocol in (SSL, SASL_SSL) else None
    return ClientConfig(bootstrap, tls, login)


def _login(path: Path, values: dict[str, str]) -> Login:
    """Java's sasl.jaas.config, or librdkafka's sasl.username and sasl.password."""
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms", "")
    if mechanism not in MECHANISMS:
        raise OperatorError(
            f"{path}: sasl.mechanism is {mechanism!r}, not one of {', '.join(MECHANISMS)}"
        )
    named = dict(_JAAS.findall(values.get("sasl.jaas.config", "")))
    user = values.get("sasl.username") or _unescaped(named.get("username", ""))
    password = values.get("sasl.password") or _unescaped(named.get("password", ""))
    if not user or not password:
        raise OperatorError(
            f"{path}: a login needs sasl.username and sasl.password, or sasl.jaas.config"
        )
    return Login(mechanism, user, password)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _context(path: Path, values: dict[str, str]) -> ssl.SSLContext:
    trust = values.get("ssl.ca.location") or values.get("ssl.truststore.location")
    certificate = values.get("ssl.certificate.location") or values.get("ssl.keystore.location")
    key = values.get("ssl.key.location") or certificate
    for file in (trust, certificate, key):
        try:
            if file is not None:
                Path(file).read_bytes()
        except OSError as error:
            raise OperatorError(f"{path}: cannot read {file}: {error.strerror}") from error
    try:
        context = ssl.create_default_context(cafile=trust)
    except ssl.SSLError as error:
        raise OperatorError(f"{path}: {trust} has no certificate in PEM") from error
    if values.get("ssl.endpoint.identification.algorithm", "https").lower() in ("", "none"):
        context.check_hostname = False
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, lambda: b"")
        except ssl.SSLError as error:
            raise OperatorError(
                f"{path}: {certificate} and {key} are no certificate in PEM with its key: "
                f"{error.reason or error}"
            ) from error
    return context


def _values(path: Path) -> dict[str, str]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise OperatorError(f"--client-config {path}: cannot read: {reason}") from error
    values = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "!")):
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise OperatorError(f"{path}: line {number} must be name=value")
        values[name.strip()] = value.strip()
    return values
