"""Metrics of the partitions that this broker leads: series of each, and counts over all.

Why:    this is nearly all of a scrape, ten lines for each of thousands of partitions: writing text
        directly costs a ninth of building objects.
How:    One pass over the led replicas builds a column of lines for each metric, because the format
        groups lines by metric. The pass yields to the broker's loop in between (`pace`). Topic
        names need no escaping.
Owns:   nothing.
Source: Prometheus, "Exposition formats"; decision 0023."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strandline.admin.metric_table import PARTITION_METRICS
from strandline.admin.pace import Pace
from strandline.broker.context import Services
from strandline.model.cluster import Partition
from strandline.replication.leader.replica_status import counts

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica

STEP = 20
"""Partitions between two calls of `Pace.rest`."""
REPLICAS, OBSERVERS, IN_SYNC, CAUGHT_UP, NOT_CAUGHT_UP, OBSERVERS_IN_ISR = range(6)
UNDER_REPLICATED, UNDER_MIN_ISR, LOG_START, LOG_END = range(6, 10)


@dataclass(slots=True)
class LedPartitions:
    """The result. `blocks`: the text of each metric that has series. `without_series`: led
    partitions beyond the limit. The other fields count led partitions."""

    blocks: list[str] = field(default_factory=list)
    leaders: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    not_caught_up: int = 0
    reassigning: int = 0
    without_series: int = 0


async def led_partitions(services: Services, pace: Pace, *, count_max: int) -> LedPartitions:
    """Count all partitions led here, and write the series of the first `count_max`."""
    found = LedPartitions()
    columns: list[list[str]] = [[] for _ in PARTITION_METRICS]
    for position, replica in enumerate(services.replication.led.all):
        if position % STEP == 0:
            await pace.rest()
        partition = services.cluster.groups.get(replica.group)
        if partition is None or not replica.is_leader:
            continue
        values = values_of(replica, partition)
        _count(found, values, replica, partition)
        if found.leaders > count_max:
            found.without_series += 1
            continue
        labels = f'{{topic="{partition.topic}",partition="{partition.index}"}} '
        for column, value in zip(columns, values, strict=True):
            column.append(f"{labels}{value}\n")
    for metric, column in zip(PARTITION_METRICS, columns, strict=True):
        await pace.rest()
        head = f"# HELP {metric.name} {metric.help_line}\n# TYPE {metric.name} {metric.kind}\n"
        if column:
            found.blocks.append(head + metric.name + metric.name.join(column))
    return found


def values_of(replica: "Replica", partition: Partition) -> Sequence[int]:
    """The values of one led partition, in the order of `PARTITION_METRICS`."""
    told = counts(replica)
    voters = told.in_sync - told.observers_in_sync
    return (
        told.replicas,
        told.observers,
        told.in_sync,
        told.caught_up,
        int(told.caught_up < told.replicas),
        told.observers_in_sync,
        int(voters < len(partition.replicas)),
        int(replica.appender.lacks_voters or told.in_sync < _min_isr(replica, partition)),
        replica.log_start_offset,
        replica.log_end_offset,
    )


def _min_isr(replica: "Replica", partition: Partition) -> int:
    """The topic's `min.insync.replicas`, even while a smaller quorum commits because voters are
    lost; at most the partition's number of own voters."""
    present = min(replica.configuration.min_insync, len(partition.replicas))
    return max(present, replica.appender.voter_count_min)


def _count(
    found: LedPartitions, values: Sequence[int], replica: "Replica", partition: Partition
) -> None:
    found.leaders += 1
    found.under_replicated += values[UNDER_REPLICATED]
    found.under_min_isr += values[UNDER_MIN_ISR]
    is_at_min = values[IN_SYNC] == _min_isr(replica, partition)
    found.at_min_isr += bool(values[UNDER_REPLICATED]) and is_at_min
    found.not_caught_up += values[NOT_CAUGHT_UP]
    found.reassigning += partition.is_moving
