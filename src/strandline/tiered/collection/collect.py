"""One bucket: lists the segments of a cluster, asks the leaders, and deletes what no log knows.

How:    list a partition -> ask its leader -> read its newest export -> judge -> delete, if that is
        asked for. A partition whose leader or export does not answer is left alone, and named.
Owns:   nothing.
Source: decisions 0057 and 0058."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.tiered.collection.orphans import (
    Known,
    Listed,
    Place,
    Sorted,
    segments_of,
    sort_objects,
)
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import list_numbers, read_export
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.store import ObjectAbsentError, ObjectInfo, ObjectStore, StoreError

GRACE_MS_MIN = 3_600_000
"""Clocks of stores and of this machine may differ by minutes."""


class UncertainError(Exception):
    """It is not known now what a partition's log has; the message says why."""


class Answer(NamedTuple):
    """What the leader of a partition, or the controller, says of a bucket."""

    names: Collection[str]
    is_topic_gone: bool = False


AskLeader = Callable[[Place], Awaitable[Answer]]
"""The names of all objects that the present leader's log has; raises UncertainError."""


@dataclass(slots=True)
class Collected:
    """What a bucket holds, and what was done."""

    sorted: Sorted = field(default_factory=Sorted)
    uncertain: list[tuple[Place, str]] = field(default_factory=list)
    """Partitions that were left alone, and why."""
    deleted_count: int = 0
    partition_count: int = 0


async def collect(
    store: ObjectStore,
    *,
    cluster_id: str,
    ask_leader: AskLeader,
    now_ms: int,
    grace_ms: int,
    deletes: bool,
) -> Collected:
    """Judge all segments of a cluster in a bucket, and delete the orphans if `deletes`. Raises
    StoreError if the bucket cannot be listed."""
    assert grace_ms >= GRACE_MS_MIN
    result = Collected()
    async for listed in _partitions(store, cluster_id):
        result.partition_count += 1
        try:
            known = await _known(store, listed.place, cluster_id, ask_leader)
        except UncertainError as error:
            result.uncertain.append((listed.place, str(error)))
            continue
        found = sort_objects(listed, known, now_ms=now_ms, grace_ms=grace_ms)
        result.sorted.known += found.known
        result.sorted.young += found.young
        result.sorted.exported += found.exported
        result.sorted.orphans += found.orphans
        if deletes and found.orphans:
            await store.delete([one.name for one in found.orphans])
            result.deleted_count += len(found.orphans)
    return result


async def _partitions(store: ObjectStore, cluster_id: str) -> AsyncIterator[Listed]:
    """The segments of each partition, once all of them are listed."""
    listing: list[ObjectInfo] = []
    prefix = ""
    async for one in store.list(f"{cluster_id}/"):
        parent = one.name.rpartition("/")[0]
        if parent != prefix:
            for listed in segments_of(listing, cluster_id):
                yield listed
            listing, prefix = [], parent
        listing.append(one)
    for listed in segments_of(listing, cluster_id):
        yield listed


async def _known(store: ObjectStore, place: Place, cluster_id: str, ask_leader: AskLeader) -> Known:
    answer = await ask_leader(place)
    if answer.is_topic_gone:
        return Known(is_topic_gone=True)
    exported: set[str] = set()
    of_partition = PartitionPlace(cluster_id, place.topic_id, place.partition)
    try:
        for number in await list_numbers(store, of_partition):
            try:
                export = (await read_export(store, of_partition, number)).export
            except ObjectAbsentError:  # Removed by now: a newer one is there.
                continue
            exported.update(one.name for one in export.live)
            exported.update(one.name for one in export.retired)
    except (StoreError, DamagedObjectError) as error:
        raise UncertainError(f"an export cannot be read: {error}") from None
    return Known(names=answer.names, exported=exported)
