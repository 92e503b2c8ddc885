"""The properties that the official connector's client takes: `--kafka KEY=VALUE`, `--kafka-config`.

Why:    Kafka's client ignores names that it does not know, so a misspelt one would change nothing
        in silence. Passwords are among them: no line of a job shows them.
How:    a file of properties, as Kafka's own tools take it, keeps secrets from the command line.
Source: https://kafka.apache.org/documentation/#consumerconfigs"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from strandline.base.errors import OperatorError

KNOWN = frozenset({
    "check.crcs", "client.dns.lookup", "client.id", "connections.max.idle.ms",
    "default.api.timeout.ms", "enable.metrics.push", "fetch.max.bytes", "fetch.max.wait.ms",
    "fetch.min.bytes", "interceptor.classes", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "max.poll.records", "metadata.max.age.ms", "metadata.recovery.strategy", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms",
})  # fmt: skip
SECURITY = frozenset({
    "security.protocol", "security.providers",
    "sasl.client.callback.handler.class", "sasl.jaas.config", "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class", "sasl.login.class", "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms", "sasl.mechanism", "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode", "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.cipher.suites", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class", "ssl.key.password", "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.type", "ssl.protocol", "ssl.provider",
    "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
    "ssl.truststore.type",
})  # fmt: skip
SECRET = frozenset({
    "sasl.jaas.config", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.keystore.password", "ssl.truststore.certificates", "ssl.truststore.password",
})  # fmt: skip
"""Those whose values no line shows: Kafka's own type for them is "password"."""
PROTOCOL = "security.protocol"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
HIDDEN = "[hidden]"
OWN: Mapping[str, str] = {
    "bootstrap.servers": "use --bootstrap",
    "client.rack": "use --rack",
    "group.id": "use --name, which names the job's group",
    "isolation.level": "the job never reads records of aborted transactions",
    "auto.offset.reset": "use --start and --on-gap",
    "enable.auto.commit": "the job commits offsets after each commit of the table",
    "key.deserializer": "use --key",
    "value.deserializer": "use --schema",
}
"""What other options decide: {property: what to do instead}."""


def check_kafka_settings(settings: Mapping[str, str]) -> None:
    """Raises OperatorError for a property that cannot work; it shows no value of a secret."""
    for name in settings:
        if name in OWN:
            raise OperatorError(f"--kafka {name}: {OWN[name]}")
        if name not in KNOWN | SECURITY:
            near = get_close_matches(name, KNOWN | SECURITY, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise OperatorError(f"--kafka {name}: Kafka's consumer has no such property{hint}")
    protocol = settings.get(PROTOCOL, "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise OperatorError(f"--kafka {PROTOCOL}={protocol}: expected {', '.join(_PROTOCOLS)}")
    for beginning in ("ssl.", "sasl."):
        given = sorted(name for name in settings if name.startswith(beginning))
        if given and beginning[:-1].upper() not in protocol:
            raise OperatorError(
                f"--kafka {given[0]} has no effect with {PROTOCOL}={protocol}: give {PROTOCOL}, too"
            )


def is_secure(settings: Mapping[str, str]) -> bool:
    """Whether connections need what only the Java client has: TLS, or a login."""
    return settings.get(PROTOCOL, "PLAINTEXT").upper() != "PLAINTEXT"


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """The text, with each secret in it hidden: also the parts in quotes of a login's line."""
    secrets = {settings[name] for name in SECRET & settings.keys()}
    for secret in tuple(secrets):
        secrets.update(part for part in secret.split('"')[1::2] if len(part) > 2)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN) if secret else text
    return text


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file as Kafka's tools take it: `key=value` or `key: value`, comments by
    # or !, and a line that ends in a backslash goes on. OperatorError names file and line, and
    shows nothing of the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise OperatorError(f"--kafka-config {path}: is not UTF-8 text") from error
    except OSError as error:
        raise OperatorError(f"--kafka-config {path}: cannot read: {error.strerror}") from error
    found: dict[str, str] = {}
    whole = ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not whole and (not text or text[0] in "#!"):
            continue
        whole += text.removesuffix("\\")
        if text.endswith("\\") and number < len(lines):
            continue
        name, sign, value = _split(whole)
        if not name or not sign:
            raise OperatorError(f"--kafka-config {path}, line {number}: expected KEY=VALUE")
        found[name], whole = value, ""
    return found


def _split(line: str) -> tuple[str, str, str]:
    """(key, sign, value) at the first = or :"""
    at = min((place for sign in "=:" if (place := line.find(sign)) >= 0), default=-1)
    return ("", "", "") if at < 0 else (line[:at].strip(), line[at], line[at + 1 :].strip())
