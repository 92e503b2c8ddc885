"""Cleans batches one after the other: fewer records, the same offsets.

Why:    logs and buckets are compacted by one rule.
How:    BatchCleaner.clean --what stays of a batch, or a gap--> CleanedBatches --> `_put`
        Neighbouring gaps become one empty batch, as long as they are of one epoch.
Owns:   the gap that is open.
Source: design section 4; Kafka's log cleaner; decisions 0037 and 0066."""

from collections.abc import Callable

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.cleaning import OFFSETS_MAX, clean_records, empty_batch, filler, is_filler
from strandline.records.latest_keys import UNREADABLE_EFFORT, LatestKeys
from strandline.records.record import ITEMS_MAX, decode_counted, decoding_effort


class CleanedBatches:
    """Takes batches and gaps in the order of their offsets. A subclass has `_put`."""

    def __init__(self) -> None:
        self._gap: BatchHeader | None = None
        """The first of the batches that were skipped since the last one written."""
        self._gap_end = Offset(0)
        self._gap_count = 0
        self.has_changed = False
        """Whether the result differs from the batches that came in."""

    def write(self, header: BatchHeader, batch: Buffer) -> None:
        """Keep a batch."""
        self._close_gap()
        self._put(batch)

    def skip(self, header: BatchHeader) -> None:
        """Let an empty batch stand for this one."""
        gap = self._gap
        if gap is not None and (
            gap.partition_leader_epoch != header.partition_leader_epoch
            or header.next_offset - gap.base_offset > OFFSETS_MAX
        ):
            self._close_gap()
        if self._gap is None:
            self._gap = header
            self._gap_count = 0
        self._gap_end = header.next_offset
        self._gap_count += 1

    def finish(self) -> None:
        """No more batches come."""
        self._close_gap()

    def _close_gap(self) -> None:
        gap = self._gap
        if gap is not None:
            self._gap = None
            self.has_changed |= self._gap_count > 1
            self._put(filler(gap.base_offset, self._gap_end, gap.partition_leader_epoch))

    def _put(self, batch: Buffer) -> None:
        """Take the next batch of the result."""
        raise AssertionError("each kind of result has its own")


class BatchCleaner:
    """See the module. Tombstones may go below `outlived_offset`: nothing that one of them deletes
    is left anywhere. `may_be_repeated`: whether the batch's producer may send it again, so that its
    header has to stay."""

    def __init__(
        self,
        keys: LatestKeys,
        *,
        now_ms: int,
        delete_retention_ms: int,
        outlived_offset: Offset,
        may_be_repeated: Callable[[BatchHeader], bool],
    ) -> None:
        self._keys = keys
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._outlived_offset = outlived_offset
        self._may_be_repeated = may_be_repeated

    def clean(self, out: CleanedBatches, header: BatchHeader, batch: Buffer) -> int:
        """Give what stays of a batch to `out`. `header` was read at the beginning of `batch`. What
        it took, in bytes as `decoding_effort` has them."""
        effort = header.size
        if header.is_control:
            out.write(header, batch)
            return effort
        if is_filler(header):
            out.skip(header)
            return effort
        cleaned: Buffer | None
        # A tombstone behind the map's end may be old too, if it came from a leader that had
        # compacted. The records that it deletes go in the pass that has its key.
        end_offset = min(self._outlived_offset, self._keys.end_offset)
        try:
            records, size = decode_counted(batch, items_max=ITEMS_MAX)
            effort = decoding_effort(header, records, size)
            cleaned = clean_records(
                batch,
                header,
                records,
                is_newest=self._keys.is_newest,
                now_ms=self._now_ms,
                delete_retention_ms=self._delete_retention_ms,
                is_outlived=header.next_offset <= end_offset,
            )
        except ApiError:
            cleaned, effort = batch, UNREADABLE_EFFORT  # An unreadable batch stays as it is.
        if cleaned is not None:
            out.has_changed |= cleaned is not batch
            out.write(header, cleaned)
        elif self._may_be_repeated(header):
            out.has_changed |= header.records_count > 0
            out.write(header, empty_batch(header) if header.records_count else batch)
        else:
            out.has_changed = True
            out.skip(header)
        return effort
