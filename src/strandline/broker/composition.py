"""Makes the parts of one broker that handlers and loops share.

Why:    a broker's life (start, register, stop) is one concern, its composition another.
How:    replication --> hosts of the control plane --> `Services` --> what reads and writes buckets
Owns:   nothing: `broker.Broker` holds what is made here.
Source: design section 3."""

import random

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.broker.context import Services
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.coordinator_host import CoordinatorHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.fetch.cache_sweep import CacheSweep
from strandline.broker.fetch.remote_log import RemoteLog
from strandline.broker.leadership.failback import Failback
from strandline.broker.operations.balancing import Balancing
from strandline.broker.operations.copy_budget import CopyBudget
from strandline.broker.read_replicas.hosting import ReadReplicas
from strandline.broker.snapshots.exporting import EXPORT_INTERVALS, ClusterExports
from strandline.broker.tier_exports.exporting import Exporting
from strandline.broker.tiering.claims import Claims
from strandline.broker.tiering.tiering import Tiering
from strandline.broker.tiering.topic_plans import TopicPlans
from strandline.config.broker import BrokerConfig
from strandline.replication.host.replication import Replication
from strandline.tiered.objects.buckets import Buckets


def services_of(
    *,
    config: BrokerConfig,
    clock: Clock,
    rng: random.Random,
    replication: Replication,
    directory_id: str,
    buckets: Buckets,
) -> Services:
    """The hosts of the control plane, and all that handlers use but the remote log."""
    controller = ControllerHost(
        replication=replication,
        clock=clock,
        rng=rng,
        directory_id=directory_id,
        buckets=config.tiered.labels_of_buckets,
        disk_sharers=config.storage.disk_sharers,
    )
    topic_configs = TopicConfigs()
    coordinator = CoordinatorHost(
        replication=replication,
        controller=controller,
        clock=clock,
        rng=rng,
        topic_configs=topic_configs,
    )
    services = Services(
        broker_id=config.broker_id,
        config=config,
        clock=clock,
        rng=rng,
        replication=replication,
        controller=controller,
        coordinator=coordinator,
        topic_configs=topic_configs,
    )
    services.buckets = buckets
    claims = Claims(clock, buckets, rng=rng, controller=controller, replication=replication)
    services.exporting = _exporting(services, claims)
    services.read_replicas = ReadReplicas(
        clock=clock,
        replication=replication,
        controller=controller,
        open_store=buckets.open,
        interval_ms=config.tiered.export_interval_ms,
    )
    if buckets.names:
        services.tiering = _tiering(services, claims)
    services.balancing = Balancing(
        clock=clock, controller=controller, topic_configs=services.topic_configs
    )
    services.copy_budget = CopyBudget(clock=clock, replication=replication, controller=controller)
    services.failback = Failback(
        clock=clock,
        replication=replication,
        cluster=services.cluster,
        leader_ranks=services.leader_ranks,
        writers=services.writers,
    )
    return services


def remote_log_of(services: Services, disk: Disk) -> RemoteLog:
    """Reading out of buckets; what it finds missing or wrong there is reported."""
    remote_log = RemoteLog.of(
        services.config,
        buckets=services.buckets,
        others=services.read_replicas,
        cluster=services.cluster,
        disk=disk,
        clock=services.clock,
    )
    if services.tiering is not None:
        remote_log.reader.failures.on_unusable.append(services.tiering.repairs.report)
    remote_log.sweep = CacheSweep(
        services.clock,
        remote_log.reader,
        replicas=services.replication.replicas,
        views=lambda: services.read_replicas.views,
    )
    return remote_log


def cluster_exports_of(services: Services) -> ClusterExports:
    """The controller's state and committed offsets, into the buckets."""
    assert services.tiering is not None
    return ClusterExports(
        clock=services.clock,
        controller=services.controller,
        coordinator=services.coordinator,
        buckets=services.buckets,
        claims=services.tiering.claims,
        interval_ms=EXPORT_INTERVALS * services.config.tiered.export_interval_ms,
    )


def _tiering(services: Services, claims: Claims) -> Tiering:
    """Uploads, retention and deletion in the buckets."""
    tiering = Tiering(
        config=services.config,
        rng=services.rng,
        replication=services.replication,
        controller=services.controller,
        topic_configs=services.topic_configs,
        buckets=services.buckets,
        claims=claims,
    )
    tiering.may_delete_by.append(services.exporting.has_no_live)
    reporting = services.controller.reporting
    reporting.lagging, reporting.full = tiering.lagging, tiering.refusing
    reporting.full_in_ms = tiering.full_in_ms
    reporting.buckets = tiering.claims.report
    return tiering


def _exporting(services: Services, claims: Claims) -> Exporting:
    """The exports of what this broker's leaders know of the buckets."""
    cluster, buckets, tiered = services.cluster, services.buckets, services.config.tiered
    plans = TopicPlans(cluster, services.topic_configs, buckets.labels)
    return Exporting(
        broker_id=services.broker_id,
        clock=services.clock,
        rng=services.rng,
        groups=services.replication,
        cluster=cluster,
        stores=buckets,
        claims=claims,
        buckets_of=lambda group: plans.of(group).buckets,
        check_interval_ms=tiered.check_interval_ms,
        export_interval_ms=tiered.export_interval_ms,
        grace_ms=tiered.delete_grace_ms,
    )
