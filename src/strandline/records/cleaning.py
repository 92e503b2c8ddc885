"""Compacts one batch: fewer records, the same offsets.

Why:    offsets and Raft indexes must stay dense, so a batch never disappears: without records it
        becomes an empty batch over its offsets, and neighbouring empty batches are merged.
How:    records that are not kept are removed, and the others keep their offset deltas. Base offset,
        last offset delta, epoch, producer and codec stay; the CRC is recomputed.
        The first cleaning of a batch with tombstones sets its delete horizon, in place of the base
        timestamp. A tombstone stays until that horizon, and until every replica has the tombstone
        and none of the records that it deletes.
Source: Kafka's log cleaner; KIP-534 for the delete horizon."""

from collections.abc import Callable, Sequence

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import DELETE_HORIZON_BIT, BatchHeader
from strandline.records.record import ITEMS_MAX, Record, build_batch, decode_counted, rebuild_batch

OFFSETS_MAX = (1 << 31) - 1
"""An empty batch covers at most so many offsets."""


def clean_batch(
    batch: Buffer,
    header: BatchHeader,
    *,
    is_newest: Callable[[bytes, int], bool],
    now_ms: int,
    delete_retention_ms: int,
    is_outlived: bool,
) -> Buffer | None:
    """The batch with the records that stay; the very same bytes when all do, None when none does.

    `header` was read at the beginning of `batch`. `is_newest(key, offset)`: no later record has the
    key. `is_outlived`: every replica has its tombstones, and none of the records they delete.
    Records without a key go, as in Kafka. Raises ApiError for malformed records, and for more than
    `ITEMS_MAX` of them with their headers."""
    records, _ = decode_counted(batch, items_max=ITEMS_MAX)
    return clean_records(
        batch,
        header,
        records,
        is_newest=is_newest,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        is_outlived=is_outlived,
    )


def clean_records(
    batch: Buffer,
    header: BatchHeader,
    records: Sequence[Record],
    *,
    is_newest: Callable[[bytes, int], bool],
    now_ms: int,
    delete_retention_ms: int,
    is_outlived: bool,
) -> Buffer | None:
    """The same, of a batch that has been decoded to `records`."""
    has_horizon = bool(header.attributes & DELETE_HORIZON_BIT)
    keeps_tombstones = not has_horizon or now_ms < header.base_timestamp or not is_outlived
    kept = [
        record
        for record in records
        if record.key is not None
        and (record.value is not None or keeps_tombstones)
        and is_newest(record.key, header.base_offset + record.offset_delta)
    ]
    if not kept:
        return None
    if not has_horizon and any(record.value is None for record in kept):
        return rebuild_batch(
            header,
            kept,
            attributes=header.attributes | DELETE_HORIZON_BIT,
            base_timestamp=now_ms + delete_retention_ms,
        )
    return batch if len(kept) == len(records) else rebuild_batch(header, kept)


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch without its records: it still tells that its producer wrote it."""
    no_records: list[Record] = []
    return rebuild_batch(
        header, no_records, attributes=header.attributes & ~DELETE_HORIZON_BIT, base_timestamp=-1
    )


def filler(base_offset: Offset, end_offset: Offset, epoch: Epoch) -> bytearray:
    """An empty batch over [base_offset, end_offset)."""
    return build_batch(
        [],
        base_offset=base_offset,
        epoch=epoch,
        last_offset_delta=end_offset - base_offset - 1,
    )


def is_filler(header: BatchHeader) -> bool:
    """Whether the batch says nothing at all: no records, no producer."""
    return header.records_count == 0 and header.producer_id < 0 and not header.is_control
