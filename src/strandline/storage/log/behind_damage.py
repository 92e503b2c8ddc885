"""Reads entries that lie behind damage.

Why:    a search starts at a place that the index knows, and walks over batches. Where it has to
        pass a damaged one, what it finds is not served. If no replica has the damaged batch, a
        follower that lacks only what lies behind it would wait for ever.
How:    known place |----|damaged|----| wanted |----|----| known place, or the end of the segment
                                      `-- each batch must continue the one before --^
        Each batch from the wanted one on must have the right checksum and epoch. Checksums cover
        sizes and counts. So if the last batch ends at the known place, with the offset and the
        index of that place, all of them have the offsets that they name.
Owns:   nothing.
Source: decision 0007."""

from collections.abc import Sequence

from strandline.model.ids import Index
from strandline.storage.log.checksum_verification import Place
from strandline.storage.log.history import History
from strandline.storage.log.reads import Entries, entries_from, segment_at_index
from strandline.storage.log.scan import verified_batches
from strandline.storage.log.segment import Segment


def read_behind_damage(segments: Sequence[Segment], history: History, from_index: Index) -> Entries:
    """Verified batches, markers included, from the one that holds `from_index` up to the next place
    that is known without reading the segment. Raises StorageError where damage hides one of them,
    OSError for an unreadable sector."""
    segment = segments[segment_at_index(segments, from_index)]
    wanted = history.offset_of(from_index)
    first = segment.find_index(from_index, wanted)
    index = from_index if first.is_marker else history.index_of(first.base_offset)
    position, offset = first.position, first.base_offset
    end = segment.place_after(position)
    parts: list[bytes] = []
    if first.is_marker or first.base_offset <= wanted < first.next_offset:
        for header, chunk, at in verified_batches(
            segment.file,
            position,
            end=end.position,
            until=end.position,
            offset=offset,
            epoch=history.epoch_of(index),
        ):
            if header.partition_leader_epoch != history.epoch_of(index):
                break
            parts.append(chunk[at : at + header.size])
            position += header.size
            offset = header.next_offset
            index = Index(index + header.index_count)
    if Place(position, offset, index) != end:
        raise segment.damaged(position, "damaged bytes")
    return entries_from(
        b"".join(parts), first, from_index, history, last_index=Index(end.raft_index - 1)
    )
