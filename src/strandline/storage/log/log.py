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
from functools import partial

from strandline.base.clock import Clock
from strandline.base.disk import Buffer, Disk, is_full
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import LENGTH_END, BatchHeader
from strandline.records.marker import Marker, read_markers
from strandline.storage.compaction.compacting import Compacting
from strandline.storage.config import SEGMENT_BYTES_MAX, LogConfig
from strandline.storage.disk.flushed_mark import FlushedMark
from strandline.storage.disk.flushing import FlushDone, Flushing
from strandline.storage.layout import RESET, START, SegmentName
from strandline.storage.log import reads, retention, times
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.sealing import write_durably, write_producers
from strandline.storage.log.segment import Segment
from strandline.storage.log.space import SpaceAllocator
from strandline.storage.producers.checkpoints import Checkpoints
from strandline.storage.producers.producers import ProducerStates
from strandline.storage.producers.replay import producers_before, replay_producers
from strandline.storage.recovery.head_summary import HeadSummary, TakenHead
from strandline.storage.recovery.mending import Mending
from strandline.storage.recovery.recovery import LogRecovery, RecoveredLog

_RELATIVE_OFFSET_MAX = (1 << 31) - 1
NO_INDEX = Index(-1)
_NO_START = Offset(0)


class Log:
    """A log. `start_*` and `last_index` are inclusive, `end_offset` is exclusive."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        config: LogConfig,
        clock: Clock,
        found: RecoveredLog,
        space: SpaceAllocator,
    ) -> None:
        self.directory = directory
        self.config = config
        self.producers: ProducerStates = found.producers
        """What each idempotent producer wrote last; follows every append and truncation."""
        self._disk = disk
        self._clock = clock
        self._space = space
        self._row = SegmentRow(disk, directory, found, clock=clock, trust_ms=config.trust_ms)
        self._unsealed = found.unsealed
        self._noted_index = found.noted_index
        if self._row.active.size:
            self._row.active.first_append_ms = clock.monotonic_ms()
        self._checkpoints = Checkpoints(self.producers)
        self._head = HeadSummary(disk, self._row)
        on_durable = self._on_segment_durable
        self._flushing = Flushing(
            disk, clock, flushed_index=self.last_index, on_segment_durable=on_durable
        )
        self._mark = FlushedMark(
            disk,
            clock,
            self._row,
            self._flushing,
            interval_ms=config.mark_interval_ms,
        )
        self._compacting = Compacting(
            disk,
            clock,
            self._row,
            self._flushing,
            producers=self.producers,
            new_segment=self._cleaning_target,
            keep_producers=self._keep_producers,
        )
        self.mending = Mending(
            disk,
            self._row,
            self._flushing,
            new_segment=self._cleaning_target,
            abandon_compaction=self._compacting.abandon,
            on_mended=self._compacting.mark_dirty_from,
            roll=self._roll,
        )
        """Finds damage, and puts in its place what other replicas have."""

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
        defer_flush: bool = False,
        space: SpaceAllocator | None = None,
    ) -> "Log":
        """Open the log in `directory`, created when absent. All entries found are durable
        afterwards. With `defer_flush` the caller makes them durable and calls
        `mark_found_durable` before it uses the log.

        `flushed_index`: what the caller knows to have been flushed; -1 for nothing.
        `space`: where it has its space from; None for a disk that keeps nothing for few.
        Raises StorageError when something that was flushed is damaged or missing, unless
        `cut_corruption`: then the log ends before the damage, and its owner must not vote as if it
        still had what is gone. Raises OSError when the disk fails."""
        found = LogRecovery(
            disk,
            directory,
            config=config,
            now_ms=clock.wall_ms(),
            flushed_index=flushed_index,
            cut_corruption=cut_corruption,
            defer_flush=defer_flush,
        ).run()
        log = cls(
            disk,
            directory,
            config=config,
            clock=clock,
            found=found,
            space=space or SpaceAllocator(),
        )
        if not defer_flush:
            log.mark_found_durable()
        return log

    def mark_found_durable(self) -> None:
        """What `open` found with `defer_flush` has been made durable."""
        self._mark.found(self.last_index, self._noted_index)
        unsealed, self._unsealed = self._unsealed, []
        for segment in unsealed:
            if segment is not self._row.active:
                self._row.seal(segment)

    # ---- what it is ----

    @property
    def start_offset(self) -> Offset:
        """The first offset that is still here."""
        return self._row.history.start.base_offset

    @property
    def start_index(self) -> Index:
        """The first index that is still here."""
        return self._row.history.start.base_index

    @property
    def previous_epoch(self) -> Epoch:
        """The epoch of the entry just before `start_index`; 0 for none."""
        return self._row.history.start.previous_epoch

    @property
    def end_offset(self) -> Offset:
        """The offset that the next record will have."""
        return self._row.active.end_offset

    @property
    def last_index(self) -> Index:
        """The index of the last entry; `start_index - 1` when the log is empty."""
        return Index(self._row.active.end_index - 1)

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last entry; `previous_epoch` when the log is empty."""
        return self._row.history.last_epoch

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
        return self._row.history.epochs

    @property
    def configurations(self) -> list[tuple[Index, bytes]]:
        """(index, payload) of the configuration markers, ascending. The log's own list."""
        return self._row.history.configurations

    @property
    def deletions(self) -> list[tuple[Index, Offset]]:
        """(index, records below this offset are deleted) of the deletion markers, ascending in the
        index. The log's own list."""
        return self._row.history.deletions

    def epoch_of(self, index: Index) -> Epoch:
        """The epoch of an entry; `start_index - 1 <= index <= last_index`."""
        return self._row.history.epoch_of(index)

    def offset_of(self, index: Index) -> Offset:
        """The offset of the entry at `index`; of the next data entry when that is a marker."""
        return self._row.history.offset_of(index)

    def index_of(self, offset: Offset) -> Index:
        """The index of the data entry at `offset`."""
        return self._row.history.index_of(offset)

    def batch_start(self, index: Index) -> Index:
        """The first index of the batch that holds the entry at `index`."""
        if self._row.history.is_marker(index):
            return index
        segment = self._row.segments[reads.segment_at_index(self._row.segments, index)]
        offset = self._row.history.offset_of(index)
        header = segment.find_index(index, offset)
        segment.verify_from(offset, header.position + header.size)
        return self._row.history.index_of(header.base_offset)

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, the offset where it ends); (-1, -1) when unknown.

        Kafka's OffsetForLeaderEpoch: an epoch before the log ends where the log begins."""
        return self._row.history.epoch_end_offset(epoch, self.end_offset)

    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        segments = self._row.segments
        if len(segments) == 1:  # Most logs: a report asks thousands of them.
            return segments[0].size
        return sum(segment.size for segment in segments)

    # ---- appending ----

    def append(self, buffers: Sequence[Buffer], headers: Sequence[BatchHeader]) -> None:
        """Append batches; `headers` are those of all batches in `buffers`, in order and stamped.

        They follow the log's end without a gap; every buffer holds whole batches, and may be reused
        afterwards.
        Raises OSError: when the disk is full, the log is unchanged; after any other failure
        `failed` is set. ApiError for a marker that is none: unchanged."""
        self._flushing.check()
        size = 0
        for buffer in buffers:
            size += len(buffer)
        offset: int = self._row.active.end_offset
        epoch: int = self._row.history.last_epoch
        total = 0
        markers = None
        for header in headers:
            assert header.base_offset == offset, f"offset {header.base_offset}, not {offset}"
            assert header.partition_leader_epoch >= epoch, f"an epoch below {epoch}"
            epoch = header.partition_leader_epoch
            delta = header.last_offset_delta
            if delta < 0:
                markers = markers or read_markers(buffers)
            offset += delta + 1
            total += header.batch_length + LENGTH_END
        assert total == size, f"the headers describe {total} bytes, the buffers have {size}"
        is_marker = markers is not None and len(markers) == len(headers)
        try:
            segment = self._write(buffers, size, offset, is_marker=is_marker)
        except OSError as error:
            if (
                self.failed
                or not is_full(error)
                or not self._space.use_reserve(is_marker=is_marker)
            ):
                raise
            segment = self._write(buffers, size, offset, is_marker=is_marker)
        self._flushing.mark_dirty(segment)
        self._account(segment, headers, markers or {})

    def _write(
        self, buffers: Sequence[Buffer], size: int, next_offset: int, *, is_marker: bool
    ) -> Segment:
        """Write behind the end; the segment that has it."""
        segment = self._segment_for(size, next_offset)
        position = segment.size
        if position + size > segment.allocated:
            self._space.make(segment, position + size, config=self.config, is_marker=is_marker)
        try:
            segment.file.pwrite(buffers, position)
        except OSError as error:
            with self._flushing.failing():
                if not is_full(error):
                    raise
                segment.undo_partial_write(position)
            raise
        return segment

    def _account(
        self,
        segment: Segment,
        headers: Sequence[BatchHeader],
        markers: dict[int, Marker],
    ) -> None:
        history = self._row.history
        now_ms = -1
        if segment.first_append_ms < 0:
            segment.first_append_ms = self._clock.monotonic_ms()
        noted: int = -1
        for at, header in enumerate(headers):
            if header.partition_leader_epoch != noted:
                noted = header.partition_leader_epoch
                history.note_epoch(header.partition_leader_epoch, segment.end_index)
            if header.last_offset_delta < 0:
                marker = markers[at]
                history.note_marker(segment.end_index, marker.configuration, marker.deleted_before)
            segment.note(header)
            if header.producer_id >= 0:
                if now_ms < 0:
                    now_ms = self._clock.wall_ms()
                self.producers.update(header, now_ms)
        self._checkpoints.note(segment.size)

    def _segment_for(self, size: int, next_offset: int) -> Segment:
        """The active segment, after a roll when it has no room."""
        active = self._row.active
        if active.size and (
            active.size + size > min(self.config.segment_bytes, SEGMENT_BYTES_MAX)
            or next_offset - active.name.base_offset > _RELATIVE_OFFSET_MAX
        ):
            self._roll()
        return self._row.active

    # ---- segments ----

    def roll_if_due(self) -> bool:
        """Close the active segment when its first batch is older than `segment_ms`, or retention
        will want it to go; whether that was so. Raises OSError."""
        active = self._row.active
        if self.failed or not active.size:
            return False
        is_old = self._clock.monotonic_ms() - active.first_append_ms >= self.config.segment_ms
        if not is_old and not retention.is_due(active, self.config, self._clock.wall_ms()):
            return False
        self._roll()
        return True

    def _roll(self) -> None:
        """Close the active segment and begin the next. Raises OSError: when the disk is full,
        nothing has changed; after any other failure the log has failed."""
        with self._flushing.failing(unless_full=True):
            old = self._row.begin_next(self.config.index_interval_bytes)
        self._flushing.mark_dirty(old)  # So that the next flush seals it.
        producers = self._checkpoints.begin()
        with contextlib.suppress(OSError):  # Without the snapshot, headers are read again.
            write_producers(self._disk, self.directory, self._row.active.name, producers)

    def _on_segment_durable(self, segment: Segment) -> None:
        if segment is not self._row.active and segment in self._row.segments:
            self._row.seal(segment)

    # ---- cutting ----

    def truncate(self, from_index: Index) -> None:
        """Remove every entry at `from_index`, the beginning of a batch, and above. Blocks to flush.

        What is removed cannot come back after a crash, whatever is appended next: were the cut
        still unflushed, a crash could keep a later write and undo the cut below it. Raises
        OSError, after which the log has failed; StorageError where damage hides the place of the
        cut: nothing has changed then."""
        self._flushing.check()
        if from_index > self.last_index:
            return
        assert from_index >= self.start_index, f"index {from_index} is before the log"
        with self._flushing.failing():
            place = self._row.find_cut(from_index)
        self._begin_cut()
        old_active = self._row.active
        kept_index = min(self.flushed_index, Index(from_index - 1))
        self._mark.cut(kept_index)
        with self._flushing.failing():
            removed = self._row.cut(place, kept_index)
        active = self._row.active
        for gone in removed:
            self._flushing.mark_clean(gone)
        self._flushing.mark_clean(active)
        self._flushing.clamp(Index(from_index - 1))
        self._mark.advance(self.flushed_index)
        active.first_append_ms = self._clock.monotonic_ms()
        if active is not old_active:
            self._checkpoints.clear()
        try:
            self._restore_producers(active)
        except (OSError, StorageError):  # Damage hides the headers: what is known has to do.
            self.producers.restore(self.producers.before(active.end_offset))

    def _begin_cut(self) -> None:
        """What is being written anew may be what is cut."""
        self._flushing.check()
        with self._flushing.failing():
            self._compacting.abandon()
            self.mending.abandon()

    def _restore_producers(self, segment: Segment) -> None:
        """Let the producers be as they were at the end of `segment`, the active one, just cut."""
        now_ms = self._clock.wall_ms()
        checkpoint = self._checkpoints.cut(segment.size)
        if checkpoint is None:
            segments = self._row.segments
            states = replay_producers(self._disk, self.directory, segments, now_ms=now_ms)
        else:
            position, snapshot = checkpoint
            states = ProducerStates(snapshot)
            segment.verify(position, segment.size)
            for header in segment.headers(position, segment.size):
                states.update(header, now_ms)
        self.producers.restore(states.checkpoint())

    def reset_to(self, start_index: Index, start_offset: Offset, *, previous_epoch: Epoch) -> None:
        """Drop everything; the log begins anew, empty, at `start_index`. Blocks to flush.

        A crash leaves the old log or the new one. Raises OSError: when the disk is full, the log is
        unchanged; after any other failure it has failed."""
        self._begin_cut()
        name = SegmentName(start_offset, start_index - start_offset, previous_epoch)
        with self._flushing.failing(unless_full=True):
            self._row.declare(name, RESET)
        self._mark.cut(NO_INDEX)
        with self._flushing.failing():
            removed = self._row.reset(name, self.config.index_interval_bytes)
        for segment in removed:
            self._flushing.mark_clean(segment)
        self._flushing.begin_at(Index(start_index - 1))
        self._checkpoints.clear()
        self._compacting.begin_at(start_offset)
        self.producers.restore(ProducerStates().checkpoint())

    # ---- reading ----

    def read_records(
        self, offset: Offset, max_bytes: int, limit_offset: Offset, *, min_one: bool = True
    ) -> reads.RecordSlices:
        """Data batches from the one that holds `offset`, all wholly below `limit_offset`.

        At most `max_bytes`, but with `min_one` at least one batch if there is one below the limit.
        Raises StorageError where the file does not hold what it ought to."""
        return reads.read_records(
            self._row.segments,
            offset,
            max_bytes=max_bytes,
            limit_offset=limit_offset,
            min_one=min_one,
        )

    def read_entries(self, from_index: Index, max_bytes: int) -> reads.Entries:
        """Batches, markers included, from the one that holds `from_index`; at least one.

        `from_index <= last_index`. May be fewer than `max_bytes` would hold: a segment's end
        ends it."""
        assert self.start_index <= from_index <= self.last_index, f"no entry {from_index}"
        return reads.read_entries(
            self._row.segments, self._row.history, from_index, max_bytes=max_bytes
        )

    def offset_for_time(
        self, timestamp_ms: int, limit_offset: Offset, *, start_offset: Offset = _NO_START
    ) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record at or above `start_offset` and below the limit
        that is at or after that time."""
        return times.offset_for_time(
            self._row.segments, timestamp_ms, limit_offset, start_offset=start_offset
        )

    def max_timestamp(self, *, start_offset: Offset = _NO_START) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record at or above `start_offset` that has the highest
        timestamp of those."""
        return times.max_timestamp(self._row.segments, start_offset=start_offset)

    # ---- durability ----

    def flush_soon(self, done: FlushDone) -> None:
        """Make everything up to the present `last_index` durable, then call `done`, never at once.

        `done` gets the index that is durable (lower than asked for when the log was truncated
        meanwhile), or the OSError after which the log has failed."""
        head = self._head.take(self.producers)
        self._flushing.request(self.last_index, partial(self._on_flushed, done, head))

    def _on_flushed(self, done: FlushDone, head: TakenHead | None, result: Index | OSError) -> None:
        if not isinstance(result, OSError):
            self._mark.advance(self.flushed_index)
            if head is not None:
                self._head.write(head, result)
        done(result)

    def close(self) -> None:
        """Flush, leave the files that spare the next opening a scan, and close. Blocks."""
        active = self._row.active
        self._head.close()
        self._mark.close()
        if not self.failed:
            with contextlib.suppress(OSError):
                with self._flushing.failing():
                    self._compacting.abandon()
                    active.trim()
                    self._flushing.mark_dirty(active)
                    self._flushing.flush_now()
                self._mark.mark_before_close(self.last_index)
                self._row.seal(active)
                producers = self.producers.checkpoint()
                write_producers(self._disk, self.directory, self._row.end_name(), producers)
        self._row.release()

    def give_up(self, error: OSError) -> None:
        """What was found could not be made durable, or is not to be: write nothing, and close."""
        self._flushing.fail(error)
        self._mark.close()
        self._row.release()

    # ---- letting go ----

    def retention_start(
        self, limit_offset: Offset, *, deleted_before: Offset = _NO_START
    ) -> SegmentName:
        """With which segment the log would begin after `apply_retention(limit_offset)`, without
        segments of deleted records only.

        For an owner who first has to remember what the entries before that say."""
        count = retention.expired_segments(
            self._row.segments,
            self.config,
            now_ms=self._clock.wall_ms(),
            limit_offset=limit_offset,
            deleted_before=deleted_before,
        )
        return self._row.segments[count].name

    def apply_retention(self, limit_offset: Offset) -> Offset:
        """Remove closed segments that are too old or too many and end at or below the limit.

        Returns the new start offset. Blocks to flush the directory. Raises OSError."""
        self.remove_segments_before(self.retention_start(limit_offset).base_index)
        return self.start_offset

    def _keep_producers(self, segments: list[Segment]) -> None:
        """Have it written who wrote what before the last of these. Where there is no room for that,
        room has to be made: then only a crash before the next segment forgets it."""
        now_ms, name = self._clock.wall_ms(), segments[-1].name
        try:
            known = producers_before(self._disk, self.directory, segments, now_ms=now_ms)
        except StorageError:  # Damage, which is about to go, hides the headers.
            known = self.producers.before(name.base_offset)
        try:
            write_durably(self._disk, self.directory, name, known)
        except OSError as error:
            if not is_full(error):
                raise

    def remove_segments_before(self, index: Index) -> None:
        """Remove the closed segments that end at or below `index`. Raises OSError: when the disk
        is full, the log is unchanged; after any other failure it has failed."""
        self._flushing.check()
        segments = self._row.segments
        count = 0
        while count + 1 < len(segments) and segments[count].end_index <= index:
            count += 1
        if count:
            with self._flushing.failing():
                self._compacting.abandon()
                self._keep_producers(segments[: count + 1])
            with self._flushing.failing(unless_full=True):
                self._row.declare(segments[count].name, START)
            with self._flushing.failing():
                removed = self._row.remove_first(count)
            for segment in removed:
                self._flushing.mark_clean(segment)

    # ---- compaction ----

    def compact(self, limit_offset: Offset, *, outlived: Offset, bytes_max: int = 1 << 20) -> bool:
        """Do a slice of compaction over closed segments that end at or below the limit; tombstones
        may go below `outlived`: all replicas have them there, and nothing that they delete.

        Reads about `bytes_max`; returns whether there is more to do, so: call it again a little
        later. Nothing is done while a damaged segment is written anew. Raises OSError when the disk
        is full, StorageError where a segment is damaged."""
        if self.mending.is_rewriting:
            return False
        return self._compacting.step(self.config, limit_offset, outlived, bytes_max)

    @property
    def compacted_index(self) -> Index:
        """Up to this index nothing is left here but the last record of each key up to there; as
        far as a pass has seen to that since the log was opened. One before the log's first index
        where none has."""
        return self._compacting.clean_index

    def _cleaning_target(self, first: Segment) -> Segment:
        return self._row.new_segment(first.name, self.config.index_interval_bytes)
