"""The sections of a broker's file that are about the ports for other brokers and for monitoring.

Owns:   nothing.
Source: docs/decisions/0069-access.md; STYLE, "Configuration"."""

from dataclasses import dataclass

from strandline.config.addresses import check_host
from strandline.config.keys import key
from strandline.config.listener_section import PORT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcSection:
    """[rpc]: where other brokers connect."""

    host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all.",
        check=check_host,
        example="0.0.0.0",
    )
    port: int = key(
        33_145,
        "The port to listen on. The kernel may give a port in its own range (Linux: 32768 to "
        "60999) to another program before the broker starts: add such a port to "
        "`net.ipv4.ip_local_reserved_ports` in /etc/sysctl.d.",
        minimum=1,
        maximum=PORT_MAX,
    )
    advertised_host: str = key(
        "",
        "The host that the broker tells other brokers to connect to; empty for `host`.",
        check=check_host,
        example="broker-1.example",
    )
    advertised_port: int = key(
        0,
        "The port that the broker tells other brokers to connect to; 0 for `port`.",
        minimum=0,
        maximum=PORT_MAX,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """[metrics]: the HTTP port for monitoring: `/metrics` for Prometheus, `/healthz` and `/readyz`
    for supervisors, `/` for people."""

    host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all. Any client that can connect can read names "
        "of topics, counts and sizes, but no records.",
        check=check_host,
        example="0.0.0.0",
    )
    port: int = key(
        0,
        "The port to listen on; 0 for none.",
        minimum=0,
        maximum=PORT_MAX,
        example="9404",
    )
    partition_count_max: int = key(
        10_000,
        "The most led partitions with their own metric series, the oldest first; 0 for none. "
        "Totals over all partitions are always exported.",
        minimum=0,
        maximum=1_000_000,
    )
