"""DeleteRecords: moves the start of partitions forward.

Why:    a client that has processed records may free their space before retention does.
How:    The leader of each partition deletes (`replication.replica.delete_records`), and answers
        with the offset where the partition begins then (`low_watermark`). Other replicas send
        clients to the leader. Compacted topics refuse, unless they delete by retention, too:
        compaction keeps the last value of each key. Internal topics refuse, too, and copies of
        another cluster's topics.
Source: KIP-107, KIP-204; docs/decisions/0006-deleting-records.md."""

import asyncio

from strandline.broker.context import RequestContext
from strandline.broker.coordinators.applied_waiters import WAIT_MS_MAX, when_leases_hold
from strandline.broker.partitions import find_leader, find_partition
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.controller.names import is_internal
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_OFFSET = -1


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Delete in every partition asked for, each for itself."""
    timeout_ms = max(0, min(request.timeout_ms, WAIT_MS_MAX))
    topics = []
    for topic in request.topics:
        results = [_delete(context, topic.name, one, timeout_ms) for one in topic.partitions]
        partitions = await asyncio.gather(*results)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=list(partitions)))
    return DeleteRecordsResponse(topics=topics)


async def _delete(
    context: RequestContext, name: str, requested: DeleteRecordsPartition, timeout_ms: int
) -> DeleteRecordsPartitionResult:
    services = context.services
    index = requested.partition_index
    if not context.may(Operation.DELETE, Kind.TOPIC, name):
        return _refuse(index, Error.TOPIC_AUTHORIZATION_FAILED)
    topic = services.cluster.topics.get(name)
    partition = find_partition(topic, index)
    if topic is None or partition is None:
        return _refuse(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal(name):
        return _refuse(index, Error.INVALID_TOPIC_EXCEPTION)
    if is_read_replica(topic) or not services.topic_configs.of(topic, services.cluster).is_deleted:
        return _refuse(index, Error.POLICY_VIOLATION)
    replica, error = find_leader(services, partition)
    if replica is None:
        return _refuse(index, error)
    loop = asyncio.get_running_loop()
    if not replica.can_serve_reads:
        holds: asyncio.Future[None] = loop.create_future()
        when_leases_hold(context, [replica], lambda: holds.set_result(None))
        await holds
    done: asyncio.Future[Error] = loop.create_future()

    def answer(result: Error) -> None:
        if not done.done():  # The client may have gone.
            done.set_result(result)

    replica.deletions.delete(requested.offset, timeout_ms=timeout_ms, done=answer)
    error = await done
    if error is not Error.NONE:
        return _refuse(index, error)
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=replica.log_start_offset
    )


def _refuse(index: int, error: Error) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_OFFSET, error_code=error
    )
