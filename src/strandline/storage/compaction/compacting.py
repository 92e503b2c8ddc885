"""Runs compaction of a log: one pass after the other over its closed segments.

Why:    a pass takes many slices. Between two of them the log goes on, and its segments may change.
How:    step: no pass --enough dirty bytes, or an overdue segment--> a pass --slice--> ...
        --finished segment--> replaced.
        A change that removes or rewrites segments calls `abandon` first; the next pass starts over.
Owns:   the current pass, and the offset below which the log is clean; after an opening that is the
        log's start.
Source: design section 4; Kafka's log cleaner."""

from collections.abc import Callable

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.model.ids import Index, Offset
from strandline.storage.compaction.compaction import (
    Compaction,
    compactable_segments,
    has_enough_dirt,
)
from strandline.storage.compaction.segment_work import Cleaned
from strandline.storage.config import LogConfig
from strandline.storage.log.flushing import Flushing
from strandline.storage.log.reads import segment_at_index, segment_at_offset
from strandline.storage.log.rolling import is_overdue
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerSnapshot, ProducerStates
from strandline.storage.producers.replay import producers_before


class Compacting:
    """See the module; one per log."""

    __slots__ = (
        "_clean_offset",
        "_clock",
        "_compaction",
        "_disk",
        "_flushing",
        "_keep_producers",
        "_new_segment",
        "_producers",
        "_row",
        "clean_index",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        row: SegmentRow,
        flushing: Flushing,
        *,
        producers: ProducerStates,
        new_segment: Callable[[Segment], Segment],
        keep_producers: Callable[[list[Segment]], None],
    ) -> None:
        """`keep_producers` writes the producers at the base of the last of these segments."""
        self._disk = disk
        self._clock = clock
        self._row = row
        self._flushing = flushing
        self._producers = producers
        self._new_segment = new_segment
        self._keep_producers = keep_producers
        self._compaction: Compaction | None = None
        self._clean_offset = row.history.start.base_offset
        """The log is compacted below this offset."""
        self.clean_index = Index(row.history.start.base_index - 1)
        """The last index of the last whole segment below that; one before the log's first index
        where there is none."""

    def step(
        self, config: LogConfig, limit_offset: Offset, outlived: Offset, bytes_max: int
    ) -> bool:
        """Do a slice; see `Log.compact`."""
        self._flushing.check()
        if self._compaction is None:
            self._compaction = self._begin(config, limit_offset, outlived)
        if self._compaction is None:
            return False
        try:
            has_more = self._compaction.step(bytes_max)
            cleaned = self._compaction.take()
            if cleaned is not None:
                self._put_in_place(cleaned)
        except BaseException:  # A pass that fails in any way has cleaned nothing.
            self.abandon()
            raise
        if not has_more:
            self._mark_clean_below(self._compaction.end_offset)
            self._compaction = None
        return has_more

    @property
    def has_uncompacted(self) -> bool:
        """Whether a closed segment has batches that no pass has seen, or a pass is under way."""
        segments = self._row.segments
        if self._compaction is not None:
            return True
        return len(segments) > 1 and segments[-2].end_offset > self._clean_offset

    def _put_in_place(self, cleaned: Cleaned) -> None:
        with self._flushing.failing(unless_full=True):
            self._row.prepare(cleaned, self._flushing.flushed_index)
        with self._flushing.failing():
            self._keep(cleaned)
            self._row.replace(cleaned)
        self._flushing.mark_durable(cleaned.segment)

    def _keep(self, cleaned: Cleaned) -> None:
        """Write the producers: in the compacted segments only a producer's last batches keep their
        headers."""
        if len(self._producers):
            at = self._row.segments.index(cleaned.replaced[-1])
            self._keep_producers(self._row.segments[: at + 2])

    def abandon(self) -> None:
        """Abandon the current pass, if any, because its segments change. Raises OSError."""
        if self._compaction is not None:
            self._compaction.abandon()
            self._compaction = None

    def begin_at(self, start_offset: Offset) -> None:
        """The log was reset, empty, to `start_offset`."""
        self._mark_clean_below(start_offset)

    def mark_dirty_from(self, index: Index) -> None:
        """The entries from `index` on came from another replica, which may be less compacted."""
        segments = self._row.segments
        name = segments[segment_at_index(segments, index)].name
        self._mark_clean_below(min(self._clean_offset, name.base_offset))

    def _mark_clean_below(self, offset: Offset) -> None:
        self._clean_offset = offset
        segments = self._row.segments
        name = segments[segment_at_offset(segments, offset)].name
        self.clean_index = Index(name.base_index - 1)

    def _known_before(self, segments: list[Segment], now_ms: int) -> ProducerStates:
        """The known producers at the base of the last of these segments. (The entries behind it may
        be cut; then the batches before it are a producer's last ones.)"""
        if not len(self._producers):
            return ProducerStates()
        found = producers_before(self._disk, self._row.directory, segments, now_ms=now_ms)
        known = {
            producer: entry
            for producer, entry in found.producers.items()
            if self._producers.get(producer) is not None
        }
        return ProducerStates(ProducerSnapshot(known, found.is_incomplete))

    def _begin(
        self, config: LogConfig, limit_offset: Offset, outlived: Offset
    ) -> Compaction | None:
        now_ms = self._clock.wall_ms()
        segments = compactable_segments(
            self._row.segments, config, now_ms=now_ms, limit_offset=limit_offset
        )
        dirty = [one for one in segments if one.end_offset > self._clean_offset]
        if not has_enough_dirt(segments, dirty, config) and not any(
            is_overdue(one, config, now_ms) for one in dirty
        ):
            return None
        return Compaction(
            self._disk,
            segments,
            dirty_offset=self._clean_offset,
            producers=self._known_before(self._row.segments[: len(segments) + 1], now_ms),
            config=config,
            now_ms=now_ms,
            outlived_offset=outlived,
            new_segment=self._new_segment,
        )
