"""What compaction may take from a log: records whose key has a later one, and nothing else.

Why:    in a compacted log a record that was acknowledged may be gone, and all is well if that is
        why; the promises about records ask here.
How:    a record's key follows from its value, so that nobody has to remember it. Where logs are not
        compacted, nothing may be gone.
Source: Kafka's log cleaner; design section 4."""

import zlib
from collections.abc import Mapping

from strandline.model.ids import Offset


def key_of(value: bytes, key_count: int) -> bytes | None:
    """The key of a record, one of `key_count`; None where records have none."""
    if key_count == 0:
        return None
    return b"key-%d" % (zlib.crc32(value.rsplit(b"/", 1)[0]) % key_count)


class Superseding:
    """For logs whose records have one of `key_count` keys; 0: they are not compacted."""

    def __init__(self, key_count: int = 0) -> None:
        self._key_count = key_count

    @property
    def is_possible(self) -> bool:
        """Whether logs are compacted at all."""
        return self._key_count > 0

    def newest(self, records: Mapping[Offset, bytes]) -> dict[bytes | None, Offset]:
        """{key: the offset of its last record}, of {offset: value} in the order of a log."""
        return {key_of(value, self._key_count): offset for offset, value in records.items()}

    def may_be_gone(
        self, newest: Mapping[bytes | None, Offset], offset: Offset, value: bytes
    ) -> bool:
        """Whether a log with these newest records may lack this one."""
        return self.is_possible and newest.get(key_of(value, self._key_count), -1) > offset
