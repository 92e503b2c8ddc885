"""How clients reach a cluster with TLS and logins: a client's configuration file.

Why:    operators have such a file already, for Kafka's tools or for librdkafka's.
How:    `name=value` lines. Both spellings are known: Java's (`ssl.truststore.location`, with
        `ssl.truststore.type=PEM`; `ssl.keystore.location`, a PEM file with certificate and key) and
        librdkafka's (`ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`). Keys that
        are about neither the cluster nor its security are of no concern to commands.
        Tokens (OAUTHBEARER) are in a file, or from an identity provider: `_token_login`.
        A program that runs on several machines gives `find`, which says where a named file is here.
Owns:   nothing.
Source: Kafka's client configuration; librdkafka's CONFIGURATION.md; decision 0069."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from strandline.base.errors import OperatorError
from strandline.client.tls_files import Find, Stores
from strandline.client.wire import token_login
from strandline.client.wire.access_token import ClientCredentials, TokenFile
from strandline.client.wire.login import MECHANISMS, AnyLogin, Login, java_login
from strandline.client.wire.token_login import TokenLogin
from strandline.config.oauthbearer_section import check_key_set_url

PLAINTEXT, SSL = "plaintext", "ssl"
SASL_PLAINTEXT, SASL_SSL = "sasl_plaintext", "sasl_ssl"
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
_JAAS = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
PROVIDER_TRUST = "https.ca.location"
"""librdkafka's key: the authorities of the identity provider; without it, those of the system."""
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_CLIENT_ID, _CLIENT_SECRET, _SCOPE = ("client.id", "client.secret", "scope")
_SPELLINGS = {
    _CLIENT_ID: ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"),
    _CLIENT_SECRET: (
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
    ),
    _SCOPE: ("sasl.oauthbearer.scope",),
}
"""{what a provider asks: librdkafka's key and Java's}; before Kafka 4.1, Java has them in
sasl.jaas.config: clientId, clientSecret, scope."""
_KNOWN = frozenset(
    (
        TOKEN_URL,
        *(one for keys in _SPELLINGS.values() for one in keys),
        # Java's and librdkafka's words for what TOKEN_URL says already.
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.method",
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
_CERTIFICATE, _CERTIFICATE_END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a file says. `bootstrap`: empty if it does not say; `tls`: None without TLS; `login`:
    None without one; `stores`: the files of TLS; `files`: all that it was read from."""

    bootstrap: str = ""
    tls: ssl.SSLContext | None = None
    login: AnyLogin | None = None
    stores: Stores | None = None
    files: tuple[Path, ...] = ()

    def java_properties(self) -> dict[str, str]:
        """The same for Kafka's Java client; a password is among the values. Raises OperatorError
        for a key in a file of its own, which that client takes as text only."""
        stores = self.stores
        transport = PLAINTEXT if stores is None else SSL
        protocol = transport if self.login is None else f"sasl_{transport}"
        found = {"security.protocol": protocol.upper()}
        if isinstance(self.login, Login):
            found["sasl.mechanism"] = self.login.mechanism
            found["sasl.jaas.config"] = java_login(self.login)
        elif self.login is not None:
            raise OperatorError("Kafka's Java client gets no token from here: give --kafka-config")
        if stores is None:
            return found
        if stores.trust is not None:
            found["ssl.truststore.type"] = "PEM"
            found["ssl.truststore.location"] = str(stores.trust.absolute())
        if self.tls is not None and not self.tls.check_hostname:
            found["ssl.endpoint.identification.algorithm"] = ""
        if stores.certificate is not None:
            if stores.key != stores.certificate:
                raise OperatorError(
                    f"{stores.certificate}: Kafka's Java client takes certificate and key from one "
                    "PEM file: write ssl.keystore.location and ssl.keystore.type=PEM"
                )
            found["ssl.keystore.type"] = "PEM"
            found["ssl.keystore.location"] = str(stores.certificate.absolute())
        return found

    @property
    def principal(self) -> str:
        """The user that rules are about, unless the brokers map certificates to other names."""
        if self.login is not None:
            return f"User:{self.login.user}"
        if self.stores is None or self.stores.certificate is None:
            return ANONYMOUS
        from strandline.security.certificates import distinguished_name

        pem = self.stores.certificate.read_text()
        begin, end = pem.index(_CERTIFICATE), pem.index(_CERTIFICATE_END) + len(_CERTIFICATE_END)
        return f"User:{distinguished_name(ssl.PEM_cert_to_DER_cert(pem[begin:end]))}"


def read_client_config(path: Path, find: Find = Path) -> ClientConfig:
    """Read a file; raises OperatorError."""
    found = parse_client_config(_values(path), where=str(path), find=find)
    return replace(found, files=(path, *found.files))


def parse_client_config(given: Mapping[str, str], *, where: str, find: Find = Path) -> ClientConfig:
    """What keys and values say; errors name `where` they are from. Raises OperatorError."""
    values = dict(given)
    protocol = values.pop("security.protocol", PLAINTEXT).lower()
    bootstrap = values.pop("bootstrap.servers", "")
    if protocol not in _PROTOCOLS:
        known = ", ".join(_PROTOCOLS).upper()
        raise OperatorError(
            f"{where}: security.protocol is {protocol.upper()!r}, not one of {known}"
        )
    if protocol == PLAINTEXT:
        return ClientConfig(bootstrap)
    for name in values:
        if name.startswith(("ssl.", "sasl.")) and name not in _KNOWN:
            raise OperatorError(f"{where}: {name}: this key is not known here: take it out")
    for store in _STORES:
        kind = values.get(f"{store}.type", "JKS")
        if f"{store}.location" in values and kind.upper() != "PEM":
            raise OperatorError(
                f"{where}: {store}.location: only PEM files are read: write {store}.type=PEM"
            )
    login = _login(where, values, find) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None
    if protocol not in (SSL, SASL_SSL):
        return ClientConfig(bootstrap, login=login)
    stores = Stores.of(where, values, find)
    return ClientConfig(bootstrap, stores.context(where, values), login, stores, stores.files)


def _login(where: str, values: Mapping[str, str], find: Find) -> AnyLogin:
    """Java's sasl.jaas.config, or librdkafka's sasl.username and sasl.password."""
    mechanism = values.get("sasl.mechanism") or values.get("sasl.mechanisms", "")
    if mechanism == token_login.MECHANISM:
        return _token_login(where, values, find)
    if mechanism not in MECHANISMS:
        known = ", ".join((*MECHANISMS, token_login.MECHANISM))
        raise OperatorError(f"{where}: sasl.mechanism is {mechanism!r}, not one of {known}")
    named = dict(_JAAS.findall(values.get("sasl.jaas.config", "")))
    user = values.get("sasl.username") or _unescaped(named.get("username", ""))
    password = values.get("sasl.password") or _unescaped(named.get("password", ""))
    if not user or not password:
        raise OperatorError(
            f"{where}: a login needs sasl.username and sasl.password, or sasl.jaas.config"
        )
    return Login(mechanism, user, password)


def _token_login(where: str, values: Mapping[str, str], find: Find) -> TokenLogin:
    """A token in a file (file:///PATH), or those that a provider gives for a name and a secret."""
    url = values.get(TOKEN_URL, "")
    if not url:
        raise OperatorError(
            f"{where}: {TOKEN_URL} must be given with sasl.mechanism=OAUTHBEARER: file:///PATH of "
            "a token, or the https URL where the identity provider gives tokens"
        )
    reason = check_key_set_url(url)
    if reason is not None:
        raise OperatorError(f"{where}: {TOKEN_URL} {reason}")
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenLogin(TokenFile(find(unquote(parts.path))))
    if values.get("sasl.oauthbearer.method", "oidc").lower() != "oidc":
        raise OperatorError(f"{where}: sasl.oauthbearer.method must be oidc with {TOKEN_URL}")
    if values.get("sasl.oauthbearer.grant.type", "client_credentials") != "client_credentials":
        raise OperatorError(f"{where}: sasl.oauthbearer.grant.type must be client_credentials")
    jaas = dict(_JAAS.findall(values.get("sasl.jaas.config", "")))
    of_jaas = {
        _CLIENT_ID: jaas.get("clientId", ""),
        _CLIENT_SECRET: jaas.get("clientSecret", ""),
        _SCOPE: jaas.get("scope", ""),
    }
    known = {
        name: next((values[key] for key in keys if values.get(key)), _unescaped(of_jaas[name]))
        for name, keys in _SPELLINGS.items()
    }
    for name in (_CLIENT_ID, _CLIENT_SECRET):
        if not known[name]:
            raise OperatorError(
                f"{where}: {_SPELLINGS[name][0]} must be given with {TOKEN_URL}={url}"
            )
    trust = values.get(PROVIDER_TRUST)
    try:
        context = ssl.create_default_context(cafile=None if trust is None else find(trust))
    except OSError as error:
        raise OperatorError(
            f"{where}: {PROVIDER_TRUST}: {trust} is no PEM file of certificates"
        ) from error
    return TokenLogin(
        ClientCredentials(
            url,
            known[_CLIENT_ID],
            known[_CLIENT_SECRET],
            scope=known[_SCOPE],
            context=context,
        )
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


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
