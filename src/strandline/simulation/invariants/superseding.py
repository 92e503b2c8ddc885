"""The records that compaction may remove: those whose key has a later record, and tombstones.

Why:    a compacted log may lack an acknowledged record. The promises about records ask here whether
        compaction explains that.
How:    a record's key follows from its value, so no table of keys is needed. If logs are not
        compacted, no record may be gone. Compaction removes a tombstone too, in the end. Then no
        later record explains why the deleted ones are gone, so this remembers the committed
        tombstones.
Owns:   those tombstones, in one run.
Source: Kafka's log cleaner; design section 4."""

import zlib
from collections.abc import Mapping

from strandline.model.ids import GroupId, Offset

TOMBSTONE = b"deleted"
"""Stands for the padding of a record without a value."""


def key_of(value: bytes, key_count: int) -> bytes | None:
    """The key of a record, one of `key_count`; None where records have none."""
    if key_count == 0:
        return None
    return b"key-%d" % (zlib.crc32(value.rsplit(b"/", 1)[0]) % key_count)


def is_tombstone(value: bytes) -> bool:
    """Whether this value stands for a record without one."""
    return value.endswith(b"/" + TOMBSTONE)


class Superseding:
    """For logs whose records have one of `key_count` keys; 0: they are not compacted."""

    def __init__(self, key_count: int = 0) -> None:
        self._key_count = key_count
        self._deleted: dict[GroupId, dict[bytes | None, Offset]] = {}
        """{group: {key: its last tombstone that was committed}}."""
        self._last: dict[GroupId, dict[bytes | None, Offset]] = {}
        """The same for its last record, whichever."""

    @property
    def is_possible(self) -> bool:
        """Whether logs are compacted at all."""
        return self._key_count > 0

    def note(self, group: GroupId, offset: Offset, value: bytes) -> None:
        """A committed record."""
        key = self.key_of(value)
        for known in (self._last, self._deleted) if is_tombstone(value) else (self._last,):
            offsets = known.setdefault(group, {})
            offsets[key] = max(offset, offsets.get(key, offset))

    def deleted(self, group: GroupId) -> dict[bytes | None, Offset]:
        """{key: its tombstone} of the deleted keys, as far as is known. A key with a record after
        its tombstone is not deleted."""
        last = self._last.get(group, {})
        known = self._deleted.get(group, {})
        return {key: offset for key, offset in known.items() if last[key] == offset}

    def key_of(self, value: bytes) -> bytes | None:
        """The key of a record."""
        return key_of(value, self._key_count)

    def table(self, records: Mapping[Offset, bytes]) -> dict[bytes | None, Offset]:
        """A consumer's table from {offset: value}: {key: the offset of its last record}."""
        newest = self.newest(records)
        return {key: offset for key, offset in newest.items() if not is_tombstone(records[offset])}

    def newest(self, records: Mapping[Offset, bytes]) -> dict[bytes | None, Offset]:
        """{key: the offset of its last record}, of {offset: value} in the order of a log."""
        return {key_of(value, self._key_count): offset for offset, value in records.items()}

    def may_be_gone(
        self,
        newest: Mapping[bytes | None, Offset],
        offset: Offset,
        value: bytes,
        *,
        group: GroupId,
    ) -> bool:
        """Whether a log of `group` with these newest records may lack this one."""
        key = self.key_of(value)
        later = max(newest.get(key, -1), self._deleted.get(group, {}).get(key, -1))
        return self.is_possible and (later > offset or is_tombstone(value))
