"""Which objects of an export are in the bucket still.

Why:    a bucket keeps an object for `[tiered] delete_grace_ms` after it is retired. An export of
        before that may name objects that are gone: an operator has to know which records they had.
How:    a listing of the partition's objects. An object that is not listed is asked for by its name,
        because a listing may lag, and an error is no absence.
        A merged object has the records of those it replaced: where these are gone, and it is named
        by the newest export and ends where the range does, it comes in their place. It has just
        their bytes. One of a compacted topic lacks values that later ones have superseded, so it
        does not stand for the past.
        What comes back is one range without a gap: the longest that is there; the newest of two.
Owns:   nothing.
Source: decision 0063."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore
from strandline.tiered.segments.entry import SegmentEntry

Range = tuple[Offset, Offset]
"""Offsets, half-open."""


class Present(NamedTuple):
    """What a bucket still has of an export."""

    live: tuple[SegmentEntry, ...]
    """One behind the other, without a gap."""
    gone: tuple[Range, ...]
    """Ranges of the export that are in no object of this bucket any more, ascending."""


async def look(store: ObjectStore, export: Export, newest: Export) -> Present:
    """Compare an export with the bucket; `newest`: the bucket's newest one. Raises StoreError."""
    listed = await _listed(store, export.place)
    wanted = list(export.live)
    here = await _here(store, wanted, listed)
    if len(here) < len(wanted):
        later = [one for one in newest.live if _is_merged(one, wanted)]
        here += await _here(store, later, listed)
    runs, gone = _tiled(here, export)
    longest = max(runs, key=_length_then_place, default=())
    return Present(tuple(longest), tuple(gone))


def _is_merged(entry: SegmentEntry, parts: Sequence[SegmentEntry]) -> bool:
    """Whether an object is made of some of these, and of nothing else: no byte less."""
    within = [
        one
        for one in parts
        if entry.base_offset <= one.base_offset and one.end_offset <= entry.end_offset
    ]
    is_range = bool(within) and (within[0].base_offset, within[-1].end_offset) == (
        entry.base_offset,
        entry.end_offset,
    )
    is_same = sum(one.data_bytes for one in within) == entry.data_bytes
    return is_range and is_same and all(one.name != entry.name for one in within)


def ranges_text(ranges: Iterable[Range]) -> str:
    """`10 to 20, 40 to 50`"""
    return ", ".join(f"{start} to {end}" for start, end in ranges)


async def _listed(store: ObjectStore, place: PartitionPlace) -> set[str]:
    # All names of segments begin with a zero; those of exports and pages do not.
    return {one.name async for one in store.list(f"{place.prefix}0")}


async def _here(
    store: ObjectStore, entries: Sequence[SegmentEntry], listed: Collection[str]
) -> list[SegmentEntry]:
    found = []
    for entry in entries:
        if entry.name not in listed:
            try:
                await store.get_range(entry.name, 0, 1)
            except ObjectAbsentError:
                continue
        found.append(entry)
    return found


def _tiled(
    here: Sequence[SegmentEntry], export: Export
) -> tuple[list[list[SegmentEntry]], list[Range]]:
    """(runs of objects one behind the other, what is between them), of the export's range."""
    first = export.live[0].base_offset if export.live else export.end_offset
    runs: list[list[SegmentEntry]] = [[]]
    gone: list[Range] = []
    at = first
    while at < export.end_offset:
        fitting = [
            one for one in here if one.base_offset == at and one.end_offset <= export.end_offset
        ]
        if fitting:
            chosen = max(fitting, key=_end_of)
            runs[-1].append(chosen)
            at = chosen.end_offset
            continue
        following = [one.base_offset for one in here if at < one.base_offset < export.end_offset]
        stop = min(following, default=export.end_offset)
        gone.append((at, stop))
        runs.append([])
        at = stop
    return [one for one in runs if one], gone


def _end_of(entry: SegmentEntry) -> Offset:
    return entry.end_offset


def _length_then_place(run: Sequence[SegmentEntry]) -> tuple[int, int]:
    return run[-1].end_offset - run[0].base_offset, run[0].base_offset
