"""DigestReplica: digests of ranges of a partition's log on this broker.

How:    the replica is described, and the parts of its files are found, in one step of the event
        loop; the worker reads them afterwards, although the log goes on. Only committed records
        are digested. Damage is answered, and reported to the repair of logs.
        A digest tells whether a guess of a record's content is right, so the client needs `read`
        on the topic, as for the records.
Source: decision 0052."""

from collections.abc import Sequence

from strandline.base.errors import StorageError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition, find_replica
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Partition
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.digest_replica import (
    NO_TOPIC_ID,
    DigestReplicaRequest,
    DigestReplicaResponse,
    RangeDigestResult,
)
from strandline.replication.replica.replica import Replica
from strandline.storage.config import LogConfig
from strandline.storage.digests.contents import digest_contents
from strandline.storage.digests.latest import KEY_BYTES, KeyShare, digest_latest
from strandline.storage.digests.ranges import Digested, DigestKind, OffsetRange, RangeDigest
from strandline.storage.digests.source import SourcePart
from strandline.storage.digests.walk import Pace

REQUEST_BYTES_MAX = 64 << 20
"""A request ends after the range in which it has read so many bytes."""
RANGES_MAX = 1_000
_KINDS = frozenset(DigestKind)


async def handle(request: DigestReplicaRequest, context: RequestContext) -> DigestReplicaResponse:
    """Describe the replica here, and digest the ranges asked for."""
    services = context.services
    if not context.may(Operation.READ, Kind.TOPIC, request.topic):
        return DigestReplicaResponse(
            error_code=Error.TOPIC_AUTHORIZATION_FAILED, error_message=REFUSED
        )
    topic = services.cluster.topics.get(request.topic)
    partition = find_partition(topic, request.partition)
    if topic is None or partition is None:
        return DigestReplicaResponse(error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
    if request.topic_id not in (NO_TOPIC_ID, topic.id):
        return DigestReplicaResponse(error_code=Error.INCONSISTENT_TOPIC_ID)
    replica, error = find_replica(services, partition)
    if replica is None:
        return DigestReplicaResponse(error_code=error)
    answer = _describe(replica)
    if not request.ranges:
        return answer
    fault = _fault_of(request, answer)
    if fault is not None:
        answer.error_code, answer.error_message = fault
        return answer
    ranges = [
        OffsetRange(
            Offset(one.start_offset),
            Offset(one.end_offset),
            first_markers=bool(at) or request.first_markers,
        )
        for at, one in enumerate(request.ranges)
    ]
    keys_max = replica.log.config.compaction_map_bytes // KEY_BYTES
    try:
        parts = replica.log.parts.find(ranges[0].start, ranges[-1].end)
        digested = await services.digesting.run(
            lambda pace: _digest(request, parts, ranges, keys_max=keys_max, pace=pace),
            is_wanted=lambda: not context.is_abandoned,
        )
    except OSError as failure:
        answer.error_code, answer.error_message = Error.KAFKA_STORAGE_ERROR, str(failure)
        return answer
    _fill(answer, digested)
    _report(services, partition, digested)
    return answer


def _describe(replica: Replica) -> DigestReplicaResponse:
    log = replica.log
    return DigestReplicaResponse(
        is_leader=replica.is_leader,
        leader_epoch=replica.epoch,
        log_start_offset=replica.local_log_start_offset,
        high_watermark=replica.committed_end,
        log_end_offset=replica.log_end_offset,
        log_bytes=log.size_bytes(),
        is_compacted=log.config.has_been_compacted,
        may_expire=_may_expire(log.config),
        open_segment_offset=log.parts.open_segment_offset,
    )


def _may_expire(config: LogConfig) -> bool:
    limits = (config.retention_ms, config.retention_bytes, config.retention_records)
    # Local retention removes records at slightly different times on each replica, too.
    return config.remote_storage or (config.delete and any(limit >= 0 for limit in limits))


def _fault_of(
    request: DigestReplicaRequest, answer: DigestReplicaResponse
) -> tuple[int, str] | None:
    """(error code, reason) of a request that cannot be answered."""
    ranges = request.ranges
    if request.kind not in _KINDS:
        return Error.INVALID_REQUEST, f"no kind of digest has the number {request.kind}"
    if len(ranges) > RANGES_MAX:
        return Error.INVALID_REQUEST, f"{len(ranges)} ranges; the limit is {RANGES_MAX}"
    if not 0 <= request.key_share < request.key_share_count:
        return Error.INVALID_REQUEST, f"no share {request.key_share} of {request.key_share_count}"
    position = ranges[0].start_offset
    for one in ranges:
        is_gap = DigestKind(request.kind).is_latest and one.start_offset != position
        if not position <= one.start_offset < one.end_offset or is_gap:
            return Error.INVALID_REQUEST, "the ranges do not ascend"
        position = one.end_offset
    start, end = answer.log_start_offset, answer.high_watermark
    if ranges[0].start_offset < start or ranges[-1].end_offset > end:
        return Error.OFFSET_OUT_OF_RANGE, f"the committed log here is [{start}, {end})"
    return None


def _digest(
    request: DigestReplicaRequest,
    parts: Sequence[SourcePart],
    ranges: Sequence[OffsetRange],
    *,
    keys_max: int,
    pace: Pace,
) -> Digested:
    if DigestKind(request.kind).is_latest:
        return digest_latest(
            parts,
            ranges,
            share=KeyShare(request.key_share, request.key_share_count),
            keys_max=keys_max,
            pace=pace,
            evicts=request.from_disk,
            has_markers=request.kind == DigestKind.LATEST,
        )
    return digest_contents(
        parts,
        ranges,
        kind=DigestKind(request.kind),
        bytes_max=REQUEST_BYTES_MAX,
        pace=pace,
        evicts=request.from_disk,
    )


def _fill(answer: DigestReplicaResponse, digested: Digested) -> None:
    answer.ranges = [_result(one) for one in digested.ranges]
    if digested.has_too_many_keys:
        answer.error_code = Error.POLICY_VIOLATION
        answer.error_message = "too many keys for one share: ask for smaller ones"
    damage = digested.damage
    if damage is not None:
        answer.damaged_offset = damage.offset
        answer.damaged_end_offset = damage.end_offset
        answer.damage = damage.reason


def _result(one: RangeDigest) -> RangeDigestResult:
    return RangeDigestResult(
        record_count=one.records,
        batch_count=one.batches,
        marker_count=one.markers,
        size_bytes=one.size_bytes,
        first_offset=one.first_offset,
        last_offset=one.last_offset,
        digest=one.digest,
    )


def _report(services: Services, partition: Partition, digested: Digested) -> None:
    """Have damage repaired, if the replica is still here."""
    replica, _ = find_replica(services, partition)
    damage = digested.damage
    if damage is not None and replica is not None:
        replica.on_unreadable(
            StorageError(
                damage.path,
                damage.position,
                expected=f"the batch of offset {damage.offset}",
                found=damage.reason,
            )
        )
