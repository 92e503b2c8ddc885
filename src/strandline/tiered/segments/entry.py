"""What a partition's log says of one object of a bucket: enough to find and to check every byte.

Source: decision 0057."""

from collections.abc import Iterable, Iterator

import msgspec

from strandline.model.ids import Epoch, Offset


class SegmentEntry(msgspec.Struct, frozen=True, array_like=True):
    """One object: the records of [base_offset, end_offset), then a trailer."""

    name: str
    """Below the bucket's prefix; no two attempts share one."""
    base_offset: Offset
    end_offset: Offset
    data_bytes: int
    """Where the trailer begins."""
    size_bytes: int
    trailer_crc: int
    """CRC-32C of the trailer, whose own CRCs cover the data."""
    max_timestamp: int
    """The highest timestamp; -1 for none."""
    max_timestamp_offset: Offset
    epochs: tuple[tuple[Epoch, Offset], ...]
    """(epoch, its first offset in here), ascending."""
    digest: bytes
    """SHA-256 of the chunks' CRC-32Cs in the trailer: equal for equal data. It finds errors; it is
    no protection against forgery."""
    live_ms: int = -1
    """When the leader said that the object counts, by its wall clock; -1 if it did not say. It
    stands for the age of records without a timestamp, as a file's last change does locally."""


def epochs_of(entries: Iterable[SegmentEntry]) -> Iterator[tuple[Epoch, Offset]]:
    """(epoch, its first offset) of entries in their order, each epoch once."""
    last = None
    for entry in entries:
        for epoch, offset in entry.epochs:
            if epoch != last:
                yield epoch, offset
                last = epoch
