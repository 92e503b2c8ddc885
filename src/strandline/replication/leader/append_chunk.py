"""Entries on their way to a follower, and what the append with them says of them.

Why:    they come out of memory or out of the log, this one or another replica's, and the append is
        the same.
Owns:   nothing.
Source: design section 5."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from strandline.base.disk import Buffer
from strandline.model.ids import Index
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Run
from strandline.replication.leader.tail import Chunk

if TYPE_CHECKING:
    from strandline.storage.log import reads


class AppendChunk(msgspec.Struct, frozen=True, gc=False):
    """Entries up to `last_index`, and what an append says of them. `is_relaxed`: nobody waits for
    their flush. `is_in_memory`: they were not read from the log."""

    parts: Sequence[Buffer]
    last_index: Index
    runs: Sequence[Run]
    configurations: Sequence[tuple[Index, Configuration]]
    is_relaxed: bool = False
    is_in_memory: bool = False


NOTHING = AppendChunk((), Index(-1), (), ())

_configurations = msgspec.json.Decoder(Configuration)


def encode_configuration(configuration: Configuration) -> bytes:
    """What a configuration marker carries."""
    return msgspec.json.encode(configuration)


def decode_configuration(payload: bytes) -> Configuration:
    """The configuration that a marker carries."""
    return _configurations.decode(payload)


def describe(chunks: Sequence[Chunk]) -> AppendChunk:
    """Chunks of the tail that follow each other; at least one."""
    parts: list[Buffer] = []
    runs: list[Run] = []
    configurations: list[tuple[Index, Configuration]] = []
    for chunk in chunks:
        parts.extend(chunk.buffers)
        if runs and runs[-1].epoch == chunk.epoch:
            runs[-1] = Run(chunk.epoch, chunk.last_index)
        else:
            runs.append(Run(chunk.epoch, chunk.last_index))
        if chunk.configuration is not None:
            configurations.append((chunk.first_index, chunk.configuration))
    is_relaxed = all(chunk.relaxed for chunk in chunks)
    return AppendChunk(parts, chunks[-1].last_index, runs, configurations, is_relaxed, True)


def describe_read(entries: "reads.Entries") -> AppendChunk:
    """Entries that were read from the log."""
    return AppendChunk(
        [entries.data],
        entries.last_index,
        [Run(epoch, last) for epoch, last in entries.runs],
        [(index, decode_configuration(payload)) for index, payload in entries.configurations],
    )
