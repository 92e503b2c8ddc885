"""What is seen of a bucket from outside, as the store has it in truth.

Why:    invariants about exports, deletions and copies judge what is there, whatever brokers think.
Owns:   nothing.
Source: decisions 0057, 0058 and 0061."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.model.ids import GroupId, Offset
from strandline.tiered.exports.names import ExportNumber


@dataclass(frozen=True, slots=True)
class NewestExport:
    """The newest whole export of a partition in a bucket, after one was written or removed.

    `number` is None if there is none; `absent`: names that it counts, and that the bucket lacks."""

    group: GroupId
    bucket: str
    number: ExportNumber | None
    end_offset: Offset
    absent: Sequence[str]


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """A segment was deleted. `needed_by`: what counts it still, in words; empty for nothing."""

    group: GroupId
    bucket: str
    name: str
    needed_by: str


@dataclass(frozen=True, slots=True)
class BucketCollected:
    """A collector has deleted what no log knows. `orphans`: objects that are left, and that nothing
    knows; `needed`: those that the log counts, and that are gone."""

    group: GroupId
    bucket: str
    orphans: Sequence[str]
    needed: Sequence[str]


@dataclass(frozen=True, slots=True)
class CopySeen:
    """What a read-only copy in another cluster serves: [start, end) out of this export."""

    group: GroupId
    bucket: str
    number: ExportNumber
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class CopyRead:
    """A copy has answered a read at `position` with these records."""

    group: GroupId
    bucket: str
    position: Offset
    records: Sequence[tuple[Offset, bytes]]


BucketFact = NewestExport | ObjectDeleted | BucketCollected | CopySeen | CopyRead
