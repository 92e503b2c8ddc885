"""States of a partition's tier, for tests of exports."""

from uuid import UUID

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.exports.export import Export, RetiredObject
from strandline.tiered.exports.names import ExportNumber, PartitionPlace
from strandline.tiered.segments.entry import SegmentEntry

TOPIC_ID = UUID(int=7)
PLACE = PartitionPlace("cluster", TOPIC_ID, 0)
RECORDS = 10
"""In each segment."""


def entry(number: int, epoch: int = 1, attempt: str = "") -> SegmentEntry:
    """The segment with the records from 10 * number on."""
    base = Offset(RECORDS * number)
    name = f"{PLACE.prefix}{base:020d}-{epoch}-{number:016x}{attempt}.segment"
    return SegmentEntry(
        name=name,
        base_offset=base,
        end_offset=Offset(base + RECORDS),
        data_bytes=1_000,
        size_bytes=1_200,
        trailer_crc=number,
        max_timestamp=base,
        max_timestamp_offset=Offset(base + RECORDS - 1),
        epochs=((Epoch(epoch), base),),
        digest=bytes(32),
    )


def state(
    first: int,
    last: int,
    *,
    number: tuple[int, int],
    version: int = 0,
    at_ms: int = 0,
    partition_count: int = 1,
    retired: tuple[RetiredObject, ...] = (),
    log_start_offset: int | None = None,
) -> Export:
    """With the segments [first, last) live."""
    start = RECORDS * first if log_start_offset is None else log_start_offset
    return Export(
        cluster_id=PLACE.cluster_id,
        topic="orders",
        topic_id=TOPIC_ID,
        partition=PLACE.partition,
        partition_count=partition_count,
        topic_config={"retention.ms": "-1"},
        number=ExportNumber(Epoch(number[0]), Index(number[1]), version),
        written_ms=at_ms,
        high_watermark=Offset(RECORDS * last + 3),
        log_start_offset=Offset(start),
        end_offset=Offset(RECORDS * last),
        live=tuple(entry(one) for one in range(first, last)),
        retired=retired,
    )
