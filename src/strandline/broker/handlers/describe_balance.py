"""DescribeBalance: what the balancer moves, what waits, and why.

How:    Only the controller knows; other brokers answer NOT_CONTROLLER.
Source: docs/decisions/0010-the-balancer.md."""

from collections import Counter

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.broker.operations.balancing import Findings
from strandline.broker.partitions import known_leader
from strandline.config.broker_life import BrokerLife
from strandline.controller.balancer.relief import said
from strandline.controller.balancer.stalls import stalls
from strandline.controller.decision import leaving_of
from strandline.controller.placing.copy_shares import WHOLE
from strandline.model.cluster import Cluster, Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_balance import (
    BalanceBroker,
    BalanceCount,
    BalanceMove,
    BalanceWait,
    CopyRate,
    CopyShare,
    DescribeBalanceRequest,
    DescribeBalanceResponse,
    LeavingCount,
)

MOVES_SHOWN_MAX = 1_000


async def handle(_: DescribeBalanceRequest, context: RequestContext) -> DescribeBalanceResponse:
    """Describe what the last round found, and what moves now."""
    services = context.services
    findings = services.balancing.findings
    if findings is None:
        raise ApiError(Error.NOT_CONTROLLER, "this broker is not the controller")
    now = services.clock.monotonic_ms()
    halted = stalls(
        services.cluster,
        up=findings.condition.up,
        leader_of=lambda one: known_leader(services, one)[0],
        leaving=leaving_of(services.cluster),
    )
    return DescribeBalanceResponse(
        is_enabled=findings.settings.is_enabled,
        moves_max=findings.settings.moves_max,
        lost_after_ms=findings.settings.lost_after_ms,
        has_looked=findings.round_count > 0,
        brokers=_brokers(findings, services.cluster, now),
        moves=_moves(findings, services.cluster),
        waits=[
            BalanceWait(
                code,
                text,
                one.count,
                list(one.examples),
                [LeavingCount(broker, count) for broker, count in sorted(one.leaving.items())],
            )
            for (code, text), one in (*findings.waits.found.items(), *halted.found.items())
        ],
        begun=[BalanceCount(code, count) for code, count in sorted(findings.begun.items())],
        rates=[
            CopyRate(
                one.name,
                one.bytes_per_s,
                [
                    CopyShare(broker, one.bytes_per_s * parts // WHOLE)
                    for broker, parts in one.shares.items()
                ],
            )
            for one in services.copy_budget.budgets()
        ],
    )


def _brokers(findings: Findings, cluster: Cluster, now_ms: int) -> list[BalanceBroker]:
    known, leaving = findings.condition, leaving_of(cluster)
    replica_counts = Counter(broker for one in cluster.groups.values() for broker in one.hosts)
    moving = Counter(broker for one in cluster.moving for broker in cluster.groups[one].removing)
    described = []
    for broker in sorted(cluster.brokers):
        down_ms = now_ms - known.down_since_ms.get(broker, now_ms)
        described.append(
            BalanceBroker(
                broker_id=broker,
                condition=known.of(broker),
                down_ms=down_ms,
                is_leaving=broker in leaving,
                replica_count=replica_counts[broker],
                moving_count=moving[broker],
                maintenance_until_ms=BrokerLife.from_values(
                    cluster.broker_configs.get(broker, {})
                ).broker_maintenance_until_ms,
                disk_used_percent=findings.used_percent.get(broker, -1),
                is_disk_full=broker in known.full,
            )
        )
    return described


def _moves(findings: Findings, cluster: Cluster) -> list[BalanceMove]:
    moving = [cluster.groups[group] for group in cluster.moving]
    moving = sorted(
        (one for one in moving if one.by_balancer), key=lambda one: (one.topic, one.index)
    )
    return [
        BalanceMove(
            topic=one.topic,
            partition=one.index,
            replicas=list(one.replicas),
            target=list(one.target),
            code=findings.reasons.get(one.group, ""),
            text=_numbers(findings, one),
            log_bytes=findings.sizes.get(one.group, -1),
        )
        for one in moving[:MOVES_SHOWN_MAX]
    ]


def _numbers(findings: Findings, partition: Partition) -> str:
    """The figures behind a move, as they are now."""
    source = next(iter(partition.removing), None)
    if findings.reasons.get(partition.group) != "disk-high" or source is None:
        return ""
    used_percent = findings.used_percent.get(source, 0)
    return said(source, used_percent, findings.settings.disk_low_percent)
