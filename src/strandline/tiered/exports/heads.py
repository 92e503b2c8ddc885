"""Heads: each uploading broker's small object that says which exports are the newest.

Why:    listing every partition each minute costs more than storing the data does. A reader gets one
        object a broker instead. An idle partition is confirmed by it, too: its export says nothing
        new, and the heads say that this is still so.
How:    a broker overwrites its own object. A row is a hint: the export is the truth. `as_of_ms` is
        when a leader with a lease had no newer state than this export.
Source: decision 0061."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from strandline.model.ids import BrokerId
from strandline.tiered.exports.encoding import HeadRow, HeadsBody, decode, encode
from strandline.tiered.exports.names import ExportNumber, heads_name, heads_prefix
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore

ROWS_MAX = 20_000
"""Partitions in the heads of one broker, about 1 MB; listing finds the exports of the others."""

Key = tuple[UUID, int]
"""A topic's id and a partition."""


class Hint(NamedTuple):
    """The newest export of a partition, as its leader said at `as_of_ms`."""

    number: ExportNumber
    as_of_ms: int


async def write_heads(
    store: ObjectStore,
    cluster_id: str,
    broker: BrokerId,
    now_ms: int,
    newest: Mapping[Key, ExportNumber],
) -> None:
    """Overwrite a broker's heads. Raises StoreError."""
    rows = tuple(
        HeadRow(topic_id, partition, number.epoch, number.index, number.version)
        for (topic_id, partition), number in list(newest.items())[:ROWS_MAX]
    )
    data = encode(HeadsBody(broker, now_ms, rows))
    await store.put(heads_name(cluster_id, broker), [data])


async def read_heads(store: ObjectStore, cluster_id: str) -> list[HeadsBody]:
    """The heads of all brokers; a damaged one is left out. Raises StoreError."""
    found = []
    names = [one.name async for one in store.list(heads_prefix(cluster_id))]
    for name in names:
        try:
            found.append(decode(name, await store.get(name), HeadsBody))
        except (DamagedObjectError, ObjectAbsentError):
            continue
    return found


def hints_of(heads: Iterable[HeadsBody]) -> dict[Key, Hint]:
    """{partition: its highest hint, of several equal ones the latest}"""
    found: dict[Key, Hint] = {}
    for one in heads:
        for row in one.rows:
            key = (row.topic_id, row.partition)
            hint = Hint(ExportNumber(row.epoch, row.index, row.version), one.written_ms)
            found[key] = max(found.get(key, hint), hint)
    return found
