"""What a bucket has of a partition whose logs are lost: its newest export, and objects after that.

Why:    a partition may begin anew with the records that its buckets have. Its leader may then rely
        on every object that the first checkpoint names, so each is looked for first.
How:    newest export --> its live objects --one listing--> those that are there, with their size
        Where an object is missing, the objects before it cannot be reached: the last run counts.
        An object that no export names may follow: its upload ended after the newest export. It
        counts if it begins where the last one ends, if its leader's epoch is not before that of
        the export, and if every byte is sound. Uploads have committed records only. A leader of
        that epoch or a later one had all that the export names.
Source: decision 0067."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fastcrc import crc32

from strandline.model.ids import Offset
from strandline.tiered.collection.verify import Verdict, verify_entry
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import Report, read_newest
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectInfo,
    ObjectStore,
    StoreError,
)
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import SegmentName, parse_segment_name
from strandline.tiered.segments.trailer import FOOTER, Trailer, TrailerError, trailer_bytes
from strandline.tiered.state.bucket import is_sound
from strandline.tiered.state.commands import BucketImage, Removal


@dataclass(frozen=True, slots=True)
class BucketHistory:
    """Objects that lie end to end, all of them there. `missing`: names that the export has and the
    bucket lacks. `added_count`: how many of `live`, at the end, no export names yet."""

    export: Export
    live: tuple[SegmentEntry, ...]
    missing: tuple[str, ...] = ()
    added_count: int = 0

    @property
    def end_offset(self) -> Offset:
        """Where the last object ends; without any, 0."""
        return self.live[-1].end_offset if self.live else Offset(0)

    @property
    def start_offset(self) -> Offset:
        """The first record that may be read; `end_offset` if there is none."""
        first = self.live[0].base_offset if self.live else self.end_offset
        return min(max(first, self.export.log_start_offset), self.end_offset)

    def cut(self, start: Offset, end: Offset) -> "BucketHistory | None":
        """The objects that have the records of [start, end), none after; None if some are missing
        or none ends there."""
        live = tuple(one for one in self.live if one.end_offset <= end)
        if not live or live[0].base_offset > start or live[-1].end_offset != end:
            return None
        return replace(self, live=live, added_count=0)

    def image(self, bucket: str) -> BucketImage:
        """The bucket's part of the first checkpoint. Retired objects go after their grace; what
        else is in the bucket are orphans."""
        retired = (
            Removal(one.name, 0, one.retired_ms, was_live=True) for one in self.export.retired
        )
        counters = (len(self.live), 0, 0, 0)
        end = self.end_offset
        return BucketImage(bucket, self.live, (), tuple(retired), end, Offset(0), counters)


async def read_history(
    store: ObjectStore, place: PartitionPlace, report: Report = lambda _: None
) -> BucketHistory | None:
    """What the bucket has; None without an export. `report`: is told of damaged ones. Raises
    StoreError."""
    found = await read_newest(store, place, report=report)
    if found is None:
        return None
    export = found.export
    listed = {one.name: one async for one in store.list(place.prefix)}
    live: list[SegmentEntry] = []
    missing = []
    for entry in export.live:
        if not await _is_there(store, entry, listed.get(entry.name)):
            missing.append(entry.name)
            continue
        if live and live[-1].end_offset != entry.base_offset:
            live = []
        live.append(entry)
    is_whole = not missing or (bool(live) and live[-1] == export.live[-1])
    added = await _added(store, export, listed.values()) if is_whole else []
    return BucketHistory(export, (*live, *added), tuple(missing), len(added))


async def _is_there(store: ObjectStore, entry: SegmentEntry, listed: ObjectInfo | None) -> bool:
    """Whether the object is there. A listing may be late; a read is not."""
    if listed is not None:
        return listed.size_bytes == entry.size_bytes
    try:
        await store.get_range(entry.name, entry.size_bytes - 1, entry.size_bytes)
    except ObjectAbsentError:
        return False
    return True


async def _added(
    store: ObjectStore, export: Export, listed: Iterable[ObjectInfo]
) -> list[SegmentEntry]:
    known = {*(one.name for one in export.live), *(one.name for one in export.retired)}
    by_base: dict[Offset, list[tuple[SegmentName, ObjectInfo]]] = {}
    for one in listed:
        name = parse_segment_name(one.name)
        if name is None or one.name in known or name.epoch < export.number.epoch:
            continue
        by_base.setdefault(name.base_offset, []).append((name, one))
    found: list[SegmentEntry] = []
    end = export.end_offset
    epoch = export.live[-1].epochs[-1][0] if export.live else 0
    while candidates := by_base.get(end):
        entries = [await _entry(store, name, info) for name, info in candidates]
        fits = [one for one in entries if one is not None and one.epochs[0][0] >= epoch]
        if not fits:
            break
        best = max(fits, key=lambda one: one.end_offset)
        found.append(best)
        end, epoch = best.end_offset, best.epochs[-1][0]
    return found


async def _entry(store: ObjectStore, name: SegmentName, info: ObjectInfo) -> SegmentEntry | None:
    """What the object's own trailer says; None if it is no whole object of that name."""
    size = info.size_bytes
    if size <= FOOTER.size:
        return None
    try:
        footer = await store.get_range(info.name, size - FOOTER.size, size)
        start = size - trailer_bytes(footer)
        if start < 0:
            return None
        data = await store.get_range(info.name, start, size)
        trailer = Trailer.parse(data)
    except (TrailerError, ObjectAbsentError):
        return None
    entry = SegmentEntry(
        name=info.name,
        base_offset=trailer.base_offset,
        end_offset=trailer.end_offset,
        data_bytes=trailer.data_bytes,
        size_bytes=size,
        trailer_crc=crc32.iscsi(data),
        max_timestamp=trailer.max_timestamp,
        max_timestamp_offset=trailer.max_timestamp_offset,
        epochs=trailer.epochs,
        digest=trailer.digest(),
    )
    is_right = (trailer.base_offset, trailer.data_bytes) == (name.base_offset, start)
    if not is_right or not is_sound(entry):
        return None
    checked = await verify_entry(store, entry)
    if checked.verdict is Verdict.UNREADABLE:
        raise StoreError(checked.reason)
    return entry if checked.verdict is Verdict.SOUND else None
