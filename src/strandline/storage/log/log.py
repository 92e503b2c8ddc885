"""One group's log on one disk: the Raft log and the Kafka log are the same bytes.

Why:    every byte exists once: the producer sends it, the segment stores it, followers and
        consumers read it.
How:    [closed][closed]...[active]   appends go to the end of the active segment, one write each;
        a segment that is full or old is closed, flushed with the next flush, and then sealed with
        its index files. Retention removes whole closed segments; compaction rewrites them.
Owns:   the directory, and the state of the parts below it. One thread only.
Source: design section 4."""

import contextlib
from collections.abc import Sequence

from strandline.base.clock import Clock
from strandline.base.disk import Buffer, Disk, is_full
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import LENGTH_END, BatchHeader
from strandline.records.marker import Marker, read_markers
from strandline.storage.compaction.compacting import Compacting
from strandline.storage.config import SEGMENT_BYTES_MAX, LogConfig
from strandline.storage.digests.source import LogParts
from strandline.storage.layout import RESET, START, SegmentName
from strandline.storage.log import reads, retention, rolling, times
from strandline.storage.log.behind_damage import read_behind_damage
from strandline.storage.log.bounds import LogBounds
from strandline.storage.log.closed_ranges import ClosedRanges
from strandline.storage.log.flushed_mark import FlushedMark
from strandline.storage.log.flushing import FlushDone, Flushing
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.sealing import write_producers
from strandline.storage.log.segment import Segment
from strandline.storage.log.space import SpaceAllocator
from strandline.storage.producers.checkpoints import Checkpoints
from strandline.storage.producers.producers import ProducerStates
from strandline.storage.producers.replay import (
    keep_producers,
    replay_from,
    replay_producers,
)
from strandline.storage.recovery.head_summary import HeadSummary, TakenHead
from strandline.storage.recovery.mending import Mending
from strandline.storage.recovery.recovery import LogRecovery, RecoveredLog

_RELATIVE_OFFSET_MAX = (1 << 31) - 1
NO_INDEX = Index(-1)
_NO_START = Offset(0)


class Log(LogBounds):
    """A log. `start_*` and `last_index` are inclusive, `end_offset` is exclusive. `parts`: see
    `storage.digests`."""

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
        super().__init__(SegmentRow(disk, directory, found, clock=clock, trust_ms=config.trust_ms))
        self.directory = directory
        self.config = config
        self.producers: ProducerStates = found.producers
        """The last batches of each idempotent producer; follows every append and truncation."""
        self._disk = disk
        self._clock = clock
        self._space = space
        self._unsealed = found.unsealed
        self._noted_index = found.noted_index
        if self._row.active.size_bytes:
            self._row.active.mark_found(clock.monotonic_ms())
        self._checkpoints = Checkpoints(self.producers)
        self._head = HeadSummary(disk, self._row)
        self._flushing = Flushing(
            disk,
            clock,
            flushed_index=self.last_index,
            on_segment_durable=self._on_segment_durable,
            on_flushed=self._on_flushed,
        )
        self._mark = FlushedMark(
            disk, clock, self._row, self._flushing, interval_ms=config.mark_interval_ms
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
        """Finds damage, and replaces it by batches of other replicas."""
        self.parts = LogParts(self._row)
        self.closed = ClosedRanges(self._row)

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

        `flushed_index`: the index up to which the caller knows it was flushed; -1 for none.
        `space`: allocates disk space; None for a disk without a reserve.
        Raises StorageError if flushed entries are damaged or missing, unless `cut_corruption`: then
        the log ends before the damage, and its owner must not vote as if it still had the rest.
        Raises OSError if the disk fails."""
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
        """The entries that `open` found with `defer_flush` are durable now."""
        self._mark.found(self.last_index, self._noted_index)
        unsealed, self._unsealed = self._unsealed, []
        for segment in unsealed:
            if segment is not self._row.active:
                self._row.seal(segment)

    # ---- state ----

    @property
    def flushed_index(self) -> Index:
        """The log is durable up to this index."""
        return self._flushing.flushed_index

    @property
    def failed(self) -> bool:
        """Whether a write or a flush failed: the log refuses all later writes."""
        return self._flushing.error is not None

    def batch_start(self, index: Index) -> Index:
        """The first index of the batch that holds the entry at `index`."""
        if self._row.history.is_marker(index):
            return index
        segment = self._row.segments[reads.segment_at_index(self._row.segments, index)]
        offset = self._row.history.offset_of(index)
        header = segment.find_index(index, offset)
        segment.verify_from(offset, header.position + header.size)
        return self._row.history.index_of(header.base_offset)

    # ---- appending ----

    def append(self, buffers: Sequence[Buffer], headers: Sequence[BatchHeader]) -> None:
        """Append batches; `headers` are those of all batches in `buffers`, in order and stamped.

        They follow the log's end without a gap; every buffer holds whole batches, and may be reused
        afterwards.
        Raises OSError: if the disk is full, the log is unchanged; after any other failure `failed`
        is set. Raises ApiError for a malformed marker: the log is unchanged."""
        if self._flushing.error is not None:
            self._flushing.check()
        size = 0
        for buffer in buffers:
            size += len(buffer)
        epochs = self._row.history.epochs
        epoch: int = epochs[-1][0] if epochs else self._row.history.last_epoch
        offset: int = self._row.active.end_offset
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
        """Write behind the log's end; returns the segment written to."""
        segment = self._segment_for(size, next_offset)
        position = segment.size_bytes
        if position + size > segment.allocated_bytes:
            self._space.make(segment, position + size, config=self.config, is_marker=is_marker)
        try:
            (segment.opened or segment.file).pwrite(buffers, position)
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
        noted: int = history.epochs[-1][0] if history.epochs else -1
        for at, header in enumerate(headers):
            if header.partition_leader_epoch != noted:
                noted = header.partition_leader_epoch
                history.note_epoch(header.partition_leader_epoch, segment.end_index)
            if header.last_offset_delta < 0:
                marker = markers[at]
                history.note_marker(
                    segment.end_index, marker.configuration, marker.deleted_before, marker.tier
                )
            segment.note(header)
            if header.producer_id >= 0:
                if now_ms < 0:
                    now_ms = self._clock.wall_ms()
                self.producers.update(header, now_ms)
        self._checkpoints.note(segment.size_bytes)

    def _segment_for(self, size: int, next_offset: int) -> Segment:
        """The active segment, after a roll if the batches do not fit into it."""
        active = self._row.active
        if active.size_bytes and (
            active.size_bytes + size > min(self.config.segment_bytes, SEGMENT_BYTES_MAX)
            or next_offset - active.name.base_offset > _RELATIVE_OFFSET_MAX
        ):
            self._roll()
        return self._row.active

    # ---- segments ----

    def roll_if_due(self, *, is_wanted: bool = False) -> bool:
        """Close the active segment if it has batches and `rolling` says so, or if that `is_wanted`;
        whether it was closed. Raises OSError."""
        active = self._row.active
        has_none = self.failed or not active.size_bytes
        if has_none or not (is_wanted or rolling.is_due(active, self.config, self._clock)):
            return False
        self._roll()
        return True

    def _roll(self) -> None:
        """Close the active segment and begin the next. Raises OSError: if the disk is full, nothing
        has changed; after any other failure the log has failed."""
        with self._flushing.failing(unless_full=True):
            old = self._row.begin_next(self.config.index_interval_bytes)
        self._flushing.mark_dirty(old)  # So that the next flush seals it.
        producers = self._checkpoints.begin()
        with contextlib.suppress(OSError):  # Without the snapshot, a start reads the headers.
            write_producers(self._disk, self.directory, self._row.active.name, producers)

    def _on_segment_durable(self, segment: Segment) -> None:
        if segment is not self._row.active and segment in self._row.segments:
            self._row.seal(segment)

    # ---- cutting ----

    def truncate(self, from_index: Index) -> None:
        """Remove every entry from `from_index` on, where a batch begins. Blocks to flush.

        No removed entry can come back after a crash. If the cut were not flushed, a crash could
        keep a later write and undo the cut below it. Raises OSError, after which the log has
        failed; StorageError if damage hides the place of the cut: then nothing has changed."""
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
        except (OSError, StorageError):  # Damage hides the headers: use the windows in memory.
            self.producers.restore(self.producers.before(active.end_offset))
        assert self.last_index == from_index - 1, f"cut at {from_index}, ends at {self.last_index}"
        assert self.flushed_index <= self.last_index, f"{self.flushed_index} flushed after a cut"

    def _begin_cut(self) -> None:
        """Abandon a compaction and a rewrite: the cut may remove the segment they work on."""
        self._flushing.check()
        with self._flushing.failing():
            self._compacting.abandon()
            self.mending.abandon()

    def _restore_producers(self, segment: Segment) -> None:
        """Restore the producers at the end of `segment`, the active one, after a cut."""
        now_ms = self._clock.wall_ms()
        checkpoint = self._checkpoints.cut(segment.size_bytes)
        if checkpoint is None:
            segments = self._row.segments
            states = replay_producers(self._disk, self.directory, segments, now_ms=now_ms)
        else:
            states = replay_from(segment, checkpoint, now_ms=now_ms)
        self.producers.restore(states.checkpoint())

    def reset_to(self, start_index: Index, start_offset: Offset, *, previous_epoch: Epoch) -> None:
        """Remove everything and restart the log, empty, at `start_index`. Blocks to flush.

        A crash leaves the old log or the new one. Raises OSError: if the disk is full, the log is
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
        assert (self.start_index, self.end_offset) == (start_index, start_offset), "a wrong reset"

    # ---- reading ----

    def read_records(
        self, offset: Offset, max_bytes: int, limit_offset: Offset, *, min_one: bool = True
    ) -> reads.RecordSlices:
        """Data batches from the one that holds `offset`, all wholly below `limit_offset`.

        At most `max_bytes`, but with `min_one` at least one batch if there is one below the limit.
        Raises StorageError for damaged batches."""
        return reads.read_records(
            self._row.segments,
            offset,
            max_bytes=max_bytes,
            limit_offset=limit_offset,
            min_one=min_one,
        )

    def read_entries(self, from_index: Index, max_bytes: int) -> reads.Entries:
        """Batches, markers included, from the one that holds `from_index`; at least one.

        `from_index <= last_index`. Ends at a segment's end, maybe before `max_bytes`."""
        assert self.start_index <= from_index <= self.last_index, f"no entry {from_index}"
        return reads.read_entries(
            self._row.segments, self._row.history, from_index, max_bytes=max_bytes
        )

    def read_behind_damage(self, from_index: Index) -> reads.Entries:
        """A few batches from the one that holds `from_index`, where `read_entries` meets damage on
        the way there. Raises StorageError if the damage hides them."""
        return read_behind_damage(self._row.segments, self._row.history, from_index)

    def offset_for_time(
        self, timestamp_ms: int, limit_offset: Offset, *, start_offset: Offset = _NO_START
    ) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record in [start_offset, limit_offset) at or after that
        time; None for none."""
        return times.offset_for_time(
            self._row.segments, timestamp_ms, limit_offset, start_offset=start_offset
        )

    def max_timestamp(self, *, start_offset: Offset = _NO_START) -> tuple[int, Offset] | None:
        """(timestamp, offset) of the first record with the highest timestamp from `start_offset`
        on; None for none."""
        return times.max_timestamp(self._row.segments, start_offset=start_offset)

    # ---- durability ----

    def flush_soon(self, done: FlushDone) -> None:
        """Make the log durable up to the current `last_index`, then call `done`, never at once.

        `done` gets the durable index (lower if the log was truncated meanwhile), or the OSError
        after which the log has failed."""
        head = self._head.take(self.producers)
        self._flushing.request(Index(self._row.active.end_index - 1), done, head)

    def _on_flushed(self, head: TakenHead | None, index: Index) -> None:
        """The log is durable up to `index`: note that where the next opening looks."""
        self._mark.advance(self._flushing.flushed_index)
        if head is not None:
            self._head.write(head, index)

    def close(self) -> None:
        """Flush, write the files that save the next opening a scan, and close. Blocks."""
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
        """Close without writing: the entries found cannot, or must not, be made durable."""
        self._flushing.fail(error)
        self._mark.close()
        self._row.release()

    # ---- retention ----

    def retention_start(
        self,
        limit_offset: Offset,
        *,
        deleted_before: Offset = _NO_START,
        tiered: retention.Tiered | None = None,
    ) -> SegmentName:
        """The first segment that `apply_retention(limit_offset)` would keep; segments that only
        hold records below `deleted_before` go too. `tiered`: for a log with `remote_storage`.

        For an owner that first stores the state that the removed entries describe."""
        count = retention.expired_segments(
            self._row.segments,
            self.config,
            now_ms=self._clock.wall_ms(),
            limit_offset=limit_offset,
            deleted_before=deleted_before,
            tiered=tiered,
        )
        return self._row.segments[count].name

    def apply_retention(self, limit_offset: Offset) -> Offset:
        """Remove the closed segments that retention expires and that end at or below the limit.

        Returns the new start offset. Blocks to flush the directory. Raises OSError."""
        self.remove_segments_before(self.retention_start(limit_offset).base_index)
        return self.start_offset

    def _keep_producers(self, segments: list[Segment]) -> None:
        """Write the producers at the base of the last of these segments."""
        now_ms = self._clock.wall_ms()
        keep_producers(self._disk, self.directory, segments, latest=self.producers, now_ms=now_ms)

    def remove_segments_before(self, index: Index) -> None:
        """Remove the closed segments that end at or below `index`. Raises OSError: if the disk is
        full, the log is unchanged; after any other failure it has failed."""
        self._flushing.check()
        start_index = self.start_index
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
            assert self.start_index >= start_index, f"the start goes back from {start_index}"

    # ---- compaction ----

    def compact(self, limit_offset: Offset, *, outlived: Offset, bytes_max: int = 1 << 20) -> bool:
        """Compact a slice of the closed segments that end at or below the limit. Removes tombstones
        only below `outlived`: there every replica has them, and none of the records they delete.

        Reads about `bytes_max`; returns whether the caller should call again. Does nothing while a
        damaged segment is rewritten. Raises OSError if the disk is full, StorageError if a segment
        is damaged."""
        if self.mending.is_rewriting:
            return False
        return self._compacting.step(self.config, limit_offset, outlived, bytes_max)

    @property
    def has_uncompacted(self) -> bool:
        """Whether a closed segment has batches that no pass has seen."""
        return self._compacting.has_uncompacted

    @property
    def compacted_index(self) -> Index:
        """Up to this index the log has only the last record of each key, by the passes since it was
        opened, or has nothing any more: one before the log's first index at least."""
        return max(self._compacting.clean_index, Index(self.start_index - 1))

    def _cleaning_target(self, first: Segment) -> Segment:
        return self._row.new_segment(first.name, self.config.index_interval_bytes)
