"""The sections of a broker's file that are about the ports for other brokers and for monitoring.

Owns:   nothing.
Source: docs/decisions/0069-access.md; STYLE, "Configuration"."""

from dataclasses import dataclass

from strandline.config.addresses import check_host
from strandline.config.keys import key
from strandline.config.listener_section import CLIENT_CERTIFICATES, NO_CERTIFICATES, PORT_MAX
from strandline.config.tls_keys import client_authorities_file, private_key_file

OFF, PREFER, REQUIRE = PEER_TLS = ("off", "prefer", "require")
NONE, HEALTH, READ = ("none", "health", "read")
ANONYMOUS = ("", NONE, HEALTH, READ)


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
    tls: str = key(
        OFF,
        "Whether TLS protects the traffic between brokers, with certificates on both sides. "
        "`prefer`: the broker opens connections with TLS, without it to brokers that have it off, "
        "and accepts both. A running cluster goes from `off` to `prefer` to `require`, one broker "
        "after the other.",
        choices=PEER_TLS,
    )
    certificate: str = key(
        "",
        "A PEM file: the broker's certificate, with the name strandline://CLUSTER/broker/ID (a URI "
        "among its subject alternative names), and those between it and the authority. The broker "
        "reads it again when it changes.",
        example="/etc/strandline/peer.pem",
    )
    private_key: str = private_key_file("/etc/strandline/peer.key")
    trust: str = key(
        "",
        "A PEM file: the certificates of the authority that other brokers' certificates are of; "
        "whatever it issues with such a name is a broker of the cluster.",
        example="/etc/strandline/peers-ca.pem",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """[metrics]: the HTTP port for monitoring: `/metrics` for Prometheus, `/healthz` and `/readyz`
    for supervisors, `/` for people."""

    host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all. The pages have names of topics, counts and "
        "sizes, but no records.",
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
    certificate: str = key(
        "",
        "A PEM file: the port's certificate; with it the port speaks HTTPS only. The broker reads "
        "it again when it changes.",
        example="/etc/strandline/http.pem",
    )
    private_key: str = private_key_file("/etc/strandline/http.key")
    trust: str = client_authorities_file("/etc/strandline/monitors-ca.pem")
    client_certificates: str = key(
        NO_CERTIFICATES,
        "Whether clients show a certificate, which must be of an authority in `trust`.",
        choices=CLIENT_CERTIFICATES,
    )
    tokens_file: str = key(
        "",
        "A file of tokens, which no other user of the machine may read; written by `strandline "
        "http-token`. A client that sends one of them may read every page. The broker reads the "
        "file again when it changes.",
        example="/etc/strandline/http-tokens.jsonl",
    )
    oauthbearer: bool = key(
        False,
        "Whether the port takes the tokens of `[oauthbearer]`, too. If rules are enforced, the "
        "token's user needs `describe` on the cluster.",
    )
    anonymous: str = key(
        "",
        "What a client without a token or certificate may see: `none`, `health` (`/healthz` and "
        "`/readyz`) or `read` (every page). Empty: `none` if the port takes tokens, else `read`.",
        choices=ANONYMOUS,
        example="health",
    )

    @property
    def takes_tokens(self) -> bool:
        """Whether a token lets a client in."""
        return bool(self.tokens_file) or self.oauthbearer

    @property
    def anonymous_right(self) -> str:
        """What a client without a token or certificate may see: NONE, HEALTH or READ."""
        return self.anonymous or (NONE if self.takes_tokens else READ)
