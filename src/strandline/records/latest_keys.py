"""Which record of each key is the last one, over a stretch of a log.

Why:    compaction needs to know of a record whether a later one has its key. The keys of a log may
        not fit into memory: then a pass goes as far as they do, and the next one goes on.
How:    batches come in the order of their offsets, from `start_offset` on; `end_offset` follows.
        A record at or above `end_offset` counts as the last of its key.
        The keys of a batch that cannot be read, or has more than `ITEMS_MAX`, are left out: then
        earlier records of them stay, too.
Owns:   the map {key: offset of its last record}.
Source: design section 4; Kafka's log cleaner."""

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import ITEMS_MAX, decode_counted, decoding_effort

UNREADABLE_EFFORT = 1 << 30
"""Of a batch that could not be decoded, perhaps after much work."""
KEY_OVERHEAD_BYTES = 120
"""About what an entry of the map costs besides the key."""


class LatestKeys:
    """See the module. `bytes_max`: of memory for the keys."""

    def __init__(self, start_offset: Offset, *, bytes_max: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._bytes_max = bytes_max
        self.size_bytes = 0
        """About what the map takes."""
        self.start_offset = start_offset
        self.end_offset = start_offset
        """The keys of the batches below are in the map."""

    @property
    def is_full(self) -> bool:
        """Whether no further batch should be added."""
        return self.size_bytes > self._bytes_max

    def add(self, header: BatchHeader, batch: Buffer) -> int:
        """The next batch, which `batch` begins with; one below `start_offset` is passed over. What
        it took, in bytes as `decoding_effort` has them."""
        effort = header.size
        if header.next_offset <= self.start_offset:
            return effort
        if not header.is_control:
            try:
                records, size = decode_counted(batch, items_max=ITEMS_MAX)
            except ApiError:
                records, size, effort = [], 0, UNREADABLE_EFFORT
            else:
                effort = decoding_effort(header, records, size)
            for record in records:
                key = record.key
                if key is not None:
                    if key not in self._offsets:
                        self.size_bytes += KEY_OVERHEAD_BYTES + len(key)
                    self._offsets[key] = header.base_offset + record.offset_delta
        assert header.next_offset >= self.end_offset, f"back from offset {self.end_offset}"
        self.end_offset = header.next_offset
        return effort

    def is_newest(self, key: bytes, offset: int) -> bool:
        """Whether no later record has the key, as far as the map goes."""
        return offset >= self.end_offset or self._offsets.get(key, -1) <= offset
