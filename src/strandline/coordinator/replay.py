"""A partition of `__consumer_offsets` read back: the last value of every group and every offset.

Why:    a broker that begins to lead the partition knows its groups only from the log.
Owns:   the records read, until the groups are made.
Source: design section 3 (`replay` is the only way)."""

from dataclasses import dataclass, field

from strandline.base.errors import ProtocolError
from strandline.coordinator.log_records import (
    CommittedOffset,
    GroupSnapshot,
    OffsetRecord,
    decode_log_record,
)


@dataclass(slots=True)
class LoadedGroup:
    """One group: its metadata, if it ever had a generation, and its offsets."""

    metadata: GroupSnapshot | None = None
    offsets: dict[tuple[str, int], CommittedOffset] = field(default_factory=dict)


class OffsetsState:
    """See the module."""

    def __init__(self) -> None:
        self.groups: dict[str, LoadedGroup] = {}
        self.unreadable_count = 0
        """Records skipped because their form is unknown: another program wrote them."""

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record, in log order."""
        try:
            record = decode_log_record(key or b"", value)
        except ProtocolError:
            self.unreadable_count += 1
            return
        if record is None:
            return
        group = self.groups.setdefault(record.group, LoadedGroup())
        if not isinstance(record, OffsetRecord):
            group.metadata = record.value
        elif record.value is not None:
            group.offsets[record.topic, record.partition] = record.value
        else:
            group.offsets.pop((record.topic, record.partition), None)
        if group.metadata is None and not group.offsets:
            del self.groups[record.group]
