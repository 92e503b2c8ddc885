"""Carries a plan out by copying objects: a lost cluster's history inside the store, into the other
cluster's own prefix.

Why:    producing records again takes a client hours for what a store copies by itself. The other
        cluster owns its copies; the lost one's prefix stays as it is.
How:    of each topic: a topic id that follows from both clusters and the lost topic
                       --> every object copied under it, size and trailer read back
                       --> an export that names them, for the leaders of the new partitions
                       --> the topic is created, its partitions begin behind these records
        An object is copied inside the store if it can (another prefix of the same bucket, another
        directory of the machine); otherwise it comes through this client, every chunk checked.
            Names follow from the lost ones, so a run that was interrupted goes on with what is
        missing. A topic of that id is restored already.
Owns:   nothing.
Source: decisions 0063 and 0067."""

import asyncio
from asyncio import Runner
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid5

import msgspec

from strandline.base.errors import ApiError, OperatorError
from strandline.client.admin import (
    EARLIEST,
    LATEST,
    NewTopic,
    check_topic,
    create_topic,
    list_offsets,
)
from strandline.client.cluster import Client
from strandline.client.restore.offsets import Say, changed_configs, commit_offsets
from strandline.client.restore.plan import PlannedPartition, PlannedTopic, RestorePlan, Stores
from strandline.config.topic import TopicConfig
from strandline.controller.placing.policies import policy_in_force
from strandline.controller.placing.start_offsets import HISTORY, NOTHING, TOPIC_ID
from strandline.model.cluster import Labels
from strandline.model.ids import GRANT_MAX, grant_of
from strandline.placement.buckets import allowed_buckets
from strandline.protocol.errors import Error
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import list_numbers, read_export
from strandline.tiered.exports.writing import write_export, write_topic
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.claim import claim_bucket
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import CHUNK_BYTES, Trailer, TrailerError

COPIES_AT_ONCE = 4
RANGE_BYTES = 8 * CHUNK_BYTES
RESTORED = UUID("5d6d2f0e-4d0a-5d5c-9a57-0b7c0f6a7b11")
"""The name space of the ids of restored topics."""
AGAIN_MAX = 100
"""How often the same topic may be restored and deleted."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The buckets of the other cluster: {region: its store}, and where each is."""

    stores: Mapping[str, ObjectStore]
    labels: Mapping[str, Labels]


@dataclass(slots=True)
class Copied:
    """The objects copied. `here_bytes`: through this client; the rest inside the store."""

    count: int = 0
    total_bytes: int = 0
    here_bytes: int = 0
    kept_count: int = 0
    """Objects that an earlier run has copied."""

    @property
    def text(self) -> str:
        """In words."""
        inside = self.total_bytes - self.here_bytes
        kept = f", {self.kept_count} were there" if self.kept_count else ""
        return (
            f"{self.count} objects copied, {inside} bytes inside the store, {self.here_bytes} "
            f"through this client{kept}"
        )


def carry_out_objects(
    client: Client,
    runner: Runner,
    stores: Stores,
    targets: Targets,
    plan: RestorePlan,
    *,
    changes: Mapping[str, str | None],
    say: Say,
) -> None:
    """Restore everything that the plan has; `say` gets a line for each step. `changes`: keys that
    every topic gets another value of, or none. Raises OperatorError, ApiError, StoreError; another
    run goes on."""
    present = client.metadata(deadline_ms=client.deadline()).cluster_id
    for bucket, store in targets.stores.items():
        runner.run(claim_bucket(store, bucket=bucket, cluster_id=present))
    for lost in plan.topics:
        topic = replace(lost, configs=changed_configs(lost.configs, changes))
        done = _restore(client, runner, stores, targets, plan.cluster_id, present, topic)
        say(f"topic {topic.name}: {'restored before' if done is None else done.text}")
    commit_offsets(client, plan, say)


def way_of(topic: PlannedTopic, one: PlannedPartition, stores: Stores, targets: Targets) -> str:
    """How a partition's objects would come, in words. Raises OperatorError."""
    if not one.objects:
        return "nothing to copy"
    bucket = _target_of(topic, one, stores, targets)
    is_inside = _is_beside(one, stores, targets, bucket)
    return f"to {bucket}, {'inside the store' if is_inside else 'through this client'}"


def _restore(
    client: Client,
    runner: Runner,
    stores: Stores,
    targets: Targets,
    source_cluster: str,
    cluster_id: str,
    topic: PlannedTopic,
) -> Copied | None:
    """The objects copied of a topic; None if an earlier run has restored it."""
    origin = f"{cluster_id}/{source_cluster}/{topic.id}"
    candidates = [uuid5(RESTORED, f"{origin}/{again}") for again in range(AGAIN_MAX)]
    if _is_restored(client, topic, candidates):
        return None
    copied = Copied()
    buckets = [
        _target_of(topic, one, stores, targets) if one.objects else "" for one in topic.partitions
    ]
    new, topic_id = _new_topic(client, topic, buckets, candidates)
    for one, bucket in zip(topic.partitions, buckets, strict=True):
        if one.export is not None and one.objects:
            export = _export_at(one.export, PartitionPlace(cluster_id, topic_id, one.index), topic)
            source, target = stores[one.bucket], targets.stores[bucket]
            runner.run(_copy_all(source, target, one.objects, export, copied))
    create_topic(client, new)
    _check(client, topic)
    return copied


def _is_restored(client: Client, topic: PlannedTopic, candidates: Sequence[UUID]) -> bool:
    """Whether an earlier run has made the topic. Raises OperatorError if its name is another
    topic's, or if it was written to since."""
    view = client.metadata([topic.name], deadline_ms=client.deadline()).topics.get(topic.name)
    if view is None or not view.partitions:
        return False
    if view.id not in candidates:
        raise OperatorError(
            f"topic {topic.name} exists in this cluster, and is not what a restore has made: "
            "delete it there, or leave it out with --topics"
        )
    ends = list_offsets(client, topic.name, LATEST)
    if any(ends.get(one.index, 0) > one.end for one in topic.partitions):
        raise OperatorError(
            f"topic {topic.name} is restored already, and was written to since: leave it out with "
            "--topics"
        )
    return True


def _new_topic(
    client: Client, topic: PlannedTopic, buckets: Sequence[str], candidates: Sequence[UUID]
) -> tuple[NewTopic, UUID]:
    """(the topic as it will be created, its id), once the controller agrees: before a byte is
    copied."""
    parts = []
    for one, bucket in zip(topic.partitions, buckets, strict=True):
        if one.export is None or not one.end:
            parts.append(NOTHING)
            continue
        last_epochs = one.objects[-1].epochs if one.objects else ()
        grant = 1 + grant_of(max((one.export.number.epoch, *(epoch for epoch, _ in last_epochs))))
        if grant > GRANT_MAX:
            raise OperatorError(f"{topic.name}-{one.index}: no epochs are left: use --records")
        first = one.objects[0].base_offset if one.objects else one.end
        parts.append(f"{bucket}:{first}:{one.end}:{grant}")
    for topic_id in candidates:
        keys = {**topic.configs, TOPIC_ID: str(topic_id), HISTORY: ",".join(parts)}
        new = NewTopic(topic.name, len(parts), configs=tuple(keys.items()))
        try:
            check_topic(client, new, subject=f"topic {topic.name}")
            return new, topic_id
        except ApiError as error:
            if error.code != Error.INCONSISTENT_TOPIC_ID:
                raise
    raise OperatorError(f"topic {topic.name} was restored and deleted {AGAIN_MAX} times")


def _target_of(topic: PlannedTopic, one: PlannedPartition, stores: Stores, targets: Targets) -> str:
    """The bucket that gets the copies: of those that the topic's policy allows, one of the same
    store, or the first."""
    config = TopicConfig.from_overrides({}, topic.configs)
    if not config.remote_storage_enable:
        raise OperatorError(
            f"topic {topic.name} would have no tiered storage in this cluster, so that its objects "
            "have no place: leave remote.storage.enable on, or restore it with --records"
        )
    allowed = allowed_buckets(policy_in_force(topic.configs, {}), targets.labels)
    if not allowed:
        raise OperatorError(
            f"topic {topic.name}: its placement policy allows none of the buckets "
            f"{', '.join(targets.labels)}: give another policy with --config, or --unset it"
        )
    beside = [bucket for bucket in allowed if _is_beside(one, stores, targets, bucket)]
    return (beside or list(allowed))[0]


def _is_beside(one: PlannedPartition, stores: Stores, targets: Targets, bucket: str) -> bool:
    source, target = stores[one.bucket], targets.stores[bucket]
    return (
        isinstance(source, BucketStore)
        and isinstance(target, BucketStore)
        and target.copies_from(source)
    )


def _export_at(lost: Export, place: PartitionPlace, topic: PlannedTopic) -> Export:
    """What the copies are, as an export of the new partition."""
    return msgspec.structs.replace(
        lost,
        cluster_id=place.cluster_id,
        topic=topic.name,
        topic_id=place.topic_id,
        topic_config=dict(topic.configs),
        high_watermark=lost.end_offset,
        live=tuple(
            msgspec.structs.replace(one, name=f"{place.prefix}{one.name.rpartition('/')[2]}")
            for one in lost.live
        ),
        retired=(),
    )


async def _copy_all(
    source: ObjectStore,
    target: ObjectStore,
    lost: Sequence[SegmentEntry],
    export: Export,
    copied: Copied,
) -> None:
    """Copy the objects that are missing, then write the export."""
    place = export.place
    there = {one.name: one.size_bytes async for one in target.list(place.prefix)}
    left = iter(zip(lost, export.live, strict=True))

    async def work() -> None:
        for old, new in left:
            if there.get(new.name) == new.size_bytes:
                copied.kept_count += 1
            else:
                await _copy_one(source, target, old, new, copied)

    tasks = [asyncio.create_task(work()) for _ in range(COPIES_AT_ONCE)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    await _say(target, export)
    now_ms = export.written_ms
    await write_topic(target, export.cluster_id, export.topic, export.topic_id, now_ms)


async def _say(target: ObjectStore, export: Export) -> None:
    """Write the export, under a number above those of earlier runs that had other objects."""
    place, number = export.place, export.number
    numbers = await list_numbers(target, place)
    while number in numbers:
        if (await read_export(target, place, number)).export.live == export.live:
            return
        number = msgspec.structs.replace(number, version=number.version + 1)
    exported = msgspec.structs.replace(export, number=number)
    await write_export(target, exported, (), f"{number.version:016x}")


async def _copy_one(
    source: ObjectStore, target: ObjectStore, old: SegmentEntry, new: SegmentEntry, copied: Copied
) -> None:
    size = old.size_bytes
    is_inside = (
        isinstance(source, BucketStore)
        and isinstance(target, BucketStore)
        and await target.copy_from(source, old.name, new.name, size_bytes=size)
    )
    if not is_inside:
        await _carry(source, target, old, new)
        copied.here_bytes += size
    try:
        Trailer.parse(await target.get_range(new.name, new.data_bytes, size), crc=new.trailer_crc)
    except TrailerError as error:
        raise OperatorError(f"{new.name} is not what was copied: {error}") from error
    copied.count += 1
    copied.total_bytes += size


async def _carry(
    source: ObjectStore, target: ObjectStore, old: SegmentEntry, new: SegmentEntry
) -> None:
    """Through this client, all of it checked; an object is in memory as a whole."""
    tail = bytes(await source.get_range(old.name, old.data_bytes, old.size_bytes))
    try:
        trailer = Trailer.parse(tail, crc=old.trailer_crc)
    except TrailerError as error:
        raise OperatorError(f"{old.name} is not what was uploaded: {error}") from error
    parts = []
    for start in range(0, old.data_bytes, RANGE_BYTES):
        end = min(start + RANGE_BYTES, old.data_bytes)
        data = bytes(await source.get_range(old.name, start, end))
        for at in range(start // CHUNK_BYTES, -(-end // CHUNK_BYTES)):
            low, high = trailer.chunk_range(at)
            if not trailer.chunk_matches(at, data[low - start : high - start]):
                raise OperatorError(
                    f"{old.name} is not what was uploaded: a wrong checksum at {low}"
                )
        parts.append(data)
    await target.put(new.name, [*parts, tail])


def _check(client: Client, topic: PlannedTopic) -> None:
    """Wait until every partition has its history, and compare its end. Retention may have moved its
    beginning by now."""
    list_offsets(client, topic.name, EARLIEST)
    ends = list_offsets(client, topic.name, LATEST)
    for one in topic.partitions:
        if ends[one.index] < one.end:
            raise OperatorError(
                f"{topic.name}-{one.index} ends at offset {ends[one.index]}, not at {one.end}"
            )
