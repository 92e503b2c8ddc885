"""What a leader asks an uploader, and the answer.

Why:    the leader owns the state, the uploader the bytes. The leader asks as long as the intent is
        outstanding, so no report can be lost.
How:    leader --UploadAsk--> uploader, which answers once something has changed, or `wait_ms` is
        over. Only an ask with `may_start` begins an upload: an uploader that restarted does not
        know the attempt, says so, and the leader abandons it.
        An object that takes the place of others is asked for in the same way.
Owns:   nothing.
Source: decisions 0059 and 0066."""

from enum import IntEnum

import msgspec

from strandline.model.ids import GroupId, Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import Intend, IntendReplace

METHOD = "tier.upload"


class UploadPhase(IntEnum):
    """How far an upload is, at its uploader."""

    UNKNOWN = 0
    """The uploader has not begun it, or has restarted since."""
    WAITING = 1
    """For its turn, or for its own log to have the records."""
    RUNNING = 2
    BLOCKED = 3
    """The store gives errors; the uploader tries again."""
    DONE = 4
    FAILED = 5
    """For good: this attempt comes to nothing."""
    UNCHANGED = 6
    """The object to be replaced would stay as it is."""


class Cleaning(msgspec.Struct, frozen=True, array_like=True):
    """A pass of compaction that a replacement is a part of. The bucket is clean below
    `dirty_start`; the map has the keys of [`dirty_start`, `dirty_end`), or of its first part if no
    more of them fit."""

    dirty_start: Offset
    dirty_end: Offset
    outlived_offset: Offset
    """Tombstones below may go: nothing that they delete is left anywhere."""
    delete_retention_ms: int
    map_bytes_max: int


class UploadAsk(msgspec.Struct, frozen=True, array_like=True):
    """ "How far is the upload of this intent?" `seen`: the `changes` of the last answer."""

    group: GroupId
    intent: Intend | IntendReplace
    may_start: bool
    wait_ms: int
    seen: int
    generation: int = 0
    """How often the bucket was replaced when the intent was made (decision 0068)."""
    cleaning: Cleaning | None = None
    """Of an `IntendReplace`: None where nothing but the number of objects changes."""


class UploadStatus(msgspec.Struct, frozen=True, array_like=True):
    """The answer. `changes` counts changes of it; `moved_bytes` is its progress."""

    phase: UploadPhase
    changes: int = 0
    moved_bytes: int = 0
    reason: str = ""
    entry: SegmentEntry | None = None
    mapped_end: Offset = Offset(0)
    """Of a pass of compaction: how far its map goes."""


_encoder = msgspec.msgpack.Encoder()
_asks = msgspec.msgpack.Decoder(UploadAsk)
_statuses = msgspec.msgpack.Decoder(UploadStatus)


def encode_message(message: UploadAsk | UploadStatus) -> bytes:
    """Its bytes for a call."""
    return _encoder.encode(message)


def decode_ask(payload: bytes) -> UploadAsk:
    """Raises msgspec.MsgspecError."""
    return _asks.decode(payload)


def decode_status(payload: bytes) -> UploadStatus:
    """Raises msgspec.MsgspecError."""
    return _statuses.decode(payload)
