"""ListOffsets: where a partition begins and ends, and the first record at or after a time.

Why:    Spark asks twice for every 500 records it reads, so the ends are two numbers in memory; and
        only a leader that holds its lease may say where a partition ends, or a deposed one would
        answer from the past. A leader that has lost its lease for a moment waits for it.
How:    -1 latest: the high watermark; -2 earliest: where the partition begins; -4 earliest local:
        where the log on the disk begins; -3: the record with the greatest timestamp; -5: the last
        record that enough buckets have (as many as local retention asks for); -6: the first one
        that they have not; >= 0: the first record at or after that time, of those that can be
        read. In a version that does not know a negative number it is UNSUPPORTED_VERSION. A
        partition that is named twice is INVALID_REQUEST the second time, as in Kafka.
            Times of records that are in buckets only are looked up in a task, all partitions side
        by side. What a bucket does not say in time is REQUEST_TIMED_OUT, and what no bucket can say
        KAFKA_STORAGE_ERROR: clients retry both.
Source: spark reference 2 (ListOffsets is hot); kafka-peer reference 0 and reliability reference
        (stale reads); KIP-79, KIP-320, KIP-405, KIP-734, KIP-1005, KIP-1023, KIP-1075."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from strandline.base.errors import ApiError, StorageError
from strandline.broker.context import RequestContext, Services
from strandline.broker.coordinators.applied_waiters import when_leases_hold
from strandline.broker.partitions import NO_EPOCH, find_leader, find_partition
from strandline.broker.read_replicas.copied_replica import (
    CopiedReplica,
    copy_of,
    end_of,
    last_of,
    record_of,
    start_of,
)
from strandline.broker.server.request_limits import ITEM_COUNT_MAX
from strandline.model.access import Kind, Operation
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
from strandline.tiered.reading.failures import UnreadableError
from strandline.tiered.reading.times import TimedOffset

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
LOOKUP_MS_MAX = 30_000
"""Lookups in buckets take no longer; requests of version 10 and above may say less."""

_Found = tuple[int, int, int]
"""Timestamp, offset, and the epoch of the record there; -1 where there is none."""


_log = logging.getLogger("strandline.broker")


class _Lookup(NamedTuple):
    """A partition whose answer takes a bucket."""

    replica: Replica | CopiedReplica
    timestamp: int
    answer: ListOffsetsPartitionResponse


class _Waiting(NamedTuple):
    """What a request cannot be answered without."""

    leaseless: list[Replica]
    lookups: list[_Lookup]


def start(context: RequestContext) -> None:
    """Answer, at once if the leases hold."""
    assert context.frame is not None
    request, _ = decode(
        ListOffsetsRequest,
        context.frame,
        context.position,
        context.api_version,
        items_max=ITEM_COUNT_MAX,
    )
    _respond(context, request, may_wait=True)


def _respond(context: RequestContext, request: ListOffsetsRequest, *, may_wait: bool) -> None:
    services = context.services
    version = context.api_version
    topics = []
    answered: set[tuple[str, int]] = set()
    waiting = _Waiting([], [])
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.name)
        is_allowed = context.may(Operation.DESCRIBE, Kind.TOPIC, requested.name)
        partitions = []
        for one in requested.partitions:
            place = (requested.name, one.partition_index)
            if place in answered:
                partitions.append(_refuse(one.partition_index, Error.INVALID_REQUEST))
                continue
            answered.add(place)
            if not is_allowed:
                refused = Error.TOPIC_AUTHORIZATION_FAILED
                partitions.append(_refuse(one.partition_index, refused))
                continue
            partitions.append(_answer(services, topic, one, version, waiting))
        topics.append(ListOffsetsTopicResponse(name=requested.name, partitions=partitions))
    response = ListOffsetsResponse(throttle_time_ms=context.throttle_ms, topics=topics)
    if waiting.leaseless and may_wait:
        again = partial(_respond, context, request, may_wait=False)
        when_leases_hold(context, waiting.leaseless, again)
    elif waiting.lookups:
        asked_ms = request.timeout_ms if request.timeout_ms > 0 else LOOKUP_MS_MAX
        timeout_ms = min(asked_ms, LOOKUP_MS_MAX)
        lookups = _look_up(context, response, waiting.lookups, timeout_ms=timeout_ms)
        task = asyncio.get_running_loop().create_task(lookups)
        context.on_abandoned = partial(_cancel, task)
    else:
        context.respond((encode(response, version),))


def _answer(
    services: Services,
    topic: Topic | None,
    requested: ListOffsetsPartition,
    version: int,
    waiting: _Waiting,
) -> ListOffsetsPartitionResponse:
    """The answer for one partition. One that takes a lease or a bucket joins `waiting`."""
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
    if not replica.knows_start and timestamp != LATEST:
        return _refuse(index, Error.LEADER_NOT_AVAILABLE)
    if not replica.can_serve_reads:
        waiting.leaseless.append(replica)
        late = version >= OFFSET_NOT_AVAILABLE_SINCE_VERSION
        return _refuse(index, Error.OFFSET_NOT_AVAILABLE if late else Error.LEADER_NOT_AVAILABLE)
    assert topic is not None
    copy = copy_of(services, topic, partition, replica)
    if copy is not None:
        return _answer_copy(copy, index, timestamp, waiting)
    if _takes_bucket(replica, timestamp):
        answer = _refuse(index, Error.REQUEST_TIMED_OUT)
        waiting.lookups.append(_Lookup(replica, timestamp, answer))
        return answer
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


def _answer_copy(
    copy: CopiedReplica, index: int, timestamp: int, waiting: _Waiting
) -> ListOffsetsPartitionResponse:
    """The answer for a copy of another cluster's partition."""
    error = copy.check(NO_EPOCH, serves_as_follower=False)
    if error is not Error.NONE:
        return _refuse(index, error)
    if timestamp >= 0 or timestamp == GREATEST_TIMESTAMP:
        answer = _refuse(index, Error.REQUEST_TIMED_OUT)
        waiting.lookups.append(_Lookup(copy, timestamp, answer))
        return answer
    if timestamp == EARLIEST:
        found = start_of(copy)
    elif timestamp == LATEST_TIERED:
        found = last_of(copy)
    else:
        found = end_of(copy)
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=found[0], offset=found[1], leader_epoch=found[2]
    )


def _find(replica: Replica, timestamp: int) -> _Found:
    """The answer that needs no bucket."""
    found: tuple[int, Offset] | None = None
    if timestamp == LATEST:
        return NO_TIMESTAMP, replica.high_watermark, replica.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        is_local = timestamp == EARLIEST_LOCAL
        start = replica.local_log_start_offset if is_local else replica.log_start_offset
        return NO_TIMESTAMP, start, _epoch_at(replica, start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _find_tiered(replica, timestamp)
    if timestamp == GREATEST_TIMESTAMP:
        found = replica.log.max_timestamp(start_offset=replica.local_log_start_offset)
        if found is not None and found[1] >= replica.high_watermark:
            found = None  # No consumer may see that record yet.
    else:
        assert timestamp >= 0
        start = replica.local_log_start_offset
        found = replica.log.offset_for_time(timestamp, replica.high_watermark, start_offset=start)
    return _with_epoch(replica, found)


def _find_tiered(replica: Replica, timestamp: int) -> _Found:
    """Up to where enough buckets have the partition."""
    log, state = replica.log, replica.tier.state
    if not log.config.remote_storage:
        return _with_epoch(replica, None)
    local = replica.local_log_start_offset
    config = log.config
    covered = state.covered_end(config.remote_copies_min, config.remote_buckets, from_offset=local)
    end = min(covered, replica.high_watermark)
    if timestamp == EARLIEST_PENDING_UPLOAD:
        return NO_TIMESTAMP, end, _epoch_at(replica, end)
    if end <= replica.log_start_offset:
        return _with_epoch(replica, None)
    return NO_TIMESTAMP, end - 1, _epoch_at(replica, Offset(end - 1))


def _with_epoch(replica: Replica, found: tuple[int, Offset] | None) -> _Found:
    if found is None:
        return NO_TIMESTAMP, NO_OFFSET, NO_EPOCH
    return found[0], found[1], _epoch_at(replica, found[1])


def _epoch_at(replica: Replica, offset: Offset) -> int:
    if offset >= replica.log_end_offset:
        return replica.epoch
    return replica.epoch_at(offset)


# ---- in buckets ----------------------------------------------------------------------------------


def _takes_bucket(replica: Replica, timestamp: int) -> bool:
    """Whether records that are in buckets only may be the answer."""
    return (timestamp >= 0 or timestamp == GREATEST_TIMESTAMP) and replica.is_remote(
        replica.log_start_offset
    )


async def _look_up(
    context: RequestContext,
    response: ListOffsetsResponse,
    lookups: Sequence[_Lookup],
    *,
    timeout_ms: int,
) -> None:
    """Fill in the answers that take buckets, as far as they come in time, and respond."""
    try:
        work = [asyncio.ensure_future(_look_up_one(context.services, one)) for one in lookups]
        try:
            await asyncio.wait(work, timeout=timeout_ms / 1000)
        finally:
            for one in work:
                one.cancel()
        context.respond((encode(response, context.api_version),))
    except Exception:  # A task boundary.
        context.fail()


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _look_up_one(services: Services, lookup: _Lookup) -> None:
    replica, timestamp, answer = lookup
    log = services.remote_log
    try:
        if log is None:
            raise UnreadableError("no [tiered] buckets in this broker's file")
        if timestamp == GREATEST_TIMESTAMP:
            remote = await log.highest(replica)
        else:
            remote = await log.first_at(replica, timestamp)
        found = _with_local(replica, timestamp, remote)
    except UnreadableError as error:
        if log is not None:
            log.reader.failures.complain(replica.name, error)
        answer.error_code = Error.KAFKA_STORAGE_ERROR
        return
    except ApiError as refusal:
        answer.error_code = refusal.code
        return
    except (OSError, StorageError) as failure:
        if isinstance(replica, Replica):
            replica.on_unreadable(failure)
        answer.error_code = Error.KAFKA_STORAGE_ERROR
        return
    except Exception:  # A task boundary: the other partitions have their answers.
        _log.exception("%s: no record by its time", replica.name)
        answer.error_code = Error.UNKNOWN_SERVER_ERROR
        return
    answer.error_code = Error.NONE
    answer.timestamp, answer.offset, answer.leader_epoch = found


def _with_local(
    replica: Replica | CopiedReplica, timestamp: int, remote: TimedOffset | None
) -> _Found:
    """The record that a bucket has, or one of the local log."""
    if isinstance(replica, CopiedReplica):
        return record_of(replica, remote)
    local = None if remote and timestamp >= 0 else _find(replica, timestamp)
    found = _with_epoch(replica, remote)
    return local if local is not None and local[0] > found[0] else found


def _refuse(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=code,
        timestamp=NO_TIMESTAMP,
        offset=NO_OFFSET,
        leader_epoch=NO_EPOCH,
    )
