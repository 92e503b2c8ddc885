"""The committed offsets of the groups in one partition of `__consumer_offsets`, as bytes.

Why:    `__consumer_offsets` is compacted, and is not in the buckets: without this, the groups of a
        lost cluster begin anew.
Source: decision 0063."""

import msgspec

from strandline.tiered.framing import frame, unframe

MAGIC = b"SLCO"


class GroupOffset(msgspec.Struct, frozen=True, array_like=True):
    """One committed offset."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int


class GroupOffsets(msgspec.Struct, frozen=True, array_like=True):
    """All committed offsets of one group."""

    group: str
    offsets: tuple[GroupOffset, ...]


class OffsetsBody(msgspec.Struct, frozen=True, array_like=True):
    """The groups of one partition of `__consumer_offsets`, all of them at one offset of its log."""

    cluster_id: str
    partition: int
    groups: tuple[GroupOffsets, ...]


def encode(body: OffsetsBody) -> bytes:
    """The object."""
    return frame(MAGIC, body)


def decode(name: str, data: bytes) -> OffsetsBody:
    """What the object `name` says. Raises DamagedObjectError."""
    return unframe(name, data, OffsetsBody, MAGIC)
