"""One group's log: the Raft log, which is the Kafka log, on one disk.

Why:    one copy of every byte: what the producer sent is what lies in the segment, what a follower
        gets and what a consumer reads.
How:    [closed][closed]...[active]   appends go to the end of the active segment, one write each;
        a segment that is full, or old, is closed, flushed with the next flush, and then sealed with
        its index files. Everything else reads, or lets go of whole closed segments.
Owns:   the directory, and what the parts below it hold. One thread only.
Source: design section 4."""

import contextlib
from collections.abc import Sequence

from strandline.base.clock import Clock
from strandline.base.disk import Buffer, Disk
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import LENGTH_END, BatchHeader, iterate_headers
from strandline.records.marker import MarkerKind, parse_marker
from strandline.storage import reads, retention, times
from strandline.storage.config import SEGMENT_BYTES_MAX, LogConfig
from strandline.storage.flushing import FlushDone, Flushing
from strandline.storage.history import History
from strandline.storage.layout import SUMMARY, SegmentName
from strandline.storage.producers import Producers, ProducerStates
from strandline.storage.recovery import (
    RecoveredLog,
    Recovery,
    begin_anew,
    remove_before,
    remove_segment_files,
    replay_producers,
)
from strandline.storage.sealing import seal_segment, write_producers
from strandline.storage.segment import Segment

_ALLOCATE_BYTES_MIN = 1 << 20
_ALLOCATE_BYTES_MAX = 64 << 20
_CHECKPOINT_BYTES = 64 << 20
_CHECKPOINT_COUNT_MAX = 4
_RELATIVE_OFFSET_MAX = (1 << 31) - 1
NO_INDEX = Index(-1)


class Log:
    """A log. `start_*` and `last_index` are inclusive, `end_offset` is exclusive."""

    def __init__(
        self, disk: Disk, directory: str, *, config: LogConfig, clock: Clock, found: RecoveredLog
    ) -> None:
        self.directory = directory
        self.config = config
        self.producers: ProducerStates = found.producers
        """What each idempotent producer wrote last; follows every append and truncation."""
        self._disk = disk
        self._clock = clock
        self._cache = found.cache
        self._segments = found.segments
        self._history = found.history
        self._active = found.segments[-1]
        self._active.open_index()
        if self._active.size:
            self._active.first_append_ms = clock.monotonic_ms()
        self._checkpoints: list[tuple[int, Producers]] = []
        """(position in the active segment, the producers there), ascending."""
        self._flushing = Flushing(
            disk,
            clock,
            flushed_index=Index(self._active.end_index - 1),
            on_segment_durable=self._on_segment_durable,
        )

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        *,
        config: LogConfig,
        clock: Clock,
        flushed_index: Index = NO_INDEX,
        cut_corruption: bool = False,
    ) -> "Log":
        """Open the log in `directory`, created when absent. All that is found is durable then.

        `flushed_index`: what the caller knows to have been flushed; -1 for nothing.
        Raises StorageError when something that was flushed is damaged or missing, unless
        `cut_corruption`: then the log ends before the damage, and its owner must not vote as if it
        still had what is gone. Raises OSError when the disk fails."""
        found = Recovery(
            disk,
            directory,
            config=config,
            now_ms=clock.wall_ms(),
            flushed_index=flushed_index,
            cut_corruption=cut_corruption,
        ).run()
        return cls(disk, directory, config=config, clock=clock, found=found)

    # ---- what it is ----

    @property
    def start_offset(self) -> Offset:
        """The first offset that is still here."""
        return self._history.start.base_offset

    @property
    def start_index(self) -> Index:
        """The first index that is still here."""
        return self._history.start.base_index

    @property
    def previous_epoch(self) -> Epoch:
        """The epoch of the entry just before `start_index`; 0 for none."""
        return self._history.start.previous_epoch

    @property
    def end_offset(self) -> Offset:
        """The offset that the next record will have."""
        return self._active.end_offset

    @property
    def last_index(self) -> Index:
        """The index of the last entry; `start_index - 1` when the log is empty."""
        return Index(self._active.end_index - 1)

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last entry; `previous_epoch` when the log is empty."""
        return self._history.last_epoch

    @property
    def flushed_index(self) -> Index:
        """Everything up to here is durable."""
        return self._flushing.flushed_index

    @property
    def failed(self) -> bool:
        """Whether a write or a flush failed: nothing is written any more."""
        return self._flushing.error is not None

    @property
    def epochs(self) -> list[tuple[Epoch, Index]]:
        """(epoch, its first index here), ascending. The log's own list: copy it to keep it."""
        return self._history.epochs

    @property
    def configurations(self) -> list[tuple[Index, bytes]]:
        """(index, payload) of the configuration markers, ascending. The log's own list."""
        return self._history.configurations

    def epoch_of(self, index: Index) -> Epoch:
        """The epoch of an entry; `start_index - 1 <= index <= last_index`."""
        return self._history.epoch_of(index)

    def offset_of(self, index: Index) -> Offset:
        """The offset of the entry at `index`; of the next data entry when that is a marker."""
        return self._history.offset_of(index)

    def index_of(self, offset: Offset) -> Index:
        """The index of the data entry at `offset`."""
        return self._history.index_of(offset)

    def batch_start(self, index: Index) -> Index:
        """The first index of the batch that holds the entry at `index`."""
        segment = self._segments[reads.segment_at_index(self._segments, index)]
        header = segment.find_index(index, self._history.offset_of(index))
        return index if header.is_marker else self._history.index_of(header.base_offset)

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, the offset where it ends); (-1, -1) when unknown.

        Kafka's OffsetForLeaderEpoch: an epoch before the log ends where the log begins."""
        return self._history.epoch_end_offset(epoch, self.end_offset)

    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size for segment in self._segments)

    # ---- appending ----

    def append(self, buffers: Sequence[Buffer], headers: Sequence[BatchHeader]) -> None:
        """Append batches; `headers` are those of all batches in `buffers`, in order and stamped.

        They follow the log's end without a gap; every buffer holds whole batches, and may be reused
        afterwards.
        Raises OSError: when the disk is full before anything was written, the log is unchanged;
        after any other failure `failed` is set. ApiError for a marker that is none: unchanged."""
        self._flushing.check()
        size = 0
        for buffer in buffers:
            size += len(buffer)
        offset: int = self._active.end_offset
        total = 0
        configurations = None
        for header in headers:
            assert header.base_offset == offset, f"offset {header.base_offset}, not {offset}"
            delta = header.last_offset_delta
            if delta < 0:
                configurations = configurations or _read_configurations(buffers)
            offset += delta + 1
            total += header.batch_length + LENGTH_END
        assert total == size, f"the headers describe {total} bytes, the buffers have {size}"
        segment = self._segment_for(size, offset)
        position = segment.size
        if position + size > segment.allocated:
            self._reserve(segment, position + size)
        try:
            segment.file.pwrite(buffers, position)
        except OSError as error:
            self._flushing.fail(error)
            raise
        self._flushing.mark_dirty(segment)
        self._account(segment, headers, configurations or {})

    def _account(
        self,
        segment: Segment,
        headers: Sequence[BatchHeader],
        configurations: dict[int, bytes | None],
    ) -> None:
        history = self._history
        now_ms = -1
        if segment.first_append_ms < 0:
            segment.first_append_ms = self._clock.monotonic_ms()
        for at, header in enumerate(headers):
            index = segment.end_index
            history.note_epoch(header.partition_leader_epoch, index)
            if header.last_offset_delta < 0:
                history.note_marker(index, configurations.get(at))
            segment.note(header)
            if header.producer_id >= 0:
                if now_ms < 0:
                    now_ms = self._clock.wall_ms()
                self.producers.update(header, now_ms)
        if len(self.producers) and self._checkpoint_is_due(segment.size):
            self._checkpoints.append((segment.size, self.producers.checkpoint()))
            del self._checkpoints[:-_CHECKPOINT_COUNT_MAX]

    def _segment_for(self, size: int, next_offset: int) -> Segment:
        """The active segment, after a roll when it has no room."""
        active = self._active
        if active.size and (
            active.size + size > min(self.config.segment_bytes, SEGMENT_BYTES_MAX)
            or next_offset - active.name.base_offset > _RELATIVE_OFFSET_MAX
        ):
            self._roll()
        return self._active

    def _reserve(self, segment: Segment, end: int) -> None:
        """Have room for writes up to `end`; on failure nothing has changed."""
        if not self.config.preallocate:
            segment.allocated = end
            return
        step = min(max(segment.allocated, _ALLOCATE_BYTES_MIN), _ALLOCATE_BYTES_MAX)
        target = max(end, min(segment.allocated + step, self.config.segment_bytes))
        segment.file.allocate(target)
        segment.allocated = target

    def _checkpoint_is_due(self, position: int) -> bool:
        last = self._checkpoints[-1][0] if self._checkpoints else 0
        return position - last >= _CHECKPOINT_BYTES

    # ---- segments ----

    def roll_if_due(self) -> bool:
        """Close the active segment when its first batch is old enough; whether it was."""
        active = self._active
        if self.failed or not active.size:
            return False
        if self._clock.monotonic_ms() - active.first_append_ms < self.config.segment_ms:
            return False
        self._roll()
        return True

    def _roll(self) -> None:
        """Close the active segment and begin the next. Raises OSError; then nothing has changed."""
        old = self._active
        name = self._end_name()
        segment = self._new_segment(name)
        if old.allocated > old.size:
            old.file.truncate(old.size)
            old.allocated = old.size
        segment.create()
        self._disk.flush_directory(self.directory)
        self._flushing.mark_dirty(old)  # So that the next flush seals it.
        self._segments.append(segment)
        self._active = segment
        self._checkpoints = [(0, self.producers.checkpoint())]
        with contextlib.suppress(OSError):  # Without the snapshot, headers are read again.
            write_producers(self._disk, self.directory, name, self._checkpoints[0][1])

    def _new_segment(self, name: SegmentName) -> Segment:
        return Segment(
            self._disk,
            self.directory,
            name,
            cache=self._cache,
            index_interval_bytes=self.config.index_interval_bytes,
        )

    def _end_name(self) -> SegmentName:
        """What a segment would be called that began at the end."""
        return SegmentName(self.end_offset, self._history.marker_count, self._history.last_epoch)

    def _on_segment_durable(self, segment: Segment) -> None:
        if segment is not self._active and segment in self._segments:
            with contextlib.suppress(OSError):  # Without its files, the segment is scanned again.
                seal_segment(self._disk, segment, self._history, keep_index=True)

    # ---- cutting ----

    def truncate(self, from_index: Index) -> None:
        """Remove every entry at `from_index`, the beginning of a batch, and above. Blocks to flush.

        What is removed cannot come back after a crash, whatever is appended next: were the cut
        still unflushed, a crash could keep a later write and undo the cut below it. Raises
        OSError, after which the log has failed."""
        self._flushing.check()
        if from_index > self.last_index:
            return
        assert from_index >= self.start_index, f"index {from_index} is before the log"
        try:
            self._cut(from_index)
        except OSError as error:
            self._flushing.fail(error)
            raise

    def _cut(self, from_index: Index) -> None:
        at = reads.segment_at_index(self._segments, from_index)
        segment = self._segments[at]
        offset = self._history.offset_of(from_index)
        header = segment.find_index(from_index, offset)
        assert header.base_offset == offset, f"index {from_index} is inside a batch"
        removed = self._segments[at + 1 :]
        del self._segments[at + 1 :]
        for gone in removed:
            self._flushing.mark_clean(gone)
            gone.release()
        if removed:
            names = [gone.name for gone in removed]
            remove_segment_files(self._disk, self.directory, names)
        if self._disk.exists(segment.path(SUMMARY)):
            self._disk.remove(segment.path(SUMMARY))
            self._disk.flush_directory(self.directory)
        segment.open_index()
        segment.cut(header.position, end_offset=offset, end_index=from_index)
        segment.file.truncate(segment.size)
        segment.allocated = segment.size
        self._flushing.mark_dirty(segment)
        self._disk.flush_now(segment.file)
        self._flushing.mark_clean(segment)
        self._history.truncate(from_index)
        self._flushing.clamp(Index(from_index - 1))
        if segment is not self._active:
            self._active = segment
            self._checkpoints.clear()
        self._restore_producers(segment)

    def _restore_producers(self, segment: Segment) -> None:
        """Let the producers be as they were at the end of `segment`, the active one, just cut."""
        while self._checkpoints and self._checkpoints[-1][0] > segment.size:
            self._checkpoints.pop()
        now_ms = self._clock.wall_ms()
        if self._checkpoints:
            position, producers = self._checkpoints[-1]
            self.producers.restore(producers)
            for header in segment.headers(position, segment.size):
                self.producers.update(header, now_ms)
        else:
            states = replay_producers(self._disk, self.directory, self._segments, now_ms=now_ms)
            self.producers.restore(states.checkpoint())

    def reset_to(self, start_index: Index, start_offset: Offset, *, previous_epoch: Epoch) -> None:
        """Drop everything; the log begins anew, empty, at `start_index`. Blocks to flush.

        A crash leaves the old log or the new one. Raises OSError, after which the log has
        failed."""
        name = SegmentName(start_offset, start_index - start_offset, previous_epoch)
        try:
            begin_anew(self._disk, self.directory, name)
        except OSError as error:
            self._flushing.fail(error)
            raise
        for segment in self._segments:
            self._flushing.mark_clean(segment)
            segment.release()
        self._segments[:] = [self._new_segment(name)]
        self._active = self._segments[0]
        self._history = History(name)
        self._checkpoints.clear()
        self.producers.restore({})
        self._flushing.clamp(Index(start_index - 1))

    # ---- reading ----

    def read_records(
        self, offset: Offset, max_bytes: int, limit_offset: Offset, *, min_one: bool = True
    ) -> reads.RecordSlices:
        """Data batches from the one that holds `offset`, all wholly below `limit_offset`.

        At most `max_bytes`, but with `min_one` at least one batch if there is one below the limit.
        Raises StorageError where the file does not hold what it ought to."""
        return reads.read_records(
            self._segments, offset, max_bytes=max_bytes, limit_offset=limit_offset, min_one=min_one
        )

    def read_entries(self, from_index: Index, max_bytes: int) -> reads.Entries:
        """Batches, markers included, from the one that holds `from_index`; at least one.

        `from_index <= last_index`. May be fewer than `max_bytes` would hold: a segment's end
        ends it."""
        assert self.start_index <= from_index <= self.last_index, f"no entry {from_index}"
        return reads.read_entries(self._segments, self._history, from_index, max_bytes=max_bytes)

    def offset_for_time(self, timestamp_ms: int, limit_offset: Offset) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record below the limit that is at or after that time."""
        return times.offset_for_time(self._segments, timestamp_ms, limit_offset)

    def max_timestamp(self) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record that has the highest timestamp of all."""
        return times.max_timestamp(self._segments)

    # ---- durability ----

    def flush_soon(self, done: FlushDone) -> None:
        """Make everything up to the present `last_index` durable, then call `done`, never at once.

        `done` gets the index that is durable (lower than asked for when the log was truncated
        meanwhile), or the OSError after which the log has failed."""
        self._flushing.request(self.last_index, done)

    def close(self) -> None:
        """Flush, leave the files that spare the next opening a scan, and close. Blocks."""
        active = self._active
        if not self.failed:
            with contextlib.suppress(OSError):
                if active.allocated > active.size:
                    active.file.truncate(active.size)
                    self._flushing.mark_dirty(active)
                self._flushing.flush_now()
                seal_segment(self._disk, active, self._history, keep_index=False)
                producers = self.producers.checkpoint()
                write_producers(self._disk, self.directory, self._end_name(), producers)
        for segment in self._segments:
            segment.release()

    def destroy(self) -> None:
        """Remove the log from the disk, for good. Raises OSError."""
        for segment in self._segments:
            segment.release()
        self._disk.remove_tree(self.directory)
        self._disk.flush_directory(self.directory.rsplit("/", 1)[0])

    # ---- letting go ----

    def retention_start(self, limit_offset: Offset) -> Offset:
        """Where the log would begin after `apply_retention(limit_offset)`.

        For an owner who first has to remember what the entries before that say."""
        count = retention.expired_segments(
            self._segments,
            self.config,
            now_ms=self._clock.wall_ms(),
            limit_offset=limit_offset,
        )
        return self._segments[count].name.base_offset

    def apply_retention(self, limit_offset: Offset) -> Offset:
        """Remove closed segments that are too old or too many and end at or below the limit.

        Returns the new start offset. Blocks to flush the directory. Raises OSError."""
        start = self.retention_start(limit_offset)
        self.remove_segments_before(start)
        return self.start_offset

    def remove_segments_before(self, offset: Offset) -> None:
        """Remove the closed segments that end at or below `offset`. Raises OSError."""
        count = 0
        while count + 1 < len(self._segments) and self._segments[count].end_offset <= offset:
            count += 1
        if not count or self.failed:
            return
        start = self._segments[count].name
        removed = self._segments[:count]
        remove_before(self._disk, self.directory, start)
        del self._segments[:count]
        for segment in removed:
            self._flushing.mark_clean(segment)
            segment.release()
        self._history.advance(start, self._active.end_index)


def _read_configurations(buffers: Sequence[Buffer]) -> dict[int, bytes | None]:
    """{which batch: payload} of the configuration markers among the batches in `buffers`."""
    result: dict[int, bytes | None] = {}
    batches = ((buffer, header) for buffer in buffers for header in iterate_headers(buffer))
    for at, (buffer, header) in enumerate(batches):
        if header.is_marker:
            marker = parse_marker(buffer, header.position)
            result[at] = marker.payload if marker.kind is MarkerKind.CONFIGURATION else None
    return result
