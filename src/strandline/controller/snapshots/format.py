"""The bytes of a snapshot: frames, each with its checksum.

Why:    a snapshot replaces records that are removed: a reader must know that every byte of it is
        there and is right, and what it is a snapshot of.
How:    8 bytes  "STRLSNAP"
        frames:  u32  CRC-32C of what follows
                 u32  length of the payload
                 payload: zlib(MessagePack map)
        The first frame is `Head`, the last one `End`; between them are the parts of the state
        (`image`). Readers ignore fields that they do not know, and refuse kinds of parts that they
        do not know and any `format` above their own.
Owns:   nothing.
Source: decision 0062."""

import zlib
from collections.abc import Generator, Iterator
from struct import Struct

import msgspec
from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.controller.snapshots.image import Builder, Part
from strandline.controller.state import ControllerState
from strandline.model.ids import Epoch, Offset

MAGIC = b"STRLSNAP"
FORMAT = 1
FRAME_BYTES_MAX = 256 << 20
"""Of one payload, compressed or not; far above any real one."""
_FRAME = Struct(">II")
_LEVEL = 1


class Head(msgspec.Struct, frozen=True, tag="snapshot", tag_field="kind"):
    """What the snapshot is: the state after all records below `offset`, the last of which is of
    `epoch`. `taken_ms`: when, in ms since 1970."""

    offset: Offset
    epoch: Epoch
    cluster_id: str
    taken_ms: int
    format: int = FORMAT


class End(msgspec.Struct, frozen=True, tag="end", tag_field="kind"):
    """The last frame; `frame_count` counts all frames, this one included."""

    frame_count: int


class BadSnapshotError(Exception):
    """These bytes are no whole snapshot."""


_encoder = msgspec.msgpack.Encoder()
_heads = msgspec.msgpack.Decoder(Head)
_ends = msgspec.msgpack.Decoder(End)
_parts: msgspec.msgpack.Decoder[Part] = msgspec.msgpack.Decoder(Part)


def frame(value: object) -> bytes:
    """The frame of one value."""
    payload = zlib.compress(_encoder.encode(value), _LEVEL)
    length = len(payload).to_bytes(4, "big")
    return checksum(payload, checksum(length)).to_bytes(4, "big") + length + payload


def checksum(data: Buffer, before: int | None = None) -> int:
    """CRC-32C of `data`, after bytes with the checksum `before`."""
    return int(crc32.iscsi(data) if before is None else crc32.iscsi(data, before))


def read_head(data: Buffer) -> Head:
    """The head, of the first bytes of a snapshot. Raises BadSnapshotError, OperatorError."""
    return _head_of(next(_payloads(memoryview(data)), b""))


def read(data: Buffer) -> tuple[Head, ControllerState]:
    """All of a snapshot. Raises BadSnapshotError; OperatorError if a newer version wrote it."""
    steps = read_steps(data)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: tuple[Head, ControllerState] = stop.value
            return found


def read_steps(data: Buffer) -> Generator[None, None, tuple[Head, ControllerState]]:
    """The same in steps, as the return value of this generator."""
    view = memoryview(data)
    payloads = _payloads(view)
    head = _head_of(next(payloads, b""))
    builder = Builder()
    count, last = 1, b""
    for payload in payloads:
        count += 1
        if last:
            _add(builder, last)
            yield
        last = payload
    try:
        end = _ends.decode(last)
    except msgspec.MsgspecError as error:
        raise BadSnapshotError("it has no end") from error
    if end.frame_count != count:
        raise BadSnapshotError(f"{count} frames of {end.frame_count}")
    return head, builder.state


def _head_of(payload: bytes) -> Head:
    try:
        head = _heads.decode(payload)
    except msgspec.MsgspecError as error:
        raise BadSnapshotError("it has no head") from error
    if head.format > FORMAT:
        raise OperatorError(
            f"a snapshot of the controller's state has format {head.format}, and this version "
            f"reads {FORMAT}: start a newer version of strandline"
        )
    return head


def _add(builder: Builder, payload: bytes) -> None:
    try:
        part = _parts.decode(payload)
    except msgspec.MsgspecError as error:
        raise OperatorError(
            f"a snapshot of the controller's state has a part that this version cannot read "
            f"({error}): start a newer version of strandline"
        ) from error
    builder.add(part)


def _payloads(view: memoryview) -> Iterator[bytes]:
    """The payloads of all frames, checksums verified. Raises BadSnapshotError."""
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise BadSnapshotError("it does not begin as a snapshot does")
    position = len(MAGIC)
    while position < len(view):
        if len(view) - position < _FRAME.size:
            raise BadSnapshotError(f"it ends within a frame, at {len(view)}")
        crc, length = _FRAME.unpack_from(view, position)
        payload = view[position + _FRAME.size : position + _FRAME.size + length]
        if length > FRAME_BYTES_MAX or len(payload) < length:
            raise BadSnapshotError(f"it ends within a frame, at {len(view)}")
        if checksum(payload, checksum(view[position + 4 : position + _FRAME.size])) != crc:
            raise BadSnapshotError(f"a wrong checksum at {position}")
        try:
            yield zlib.decompress(payload)
        except zlib.error as error:
            raise BadSnapshotError(f"a frame at {position} that is not compressed") from error
        position += _FRAME.size + length
