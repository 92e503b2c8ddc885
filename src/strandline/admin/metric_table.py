"""Every metric that a broker tells, with the name that users of Kafka know it by.

Why:    dashboards are built on names: none comes, goes or changes its meaning by accident.
How:    one row a metric. What is told, the reference page and the tests all read these rows; a
        figure without a row, or a row without a figure, is a mistake that a scrape finds.
Source: STYLE, rule 4; reference observers 4.4."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """As Prometheus has it."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `name`: Prometheus's; `kafka`: the bean of Kafka's, or of Confluent's, that tells
    the same, be it as a rate where ours is the count; empty where there is none."""

    name: str
    help: str
    kind: Kind = Kind.GAUGE
    labels: tuple[str, ...] = ()
    kafka: str = ""

    @property
    def told(self) -> str:
        """The text beside it in a scrape."""
        return f"{self.help} Kafka: {self.kafka}." if self.kafka else self.help


def _partition(name: str, kafka: str, text: str) -> Metric:
    return Metric(
        name=f"strandline_partition_{name}", kafka=kafka, help=text, labels=("topic", "partition")
    )


_BEAN = "kafka.cluster:type=Partition,name="
_MANAGER = "kafka.server:type=ReplicaManager,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="

PARTITION_METRICS = (
    _partition("replicas", f"{_BEAN}ReplicasCount", "Replicas, observers among them."),
    _partition(
        "observer_replicas", f"{_BEAN}ObserverReplicasCount", "Replicas that are observers."
    ),
    _partition(
        "in_sync_replicas",
        f"{_BEAN}InSyncReplicasCount",
        "Voters that are alive and not behind, promoted observers among them.",
    ),
    _partition(
        "caught_up_replicas",
        f"{_BEAN}CaughtUpReplicasCount",
        "Replicas that are alive and keep up, voters or not.",
    ),
    _partition(
        "not_caught_up",
        f"{_BEAN}IsNotCaughtUp",
        "1 where some replica does not keep up, or is silent.",
    ),
    _partition(
        "observers_in_isr",
        f"{_BEAN}ObserversInIsrCount",
        "Observers that are in sync as voters: those that were promoted.",
    ),
    _partition(
        "under_replicated",
        f"{_BEAN}UnderReplicated",
        "1 where fewer voters are in sync than there should be; observers do not count.",
    ),
    _partition(
        "under_min_isr",
        f"{_BEAN}UnderMinIsr",
        "1 where fewer replicas are in sync than min.insync.replicas: nothing is acknowledged with "
        "acks=all.",
    ),
    _partition(
        "log_start_offset", "kafka.log:type=Log,name=LogStartOffset", "The first offset there is."
    ),
    _partition(
        "log_end_offset",
        "kafka.log:type=Log,name=LogEndOffset",
        "The offset that the next record gets; its rate is that of records produced.",
    ),
)
"""One series for each partition that this broker leads, in the order of `partitions.values_of`."""

BROKER_METRICS = (
    Metric(
        name="strandline_broker_info",
        labels=("broker", "cluster", "region", "zone", "version"),
        help="Always 1: which broker this is, and where.",
        kafka="kafka.server:type=app-info",
    ),
    Metric(
        name="strandline_broker_ready",
        help="1 while Kafka clients are served.",
    ),
    Metric(
        name="strandline_replicas",
        help="Replicas that are to be here.",
        kafka=f"{_MANAGER}PartitionCount",
    ),
    Metric(
        name="strandline_offline_replicas",
        help="Those of them that are not open here, or were stopped by a failure.",
        kafka=f"{_MANAGER}OfflineReplicaCount",
    ),
    Metric(
        name="strandline_leaderless_replicas",
        help="Those of them that know no leader: nobody can write there, nor read the newest.",
    ),
    Metric(
        name="strandline_leaders",
        help="Partitions led here.",
        kafka=f"{_MANAGER}LeaderCount",
    ),
    Metric(
        name="strandline_under_replicated_partitions",
        help="Partitions led here with fewer voters in sync than there should be.",
        kafka=f"{_MANAGER}UnderReplicatedPartitions",
    ),
    Metric(
        name="strandline_under_min_isr_partitions",
        help="Partitions led here with fewer replicas in sync than min.insync.replicas.",
        kafka=f"{_MANAGER}UnderMinIsrPartitionCount",
    ),
    Metric(
        name="strandline_at_min_isr_partitions",
        help="Partitions led here with just as many in sync as min.insync.replicas asks for, and "
        "fewer than there should be.",
        kafka=f"{_MANAGER}AtMinIsrPartitionCount",
    ),
    Metric(
        name="strandline_not_caught_up_partitions",
        help="Partitions led here of which some replica, voter or observer, does not keep up.",
    ),
    Metric(
        name="strandline_reassigning_partitions",
        help="Partitions led here whose replicas move.",
        kafka=f"{_MANAGER}ReassigningPartitions",
    ),
    Metric(
        name="strandline_partitions_without_series",
        help="Partitions led here that have no series of their own, by "
        "`[metrics] partition_count_max`.",
    ),
    Metric(
        name="strandline_elections_total",
        kind=Kind.COUNTER,
        help="Elections in which a replica here stood.",
        kafka="kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
    ),
    Metric(
        name="strandline_relayed_bytes_total",
        kind=Kind.COUNTER,
        help="What this broker handed on to others of its region as a relay, and so did not cross "
        "from another one again.",
    ),
    Metric(
        name="strandline_lent_bytes_total",
        kind=Kind.COUNTER,
        help="What replicas here sent to others of their region that had missed it, on their "
        "leader's order.",
    ),
    Metric(
        name="strandline_leader_changes_total",
        kind=Kind.COUNTER,
        labels=("change",),
        help="How often a replica here began to lead (`begun`), and ceased to (`ended`).",
    ),
    Metric(
        name="strandline_replica_failures_total",
        kind=Kind.COUNTER,
        labels=("cause",),
        help="Replicas here that were stopped until the broker starts anew: a write or a flush "
        "failed (`io`), or the log is damaged (`damage`).",
    ),
    Metric(
        name="strandline_damaged_logs",
        help="Logs of open replicas here with a part that cannot be read, and is not mended yet.",
    ),
    Metric(
        name="strandline_mended_gaps_total",
        kind=Kind.COUNTER,
        help="Damaged parts of logs here that were replaced by what other replicas have.",
    ),
    Metric(
        name="strandline_disk_used_bytes",
        help="Used of the file system with the data directory.",
    ),
    Metric(
        name="strandline_disk_free_bytes",
        help="Free there for this broker.",
    ),
    Metric(
        name="strandline_produced_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes of record batches that were taken to be appended by leaders here, the brokers' "
        "own topics among them.",
        kafka="kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
    ),
    Metric(
        name="strandline_fetched_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes of records in the answers to clients' fetches.",
        kafka="kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec",
    ),
    Metric(
        name="strandline_client_connections",
        help="Connections of Kafka clients that are open.",
        kafka="kafka.server:type=socket-server-metrics,name=connection-count",
    ),
    Metric(
        name="strandline_replication_memory_bytes",
        help="Produced bytes that followers have not taken yet.",
    ),
    Metric(
        name="strandline_replication_memory_limit_bytes",
        help="At so many producers are read no further.",
    ),
    Metric(
        name="strandline_peer_up",
        labels=("peer",),
        help="1 where this broker hears that one.",
    ),
    Metric(
        name="strandline_peer_round_trip_seconds",
        labels=("peer",),
        help="The round trip to that broker by its heartbeats, smoothed; only where it is heard.",
    ),
    Metric(
        name="strandline_controller_active",
        help="1 on the broker that is the controller.",
        kafka=f"{_CONTROLLER}ActiveControllerCount",
    ),
)
"""What every broker tells."""

CONTROLLER_METRICS = (
    Metric(
        name="strandline_controller_alarms",
        labels=("class",),
        help="What goes on and is to be looked at: a `broker`, `zone` or `region` that is down, a "
        "`network-cut`; or was `planned`. `fewer-voters`, `observers-vote` and `low-quorum`: 1 "
        "where partitions go on with less, for a while; `no-leader`: where nobody leads some.",
    ),
    Metric(
        name="strandline_controller_domain_down",
        labels=("region", "zone"),
        help="1 where a zone, or a region (`zone` is empty), is down as a whole.",
    ),
    Metric(
        name="strandline_controller_domain_held",
        labels=("region", "zone"),
        help="1 where nothing of it is made anew elsewhere, by itself or by hand.",
    ),
    Metric(
        name="strandline_controller_domain_silent_brokers",
        labels=("region", "zone"),
        help="Its brokers that are silent, but for those in maintenance.",
    ),
    Metric(
        name="strandline_controller_held_brokers",
        help="Brokers that are down and whose replicas are not made anew elsewhere meanwhile.",
    ),
    Metric(
        name="strandline_controller_brokers",
        labels=("state",),
        help="Registered brokers: `up`, `settling` (just up), `down`, or `lost` (replaced).",
        kafka=f"{_CONTROLLER}ActiveBrokerCount, {_CONTROLLER}FencedBrokerCount",
    ),
    Metric(
        name="strandline_controller_topics",
        help="Topics of the cluster.",
        kafka=f"{_CONTROLLER}GlobalTopicCount",
    ),
    Metric(
        name="strandline_controller_partitions",
        help="Partitions of the cluster.",
        kafka=f"{_CONTROLLER}GlobalPartitionCount",
    ),
    Metric(
        name="strandline_controller_offline_partitions",
        help="Partitions that no broker leads, as far as the controller knows: of a leader that "
        "lives and has lost its quorum, only those that hold a replica do "
        "(`strandline_leaderless_replicas`).",
        kafka=f"{_CONTROLLER}OfflinePartitionsCount",
    ),
    Metric(
        name="strandline_controller_preferred_replica_imbalance",
        help="Partitions led by another broker than the first of their replicas.",
        kafka=f"{_CONTROLLER}PreferredReplicaImbalanceCount",
    ),
    Metric(
        name="strandline_controller_moving_partitions",
        help="Partitions whose replicas move.",
    ),
    Metric(
        name="strandline_controller_waiting_partitions",
        labels=("reason",),
        help="Partitions whose replicas should move and do not, by the codes of `cluster balance`: "
        "`zone-down` and `cut-off` are repairs that are held; `no-quorum` has lost its quorum.",
    ),
    Metric(
        name="strandline_controller_weakened_partitions",
        labels=("class",),
        help="Partitions that go on with `fewer-voters` than placement asks for; whose "
        "`observers-vote`; whose leader refuses acks=all, for they have a `low-quorum`; that "
        "nobody leads, as all say who have a replica and are heard: `no-leader`.",
    ),
)
"""What the controller alone tells."""

METRICS = PARTITION_METRICS + BROKER_METRICS + CONTROLLER_METRICS
"""All of ours; beside them come Prometheus's usual ones of a process (`process_...`)."""

assert len({one.name for one in METRICS}) == len(METRICS)
assert all(one.name.endswith("_total") == (one.kind is Kind.COUNTER) for one in METRICS)
