"""Raft's own entries in the shape of a record batch: they take an index and no offset.

Why:    new epochs and membership changes lie in the log between the records, in the same segments,
        so that there is one log and one order. Consumers never see them, and offsets stay dense.
How:    a control batch with lastOffsetDelta -1 and one record:
            key    i16 version 0, i16 kind
            value  EPOCH: empty.  CONFIGURATION: bytes of the replication room.
                   DELETION: i64, an offset not above the marker's own; deletes records below it.
                   TIER: what a bucket holds, or a checkpoint of that (`tiered.state.encoding`).
        baseSequence repeats the marker's epoch, so that the checksum covers it: each epoch begins
        with a marker, and the batches that follow have its epoch. (-1 in an older format.)
Source: design section 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    iterate_headers,
    read_header,
    seal,
)
from strandline.records.varint import encode_varint, read_varint

_KEY = Struct(">hh")
_OFFSET = Struct(">q")


class MarkerKind(IntEnum):
    """The type in a marker's key. Kafka's own control types are below 7."""

    EPOCH = 10
    CONFIGURATION = 11
    DELETION = 12
    TIER = 13


_KINDS = frozenset(MarkerKind)


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker, read. `payload` is the value."""

    kind: MarkerKind
    epoch: Epoch
    payload: bytes

    @property
    def configuration(self) -> bytes | None:
        """The payload of a CONFIGURATION; None for other kinds."""
        return self.payload if self.kind is MarkerKind.CONFIGURATION else None

    @property
    def deleted_before(self) -> Offset | None:
        """The offset in a DELETION; None for other kinds."""
        if self.kind is not MarkerKind.DELETION:
            return None
        return Offset(_OFFSET.unpack(self.payload)[0])

    @property
    def tier(self) -> bytes | None:
        """The payload of a TIER marker; None for other kinds."""
        return self.payload if self.kind is MarkerKind.TIER else None


def build_epoch_marker(offset: Offset, epoch: Epoch, timestamp_ms: int) -> bytes:
    """The entry with which a leader opens its epoch; `offset` is the next data offset."""
    return _build(MarkerKind.EPOCH, b"", offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)


def build_configuration_marker(
    offset: Offset, epoch: Epoch, configuration: bytes, timestamp_ms: int
) -> bytes:
    """The entry that changes the members; `offset` is the next data offset."""
    return _build(
        MarkerKind.CONFIGURATION,
        configuration,
        offset=offset,
        epoch=epoch,
        timestamp_ms=timestamp_ms,
    )


def build_deletion_marker(
    offset: Offset, epoch: Epoch, deleted_before: Offset, timestamp_ms: int
) -> bytes:
    """The entry that deletes the records below `deleted_before`, which is not above `offset`, the
    next data offset."""
    assert 0 <= deleted_before <= offset, f"deleting up to {deleted_before} at offset {offset}"
    payload = _OFFSET.pack(deleted_before)
    return _build(
        MarkerKind.DELETION, payload, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms
    )


def build_tier_marker(offset: Offset, epoch: Epoch, payload: bytes, timestamp_ms: int) -> bytes:
    """The entry that says what a bucket holds; `offset` is the next data offset."""
    return _build(MarkerKind.TIER, payload, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)


def parse_marker(batch: Buffer, position: int = 0) -> Marker:
    """The marker at `position`; raises ApiError CORRUPT_MESSAGE when it is none."""
    header = read_header(batch, position)
    if header is None or not header.is_marker:
        raise ApiError(Error.CORRUPT_MESSAGE, "not a marker")
    end = position + header.size
    _, at = read_varint(batch, position + HEADER_BYTES, end)  # The record's length.
    at += 1  # The record's attributes.
    _, at = read_varint(batch, at, end)  # The timestamp's delta.
    _, at = read_varint(batch, at, end)  # The offset's delta.
    key_length, at = read_varint(batch, at, end)
    if key_length != _KEY.size or at + key_length > end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a marker's key is not 4 bytes")
    version, kind = _KEY.unpack_from(batch, at)
    value_length, at = read_varint(batch, at + key_length, end)
    if version != 0 or kind not in _KINDS:
        raise ApiError(Error.CORRUPT_MESSAGE, f"a marker of unknown kind {kind}, version {version}")
    if value_length < 0 or at + value_length > end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a marker's value is cut")
    payload = bytes(batch[at : at + value_length])
    if kind == MarkerKind.DELETION and len(payload) != _OFFSET.size:
        raise ApiError(Error.CORRUPT_MESSAGE, "a deletion without an offset")
    return Marker(MarkerKind(kind), header.partition_leader_epoch, payload)


def _build(
    kind: MarkerKind, payload: bytes, *, offset: Offset, epoch: Epoch, timestamp_ms: int
) -> bytes:
    body = b"".join(
        (
            b"\x00",  # attributes
            b"\x00",  # timestamp delta
            b"\x00",  # offset delta
            encode_varint(_KEY.size),
            _KEY.pack(0, kind),
            encode_varint(len(payload)),
            payload,
            b"\x00",  # headers
        )
    )
    records = encode_varint(len(body)) + body
    head = HEADER.pack(
        offset,
        HEADER_BYTES - LENGTH_END + len(records),
        epoch,
        MAGIC,
        0,
        CONTROL_BIT,
        -1,
        timestamp_ms,
        timestamp_ms,
        -1,
        -1,
        epoch,
        1,
    )
    batch = bytearray(head + records)
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return bytes(batch)


def read_markers(buffers: Sequence[Buffer]) -> dict[int, Marker]:
    """{which batch: the marker that it is}, of the batches in `buffers`. Raises ApiError."""
    batches = ((buffer, header) for buffer in buffers for header in iterate_headers(buffer))
    return {
        at: parse_marker(buffer, header.position)
        for at, (buffer, header) in enumerate(batches)
        if header.is_marker
    }
