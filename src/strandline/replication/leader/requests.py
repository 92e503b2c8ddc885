"""Produce requests to one partition: what a leader appends, and what it answers.

Why:    the batcher and the leader state hand them to each other.
Owns:   nothing.
Source: design section 5."""

from collections.abc import Callable, Sequence

import msgspec

from strandline.model.ids import Index, Offset
from strandline.records.batch import BatchHeader


class AppendResult(msgspec.Struct, frozen=True, gc=False):
    """How a produce request to one partition ended. `base_offset` is -1 when it failed."""

    error_code: int
    base_offset: int
    log_start_offset: int
    message: str = ""


class Request(msgspec.Struct, frozen=True):
    """One `replicate` call."""

    buffers: Sequence[memoryview | bytearray]
    headers: Sequence[BatchHeader]
    acks: int
    done: Callable[[AppendResult], None]
    size_bytes: int


class Appended(msgspec.Struct, frozen=True):
    """What a chunk became: its last index, and the base offset of each request in it."""

    last_index: Index
    base_offsets: list[Offset]
