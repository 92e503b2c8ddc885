"""Looks into the bucket before a topic that copies another cluster's topic is created.

Why:    a wrong URL, missing credentials or a misspelt topic is found when the topic is created, not
        by its first consumer. The partition count is the source's.
How:    the topic's configuration gets the ids of its source, and the whole name after `#`.
Source: decision 0061."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.config.bucket_urls import BucketUrl
from strandline.config.topic import validate_topic_config
from strandline.config.topic_read_replica import (
    READ_REPLICA_OF,
    SOURCE_ID,
    ReplicaOf,
    SourceId,
    parse_replica_of,
)
from strandline.controller.commands import USE_DEFAULT, NewTopic
from strandline.protocol.errors import Error
from strandline.tiered.exports.heads import read_heads
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import find_topic, read_newest
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.claim import read_claim
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore, StoreError

LOOK_MS_MAX = 30_000


class _Found(NamedTuple):
    source: SourceId
    partition_count: int


async def with_source(services: Services, topic: NewTopic, timeout_ms: int) -> NewTopic:
    """The topic with what its source's bucket says; as it is, if it copies nothing. Raises
    ApiError with the reason why it cannot be created."""
    configs = dict(topic.configs)
    text = configs.get(READ_REPLICA_OF)
    if not text or validate_topic_config(READ_REPLICA_OF, text) is not None:
        return topic  # The controller refuses what is malformed.
    wanted = parse_replica_of(text)
    name = wanted.topic or topic.name
    try:
        async with asyncio.timeout(max(0, min(timeout_ms, LOOK_MS_MAX)) / 1000):
            found = await _look(services.buckets.open(wanted.url), wanted, name)
    except TimeoutError:
        raise _unreadable(wanted.url, "no answer in time") from None
    except (StoreError, DamagedObjectError) as error:
        raise _unreadable(wanted.url, str(error)) from error
    if topic.partitions not in (USE_DEFAULT, found.partition_count) or topic.assignments:
        raise ApiError(
            Error.INVALID_PARTITIONS,
            f"the source has {found.partition_count} partition(s), and a copy has as many: leave "
            "the number of partitions and the assignments out",
        )
    given = configs.get(SOURCE_ID)
    if given and given != str(found.source):
        raise ApiError(
            Error.INVALID_CONFIG, f"{SOURCE_ID} is {found.source} in {wanted.url}, not {given}"
        )
    url = text.partition("#")[0]
    configs[READ_REPLICA_OF] = f"{url}#{found.source.cluster_id}/{name}"
    configs[SOURCE_ID] = str(found.source)
    return msgspec.structs.replace(
        topic, partitions=found.partition_count, configs=tuple(configs.items())
    )


async def _look(store: ObjectStore, wanted: ReplicaOf, name: str) -> _Found:
    """Raises StoreError, DamagedObjectError, ApiError."""
    try:
        cluster_id = await read_claim(store)
    except ObjectAbsentError:
        raise ApiError(
            Error.INVALID_CONFIG,
            f"{wanted.url} has no tiered storage of a cluster: give the URL as the source's "
            "brokers have it in [tiered] buckets",
        ) from None
    if wanted.cluster_id not in ("", cluster_id):
        raise ApiError(
            Error.INVALID_CONFIG,
            f"{wanted.url} is of cluster {cluster_id}, not of {wanted.cluster_id}",
        )
    topic_id = await find_topic(store, cluster_id, name)
    if topic_id is None:
        raise ApiError(
            Error.INVALID_CONFIG,
            f"{wanted.url} has no topic {name} of cluster {cluster_id}: the source needs "
            "remote.storage.enable=true, and its first export takes some seconds",
        )
    found = await read_newest(store, PartitionPlace(cluster_id, topic_id, 0))
    count = 1 if found is None else found.export.partition_count
    for head in await read_heads(store, cluster_id):
        count = max(count, *(1 + row.partition for row in head.rows if row.topic_id == topic_id), 1)
    return _Found(SourceId(cluster_id, topic_id), count)


def _unreadable(url: BucketUrl, reason: str) -> ApiError:
    return ApiError(Error.KAFKA_STORAGE_ERROR, f"{url} cannot be read: {reason}")
