"""What one export says: the state of one bucket for one partition, at one committed entry.

Why:    read replicas, restores and `declare-lost` know the source cluster by its bucket alone.
Source: decisions 0057 and 0061."""

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

import msgspec

from strandline.model.ids import Epoch, Offset
from strandline.tiered.exports.names import ExportNumber, PartitionPlace
from strandline.tiered.segments.entry import SegmentEntry, epochs_of


class RetiredObject(msgspec.Struct, frozen=True, array_like=True):
    """An object that counts no more and may still be read by those who read an older export."""

    name: str
    retired_ms: int
    """By the clock of the leader then, in milliseconds since 1970."""


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """One export. `live` tiles a range that ends at `end_offset`, without a gap."""

    cluster_id: str
    topic: str
    topic_id: UUID
    partition: int
    partition_count: int
    """Of the topic, when this was written."""
    topic_config: dict[str, str]
    """What was set on the topic itself, under Kafka's names."""
    number: ExportNumber
    written_ms: int
    """By the leader's clock, in milliseconds since 1970."""
    high_watermark: Offset
    """Of the partition, at the same entry; not below `end_offset`."""
    log_start_offset: Offset
    """Where the partition begins, at the same entry."""
    end_offset: Offset
    """Where the last live segment ends; if none is live, where the last one that was ended. All
    records of [`start_offset`, `end_offset`) are in the bucket."""
    live: tuple[SegmentEntry, ...]
    retired: tuple[RetiredObject, ...] = ()

    @property
    def place(self) -> PartitionPlace:
        """Where it is in a bucket."""
        return PartitionPlace(self.cluster_id, self.topic_id, self.partition)

    @property
    def start_offset(self) -> Offset:
        """The first offset that the bucket has, and that may be read; `end_offset` if none."""
        if not self.live:
            return self.end_offset
        return min(max(self.live[0].base_offset, self.log_start_offset), self.end_offset)

    @property
    def epochs(self) -> tuple[tuple[Epoch, Offset], ...]:
        """(epoch, its first offset) of all live records, ascending."""
        return tuple(epochs_of(self.live))

    def has_live(self, name: str) -> bool:
        """Whether the object of this name counts."""
        return any(one.name == name for one in self.live)


def fault_of(live: Sequence[SegmentEntry], end_offset: Offset) -> str:
    """Why these entries do not tile a range that ends there; empty if they do."""
    for one in live:
        if one.base_offset >= one.end_offset:
            return f"{one.name} ends at {one.end_offset}, where it begins or before"
    for before, after in pairwise(live):
        if before.end_offset != after.base_offset:
            return f"{after.name} begins at {after.base_offset}, not at {before.end_offset}"
    if live and live[-1].end_offset != end_offset:
        return f"{live[-1].name} ends at {live[-1].end_offset}, not at {end_offset}"
    return ""
