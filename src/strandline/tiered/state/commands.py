"""What TIER markers in a group's log say.

How:    intent --> live --> retired --> gone;  intent --> abandoned --> gone;
        replacement intended --> live in the place of a run of live ones, which retire;
                             --> abandoned --> gone
        anything --Reset--> absent: the bucket is another one
        A command that does not fit the state at its place in the log is refused there, by every
        replica alike, and changes nothing.
Source: decision 0057."""

import msgspec

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.segments.entry import SegmentEntry


class Intend(msgspec.Struct, frozen=True, tag=1, array_like=True):
    """`uploader` will put the records of [base, end) into `bucket`, under `name`.

    They begin where the last live segment or another intent ends, and come before the marker."""

    bucket: str
    name: str
    base_offset: Offset
    end_offset: Offset
    uploader: BrokerId


class GoLive(msgspec.Struct, frozen=True, tag=2, array_like=True):
    """The object of an intent is in the bucket, and has been confirmed. It has the range of the
    intent, and begins where the last live segment ends: later intents wait for earlier ones."""

    bucket: str
    entry: SegmentEntry


class Abandon(msgspec.Struct, frozen=True, tag=3, array_like=True):
    """The intent's upload is given up; its name is never used again, and `Forget` ends it."""

    bucket: str
    name: str
    at_ms: int


class Retire(msgspec.Struct, frozen=True, tag=4, array_like=True):
    """Live segments that end at or below `before` count no more; deleted after a grace.

    It says that the topic needs these records no more: local retention may remove them, too.
    One that `empties` says so of the bucket, not of the records: all of its objects retire, nothing
    counts as held there, and it may begin anew where the partition begins."""

    bucket: str
    before: Offset
    at_ms: int
    empties: bool = False


class Replace(msgspec.Struct, frozen=True, tag=5, array_like=True):
    """The object of an `IntendReplace` is in the bucket, and has been confirmed: it takes the place
    of the run, which retires. All of the run must be live still."""

    bucket: str
    names: tuple[str, ...]
    """All of the run, in the order of their offsets."""
    entry: SegmentEntry
    at_ms: int


class Forget(msgspec.Struct, frozen=True, tag=6, array_like=True):
    """These retired or abandoned objects are deleted from the bucket: gone."""

    bucket: str
    names: tuple[str, ...]


class Reset(msgspec.Struct, frozen=True, tag=8, array_like=True):
    """An operator put another bucket in this one's place: what the old one had counts no more, and
    uploads begin anew where the partition begins. Nothing is deleted: the objects are elsewhere.

    `generation`: how often the bucket was replaced in all (decision 0068)."""

    bucket: str
    generation: int


class IntendReplace(msgspec.Struct, frozen=True, tag=9, array_like=True):
    """`uploader` will put one object under `name` that takes the place of a run of live objects of
    `bucket`. A bucket has one replacement under way at a time."""

    bucket: str
    name: str
    names: tuple[str, ...]
    """All of the run, in the order of their offsets."""
    base_offset: Offset
    end_offset: Offset
    """Of the run, and of the object."""
    uploader: BrokerId


class MarkClean(msgspec.Struct, frozen=True, tag=10, array_like=True):
    """Of a compacted topic: below `before`, the live objects have no record whose key has a later
    one below `before`."""

    bucket: str
    before: Offset


class Removal(msgspec.Struct, frozen=True, array_like=True):
    """An object that counts no more, and may be in the bucket still."""

    name: str
    size_bytes: int
    """Of the object; 0 for an abandoned one, which may be absent or half there."""
    at_ms: int
    """When it was retired or abandoned, by the wall clock of the leader of that time."""
    was_live: bool


class BucketImage(msgspec.Struct, frozen=True, array_like=True):
    """All of one bucket's state; see `bucket.BucketState` for the fields."""

    bucket: str
    live: tuple[SegmentEntry, ...]
    intents: tuple[Intend, ...]
    removals: tuple[Removal, ...]
    end_offset: Offset
    retired_before: Offset
    counters: tuple[int, ...]
    is_emptied: bool = False
    generation: int = 0
    replacement: IntendReplace | None = None
    clean_before: Offset = Offset(0)


class Checkpoint(msgspec.Struct, frozen=True, tag=7, array_like=True):
    """The whole state, as it is before this marker: what came earlier may be removed."""

    index: Index
    """Of the last marker that the state has; -1 for none."""
    epoch: Epoch
    lineage: bytes
    deleted_before: Offset
    refused_count: int
    buckets: tuple[BucketImage, ...]
    """In the order of their names."""


Command = Intend | GoLive | Abandon | Retire | Replace | Forget | Reset | IntendReplace | MarkClean
Record = Command | Checkpoint
