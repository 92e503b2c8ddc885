"""ListOffsets: where a partition begins and ends, and the first record at or after a time.

Why:    Spark asks twice for every 500 records it reads, so the ends are two numbers in memory; and
        only a leader that holds its lease may say where a partition ends, or a deposed one would
        answer from the past. A leader that has lost its lease for a moment waits for it.
How:    -1 latest: the high watermark; -2 earliest and -4 earliest local: the log's start; -3: the
        record with the greatest timestamp; -5 and -6 (tiered storage): no offset; >= 0: the
        first record at or after that time, of those that can be read. In a version that does not
        know a negative number it is UNSUPPORTED_VERSION. A partition that is named
        twice is INVALID_REQUEST the second time, as in Kafka.
Source: spark reference 2 (ListOffsets is hot); kafka-peer reference 0 and reliability reference
        (stale reads); KIP-79, KIP-320, KIP-734."""

from __future__ import annotations

from strandline.base.errors import ApiError, StorageError
from strandline.broker.context import RequestContext, Services
from strandline.broker.coordinators.applied_waiters import when_leases_hold
from strandline.broker.partitions import NO_EPOCH, find_leader, find_partition
from strandline.broker.server.request_limits import count_items, require_few
from strandline.model.cluster import Topic
from strandline.model.ids import Offset
from strandline.protocol.codec import decode, encode
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.replication.replica.replica import Replica

LATEST = -1
EARLIEST = -2
GREATEST_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    GREATEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""{what stands for a time: the first version that knows it}"""

NO_OFFSET = -1
NO_TIMESTAMP = -1
NEVER = 1 << 15
OFFSET_NOT_AVAILABLE_SINCE_VERSION = 5

_Found = tuple[int, int, int]
"""Timestamp, offset, and the epoch of the record there; -1 where there is none."""


def start(context: RequestContext) -> None:
    """Answer, at once if the leases hold."""
    assert context.frame is not None
    request, _ = decode(ListOffsetsRequest, context.frame, context.position, context.api_version)
    require_few(count_items(request))
    _respond(context, request, may_wait=True)


def _respond(context: RequestContext, request: ListOffsetsRequest, *, may_wait: bool) -> None:
    services = context.services
    version = context.api_version
    topics = []
    answered: set[tuple[str, int]] = set()
    leaseless: list[Replica] = []
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.name)
        partitions = []
        for one in requested.partitions:
            place = (requested.name, one.partition_index)
            if place in answered:
                partitions.append(_refuse(one.partition_index, Error.INVALID_REQUEST))
                continue
            answered.add(place)
            partitions.append(_answer(services, topic, one, version, leaseless))
        topics.append(ListOffsetsTopicResponse(name=requested.name, partitions=partitions))
    if leaseless and may_wait:
        when_leases_hold(context, leaseless, lambda: _respond(context, request, may_wait=False))
        return
    body = encode(ListOffsetsResponse(topics=topics), version)
    context.respond((body,))


def _answer(
    services: Services,
    topic: Topic | None,
    requested: ListOffsetsPartition,
    version: int,
    leaseless: list[Replica],
) -> ListOffsetsPartitionResponse:
    """The answer for one partition. A leader without a lease joins `leaseless`."""
    index = requested.partition_index
    partition = find_partition(topic, index)
    if partition is None:
        return _refuse(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    timestamp = requested.timestamp
    if timestamp < 0 and version < SINCE_VERSION.get(timestamp, NEVER):
        return _refuse(index, Error.UNSUPPORTED_VERSION)
    replica, error = find_leader(services, partition, requested.current_leader_epoch)
    if replica is None:
        return _refuse(index, error)
    if not replica.can_serve_reads:
        leaseless.append(replica)
        late = version >= OFFSET_NOT_AVAILABLE_SINCE_VERSION
        return _refuse(index, Error.OFFSET_NOT_AVAILABLE if late else Error.LEADER_NOT_AVAILABLE)
    try:
        found_at, offset, epoch = _find(replica, timestamp)
    except ApiError as refusal:
        return _refuse(index, refusal.code)
    except (OSError, StorageError) as failure:
        replica.on_unreadable(failure)
        return _refuse(index, Error.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=found_at, offset=offset, leader_epoch=epoch
    )


def _find(replica: Replica, timestamp: int) -> _Found:
    if timestamp == LATEST:
        return NO_TIMESTAMP, replica.high_watermark, replica.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        is_local = timestamp == EARLIEST_LOCAL
        start = replica.local_log_start_offset if is_local else replica.log_start_offset
        return NO_TIMESTAMP, start, _epoch_at(replica, start)
    if timestamp == GREATEST_TIMESTAMP:
        found = replica.log.max_timestamp(start_offset=replica.log_start_offset)
        if found is not None and found[1] >= replica.high_watermark:
            found = None  # No consumer may see that record yet.
    elif timestamp >= 0:
        found = replica.log.offset_for_time(
            timestamp, replica.high_watermark, start_offset=replica.log_start_offset
        )
    else:
        assert timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
        found = None
    if found is None:
        return NO_TIMESTAMP, NO_OFFSET, NO_EPOCH
    return found[0], found[1], _epoch_at(replica, found[1])


def _epoch_at(replica: Replica, offset: Offset) -> int:
    if offset >= replica.log_end_offset:
        return replica.epoch
    return replica.epoch_at(offset)


def _refuse(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=code,
        timestamp=NO_TIMESTAMP,
        offset=NO_OFFSET,
        leader_epoch=NO_EPOCH,
    )
