"""The keys of a broker's file, section by section, and the configuration built from them.

Why:    this table is the only definition: the loader refuses a key that is not here, and the
        reference page is generated from it.
How:    one frozen class per TOML section; the class body is the table. `BrokerConfig` gathers the
        sections and returns the types of the model (addresses, labels, seeds).
Owns:   nothing; `load.py` builds it once at start.
Source: STYLE, "Configuration"."""

from dataclasses import dataclass, field, fields

from strandline.config.access_section import AccessSection
from strandline.config.addresses import (
    RTT_MS_MAX,
    Seed,
    check_label,
    check_peer_rtt,
    check_seeds,
    parse_peer_rtt,
    parse_seed,
)
from strandline.config.cores_section import CORES_MAX, CoresSection
from strandline.config.keys import INT_MAX, LONG_MAX, Key, Value, key, keys_of, required
from strandline.config.listener_section import (
    PLAINTEXT,
    Listener,
    ListenerEntry,
    ListenerSection,
    listener_of,
)
from strandline.config.oauthbearer_section import OAuthBearerSection
from strandline.config.other_ports import MetricsSection, RpcSection
from strandline.config.security_section import SecuritySection
from strandline.config.tiered_section import TieredSection
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
    """[broker]: the identity of this broker."""

    id: int = required(
        1, "The broker's id; it never changes for the life of the data directory.", minimum=0
    )
    data_directory: str = required(
        "/var/lib/strandline",
        "The directory of logs and state. The broker creates it if it is absent, and locks it "
        "while it runs.",
        check=_check_path,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSection:
    """[broker.labels]: where this broker is. An empty value means unknown."""

    region: str = key(
        "",
        "The broker's region; Kafka clients see it as the broker's rack. Replicas are spread "
        "over regions.",
        check=check_label,
        example="eu-west-1",
    )
    zone: str = key("", "The zone within the region.", check=check_label, example="eu-west-1a")
    rack: str = key("", "The rack within the zone.", check=check_label, example="r12")
    host: str = key(
        "", "The machine; all brokers on one machine have the same value.", check=check_label
    )
    upgrade_domain: str = key(
        "",
        "Brokers of one upgrade domain are upgraded, and so down, together.",
        check=check_label,
        example="2",
    )
    upgrade_domain_formula: str = key(
        "",
        "Computes the upgrade domain, if none is given, from the number at the end of the "
        "host's name (`ordinal`): whole numbers, + - * / % and brackets.",
        example="ordinal % 3",
    )
    other: tuple[str, ...] = key(
        (),
        "Your own labels for placement policies, each as name=value.",
        example="disk=ssd,country=de",
    )
    command: tuple[str, ...] = key(
        (),
        "A command with its arguments, run without a shell when the broker starts. It prints "
        "labels as lines name=value; labels in this file win over what it prints.",
        example="/usr/local/bin/where-am-i,--labels",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSection:
    """[cluster]: which cluster this broker belongs to."""

    id: str = key(
        "",
        "The cluster's id. Kafka's tools expect 22 characters of URL-safe base64, as "
        "`kafka-storage random-uuid` prints; any other name works with all else. A broker refuses "
        "brokers and data directories of another cluster. Give it on every broker or on none. "
        "Without it the seeds identify the cluster, and the first controller generates the id "
        "that clients see.",
        check=_check_cluster_id,
        example="mPq3Xb0uT8ybW1cZ5rLk7A",
    )
    seeds: tuple[str, ...] = required(
        ("1@127.0.0.1:33145",),
        "The first voters of the controller, each as id@host:port with its advertised rpc "
        "address, the same on every broker when the cluster starts for the first time. Later the "
        "controller's log says which brokers vote, and a broker that joins asks the seeds for "
        "them.",
        check=check_seeds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSection:
    """[replication]: timers, windows and memory between brokers. See "Tune detection of failures"
    in docs/operating/brokers.md."""

    heartbeat_interval_ms: int = key(
        100,
        "The shortest interval between two heartbeats to a peer. One heartbeat serves all "
        "partitions that two brokers share. Brokers use this interval while something changes or "
        "an answer is overdue. Otherwise the interval is 0.55 of `election_timeout_ms`, or less "
        "where the round trip is long.",
        unit="ms",
        minimum=10,
        maximum=10_000,
    )
    election_timeout_ms: int = key(
        800,
        "A replica becomes a candidate after at least this long without news from a leader. The "
        "same on every broker, because leases rest on it: see docs/operating/brokers.md before you "
        "change it.",
        unit="ms",
        minimum=50,
        maximum=120_000,
    )
    election_spread_ms: int = key(
        400,
        "The random part added to `election_timeout_ms`, so that two replicas rarely become "
        "candidates at once. It grows with the round trip to the leader.",
        unit="ms",
        minimum=10,
        maximum=120_000,
    )
    resend_timeout_ms: int = key(
        1_000,
        "The leader probes a follower that has acknowledged nothing for this long, plus four "
        "round trips, plus the time that the bytes in flight take at the measured speed.",
        unit="ms",
        minimum=50,
        maximum=120_000,
    )
    append_bytes_max: int = key(
        MIB,
        "The most bytes of record batches in one append to a follower; a larger batch is sent "
        "alone.",
        unit="bytes",
        minimum=16 * 1024,
        maximum=64 * MIB,
    )
    inflight_bytes_max: int = key(
        16 * MIB,
        "The most unacknowledged bytes in flight to one follower of one partition. Up to this "
        "limit the window is twice the measured bandwidth times the round trip.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    inflight_count_max: int = key(
        256,
        "The most unacknowledged appends in flight to one follower of one partition. Up to this "
        "limit the window follows the measured bandwidth and round trip.",
        minimum=1,
        maximum=10_000,
    )
    memory_bytes_max: int = key(
        32 * MIB,
        "The most produced bytes that followers have not taken yet. Above it the broker stops "
        "reading from producers until followers catch up.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    tail_bytes_max: int = key(
        4 * MIB,
        "The newest bytes of one partition that the leader keeps in memory for followers; it "
        "reads older ones from the log. If more than this waits for followers, the partition's "
        "producers wait.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    queue_bytes_max: int = key(
        4 * MIB,
        "The most bytes of record batches that wait for the connection to one broker, over all "
        "partitions; one more append may exceed it.",
        unit="bytes",
        minimum=64 * 1024,
        maximum=1024 * MIB,
    )
    recovery_bytes_per_s: int = key(
        32 * MIB,
        "The rate at which this broker serves lagging or new replicas of its region from its "
        "logs, over all partitions. New records from producers are not counted. A replica that "
        "a write quorum or a leadership transfer needs is not throttled.",
        unit="bytes/s",
        minimum=64 * 1024,
        maximum=64 * 1024 * MIB,
    )
    recovery_cross_region_bytes_per_s: int = key(
        32 * MIB,
        "As `recovery_bytes_per_s`, for replicas in other regions.",
        unit="bytes/s",
        minimum=64 * 1024,
        maximum=64 * 1024 * MIB,
    )
    relays: bool = key(
        True,
        "Whether this broker sends a partition's records to each other region only once: one "
        "replica there relays them to the others. If false, or while a relay is slow or down, "
        "the broker sends them to each replica itself.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSection:
    """[limits]: limits on the load that Kafka clients put on one broker."""

    request_bytes_max: int = key(
        100 * MIB,
        "The largest request that the broker accepts; it closes the connection of a larger one.",
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
    fetch_session_count_max: int = key(
        1_000,
        "The most fetch sessions (Kafka's `max.incremental.fetch.session.cache.slots`). A consumer "
        "without one names all its partitions in each request. 0: no sessions.",
        minimum=0,
        maximum=100_000,
    )
    inflight_bytes_max: int = key(
        128 * MIB,
        "The most bytes of requests in progress, over all connections. Above it the broker "
        "reads from no connection.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    partial_bytes_max: int = key(
        256 * MIB,
        "The most memory for requests that have not arrived completely. Above it the broker "
        "closes the connection of the slowest sender.",
        unit="bytes",
        minimum=MIB,
        maximum=64 * 1024 * MIB,
    )
    connection_count_max: int = key(
        10_000,
        "The most connections at one time; the broker closes further ones at once.",
        minimum=1,
        maximum=1_000_000,
    )
    connection_count_per_address_max: int = key(
        1_000_000,
        "The most connections from one address at one time (Kafka's `max.connections.per.ip`); "
        "the broker closes further ones at once. Clients behind one address share it.",
        minimum=1,
        maximum=1_000_000,
    )
    connection_count_per_user_max: int = key(
        1_000_000,
        "The most connections of one user at one time, whatever addresses they come from; the "
        "broker closes further ones as soon as the user has logged in, or has shown its "
        "certificate. Clients without a user have no such limit.",
        minimum=1,
        maximum=1_000_000,
    )
    connection_idle_ms: int = key(
        600_000,
        "The broker closes a connection that has sent no request for this long.",
        unit="ms",
        minimum=1_000,
        maximum=86_400_000,
    )
    connection_requests_max: int = key(
        128,
        "The most requests in progress on one connection. Above it the broker stops reading "
        "from that connection.",
        minimum=1,
        maximum=10_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSection:
    """[storage]: maintenance of the logs."""

    retention_check_interval_ms: int = key(
        300_000,
        "The interval of checks for segments to remove or to close. Logs that are compacted are "
        "checked every `log.cleaner.backoff.ms` too.",
        unit="ms",
        minimum=100,
        maximum=86_400_000,
    )
    preallocate: bool = key(
        True,
        "Whether a log reserves disk space ahead of its end: flushes are faster, and a full "
        "disk shows early.",
    )
    reserve_bytes: int = key(
        8_388_608,
        "Disk space reserved for the controller's log and for votes, so that a broker with a "
        "full disk still learns what it may delete; at most a hundredth of the file system. "
        "While the reserve is in use, no other log grows. 0 for no reserve.",
        unit="bytes",
        minimum=0,
        maximum=INT_MAX,
    )
    disk_sharers: int = key(
        1,
        "How many brokers have their data directories on one disk. Each reports its share of the "
        "disk's space to the controller. With `serve --cores` and the default, the broker counts "
        "those of its machine.",
        minimum=1,
        maximum=CORES_MAX,
    )
    scrub_rate: int = key(
        4_194_304,
        "The rate at which the broker reads its logs from the disk in the background and "
        "verifies checksums; 0 for never. It repairs damage from other replicas.",
        unit="bytes per second",
        minimum=0,
        maximum=INT_MAX,
    )
    scrub_interval_ms: int = key(
        604_800_000,
        "The shortest time between the starts of two background scrubs of all logs.",
        unit="ms",
        minimum=1_000,
        maximum=LONG_MAX,
    )
    digest_rate: int = key(
        268_435_456,
        "The most that the broker reads of its logs in a second to digest them for audits.",
        unit="bytes per second",
        minimum=1_048_576,
        maximum=LONG_MAX,
    )
    digest_requests_max: int = key(
        16,
        "The most requests for digests at one time. The broker works on one after the other, and "
        "refuses further ones.",
        minimum=1,
        maximum=1_000,
    )
    trust_ms: int = key(
        10_000,
        "How long the broker trusts bytes after it has written or verified them. It verifies "
        "older bytes before it sends them to a consumer or follower, because the page cache may "
        "have read them from the disk again. 0: it always verifies.",
        unit="ms",
        minimum=0,
        maximum=86_400_000,
    )
    flush_by: str = key(
        "kernel",
        "How files are flushed. `kernel`: by Linux's asynchronous I/O, and by a thread where "
        "that is not available; `thread`: always by the thread.",
        choices=("kernel", "thread"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSection:
    """[log]: the broker's own log messages."""

    level: str = key(
        "info", "The lowest level that is logged.", choices=("debug", "info", "warning", "error")
    )
    format: str = key(
        "text",
        "`text`: one line of key=value pairs for each event; `json`: one object on a line.",
        choices=("text", "json"),
    )
    file: str = key(
        "", "The file to append to; empty for standard error.", example="/var/log/strandline.log"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillsSection:
    """[drills]: permission for `strandline drill` on this broker."""

    enable: bool = key(
        False,
        "Whether any client that can connect to this broker may order it to cut itself off, for "
        "at most ten minutes at a time. True in clusters of `strandline dev start`.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DevSection:
    """[dev]: for clusters on one machine; leave it out elsewhere."""

    peer_rtt: tuple[str, ...] = key(
        (),
        f"Simulated round trips to other brokers, each as id=milliseconds, at most {RTT_MS_MAX}. "
        "Each side delays what it sends by half of it.",
        check=check_peer_rtt,
        example="3=30,4=30,5=80",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The whole configuration. Field names are the file's section names; `labels` is
    [broker.labels]."""

    broker: BrokerSection
    cluster: ClusterSection
    labels: LabelsSection = LabelsSection()
    listener: ListenerSection = field(default_factory=ListenerSection)
    rpc: RpcSection = field(default_factory=RpcSection)
    replication: ReplicationSection = ReplicationSection()
    security: SecuritySection = field(default_factory=SecuritySection)
    limits: LimitsSection = LimitsSection()
    storage: StorageSection = StorageSection()
    tiered: TieredSection = field(default_factory=TieredSection)
    access: AccessSection = field(default_factory=AccessSection)
    oauthbearer: OAuthBearerSection = field(default_factory=OAuthBearerSection)
    log: LogSection = LogSection()
    metrics: MetricsSection = field(default_factory=MetricsSection)
    cores: CoresSection = field(default_factory=CoresSection)
    drills: DrillsSection = DrillsSection()
    dev: DevSection = DevSection()
    listener_entries: tuple[ListenerEntry, ...] = ()
    """[[listener]], in the file's order. If there is any, `listener` means nothing."""

    @property
    def broker_id(self) -> BrokerId:
        """This broker's id."""
        return BrokerId(self.broker.id)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners for Kafka clients, at least one. Their addresses are good."""
        if self.listener_entries:
            return tuple(listener_of(one) for one in self.listener_entries)
        listener = self.listener
        bind = Address(listener.kafka_host, listener.kafka_port)
        advertised = Address(
            listener.advertised_host or listener.kafka_host,
            listener.advertised_port or listener.kafka_port,
        )
        return (Listener(PLAINTEXT, bind, advertised),)

    @property
    def kafka_bind(self) -> Address:
        """Where the first listener for Kafka clients listens."""
        return self.listeners[0].bind

    @property
    def kafka_advertised(self) -> Address:
        """Where clients of the first listener are told to connect."""
        return self.listeners[0].advertised

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
        """The controller's first voters, in the file's order."""
        return tuple(parse_seed(text) for text in self.cluster.seeds)

    @property
    def network_name(self) -> str:
        """The name that brokers of this cluster greet each other with."""
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
    "security": SecuritySection,
    "limits": LimitsSection,
    "storage": StorageSection,
    "tiered": TieredSection,
    "access": AccessSection,
    "oauthbearer": OAuthBearerSection,
    "log": LogSection,
    "metrics": MetricsSection,
    "cores": CoresSection,
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


ENTRIES: dict[str, type] = {"listener": ListenerEntry}
"""The sections that a file may have several times, `[[listener]]`: {name in the file: class}."""

assert {section_field(name) for name in SECTIONS} | {"listener_entries"} == {
    field.name for field in fields(BrokerConfig)
}
