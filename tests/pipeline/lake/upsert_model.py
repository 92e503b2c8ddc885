"""What a table of the newest record of each key holds, as plain Python.

Source: decisions/0055."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Keyed:
    """A record as far as an upsert looks at it."""

    partition: int
    offset: int
    key: bytes | None
    value: str | None
    timestamp_ms: int


Table = dict[object, Keyed]
"""{key, or place of a record without one: the record}."""


def apply_batch(table: Table, batch: Sequence[Keyed]) -> None:
    """One batch, its records in any order."""
    for record in _newest(batch):
        if record.key is None:
            table[record.partition, record.offset] = record
            continue
        old = table.get(record.key)
        if old is not None and _is_older(record, old):
            continue
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record


def _is_older(record: Keyed, old: Keyed) -> bool:
    """Between two partitions of the topic the later timestamp counts."""
    return record.partition != old.partition and record.timestamp_ms < old.timestamp_ms


def _newest(batch: Iterable[Keyed]) -> list[Keyed]:
    """The newest record of each key: in each partition by offset, then by time."""
    in_partition: dict[object, Keyed] = {}
    for record in sorted(batch, key=lambda one: one.offset):
        place = record.offset if record.key is None else record.key
        in_partition[place, record.partition] = record
    newest: dict[object, Keyed] = {}
    for record in sorted(in_partition.values(), key=lambda one: (one.timestamp_ms, one.partition)):
        newest[(record.partition, record.offset) if record.key is None else record.key] = record
    return list(newest.values())
