"""The keys that must agree on every broker, under Kafka's names.

Why:    what every broker must see alike does not belong into a file per broker: it is set through
        the Kafka config APIs and kept by the controller.
How:    the values lie as text in the controller's log (`model.Cluster.cluster_configs`);
        `ClusterConfig.from_values` reads them. The defaults of topics are cluster-wide keys too;
        their rows come from the topic table.
Owns:   nothing; made anew whenever the controller's log changes one of them.
Source: Kafka's broker configuration reference; STYLE, "Configuration"."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.config.addresses import check_webhook_url
from strandline.config.client_networks import check_client_networks
from strandline.config.keys import LONG_MAX, Key, Value, key, keys_of
from strandline.config.outage_marks import check_outage_marks
from strandline.config.topic import DAY_MS, TOPIC_KEYS, unknown_key

NO_LIMIT = -1
_SESSION_MS_MAX = 30 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Cluster-wide configuration. Field `num_partitions` is Kafka's `num.partitions`."""

    alarm_webhook_url: str = key(
        "",
        "Where the controller posts, as JSON, what goes down and what is back: brokers, zones, "
        "regions, links; http or https. Not a key of Kafka's.",
        check=check_webhook_url,
        example="https://alarms.example/strandline",
        reloadable=True,
    )
    auto_create_topics_enable: bool = key(
        True, "Whether a topic is created when a client asks for it and allows it.", reloadable=True
    )
    auto_leader_rebalance_enable: bool = key(
        True,
        "Whether leadership goes back to a partition's first replica by itself, once that has been "
        "in sync for a while.",
        reloadable=True,
    )
    balancer_best_effort_enable: bool = key(
        False,
        "Whether replicas on lost brokers are made anew elsewhere though the placement policy does "
        "not hold then: where it breaks least of it, and never what residency or a rule's own "
        "selectors forbid. Undone once the policy can be kept again. Without it they wait. Not a "
        "key of Kafka's.",
        reloadable=True,
    )
    balancer_disk_high_percent: int = key(
        85,
        "The high mark of disks. From a broker whose disk is fuller than this the balancer moves "
        "replicas away, and gives it no more, until it is down to `balancer.disk.low.percent`; "
        "those of new partitions only where no other broker will do. A broker is decommissioned "
        "only where what it holds fits below this elsewhere. Not a key of Kafka's.",
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    balancer_disk_low_percent: int = key(
        80,
        "The low mark of disks: how full a disk that was too full shall be in the end, and up to "
        "where what moves for that, or because it is only better elsewhere, may fill another. The "
        "high mark counts where it is lower. Not a key of Kafka's.",
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    balancer_enable: bool = key(
        True,
        "Whether replicas are moved to where placement policies want them, and away from brokers "
        "that are lost. Without it what moves is finished, and nothing more is begun. Not a key of "
        "Kafka's.",
        reloadable=True,
    )
    balancer_moves_max: int = key(
        10,
        "How many partitions the balancer moves at the same time. Not a key of Kafka's.",
        minimum=1,
        maximum=1_000,
        reloadable=True,
    )
    broker_lost_after_ms: int = key(
        15 * 60 * 1000,
        "How long a broker has to be silent before its replicas are made anew on others. Not a key "
        "of Kafka's.",
        unit="ms",
        minimum=1_000,
        reloadable=True,
        long=True,
    )
    client_networks: tuple[str, ...] = key(
        (),
        "Where clients are, each as region=network, for policies whose leaders follow the writers; "
        "of networks within each other the narrowest counts. Not a key of Kafka's.",
        check=check_client_networks,
        example="east=10.1.0.0/16,west=10.2.0.0/16",
        reloadable=True,
    )
    confluent_offsets_topic_placement_constraints: str = key(
        "",
        "Where the replicas of `__consumer_offsets` go, in Confluent's JSON: its own "
        "`confluent.placement.constraints` when it is created. Without it they go where the "
        "cluster's default policy has them, or `offsets.topic.replication.factor`. Not a key of "
        "Kafka's. Transactions are not supported, so there is no such key for their topic.",
        example='{"version":2,"replicas":[{"count":3,"constraints":{"rack":"east"}}]}',
    )
    default_replication_factor: int = key(
        3,
        "Replicas of a topic for which nothing is said; as many as there are brokers where there "
        "are fewer. (Kafka's default is 1, which survives nothing.)",
        minimum=1,
        maximum=32_767,
        reloadable=True,
    )
    follower_replication_throttled_rate: int = key(
        LONG_MAX,
        "How many bytes a second all copies to new replicas on one broker may take together, for "
        "each broker that has no rate of its own.",
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
        "The longest session that a group member may ask for.",
        unit="ms",
        minimum=1,
    )
    group_max_size: int = key(
        2**31 - 1, "The most members of one consumer group.", minimum=1, reloadable=True
    )
    group_min_session_timeout_ms: int = key(
        6_000, "The shortest session that a group member may ask for.", unit="ms", minimum=1
    )
    leader_imbalance_check_interval_seconds: int = key(
        300,
        "For how long a partition's first replica has to be in sync before it leads again.",
        unit="s",
        minimum=1,
        maximum=86_400,
        reloadable=True,
    )
    leader_replication_throttled_rate: int = key(
        LONG_MAX,
        "How many bytes a second all copies to new replicas may take together that are read from "
        "one broker's logs, for each broker that has no rate of its own.",
        unit="bytes/s",
        minimum=0,
        reloadable=True,
        long=True,
    )
    moves_bytes_per_s: int = key(
        NO_LIMIT,
        "How many bytes a second all copies to new replicas may take together, over all brokers; "
        "changes hold for those under way, and 0 halts them. What producers add meanwhile comes on "
        "top. -1: only each broker's `replication.recovery_bytes_per_s` counts. Not a key of "
        "Kafka's.",
        unit="bytes/s",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    moves_cross_region_bytes_per_s: int = key(
        NO_LIMIT,
        "How many of them may go from one region to another. Not a key of Kafka's.",
        unit="bytes/s",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    num_partitions: int = key(
        1,
        "Partitions of a topic for which nothing is said.",
        minimum=1,
        maximum=10_000,
        reloadable=True,
    )
    offset_metadata_max_bytes: int = key(
        4_096, "The longest text that may go with a committed offset.", unit="bytes", minimum=0
    )
    offsets_retention_minutes: int = key(
        7 * 24 * 60,
        "How long committed offsets outlive the last member of their group.",
        unit="minutes",
        minimum=1,
        reloadable=True,
    )
    offsets_topic_num_partitions: int = key(
        50,
        "Partitions of `__consumer_offsets`; counts when it is created.",
        minimum=1,
        maximum=10_000,
    )
    offsets_topic_replication_factor: int = key(
        3,
        "Replicas of `__consumer_offsets`; as many as there are brokers where there are fewer; "
        "counts when it is created.",
        minimum=1,
        maximum=32_767,
    )
    outage_brokers_min: int = key(
        2,
        "A zone or region is down only where at least so many of its brokers are silent; fewer are "
        "failures of brokers, and repaired. 1: where zones have one broker each, and nothing is to "
        "be copied for any. Not a key of Kafka's.",
        minimum=1,
        maximum=10_000,
        reloadable=True,
    )
    outage_high_percent: int = key(
        66,
        "A zone or region that is down is back when so much of its brokers, or all, are heard; "
        "below 100 also when a single one is silent that would not take it down. Lower than "
        "`outage.low.percent` counts as that. Not a key of Kafka's.",
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    outage_hold_max_ms: int = key(
        NO_LIMIT,
        "For how long replicas in a zone or region that is down are not made anew without "
        "a person. -1: until it is back, or somebody releases it. Not a key of Kafka's.",
        unit="ms",
        minimum=NO_LIMIT,
        reloadable=True,
        long=True,
    )
    outage_low_percent: int = key(
        50,
        "A zone or region is down when less than so much of its brokers are heard: nothing is "
        "made anew elsewhere of it then. Not a key of Kafka's.",
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    outage_marks: tuple[str, ...] = key(
        (),
        "Where other marks hold than `outage.low.percent` and `outage.high.percent`, each as "
        "WHERE=LOW-HIGH: `*` for regions, `*/*` for zones, `west` for one region, `west/*` for its "
        "zones, `west/a` for one zone; the narrowest counts. Not a key of Kafka's.",
        unit="%",
        check=check_outage_marks,
        example="*=34-60,*/*=50-66,west/a=20-40",
        reloadable=True,
    )
    placement_disk_full_percent: int = key(
        99,
        "A broker whose disk is as full as this is given no replica of a new partition, whoever "
        "chooses but the client itself. Not a key of Kafka's.",
        unit="%",
        minimum=1,
        maximum=100,
        reloadable=True,
    )
    producer_id_expiration_ms: int = key(
        DAY_MS,
        "How long a partition remembers the sequence numbers of an idempotent producer that is "
        "silent.",
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
        ),
        key=lambda row: row.name,
    )
)
"""Every cluster-wide key: its own, and the ones that give topics their defaults."""

CLUSTER_KEYS_BY_NAME: dict[str, Key] = {row.name: row for row in CLUSTER_KEYS}


def validate_cluster_config(name: str, value: str) -> str | None:
    """Why the cluster may not have this value, in one line; None when it may."""
    row = CLUSTER_KEYS_BY_NAME.get(name)
    if row is None:
        return unknown_key(name, CLUSTER_KEYS_BY_NAME)
    return row.refuse(value)
