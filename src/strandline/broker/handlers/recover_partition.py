"""RecoverPartition: a partition begins anew with what buckets have of it.

How:    the buckets of the topic are read here, named in the request or not: one that was not named
        and has more ends the request. The controller decides the rest.
Source: docs/decisions/0067-partitions-out-of-buckets.md."""

import asyncio
from collections.abc import Mapping

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition
from strandline.controller.decision import refuse
from strandline.controller.loss_commands import LossDeclared, RecoverPartition, ShownLog
from strandline.controller.placing.policies import policy_in_force
from strandline.model.cluster import BucketRange, Topic
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.buckets import allowed_buckets
from strandline.protocol.errors import Error
from strandline.protocol.messages.declare_lost import ShownReplicaLog
from strandline.protocol.messages.recover_partition import (
    ALL_BUCKETS,
    BucketHistory,
    RecoverPartitionRequest,
    RecoverPartitionResponse,
    WantedBucket,
)
from strandline.tiered.exports.history import read_history
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.objects.store import StoreError

READ_MS_MAX = 10_000
"""After so long, the answer says that the bucket does not answer."""
MISSING_NAMES_MAX = 10


async def handle(
    request: RecoverPartitionRequest, context: RequestContext
) -> RecoverPartitionResponse:
    """Begin the partition anew; raises ApiError with the reason if that is refused."""
    services = context.services
    topic = services.cluster.topics.get(request.topic)
    partition = find_partition(topic, request.partition)
    if topic is None or partition is None:
        raise refuse(
            Error.UNKNOWN_TOPIC_OR_PARTITION, f"no partition {request.topic}-{request.partition}"
        )
    name = partition.name
    wanted = {one.bucket: one for one in request.buckets}
    found = await _read_all(services, topic, request.partition)
    for one in found:
        has_records = bool(one.failure) or one.end_offset > 0
        one.is_wanted = one.bucket in wanted or (ALL_BUCKETS in wanted and has_records)
    _require_sound(name, found, request)
    if not request.validate_only:
        _require_unchanged(name, found, wanted)
    command = _command(request, partition.group, found, at_ms=services.clock.wall_ms())
    answer = await services.obtain(command, LossDeclared)
    return RecoverPartitionResponse(
        grant=answer.loss.grant,
        leader_id=answer.loss.leader,
        log_end_offset=answer.loss.end,
        logs=[
            ShownReplicaLog(one.broker, one.last_epoch, one.last_index, one.committed, one.end)
            for one in answer.logs
        ],
        buckets=found,
    )


def _require_unchanged(
    name: str, found: list[BucketHistory], wanted: Mapping[str, WantedBucket]
) -> None:
    """Refuse if a bucket has other offsets than the operator saw in the forecast."""
    for one in found:
        shown = wanted.get(one.bucket)
        ends = one.start_offset, one.end_offset
        if shown is not None and (shown.start_offset, shown.end_offset) != ends:
            raise refuse(
                Error.INVALID_REQUEST, f"{name}: bucket {one.bucket} has changed: show it again"
            )


def _command(
    request: RecoverPartitionRequest, group: GroupId, found: list[BucketHistory], *, at_ms: int
) -> RecoverPartition:
    """The command to the controller; its history has the wanted buckets."""
    return RecoverPartition(
        group=group,
        grant=request.grant,
        brokers=tuple(map(BrokerId, sorted(request.broker_ids))),
        history=tuple(
            BucketRange(one.bucket, one.start_offset, one.end_offset)
            for one in found
            if one.is_wanted
        ),
        shown=tuple(
            ShownLog(
                BrokerId(one.broker_id),
                one.last_epoch,
                one.last_index,
                one.committed_offset,
                one.log_end_offset,
            )
            for one in request.logs
        ),
        by=request.by,
        at_ms=at_ms,
        validate_only=request.validate_only,
    )


async def _read_all(services: Services, topic: Topic, index: int) -> list[BucketHistory]:
    cluster = services.cluster
    policy = policy_in_force(topic.configs, cluster.cluster_configs)
    names = allowed_buckets(policy, services.buckets.labels)
    place = PartitionPlace(cluster.cluster_id, topic.id, index)

    async def read(bucket: str) -> BucketHistory:
        history = BucketHistory(bucket)
        try:
            async with asyncio.timeout(READ_MS_MAX / 1000):
                await _require_identity(services, bucket)
                found = await read_history(services.buckets.store(bucket), place)
        except TimeoutError:
            history.failure = f"no answer in {READ_MS_MAX} ms"
            return history
        except StoreError as error:
            history.failure = str(error)
            return history
        if found is None:
            return history
        history.missing_count = len(found.missing)
        history.missing = list(found.missing[:MISSING_NAMES_MAX])
        history.high_watermark = found.export.high_watermark
        history.written_ms = found.export.written_ms
        if found.live:
            history.start_offset, history.end_offset = found.live[0].base_offset, found.end_offset
            history.object_count, history.added_count = len(found.live), found.added_count
            history.size_bytes = sum(one.size_bytes for one in found.live)
        return history

    return list(await asyncio.gather(*map(read, names)))


async def _require_identity(services: Services, bucket: str) -> None:
    """Raises StoreError if it is not the bucket of this name."""
    if services.tiering is not None:
        claims = services.tiering.claims
        await claims.confirm(bucket, claims.generation(bucket))


def _require_sound(name: str, found: list[BucketHistory], request: RecoverPartitionRequest) -> None:
    """Refuse unless the named buckets have records, and no other has more."""
    known = [one.bucket for one in found]
    if not request.buckets:
        raise refuse(Error.INVALID_REQUEST, f"{name}: name one of its buckets {', '.join(known)}")
    for wanted in request.buckets:
        if wanted.bucket not in (*known, ALL_BUCKETS):
            listed = ", ".join(known) or "none"
            raise refuse(
                Error.INVALID_REQUEST,
                f"{name}: its topic has no bucket {wanted.bucket}; it has {listed}",
            )
    for one in found:
        if one.is_wanted:
            _require_records(name, one, accepts_missing=request.accepts_missing)
    end = max((one.end_offset for one in found if one.is_wanted), default=0)
    if not end:
        raise refuse(Error.POLICY_VIOLATION, f"{name}: no bucket has records of the partition")
    for one in found:
        if one.end_offset > end:
            raise refuse(
                Error.POLICY_VIOLATION,
                f"{name}: bucket {one.bucket} has {one.end_offset - end} records more than those "
                f"that you name, up to offset {one.end_offset - 1}: name it too",
            )


def _require_records(name: str, one: BucketHistory, *, accepts_missing: bool) -> None:
    if one.failure:
        raise ApiError(
            Error.POLICY_VIOLATION, f"{name}: bucket {one.bucket} cannot be read: {one.failure}"
        )
    if one.missing_count and not accepts_missing:
        more = one.missing_count - len(one.missing)
        rest = f" and {more} more" if more else ""
        raise refuse(
            Error.POLICY_VIOLATION,
            f"{name}: bucket {one.bucket} lacks {one.missing_count} objects that its newest export "
            f"names: {', '.join(one.missing)}{rest}; bring them back, or accept what is left with "
            "--accept-missing",
        )
    if one.start_offset >= one.end_offset:
        raise refuse(
            Error.POLICY_VIOLATION, f"{name}: bucket {one.bucket} has no records of the partition"
        )
