"""Every metric of a broker, with its name in Kafka.

Why:    dashboards depend on names, so no name appears, goes or changes its meaning by accident.
How:    One row for each metric. The exposition, the reference page and the tests read these rows. A
        scrape fails if a value has no row, or a row no value.
Source: STYLE, rule 4; reference observers 4.4."""

from strandline.admin.machine_metrics import MACHINE_METRICS
from strandline.admin.metric import Kind, Metric
from strandline.admin.read_replica_metrics import READ_REPLICA_METRICS
from strandline.admin.remote_reads import REMOTE_METRICS
from strandline.admin.tiered_metrics import TIERED_METRICS


def _partition(name: str, kafka: str, text: str) -> Metric:
    return Metric(
        name=f"strandline_partition_{name}", kafka=kafka, help=text, labels=("topic", "partition")
    )


_BEAN = "kafka.cluster:type=Partition,name="
_MANAGER = "kafka.server:type=ReplicaManager,name="
_CONTROLLER = "kafka.controller:type=KafkaController,name="

PARTITION_METRICS = (
    _partition("replicas", f"{_BEAN}ReplicasCount", "Replicas, including observers."),
    _partition("observer_replicas", f"{_BEAN}ObserverReplicasCount", "Observers."),
    _partition(
        "in_sync_replicas",
        f"{_BEAN}InSyncReplicasCount",
        "Live voters that are not behind, including promoted observers.",
    ),
    _partition(
        "caught_up_replicas",
        f"{_BEAN}CaughtUpReplicasCount",
        "Live replicas that keep up, voters or not.",
    ),
    _partition(
        "not_caught_up",
        f"{_BEAN}IsNotCaughtUp",
        "1 if a replica is silent or does not keep up.",
    ),
    _partition(
        "observers_in_isr",
        f"{_BEAN}ObserversInIsrCount",
        "Promoted observers that are in sync.",
    ),
    _partition(
        "under_replicated",
        f"{_BEAN}UnderReplicated",
        "1 if fewer voters are in sync than the partition should have; observers do not count.",
    ),
    _partition(
        "under_min_isr",
        f"{_BEAN}UnderMinIsr",
        "1 if fewer replicas are in sync than min.insync.replicas: acks=all writes are rejected.",
    ),
    _partition(
        "log_start_offset", "kafka.log:type=Log,name=LogStartOffset", "First available offset."
    ),
    _partition(
        "log_end_offset",
        "kafka.log:type=Log,name=LogEndOffset",
        "Offset of the next record; its rate is the rate of produced records.",
    ),
)
"""One series for each partition that this broker leads, in the order of `partitions.values_of`."""

BROKER_METRICS = (
    Metric(
        name="strandline_broker_info",
        labels=("broker", "cluster", "region", "zone", "version"),
        help="Always 1: this broker's id and place.",
        kafka="kafka.server:type=app-info",
    ),
    Metric(
        name="strandline_broker_ready",
        help="1 while the broker serves Kafka clients.",
    ),
    Metric(
        name="strandline_replicas",
        help="Replicas placed on this broker.",
        kafka=f"{_MANAGER}PartitionCount",
    ),
    Metric(
        name="strandline_offline_replicas",
        help="Of these, replicas that are not open here or that a failure stopped.",
        kafka=f"{_MANAGER}OfflineReplicaCount",
    ),
    Metric(
        name="strandline_leaderless_replicas",
        help=(
            "Of these, replicas that know no leader: clients cannot write there or read the "
            "newest records."
        ),
    ),
    Metric(
        name="strandline_leaders",
        help="Partitions led here.",
        kafka=f"{_MANAGER}LeaderCount",
    ),
    Metric(
        name="strandline_under_replicated_partitions",
        help="Partitions led here with fewer voters in sync than they should have.",
        kafka=f"{_MANAGER}UnderReplicatedPartitions",
    ),
    Metric(
        name="strandline_under_min_isr_partitions",
        help="Partitions led here with fewer replicas in sync than min.insync.replicas.",
        kafka=f"{_MANAGER}UnderMinIsrPartitionCount",
    ),
    Metric(
        name="strandline_at_min_isr_partitions",
        help=(
            "Partitions led here with exactly min.insync.replicas in sync, and fewer than "
            "they should have."
        ),
        kafka=f"{_MANAGER}AtMinIsrPartitionCount",
    ),
    Metric(
        name="strandline_not_caught_up_partitions",
        help="Partitions led here with a replica, voter or observer, that does not keep up.",
    ),
    Metric(
        name="strandline_reassigning_partitions",
        help="Partitions led here with moving replicas.",
        kafka=f"{_MANAGER}ReassigningPartitions",
    ),
    Metric(
        name="strandline_partitions_without_series",
        help="Partitions led here without series of their own, by `[metrics] partition_count_max`.",
    ),
    Metric(
        name="strandline_elections_total",
        kind=Kind.COUNTER,
        help="Elections in which a replica here was a candidate.",
        kafka="kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
    ),
    Metric(
        name="strandline_relayed_bytes_total",
        kind=Kind.COUNTER,
        help=(
            "Data that this broker relayed to others of its region, so that it did not cross "
            "regions again."
        ),
    ),
    Metric(
        name="strandline_lent_bytes_total",
        kind=Kind.COUNTER,
        help=(
            "Data that replicas here sent, on their leader's order, to others of their region "
            "that had missed it."
        ),
    ),
    Metric(
        name="strandline_leader_changes_total",
        kind=Kind.COUNTER,
        labels=("change",),
        help="Times that a replica here became leader (`begun`) or ceased to lead (`ended`).",
    ),
    Metric(
        name="strandline_replica_failures_total",
        kind=Kind.COUNTER,
        labels=("cause",),
        help=(
            "Replicas here that are stopped until the broker restarts: a write or flush "
            "failed (`io`), or the log is damaged (`damage`)."
        ),
    ),
    Metric(
        name="strandline_damaged_logs",
        help="Logs of open replicas here with an unreadable part that is not repaired yet.",
    ),
    Metric(
        name="strandline_mended_gaps_total",
        kind=Kind.COUNTER,
        help="Damaged parts of logs here that were replaced from other replicas.",
    ),
    Metric(
        name="strandline_disk_used_bytes",
        help="Used space of the data directory's file system.",
    ),
    Metric(
        name="strandline_disk_free_bytes",
        help="Free space there for this broker.",
    ),
    Metric(
        name="strandline_produced_bytes_total",
        kind=Kind.COUNTER,
        help=(
            "Bytes of record batches that leaders here accepted for append, including the "
            "brokers' own topics."
        ),
        kafka="kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
    ),
    Metric(
        name="strandline_fetched_bytes_total",
        kind=Kind.COUNTER,
        help="Bytes of records in responses to client fetches.",
        kafka="kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec",
    ),
    Metric(
        name="strandline_fetch_sessions",
        help="Fetch sessions of consumers.",
        kafka="kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    ),
    Metric(
        name="strandline_fetch_session_evictions_total",
        kind=Kind.COUNTER,
        help="Fetch sessions that gave their place to others.",
        kafka=("kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec"),
    ),
    Metric(
        name="strandline_client_connections",
        help="Open connections of Kafka clients.",
        kafka="kafka.server:type=socket-server-metrics,name=connection-count",
    ),
    Metric(
        name="strandline_refused_connections_total",
        kind=Kind.COUNTER,
        labels=("limit",),
        help=(
            "Connections that were closed: of all (`broker`), of one `address` or of one `user` "
            "there were as many as `[limits]` allows, or more came in a second than the quota of "
            "the address allows (`address-rate`)."
        ),
    ),
    Metric(
        name="strandline_accepted_connections_total",
        kind=Kind.COUNTER,
        help="Connections of Kafka clients that were accepted, refused ones included.",
        kafka="kafka.server:type=socket-server-metrics,name=connection-creation-total",
    ),
    Metric(
        name="strandline_delayed_accepts_total",
        kind=Kind.COUNTER,
        help="Times that new clients of a listener waited because too many came in a second.",
    ),
    Metric(
        name="strandline_failed_logins_total",
        kind=Kind.COUNTER,
        help="Logins by SASL, and tokens at the HTTP port, that failed.",
        kafka="kafka.server:type=socket-server-metrics,name=failed-authentication-total",
    ),
    Metric(
        name="strandline_replication_memory_bytes",
        help="Produced bytes that followers have not taken yet.",
    ),
    Metric(
        name="strandline_replication_memory_limit_bytes",
        help="Limit of these bytes, at which the broker stops reading from producers.",
    ),
    Metric(
        name="strandline_peer_up",
        labels=("peer",),
        help="1 if this broker receives heartbeats from that one.",
    ),
    Metric(
        name="strandline_peer_round_trip_seconds",
        labels=("peer",),
        help="Smoothed heartbeat round trip to that broker; only while its heartbeats arrive.",
    ),
    Metric(
        name="strandline_controller_active",
        help="1 on the active controller.",
        kafka=f"{_CONTROLLER}ActiveControllerCount",
    ),
    Metric(
        name="strandline_controller_log_bytes",
        help="This broker's copy of the controller's log. It is cut behind snapshots.",
    ),
    Metric(
        name="strandline_controller_snapshot_bytes",
        kafka="kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedBytes",
        help="The newest snapshot of the controller's state on this broker; 0 without one.",
    ),
    Metric(
        name="strandline_controller_snapshot_age_seconds",
        kafka="kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedAgeMs",
        help="The age of that snapshot; of the process without one.",
    ),
    Metric(
        name="strandline_certificate_seconds_left",
        labels=("port",),
        help=(
            "How long the certificate holds that a port shows: a listener by its name, `rpc`, "
            "`metrics`. Negative once it has expired; a port without TLS has none."
        ),
    ),
    Metric(
        name="strandline_quota_throttled_requests_total",
        kind=Kind.COUNTER,
        labels=("quota",),
        help=(
            "Requests whose client was over a quota: of `produce` bytes, of `fetch` bytes, of "
            "`request` time, of bytes that cross regions (`remote`), or of changes of topics "
            "(`mutation`)."
        ),
    ),
    Metric(
        name="strandline_quota_throttled_seconds_total",
        kind=Kind.COUNTER,
        labels=("quota",),
        help="The time for which answers told clients to wait.",
        kafka="kafka.server:type=Request",
    ),
    Metric(
        name="strandline_muted_client_connections",
        help="Connections that are not read, because their client is over a quota.",
    ),
    Metric(
        name="strandline_audit_dropped_lines_total",
        kind=Kind.COUNTER,
        help=(
            "Lines that the audit log has dropped: more than `[access] audit_lines_per_s_max` of a "
            "kind, or the disk took no more. 0 without an audit log."
        ),
    ),
    Metric(
        name="strandline_audit_write_errors_total",
        kind=Kind.COUNTER,
        help="Writes of the audit log that failed; the broker tries again every second.",
    ),
    *REMOTE_METRICS,
)
"""Metrics of every broker."""

CONTROLLER_METRICS = (
    Metric(
        name="strandline_controller_alarms",
        labels=("class",),
        help=(
            "Current alarms: a `broker`, `zone` or `region` that is down, a `network-cut`, or "
            "a `planned` outage. `fewer-voters`, `observers-vote`, `low-quorum`, `no-leader`, "
            "`tiered-lag` and `tiered-full`: 1 while there are such partitions. `tiered-buckets`: "
            "buckets that some broker lacks, or that are not those of their names there. "
            "`settings-differ`: brokers whose `election_timeout_ms` differs by more than leases "
            "allow."
        ),
    ),
    Metric(
        name="strandline_controller_domain_down",
        labels=("region", "zone"),
        help="1 if a zone, or a region (`zone` is empty), is down as a whole.",
    ),
    Metric(
        name="strandline_controller_domain_held",
        labels=("region", "zone"),
        help="1 while a hold, automatic or by hand, stops re-replication of its data elsewhere.",
    ),
    Metric(
        name="strandline_controller_domain_silent_brokers",
        labels=("region", "zone"),
        help="Its silent brokers, except those in maintenance.",
    ),
    Metric(
        name="strandline_controller_held_brokers",
        help="Down brokers whose replicas are held, not re-replicated elsewhere.",
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
        help=(
            "Partitions without a leader, as the controller knows. If a leader lives but has "
            "lost its quorum, only the partition's replicas know "
            "(`strandline_leaderless_replicas`)."
        ),
        kafka=f"{_CONTROLLER}OfflinePartitionsCount",
    ),
    Metric(
        name="strandline_controller_preferred_replica_imbalance",
        help="Partitions not led by the first of their replicas.",
        kafka=f"{_CONTROLLER}PreferredReplicaImbalanceCount",
    ),
    Metric(
        name="strandline_controller_moving_partitions",
        help="Partitions with moving replicas.",
    ),
    Metric(
        name="strandline_controller_waiting_partitions",
        labels=("reason",),
        help=(
            "Partitions whose replicas should move but wait, by the codes of `cluster "
            "balance`: `zone-down` and `cut-off` are held repairs; `no-quorum` has lost its "
            "quorum."
        ),
    ),
    Metric(
        name="strandline_controller_weakened_partitions",
        labels=("class",),
        help=(
            "Partitions with `fewer-voters` than placement requires, whose `observers-vote`, "
            "whose leader rejects acks=all (`low-quorum`), without a reachable leader "
            "(`no-leader`), whose closed segments are missing from a bucket for longer than "
            "`remote.copy.lag.max.ms` (`tiered-lag`), or that refuse writes for that "
            "(`tiered-full`)."
        ),
    ),
)
"""Metrics of the controller only."""

METRICS = (
    PARTITION_METRICS
    + BROKER_METRICS
    + TIERED_METRICS
    + READ_REPLICA_METRICS
    + CONTROLLER_METRICS
    + MACHINE_METRICS
)
"""All of ours; beside them come Prometheus's usual ones of a process (`process_...`)."""

assert len({one.name for one in METRICS}) == len(METRICS)
assert all(one.name.endswith("_total") == (one.kind is Kind.COUNTER) for one in METRICS)
