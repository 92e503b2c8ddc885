"""The keys of a broker's file, section by section, and the configuration that comes of them.

Why:    a key that is not in a class body here does not exist: the loader refuses it, the reference
        page lacks it.
How:    one frozen class per TOML section; the class body is the table. `BrokerConfig` gathers them
        and answers in the words of the model (addresses, labels, seeds).
Owns:   nothing; built once at start by `load.py`.
Source: STYLE, "Configuration"."""

from dataclasses import dataclass, fields

from strandline.config.addresses import (
    RTT_MS_MAX,
    WILDCARD_HOSTS,
    Seed,
    check_host,
    check_label,
    check_peer_rtt,
    check_seeds,
    parse_peer_rtt,
    parse_seed,
)
from strandline.config.keys import INT_MAX, LONG_MAX, Key, Value, key, keys_of, required
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId

MIB = 1024 * 1024
_PORT_MAX = 65_535


def _check_path(value: Value) -> str | None:
    return None if str(value).strip() else "must name a directory"


def _check_cluster_id(value: Value) -> str | None:
    text = str(value)
    legal = all(c.isascii() and (c.isalnum() or c in "_-") for c in text)
    return None if legal and len(text) <= 64 else "must be at most 64 of A-Z a-z 0-9 _ -"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSection:
    """[broker]: who this broker is."""

    id: int = required(
        1, "The broker's id, the same for the life of its data directory.", minimum=0
    )
    data_directory: str = required(
        "/var/lib/strandline",
        "Where logs and state lie; created when absent, and locked while the broker runs.",
        check=_check_path,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSection:
    """[broker.labels]: where this broker is. Empty means "not said"."""

    region: str = key(
        "",
        "The region; Kafka clients see it as the broker's rack. Replicas are spread over regions.",
        check=check_label,
        example="eu-west-1",
    )
    zone: str = key("", "The zone within the region.", check=check_label, example="eu-west-1a")
    rack: str = key("", "The rack within the zone.", check=check_label, example="r12")
    host: str = key("", "The machine; brokers on one machine share it.", check=check_label)
    upgrade_domain: str = key(
        "", "Brokers that are upgraded, and hence down, together.", check=check_label, example="2"
    )
    upgrade_domain_formula: str = key(
        "",
        "The upgrade domain by the number at the end of the host's name (`ordinal`), where none is "
        "given: whole numbers, + - * / % and brackets.",
        example="ordinal % 3",
    )
    other: tuple[str, ...] = key(
        (),
        "Labels of your own, each as name=value, for placement policies.",
        example="disk=ssd,country=de",
    )
    command: tuple[str, ...] = key(
        (),
        "A command, with its arguments and without a shell, that prints labels as lines name=value "
        "when the broker starts. What is configured here wins over what it prints.",
        example="/usr/local/bin/where-am-i,--labels",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSection:
    """[listener]: where Kafka clients connect."""

    kafka_host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all. The default takes clients of this machine "
        "only.",
        check=check_host,
        example="0.0.0.0",
    )
    kafka_port: int = key(9092, "The port to listen on.", minimum=1, maximum=_PORT_MAX)
    advertised_host: str = key(
        "",
        "The host that clients are told to connect to; empty for `kafka_host`.",
        check=check_host,
        example="broker-1.example",
    )
    advertised_port: int = key(
        0,
        "The port that clients are told to connect to; 0 for `kafka_port`.",
        minimum=0,
        maximum=_PORT_MAX,
    )


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
        "The port to listen on. Where it lies among those that the kernel gives to connections "
        "(Linux: 32768 to 60999), a program of this machine may have it when the broker is "
        "started: add it to the list of `net.ipv4.ip_local_reserved_ports` in /etc/sysctl.d.",
        minimum=1,
        maximum=_PORT_MAX,
    )
    advertised_host: str = key(
        "",
        "The host that other brokers are told to connect to; empty for `host`.",
        check=check_host,
        example="broker-1.example",
    )
    advertised_port: int = key(
        0,
        "The port that other brokers are told to connect to; 0 for `port`.",
        minimum=0,
        maximum=_PORT_MAX,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSection:
    """[cluster]: which cluster this broker belongs to."""

    id: str = key(
        "",
        "The cluster's id, a name of your choice: brokers and data directories of another cluster "
        "are refused. Give it on every broker or on none; without it the seeds stand for the "
        "cluster, and the first controller makes up the id that clients see.",
        check=_check_cluster_id,
        example="orders-eu",
    )
    seeds: tuple[str, ...] = required(
        ("1@127.0.0.1:33145",),
        "The controller's voters, each as id@host:port with its advertised rpc address, the same "
        "on every broker. A broker that is not among them follows the controller without a vote.",
        check=check_seeds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSection:
    """[replication]: timers, windows and memory between brokers. The timers must agree
    everywhere."""

    heartbeat_interval_ms: int = key(
        100,
        "How often a broker tells each peer that it is there: one message per pair of brokers, "
        "whatever the number of partitions.",
        unit="ms",
        minimum=10,
        maximum=10_000,
    )
    election_timeout_ms: int = key(
        800,
        "The least time without news of a leader before a replica stands for election.",
        unit="ms",
        minimum=50,
        maximum=120_000,
    )
    election_spread_ms: int = key(
        400,
        "The random part on top of it, so that two replicas seldom stand at once; it grows with "
        "the round trip to the leader.",
        unit="ms",
        minimum=10,
        maximum=120_000,
    )
    resend_timeout_ms: int = key(
        1_000,
        "A follower that acknowledges nothing for this long, plus four round trips and the time "
        "that what is in flight takes at the speed measured so far, is asked how far it is.",
        unit="ms",
        minimum=50,
        maximum=120_000,
    )
    append_bytes_max: int = key(
        MIB,
        "The most bytes of record batches in one append to a follower; a larger batch goes alone.",
        unit="bytes",
        minimum=16 * 1024,
        maximum=64 * MIB,
    )
    inflight_bytes_max: int = key(
        16 * MIB,
        "The most bytes sent to one follower of one partition and not yet acknowledged by it. Up "
        "to there it is twice the measured bandwidth times the round trip.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    inflight_count_max: int = key(
        256,
        "The most appends sent to one follower of one partition and not yet acknowledged by it; "
        "up to there, as for the bytes.",
        minimum=1,
        maximum=10_000,
    )
    memory_bytes_max: int = key(
        32 * MIB,
        "Produced bytes that followers have not taken yet; above it the broker stops reading from "
        "producers until there is room again.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    tail_bytes_max: int = key(
        4 * MIB,
        "The newest bytes of one partition kept in memory for followers; older ones are read from "
        "the log. So much at most waits for followers before producers of the partition do.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    queue_bytes_max: int = key(
        4 * MIB,
        "The most bytes of record batches that wait for the connection to one broker, over all "
        "partitions; one append more may be begun.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    recovery_bytes_per_s: int = key(
        32 * MIB,
        "How fast this broker serves replicas of its region that are behind, or new, from its "
        "logs, over all partitions; what producers add meanwhile comes on top. Not slowed down: a "
        "replica that a write quorum or a change of leader waits for.",
        unit="bytes/s",
        minimum=64 * 1024,
        maximum=64 * 1024 * MIB,
    )
    recovery_cross_region_bytes_per_s: int = key(
        32 * MIB,
        "The same, for replicas in other regions.",
        unit="bytes/s",
        minimum=64 * 1024,
        maximum=64 * 1024 * MIB,
    )
    relays: bool = key(
        True,
        "Whether what this broker's partitions are given crosses to each other region once, to one "
        "of the replicas there, which hands it on to the others; by itself for each of them where "
        "not, and while a relay is slow or gone.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSection:
    """[limits]: what one broker takes on from Kafka clients."""

    request_bytes_max: int = key(
        100 * MIB,
        "The largest request that is taken; a longer one closes its connection.",
        unit="bytes",
        minimum=16 * 1024,
        maximum=1024 * MIB,
    )
    fetch_bytes_max: int = key(
        55 * MIB,
        "The most record bytes in one fetch response, whatever the client asks for.",
        unit="bytes",
        minimum=1024,
        maximum=1024 * MIB,
    )
    inflight_bytes_max: int = key(
        128 * MIB,
        "Bytes of requests in work, over all connections; above it no connection is read.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    partial_bytes_max: int = key(
        256 * MIB,
        "Memory of requests that have not come in whole; above it the slowest sender is closed.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    connection_count_max: int = key(
        10_000, "Connections at one time; more are closed at once.", minimum=1, maximum=1_000_000
    )
    connection_idle_ms: int = key(
        600_000,
        "A connection without a request for this long is closed.",
        unit="ms",
        minimum=1_000,
        maximum=86_400_000,
    )
    connection_requests_max: int = key(
        128,
        "Requests of one connection in work at one time; beyond it that connection is not read.",
        minimum=1,
        maximum=10_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSection:
    """[storage]: upkeep of the logs."""

    retention_check_interval_ms: int = key(
        300_000,
        "How often logs are looked at for segments to remove, to roll or to compact.",
        unit="ms",
        minimum=100,
        maximum=86_400_000,
    )
    preallocate: bool = key(
        True,
        "Reserve disk space ahead of the log's end: faster flushes, and a full disk is found "
        "early.",
    )
    reserve_bytes: int = key(
        8_388_608,
        "Disk space that is kept for the controller's log and for votes, so that a broker whose "
        "disk is full still learns what may go; at most a hundredth of the file system. While it "
        "is used, nothing else grows. 0: none is kept.",
        unit="bytes",
        minimum=0,
        maximum=INT_MAX,
    )
    scrub_rate: int = key(
        4_194_304,
        "How much of the logs is read from the disk and checked in the background; 0: nothing. "
        "Damage that is found is mended from other replicas.",
        unit="bytes per second",
        minimum=0,
        maximum=INT_MAX,
    )
    scrub_interval_ms: int = key(
        604_800_000,
        "How often at most all logs are checked in the background.",
        unit="ms",
        minimum=1_000,
        maximum=LONG_MAX,
    )
    trust_ms: int = key(
        10_000,
        "For how long what was written to a log, or checked, is believed. What is older is checked "
        "before it goes to a consumer or a follower, for the page cache may have it anew from the "
        "disk; 0: all of it.",
        unit="ms",
        minimum=0,
        maximum=86_400_000,
    )
    flush_by: str = key(
        "kernel",
        "Who makes files durable: `kernel`: Linux's asynchronous I/O, and a thread where that is "
        "not offered; `thread`: always the thread.",
        choices=("kernel", "thread"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSection:
    """[log]: what the broker says about itself."""

    level: str = key(
        "info", "The least level that is written.", choices=("debug", "info", "warning", "error")
    )
    format: str = key(
        "text",
        "`text`: a line of key=value pairs for each event; `json`: an object on a line.",
        choices=("text", "json"),
    )
    file: str = key(
        "", "The file to append to; empty for standard error.", example="/var/log/strandline.log"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """[metrics]: where monitors ask, over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz`
    for whoever starts brokers anew, `/` for people."""

    host: str = key(
        "127.0.0.1",
        "The address to listen on; 0.0.0.0 for all. Whoever may connect may read: names of topics, "
        "counts and sizes, no records.",
        check=check_host,
        example="0.0.0.0",
    )
    port: int = key(
        0,
        "The port to listen on; 0: nobody is answered.",
        minimum=0,
        maximum=_PORT_MAX,
        example="9404",
    )
    partition_count_max: int = key(
        10_000,
        "Of how many partitions that are led here each has series of its own, the oldest first; 0: "
        "of none. What is counted over all partitions is told all the same.",
        minimum=0,
        maximum=1_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillsSection:
    """[drills]: what `strandline drill` may do to this broker."""

    enable: bool = key(
        False,
        "Whether whoever may connect to this broker may have it cut itself off, for at most ten "
        "minutes at a time. On in clusters of `strandline dev start`.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DevSection:
    """[dev]: for clusters on one machine; leave it out elsewhere."""

    peer_rtt: tuple[str, ...] = key(
        (),
        "Round trips in milliseconds to simulate on the links to other brokers, each as "
        f"id=milliseconds, at most {RTT_MS_MAX}. Each side delays what it sends by half of it.",
        check=check_peer_rtt,
        example="3=30,4=30,5=80",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """All of it. Field names are the section names of the file, but for `labels`
    ([broker.labels])."""

    broker: BrokerSection
    cluster: ClusterSection
    labels: LabelsSection = LabelsSection()
    listener: ListenerSection = ListenerSection()
    rpc: RpcSection = RpcSection()
    replication: ReplicationSection = ReplicationSection()
    limits: LimitsSection = LimitsSection()
    storage: StorageSection = StorageSection()
    log: LogSection = LogSection()
    metrics: MetricsSection = MetricsSection()
    drills: DrillsSection = DrillsSection()
    dev: DevSection = DevSection()

    @property
    def broker_id(self) -> BrokerId:
        """This broker's id."""
        return BrokerId(self.broker.id)

    @property
    def kafka_bind(self) -> Address:
        """Where to listen for Kafka clients."""
        return Address(self.listener.kafka_host, self.listener.kafka_port)

    @property
    def kafka_advertised(self) -> Address:
        """Where Kafka clients are told to connect."""
        listener = self.listener
        return Address(
            listener.advertised_host or listener.kafka_host,
            listener.advertised_port or listener.kafka_port,
        )

    @property
    def rpc_bind(self) -> Address:
        """Where to listen for other brokers."""
        return Address(self.rpc.host, self.rpc.port)

    @property
    def rpc_advertised(self) -> Address:
        """Where other brokers are told to connect."""
        rpc = self.rpc
        return Address(rpc.advertised_host or rpc.host, rpc.advertised_port or rpc.port)

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The controller's voters, in the file's order."""
        return tuple(parse_seed(text) for text in self.cluster.seeds)

    @property
    def network_name(self) -> str:
        """What brokers of this cluster, and no others, tell each other when they connect."""
        return self.cluster.id or ",".join(sorted(self.cluster.seeds))

    @property
    def peer_rtt_ms(self) -> dict[BrokerId, int]:
        """Simulated round trips: {broker id: milliseconds}."""
        return dict(parse_peer_rtt(text) for text in self.dev.peer_rtt)


SECTIONS: dict[str, type] = {
    "broker": BrokerSection,
    "broker.labels": LabelsSection,
    "cluster": ClusterSection,
    "listener": ListenerSection,
    "rpc": RpcSection,
    "replication": ReplicationSection,
    "limits": LimitsSection,
    "storage": StorageSection,
    "log": LogSection,
    "metrics": MetricsSection,
    "drills": DrillsSection,
    "dev": DevSection,
}
"""The sections of the file, in the order of the reference page: {name in the file: class}."""

BROKER_KEYS: tuple[Key, ...] = tuple(
    row for section, body in SECTIONS.items() for row in keys_of(body, prefix=f"{section}.")
)
"""Every key of the file, named `section.key`."""


def section_field(section: str) -> str:
    """The field of `BrokerConfig` that carries a section."""
    return section.rpartition(".")[2]


def is_wildcard(host: str) -> bool:
    """Whether nobody can connect to this host by name."""
    return host in WILDCARD_HOSTS


assert {section_field(name) for name in SECTIONS} == {field.name for field in fields(BrokerConfig)}
