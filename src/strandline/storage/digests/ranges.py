"""What a digest of a log is asked for, and what it says.

Why:    two replicas are equal in a range if their digests of it are. What is digested decides what
        "equal" means, so there are five kinds.
How:    BYTES    every batch that begins in the range, Raft's markers included, byte for byte
                 with its header: offsets, epoch, producer, codec, checksum. Committed entries of a
                 log that was never compacted are the same bytes on every replica.
        BATCHES  the same without Raft's markers, which objects in buckets lack.
        RECORDS  every record with an offset in the range, whatever batches they are in: offset,
                 timestamp, key, value, headers. Tells which record of a batch differs.
        LATEST   the last record of each key below the end of the last range, without tombstones,
                 and Raft's markers. Compaction keeps exactly these on every replica, whenever it
                 ran there.
        LATEST_RECORDS  the same without Raft's markers, for objects in buckets.
        A digest is the first 16 bytes of SHA-256; of the last two kinds, their sum over all
        records modulo 2^128, so that a superseded record is taken out again.
Source: decisions 0052 and 0058."""

from dataclasses import dataclass
from enum import IntEnum

from strandline.model.ids import Offset

DIGEST_BYTES = 16
NO_OFFSET = Offset(-1)


class DigestKind(IntEnum):
    """What is digested; see the module."""

    BYTES = 0
    RECORDS = 1
    LATEST = 2
    BATCHES = 3
    LATEST_RECORDS = 4

    @property
    def is_latest(self) -> bool:
        """Whether it is about the last record of each key: all ranges of a log at once."""
        return self in (DigestKind.LATEST, DigestKind.LATEST_RECORDS)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `start` to before `end`. `first_markers`: whether markers at `start` itself
    belong to it. A log may begin behind them, so the first range of a comparison leaves them
    out."""

    start: Offset
    end: Offset
    first_markers: bool = True


@dataclass(frozen=True, slots=True)
class Damage:
    """The batch at `offset` is damaged or missing. `end_offset`: where sound batches follow, -1 if
    that is not known. `path`, `position`: where the batch should be."""

    offset: Offset
    end_offset: Offset
    path: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class RangeDigest:
    """One range. `records` and `batches` were digested, `markers` besides them; `size_bytes` of
    batches were read for it. `first_offset`, `last_offset`: of the records; -1 without any, and for
    LATEST."""

    records: int
    batches: int
    markers: int
    size_bytes: int
    first_offset: Offset
    last_offset: Offset
    digest: bytes


@dataclass(frozen=True, slots=True)
class Digested:
    """The ranges that were digested: the first ones of those asked for. They end where the work
    limit was reached, or before the range with the first damage. LATEST has all or none.

    `has_too_many_keys`: see `latest.digest_latest`."""

    ranges: tuple[RangeDigest, ...]
    damage: Damage | None = None
    has_too_many_keys: bool = False
