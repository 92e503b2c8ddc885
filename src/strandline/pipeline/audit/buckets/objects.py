"""A task for one object of a bucket, and what it finds. Plain values, which Spark pickles."""

from dataclasses import dataclass, field

from strandline.client.buckets.options import BucketOptions
from strandline.pipeline.audit.results import FindingKind
from strandline.pipeline.audit.tasks import Bounds, Digest, Rot
from strandline.storage.digests.ranges import DigestKind
from strandline.tiered.segments.entry import SegmentEntry


@dataclass(frozen=True, slots=True)
class ObjectTask:
    """Ranges of one object to digest, ascending. `is_whole`: read and check all of it; otherwise
    only the part that has the ranges. `rest`: of LATEST_RECORDS, the bucket's objects behind
    `entry`; all of them make one table."""

    topic: str
    partition: int
    bucket: str
    entry: SegmentEntry
    kind: DigestKind
    ranges: tuple[Bounds, ...]
    options: BucketOptions
    timeout_ms: int
    is_whole: bool = True
    rest: tuple[SegmentEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an object. `is_placed`: whether it begins at `offset` for certain; if not,
    the object's batches are sound, and are not those that the log names."""

    kind: FindingKind
    offset: int
    end_offset: int
    reason: str
    is_placed: bool = True


@dataclass(slots=True)
class ObjectResult:
    """`digests`: {range: its digest}, of those without a fault. `problem`: the store gave no usable
    answer, so nothing is known of the rest."""

    task: ObjectTask
    digests: dict[Bounds, Digest] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    problem: str = ""
    is_silent: bool = False
    read_bytes: int = 0

    def leave_out(self, start: int, end: int) -> None:
        """Drop the digests of all ranges that have one of these offsets."""
        for bounds in [one for one in self.digests if one[0] < end and start < one[1]]:
            del self.digests[bounds]

    @property
    def damage(self) -> dict[Bounds, Rot]:
        """The first fault, as narrowing wants to know it."""
        placed = [one for one in self.faults if one.is_placed]
        return {
            (one.offset, one.end_offset): Rot(one.offset, one.end_offset, one.reason)
            for one in placed[:1]
        }
