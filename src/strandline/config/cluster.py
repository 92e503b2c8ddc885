"""The keys that must agree on every broker, under Kafka's names.

Why:    a value that every broker must share does not belong in a file per broker: operators set it
        through Kafka's config APIs, and the controller stores it.
How:    the values are text in the controller's log (`model.Cluster.cluster_configs`), and
        `ClusterConfig.from_values` reads them. The defaults of topic keys are cluster-wide keys
        too; their rows come from the topic table.
Owns:   nothing; rebuilt whenever the controller's log changes a value.
Source: Kafka's broker configuration reference; STYLE, "Configuration"."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.config.addresses import check_webhook_url
from strandline.config.client_networks import check_client_networks
from strandline.config.kafka.table import STORED_KEYS, why_fixed
from strandline.config.keys import INT_MAX, LONG_MAX, Key, Value, ValueType, key, keys_of
from strandline.config.outage_marks import check_outage_marks
from strandline.config.topic import DAY_MS, TOPIC_KEYS, unknown_key

NO_LIMIT = -1
_SESSION_MS_MAX = 30 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Cluster-wide configuration. Field `num_partitions` is Kafka's `num.partitions`."""

    alarm_webhook_url: str = key(
        "",
        "The http or https address to which the controller posts, as JSON, every broker, zone, "
        "region and link that goes down or comes back. `[security] webhook_hosts` of the brokers' "
        "files must list its host. No request shows the value.",
        own=True,
        secret=True,
        check=check_webhook_url,
        example="https://alarms.example/strandline",
        reloadable=True,
    )
    auto_create_topics_enable: bool = key(
        True,
        "Whether a client's request for a missing topic creates it, if the client allows that.",
        reloadable=True,
    )
    auto_leader_rebalance_enable: bool = key(
        True,
        "Whether leadership returns to a partition's first replica automatically, once that has "
        "been in sync for a while.",
        reloadable=True,
    )
    balancer_best_effort_enable: bool = key(
        False,
        "Whether the balancer re-creates replicas of lost brokers even if the placement policy "
        "cannot be kept: it chooses the place that breaks the least of it, and never breaks "
        "residency or the selectors of a rule. It undoes this once the policy can be kept "
        "again. If false, the replicas wait.",
        own=True,
        reloadable=True,
    )
    balancer_disk_high_percent: int = key(
        85,
        "The high mark of disks. If a broker's disk is fuller than this, the balancer moves "
        "replicas away until it is down to `balancer.disk.low.percent`, and gives it no others; "
        "new partitions use it only if no other broker will do. A broker is decommissioned only "
        "if its data fits below this mark elsewhere.",
        own=True,
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    balancer_disk_low_percent: int = key(
        80,
        "The low mark of disks: the balancer empties an overfull disk down to it, and fills "
        "another disk only up to it, also with moves that merely improve placement. If the high "
        "mark is lower, that counts.",
        own=True,
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    balancer_enable: bool = key(
        True,
        "Whether the balancer moves replicas to where placement policies want them, and away "
        "from lost brokers. If false, it finishes the moves under way and begins no others.",
        own=True,
        reloadable=True,
    )
    balancer_moves_max: int = key(
        10,
        "The most partitions that the balancer moves at the same time.",
        own=True,
        minimum=1,
        maximum=1_000,
        reloadable=True,
    )
    broker_lost_after_ms: int = key(
        15 * 60 * 1000,
        "How long a broker must be silent before its replicas are re-created on other brokers.",
        own=True,
        unit="ms",
        minimum=1_000,
        reloadable=True,
        long=True,
    )
    client_networks: tuple[str, ...] = key(
        (),
        "The regions of clients by network, each as region=network, for policies whose leaders "
        "follow the writers. If networks are nested, the narrowest counts.",
        own=True,
        check=check_client_networks,
        example="east=10.1.0.0/16,west=10.2.0.0/16",
        reloadable=True,
    )
    confluent_offsets_topic_placement_constraints: str = key(
        "",
        "The placement of `__consumer_offsets` in Confluent's JSON: its "
        "`confluent.placement.constraints` when it is created. If empty, the cluster's default "
        "policy or `offsets.topic.replication.factor` decides. There is no such key for the "
        "topic of transactions, which are not supported.",
        own=True,
        example='{"version":2,"replicas":[{"count":3,"constraints":{"rack":"east"}}]}',
    )
    default_replication_factor: int = key(
        3,
        "Replicas of a topic that does not say how many; as many as there are brokers if there "
        "are fewer. (Kafka's default is 1, which survives no failure.)",
        minimum=1,
        maximum=32_767,
        reloadable=True,
    )
    follower_replication_throttled_rate: int = key(
        LONG_MAX,
        "The most bytes per second that all copies to new replicas on one broker take together, "
        "for each broker without its own rate.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )
    group_initial_rebalance_delay_ms: int = key(
        3_000,
        "How long an empty consumer group waits for more members before its first assignment.",
        unit="ms",
        minimum=0,
        maximum=_SESSION_MS_MAX,
        reloadable=True,
    )
    group_max_session_timeout_ms: int = key(
        _SESSION_MS_MAX,
        "The longest session timeout that a group member may request.",
        unit="ms",
        minimum=1,
    )
    group_max_size: int = key(
        2**31 - 1, "The most members of one consumer group.", minimum=1, reloadable=True
    )
    group_min_session_timeout_ms: int = key(
        6_000, "The shortest session timeout that a group member may request.", unit="ms", minimum=1
    )
    leader_imbalance_check_interval_seconds: int = key(
        300,
        "How long a partition's first replica must be in sync before it leads again.",
        unit="s",
        minimum=1,
        maximum=86_400,
        reloadable=True,
        long=True,
    )
    leader_replication_throttled_rate: int = key(
        LONG_MAX,
        "The most bytes per second that all copies to new replicas read together from one "
        "broker's logs, for each broker without its own rate.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )
    log_cleaner_backoff_ms: int = key(
        15_000,
        "The interval at which a broker looks for logs whose compaction is due.",
        unit="ms",
        minimum=0,
        reloadable=True,
        long=True,
    )
    max_connection_creation_rate: int = key(
        INT_MAX,
        "The most connections per second that a broker accepts, over all listeners, for each "
        "broker without its own rate; further clients wait.",
        minimum=0,
        reloadable=True,
    )
    metadata_log_max_record_bytes_between_snapshots: int = key(
        20 << 20,
        "After so many bytes of the controller's log each broker takes a snapshot of what it says. "
        "The log is cut behind the older one of the two newest snapshots.",
        minimum=1,
        reloadable=True,
        long=True,
    )
    metadata_log_max_snapshot_interval_ms: int = key(
        60 * 60 * 1000,
        "After so long each broker takes a snapshot of the controller's log if anything is new in "
        "it; 0: only by its bytes.",
        unit="ms",
        minimum=0,
        reloadable=True,
        long=True,
    )
    moves_bytes_per_s: int = key(
        NO_LIMIT,
        "The most bytes per second that all copies to new replicas take together, over all "
        "brokers. A change applies to copies under way, and 0 halts them. New records from "
        "producers are not counted. -1: only each broker's `replication.recovery_bytes_per_s` "
        "limits them.",
        own=True,
        unit="bytes/s",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    moves_cross_region_bytes_per_s: int = key(
        NO_LIMIT,
        "As `moves.bytes.per.s`, for the bytes that go from one region to another.",
        own=True,
        unit="bytes/s",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    num_partitions: int = key(
        1,
        "Partitions of a topic that does not say how many.",
        minimum=1,
        maximum=10_000,
        reloadable=True,
    )
    offset_metadata_max_bytes: int = key(
        4_096,
        "The longest metadata that a client may commit with an offset. As in Kafka it counts "
        "characters (UTF-16 units), whatever they take in bytes.",
        unit="bytes",
        minimum=0,
    )
    offsets_retention_minutes: int = key(
        7 * 24 * 60,
        "How long committed offsets are kept after the last member has left their group.",
        unit="minutes",
        minimum=1,
        reloadable=True,
    )
    offsets_topic_num_partitions: int = key(
        50,
        "Partitions of `__consumer_offsets`; used when it is created.",
        minimum=1,
        maximum=10_000,
    )
    offsets_topic_replication_factor: int = key(
        3,
        "Replicas of `__consumer_offsets`, used when it is created; as many as there are "
        "brokers if there are fewer.",
        minimum=1,
        maximum=32_767,
    )
    outage_brokers_min: int = key(
        2,
        "A zone or region is down only if at least this many of its brokers are silent; fewer "
        "count as failures of single brokers, and are repaired. Set 1 if zones have one broker "
        "each and no broker's data should be copied elsewhere.",
        own=True,
        minimum=1,
        maximum=10_000,
        reloadable=True,
    )
    outage_high_percent: int = key(
        66,
        "A zone or region that is down is up again once at least this share of its brokers is "
        "heard. With a value below 100 it is also up once only one broker is silent and that "
        "one alone would not take it down. A value below `outage.low.percent` counts as that.",
        own=True,
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    outage_hold_max_ms: int = key(
        NO_LIMIT,
        "How long replicas in a zone or region that is down are not re-created without an "
        "operator. -1: until it is up again, or an operator releases it.",
        own=True,
        unit="ms",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    outage_low_percent: int = key(
        50,
        "A zone or region is down if less than this share of its brokers is heard. While it is "
        "down, its replicas are not re-created elsewhere.",
        own=True,
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    outage_marks: tuple[str, ...] = key(
        (),
        "Other marks than `outage.low.percent` and `outage.high.percent`, each as "
        "WHERE=LOW-HIGH: `*` for regions, `*/*` for zones, `west` for one region, `west/*` for "
        "its zones, `west/a` for one zone. The narrowest counts.",
        own=True,
        unit="%",
        check=check_outage_marks,
        example="*=34-60,*/*=50-66,west/a=20-40",
        reloadable=True,
    )
    placement_disk_full_percent: int = key(
        99,
        "A broker whose disk is at least this full gets no replica of a new partition, unless "
        "the client names the broker.",
        own=True,
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    producer_id_expiration_ms: int = key(
        DAY_MS,
        "How long a partition keeps the sequence numbers of a silent idempotent producer.",
        unit="ms",
        minimum=1,
        reloadable=True,
    )

    @property
    def disk_low_percent(self) -> int:
        """The low mark of disks, never above the high one."""
        return min(self.balancer_disk_low_percent, self.balancer_disk_high_percent)

    @classmethod
    def from_values(cls, values: Mapping[str, str]) -> "ClusterConfig":
        """Read the values that are set, texts by Kafka's names; what cannot be read counts as not
        set."""
        parsed: dict[str, Value] = {}
        for row in _OWN_KEYS:
            try:
                if row.name in values:
                    parsed[row.field] = row.parse(values[row.name])
            except ValueError:
                continue
        return dataclasses.replace(DEFAULT_CLUSTER_CONFIG, **parsed)  # type: ignore[arg-type]


_OWN_KEYS = keys_of(ClusterConfig, dotted=True)
DEFAULT_CLUSTER_CONFIG = ClusterConfig()

CLUSTER_KEYS: tuple[Key, ...] = tuple(
    sorted(
        _OWN_KEYS
        + tuple(
            dataclasses.replace(
                row, name=row.cluster_name, doc=f"The default of the topic key `{row.name}`."
            )
            for row in TOPIC_KEYS
            if row.cluster_name
        ),
        key=lambda row: row.name,
    )
)
"""Every cluster-wide key: its own, and the ones that give topics their defaults."""

CLUSTER_KEYS_BY_NAME: dict[str, Key] = {row.name: row for row in (*CLUSTER_KEYS, *STORED_KEYS)}
"""Every key that can be set for the whole cluster."""

SECRET_CLUSTER_KEYS = frozenset(
    name for name, row in CLUSTER_KEYS_BY_NAME.items() if row.type is ValueType.PASSWORD
)
"""Those whose values no request shows and no bucket has."""
WEBHOOK_URL = "alarm.webhook.url"


def validate_cluster_config(name: str, value: str) -> str | None:
    """Why the cluster may not have this value, in one line; None when it may."""
    row = CLUSTER_KEYS_BY_NAME.get(name)
    if row is None:
        return why_fixed(name) or unknown_key(name, CLUSTER_KEYS_BY_NAME)
    return row.refuse(value)
