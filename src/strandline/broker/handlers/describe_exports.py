"""DescribeExports: up to which offset each bucket has the records of partitions.

Why:    a partition that has lost its leader may have left more in a bucket than in the logs that
        are left.
How:    read from the buckets, by any broker; no replica of the partition is needed.
Source: decisions 0027 and 0061."""

import asyncio
from collections.abc import Iterator

from strandline.broker.context import RequestContext, Services
from strandline.model.cluster import Topic
from strandline.protocol.messages.describe_exports import (
    DescribeExportsRequest,
    DescribeExportsResponse,
    ExportedPartition,
)
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import read_newest
from strandline.tiered.objects.store import StoreError

READS_AT_ONCE = 8
READ_MS_MAX = 20_000
"""One bucket that does not answer costs no more, whatever the request allows."""


async def handle(
    request: DescribeExportsRequest, context: RequestContext
) -> DescribeExportsResponse:
    """Read them side by side."""
    services = context.services
    gate = asyncio.Semaphore(READS_AT_ONCE)
    timeout_s = max(0, min(request.timeout_ms, READ_MS_MAX)) / 1000

    async def read(topic: Topic, told: ExportedPartition) -> None:
        async with gate:
            try:
                async with asyncio.timeout(timeout_s):
                    await _read(services, topic, told)
            except TimeoutError:
                told.failure = "no answer in time"
            except StoreError as error:
                told.failure = str(error)

    wanted = list(_wanted(services, request))
    await asyncio.gather(*(read(topic, told) for topic, told in wanted))
    return DescribeExportsResponse(partitions=[told for _, told in wanted])


def _wanted(
    services: Services, request: DescribeExportsRequest
) -> Iterator[tuple[Topic, ExportedPartition]]:
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.name)
        for index in requested.partition_indexes if topic is not None else ():
            for bucket in services.buckets.names:
                assert topic is not None
                yield topic, ExportedPartition(topic.name, index, bucket)


async def _read(services: Services, topic: Topic, told: ExportedPartition) -> None:
    place = PartitionPlace(services.cluster.cluster_id, topic.id, told.partition)
    found = await read_newest(services.buckets.store(told.bucket), place)
    if found is not None:
        export = found.export
        told.export = str(export.number)
        told.start_offset, told.end_offset = export.start_offset, export.end_offset
        told.high_watermark, told.written_ms = export.high_watermark, export.written_ms
