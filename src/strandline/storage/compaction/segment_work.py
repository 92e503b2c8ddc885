"""Work on closed segments in slices that produces one segment in the place of others.

Why:    compaction and repair read and write whole segments while the event loop goes on.
How:    `_run` yields at the end of each slice. The owner calls `step` again a little later, and
        takes a finished segment from `take` before the next step. Only durable segments are handed
        out.
Owns:   the budget of the current slice, and the finished segment until it is taken.
Source: design section 4."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from inspect import GEN_CLOSED, getgeneratorstate

from strandline.base.disk import Disk, File, is_unreadable
from strandline.base.errors import StorageError
from strandline.records.batch import BatchHeader, crc_of, read_header
from strandline.storage.layout import CLEANED, LOG
from strandline.storage.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A finished segment: `segment`, which is durable, will replace `replaced`."""

    segment: Segment
    replaced: Sequence[Segment]


class SegmentWork:
    """See the module. `segments`: the input; the result has the name of one of them."""

    def __init__(self, disk: Disk, segments: Sequence[Segment]) -> None:
        self._disk = disk
        self._segments = segments
        self._budget_bytes = 0
        self._cleaned: Cleaned | None = None
        self._is_abandoned = False
        self._steps = self._run()

    def step(self, bytes_max: int) -> bool:
        """Work through about `bytes_max`; whether there is more to do. Raises OSError,
        StorageError."""
        self._budget_bytes = bytes_max
        return next(self._steps, None) is not None

    def take(self) -> Cleaned | None:
        """The finished segment, if any; it must take its place before the next step."""
        cleaned, self._cleaned = self._cleaned, None
        return cleaned

    @property
    def is_over(self) -> bool:
        """Whether the work is finished or abandoned."""
        return getgeneratorstate(self._steps) == GEN_CLOSED

    def abandon(self) -> None:
        """Abandon the work: the segments have changed, or cannot be read. Other work may use them
        afterwards."""
        if self._is_abandoned:
            return
        self._is_abandoned = True
        self._steps.close()
        self._cleaned = None
        for segment in self._segments:
            self._disk.remove(segment.path(CLEANED))

    def _run(self) -> Generator[bool, None, None]:
        """The work; yields True where a slice ends."""
        raise AssertionError("each kind of work has its own")

    def _open(self, target: Segment) -> File:
        """The empty file in which `target` is written."""
        file = self._disk.open(target.path(CLEANED), create=True)
        file.truncate(0)
        return file

    def _finish(self, target: Segment, file: File, replaced: Sequence[Segment]) -> Iterator[bool]:
        """Make `target` durable and hand it out."""
        answers: list[OSError | None] = []
        self._disk.flush_soon(file, answers.append)
        while not answers:
            yield True
        if answers[0] is not None:
            raise answers[0]
        self._cleaned = Cleaned(target, replaced)
        yield True

    def _spend(self, count: int) -> bool:
        """Whether the slice is used up."""
        self._budget_bytes -= count
        return self._budget_bytes < 0


def read_verified(segment: Segment, header: BatchHeader) -> bytes:
    """Read and verify the batch of a header of `segment`: it may be damaged although it was
    verified before. Raises StorageError."""
    found = "damaged bytes"
    try:
        batch = segment.file.pread(header.size, header.position)
        if read_header(batch) is not None and crc_of(batch, 0, len(batch)) == header.crc:
            return batch
    except OSError as error:
        if not is_unreadable(error):
            raise
        found = str(error)
    raise StorageError(
        segment.path(LOG),
        header.position,
        expected=f"the batch of offset {header.base_offset} with the right checksum",
        found=found,
    )
