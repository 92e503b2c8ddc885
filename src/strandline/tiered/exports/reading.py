"""Reads exports out of a bucket: one by its number, or the newest that is whole.

Why:    a bucket may have a damaged object, an export that was removed after it was listed, or a
        page that is missing. Then the next lower export is an older truth, and serves.
How:    an error of the store is no answer, and ends the search: an error is not absence.
Source: decision 0061."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from strandline.model.ids import Offset
from strandline.tiered.exports.encoding import Head, PageRef, TopicBody, decode, decode_page
from strandline.tiered.exports.export import Export, fault_of
from strandline.tiered.exports.layout import Page
from strandline.tiered.exports.names import (
    ExportNumber,
    PartitionPlace,
    parse_number,
    topics_prefix,
)
from strandline.tiered.framing import DamagedObjectError, crc_of
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore
from strandline.tiered.segments.entry import SegmentEntry

Report = Callable[[str], None]
"""Called with one line for each export that should be there and does not serve."""


class ReadExport(NamedTuple):
    """An export and the pages that it names."""

    export: Export
    pages: tuple[Page, ...]


async def read_export(
    store: ObjectStore, place: PartitionPlace, number: ExportNumber, known: Sequence[Page] = ()
) -> ReadExport:
    """One export. `known`: pages read before. Raises DamagedObjectError, ObjectAbsentError if the
    head is not there, StoreError."""
    name = place.export_name(number)
    head = decode(name, await store.get(name), Head)
    found = PartitionPlace(head.cluster_id, head.topic_id, head.partition)
    if (found, ExportNumber(head.epoch, head.index, head.version)) != (place, number):
        raise DamagedObjectError(f"{name}: it is another export, {found} {head.epoch}-{head.index}")
    at_hand = {(one.ref.attempt, one.ref.base_offset): one.entries for one in known}
    pages = [await _read_page(store, place, ref, at_hand) for ref in head.pages]
    live = (*(entry for page in pages for entry in page.counted), *head.tail)
    fault = fault_of(live, head.end_offset)
    if fault:
        raise DamagedObjectError(f"{name}: {fault}")
    return ReadExport(_export_of(head, live, number), tuple(pages))


async def list_numbers(store: ObjectStore, place: PartitionPlace) -> list[ExportNumber]:
    """The numbers of all exports, the newest first. Raises StoreError."""
    prefix = place.exports_prefix
    numbers = [
        number
        async for one in store.list(prefix)
        if (number := parse_number(one.name.removeprefix(prefix))) is not None
    ]
    return sorted(numbers, reverse=True)


async def read_newest(
    store: ObjectStore,
    place: PartitionPlace,
    *,
    above: ExportNumber | None = None,
    known: Sequence[Page] = (),
    report: Report = lambda _: None,
) -> ReadExport | None:
    """The newest export that is whole, out of those above `above`; None if there is none. Raises
    StoreError."""
    for number in await list_numbers(store, place):
        if above is not None and number <= above:
            break
        try:
            return await read_export(store, place, number, known)
        except ObjectAbsentError:
            continue  # Removed after the listing, or the store's listing is late.
        except DamagedObjectError as damage:
            report(str(damage))
    return None


async def read_hinted(
    store: ObjectStore,
    place: PartitionPlace,
    hint: ExportNumber,
    known: Sequence[Page] = (),
    report: Report = lambda _: None,
) -> ReadExport | None:
    """The export that a hint names; None if it does not serve: then the listing says what does.
    Raises StoreError."""
    try:
        return await read_export(store, place, hint, known)
    except ObjectAbsentError:
        return None
    except DamagedObjectError as damage:
        report(str(damage))
        return None


async def list_topics(
    store: ObjectStore, cluster_id: str, topic: str = ""
) -> AsyncIterator[TopicBody]:
    """The topics of a cluster that have exports, or those of one name. Raises StoreError,
    DamagedObjectError."""
    async for one in store.list(topics_prefix(cluster_id, topic)):
        try:
            yield decode(one.name, await store.get(one.name), TopicBody)
        except ObjectAbsentError:
            continue  # Deleted after the listing.


async def find_topic(store: ObjectStore, cluster_id: str, topic: str) -> UUID | None:
    """The id of the topic of this name; of the newest, if it was deleted and made again. Raises
    StoreError, DamagedObjectError."""
    found = [one async for one in list_topics(store, cluster_id, topic) if one.topic == topic]
    return max(found, key=lambda one: one.first_seen_ms).topic_id if found else None


async def _read_page(
    store: ObjectStore,
    place: PartitionPlace,
    ref: PageRef,
    at_hand: Mapping[tuple[str, Offset], tuple[SegmentEntry, ...]],
) -> Page:
    name = place.page_name(ref.base_offset, ref.attempt)
    entries = at_hand.get((ref.attempt, ref.base_offset))
    if entries is None:
        try:
            data = await store.get(name)
        except ObjectAbsentError as error:
            raise DamagedObjectError(
                f"{name}: an export names this page, and it is gone"
            ) from error
        if crc_of(data) != ref.crc:
            raise DamagedObjectError(f"{name}: CRC-32C {crc_of(data):08x}, expected {ref.crc:08x}")
        entries = decode_page(name, data)
    if len(entries) != ref.count or not 0 <= ref.skip < ref.count:
        raise DamagedObjectError(f"{name}: {len(entries)} entries, an export names {ref}")
    return Page(ref, entries)


def _export_of(head: Head, live: tuple[SegmentEntry, ...], number: ExportNumber) -> Export:
    return Export(
        cluster_id=head.cluster_id,
        topic=head.topic,
        topic_id=head.topic_id,
        partition=head.partition,
        partition_count=head.partition_count,
        topic_config=head.topic_config,
        number=number,
        written_ms=head.written_ms,
        high_watermark=head.high_watermark,
        log_start_offset=head.log_start_offset,
        end_offset=head.end_offset,
        live=live,
        retired=head.retired,
    )
