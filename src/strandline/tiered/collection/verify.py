"""Reads one object of a bucket, and compares every checksum with the log's entry.

Why:    stores lose and damage objects; an operator wants to know before a reader does.
How:    trailer by the entry's CRC, its fields by the entry, each chunk of data by the trailer. What
        does not match is read once more: the wire may have been at fault. A store that gives no
        answer proves nothing, but its listing tells the size of an object that was cut.
Source: decisions 0057 and 0058."""

from enum import Enum
from typing import NamedTuple

from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer, TrailerError

READ_BYTES = 8 << 20


class Verdict(Enum):
    """What is known of an object now."""

    SOUND = "sound"
    MISSING = "missing"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    """The store gave no usable answer: nothing is known."""


class Checked(NamedTuple):
    """One object. `reason`: one line; empty for a sound one. `read_bytes`: what was read of it."""

    entry: SegmentEntry
    verdict: Verdict
    reason: str = ""
    read_bytes: int = 0


async def verify_entry(store: ObjectStore, entry: SegmentEntry) -> Checked:
    """Read a whole object and judge it."""
    try:
        trailer = await _trailer(store, entry)
        reason = _contradiction(trailer, entry) or await _bad_chunk(store, entry, trailer)
    except TrailerError as error:
        return Checked(entry, Verdict.DAMAGED, str(error))
    except ObjectAbsentError:
        return Checked(entry, Verdict.MISSING, "the bucket has no such object")
    except StoreError as error:
        size = await _listed_size(store, entry.name)
        if size is not None and size != entry.size_bytes:
            reason = f"it has {size} bytes, and had {entry.size_bytes} when it was uploaded"
            return Checked(entry, Verdict.DAMAGED, reason)
        return Checked(entry, Verdict.UNREADABLE, str(error))
    verdict = Verdict.DAMAGED if reason else Verdict.SOUND
    return Checked(entry, verdict, reason, entry.size_bytes)


async def _listed_size(store: ObjectStore, name: str) -> int | None:
    """The size of an object, as the store lists it; None if it does not say."""
    try:
        async for one in store.list(name):
            if one.name == name:
                return one.size_bytes
    except StoreError:
        pass
    return None


async def _trailer(store: ObjectStore, entry: SegmentEntry) -> Trailer:
    start, end = entry.data_bytes, entry.size_bytes
    try:
        return Trailer.parse(await store.get_range(entry.name, start, end), crc=entry.trailer_crc)
    except TrailerError:
        return Trailer.parse(await store.get_range(entry.name, start, end), crc=entry.trailer_crc)


def _contradiction(trailer: Trailer, entry: SegmentEntry) -> str:
    """Where a trailer says something else than the entry; empty if it does not."""
    for what, found, expected in (
        ("base offset", trailer.base_offset, entry.base_offset),
        ("end offset", trailer.end_offset, entry.end_offset),
        ("data bytes", trailer.data_bytes, entry.data_bytes),
        ("epochs", trailer.epochs, entry.epochs),
        ("digest", trailer.digest(), entry.digest),
    ):
        if found != expected:
            return f"its trailer has the {what} {found!r}, the log {expected!r}"
    return ""


async def _bad_chunk(store: ObjectStore, entry: SegmentEntry, trailer: Trailer) -> str:
    """The first chunk with another checksum than the trailer says; empty if there is none."""
    per_read = max(1, READ_BYTES // trailer.chunk_bytes)
    for first in range(0, trailer.chunk_count, per_read):
        chunks = range(first, min(first + per_read, trailer.chunk_count))
        start, end = trailer.chunk_range(first)[0], trailer.chunk_range(chunks[-1])[1]
        data = memoryview(await store.get_range(entry.name, start, end))
        for chunk in chunks:
            low, high = trailer.chunk_range(chunk)
            if trailer.chunk_matches(chunk, data[low - start : high - start]):
                continue
            if not trailer.chunk_matches(chunk, await store.get_range(entry.name, low, high)):
                return f"bytes [{low}, {high}) have another checksum than the trailer says"
    return ""
