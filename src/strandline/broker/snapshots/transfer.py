"""Chunks of a snapshot from one broker to another.

Why:    a broker whose copy of the controller's log ends before the other brokers' begins needs a
        snapshot of what lies between. It may be large, and links break.
How:    receiver --"up to OFFSET at least; I have POSITION bytes of this one"--> any broker
        sender   --a chunk of that one, or of its newest from the beginning, or nothing yet-->
        The receiver writes chunks to a `.part`, asks for the next one, and turns to the next broker
        if one does not answer. Every whole snapshot is of committed records, so any sender will do.
        A copy counts once its size, its checksums and its head are right.
Owns:   nothing.
Source: decision 0062; KIP-630 (FetchSnapshot)."""

import logging
from collections.abc import Callable, Iterable

import msgspec

from strandline.base.errors import ProtocolError
from strandline.broker.snapshots.files import SnapshotFiles, SnapshotId
from strandline.controller.snapshots.format import BadSnapshotError
from strandline.model.ids import BrokerId, Epoch, Offset
from strandline.network.calls import CallError, Calls

METHOD = "controller.snapshot"
CHUNK_BYTES = 256 << 10
CALL_TIMEOUT_MS = 5_000
SNAPSHOT_BYTES_MAX = 4 << 30
"""A snapshot that claims to be larger is refused."""

_log = logging.getLogger("strandline.controller")


class ChunkQuestion(msgspec.Struct, frozen=True):
    """Asks for a snapshot up to `offset_min` at least. The other fields: the snapshot of which the
    receiver has `position` bytes already; zeros for none."""

    offset_min: Offset
    offset: Offset = Offset(0)
    epoch: Epoch = Epoch(0)
    size_bytes: int = 0
    crc: int = 0
    position: int = 0


class Chunk(msgspec.Struct, frozen=True):
    """Bytes of a snapshot from `position` on; `size_bytes` 0: none that goes so far is here yet."""

    offset: Offset = Offset(0)
    epoch: Epoch = Epoch(0)
    size_bytes: int = 0
    crc: int = 0
    position: int = 0
    data: bytes = b""


_encoder = msgspec.msgpack.Encoder()
_questions = msgspec.msgpack.Decoder(ChunkQuestion)
_chunks = msgspec.msgpack.Decoder(Chunk)


class SnapshotSender:
    """Answers questions. `take_soon`: called if no snapshot here goes as far as asked for."""

    def __init__(self, files: SnapshotFiles, calls: Calls, take_soon: Callable[[], None]) -> None:
        self._files = files
        self._take_soon = take_soon
        calls.register(METHOD, self._on_question)

    async def _on_question(self, _: BrokerId, payload: bytes) -> bytes:
        try:
            question = _questions.decode(payload)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"bad question for a snapshot: {error}") from error
        asked = SnapshotId(question.offset, question.epoch, question.size_bytes, question.crc)
        chosen, position = self._files.newest, 0
        if asked in self._files.kept:
            chosen, position = asked, question.position
        if chosen is None or chosen.offset < question.offset_min:
            self._take_soon()
            return _encoder.encode(Chunk())
        try:
            data = self._files.read_chunk(chosen, position, CHUNK_BYTES)
        except OSError as error:
            raise ProtocolError(f"the snapshot cannot be read: {error}") from error
        return _encoder.encode(
            Chunk(chosen.offset, chosen.epoch, chosen.size_bytes, chosen.crc, position, data)
        )


class SnapshotReceiver:
    """Copies a snapshot to the disk here."""

    def __init__(self, files: SnapshotFiles, calls: Calls) -> None:
        self._files = files
        self._calls = calls

    async def copy(
        self, offset_min: Offset, sources: Iterable[BrokerId]
    ) -> tuple[SnapshotId, bytes] | None:
        """Copy a snapshot up to `offset_min` at least from one of these brokers, and read it. None
        if none has one, or what came is not right: try again later. Raises OSError."""
        for source in sources:
            try:
                found = await self._copy_from(source, offset_min)
                if found is not None:
                    return found, self._files.read_incoming(found)
            except CallError as error:
                _log.info("broker %d sends no snapshot: %s", source, error)
            except (BadSnapshotError, msgspec.DecodeError) as error:
                _log.warning("a snapshot from broker %d is not right: %s", source, error)
                self._files.drop_incoming()
        return None

    async def _copy_from(self, source: BrokerId, offset_min: Offset) -> SnapshotId | None:
        known = self._files.incoming()
        while True:
            question = ChunkQuestion(offset_min)
            if known is not None and known[0].offset >= offset_min:
                snapshot, position = known
                if position == snapshot.size_bytes:
                    return snapshot
                question = ChunkQuestion(
                    offset_min,
                    snapshot.offset,
                    snapshot.epoch,
                    snapshot.size_bytes,
                    snapshot.crc,
                    position,
                )
            answer = await self._calls.call(
                source, METHOD, _encoder.encode(question), timeout_ms=CALL_TIMEOUT_MS
            )
            chunk = _chunks.decode(answer)
            if not chunk.size_bytes:
                return None
            found = SnapshotId(chunk.offset, chunk.epoch, chunk.size_bytes, chunk.crc)
            expected = known[1] if known is not None and known[0] == found else 0
            end = chunk.position + len(chunk.data)
            is_next = chunk.position in (0, expected) and chunk.data and end <= found.size_bytes
            if not is_next or found.offset < offset_min or found.size_bytes > SNAPSHOT_BYTES_MAX:
                raise BadSnapshotError(f"a chunk at {chunk.position}, not at {expected}")
            self._files.put_chunk(found, chunk.position, chunk.data)
            known = found, end
