"""The `--kafka KEY=VALUE` properties that the official connector takes.

Why:    Kafka's client ignores names that it does not know, so a misspelt one would change nothing
        in silence.
Source: https://kafka.apache.org/documentation/#consumerconfigs"""

from collections.abc import Mapping
from difflib import get_close_matches

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
    """Raises OperatorError for a property that cannot work."""
    for name in settings:
        if name in OWN:
            raise OperatorError(f"--kafka {name}: {OWN[name]}")
        if name == "security.protocol" or name.startswith(("sasl.", "ssl.", "security.")):
            raise OperatorError(
                f"--kafka {name}: jobs plan their batches over plain connections only; TLS and SASL"
                " are not there yet"
            )
        if name not in KNOWN:
            near = get_close_matches(name, KNOWN, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise OperatorError(f"--kafka {name}: Kafka's consumer has no such property{hint}")
