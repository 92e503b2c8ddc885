"""The section of a broker's file that says what may be open.

Owns:   nothing.
Source: docs/decisions/0069-access.md."""

from dataclasses import dataclass

from strandline.config.keys import key
from strandline.config.webhook_hosts import check_webhook_hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySection:
    """[security]: what may be open. See docs/operating/security.md."""

    insecure: bool = key(
        False,
        "Whether ports may be open to other machines although not every client proves who it is. "
        "Without it the broker starts only if each such port listens on a loopback address.",
    )
    webhook_hosts: tuple[str, ...] = key(
        (),
        "The hosts that `alarm.webhook.url` may name, each as host or host:port, the same on every "
        "broker. Empty: none. If a name leads to an address of the machine itself, of its link or "
        "of a metadata service, the address must be listed, too.",
        check=check_webhook_hosts,
        example="alarms.example,10.1.2.3:8080",
    )
    handshake_ms: int = key(
        10_000,
        "How long a client has for a TLS handshake.",
        unit="ms",
        minimum=100,
        maximum=600_000,
    )
    handshake_count_max: int = key(
        1_000,
        "The most TLS handshakes of clients in progress. Above it the broker closes the "
        "connection that has waited for its client for the longest time.",
        minimum=1,
        maximum=100_000,
    )
