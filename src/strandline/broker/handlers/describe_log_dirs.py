"""DescribeLogDirs: the sizes of the logs here, and the free space.

How:    a broker has one data directory, and no log moves between directories. A log that is not
        here, or has failed, is left out, as in Kafka. The lag is the distance of a log to the high
        watermark that its replica knows.
Source: KIP-113, KIP-827."""

import os
from collections.abc import Iterable

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition, find_replica
from strandline.broker.server.request_limits import distinct
from strandline.model.cluster import Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    """Describe the logs asked for, or all, of this broker."""
    return DescribeLogDirsResponse(results=[_directory(request, context.services)])


def refuse(_: DescribeLogDirsRequest, error: ApiError) -> DescribeLogDirsResponse:
    """No directory; versions before 3 have no place for the error."""
    return DescribeLogDirsResponse(error_code=error.code)


def _directory(request: DescribeLogDirsRequest, services: Services) -> DescribeLogDirsResult:
    directory = services.config.broker.data_directory
    result = DescribeLogDirsResult(log_dir=os.path.abspath(directory))
    try:
        disk = services.replication.disk
        result.total_bytes = disk.total_bytes(directory)
        result.usable_bytes = disk.free_bytes(directory)
    except OSError:
        result.error_code = Error.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in _requested(request, services):
        found = _describe(services, partition)
        if found is not None:
            topics.setdefault(partition.topic, []).append(found)
    result.topics = [DescribeLogDirsTopic(name, logs) for name, logs in topics.items()]
    return result


def _requested(request: DescribeLogDirsRequest, services: Services) -> Iterable[Partition]:
    topics = services.cluster.topics
    if request.topics is None:
        return [one for topic in topics.values() for one in topic.partitions]
    found = (
        find_partition(topics.get(requested.topic), index)
        for requested in request.topics
        for index in requested.partitions
    )
    return distinct((one for one in found if one is not None), lambda one: one.group)


def _describe(services: Services, partition: Partition) -> DescribeLogDirsPartition | None:
    replica, _ = find_replica(services, partition)
    if replica is None:
        return None
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=replica.log.size_bytes(),
        offset_lag=max(replica.high_watermark - replica.log_end_offset, 0),
    )
