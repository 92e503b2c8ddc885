"""Reads the metrics of a broker, and on the active controller those of the cluster.

How:    {name of the metric: a value, or {values of its labels: a value}}, read for each scrape. One
        pass over the cluster's partitions counts them, in slices (`pace`). `partitions` has the
        metrics of single partitions.
Owns:   nothing.
Source: decision 0023."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from strandline.admin.happenings import Happenings
from strandline.admin.pace import Pace
from strandline.admin.partitions import LedPartitions
from strandline.admin.remote_reads import remote_figures
from strandline.broker.broker import Broker
from strandline.broker.context import Services
from strandline.broker.operations.balancing import Findings
from strandline.broker.partitions import known_leader, may_be_named
from strandline.broker.quotas.client_quotas import THROTTLED_KINDS
from strandline.controller.balancer.reasons import WAITS
from strandline.controller.outages.domains import is_region
from strandline.controller.outages.happenings import Kind
from strandline.controller.outages.judging import DomainView
from strandline.model.ids import NO_BROKER
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

STATES = ("up", "settling", "down", "lost")
STEP = 50
"""Partitions between two calls of `Pace.rest`."""

Values = Mapping[tuple[str, ...], float]
Figures = Mapping[str, float | Values]


@dataclass(slots=True)
class Walk:
    """Counts of partitions. `hosted`: those with a replica here. Of these: `closed`, the replica is
    not open; `leaderless`, it knows no live leader; `damaged`, its log is known to be damaged. Of
    all partitions, on the controller only: `offline`, without a live leader; `elsewhere`, led by
    another replica than the preferred one."""

    hosted: int = 0
    closed: int = 0
    leaderless: int = 0
    damaged: int = 0
    offline: int = 0
    elsewhere: int = 0


async def walk(services: Services, pace: Pace, *, is_controller: bool) -> Walk:
    """Count the partitions of the cluster."""
    found = Walk()
    replicas, self_id = services.replication.replicas, services.broker_id
    for position, partition in enumerate(list(services.cluster.groups.values())):
        if position % STEP == 0:
            await pace.rest()
        is_led = True
        if self_id in partition.hosts:
            found.hosted += 1
            replica = replicas.get(partition.group)
            if replica is None or replica.failed is not None:
                found.closed += 1
            else:
                found.damaged += replica.is_damaged
                is_led = _knows_leader(services, replica)
                found.leaderless += not is_led
        if is_controller:
            leader, _ = known_leader(services, partition)
            is_led = is_led and leader != NO_BROKER and may_be_named(services, leader)
            found.offline += not is_led
            found.elsewhere += is_led and leader != partition.replicas[0]
    return found


def _knows_leader(services: Services, replica: Replica) -> bool:
    """Whether this broker knows a live leader; itself only while no other broker can lead."""
    leader = replica.leader_id
    if leader == services.broker_id:
        return replica.can_serve_reads
    return leader != NO_BROKER and may_be_named(services, leader)


def broker_figures(
    broker: Broker,
    *,
    happenings: Happenings,
    led: LedPartitions,
    walked: Walk,
    is_ready: bool,
) -> Figures:
    """`BROKER_METRICS`."""
    services, replication = broker.services, broker.replication
    own = services.cluster.brokers.get(services.broker_id)
    region, zone = ("", "") if own is None else (own.labels.region, own.labels.zone)
    info = (str(services.broker_id), services.cluster.cluster_id, region, zone)
    peers = [one for one in services.cluster.brokers if one != services.broker_id]
    up = {one: replication.is_peer_alive(one) for one in peers}
    round_trips = {one: replication.round_trip_ms(one) for one in peers if up[one]}
    server, log = broker.server, services.remote_log
    return {
        "strandline_broker_info": {(*info, version("strandline")): 1},
        "strandline_broker_ready": is_ready,
        "strandline_replicas": walked.hosted,
        "strandline_offline_replicas": walked.closed,
        "strandline_leaderless_replicas": walked.leaderless,
        "strandline_leaders": led.leaders,
        "strandline_under_replicated_partitions": led.under_replicated,
        "strandline_under_min_isr_partitions": led.under_min_isr,
        "strandline_at_min_isr_partitions": led.at_min_isr,
        "strandline_not_caught_up_partitions": led.not_caught_up,
        "strandline_reassigning_partitions": led.reassigning,
        "strandline_partitions_without_series": led.without_series,
        "strandline_elections_total": replication.durable.candidacy_count,
        "strandline_relayed_bytes_total": replication.relaying.relayed_bytes,
        "strandline_lent_bytes_total": replication.peer_sender.peer_sent_bytes,
        "strandline_leader_changes_total": _by_label(happenings.leader_changes),
        "strandline_replica_failures_total": _by_label(happenings.failures),
        "strandline_damaged_logs": walked.damaged,
        "strandline_mended_gaps_total": replication.repairs.mended_count,
        **_disk_figures(replication),
        "strandline_produced_bytes_total": replication.memory.taken_bytes,
        "strandline_fetched_bytes_total": services.fetched_bytes,
        "strandline_fetch_sessions": len(services.fetch_sessions),
        "strandline_fetch_session_evictions_total": services.fetch_sessions.evicted_count,
        **_connection_figures(broker),
        "strandline_failed_logins_total": services.logins.delays.failure_count,
        "strandline_replication_memory_bytes": replication.memory.used_bytes,
        "strandline_replication_memory_limit_bytes": replication.memory.limit_bytes,
        "strandline_peer_up": {(str(one),): is_up for one, is_up in up.items()},
        "strandline_peer_round_trip_seconds": {
            (str(one),): ms / 1_000 for one, ms in round_trips.items() if ms is not None
        },
        "strandline_controller_active": services.balancing.findings is not None,
        **_snapshot_figures(services),
        "strandline_certificate_seconds_left": (
            {} if services.certificates is None else services.certificates.seconds_left_by_port()
        ),
        **_quota_figures(services),
        "strandline_muted_client_connections": 0 if server is None else server.muted_count,
        "strandline_audit_dropped_lines_total": (
            services.audit.dropped_count if services.audit else 0
        ),
        "strandline_audit_write_errors_total": (
            services.audit.write_error_count if services.audit else 0
        ),
        **remote_figures(log if log is not None and log.is_in_use else None),
    }


def _connection_figures(broker: Broker) -> Figures:
    server = broker.server
    refused = {} if server is None else server.refused_connections
    return {
        "strandline_client_connections": server.connection_count if server else 0,
        "strandline_refused_connections_total": {
            (limit,): count for limit, count in refused.items()
        },
        "strandline_accepted_connections_total": server.accepted_count if server else 0,
        "strandline_delayed_accepts_total": server.delayed_accepts if server else 0,
    }


def _quota_figures(services: Services) -> Figures:
    quotas = services.quotas
    return {
        "strandline_quota_throttled_requests_total": {
            (kind,): quotas.throttled_count[kind] for kind in THROTTLED_KINDS
        },
        "strandline_quota_throttled_seconds_total": {
            (kind,): quotas.throttled_ms[kind] / 1_000 for kind in THROTTLED_KINDS
        },
    }


def _snapshot_figures(services: Services) -> Figures:
    controller = services.controller
    newest = controller.snapshots.files.newest
    return {
        "strandline_controller_log_bytes": (
            0 if controller.replica is None else controller.replica.log.size_bytes()
        ),
        "strandline_controller_snapshot_bytes": 0 if newest is None else newest.size_bytes,
        "strandline_controller_snapshot_age_seconds": controller.snapshots.age_ms / 1_000,
    }


def _disk_figures(replication: Replication) -> Figures:
    """Empty if the disk does not report its usage."""
    used: float | Values
    free: float | Values
    try:
        used, free = replication.space()
    except OSError:
        used, free = {}, {}
    return {"strandline_disk_used_bytes": used, "strandline_disk_free_bytes": free}


def controller_figures(services: Services, findings: Findings, walked: Walk) -> Figures:
    """`CONTROLLER_METRICS`, by the last look of this controller."""
    cluster, judged = services.cluster, services.balancing.outages.judgement
    alarms = Counter(dict.fromkeys(map(str, Kind), 0))
    alarms.update(str(one.kind) for one in judged.happenings)
    voting = services.balancing.outages.voting
    alarms.update(map(str, voting.reported))
    alarms.update(str(one.kind) for one in services.balancing.outages.fault_happenings)
    states = Counter(dict.fromkeys(STATES, 0))
    states.update(map(findings.condition.of, cluster.brokers))
    waiting = Counter(dict.fromkeys(WAITS, 0))
    for (code, _), one in findings.waits.found.items():
        waiting[code] += one.count
    domains = {
        (domain[0], "" if is_region(domain) else domain[-1]): view
        for domain, view in judged.domains.items()
    }
    return {
        "strandline_controller_alarms": _by_label(alarms),
        "strandline_controller_domain_down": _of_domains(domains, lambda one: one.is_down),
        "strandline_controller_domain_held": _of_domains(domains, lambda one: one.is_held),
        "strandline_controller_domain_silent_brokers": _of_domains(
            domains, lambda one: len(one.silent)
        ),
        "strandline_controller_held_brokers": len(judged.held),
        "strandline_controller_brokers": _by_label(states),
        "strandline_controller_topics": len(cluster.topics),
        "strandline_controller_partitions": len(cluster.groups),
        "strandline_controller_offline_partitions": walked.offline,
        "strandline_controller_preferred_replica_imbalance": walked.elsewhere,
        "strandline_controller_moving_partitions": len(cluster.moving),
        "strandline_controller_waiting_partitions": _by_label(waiting),
        "strandline_controller_weakened_partitions": {
            (str(kind),): count for kind, count in voting.counts.items()
        },
    }


def _by_label(counts: Mapping[str, int]) -> Values:
    return {(label,): count for label, count in counts.items()}


def _of_domains(
    domains: Mapping[tuple[str, str], DomainView], value: Callable[[DomainView], float]
) -> Values:
    return {labels: value(view) for labels, view in domains.items()}
