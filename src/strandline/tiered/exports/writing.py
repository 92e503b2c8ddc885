"""Writes one export into a bucket: new pages first, then the head, which names them all.

Why:    a reader that sees a head can read all of it. A writer that dies in between leaves pages
        that no head names, and `old.py` finds those.
Source: decision 0061."""

from collections.abc import Sequence
from uuid import UUID

from strandline.base.errors import StrandlineError
from strandline.tiered.exports.encoding import Head, TopicBody, encode
from strandline.tiered.exports.export import Export, fault_of
from strandline.tiered.exports.layout import Page, lay_out
from strandline.tiered.exports.names import topic_name
from strandline.tiered.objects.store import ObjectExistsError, ObjectStore
from strandline.tiered.segments.entry import SegmentEntry

HEAD_BYTES_MAX = 64 << 10
RETIRED_MAX = 100
"""The newest retired objects; an older one is live in an export of before it retired."""


class ExportTooLargeError(StrandlineError):
    """An export's head does not fit into `HEAD_BYTES_MAX`."""


async def write_export(
    store: ObjectStore, export: Export, known: Sequence[Page], attempt: str
) -> tuple[Page, ...]:
    """Write it; its pages, for the next one. `known` and `attempt`: see `lay_out`.

    Raises ObjectExistsError if the bucket has another export of this number, StoreError if it is
    not known whether this one is there, ExportTooLargeError."""
    fault = fault_of(export.live, export.end_offset)
    assert not fault, fault
    assert export.high_watermark >= export.end_offset, export
    layout = lay_out(export.live, known, attempt)
    data = encode(_head_of(export, layout.pages, layout.tail))
    if len(data) > HEAD_BYTES_MAX:
        raise ExportTooLargeError(
            f"the export of {export.topic}-{export.partition} has a head of {len(data)} bytes, "
            f"{HEAD_BYTES_MAX} are allowed: its topic has {len(export.topic_config)} keys, "
            f"{len(layout.pages)} pages"
        )
    place = export.place
    for one in layout.new:
        ref = one.page.ref
        await store.put(place.page_name(ref.base_offset, ref.attempt), [one.data])
    await store.create(place.export_name(export.number), data)
    return layout.pages


async def write_topic(
    store: ObjectStore, cluster_id: str, topic: str, topic_id: UUID, now_ms: int
) -> None:
    """Say that a topic has exports; where that is said already, nothing. Raises StoreError."""
    body = TopicBody(topic, topic_id, now_ms)
    try:
        await store.create(topic_name(cluster_id, topic, topic_id), encode(body))
    except ObjectExistsError:
        return


def _head_of(export: Export, pages: Sequence[Page], tail: Sequence[SegmentEntry]) -> Head:
    number = export.number
    return Head(
        cluster_id=export.cluster_id,
        topic=export.topic,
        topic_id=export.topic_id,
        partition=export.partition,
        partition_count=export.partition_count,
        topic_config=export.topic_config,
        epoch=number.epoch,
        index=number.index,
        version=number.version,
        written_ms=export.written_ms,
        high_watermark=export.high_watermark,
        log_start_offset=export.log_start_offset,
        end_offset=export.end_offset,
        pages=tuple(one.ref for one in pages),
        tail=tuple(tail),
        retired=export.retired[-RETIRED_MAX:],
    )
